// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/antiphon-go/antiphon/item"
)

// asText returns the messages that stand for an item which the upstream does not know, or
// nothing if it says nothing to a model.
func (p *past) asText(i int) ([]item.Item, error) {
	it := p.r.Items[i]
	v, err := it.Decode()
	if err != nil {
		return nil, p.refuse(p.place(i), err.Error())
	}
	switch v := v.(type) {
	case *item.MCPCall:
		output := v.Output
		if v.Error != nil {
			output = strings.TrimSpace("The call failed. " + output)
		}
		return called(v.Name, v.Arguments, output), nil
	case *item.MCPListTools, *item.MCPApprovalRequest, *item.MCPApprovalResponse, *item.ImageGenerationCall:
		return nil, nil
	case *item.Compaction:
		return nil, p.refuse(p.place(i), "this upstream cannot read a compaction")
	case *item.CodeInterpreterCall:
		return called("code_interpreter", v.Code, ""), nil
	}
	switch {
	case it.IsOutput():
		name := string(it.Type())
		if call, ok := p.callOf(i); ok {
			name = cmp.Or(call.Name(), string(call.Type()))
		}
		return []item.Item{outputText(name, cmp.Or(member(it, "output"), it.JSON()))}, nil
	case it.IsCall():
		return []item.Item{callText(cmp.Or(it.Name(), string(it.Type())), cmp.Or(member(it, "arguments"), member(it, "input"), action(it), it.JSON()))}, nil
	}
	if what := action(it); what != "" { // a call of a tool that another provider ran
		return []item.Item{callText(string(it.Type()), what)}, nil
	}
	return nil, nil
}

// called returns the messages for a call and its output.
func called(name, arguments, output string) []item.Item {
	list := []item.Item{callText(name, arguments)}
	if output != "" {
		list = append(list, outputText(name, output))
	}
	return list
}

// The words are those of the clients, for calls that an endpoint refuses.
func callText(name, arguments string) item.Item {
	return item.Assistant(fmt.Sprintf("I call the tool %s:\n%s", name, arguments))
}

func outputText(name, output string) item.Item {
	return item.User(fmt.Sprintf("Output of the tool %s:\n%s", name, output))
}

// action returns what a call of a hosted tool was about, as JSON.
func action(it item.Item) string {
	for _, name := range []string{"action", "queries", "operation"} {
		if v, ok := it.Member(name); ok && v != "null" && v != "[]" && v != "{}" {
			return string(v)
		}
	}
	return ""
}

// member returns a member as text: that of a string, and JSON for others. Of an image only
// a marker is left.
func member(it item.Item, name string) string {
	v, ok := it.Member(name)
	if !ok || v == "null" {
		return ""
	}
	text, ok := v.Unquote()
	if !ok {
		text = string(v)
	}
	if strings.Contains(text, ";base64,") {
		return "[an image or a file]"
	}
	return text
}

// callOf returns the call that item i answers.
func (p *past) callOf(i int) (item.Item, bool) {
	id := p.r.Items[i].CallID()
	for k := i - 1; k >= 0; k-- {
		if it := p.r.Items[k]; it.IsCall() && it.CallID() == id {
			return it, true
		}
	}
	return item.Item{}, false
}
