// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package item

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/antiphon-go/antiphon/internal/apispec"
	"github.com/antiphon-go/antiphon/internal/jsonx"
)

// schemas is the API document, read as plain JSON.
type schemas map[string]any

func loadSchemas(t *testing.T) schemas {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(apispec.Shared(t, "spec"), filepath.Base(apispec.Document)))
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Components struct{ Schemas map[string]any }
	}
	if err := json.Unmarshal(data, &doc); err != nil {
		t.Fatal(err)
	}
	return doc.Components.Schemas
}

func (s schemas) names() []string { return slices.Sorted(maps.Keys(s)) }

// schemaNode is one schema of the document.
type schemaNode struct {
	all  schemas
	node map[string]any
}

// at returns the schema at a path such as "WebSearchActionSearch.sources[]".
func (s schemas) at(path string) schemaNode {
	name, rest, _ := strings.Cut(path, ".")
	node, _ := s[name].(map[string]any)
	n := schemaNode{s, node}
	for _, step := range strings.FieldsFunc(rest, func(r rune) bool { return r == '.' }) {
		member, list := strings.CutSuffix(step, "[]")
		n = n.member(member)
		if list {
			n = n.items()
		}
	}
	return n
}

func (n schemaNode) with(v any) schemaNode {
	m, _ := v.(map[string]any)
	return schemaNode{n.all, m}
}

// whole follows references.
func (n schemaNode) whole() schemaNode {
	for {
		ref, ok := n.node["$ref"].(string)
		if !ok {
			return n
		}
		n = n.with(n.all[strings.TrimPrefix(ref, "#/components/schemas/")])
	}
}

// each lists the schemas that n is made of or is one of, itself among them.
func (n schemaNode) each() []schemaNode {
	n = n.whole()
	out := []schemaNode{n}
	for _, word := range []string{"allOf", "oneOf", "anyOf"} {
		list, _ := n.node[word].([]any)
		for _, v := range list {
			out = append(out, n.with(v).each()...)
		}
	}
	return out
}

// member returns the schema of a member, of the parts that n is made of.
func (n schemaNode) member(name string) schemaNode {
	for _, p := range n.each() {
		if m, ok := p.own()[name]; ok {
			return n.with(m)
		}
	}
	return n.with(nil)
}

// items returns the schema of a list's elements.
func (n schemaNode) items() schemaNode {
	for _, p := range n.each() {
		if v, ok := p.node["items"]; ok {
			return n.with(v)
		}
	}
	return n.with(nil)
}

// own returns the members that n itself declares.
func (n schemaNode) own() map[string]any {
	m, _ := n.node["properties"].(map[string]any)
	return m
}

// properties returns the members of all that n is made of.
func (n schemaNode) properties() map[string]any {
	out := map[string]any{}
	for _, p := range n.each() {
		maps.Copy(out, p.own())
	}
	return out
}

// words returns the texts that n allows.
func (n schemaNode) words() []string {
	var out []string
	for _, p := range n.each() {
		list, _ := p.node["enum"].([]any)
		for _, v := range list {
			if w, ok := v.(string); ok {
				out = append(out, w)
			}
		}
	}
	return out
}

// types returns the values of the type member.
func (n schemaNode) types() []string { return n.member("type").words() }

// branches returns the objects of a union, with unions inside resolved.
func (s schemas) branches(path string) []schemaNode {
	var out []schemaNode
	var walk func(n schemaNode)
	walk = func(n schemaNode) {
		n = n.whole()
		inner := false
		for _, word := range []string{"oneOf", "anyOf"} {
			list, _ := n.node[word].([]any)
			for _, v := range list {
				inner = true
				walk(n.with(v))
			}
		}
		if items, ok := n.node["items"]; ok {
			inner = true
			walk(n.with(items))
		}
		if !inner && len(n.types()) > 0 {
			out = append(out, n)
		}
	}
	walk(s.at(path))
	return out
}

// inUnions returns the names of the schemas that [TestSchemaUnions] looks at.
func (s schemas) inUnions() map[string]bool {
	out := map[string]bool{}
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			if ref, ok := v["$ref"].(string); ok {
				name := strings.TrimPrefix(ref, "#/components/schemas/")
				if !out[name] {
					out[name] = true
					n := s.at(name)
					walk(n.node["oneOf"])
					walk(n.node["anyOf"])
				}
			}
		case []any:
			for _, e := range v {
				walk(e)
			}
		}
	}
	for _, union := range []string{"InputItem", "OutputItem", "ItemField", "ItemResource", "ConversationItem", "InputContent", "OutputContent",
		"Annotation", "Tool", "ToolChoiceParam", "ComputerAction", "ResponseStreamEvent", "ResponsesClientEvent"} {
		walk(s.at(union).node["oneOf"])
		walk(s.at(union).node["anyOf"])
	}
	for _, list := range []string{"Message.content[]", "FunctionCallOutputItemParam.output[]", "NamespaceToolParam.tools[]"} {
		walk(s.at(list).node["oneOf"])
		walk(s.at(list).node["anyOf"])
	}
	return out
}

// namesOf returns the names of the members that a struct has fields for: those
// that it writes when every field is set.
func namesOf(t *testing.T, r record) map[string]bool {
	t.Helper()
	filled := filledLike(r)
	data, err := appendRecord(nil, filled)
	if err != nil {
		t.Fatalf("%T: %v", r, err)
	}
	names := map[string]bool{}
	jsonx.EachMember(string(data), func(name, _ string) { names[jsonx.Unquote(name)] = true })
	return names
}

// filledLike returns a new record of r's type with every field set but Extra.
func filledLike(r record) record {
	v := reflect.New(reflect.TypeOf(r).Elem())
	fill(v.Elem(), 0)
	return v.Interface().(record)
}

var (
	extraType = reflect.TypeFor[Extra]()
	someItem  = Must(&Message{Role: RoleAssistant, ID: "msg_1", Status: StatusCompleted,
		Content: Parts(&OutputText{Text: "x", Annotations: "[]", Logprobs: "[]"})})
	given = map[reflect.Type]any{
		reflect.TypeFor[JSON]():           JSON(`{}`),
		reflect.TypeFor[Item]():           someItem,
		reflect.TypeFor[*List]():          NewList(someItem),
		reflect.TypeFor[Content]():        Text("x"),
		reflect.TypeFor[Part]():           Part(&OutputText{Text: "x", Annotations: "[]", Logprobs: "[]"}),
		reflect.TypeFor[Tool]():           Tool(&CustomTool{Name: "x"}),
		reflect.TypeFor[ComputerAction](): ComputerAction(&WaitAction{}),
		reflect.TypeFor[Annotation]():     Annotation(&FilePath{FileID: "x", Index: 1}),
	}
)

const deepest = 6

func fill(v reflect.Value, depth int) {
	if v.Type() == extraType || depth > deepest {
		return
	}
	if g, ok := given[v.Type()]; ok {
		v.Set(reflect.ValueOf(g))
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString("x")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(1)
	case reflect.Float64:
		v.SetFloat(0.5)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), depth+1)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0), depth+1)
	case reflect.Map:
		v.Set(reflect.ValueOf(map[string]string{"x": "y"}))
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				fill(v.Field(i), depth+1)
			}
		}
	}
}
