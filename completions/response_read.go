// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package completions

import (
	"fmt"
	"strconv"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/item"
)

// ParseResponse reads a chat completion as a response. Unknown members stay in Extra, which is
// never sent. Only the first of several choices is read. Items get ids made from the response's id.
// A body that holds an error is a failed response.
//
// The error is an [*item.SyntaxError], or an [*item.ShapeError] if the body is not a chat
// completion.
func ParseResponse(body []byte) (*api.Response, []Loss, error) {
	text := item.JSON(body)
	if err := text.Valid(); err != nil {
		return nil, nil, err
	}
	if text = trim(text); text[0] != '{' {
		return nil, nil, shapeError("", "found "+kindOf(text)+", want a chat completion")
	}
	var losses []Loss
	o := place{to: &losses}.open(text)
	r := &api.Response{Output: []item.Item{}}
	readHead(r, o)
	r.Usage = readUsage(o.take("usage"))
	choices := o.take("choices")
	if fault := o.take("error"); fault != "" {
		r.Error = readError(fault)
	}
	if isEmpty(choices) {
		if r.Error == nil {
			return nil, nil, shapeError("choices", "found "+kindOf(choices)+", want a list with a choice")
		}
		r.Status = item.StatusFailed
	} else if err := readChoices(r, choices, o.at("choices")); err != nil {
		return nil, nil, err
	}
	r.Extra = append(r.Extra, o.keep()...)
	return r, losses, nil
}

// readHead reads the common members of a completion and its chunks.
func readHead(r *api.Response, o *object) {
	r.ID, r.Model, r.ServiceTier = o.text("id"), o.text("model"), o.text("service_tier")
	if n := o.number("created"); n != nil {
		r.CreatedAt = new(float64(*n))
	}
	o.takeAny("object")
}

// readError reads an error in the forms that servers use: an object or a text.
func readError(v item.JSON) *api.APIError {
	if s, ok := v.Unquote(); ok {
		return &api.APIError{Message: s}
	}
	if ev, err := api.ParseEventString(`{"type":"error","error":` + string(v) + `}`); err == nil {
		if e, ok := ev.Err(); ok && v[0] == '{' {
			return e
		}
	}
	return &api.APIError{Message: string(v)}
}

func readChoices(r *api.Response, choices item.JSON, at place) error {
	var err error
	eachElement(choices, func(i int, v item.JSON) {
		switch {
		case i > 0:
			at.index(i).loseContent("a response has one choice")
		case v[0] != '{':
			err = shapeError(at.index(i).path, "found "+kindOf(v)+", want a choice")
		default:
			err = readFirst(r, at.index(i).open(v))
		}
	})
	return err
}

func readFirst(r *api.Response, o *object) error {
	m := o.take("message")
	if m == "" || m[0] != '{' {
		return shapeError(o.at("message").path, "found "+kindOf(m)+", want a message")
	}
	o.take("index")
	if fault := o.take("error"); fault != "" && r.Error == nil {
		r.Error = readError(fault)
	}
	settle(r, o.text("finish_reason"), o.place)
	if r.Error != nil {
		r.Status = item.StatusFailed
	}
	reply := reply{stem: stem(r.ID)}
	probs := o.take("logprobs")
	reply.logprobs = member(probs, "content")
	eachMember(probs, func(name string, v item.JSON) {
		if name != "content" && !blank(v) {
			o.at("logprobs").at(name).lose(noCounterpart)
		}
	})
	inner := o.at("message").open(m)
	if err := reply.read(inner); err != nil {
		return err
	}
	inner.rest()
	o.rest()
	if !blank(reply.logprobs) {
		o.at("logprobs.content").lose("are of a text that is not there")
	}
	var err error
	r.Output, err = reply.items(r.Status)
	return err
}

// reply is the model's reply in one choice, streamed or not.
type reply struct {
	stem      string
	reasoning *item.Reasoning
	parts     []item.Part
	calls     []calling

	logprobs item.JSON
}

// read reads the message of a choice.
func (y *reply) read(o *object) error {
	o.text("role")
	c, err := o.at("content").readContent(o.take("content"), true)
	if err != nil {
		return err
	}
	y.reasoning = readReasoning(o, c.thoughts)
	y.readAudio(o, &c)
	if m := spoken(o, c); m != nil {
		y.parts = m.Content.Parts
		if m.Content.IsText() {
			y.parts = []item.Part{&item.OutputText{Text: m.Content.Text, Annotations: "[]"}}
		}
	}
	for _, p := range y.parts {
		if t, ok := p.(*item.OutputText); ok && !blank(y.logprobs) {
			t.Logprobs, y.logprobs = y.logprobs, ""
		}
	}
	return y.readCalls(o)
}

// What becomes of a spoken answer.
const (
	soundLost      = "the sound has no counterpart"
	transcriptKept = "becomes the text"
	transcriptLost = "is left out, because the message has a text"
)

// readAudio takes the transcript of a spoken answer as the text, unless the message
// has one. The sound has no counterpart.
func (y *reply) readAudio(o *object, c *content) {
	v := o.take("audio")
	if blank(v) {
		return
	}
	at := o.at("audio")
	at.loseContent(soundLost)
	words, _ := member(v, "transcript").Unquote()
	switch {
	case words == "":
	case c.given:
		at.at("transcript").loseContent(transcriptLost)
	default:
		c.Content, c.given = item.Text(words), true
		at.at("transcript").move(transcriptKept)
	}
}

func (y *reply) readCalls(o *object) error {
	at := o.at("tool_calls")
	var err error
	eachElement(o.take("tool_calls"), func(i int, v item.JSON) {
		if err != nil {
			return
		}
		if v[0] != '{' {
			err = shapeError(at.index(i).path, "found "+kindOf(v)+", want a call")
			return
		}
		one := at.index(i).open(v)
		one.take("index")
		c, problem := one.call()
		if problem != "" {
			err = shapeError(at.index(i).path, problem)
			return
		}
		y.calls = append(y.calls, c)
	})
	if v := o.take("function_call"); err == nil && !blank(v) && v[0] == '{' {
		at := o.at("function_call")
		if emptyCall(v) {
			return nil
		}
		f := at.open(v)
		c := calling{name: f.text("name"), input: f.arguments()}
		f.rest()
		at.move(olderCall)
		if c.name == "" {
			return shapeError(at.path, "found no name of what is called")
		}
		y.calls = append(y.calls, c)
	}
	return err
}

// callID returns an id for a call without one.
func (y *reply) callID(i int) string { return fmt.Sprintf("call_%s_%d", y.stem, i) }

// itemID returns the id of an item of the reply.
func (y *reply) itemID(kind string) string { return madeID(kind, y.stem) }

// callItemID returns the id of a call item. Its prefix shows the type of tool.
func (y *reply) callItemID(i int, custom bool) string {
	kind := "fc"
	if custom {
		kind = "ctc"
	}
	return y.itemID(kind) + "_" + strconv.Itoa(i)
}

// items returns the items of the reply: reasoning, message and calls. If the reply broke off, the
// last item is incomplete.
func (y *reply) items(status string) ([]item.Item, error) {
	var values []item.Value
	if v := y.reasoning; v != nil {
		v.ID = y.itemID("rs")
		values = append(values, v)
	}
	if len(y.parts) > 0 {
		values = append(values, y.message(item.StatusCompleted))
	}
	for i := range y.calls {
		values = append(values, y.callValue(i, item.StatusCompleted))
	}
	items := []item.Item{}
	for i, v := range values {
		if i == len(values)-1 && status == item.StatusIncomplete {
			incomplete(v)
		}
		it, err := item.New(v)
		if err != nil {
			return nil, err
		}
		items = append(items, it)
	}
	return items, nil
}

func incomplete(v item.Value) {
	switch v := v.(type) {
	case *item.Message:
		v.Status = item.StatusIncomplete
	case *item.FunctionCall:
		v.Status = item.StatusIncomplete
	case *item.CustomToolCall:
		v.Status = item.StatusIncomplete
	case *item.Reasoning:
		v.Status = item.StatusIncomplete
	}
}

func (y *reply) message(status string) *item.Message {
	return &item.Message{ID: y.itemID("msg"), Status: status, Role: item.RoleAssistant, Content: item.Parts(y.parts...)}
}

func (y *reply) callValue(i int, status string) item.Value {
	c := y.calls[i]
	c.itemID, c.status = y.callItemID(i, c.custom), status
	if c.id == "" {
		c.id = y.callID(i)
	}
	return c.value()
}
