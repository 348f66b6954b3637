// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package completions

import (
	"fmt"
	"strconv"

	"github.com/antiphon-go/antiphon/item"
)

// Roles of Chat Completions that items do not have.
const (
	roleTool     = "tool"
	roleFunction = "function"
)

// ToItems converts a list of chat messages to items. An empty message adds no item. Assistant
// messages whose content is more than a text, and reasoning, get an id made from their position,
// because the schema requires one; conversion back to messages does not report these ids as losses.
//
// The error is an [*item.SyntaxError], an [*item.ShapeError] with the place of an unknown role or
// an unreadable value, or [ErrNothing].
func ToItems(messages []byte) ([]item.Item, []Loss, error) {
	text := item.JSON(messages)
	if err := text.Valid(); err != nil {
		return nil, nil, err
	}
	var losses []Loss
	items, err := readMessages(trim(text), place{&losses, "messages"})
	if err != nil {
		return nil, nil, err
	}
	return items, losses, nil
}

func readMessages(list item.JSON, at place) ([]item.Item, error) {
	if list != "" && list[0] != '[' {
		return nil, shapeError(at.path, "found "+kindOf(list)+", want a list of messages")
	}
	r := &reader{}
	var err error
	eachElement(list, func(i int, v item.JSON) {
		if err == nil {
			err = r.message(i, v, at.index(i))
		}
	})
	if err == nil && len(r.items) == 0 {
		err = fmt.Errorf("%s: %w", at.path, ErrNothing)
	}
	return r.items, err
}

// trim removes white space around checked JSON.
func trim(v item.JSON) item.JSON {
	s := string(v)
	for s != "" && s[0] <= ' ' {
		s = s[1:]
	}
	for s != "" && s[len(s)-1] <= ' ' {
		s = s[:len(s)-1]
	}
	return item.JSON(s)
}

// reader reads messages in order.
type reader struct {
	items []item.Item
	calls []madeCall
	byID  map[string][]int // the calls with an id
	n     int              // index of the current message
}

// madeCall holds the facts about a call that its output needs.
type madeCall struct {
	id, name string
	custom   bool
	answered bool
	legacy   bool
}

func (r *reader) add(v item.Value) error {
	it, err := item.New(v)
	if err == nil {
		r.items = append(r.items, it)
	}
	return err
}

func (r *reader) message(i int, v item.JSON, at place) error {
	if v[0] != '{' {
		return shapeError(at.path, "found "+kindOf(v)+", want a message")
	}
	r.n = i
	o := at.open(v)
	role := o.text("role")
	var err error
	switch role {
	case string(item.RoleSystem), string(item.RoleDeveloper), string(item.RoleUser):
		err = r.speech(o, item.Role(role))
	case string(item.RoleAssistant):
		err = r.assistant(o)
	case roleTool:
		err = r.output(o)
	case roleFunction:
		err = r.functionOutput(o)
	case "":
		if v := o.takeAny("role"); v != "" {
			return shapeError(at.path+".role", "found "+kindOf(v)+", want a role")
		}
		return shapeError(at.path+".role", "it is missing; the roles are system, developer, user, assistant, tool and function")
	default:
		return shapeError(at.path+".role", fmt.Sprintf("unknown role %q; the roles are system, developer, user, assistant, tool and function", role))
	}
	if err == nil {
		o.rest()
	}
	return err
}

// speech reads a message that has only content.
func (r *reader) speech(o *object, role item.Role) error {
	c, err := o.at("content").readContent(o.take("content"), false)
	if err != nil {
		return err
	}
	if !c.given {
		o.lose("says nothing and is left out")
		return nil
	}
	return r.add(&item.Message{Role: role, Content: c.Content})
}

// assistant reads a message of the model: its reasoning, text and calls.
func (r *reader) assistant(o *object) error {
	c, err := o.at("content").readContent(o.take("content"), true)
	if err != nil {
		return err
	}
	before := len(r.items)
	if v := readReasoning(o, c.thoughts); v != nil {
		v.ID = madeID("rs", strconv.Itoa(r.n))
		if err := r.add(v); err != nil {
			return err
		}
	}
	if m := spoken(o, c); m != nil {
		if !m.Content.IsText() {
			m.ID, m.Status = madeID("msg", strconv.Itoa(r.n)), item.StatusCompleted
		}
		if err := r.add(m); err != nil {
			return err
		}
	}
	if err := r.toolCalls(o); err != nil {
		return err
	}
	if err := r.functionCall(o); err != nil {
		return err
	}
	if len(r.items) == before {
		o.lose("says nothing and is left out")
	}
	return nil
}

// spoken returns the model's message, or nil if it has no content.
func spoken(o *object, c content) *item.Message {
	refusal := o.text("refusal")
	annotations := readAnnotations(o)
	m := &item.Message{Role: item.RoleAssistant, Content: c.Content}
	if !c.given && refusal == "" || c.given && !c.IsText() && len(c.Parts) == 0 && refusal == "" {
		if annotations != "" {
			o.at("annotations").lose("are of a text that is not there")
		}
		return nil
	}
	if refusal == "" && annotations == "" {
		return m
	}
	if c.given && c.IsText() {
		m.Content = item.Parts(&item.OutputText{Text: c.Text, Annotations: "[]"})
	}
	for i := len(m.Content.Parts) - 1; i >= 0 && annotations != ""; i-- {
		if t, ok := m.Content.Parts[i].(*item.OutputText); ok {
			t.Annotations, annotations = annotations, ""
		}
	}
	if annotations != "" {
		o.at("annotations").lose("are of a text that is not there")
	}
	if refusal != "" {
		m.Content = item.Parts(append(m.Content.Parts, &item.Refusal{Refusal: refusal})...)
	}
	return m
}

func (r *reader) toolCalls(o *object) error {
	at := o.at("tool_calls")
	v := o.take("tool_calls")
	if v != "" && v[0] != '[' {
		return shapeError(at.path, "found "+kindOf(v)+", want a list of calls")
	}
	var err error
	eachElement(v, func(i int, e item.JSON) {
		if err == nil {
			err = r.toolCall(at.index(i), e)
		}
	})
	return err
}

func (r *reader) toolCall(at place, v item.JSON) error {
	if v[0] != '{' {
		return shapeError(at.path, "found "+kindOf(v)+", want a call")
	}
	o := at.open(v)
	o.take("index") // redundant: its position
	call, problem := o.call()
	if problem != "" {
		return shapeError(at.path, problem)
	}
	if call.id == "" {
		call.id = fmt.Sprintf("call_%d_%d", r.n, len(r.calls))
	}
	return r.made(call)
}

func (r *reader) made(c calling) error {
	if r.byID == nil {
		r.byID = map[string][]int{}
	}
	r.byID[c.id] = append(r.byID[c.id], len(r.calls))
	r.calls = append(r.calls, madeCall{id: c.id, name: c.name, custom: c.custom})
	return r.add(c.value())
}

// calling is a call in Chat Completions.
type calling struct {
	id, name string
	input    string // the arguments, or the input of a custom tool
	custom   bool
	itemID   string
	status   string
}

// value returns the call as an item.
func (c calling) value() item.Value {
	if c.custom {
		return &item.CustomToolCall{ID: c.itemID, CallID: c.id, Name: c.name, Input: c.input, Status: c.status}
	}
	if c.input == "" {
		c.input = "{}"
	}
	return &item.FunctionCall{ID: c.itemID, CallID: c.id, Name: c.name, Arguments: c.input, Status: c.status}
}

// call reads a call and reports losses. The problem is "" if there is none.
func (o *object) call() (c calling, problem string) {
	c.id = o.text("id")
	typ := o.text("type")
	inner, holder := o.take("function"), "function"
	if custom := o.take("custom"); custom != "" && (typ == "custom" || inner == "") {
		inner, holder, c.custom = custom, "custom", true
	}
	if inner == "" || inner[0] != '{' {
		return c, "found no function and no custom tool that is called"
	}
	f := o.at(holder).open(inner)
	c.name = f.text("name")
	if c.custom {
		c.input = f.text("input")
	} else {
		c.input = f.arguments()
	}
	f.rest()
	o.rest()
	if c.name == "" {
		return c, "found no name of what is called"
	}
	return c, ""
}

// arguments takes the arguments: the model's text, or an object from servers that parse it.
func (o *object) arguments() string {
	v := o.take("arguments")
	if s, ok := v.Unquote(); ok {
		return s
	}
	return string(v)
}

// functionCall reads a call in the form used before tools.
func (r *reader) functionCall(o *object) error {
	v := o.take("function_call")
	at := o.at("function_call")
	switch {
	case blank(v):
		return nil
	case v[0] != '{':
		return shapeError(at.path, "found "+kindOf(v)+", want a call")
	}
	f := at.open(v)
	c := calling{id: fmt.Sprintf("call_%d_%d", r.n, len(r.calls)), name: f.text("name"), input: f.arguments()}
	if c.name == "" {
		return shapeError(at.path, "found no name of what is called")
	}
	f.rest()
	at.move(olderCall)
	err := r.made(c)
	r.calls[len(r.calls)-1].legacy = true
	return err
}

// output reads a tool's output.
func (r *reader) output(o *object) error {
	id, name := o.text("tool_call_id"), o.text("name")
	call := r.answers(id, name)
	if id == "" {
		if call == nil {
			return shapeError(o.path+".tool_call_id", "found no id of a call, and no call that waits for an output")
		}
		id = call.id
	}
	return r.outputOf(o, call, id, name)
}

// functionOutput reads a function's output in the form used before tools.
func (r *reader) functionOutput(o *object) error {
	name := o.text("name")
	for i := range r.calls {
		if c := &r.calls[i]; c.legacy && !c.answered && c.name == name {
			o.at("role").move("the older form: becomes the output of a tool")
			return r.outputOf(o, c, c.id, "")
		}
	}
	return shapeError(o.path+".name", fmt.Sprintf("no call of %q waits for an output", name))
}

// answers returns the call that an output answers, or nil. Of several calls with the id it is the
// first without an output.
func (r *reader) answers(id, name string) *madeCall {
	if id == "" {
		return r.firstOpen(name)
	}
	list := r.byID[id]
	if len(list) == 0 {
		return nil
	}
	c := &r.calls[list[0]]
	if len(list) > 1 {
		r.byID[id] = list[1:]
	}
	return c
}

// firstOpen returns the first call with the name that has no output, or else the first one with any
// name.
func (r *reader) firstOpen(name string) *madeCall {
	var found *madeCall
	for i := range r.calls {
		c := &r.calls[i]
		switch {
		case c.answered:
		case c.name == name:
			return c
		case found == nil:
			found = c
		}
	}
	return found
}

func (r *reader) outputOf(o *object, call *madeCall, id, name string) error {
	c, err := o.at("content").readContent(o.take("content"), false)
	if err != nil {
		return err
	}
	custom := false
	if call != nil {
		call.answered, custom = true, call.custom
		if name != "" && name != call.name {
			o.at("name").lose("differs from the name of the call")
		} else if name != "" {
			o.at("name").move("stands in the call")
		}
		name = ""
	}
	if custom {
		return r.add(&item.CustomToolCallOutput{CallID: id, Output: c.Content})
	}
	return r.add(&item.FunctionCallOutput{CallID: id, Output: c.Content, Name: name})
}
