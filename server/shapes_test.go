// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"strings"
	"testing"

	"github.com/antiphon-go/antiphon/internal/apispec"
	"github.com/antiphon-go/antiphon/server"
)

// samples makes values from the schemas of the API.
type samples struct{ all apispec.Schemas }

func (s samples) whole(node map[string]any) map[string]any {
	for {
		ref, ok := node["$ref"].(string)
		if !ok {
			return node
		}
		node, _ = s.all[strings.TrimPrefix(ref, "#/components/schemas/")].(map[string]any)
	}
}

// branches returns the schemas that a union consists of, or nil.
func branches(node map[string]any) (list []map[string]any) {
	for _, word := range []string{"oneOf", "anyOf"} {
		union, _ := node[word].([]any)
		for _, one := range union {
			branch, _ := one.(map[string]any)
			list = append(list, branch)
		}
	}
	return list
}

// base returns an object with what the schema requires.
func (s samples) base(node map[string]any) map[string]any {
	object := map[string]any{}
	required, _ := node["required"].([]any)
	for _, name := range append([]any{"type"}, required...) {
		word, _ := name.(string)
		if member, ok := properties(node)[word].(map[string]any); ok {
			object[word] = s.valid(member)[0]
		}
	}
	return object
}

func properties(node map[string]any) map[string]any {
	list, _ := node["properties"].(map[string]any)
	return list
}

// valid returns values that fit a schema: with each member, and each word of it, at least once.
func (s samples) valid(node map[string]any) (list []any) {
	node = s.whole(node)
	for _, branch := range branches(node) {
		list = append(list, s.valid(branch)...)
	}
	if words, ok := node["enum"].([]any); ok {
		return words
	}
	switch node["type"] {
	case "string":
		if _, ok := node["pattern"].(string); ok {
			return []any{"tunnel_" + strings.Repeat("a", 32)}
		}
		return []any{"a"}
	case "integer", "number":
		return []any{1}
	case "boolean":
		return []any{true}
	case "null":
		return []any{nil}
	case "array":
		element, _ := node["items"].(map[string]any)
		for _, one := range s.valid(element) {
			list = append(list, []any{one})
		}
		return list
	case "object":
		return s.members(node, s.valid)
	}
	return list
}

// members returns an object with each member in turn, which has the values of one in turn.
func (s samples) members(node map[string]any, one func(map[string]any) []any) []any {
	base := s.base(node)
	list := []any{base}
	for name, member := range properties(node) {
		schema, _ := member.(map[string]any)
		for _, value := range one(schema) {
			object := maps.Clone(base)
			object[name] = value
			list = append(list, object)
		}
	}
	return list
}

// nonsense returns values that may or may not fit a schema, and are nonsense in one place.
func (s samples) nonsense(node map[string]any) []any {
	node = s.whole(node)
	list := []any{5, -1, 1e9, 1.5, "x", "", true, nil, map[string]any{}, map[string]any{"type": "x"}, map[string]any{"nosuch": 1}, []any{}, []any{5}, []any{nil}}
	for _, branch := range branches(node) {
		list = append(list, s.nonsense(branch)...)
	}
	if element, ok := node["items"].(map[string]any); ok {
		for _, one := range s.nonsense(element) {
			list = append(list, []any{one})
		}
	}
	if properties(node) != nil {
		list = append(list, s.members(node, s.nonsense)...)
		more := s.base(node)
		more["nosuch"] = "x"
		list = append(list, more)
	}
	return list
}

// V1: a server takes what the schema of the API has in a request, and of what it does not have, a response repeats
// nothing: it is refused, or left to the backend.
func TestShapes(t *testing.T) {
	spec, s := apispec.Load(t), samples{apispec.LoadSchemas(t)}
	srv := &server.Server{Backend: server.BackendFunc(func(_ context.Context, _ *server.Request, w *server.Writer) error { return w.Text("x") })}
	defer srv.Close()
	const function = `{"type":"function","name":"a","parameters":null}`
	for _, test := range []struct{ schema, body string }{
		{"Tool", `"tools":[%]`},
		{"ToolChoiceParam", `"tools":[` + function + `],"tool_choice":%`},
		{"Reasoning", `"reasoning":%`},
		{"ResponseTextParam", `"text":%`},
		{"ServiceTierResponses", `"service_tier":%`},
	} {
		node := s.whole(map[string]any{"$ref": "#/components/schemas/" + test.schema})
		ask := func(value any) (status int, body, text string) {
			b, err := json.Marshal(value)
			if err != nil {
				t.Fatal(err)
			}
			body = `{"model":"m","input":"hi","store":false,` + strings.Replace(test.body, "%", string(b), 1) + `}`
			status, text = call(srv, http.MethodPost, "responses", body)
			if status == http.StatusOK {
				if faults, err := spec.Faults("Response", []byte(text)); err != nil || len(faults) > 0 {
					t.Errorf("%v: %s is answered with %q", err, body, faults)
				}
			}
			return status, body, text
		}
		n := 0
		for _, value := range s.valid(node) {
			if status, body, text := ask(value); status != http.StatusOK && !strings.Contains(text, "JSON Schema of 'type") {
				t.Errorf("%s is refused: %d %s", body, status, text)
			}
			n++
		}
		taken := 0
		for _, value := range s.nonsense(node) {
			status, body, text := ask(value)
			if status == http.StatusOK {
				taken++
			} else if status != http.StatusBadRequest || !strings.Contains(text, `"param": "`) {
				t.Errorf("%s: %d %s", body, status, text)
			}
			n++
		}
		t.Logf("%s: %d requests, %d with nonsense that the backend gets", test.schema, n, taken)
	}
}
