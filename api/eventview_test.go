// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/antiphon-go/antiphon/api"
)

// witness keeps strings beside copies of them, to tell later whether they
// changed.
type witness struct{ said, copies []string }

func (w *witness) keep(list ...string) {
	for _, s := range list {
		w.said, w.copies = append(w.said, s), append(w.copies, strings.Clone(s))
	}
}

func (w *witness) check(t *testing.T) {
	t.Helper()
	for i, s := range w.said {
		if s != w.copies[i] {
			t.Fatalf("text %d of %d changed: it was %q and is %q", i, len(w.said), w.copies[i], s)
		}
	}
}

// event keeps all that can be had of an event.
func (w *witness) event(e api.Event) {
	w.keep(string(e.Type), e.ItemID, e.Delta, e.JSON(), e.Text("text"), e.Text("arguments"))
	for _, name := range []string{"item", "response", "delta", "part", "logprobs", "obfuscation"} {
		v, _ := e.Member(name)
		w.keep(string(v))
	}
	if it, err := e.Item(); err == nil {
		w.keep(it.JSON(), string(it.Type()), it.ID(), it.CallID(), it.Name())
	}
	if r, err := e.Response(); err == nil {
		w.keep(r.ID, r.Model, r.Status)
		for _, it := range r.Output {
			w.keep(it.JSON(), it.ID())
		}
	}
	if a, ok := e.Err(); ok {
		w.keep(a.Message, a.Code, a.Type, a.Param)
	}
	if v, err := e.Decode(); err == nil {
		w.keep(fmt.Sprintf("%+v", v), string(v.EventType()))
	}
}

// streamOfAll has deltas that fit a pattern and deltas that do not, texts with
// escapes, items, a response and an error.
func streamOfAll() []string {
	var list []string
	for i := range 60 {
		list = append(list,
			deltaEvent(fmt.Sprint(3*i), fmt.Sprintf(`"word %d"`, i), `"x"`),
			strings.ReplaceAll(deltaEvent(fmt.Sprint(3*i+1), fmt.Sprintf(`"a\n%d\u00e9"`, i), `"yyy"`), "msg_1", fmt.Sprintf("msg_%d", i%23)),
			fmt.Sprintf(`{"type":"response.odd_%d.delta","delta":"d%d","item_id":"i\u0041%d"}`, i%19, i, i))
	}
	return append(list,
		`{"type":"response.output_item.done","output_index":0,"item":{"type":"function_call","id":"fc_1","call_id":"c1","name":"n","arguments":"{\"a\":\"\\n\"}"}}`,
		`{"type":"response.function_call_arguments.done","item_id":"fc_1","arguments":"{\"a\":1}"}`,
		`{"type":"error","code":"c\n","message":"m","param":"p"}`,
		`{"type":"response.completed","response":{"id":"resp_1","model":"m","status":"completed","output":[{"type":"function_call","id":"fc_1","call_id":"c1","name":"n","arguments":"{}"}]}}`)
}

// W8, S4: events are ordinary values: what a decoder returned does not change
// when it reads on, and when the memory that it read from is used again.
func TestEventsStay(t *testing.T) {
	var d api.EventDecoder
	var w witness
	buf := make([]byte, 0, 4096)
	for range 2 {
		for _, s := range streamOfAll() {
			buf = append(buf[:0], s...)
			e, err := d.Decode(buf)
			if err != nil {
				t.Fatal(err)
			}
			w.event(e)
			for i := range buf {
				buf[i] = '#'
			}
		}
		d.Reset()
	}
	w.check(t)
}

// The event of a view is what Decode returns, and the view shows the same. Its
// type and item id stay.
func TestEventView(t *testing.T) {
	var d api.EventDecoder
	var w witness
	buf := make([]byte, 0, 4096)
	for _, s := range streamOfAll() {
		want, err := api.ParseEvent([]byte(s))
		if err != nil {
			t.Fatal(err)
		}
		buf = append(buf[:0], s...)
		v, err := d.View(buf)
		if err != nil {
			t.Fatal(err)
		}
		if v.Type() != want.Type || v.ItemID() != want.ItemID || v.OutputIndex() != want.OutputIndex || v.SequenceNumber() != want.SequenceNumber ||
			string(v.Delta()) != want.Delta || string(v.JSON()) != want.JSON() || v.Event() != want {
			t.Errorf("%s: the view is %+v", s, v)
		}
		w.keep(string(v.Type()), v.ItemID())
	}
	w.check(t)
}

// Text deltas cost nothing as views, and one allocation as events.
func TestEventAllocations(t *testing.T) {
	var list [][]byte
	for i := range 100 {
		list = append(list, []byte(deltaEvent(fmt.Sprint(i), fmt.Sprintf(`"word\n%d"`, i), `"x"`)))
	}
	var d api.EventDecoder
	n := 0
	views := testing.AllocsPerRun(20, func() {
		for _, data := range list {
			v, err := d.View(data)
			if err != nil {
				t.Fatal(err)
			}
			n += len(v.Delta())
		}
	})
	events := testing.AllocsPerRun(20, func() {
		for _, data := range list {
			e, err := d.Decode(data)
			if err != nil {
				t.Fatal(err)
			}
			n += len(e.Delta)
		}
	})
	if views > 0 || events > float64(len(list)) {
		t.Errorf("%d deltas took %v allocations as views, want 0, and %v as events, want one each", len(list), views, events)
	}
}
