// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/item"
)

// W11: values that a caller made wrongly give errors, never a panic and never
// text that is not JSON.
func TestWrongValues(t *testing.T) {
	if _, err := api.NewEvent(&api.UnknownEvent{Raw: "{"}); err == nil {
		t.Error("an event that is not JSON was made")
	}
	if s, ok := item.JSON(`"\"`).Unquote(); ok && s == "" {
		t.Error("half a literal became the empty text")
	}
	_ = item.Parts(&item.UnknownPart{Raw: "{"}).Display()
	if _, err := item.New(&item.Message{Role: item.RoleUser, Content: item.Parts(item.Part(nil))}); err == nil {
		t.Error("a message with no part in its parts was made")
	}
	if b, err := (&api.Response{ID: "r", Output: []item.Item{{}, {}}}).AppendJSON(nil); err == nil {
		t.Errorf("a response with no items in its output was written: %s", b)
	}
}

// S4: an error that an event view gave stays what it was when the buffer is
// used again.
func TestErrorOutlivesView(t *testing.T) {
	buf := []byte(`{"type":"response.output_item.done","item":5}`)
	e, err := api.ParseEvent(buf)
	if err != nil {
		t.Fatal(err)
	}
	_, err = e.Item()
	want := err.Error()
	for i := range buf {
		buf[i] = '#'
	}
	if got := err.Error(); got != want {
		t.Errorf("the error became %q, it was %q", got, want)
	}
}

// heard feeds the events to an Accumulator.
func heard(t *testing.T, events ...string) *api.Accumulator {
	t.Helper()
	a := new(api.Accumulator)
	for _, s := range events {
		_, _ = a.Add(event(t, s))
	}
	return a
}

const lastEvent = `{"type":"response.completed","response":{"id":"r","status":"completed"}}`

// S5 S6: a part that only its done event told of is in the item, also where no
// event told of the item.
func TestAccumulatorPartAlone(t *testing.T) {
	for part, want := range map[string]string{
		`{"type":"output_text","annotations":[],"text":"a"}`: `{"type":"message","status":"completed","content":[{"type":"output_text","annotations":[],"text":"a"}],"role":"assistant"}`,
		`{"type":"refusal","refusal":"no"}`:                  `{"type":"message","status":"completed","content":[{"type":"refusal","refusal":"no"}],"role":"assistant"}`,
		`{"type":"reasoning_text","text":"b"}`:               `{"type":"reasoning","summary":[],"content":[{"type":"reasoning_text","text":"b"}]}`,
	} {
		a := heard(t, `{"type":"response.content_part.done","content_index":0,"part":`+part+`}`, lastEvent)
		r, _ := a.Response()
		sameJSON(t, part, jsonOf(r.Output), "["+want+"]")
	}
	a := heard(t, `{"type":"response.reasoning_summary_part.done","summary_index":0,"part":{"type":"summary_text","text":"c"}}`, lastEvent)
	r, _ := a.Response()
	sameJSON(t, "summary", jsonOf(r.Output), `[{"type":"reasoning","summary":[{"type":"summary_text","text":"c"}]}]`)
}

// S5: deltas of two kinds that name no item belong to two.
func TestAccumulatorKindsApart(t *testing.T) {
	delta := func(kind, place, text string) string {
		return `{"type":"response.` + kind + `.delta",` + place + `"delta":"` + text + `"}`
	}
	for _, place := range []string{"", `"output_index":0,`} {
		a := heard(t, delta("reasoning_text", place, "think "), delta("output_text", place, "say "),
			delta("reasoning_text", place, "more"), delta("output_text", place, "it"), lastEvent)
		r, _ := a.Response()
		sameJSON(t, place, jsonOf(r.Output), `[
			{"type":"reasoning","summary":[],"content":[{"type":"reasoning_text","text":"think more"}]},
			{"type":"message","status":"completed","content":[{"type":"output_text","annotations":[],"text":"say it"}],"role":"assistant"}]`)
	}
}

// S2 S5: what was said is not lost when the last event cannot be read.
func TestAccumulatorLastEventUnreadable(t *testing.T) {
	for name, last := range map[string]string{
		"no response":    `{"type":"response.completed","response":5}`,
		"bad output":     `{"type":"response.completed","response":{"id":"r","output":[5]}}`,
		"bad incomplete": `{"type":"response.incomplete"}`,
	} {
		a := heard(t,
			`{"type":"response.output_item.done","output_index":0,"item":`+call("fc_1", "c1")+`}`,
			`{"type":"response.output_item.added","output_index":1,"item":{"type":"message","id":"m1","role":"assistant","content":[]}}`,
			`{"type":"response.output_text.delta","output_index":1,"item_id":"m1","delta":"half"}`,
			`{"type":"response.output_item.added","output_index":2,"item":{"type":"message","id":"m2","role":"assistant","content":[{"type":"output_text","annotations":[],"text":"at once"}]}}`,
			`{"type":"response.output_item.added","output_index":3,"item":{"type":"message","id":"m3","role":"assistant","content":[]}}`,
			`{"type":"response.output_item.added","output_index":4,"item":`+call("fc_2", "c2")+`}`,
			last)
		r, ended := a.Response()
		if !ended || len(r.Output) != 1 || r.Output[0].CallID() != "c1" {
			t.Errorf("%s: output %v, ended %v; want the call that was done", name, r.Output, ended)
		}
		sameJSON(t, name, jsonOf(a.Partial()), `[
			{"id":"m1","type":"message","status":"incomplete","content":[{"type":"output_text","annotations":[],"text":"half"}],"role":"assistant"},
			{"id":"m2","type":"message","status":"incomplete","content":[{"type":"output_text","annotations":[],"text":"at once"}],"role":"assistant"}]`)
	}
}

// W8 W10: a type of null stays what it is, an edit of the item included.
func TestMessageTypeNull(t *testing.T) {
	const s = `{"type":null,"role":"user","content":"a"}`
	it := parse(t, s)
	if it.Type() != item.TypeMessage || it.JSON() != s {
		t.Fatalf("read as %q item %s", it.Type(), it.JSON())
	}
	sameJSON(t, "encoded again", encode(t, decode(t, it)).JSON(), s)
	if again := parse(t, encode(t, decode(t, it)).JSON()); again.Type() != item.TypeMessage {
		t.Errorf("encoded as %q item", again.Type())
	}
}

// W11: filters that nest without end are read in a time that grows with their
// size, whatever stands behind the nested ones.
func TestNestedFilters(t *testing.T) {
	const deep = item.MaxDepth/2 - 1
	for _, tail := range []string{"]}", ",5]}", `],"key":"k"}`, `],"filters":5}`} {
		s := strings.Repeat(`{"type":"and","filters":[`, deep) + `{"type":"eq"}` + strings.Repeat(tail, deep)
		f, err := item.ParseFilter(item.JSON(s))
		if err != nil {
			t.Fatalf("%s: %v", tail, err)
		}
		again, err := f.JSON()
		if err != nil || tail != `],"filters":5}` && len(again) != len(s) {
			t.Errorf("%s: %v, %d bytes of %d", tail, err, len(again), len(s))
		}
	}
	for s, want := range map[item.JSON]string{
		`5`:                      "found the number 5, want an object",
		`{"filters":[{"type":}]`: "invalid JSON",
	} {
		if _, err := item.ParseFilter(s); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", s, err)
		}
	}
}

// W11: a text above the size limit is a typed error with its place, wherever it
// is read.
func TestMaxSize(t *testing.T) {
	defer item.SetMaxSize(item.SetMaxSize(100))
	text := func(n int) string { return `{"type":"x","id":"` + strings.Repeat("i", n-20) + `"}` }
	for name, read := range map[string]func(s string) error{
		"item":     func(s string) error { _, err := item.ParseString(s); return err },
		"list":     func(s string) error { _, err := item.ParseList("[" + s[:len(s)-4] + `"}]`); return err },
		"event":    func(s string) error { _, err := api.ParseEvent([]byte(s)); return err },
		"decoder":  func(s string) error { _, err := new(api.EventDecoder).Decode([]byte(s)); return err },
		"response": func(s string) error { _, err := api.ParseResponseString(s); return err },
		"request":  func(s string) error { _, err := api.ParseRequest([]byte(s)); return err },
		"JSON":     func(s string) error { return item.JSON(s).Valid() },
	} {
		if err := read(text(100)); err != nil {
			t.Errorf("%s of 100 bytes: %v", name, err)
		}
		var syntax *item.SyntaxError
		if err := read(text(101)); !errors.As(err, &syntax) || syntax.Offset != 100 {
			t.Errorf("%s of 101 bytes: %v", name, err)
		}
	}
	item.SetMaxSize(len(deltaEvent("1", `"a"`, `"x"`)))
	sameEvents(t, []string{deltaEvent("1", `"a"`, `"x"`), deltaEvent("2", `"b"`, `"y"`), deltaEvent("3", `"too long"`, `"z"`)})
	item.SetMaxSize(100)
	if old := item.SetMaxSize(0); old != 100 {
		t.Errorf("the limit was %d", old)
	}
	if old := item.SetMaxSize(0); old != item.DefaultMaxSize {
		t.Errorf("the default is %d", old)
	}
}

func call(id, callID string) string {
	return `{"type":"function_call","id":"` + id + `","call_id":"` + callID + `","name":"f","arguments":"{}"}`
}

// S5 P5: a call is told once, however ids and places change under way, and one
// that was cut off is never told as whole.
func TestAccumulatorTellsCallsOnce(t *testing.T) {
	message := func(id string) string {
		return `{"type":"message","id":"` + id + `","role":"assistant","content":[]}`
	}
	added := func(i, it string) string {
		return `{"type":"response.output_item.added",` + i + `"item":` + it + `}`
	}
	done := func(i, it string) string { return `{"type":"response.output_item.done",` + i + `"item":` + it + `}` }
	last := func(kind string, items ...string) string {
		return `{"type":"response.` + kind + `","response":{"id":"r","status":"` + kind + `","output":[` + strings.Join(items, ",") + `]}}`
	}
	at := func(i string) string { return `"output_index":` + i + `,` }
	noID := func(callID string) string {
		return `{"type":"function_call","call_id":"` + callID + `","name":"f","arguments":"{}"}`
	}
	for name, c := range map[string]struct {
		events []string
		calls  string // the call ids told, in order
		items  int
	}{
		"id changes, place has a gap":     {[]string{added(at("1"), call("a", "c1")), done(at("1"), call("b", "c1")), last("completed", call("b", "c1"))}, "c1", 1},
		"another id at the end":           {[]string{done(at("1"), call("a", "c1")), last("completed", call("b", "c1"))}, "c1", 1},
		"no ids, places from 1":           {[]string{done(at("1"), noID("c1")), done(at("2"), noID("c2")), last("completed", noID("c1"), noID("c2"))}, "c1 c2", 2},
		"no ids, one place":               {[]string{done(at("0"), noID("c1")), done(at("0"), noID("c2")), last("completed", noID("c1"), noID("c2"))}, "c1 c2", 2},
		"no places":                       {[]string{done("", call("a", "c1")), last("completed", call("b", "c1"))}, "c1", 1},
		"one place for all":               {[]string{done(at("0"), message("m")), done(at("0"), call("a", "c1")), last("completed", message("m2"), call("b", "c1"))}, "c1", 2},
		"no places, id changes":           {[]string{added("", call("a", "c1")), done("", call("b", "c1")), last("completed")}, "c1", 1},
		"a message, then itself again":    {[]string{added(at("0"), message("m")), done(at("0"), message("m2")), done(at("0"), message("m2")), last("completed")}, "", 1},
		"a call and a message, one place": {[]string{done(at("0"), noID("c1")), done(at("0"), message("m")), last("completed")}, "c1", 2},
		"added twice, done in order":      {[]string{added("", noID("c1")), added("", noID("c2")), done("", noID("c1")), done("", noID("c2")), last("completed")}, "c1 c2", 2},
		"cut, incomplete":                 {[]string{done(at("0"), message("m")), added(at("1"), call("a", "c1")), last("incomplete", message("m"))}, "", 1},
		"cut, failed":                     {[]string{done(at("0"), message("m")), added(at("1"), call("a", "c1")), last("failed", message("m"))}, "", 1},
		"not in the final response":       {[]string{added(at("0"), call("a", "c1")), last("completed", message("m"))}, "", 1},
	} {
		t.Run(name, func(t *testing.T) {
			var acc api.Accumulator
			var told []string
			for _, s := range c.events {
				e, err := api.ParseEvent([]byte(s))
				if err != nil {
					t.Fatal(err)
				}
				items, err := acc.Add(e)
				if err != nil {
					t.Fatal(err)
				}
				for _, it := range items {
					if it.IsCall() {
						told = append(told, it.CallID())
					}
				}
			}
			if got := strings.Join(told, " "); got != c.calls {
				t.Errorf("calls told: %q, want %q", got, c.calls)
			}
			if r, _ := acc.Response(); len(r.Output) != c.items {
				t.Errorf("output: %v, want %d items", r.Output, c.items)
			}
		})
	}
}
