// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package tool_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image"
	"image/png"
	"log"
	"strings"
	"time"

	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/tool"
	"github.com/antiphon-go/antiphon/tool/output"
)

// invoke calls a tool as an agent does.
func invoke(t tool.Tool, arguments string) tool.Outcome {
	set, err := tool.NewSet(t)
	if err != nil {
		log.Fatal(err)
	}
	return set.Invoke(context.Background(), tool.Call{ID: "call_1", Name: set.Names()[0], Arguments: arguments}, output.Policy{})
}

// The schema that the model gets comes from the type of the input.
func ExampleNew_schema() {
	type input struct {
		Place string `json:"place" jsonschema:"a city or a street"`
		Days  int    `json:"days,omitempty"`
	}
	forecast := tool.Must("forecast", "Tells the weather of the next days.", func(context.Context, input) (string, error) { return "", nil })
	fmt.Println(forecast.Definition().(*item.FunctionTool).Parameters)
	// Output:
	// {"type":"object","properties":{"place":{"type":"string","description":"a city or a street"},"days":{"type":"integer"}},"required":["place"],"additionalProperties":false}
}

// A value that is not a string becomes compact JSON.
func ExampleNew_struct() {
	type sky struct {
		Degrees int  `json:"degrees"`
		Rain    bool `json:"rain"`
	}
	weather := tool.Must("weather", "Tells the weather.", func(context.Context, struct{}) (sky, error) { return sky{7, true}, nil })
	fmt.Println(invoke(weather, `{}`).Content.Text)
	// Output:
	// {"degrees":7,"rain":true}
}

// An error of the function is not an error of the run: the model reads it, and can
// try something else.
func ExampleNew_error() {
	open := tool.Must("open", "Opens a door.", func(context.Context, struct{}) (string, error) { return "", errors.New("the door is locked") })
	out := invoke(open, `{}`)
	fmt.Println(out.Failed, out.Failure, out.Error)
	// Output:
	// true tool_error the door is locked
}

// A function is not called with arguments that do not fit. The model reads what is
// wrong with them.
func ExampleArgumentsError() {
	count := tool.Must("count", "Counts.", func(_ context.Context, in struct {
		To int `json:"to"`
	}) (string, error) {
		return strings.Repeat("x", in.To), nil
	})
	out := invoke(count, `{"to":"ten"}`)
	fmt.Println(out.Failure)
	fmt.Println(out.Error)
	// Output:
	// bad_arguments
	// invalid arguments for count: to: type: ten has type "string", want "integer"
	// The tool was not run. The arguments must be a JSON object that matches this schema:
	// {"type":"object","properties":{"to":{"type":"integer"}},"required":["to"],"additionalProperties":false}
}

// A panic fails one call. The stack is for the caller's log; the model reads the value.
func ExamplePanicError() {
	broken := tool.Must("broken", "Fails.", func(context.Context, struct{}) (string, error) { panic("no such shelf") })
	out := invoke(broken, `{}`)
	fmt.Println(out.Failure, out.Panic.Value, len(out.Panic.Stack) > 0)
	// Output:
	// panic no such shelf true
}

// A call that takes too long ends, and the model is told so.
func ExampleTimeout() {
	slow := tool.Must("slow", "Takes its time.", func(ctx context.Context, _ struct{}) (string, error) {
		<-ctx.Done()
		return "", ctx.Err()
	}, tool.Timeout(time.Millisecond))
	fmt.Println(invoke(slow, `{}`).Failure)
	// Output:
	// timeout
}

// With an envelope the model can tell a success from a failure by its first lines.
func ExampleEnveloped() {
	list := tool.Must("list", "Lists the files.", func(context.Context, struct{}) (string, error) { return "a.txt", nil }, tool.Enveloped())
	first, _, _ := strings.Cut(invoke(list, `{}`).Content.Text, "\n\n")
	fmt.Println(first)
	// Output:
	// status:
	// success
}

// A schema by hand says what Go types cannot, such as the values of a member.
func ExampleParameters() {
	light := tool.Must("light", "Sets the light.", func(_ context.Context, in struct {
		Colour string `json:"colour"`
	}) (string, error) {
		return "it is " + in.Colour, nil
	}, tool.Parameters(`{"type":"object","properties":{"colour":{"type":"string","enum":["red","green"]}},"required":["colour"],"additionalProperties":false}`))
	fmt.Println(invoke(light, `{"colour":"red"}`).Content.Text)
	fmt.Println(invoke(light, `{"colour":"blue"}`).Failed)
	// Output:
	// it is red
	// true
}

// A tool says of itself what an agent may know before it calls it.
func ExampleAnnotationsOf() {
	read := tool.Must("read", "Reads.", func(context.Context, struct{}) (string, error) { return "", nil }, tool.ReadOnly(), tool.Timeout(time.Second))
	a := tool.AnnotationsOf(read)
	fmt.Println(a.ReadOnly, a.Idempotent, a.Timeout)
	// Output:
	// true false 1s
}

// A function that needs the id of the call, for a log or as an idempotency key, takes
// it from the context.
func ExampleFromContext() {
	pay := tool.Must("pay", "Pays.", func(ctx context.Context, _ struct{}) (string, error) {
		call, _ := tool.FromContext(ctx)
		return "paid under " + call.ID, nil
	})
	fmt.Println(invoke(pay, `{}`).Content.Text)
	// Output:
	// paid under call_1
}

// A raw tool takes the arguments as the model wrote them, here the free text of a
// custom tool.
func ExampleRaw_custom() {
	shout, err := tool.Raw(&item.CustomTool{Name: "shout", Description: "Writes in capitals."}, func(_ context.Context, c tool.Call) (tool.Result, error) {
		return tool.Result{Text: strings.ToUpper(c.Arguments)}, nil
	})
	if err != nil {
		log.Fatal(err)
	}
	set, err := tool.NewSet(shout)
	if err != nil {
		log.Fatal(err)
	}
	out := set.Invoke(context.Background(), tool.Call{ID: "call_1", Name: "shout", Arguments: "quiet", Custom: true}, output.Policy{})
	fmt.Println(out.Content.Text)
	// Output:
	// QUIET
}

// A computer of your own: actions go in, a screenshot comes out. Put the tool into
// agent.Agent.Tools.
func ExampleComputer() {
	var screen bytes.Buffer
	if err := png.Encode(&screen, image.NewGray(image.Rect(0, 0, 80, 60))); err != nil {
		fmt.Println(err)
		return
	}
	computer, err := tool.Computer(&item.ComputerTool{}, func(_ context.Context, actions []item.ComputerAction) ([]byte, error) {
		for _, a := range actions {
			switch a := a.(type) {
			case *item.ClickAction:
				fmt.Println("click at", a.X, a.Y)
			case *item.ScreenshotAction: // it is taken below
			default:
				return nil, fmt.Errorf("this computer has no %s", a.ActionType())
			}
		}
		return screen.Bytes(), nil
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	set, err := tool.NewSet(computer)
	if err != nil {
		fmt.Println(err)
		return
	}
	call := tool.Call{ID: "c1", Kind: item.TypeComputerCall, Name: "computer", Arguments: `{"actions":[{"type":"click","button":"left","x":5,"y":7}]}`}
	out := set.Invoke(context.Background(), call, output.Policy{})
	fmt.Println(out.Failed, len(out.Content.Parts))
	// Output:
	// click at 5 7
	// false 1
}
