// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"fmt"
	"testing"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/item"
)

// W7: every recorded event is read into its struct and written without loss.
func TestCorpusTypedEvents(t *testing.T) {
	counts := tally{}
	check := func(name, data string) {
		e := event(t, data)
		v, err := e.Decode()
		if err != nil {
			t.Errorf("%s: %v in %.300s", name, err, data)
			return
		}
		_, unknown := v.(*api.UnknownEvent)
		if e.Type.Known() == unknown {
			t.Errorf("%s: %s is known: %v, and it is decoded as %T", name, e.Type, !unknown, v)
		}
		if unknown {
			counts["unknown "+string(e.Type)]++
		} else {
			counts["typed"]++
		}
		out, err := api.NewEvent(v)
		if err != nil {
			t.Errorf("%s: %v in %.300s", name, err, data)
			return
		}
		sameJSON(t, name, out.JSON(), data)
	}
	eachStream(t, func(t *testing.T, name string, events []string) {
		for _, data := range events {
			check(name, data)
		}
	})
	eachFile(t, "spec_examples/events/*.json", func(t *testing.T, name string, data []byte) { check(name, string(data)) })
	counts.log(t)
}

// W7: what the recordings hold is of types that have structs, but for what no
// schema knows; the test's log says how much.
func TestCorpusTypes(t *testing.T) {
	counts := tally{}
	count := func(what string, v any) { counts[fmt.Sprintf("%s %T", what, v)]++ }
	each := func(name string, it item.Item) {
		v := decode(t, it)
		count("item", v)
		switch v := v.(type) {
		case *item.Message:
			for _, p := range v.Content.Parts {
				count("part", p)
				annotations(t, name, p, count)
			}
		case *item.ComputerCall:
			count("action", v.Action)
		}
	}
	eachFile(t, "requests/*.json", func(t *testing.T, name string, data []byte) {
		r, err := api.ParseRequest(data)
		if err != nil {
			t.Fatal(err)
		}
		for _, it := range r.InputItems() {
			each(name, it)
		}
		for _, tool := range r.Tools {
			count("tool", tool)
		}
		if _, err := api.ParseToolChoice(r.ToolChoice); err != nil && r.ToolChoice != "null" {
			t.Errorf("%s: %v", name, err)
		}
	})
	eachFile(t, "responses/*.json", func(t *testing.T, name string, data []byte) {
		r, err := api.ParseResponse(data)
		if err != nil {
			t.Fatal(err)
		}
		for _, it := range r.Output {
			each(name, it)
		}
		tools, err := r.ToolList()
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for _, tool := range tools {
			count("tool", tool)
		}
		if r.TextConfig != "" && r.TextConfig != "null" {
			if _, err := api.ParseTextConfig(r.TextConfig); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
	counts.log(t)
}

// annotations reads what a part holds as JSON and writes it again.
func annotations(t *testing.T, name string, p item.Part, count func(string, any)) {
	out, ok := p.(*item.OutputText)
	if !ok {
		return
	}
	list, err := out.Citations()
	if err != nil {
		t.Errorf("%s: %v", name, err)
	}
	for _, a := range list {
		count("annotation", a)
	}
	if len(list) > 0 {
		sameJSON(t, name, string(must(item.AnnotationList(list...))), string(out.Annotations))
	}
	probs, err := out.TokenLogprobs()
	if err != nil {
		t.Errorf("%s: %v", name, err)
	}
	if len(probs) > 0 {
		sameJSON(t, name, string(must(item.LogprobList(probs...))), string(out.Logprobs))
	}
}
