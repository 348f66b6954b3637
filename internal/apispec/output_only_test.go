// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package apispec_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/internal/apispec"
	"github.com/antiphon-go/antiphon/item"
)

// recordedOnly are members that recordings of the API hold and its document does
// not know in items of the type.
var recordedOnly = map[string][]string{
	"custom_tool_call":      {"status"},
	"image_generation_call": {"action", "background", "output_format", "prompt", "quality", "revised_prompt", "size"},
}

// W9: endpoint.OutputOnly is what the document gives to output items alone. When
// the document changes, this prints the table to copy.
func TestOutputOnly(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(apispec.Shared(t, "spec"), filepath.Base(apispec.Document)))
	if err != nil {
		t.Fatal(err)
	}
	var doc document
	if err := json.Unmarshal(text, &doc); err != nil {
		t.Fatal(err)
	}
	in, out := doc.membersByType("InputItem"), doc.membersByType("OutputItem")
	want := map[string][]string{}
	for typ, members := range out {
		for name := range members {
			if in[typ] != nil && !in[typ][name] {
				want[typ] = append(want[typ], name)
			}
		}
	}
	for typ, names := range recordedOnly {
		for _, name := range names {
			if in[typ][name] {
				t.Errorf("%s.%s is in the document now: take it out of recordedOnly", typ, name)
			}
		}
		want[typ] = append(want[typ], names...)
	}
	got := map[string][]string{}
	for typ := range out {
		slices.Sort(want[typ])
		if names := endpoint.OutputOnly(typ); names != nil {
			got[typ] = names
		}
	}
	maps.DeleteFunc(want, func(_ string, names []string) bool { return len(names) == 0 })
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("endpoint/output_only.go is not what the document says (-want +got):\n%s\n%#v", d, want)
	}
}

// document is the part of an OpenAPI document that tells members by type.
type document struct {
	Components struct{ Schemas map[string]schema }
}

type schema struct {
	Ref                 string `json:"$ref"`
	OneOf, AnyOf, AllOf []schema
	Properties          map[string]schema
	Enum                []any
	Const               any
}

func (d *document) resolve(s schema) schema {
	for s.Ref != "" {
		s = d.Components.Schemas[s.Ref[strings.LastIndexByte(s.Ref, '/')+1:]]
	}
	return s
}

func (d *document) properties(s schema) map[string]schema {
	s = d.resolve(s)
	all := map[string]schema{}
	for _, part := range s.AllOf {
		maps.Copy(all, d.properties(part))
	}
	maps.Copy(all, s.Properties)
	return all
}

// membersByType lists the members of each type of a union.
func (d *document) membersByType(name string) map[string]map[string]bool {
	list := map[string]map[string]bool{}
	var walk func(schema)
	walk = func(s schema) {
		s = d.resolve(s)
		for _, one := range append(s.OneOf, s.AnyOf...) {
			walk(one)
		}
		members := d.properties(s)
		typ := d.resolve(members["type"])
		for _, name := range append(typ.Enum, typ.Const) {
			if name, ok := name.(string); ok {
				if list[name] == nil {
					list[name] = map[string]bool{}
				}
				for member := range members {
					list[name][member] = true
				}
			}
		}
	}
	walk(schema{Ref: "#/components/schemas/" + name})
	return list
}

// W9, B6: every item of a recorded response, without what OutputOnly names, is
// valid as input. What is left are items of other providers, and members that an
// endpoint may refuse by name (T12).
func TestRecordedOutputIsInput(t *testing.T) {
	spec, dir := apispec.Load(t), apispec.Shared(t, "corpus")
	files, err := filepath.Glob(filepath.Join(dir, "responses", "openai-*"))
	if len(files) == 0 { // where the samples are, which the mock model made
		files, err = filepath.Glob(filepath.Join(dir, "responses", "antiphon-*"))
	}
	if err != nil || len(files) == 0 {
		t.Fatalf("no recordings: %v", err)
	}
	streams, _ := filepath.Glob(filepath.Join(dir, "streams", "*.sse"))
	n := 0
	for _, file := range append(files, streams...) {
		name := filepath.Base(file)
		if !strings.HasPrefix(name, "openai-") && !strings.HasPrefix(name, "antiphon-") && !strings.Contains(name, "__openai_") && !strings.Contains(name, "__azure_") || strings.Contains(name, "vllm") {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, it := range outputOf(text) {
			n++
			sent := it.Without(endpoint.OutputOnly(string(it.Type()))...)
			faults, err := spec.Faults("InputItem", []byte(sent.JSON()))
			faults = slices.DeleteFunc(faults, func(f string) bool {
				return strings.Contains(f, "metadata") || strings.Contains(f, "/action/sources") // of Codex's backend; of sources that are not pages
			})
			if err != nil || len(faults) > 0 {
				t.Errorf("%s: %s: %q, %v", name, it.Type(), faults, err)
			}
		}
	}
	t.Logf("%d items", n)
}

// outputOf is the output of a response, or of the response that a stream ends
// with.
func outputOf(text []byte) []item.Item {
	for line := range bytes.Lines(text) {
		if data, ok := bytes.CutPrefix(line, []byte("data:")); ok && bytes.Contains(data, []byte(`"response.completed"`)) {
			var ev struct{ Response json.RawMessage }
			if json.Unmarshal(data, &ev) == nil {
				text = ev.Response
			}
		}
	}
	var r struct{ Output []json.RawMessage }
	if json.Unmarshal(text, &r) != nil {
		return nil
	}
	var items []item.Item
	for _, raw := range r.Output {
		if it, err := item.Parse(raw); err == nil {
			items = append(items, it)
		}
	}
	return items
}
