// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agenttest_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/agenttest"
	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/responses"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/tool"
)

// The tests of this file stand in docs/testing.md.

type place struct {
	City string `json:"city"`
}

// newAgent is the agent under test.
func newAgent(model agent.Model) *agent.Agent {
	weather := tool.Must("weather", "Tell the weather in a city.", func(_ context.Context, p place) (string, error) {
		if p.City == "Atlantis" {
			return "", errors.New("no such city")
		}
		return "It rains in " + p.City + ".", nil
	}, tool.ReadOnly())
	a := &agent.Agent{Model: model, Tools: []tool.Tool{weather}}
	a.Request.Model = "gpt-5"
	return a
}

func TestUmbrella(t *testing.T) {
	model := agenttest.Script(t,
		agenttest.Completed(
			item.Call("call_1", "weather", `{"city":"Bergen"}`),
			item.Call("call_2", "weather", `{"city":"Atlantis"}`)),
		agenttest.Completed(item.Assistant("Take an umbrella to Bergen.")),
	)
	s := session.New()
	res, err := newAgent(model).Run(t.Context(), s, item.User("Do I need an umbrella?"))
	if err != nil || res.Text != "Take an umbrella to Bergen." {
		t.Fatal(res.Text, err)
	}
	agenttest.CheckTrajectory(t, s.Log(), `
		turn 1
		  weather {"city":"Atlantis"} ! no such city
		  weather {"city":"Bergen"} = It rains …
		turn 2
		  > Take an umbrella to Bergen.
		stopped: answered
	`)
	if first := model.Requests()[0]; len(first.Tools) != 1 || first.Input.Len() != 1 {
		t.Errorf("the model was asked with %d tools and %d items", len(first.Tools), first.Input.Len())
	}
}

func TestAnyCity(t *testing.T) {
	model := agenttest.ModelFunc(func(_ context.Context, req *api.Request) agenttest.Reply {
		last := req.Input.At(req.Input.Len() - 1)
		if out, err := item.As[item.FunctionCallOutput](last); err == nil {
			return agenttest.Completed(item.Assistant(out.Output.Display()))
		}
		m, err := item.As[item.Message](last)
		if err != nil {
			return agenttest.Failure(400, "bad_request", err.Error())
		}
		return agenttest.Completed(item.Call("call_1", "weather", fmt.Sprintf(`{"city":%q}`, m.Content.Display())))
	})
	for _, city := range []string{"Bergen", "Oslo"} {
		res, err := newAgent(model).Run(t.Context(), session.New(), item.User(city))
		if err != nil || res.Text != "It rains in "+city+"." {
			t.Error(res.Text, err)
		}
	}
}

func TestOverloaded(t *testing.T) {
	model := agenttest.Script(t,
		agenttest.Failure(503, "overloaded", "later"), // asked again, without a delay
		agenttest.Completed(item.Assistant("Take an umbrella.")).CutAfter(2000),
	)
	res, err := newAgent(model).Run(t.Context(), session.New(), item.User("Do I need an umbrella?"))
	var e *endpoint.Error
	if !errors.As(err, &e) || e.Class != endpoint.Truncated || res.Why != agent.StopProviderError {
		t.Error(res.Why, err)
	}
}

func TestRecorded(t *testing.T) {
	key := endpoint.NewKey(cmp.Or(os.Getenv("OPENAI_API_KEY"), "sk-of-the-test")) // a real one is needed only to record
	for _, c := range []struct{ name, ask, want string }{
		{"one city", "Do I need an umbrella in Bergen?", `
			turn 1
			  weather {"city":"Bergen"} = It rains in Bergen.
			turn 2
			  > …umbrella…
			stopped: answered
		`},
		{"no city", "Hello.", `
			turn 1
			  > …
			stopped: answered
		`},
	} {
		t.Run(c.name, func(t *testing.T) {
			tape := agenttest.Record(t, "testdata/"+strings.ReplaceAll(c.name, " ", "-")+".rec", key)
			a := newAgent(&responses.Client{Key: key, HTTP: tape.Client()})
			s := session.New()
			if _, err := a.Run(t.Context(), s, item.User(c.ask)); err != nil {
				t.Fatal(err)
			}
			agenttest.CheckTrajectory(t, s.Log(), c.want)
		})
	}
}
