// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/item"
)

// P4, S5: two calls of one reply that share a call id are two calls.
func TestCallsThatShareACallID(t *testing.T) {
	added := func(i int) string {
		return fmt.Sprintf(`{"type":"response.output_item.added","output_index":%d,"item":{"type":"function_call","id":"fc_%d","call_id":"same","name":"n","arguments":"","status":"in_progress"}}`, i, i)
	}
	done := func(i int) string {
		return fmt.Sprintf(`{"type":"response.output_item.done","output_index":%d,"item":{"type":"function_call","id":"fc_%d","call_id":"same","name":"n","arguments":"{\"n\":%d}","status":"completed"}}`, i, i, i)
	}
	const completed = `{"type":"response.completed","response":{"id":"r","status":"completed","output":[]}}`
	for name, events := range map[string][]string{
		"done":                     {done(1), done(2), completed},
		"added, added, done, done": {added(1), added(2), done(1), done(2), completed},
		"done in another order":    {added(1), added(2), done(2), done(1), completed},
		"one after the other":      {added(1), done(1), added(2), done(2), completed},
		"added too late":           {done(1), done(2), added(1), added(2), completed},
		"done twice":               {added(1), added(2), done(1), done(2), done(1), done(2), completed},
	} {
		r, told := accumulate(t, name, events)
		if len(r.Output) != 2 || len(told) != 2 || r.Output[0].ID() != "fc_1" || r.Output[1].ID() != "fc_2" {
			t.Errorf("%s: told %v, output %v", name, jsonOf(told), jsonOf(r.Output))
		}
	}
}

// server says how a server names the items of a reply, and in which order it
// tells of them.
type server struct {
	ids, indexes, calls string
	added               string
	final               string
	mixed               bool // events of several items take turns
	repeats             bool // some done events come twice
	n                   int
	kinds               []string
}

func drawServer(t *rapid.T) server {
	pick := func(name string, of ...string) string { return rapid.SampledFrom(of).Draw(t, name) }
	s := server{
		ids: pick("ids", "unique", "blank", "renamed", "constant"), indexes: pick("indexes", "unique", "zero", "absent"), calls: pick("calls", "unique", "constant"),
		added: pick("added", "all", "none", "some"), final: pick("final", "absent", "empty", "full", "partial"),
		n: rapid.IntRange(1, 5).Draw(t, "items"),
	}
	for range s.n {
		s.kinds = append(s.kinds, pick("kind", "message", "function_call", "custom_tool_call", "reasoning"))
	}
	if s.ids == "constant" && s.indexes == "zero" {
		s.added = "all" // else nothing tells an item from the one before said again
	}
	// Where nothing but the order tells items apart, the order does.
	s.mixed = (s.indexes == "unique" || s.ids == "unique") && rapid.Bool().Draw(t, "mixed")
	s.repeats = (s.indexes != "absent" || s.ids != "blank") && rapid.Bool().Draw(t, "repeats")
	return s
}

func (s server) id(i int, stage string) string {
	switch s.ids {
	case "unique":
		return fmt.Sprintf(`"id":"i%d",`, i)
	case "renamed":
		return fmt.Sprintf(`"id":"%s%d",`, stage, i)
	case "constant":
		return `"id":"x",`
	}
	return ""
}

func (s server) index(i int) string {
	switch s.indexes {
	case "unique":
		return fmt.Sprintf(`"output_index":%d,`, i)
	case "zero":
		return `"output_index":0,`
	}
	return ""
}

// item is one of the reply; only its end says something, its number.
func (s server) item(i int, stage string) string {
	text, status := fmt.Sprint("number ", i), "completed"
	if stage == "added" {
		text, status = "", "in_progress"
	}
	callID := "same"
	if s.calls == "unique" {
		callID = fmt.Sprintf("call_%d", i)
	}
	head := fmt.Sprintf(`{%s"type":"%s",`, s.id(i, stage), s.kinds[i])
	switch s.kinds[i] {
	case "message":
		content := "[]"
		if text != "" {
			content = fmt.Sprintf(`[{"type":"output_text","text":%q,"annotations":[]}]`, text)
		}
		return head + fmt.Sprintf(`"role":"assistant","status":"%s","content":%s}`, status, content)
	case "reasoning":
		summary := "[]"
		if text != "" {
			summary = fmt.Sprintf(`[{"type":"summary_text","text":%q}]`, text)
		}
		return head + fmt.Sprintf(`"summary":%s}`, summary)
	case "function_call":
		return head + fmt.Sprintf(`"call_id":"%s","name":"n","arguments":%q,"status":"%s"}`, callID, text, status)
	}
	return head + fmt.Sprintf(`"call_id":"%s","name":"n","input":%q,"status":"%s"}`, callID, text, status)
}

// events draws a stream, and says which items it tells of.
func (s server) events(t *rapid.T) (events []string, want []int) {
	var stages [][]string
	done := map[int]bool{}
	for i := range s.n {
		var list []string
		if s.added == "all" || s.added == "some" && rapid.Bool().Draw(t, "begins") {
			list = append(list, fmt.Sprintf(`{"type":"response.output_item.added",%s"item":%s}`, s.index(i), s.item(i, "added")))
		}
		if s.final != "full" || s.kinds[i] == "reasoning" || rapid.IntRange(0, 3).Draw(t, "ends") > 0 {
			end := fmt.Sprintf(`{"type":"response.output_item.done",%s"item":%s}`, s.index(i), s.item(i, "done"))
			list = append(list, end)
			done[i] = true
			if s.mixed && len(list) == 2 && s.ids != "renamed" && rapid.IntRange(0, 4).Draw(t, "late") == 0 {
				slices.Reverse(list)
			}
			if s.repeats && rapid.IntRange(0, 4).Draw(t, "again") == 0 {
				list = append(list, end)
			}
		}
		stages = append(stages, list)
		want = append(want, i)
	}
	for {
		var left []int
		for i, list := range stages {
			if len(list) > 0 {
				left = append(left, i)
			}
		}
		if len(left) == 0 {
			break
		}
		i := left[0]
		if s.mixed {
			i = rapid.SampledFrom(left).Draw(t, "next")
		}
		events, stages[i] = append(events, stages[i][0]), stages[i][1:]
	}
	var output []string
	for i := range s.n {
		if s.final == "full" || s.final == "partial" && done[i] && rapid.Bool().Draw(t, "listed") {
			output = append(output, s.item(i, "done"))
		}
	}
	member := `,"output":[` + strings.Join(output, ",") + `]`
	if s.final == "absent" {
		member = ""
	}
	return append(events, `{"type":"response.completed","response":{"id":"r","status":"completed"`+member+`}}`), want
}

// numbers are the numbers of the items, sorted.
func numbers(items []item.Item) []int {
	list := []int{}
	for _, it := range items {
		at, n := strings.Index(it.JSON(), "number "), -1
		if at >= 0 {
			_, _ = fmt.Sscanf(it.JSON()[at:], "number %d", &n)
		}
		list = append(list, n)
	}
	slices.Sort(list)
	return list
}

// S5, P4: however a server names the items of a reply, each is told once and is
// in the response once.
func TestEachItemOnce(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := drawServer(rt)
		events, want := s.events(rt)
		var a api.Accumulator
		var told []item.Item
		for _, text := range events {
			ev, err := api.ParseEvent([]byte(text))
			if err != nil {
				rt.Fatal(err)
			}
			items, err := a.Add(ev)
			if err != nil {
				rt.Fatal(err)
			}
			told = append(told, items...)
		}
		r, _ := a.Response()
		if diff := cmp.Diff(want, numbers(told)); diff != "" {
			rt.Fatalf("%+v: told (-want +got):\n%s\n%s", s, diff, strings.Join(events, "\n"))
		}
		if diff := cmp.Diff(want, numbers(r.Output)); diff != "" {
			rt.Fatalf("%+v: output (-want +got):\n%s\n%s", s, diff, strings.Join(events, "\n"))
		}
	})
}
