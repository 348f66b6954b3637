// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package apispec

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// Schemas is the API document, read as plain JSON.
type Schemas map[string]any

// LoadSchemas reads the API document, or skips the test where it is not there.
func LoadSchemas(t *testing.T) Schemas {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(Shared(t, "spec"), filepath.Base(Document)))
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

// Names returns the names of all schemas.
func (s Schemas) Names() []string { return slices.Sorted(maps.Keys(s)) }

// Node is one schema of the document.
type Node struct {
	all  Schemas
	node map[string]any
}

// At returns the schema at a path such as "WebSearchActionSearch.sources[]".
func (s Schemas) At(path string) Node {
	name, rest, _ := strings.Cut(path, ".")
	node, _ := s[name].(map[string]any)
	n := Node{s, node}
	for _, step := range strings.FieldsFunc(rest, func(r rune) bool { return r == '.' }) {
		member, list := strings.CutSuffix(step, "[]")
		n = n.member(member)
		if list {
			n = n.items()
		}
	}
	return n
}

func (n Node) with(v any) Node {
	m, _ := v.(map[string]any)
	return Node{n.all, m}
}

// whole follows references.
func (n Node) whole() Node {
	for {
		ref, ok := n.node["$ref"].(string)
		if !ok {
			return n
		}
		n = n.with(n.all[strings.TrimPrefix(ref, "#/components/schemas/")])
	}
}

// each lists the Schemas that n is made of or is one of, itself among them.
func (n Node) each() []Node {
	n = n.whole()
	out := []Node{n}
	for _, word := range []string{"allOf", "oneOf", "anyOf"} {
		list, _ := n.node[word].([]any)
		for _, v := range list {
			out = append(out, n.with(v).each()...)
		}
	}
	return out
}

// member returns the schema of a member, of the parts that n is made of.
func (n Node) member(name string) Node {
	for _, p := range n.each() {
		if m, ok := p.Own()[name]; ok {
			return n.with(m)
		}
	}
	return n.with(nil)
}

// items returns the schema of a list's elements.
func (n Node) items() Node {
	for _, p := range n.each() {
		if v, ok := p.node["items"]; ok {
			return n.with(v)
		}
	}
	return n.with(nil)
}

// Own returns the members that n itself declares.
func (n Node) Own() map[string]any {
	m, _ := n.node["properties"].(map[string]any)
	return m
}

// Properties returns the members of all that n is made of.
func (n Node) Properties() map[string]any {
	out := map[string]any{}
	for _, p := range n.each() {
		maps.Copy(out, p.Own())
	}
	return out
}

// Words returns the texts that n allows.
func (n Node) Words() []string {
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

// Types returns the values of the type member.
func (n Node) Types() []string { return n.member("type").Words() }

// Branches returns the objects of a union, with unions inside resolved.
func (s Schemas) Branches(path string) []Node {
	var out []Node
	var walk func(n Node)
	walk = func(n Node) {
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
		if !inner && len(n.Types()) > 0 {
			out = append(out, n)
		}
	}
	walk(s.At(path))
	return out
}

// InUnions returns the names of the schemas that are branches of a union.
func (s Schemas) InUnions() map[string]bool {
	out := map[string]bool{}
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			if ref, ok := v["$ref"].(string); ok {
				name := strings.TrimPrefix(ref, "#/components/schemas/")
				if !out[name] {
					out[name] = true
					n := s.At(name)
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
		walk(s.At(union).node["oneOf"])
		walk(s.At(union).node["anyOf"])
	}
	for _, list := range []string{"Message.content[]", "FunctionCallOutputItemParam.output[]", "NamespaceToolParam.tools[]"} {
		walk(s.At(list).node["oneOf"])
		walk(s.At(list).node["anyOf"])
	}
	return out
}

const fillDepth = 6

// Fill sets every field within v: to the value that given has for its type, or to
// one that is not empty. Types for which given has nil stay as they are.
func Fill(v reflect.Value, given map[reflect.Type]any) { fill(v, given, 0) }

func fill(v reflect.Value, given map[reflect.Type]any, depth int) {
	if depth > fillDepth {
		return
	}
	if g, ok := given[v.Type()]; ok {
		if g != nil {
			v.Set(reflect.ValueOf(g))
		}
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
		fill(v.Elem(), given, depth+1)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0), given, depth+1)
	case reflect.Map:
		v.Set(reflect.ValueOf(map[string]string{"x": "y"}))
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				fill(v.Field(i), given, depth+1)
			}
		}
	}
}
