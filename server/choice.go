// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"fmt"
	"slices"
	"strings"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/internal/jsonx"
	"github.com/antiphon-go/antiphon/item"
)

// checkShapes checks the members of a request that the response repeats.
func checkShapes(req *api.Request, body item.Item) *Error {
	for _, one := range bodyShapes {
		v, ok := body.Member(one.name)
		if !ok || v == "null" {
			continue
		}
		if wrong := one.wrong(one.name, string(v)); wrong != nil {
			return wrong
		}
	}
	typ, isObject := jsonx.MemberOf(string(req.ToolChoice), "type")
	if !isObject {
		return nil
	}
	word := jsonx.Unquote(typ)
	if choices.variants[word] == nil && !slices.ContainsFunc(req.Tools, func(t item.Tool) bool { return family(t.ToolType()) == family(word) }) {
		return Invalid("invalid_value", "tool_choice.type", "Invalid value for 'tool_choice.type': '%.100s'. The request has no tool of this type.", word)
	}
	return nil
}

// CheckToolChoice returns an error if the tool choice of a request names a tool that the request does not
// have. It is for backends whose models have no other tools.
func CheckToolChoice(r *Request) error {
	if r == nil || r.Request == nil || r.ToolChoice == "" || r.ToolChoice[0] != '{' || givesTools(r) {
		return nil
	}
	if missing(r.Tools, string(r.ToolChoice)) {
		return choiceOf("tool_choice", string(r.ToolChoice))
	}
	var wrong error
	allowed, _ := jsonx.MemberOf(string(r.ToolChoice), "tools")
	if strings.HasPrefix(allowed, "[") {
		n := 0
		jsonx.EachElement(allowed, func(one string) {
			if wrong == nil && missing(r.Tools, one) {
				wrong = choiceOf(fmt.Sprintf("tool_choice.tools[%d]", n), one)
			}
			n++
		})
	}
	return wrong
}

// givesTools reports whether a model may have tools that are not among those of the request.
func givesTools(r *Request) bool {
	prompt, ok := r.Object.Member("prompt")
	return ok && prompt != "null" || slices.ContainsFunc(r.Items, func(it item.Item) bool {
		_, ok := it.Member("tools")
		return ok && it.Type() != item.TypeMCPListTools
	})
}

// missing reports whether the tool that a choice names is not among tools.
func missing(tools []item.Tool, choice string) bool {
	member := func(name string) string {
		v, _ := jsonx.MemberOf(choice, name)
		word, _ := item.JSON(v).Unquote()
		return word
	}
	typ := member("type")
	if typ == api.ChoiceTypeAllowed {
		return false
	}
	return !slices.ContainsFunc(tools, func(t item.Tool) bool {
		switch t := t.(type) {
		case *item.FunctionTool:
			return typ == item.ToolFunction && t.Name == member("name")
		case *item.CustomTool:
			return typ == item.ToolCustom && t.Name == member("name")
		case *item.NamespaceTool:
			return typ == t.ToolType() || !missing(t.Tools, choice)
		case *item.MCPTool:
			return typ == item.ToolMCP && t.ServerLabel == member("server_label")
		}
		return family(t.ToolType()) == family(typ)
	})
}

// family returns the name that the versions of a tool have in common.
func family(typ string) string {
	for _, name := range []string{item.ToolWebSearch, item.ToolComputer} {
		if strings.HasPrefix(typ, name) {
			return name
		}
	}
	return typ
}

func choiceOf(at, choice string) error {
	return Invalid("invalid_value", at, "Invalid '%s': %.200s is not among the tools of the request.", at, choice)
}
