// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package chatmd

import (
	"cmp"
	"strings"

	"github.com/antiphon-go/antiphon/item"
)

// A builder makes the item of an element when sources can be fetched. It returns
// false if it could not, after recording the error.
type builder func(r *resolution) (item.Item, bool)

// msg reads the long form of a message.
func (c *compiler) msg(n *node) builder {
	role := strings.ToLower(n.value("role"))
	switch role {
	case "assistant", "tool":
		if n.flag("tool_call") {
			return c.call(n)
		}
		if role == "tool" {
			return c.response(n)
		}
		if n.flag("function_call") {
			c.warn(n, n.start, n.excerpt(), "the older form function_call has no id for a response to name: it is read as text", `write <tool_call tool_call_id="…" function_name="…">`)
		}
		return c.message(n, role)
	case "user", "system", "developer":
		return c.message(n, role)
	}
	c.required(n, "role")
	c.oneOf(n, "role", "user assistant system developer tool")
	return nil
}

// message reads an element that is a message. A message without content adds no
// item.
func (c *compiler) message(n *node, role string) builder {
	parts := body(n)
	content := c.oneOf(n, "content", "text parts")
	if len(parts) == 0 {
		return nil
	}
	head := item.Message{
		ID: n.value("id"), Role: item.Role(role), Status: n.value("status"), Phase: n.value("phase"),
		Extra: nulls(n),
	}
	if role == "assistant" {
		return c.assistant(n, head, parts, content)
	}
	if content == "text" {
		return c.textMessage(n, head, parts)
	}
	return func(r *resolution) (item.Item, bool) {
		m := head
		list, ok := r.parts(parts, item.DetailAuto)
		m.Content = item.Parts(list...)
		return r.item(n, &m, ok)
	}
}

// replyStatus is the status of an output message, which is mandatory. Older files
// omit the status completed.
func replyStatus(n *node, x item.Extra) string {
	a, ok := n.attr("status")
	_, isNull := x.Get("status")
	switch {
	case ok && a.Value != absent:
		return a.Value
	case ok || isNull:
		return ""
	}
	return item.StatusCompleted
}

// textMessage builds a message whose content is a plain string.
func (c *compiler) textMessage(n *node, head item.Message, parts []part) builder {
	if !c.onlyText(n, parts) {
		return nil
	}
	return func(r *resolution) (item.Item, bool) {
		m := head
		s, ok := r.text(parts)
		m.Content = item.Text(s)
		return r.item(n, &m, ok)
	}
}

// onlyText reports images and files where they are not allowed.
func (c *compiler) onlyText(n *node, parts []part) bool {
	if m := media(parts); m != nil {
		c.fail(m, "<"+m.tag+"> cannot stand in this <"+n.tag+">", "it holds text only; "+rawHint)
		return false
	}
	return true
}

func (c *compiler) assistant(n *node, head item.Message, parts []part, content string) builder {
	output := n.has("annotations") || n.has("logprobs") || n.flag("refusal")
	if content == "text" || content == "" && head.ID == "" && !output {
		if output {
			c.fail(n, `annotations, logprobs and refusal go with content="parts"`, "")
		}
		return c.textMessage(n, head, parts)
	}
	if head.ID != "" {
		head.Status = replyStatus(n, head.Extra)
	}
	annotations, logprobs := c.json(n, "annotations"), c.json(n, "logprobs")
	if !n.has("annotations") {
		annotations = "[]"
	}
	if !c.onlyText(n, parts) {
		return nil
	}
	return func(r *resolution) (item.Item, bool) {
		m := head
		s, ok := r.text(parts)
		var p item.Part = &item.OutputText{Text: s, Annotations: annotations, Logprobs: logprobs}
		if n.flag("refusal") {
			p = &item.Refusal{Refusal: s}
		}
		m.Content = item.Parts(p)
		return r.item(n, &m, ok)
	}
}

// absent is the attribute value for a missing JSON member, where a missing attribute
// means a default.
const absent = "none"

// json reads an attribute that holds a JSON value.
func (c *compiler) json(n *node, name string) item.JSON {
	a, ok := n.attr(name)
	if !ok || a.Value == absent {
		return ""
	}
	v := item.JSON(a.Value)
	if err := v.Valid(); err != nil {
		c.failAttr(n, a, name+" is not JSON: "+err.Error(), `write `+name+`="[]" or `+name+`="`+absent+`"`)
		return ""
	}
	return v
}

// nulls reads the attribute that names the members with the value null.
func nulls(n *node) item.Extra {
	var x item.Extra
	for name := range strings.FieldsSeq(n.value("null")) {
		x.Set(name, "null")
	}
	return x
}

func (c *compiler) call(n *node) builder {
	id, name := c.required(n, "tool_call_id"), c.required(n, "function_name")
	custom := c.oneOf(n, "type", "function_call custom_tool_call") == "custom_tool_call"
	parts := payloads(body(n))
	if !c.onlyText(n, parts) {
		return nil
	}
	itemID, status, namespace := n.value("id"), n.value("status"), n.value("namespace")
	c.called(id, custom, c.where.at(n.src, n.start).Line)
	return func(r *resolution) (item.Item, bool) {
		s, ok := r.text(parts)
		if custom {
			return r.item(n, &item.CustomToolCall{ID: itemID, CallID: id, Name: name, Namespace: namespace, Input: s, Status: status, Extra: nulls(n)}, ok)
		}
		if len(parts) == 0 {
			s = "{}"
		}
		return r.item(n, &item.FunctionCall{ID: itemID, CallID: id, Name: name, Namespace: namespace, Arguments: s, Status: status, Extra: nulls(n)}, ok)
	}
}

func (c *compiler) response(n *node) builder {
	id := c.required(n, "tool_call_id")
	typ := c.oneOf(n, "type", "function_call function_call_output custom_tool_call custom_tool_call_output")
	output := c.oneOf(n, "output", "text content")
	parts := payloads(body(n))
	if output == "text" && !c.onlyText(n, parts) {
		return nil
	}
	if s, ok := static(parts); ok && output == "content" {
		if _, err := item.Restore(item.BranchContent, s); err != nil {
			c.fail(n, "output=\"content\" needs images, files or a JSON list of parts: "+err.Error(), "")
			return nil
		}
	}
	custom := strings.HasPrefix(typ, "custom_tool_call")
	if !n.has("type") && output == "" {
		c.untyped = append(c.untyped, &untyped{id, n, &custom})
	}
	itemID, status := n.value("id"), n.value("status")
	if isNumber(itemID) {
		itemID = "" // older programs number payload files like this
	}
	return func(r *resolution) (item.Item, bool) {
		out, ok := r.output(n, parts, output)
		if custom {
			return r.item(n, &item.CustomToolCallOutput{ID: itemID, CallID: id, Output: out, Status: status, Extra: nulls(n)}, ok)
		}
		return r.item(n, &item.FunctionCallOutput{ID: itemID, CallID: id, Output: out, Status: status, Extra: nulls(n)}, ok)
	}
}

func isNumber(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}

// output reads the content of a tool response. Without an output attribute it is a
// list of parts if it contains images or files, or if the text is the JSON of such a
// list, as older programs wrote it.
func (r *resolution) output(n *node, parts []part, output string) (item.Content, bool) {
	if media(parts) != nil {
		list, ok := r.parts(parts, "")
		return item.Parts(list...), ok
	}
	s, ok := r.text(parts)
	switch output {
	case "text":
	case "content":
		c, err := item.Restore(item.BranchContent, s)
		if err != nil && ok {
			r.fail(n, "output=\"content\" needs images, files or a JSON list of parts", "", err)
		}
		return c, ok && err == nil
	default:
		if c, isList := inputParts(s); isList {
			return c, ok
		}
	}
	return item.Text(s), ok
}

// inputParts reads s as a JSON list of one or more texts, images and files.
func inputParts(s string) (item.Content, bool) {
	if !strings.HasPrefix(strings.TrimLeft(s, space), "[") {
		return item.Content{}, false
	}
	c, err := item.Restore(item.BranchContent, s)
	if err != nil || len(c.Parts) == 0 {
		return item.Content{}, false
	}
	for _, p := range c.Parts {
		switch p.(type) {
		case *item.InputText, *item.InputImage, *item.InputFile:
		default:
			return item.Content{}, false
		}
	}
	return c, true
}

func (c *compiler) reasoning(n *node) builder {
	v := &item.Reasoning{
		ID: n.value("id"), Status: n.value("status"), EncryptedContent: n.value("encrypted"),
		Extra: nulls(n),
	}
	if c.oneOf(n, "content", "[]") != "" {
		v.Content = []item.Part{}
	}
	for _, p := range body(n) {
		typ := ""
		s := join(p.text)
		if p.node != nil {
			typ = c.oneOf(p.node, "type", "summary_text reasoning_text")
			s, _ = static(body(p.node))
		}
		if cmp.Or(typ, "summary_text") == "summary_text" {
			v.Summary = append(v.Summary, &item.SummaryText{Text: s})
		} else {
			v.Content = append(v.Content, &item.ReasoningText{Text: s})
		}
	}
	return func(r *resolution) (item.Item, bool) { return r.item(n, v, true) }
}

// item reads an element that holds the JSON of any item.
func (c *compiler) item(n *node) builder {
	parts := payloads(body(n))
	if s, ok := static(parts); ok {
		if problem := checkItem(n, s); problem != "" {
			c.fail(n, problem, "")
			return nil
		}
		if it, err := item.ParseString(s); err == nil && (it.Type() == item.TypeFunctionCall || it.Type() == item.TypeCustomToolCall) {
			c.called(it.CallID(), it.Type() == item.TypeCustomToolCall, c.where.at(n.src, n.start).Line)
		}
	}
	return func(r *resolution) (item.Item, bool) {
		s, ok := r.text(parts)
		if !ok {
			return item.Item{}, false
		}
		if problem := checkItem(n, s); problem != "" {
			r.fail(n, problem, "", nil)
			return item.Item{}, false
		}
		it, err := item.ParseString(s)
		return it, err == nil
	}
}

// checkItem returns what is wrong with the JSON of an item element, or "".
func checkItem(n *node, s string) string {
	it, err := item.ParseString(s)
	if err != nil {
		return "<item> does not hold the JSON of an item: " + err.Error()
	}
	if a, ok := n.attr("type"); ok && a.Value != string(it.Type()) {
		return "<item> says type " + excerpt(a.Value) + ", its JSON " + excerpt(string(it.Type()))
	}
	return ""
}
