// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package item_test

import (
	"strings"
	"testing"

	"github.com/antiphon-go/antiphon/item"
)

// W11: values that a caller made wrongly give errors, never a panic and never
// text that is no JSON.
func TestWrongValues(t *testing.T) {
	if _, err := item.NewEvent(&item.UnknownEvent{Raw: "{"}); err == nil {
		t.Error("an event that is no JSON was made")
	}
	if s, ok := item.JSON(`"\"`).Unquote(); ok && s == "" {
		t.Error("half a literal became the empty text")
	}
	_ = item.Parts(&item.UnknownPart{Raw: "{"}).Display()
	if _, err := item.New(&item.Message{Role: item.RoleUser, Content: item.Parts(item.Part(nil))}); err == nil {
		t.Error("a message with no part in its parts was made")
	}
	if b, err := (&item.Response{ID: "r", Output: []item.Item{{}, {}}}).AppendJSON(nil); err == nil {
		t.Errorf("a response with no items in its output was written: %s", b)
	}
}

// S4: an error that an event view gave stays what it was when the buffer is
// used again.
func TestErrorOutlivesView(t *testing.T) {
	buf := []byte(`{"type":"response.output_item.done","item":5}`)
	e, err := item.ParseEvent(buf)
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
			var acc item.Accumulator
			var told []string
			for _, s := range c.events {
				e, err := item.ParseEvent([]byte(s))
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
