// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/item"
)

// payloads returns the data of a recording's events, a list for each response:
// some recordings hold several.
func payloads(t testing.TB, body []byte) [][]string {
	t.Helper()
	var streams [][]string
	var out []string
	body = bytes.ReplaceAll(body, []byte("\r\n"), []byte("\n"))
	for block := range bytes.SplitSeq(body, []byte("\n\n")) {
		var data []string
		for line := range strings.Lines(string(block)) {
			if d, ok := strings.CutPrefix(line, "data:"); ok {
				data = append(data, strings.Trim(d, " \n"))
			}
		}
		d := strings.Join(data, "\n")
		if d == "" || d == "[DONE]" {
			continue
		}
		out = append(out, d)
		if e := event(t, d); e.Terminal() && e.Type != api.EventError { // response.failed may follow an error
			streams, out = append(streams, out), nil
		}
	}
	if len(out) > 0 {
		t.Errorf("a stream without its last event: %.200s", out[0])
	}
	return streams
}

// eachStream calls f with every recorded stream.
func eachStream(t *testing.T, f func(t *testing.T, name string, events []string)) {
	t.Helper()
	for _, folder := range []string{"streams/*.sse", "streams_rewrapped/*.sse"} {
		eachFile(t, folder, func(t *testing.T, name string, data []byte) {
			for _, events := range payloads(t, data) {
				f(t, name, events)
			}
		})
	}
}

// accumulate feeds the events and returns the response, and the items in the
// order in which they were announced as whole.
func accumulate(t testing.TB, name string, events []string) (*api.Response, []item.Item) {
	t.Helper()
	var a, ofViews api.Accumulator
	var d api.EventDecoder
	var whole, viewed []item.Item
	buf := []byte{}
	for _, data := range events {
		buf = append(buf[:0], data...) // as a reader does: the event's memory is used again
		e, err := api.ParseEvent(buf)
		if err != nil {
			t.Fatalf("%s: %v in %.200s", name, err, data)
		}
		items, err := a.Add(e)
		if err != nil {
			t.Fatalf("%s: %v in %.200s", name, err, data)
		}
		whole = append(whole, items...)
		v, err := d.View(buf)
		if err != nil {
			t.Fatalf("%s: %v in %.200s", name, err, data)
		}
		if items, err = ofViews.AddView(v); err != nil {
			t.Fatalf("%s: %v in %.200s", name, err, data)
		}
		viewed = append(viewed, items...)
		for i := range buf {
			buf[i] = '#'
		}
	}
	d.Reset()
	r, ended := a.Response()
	if r2, ended2 := ofViews.Response(); ended2 != ended || r2.ID != r.ID || r2.Status != r.Status || !slices.Equal(r2.Output, r.Output) || !slices.Equal(viewed, whole) {
		t.Errorf("%s: views add up to another response:\n%+v\n%+v", name, r2, r)
	}
	if !ended {
		t.Errorf("%s: no last event was seen", name)
	}
	return r, whole
}

type object = map[string]any

// fed is an event on its way to the accumulator. A change makes a copy.
type fed struct {
	typ     string
	members object
	data    string // "" once changed
}

func feed(t testing.TB, events []string) []fed {
	t.Helper()
	var out []fed
	for _, data := range events {
		d := json.NewDecoder(strings.NewReader(data))
		d.UseNumber()
		e := fed{data: data}
		if err := d.Decode(&e.members); err != nil {
			t.Fatal(err)
		}
		e.typ, _ = e.members["type"].(string)
		out = append(out, e)
	}
	return out
}

func (e fed) with(name string, value any) fed {
	e.members, e.data = maps.Clone(e.members), ""
	e.members[name] = value
	e.typ, _ = e.members["type"].(string)
	return e
}

func (e fed) without(name string) fed {
	if _, ok := e.members[name]; ok {
		e.members, e.data = maps.Clone(e.members), ""
		delete(e.members, name)
	}
	return e
}

// texts returns the events' data.
func texts(t testing.TB, events []fed) []string {
	t.Helper()
	var out []string
	for _, e := range events {
		if e.data == "" {
			b, err := json.Marshal(e.members)
			if err != nil {
				t.Fatal(err)
			}
			e.data = string(b)
		}
		out = append(out, e.data)
	}
	return out
}

// edit makes less, or other, of a stream's events.
type edit func(events []fed) []fed

// variant is a way in which servers send less than all of a stream's events.
type variant struct {
	name string
	edit edit
	// thin says that the deltas alone are left, which do not carry annotations,
	// log probabilities and encrypted reasoning.
	thin bool
	// whole says that it needs a last event with the whole output.
	whole bool
}

// dropping drops the events of which drop is true.
func dropping(drop func(typ string) bool) edit {
	return func(events []fed) []fed {
		return slices.DeleteFunc(events, func(e fed) bool { return drop(e.typ) })
	}
}

// changing replaces every event.
func changing(change func(e fed) fed) edit {
	return func(events []fed) []fed {
		for i := range events {
			events[i] = change(events[i])
		}
		return events
	}
}

func noMember(name string) edit { return changing(func(e fed) fed { return e.without(name) }) }

var noOutput = changing(func(e fed) fed {
	if r, ok := e.members["response"].(object); ok && isTerminal(e.typ) {
		return e.with("response", fed{members: r}.with("output", []any{}).members)
	}
	return e
})

var outputGone = changing(func(e fed) fed {
	if r, ok := e.members["response"].(object); ok && isTerminal(e.typ) {
		return e.with("response", fed{members: r}.without("output").members)
	}
	return e
})

func chain(edits ...edit) edit {
	return func(events []fed) []fed {
		for _, edit := range edits {
			events = edit(events)
		}
		return events
	}
}

// isTerminal reports whether the type is that of a response's last event.
func isTerminal(typ string) bool { return api.Event{Type: api.EventType(typ)}.Terminal() }

// doneFirst moves every done item before its added event.
func doneFirst(events []fed) []fed {
	slices.SortStableFunc(events, func(x, y fed) int { return rank(x.typ) - rank(y.typ) })
	return events
}

func rank(typ string) int {
	switch {
	case isTerminal(typ):
		return 2
	case typ == string(api.EventItemDone):
		return 0
	}
	return 1
}

// addedWhole turns done items into added ones, for servers that send no other.
var addedWhole = chain(dropping(onlyDone), changing(func(e fed) fed {
	if e.typ == string(api.EventItemDone) {
		return e.with("type", string(api.EventItemAdded))
	}
	return e
}))

func unknownBetween(events []fed) []fed {
	noise := fed{data: `{"type":"response.invented","item_id":"x","output_index":7,"delta":"noise"}`}
	var out []fed
	for _, e := range events {
		out = append(out, noise, e)
	}
	return out
}

func onlyDone(typ string) bool { return !isTerminal(typ) && typ != string(api.EventItemDone) }

func noDone(typ string) bool { return !isTerminal(typ) && strings.HasSuffix(typ, ".done") }

func noDelta(typ string) bool {
	return strings.HasSuffix(typ, ".delta") || typ == string(api.EventItemDone)
}

var variants = []variant{
	{"done items, output in the last event", dropping(onlyDone), false, false},
	{"done items alone", chain(dropping(onlyDone), noOutput), false, false},
	{"no output in the last event", outputGone, false, false},
	{"empty output in the last event", noOutput, false, false},
	{"the last event alone", dropping(func(typ string) bool { return !isTerminal(typ) }), false, true},
	{"no item ids", noMember("item_id"), false, false},
	{"no item ids, no output", chain(noMember("item_id"), noOutput), false, false},
	{"no indexes", noMember("output_index"), false, false},
	{"no indexes, no output", chain(noMember("output_index"), noOutput), false, false},
	{"neither ids nor indexes", chain(noMember("item_id"), noMember("output_index"), noOutput), false, false},
	{"done before added", doneFirst, false, false},
	{"done before added, no output", chain(doneFirst, noOutput), false, false},
	{"unknown events between", unknownBetween, false, false},
	{"no added items", dropping(func(typ string) bool { return typ == string(api.EventItemAdded) }), false, false},
	{"added items alone", chain(addedWhole, noOutput), false, false},
	{"added and deltas, no output", chain(dropping(noDone), outputGone), true, false},
	{"added and deltas, no item ids", chain(dropping(noDone), outputGone, noMember("item_id")), true, false},
	{"added and deltas, no indexes", chain(dropping(noDone), outputGone, noMember("output_index")), true, false},
	{"added and done texts, no output", chain(dropping(noDelta), outputGone), true, false},
	{"nothing but deltas of items without done, output whole", dropping(noDone), false, true},
}

// meaning is what must be equal of two items. OpenAI encrypts reasoning anew
// for the last event, and Copilot makes new ids for every event: there only
// the presence counts. Thin leaves out what deltas do not carry.
func meaning(v any, name string, thin bool) any {
	switch v := v.(type) {
	case object:
		for k := range v {
			switch {
			case thin && (k == "annotations" || k == "logprobs" || k == "encrypted_content"):
				delete(v, k)
			case k == "encrypted_content" && v[k] != nil, k == "id" && strings.Contains(name, "copilot"):
				v[k] = "…"
			default:
				v[k] = meaning(v[k], name, thin)
			}
		}
	case []any:
		for i := range v {
			v[i] = meaning(v[i], name, thin)
		}
	}
	return v
}

func sameItems(t *testing.T, name, what string, got, want []item.Item, thin bool) {
	t.Helper()
	x, y := plain(t, jsonOf(want)), plain(t, jsonOf(got))
	x, y = meaning(x, name, thin), meaning(y, name, thin)
	if !reflect.DeepEqual(x, y) {
		t.Errorf("%s: %s (-want +got):\n%s", name, what, cmp.Diff(x, y))
	}
}

// buildable reports whether the items are of the types that deltas can build.
func buildable(items []item.Item) bool {
	return !slices.ContainsFunc(items, func(it item.Item) bool {
		return it.Type() != item.TypeMessage && it.Type() != item.TypeFunctionCall && it.Type() != item.TypeReasoning
	})
}

// S4 S5 S9: a recorded stream gives the items of its last event, or of its
// done items where that has none, and so does every variant of it.
func TestCorpusStreams(t *testing.T) {
	types, counts := tally{}, tally{}
	eachStream(t, func(t *testing.T, name string, events []string) {
		counts["streams"]++
		for _, e := range events {
			types[string(event(t, e).Type)]++
		}
		want, wholeEnd := finalItems(t, events)
		got, announced := accumulate(t, name, events)
		sameItems(t, name, "all events", got.Output, want, false)
		completed := event(t, events[len(events)-1]).Type == api.EventCompleted
		if completed && len(announced) != len(want) {
			t.Errorf("%s: %d items announced, want %d", name, len(announced), len(want))
		}
		for _, it := range want {
			checkItem(t, name, it)
		}
		if !buildable(want) || !completed {
			return
		}
		source := feed(t, events)
		for _, v := range variants {
			if v.whole && !wholeEnd || v.senseless(name) {
				continue
			}
			counts[v.name]++
			got, _ := accumulate(t, name, texts(t, v.edit(slices.Clone(source))))
			sameItems(t, name, v.name, got.Output, want, v.thin)
		}
	})
	types.log(t)
	counts.log(t)
}

// senseless reports whether the variant makes no sense of the recording.
func (v variant) senseless(name string) bool {
	switch {
	case strings.Contains(name, "copilot"):
		// Its ids change with every event, so without the order or the
		// index nothing says what belongs together.
		return strings.Contains(v.name, "index") || strings.Contains(v.name, "before added")
	case strings.Contains(name, "openai-phase.1"), // the recorder cut its deltas short
		strings.Contains(name, "lmstudio-tool-call.1"): // has done arguments and no deltas
		return v.thin && !strings.Contains(v.name, "done texts")
	case strings.Contains(name, "against_openrouter_completes"): // a member of its own in the done item
		return v.thin
	case strings.Contains(name, "programmatic-tool-calling.2"): // a done call that is in_progress
		return v.thin || strings.Contains(v.name, "added items alone")
	}
	return false
}

// finalItems reads a stream without the accumulator: the last event's output,
// else, with whole false, the done items.
func finalItems(t *testing.T, events []string) (items []item.Item, whole bool) {
	t.Helper()
	var done []item.Item
	for _, data := range events {
		e := event(t, data)
		if e.Type == api.EventItemDone {
			it, err := e.Item()
			if err != nil {
				t.Fatal(err)
			}
			done = append(done, it)
		}
		if e.Terminal() {
			if r, err := e.Response(); err == nil && len(r.Output) > 0 {
				return r.Output, true
			}
		}
	}
	return done, false
}

// S3 S9: what the last event says of usage and errors is in the response.
func TestCorpusStreamEnds(t *testing.T) {
	counts := tally{}
	eachStream(t, func(t *testing.T, name string, events []string) {
		last := event(t, events[len(events)-1])
		counts[string(last.Type)]++
		r, _ := accumulate(t, name, events)
		raw, _ := last.Member("response")
		if u, ok := memberOf(t, string(raw), "usage"); ok && u != "null" {
			got, err := r.Usage.MarshalJSON()
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			sameJSON(t, name, string(got), string(u))
		}
		apiErr, failed := last.Err()
		if failed != (last.Type == api.EventFailed) {
			t.Errorf("%s: %s: error %v", name, last.Type, apiErr)
		}
		if (last.Type == api.EventIncomplete) != (r.Incomplete != nil) {
			t.Errorf("%s: %s with incomplete_details %+v", name, last.Type, r.Incomplete)
		}
	})
	counts.log(t)
}

// W7: the published examples of events are read.
func TestCorpusEvents(t *testing.T) {
	eachFile(t, "spec_examples/events/*.json", func(t *testing.T, name string, data []byte) {
		e := event(t, string(data))
		if e.Type == "" {
			t.Errorf("%s: no type", name)
		}
		sameJSON(t, name, e.JSON(), string(data))
	})
}
