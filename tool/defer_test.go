// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package tool_test

import (
	"context"
	"strings"
	"testing"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/tool"
)

func nothing(context.Context, struct{}) (string, error)          { return "", nil }
func nothingRaw(context.Context, tool.Call) (tool.Result, error) { return tool.Result{}, nil }

// Functions that the model must search for, that programs may call, and that are in
// groups, are declared as such, whichever way they were made. G1
func TestDeclared(t *testing.T) {
	crm := &item.NamespaceTool{Name: "crm", Description: "Customers."}
	again := *crm
	raw, err := tool.Raw(&item.CustomTool{Name: "note"}, nothingRaw, tool.Namespace(&again), tool.Deferred(), tool.Callers(item.AllowDirect))
	if err != nil {
		t.Fatal(err)
	}
	rawFunction, err := tool.Raw(&item.FunctionTool{Name: "find"}, nothingRaw, tool.Callers(item.AllowProgrammatic), tool.Deferred())
	if err != nil {
		t.Fatal(err)
	}
	set, err := tool.NewSet(
		tool.Must("now", "Tells the time.", nothing),
		tool.Must("get", "Gets a customer.", nothing, tool.Namespace(crm), tool.Deferred()),
		tool.Must("sum", "Adds.", nothing, tool.Callers(item.AllowProgrammatic, item.AllowDirect)),
		raw, rawFunction)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // a set gives the same each time
		body, err := (&api.Request{Tools: set.Definitions()}).MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		const none = `"parameters":{"properties":{},"type":"object","additionalProperties":false},"strict":false`
		want := `{"tools":[{"type":"function","name":"now","description":"Tells the time.",` + none + `},` +
			`{"type":"namespace","name":"crm","description":"Customers.","tools":[` +
			`{"type":"function","name":"get","description":"Gets a customer.",` + none + `,"defer_loading":true},` +
			`{"type":"custom","name":"note","defer_loading":true,"allowed_callers":["direct"]}]},` +
			`{"type":"function","name":"sum","description":"Adds.",` + none + `,"allowed_callers":["programmatic","direct"]},` +
			`{"type":"function","name":"find","parameters":{"type":"object","properties":{}},"strict":false,"defer_loading":true,"allowed_callers":["programmatic"]}]}`
		if string(body) != want {
			t.Errorf("\n%s\nwant\n%s", body, want)
		}
	}
	if names := strings.Join(set.Names(), " "); names != "now get sum note find" {
		t.Error(names)
	}
	if len(crm.Tools) != 0 {
		t.Error("the caller's group was changed")
	}
}

func TestDeclaredWrongly(t *testing.T) {
	for want, options := range map[string][]tool.Option{
		"nil group":             {tool.Namespace(nil)},
		"Tools of its own":      {tool.Namespace(&item.NamespaceTool{Name: "n", Tools: []item.Tool{&item.CustomTool{Name: "c"}}})},
		`tool name ""`:          {tool.Namespace(&item.NamespaceTool{})},
		"no Description":        {tool.Namespace(&item.NamespaceTool{Name: "n"})},
		"nobody could call":     {tool.Callers()},
		`no caller "everybody"`: {tool.Callers("everybody")},
	} {
		made, err := tool.New("x", "", nothing, options...)
		if err == nil {
			_, err = tool.NewSet(made)
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	for want, options := range map[string][]tool.Option{
		"functions and custom tools": {tool.Namespace(&item.NamespaceTool{Name: "n"})},
		"Deferred":                   {tool.Deferred()},
		"Callers":                    {tool.Callers(item.AllowDirect)},
	} {
		made, err := tool.Raw(&item.ApplyPatchTool{}, nothingRaw, options...)
		if err == nil {
			_, err = tool.NewSet(made)
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	one := tool.Must("a", "", nothing, tool.Namespace(&item.NamespaceTool{Name: "n", Description: "One."}))
	two := tool.Must("b", "", nothing, tool.Namespace(&item.NamespaceTool{Name: "n", Description: "Two."}))
	if _, err := tool.NewSet(one, two); err == nil || !strings.Contains(err.Error(), "two descriptions") {
		t.Error(err)
	}
}

// A definition does not change with what the caller does to the values that it was made
// of, or to one that it got.
func TestDefinitionStays(t *testing.T) {
	callers := []string{item.AllowDirect}
	def := &item.FunctionTool{Name: "find", AllowedCallers: []string{item.AllowDirect}, Extra: item.Extra{{Name: "x", Value: "1"}}}
	custom := &item.CustomTool{Name: "note", AllowedCallers: []string{item.AllowDirect}}
	group := &item.NamespaceTool{Name: "crm", Description: "Customers.", Extra: item.Extra{{Name: "x", Value: "1"}}}
	var tools []tool.Tool
	for _, d := range []item.Tool{def, custom, &item.ApplyPatchTool{AllowedCallers: callers}} {
		made, err := tool.Raw(d, nothingRaw)
		if err != nil {
			t.Fatal(err)
		}
		tools = append(tools, made)
	}
	tools = append(tools, tool.Must("get", "Gets.", nothing, tool.Callers(callers...), tool.Namespace(group)))
	text := func() string {
		set, err := tool.NewSet(tools...)
		if err != nil {
			t.Fatal(err)
		}
		body, err := (&api.Request{Tools: set.Definitions()}).MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		return string(body)
	}
	before := text()
	callers[0], def.AllowedCallers[0], def.Extra[0].Value, custom.AllowedCallers[0] = "a", "b", "2", "c"
	group.Name, group.Extra[0].Value = "other", "2"
	for _, made := range tools {
		switch d := made.Definition().(type) {
		case *item.FunctionTool:
			d.Name, d.AllowedCallers[0] = "other", "d"
			d.Extra.Set("x", "3")
		case *item.CustomTool:
			d.Name, d.AllowedCallers[0] = "other", "e"
		case *item.ApplyPatchTool:
			d.AllowedCallers[0] = "f"
		}
	}
	if after := text(); after != before {
		t.Errorf("\n%s\nbefore it was\n%s", after, before)
	}
}
