// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package dialecttest_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/dialect"
	"github.com/antiphon-go/antiphon/dialect/dialecttest"
	"github.com/antiphon-go/antiphon/item"
)

// toy is a wire API that nobody speaks: what a third dialect takes. A request is a
// list of turns; a stream says "say", "call", "args" and "end".
type toy struct{}

type toyTurn struct {
	Who, Text, ID, Name string `json:",omitempty"`
}

type toyTool struct {
	Name, Does string
	Takes      json.RawMessage
}

type toyRequest struct {
	Model  string
	Stream bool
	Limit  *int64 `json:",omitempty"`
	Turns  []toyTurn
	Tools  []toyTool `json:",omitempty"`
}

// toyEvent is one event of a stream; an answer in one piece is a list of them.
type toyEvent struct {
	Say        string `json:",omitempty"`
	Call, Args *toyTurn
	N          int
	End        string `json:",omitempty"`
	In, Out    int64
	Oops       *struct{ Code, Message string }
}

func (toy) Info() dialect.Info {
	return dialect.Info{Name: "toy", Title: "the toy API", Op: "talk to a toy", Path: "/talk"}
}

func (toy) Encode(out dialect.Outgoing) (*dialect.Message, error) {
	r := toyRequest{Model: out.Request.Model, Stream: out.Stream, Limit: out.Request.MaxOutputTokens}
	if s := out.Request.Instructions; s != "" {
		r.Turns = append(r.Turns, toyTurn{Who: "system", Text: s})
	}
	m := &dialect.Message{}
	for i, it := range out.Request.Input.All() {
		v, err := it.Decode()
		if err != nil {
			return nil, err
		}
		switch v := v.(type) {
		case *item.Message:
			r.Turns = append(r.Turns, toyTurn{Who: string(v.Role), Text: v.Content.Display()})
		case *item.FunctionCall:
			r.Turns = append(r.Turns, toyTurn{Who: "call", ID: v.CallID, Name: v.Name, Text: v.Arguments})
		case *item.FunctionCallOutput:
			r.Turns = append(r.Turns, toyTurn{Who: "output", ID: v.CallID, Text: v.Output.Display()})
		default:
			m.Losses = append(m.Losses, dialect.Loss{Path: fmt.Sprintf("input[%d]", i), What: "has no counterpart"})
		}
	}
	for _, t := range out.Request.Tools {
		if f, ok := t.(*item.FunctionTool); ok {
			r.Tools = append(r.Tools, toyTool{f.Name, f.Description, json.RawMessage(f.Parameters)})
		}
	}
	text, err := json.Marshal(r)
	m.Body = item.TextBody(string(text))
	return m, err
}

func (toy) NewDecoder() dialect.Decoder { return &toyDecoder{} }

// toyDecoder builds the response as it comes. Its message is item 0 if there is
// one, and each call is the next item.
type toyDecoder struct {
	resp  api.Response
	n     int64
	text  *strings.Builder
	calls []*item.FunctionCall
	first int // output index of the first call
	over  bool
	yield func(api.Event) bool
}

func (d *toyDecoder) tell(v api.EventValue) {
	if ev, err := api.NewEvent(v); err == nil && d.yield != nil && !d.yield(ev) {
		d.yield = nil // the caller has had enough
	}
}

func (d *toyDecoder) head() api.EventHead {
	d.n++
	return api.EventHead{SequenceNumber: d.n - 1}
}

func (d *toyDecoder) at(id string, index int) api.ItemEvent {
	return api.ItemEvent{EventHead: d.head(), ItemID: id, OutputIndex: index}
}

func made(v item.Value) item.Item {
	it, _ := item.New(v)
	return it
}

func (d *toyDecoder) message() *item.Message {
	return &item.Message{ID: "msg", Role: item.RoleAssistant, Status: item.StatusCompleted, Content: item.Parts(&item.OutputText{Text: d.text.String(), Annotations: "[]"})}
}

func (d *toyDecoder) Decode(_, data []byte, yield func(api.Event) bool) error {
	if len(data) == 0 || data[0] != '{' {
		return dialect.ErrNotEvent
	}
	var e toyEvent
	if err := item.JSON(data).Valid(); err != nil {
		return err
	}
	if err := json.Unmarshal(data, &e); err != nil {
		return &item.ShapeError{Problem: err.Error()}
	}
	d.yield = yield
	d.event(e)
	return nil
}

func (d *toyDecoder) event(e toyEvent) {
	if d.n == 0 && e.Oops == nil {
		d.resp = api.Response{ID: "toy", Status: item.StatusInProgress, Output: []item.Item{}}
		d.tell(&api.CreatedEvent{ResponseEvent: api.ResponseEvent{EventHead: d.head(), Response: &d.resp}})
	}
	switch {
	case e.Oops != nil:
		d.over = true
		d.tell(&api.ErrorEvent{EventHead: d.head(), Error: &api.APIError{Code: e.Oops.Code, Message: e.Oops.Message}})
	case e.Say != "":
		if d.text == nil {
			d.text, d.first = new(strings.Builder), 1
			d.tell(&api.ItemAddedEvent{EventHead: d.head(), Item: made(d.message())})
		}
		d.text.WriteString(e.Say)
		d.tell(&api.TextDeltaEvent{PartEvent: api.PartEvent{ItemEvent: d.at("msg", 0)}, Delta: e.Say})
	case e.Call != nil:
		d.calls = append(d.calls, &item.FunctionCall{ID: "fc_" + e.Call.ID, CallID: e.Call.ID, Name: e.Call.Name})
		i := len(d.calls) - 1
		d.tell(&api.ItemAddedEvent{EventHead: d.head(), OutputIndex: d.first + i, Item: made(d.calls[i])})
	case e.Args != nil && e.N < len(d.calls):
		c := d.calls[e.N]
		c.Arguments += e.Args.Text
		d.tell(&api.ArgumentsDeltaEvent{ItemEvent: d.at(c.ID, d.first+e.N), Delta: e.Args.Text})
	case e.End != "":
		d.end(e)
	}
}

func (d *toyDecoder) end(e toyEvent) {
	d.over = true
	if d.text != nil {
		d.done(made(d.message()))
	}
	for _, c := range d.calls {
		d.done(made(c))
	}
	d.resp.Status = item.StatusCompleted
	d.resp.Usage = &api.Usage{InputTokens: e.In, OutputTokens: e.Out, TotalTokens: e.In + e.Out}
	last := api.ResponseEvent{EventHead: d.head(), Response: &d.resp}
	if e.End == "limit" {
		d.resp.Status, d.resp.Incomplete = item.StatusIncomplete, &api.IncompleteDetails{Reason: "max_output_tokens"}
		d.tell(&api.IncompleteEvent{ResponseEvent: last})
		return
	}
	d.tell(&api.CompletedEvent{ResponseEvent: last})
}

func (d *toyDecoder) done(it item.Item) {
	d.tell(&api.ItemDoneEvent{EventHead: d.head(), OutputIndex: len(d.resp.Output), Item: it})
	d.resp.Output = append(d.resp.Output, it)
}

func (d *toyDecoder) State() dialect.State {
	if d.over {
		return dialect.Over
	}
	return dialect.Unfinished
}

func (d *toyDecoder) Finish(bool, func(api.Event) bool) error {
	if !d.over {
		return dialect.ErrTruncated
	}
	return nil
}

func (d *toyDecoder) Response(text []byte) (*api.Response, error) {
	var whole struct{ Events []toyEvent }
	if err := item.JSON(text).Valid(); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(text, &whole); err != nil || len(whole.Events) == 0 {
		return nil, &item.ShapeError{Path: "Events", Problem: "found nothing"}
	}
	for _, e := range whole.Events {
		d.event(e)
	}
	return &d.resp, nil
}

func (d *toyDecoder) Losses() []dialect.Loss { return nil }

// What follows is the server's side.

func toyEvents(r dialecttest.Reply) (list []toyEvent) {
	for _, s := range r.Text {
		list = append(list, toyEvent{Say: s})
	}
	longest := 0
	for _, c := range r.Calls {
		list = append(list, toyEvent{Call: &toyTurn{ID: c.ID, Name: c.Name}})
		longest = max(longest, len(c.Arguments))
	}
	for n := range longest {
		for i, c := range r.Calls {
			if n < len(c.Arguments) {
				list = append(list, toyEvent{N: i, Args: &toyTurn{Text: c.Arguments[n]}})
			}
		}
	}
	switch {
	case r.Error != nil:
		return append(list, toyEvent{Oops: &struct{ Code, Message string }{r.Error.Code, r.Error.Message}})
	case r.Limit:
		return append(list, toyEvent{End: "limit", In: r.Input, Out: r.Output})
	}
	return append(list, toyEvent{End: "done", In: r.Input, Out: r.Output})
}

func readToy(body []byte) (*api.Request, error) {
	var r toyRequest
	if err := json.Unmarshal(body, &r); err != nil {
		return nil, err
	}
	got := &api.Request{Model: r.Model, Stream: &r.Stream, MaxOutputTokens: r.Limit, Input: new(item.List)}
	for _, t := range r.Turns {
		switch t.Who {
		case "call":
			got.Input.Append(item.Call(t.ID, t.Name, t.Text))
		case "output":
			it, err := item.Output(t.ID, item.Text(t.Text))
			if err != nil {
				return nil, err
			}
			got.Input.Append(it)
		case "system":
			got.Instructions = t.Text
		default:
			got.Input.Append(made(&item.Message{Role: item.Role(t.Who), Content: item.Text(t.Text)}))
		}
	}
	for _, t := range r.Tools {
		got.Tools = append(got.Tools, &item.FunctionTool{Name: t.Name, Description: t.Does, Parameters: item.JSON(t.Takes)})
	}
	return got, nil
}

// A third wire API is one package: it passes as it stands.
func TestToy(t *testing.T) {
	dialecttest.Run(t, dialecttest.Wire{
		Dialect: toy{},
		Stream: func(r dialecttest.Reply) (events []string) {
			for _, e := range toyEvents(r) {
				text, err := json.Marshal(e)
				if err != nil {
					t.Fatal(err)
				}
				events = append(events, "data: "+string(text)+"\n\n")
			}
			return events
		},
		Whole: func(r dialecttest.Reply) string {
			text, err := json.Marshal(map[string]any{"Events": toyEvents(r)})
			if err != nil {
				t.Fatal(err)
			}
			return string(text)
		},
		Read:  readToy,
		Lacks: []dialecttest.Feature{dialecttest.Reasoning, dialecttest.Refusals, dialecttest.Images, dialecttest.OutputImages, dialecttest.ToolChoice},
	})
}
