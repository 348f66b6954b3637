// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/antiphon-go/antiphon/agentfile"
	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/chatmd"
	"github.com/antiphon-go/antiphon/completions"
	"github.com/antiphon-go/antiphon/export"
	"github.com/antiphon-go/antiphon/internal/show"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/tool"
)

// The forms of a conversation.
const (
	formMessages = "messages"
	formChat     = "chat"
	formItems    = "items"
	formRequest  = "request"
	formLines    = "lines"
	formSession  = "session"
	formChatmd   = "chatmd"
)

// sniffForm guesses the form of a text.
func sniffForm(data []byte) string {
	text := bytes.TrimLeft(bytes.TrimPrefix(data, []byte("\ufeff")), " \t\r\n")
	switch {
	case len(text) == 0:
		return formChatmd
	case text[0] == '[':
		return sniffList(text)
	case text[0] != '{':
		return formChatmd
	case isSession(text):
		return formSession
	}
	names := memberNames(string(text))
	for _, name := range names {
		switch name {
		case "messages", "choices":
			return formChat
		case "input", "output":
			if !hasType(text) {
				return formRequest
			}
		}
	}
	return formLines
}

// isSession reports whether a text begins with the first line of a JSON lines file
// from sessions export. The lines of such a file are log entries, not items.
func isSession(text []byte) bool {
	line, _, _ := bytes.Cut(bytes.TrimPrefix(text, []byte("\ufeff")), []byte("\n"))
	it, err := item.Parse(bytes.TrimSpace(line))
	if err != nil {
		return false
	}
	format, _ := it.Member("format")
	return string(format) == strconv.Quote(export.Format)
}

// isExport reports whether a file is a JSON lines file from sessions export. Such a
// file is neither an agent nor a list of items.
func isExport(path string) bool {
	return isSession(headOf(path, 64<<10))
}

// readSession reads the items of an exported session: the whole conversation,
// including compacted parts, with the output of each call.
func (d *document) readSession(name string, data []byte) ([]item.Item, error) {
	var view session.View
	var nested, waiting int
	left := map[string]int{}
	whole := bytes.TrimLeft(bytes.TrimPrefix(data, []byte("\ufeff")), " \t\r\n")
	for line, err := range export.ReadJSONLines(bytes.NewReader(whole)) {
		switch {
		case err != nil:
			return nil, fmt.Errorf("%s: %w", name, err)
		case line.Session != nil && line.Session.Nested:
			nested++
		case line.Waiting != nil:
			waiting++
		case line.Session != nil || line.Blob != nil || nested > 0:
		default:
			switch line.Entry.Body.(type) {
			case session.Compacted, session.Restored, session.Collapsed:
			default:
				view.Apply(line.Entry)
			}
			left[session.Kind(line.Entry.Body)]++
		}
	}
	for _, kind := range []string{"given", "received", "answered"} {
		delete(left, kind)
	}
	if n := len(view.Open()); n > 0 {
		d.lose("session", "%s without an output", show.Plural(n, "call"))
	}
	if len(left) > 0 {
		d.lose("session", "entries of the log: %s; antiphon sessions import reads them", strings.Join(slices.Sorted(maps.Keys(left)), ", "))
	}
	if waiting > 0 {
		d.lose("session", "%s that no run has taken; antiphon sessions import reads them", show.Plural(waiting, "delivery"))
	}
	if nested > 0 {
		d.lose("session", "%s of subagents", show.Plural(nested, "session"))
	}
	var items []item.Item
	for _, it := range view.Items().All() {
		items = append(items, it)
	}
	return items, nil
}

// hasType reports whether an object is an item. An item may have a member output,
// too.
func hasType(text []byte) bool {
	line, _, _ := bytes.Cut(text, []byte("\n"))
	it, err := item.Parse(line)
	return err == nil && it.Type() != "" && it.Type() != "response"
}

// sniffList distinguishes messages from items. A list that could be both means the
// same in both forms.
func sniffList(text []byte) string {
	items, err := item.ParseList(string(text))
	if err != nil {
		return formItems
	}
	for _, it := range items {
		_, calls := it.Member("tool_calls")
		_, typed := it.Member("type")
		content, _ := it.Member("content")
		switch {
		case calls, it.Role() == "tool", it.Role() == "function", strings.Contains(string(content), `"type":"text"`), strings.Contains(string(content), `"image_url":{`):
			return formMessages
		case typed:
			return formItems
		}
	}
	return formMessages
}

// memberNames returns the names of an object's members.
func memberNames(object string) []string {
	d := jsontext.NewDecoder(strings.NewReader(object), jsontext.AllowDuplicateNames(true))
	if token, err := d.ReadToken(); err != nil || token.Kind() != '{' {
		return nil
	}
	var names []string
	for d.PeekKind() == '"' {
		name, err := d.ReadToken()
		if err != nil {
			break
		}
		names = append(names, name.String())
		if d.SkipValue() != nil {
			break
		}
	}
	return names
}

// readForm reads a conversation. The name is used in messages and to resolve
// references in the file.
func readForm(ctx context.Context, form, name string, data []byte) (*document, error) {
	doc := &document{from: form, request: &api.Request{}}
	var items []item.Item
	var err error
	switch form {
	case formMessages:
		items, doc.losses, err = completions.ToItems(data)
	case formItems:
		items, err = item.ParseList(string(data))
	case formLines:
		items, err = readLines(name, data)
	case formSession:
		items, err = doc.readSession(name, data)
	case formChat:
		return doc, doc.readChat(data)
	case formRequest:
		return doc, doc.readRequest(data)
	case formChatmd:
		return doc, doc.readChatmd(ctx, name, data)
	}
	doc.request.Input = item.NewList(items...)
	return doc, err
}

func readLines(name string, data []byte) ([]item.Item, error) {
	var items []item.Item
	lines := bufio.NewScanner(bytes.NewReader(data))
	lines.Buffer(nil, len(data)+1)
	for n := 1; lines.Scan(); n++ {
		line := bytes.TrimSpace(lines.Bytes())
		if len(line) == 0 {
			continue
		}
		it, err := item.Parse(line)
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", name, n, err)
		}
		if _, ok := it.Member("messages"); ok {
			return nil, fmt.Errorf("%s:%d: each line is a whole conversation: convert one line at a time, with --from chat", name, n)
		}
		if isExported(it) {
			return nil, fmt.Errorf("%s:%d: a line of an exported session, whose first line is missing: convert the whole of it", name, n)
		}
		items = append(items, it)
	}
	return items, lines.Err()
}

// isExported reports whether an object is a line of an exported session. Such a
// line is not an item.
func isExported(it item.Item) bool {
	names := memberNames(it.JSON())
	if it.Type() != "" || it.Role() != "" || len(names) == 0 {
		return false
	}
	switch names[0] {
	case "session", "blob", "end":
		return len(names) == 1
	}
	return slices.Contains(names, "seq") && slices.Contains(names, "kind")
}

// readChat reads a Chat Completions request or response.
func (d *document) readChat(data []byte) (err error) {
	for _, name := range memberNames(string(data)) {
		if name != "choices" {
			continue
		}
		resp, losses, err := completions.ParseResponse(data)
		if err != nil {
			return err
		}
		d.losses = losses
		d.response(resp)
		return nil
	}
	d.request, d.losses, err = completions.ParseRequest(data)
	return err
}

// readRequest reads a Responses API request or response.
func (d *document) readRequest(data []byte) (err error) {
	for _, name := range memberNames(string(data)) {
		if name != "output" {
			continue
		}
		resp, err := api.ParseResponse(data)
		if err != nil {
			return err
		}
		d.response(resp)
		return nil
	}
	if d.request, err = api.ParseRequest(data); err != nil {
		return err
	}
	d.request.Input = item.NewList(d.request.InputItems()...)
	d.request.Extra.Delete("input")
	return nil
}

// response takes the items of a response. They can be used in a request unchanged.
func (d *document) response(r *api.Response) {
	d.request.Input = item.NewList(r.Output...)
	d.lose("response "+r.ID, "its items are taken, what it says of itself is not")
}

// readChatmd reads a file with everything it refers to, or standard input, which
// cannot refer to anything.
func (d *document) readChatmd(ctx context.Context, name string, data []byte) error {
	if name == "-" {
		return d.readText(ctx, data)
	}
	options, err := fileOptions()
	if err != nil {
		return err
	}
	options.Salvage = true                                 // missing files do not matter if they are not converted
	file, err := agentfile.Parse(ctx, name, data, options) // a pipe cannot be read twice
	if err != nil {
		return err
	}
	defer file.Close()
	d.left(file.Doc, file.Left)
	set, err := tool.NewSet(file.Tools...)
	if err != nil {
		return err
	}
	r := file.Agent(nil).Request
	r.Input = item.NewList(file.Items...)
	if len(file.Tools) > 0 {
		r.Tools = set.Definitions()
	}
	d.request = &r
	d.settings(file.Doc.Config, r.ToolChoice != "")
	d.declared = func(out string) (string, error) { return file.Declarations(cmp.Or(out, name), options) }
	return nil
}

// left records the parts of the file that the conversation does not contain. A
// problem with a declaration matters only if the declarations are dropped.
func (d *document) left(file *chatmd.File, list chatmd.ErrorList) {
	for _, e := range list {
		l := completions.Loss{Path: fmt.Sprintf("%s:%d:%d", e.File, e.Line, e.Column), What: e.Message}
		if e.Err != nil && !errors.Is(e, chatmd.ErrNotBuilt) {
			l.What += ": " + e.Err.Error()
		}
		if declares(file, e) {
			d.elsewhere = append(d.elsewhere, l)
		} else {
			d.losses = append(d.losses, l)
		}
	}
}

// declares reports whether a problem concerns the config or a tool.
func declares(file *chatmd.File, e *chatmd.Error) bool {
	here := func(at chatmd.Element) bool {
		return cmp.Or(at.File, file.Name) == e.File && at.Line == e.Line && at.Column == e.Column
	}
	return file.Config != nil && here(file.Config.Element) || slices.ContainsFunc(file.Tools, func(t *chatmd.Tool) bool {
		return here(t.Element) || slices.ContainsFunc(t.Roots, func(r chatmd.Root) bool { return here(r.Element) })
	})
}

func (d *document) readText(ctx context.Context, data []byte) error {
	file, _ := chatmd.Parse("standard input", data) // the error is returned again with the items
	var left chatmd.ErrorList
	located, err := file.Items(ctx, chatmd.ResolverFunc(func(_ context.Context, ref chatmd.Ref) ([]byte, string, error) {
		left = append(left, &chatmd.Error{
			File: ref.File, Line: ref.Line, Column: ref.Column,
			Message: fmt.Sprintf("<%s src=%q> stays a reference: standard input has no folder; name the file instead", ref.Tag, ref.Src),
		})
		return nil, "", chatmd.ErrLeft
	}))
	var problems chatmd.ErrorList
	if err != nil && !errors.As(err, &problems) {
		return err
	}
	unbuilt := func(e *chatmd.Error) bool { return errors.Is(e, chatmd.ErrNotBuilt) }
	if slices.ContainsFunc(problems, func(e *chatmd.Error) bool { return !unbuilt(e) }) {
		return problems
	}
	d.left(file, append(left, problems...))
	d.request.Input = new(item.List)
	for _, l := range located {
		d.request.Input.Append(l.Item)
	}
	if file.Config != nil {
		takeConfig(d.request, file.Config)
	}
	d.settings(file.Config, false) // the target of a tool choice is not known
	for _, t := range file.Tools {
		d.elsewhere = append(d.elsewhere, completions.Loss{
			Path: fmt.Sprintf("%d:%d <tool name=%q>", t.Line, t.Column, t.Name), What: "tools are known of files only; name the file instead",
		})
	}
	d.declared = func(string) (string, error) {
		return file.Declarations(func(chatmd.Element, chatmd.Attr) (string, bool) { return "", false }), nil
	}
	return nil
}

// write returns the conversation in another form.
func (d *document) write(form string) (out []byte, err error) {
	if form != formChatmd || d.declared == nil {
		d.losses = append(d.losses, d.elsewhere...)
	}
	switch form {
	case formRequest:
		if err := d.fitParts(); err != nil {
			return nil, err
		}
		out, err = d.request.MarshalJSON()
		return append(out, '\n'), err
	case formChat:
		var losses []completions.Loss
		out, losses, err = completions.AppendRequest(nil, d.request, d.options())
		d.losses = append(d.losses, losses...)
		return append(out, '\n'), err
	}
	return d.writeList(form)
}

// options keeps the name of the token limit that the source used, because a server
// that knows only the older name would run without a limit.
func (d *document) options() completions.Options {
	for _, l := range d.losses {
		if l.Path == "max_tokens" && l.Kind == completions.Moved {
			return completions.Options{MaxTokens: "max_tokens"}
		}
	}
	return completions.Options{}
}

// writeList writes a form that is not a request.
func (d *document) writeList(form string) (out []byte, err error) {
	r := *d.request
	if err := d.lead(&r); err != nil {
		return nil, err
	}
	if form == formChatmd && d.declared != nil {
		declared, err := d.declared(d.out)
		if err != nil {
			return nil, err
		}
		out, r = append(out, declared...), api.Request{Input: r.Input}
	} else if form == formChatmd {
		out = appendConfig(out, &r)
	}
	d.parameters(r, form)
	switch form {
	case formMessages:
		var losses []completions.Loss
		out, losses, err = completions.FromItems(r.Input, completions.Options{})
		d.losses = append(d.losses, losses...)
		out = append(out, '\n')
	case formItems:
		out = joined(r.Input, "[\n", ",\n", "\n]\n")
	case formLines:
		out = joined(r.Input, "", "\n", "\n")
	case formChatmd:
		for _, it := range r.Input.All() {
			if out, err = chatmd.Append(out, it); err != nil {
				return nil, err
			}
		}
	}
	return out, err
}

// joined returns the JSON of the items, each on one line. It can simply remove line
// ends, because in JSON they occur only between tokens.
func joined(list *item.List, open, between, end string) []byte {
	if list.Len() == 0 && open == "" {
		return nil
	}
	out := []byte(open)
	for i, it := range list.All() {
		if i > 0 {
			out = append(out, between...)
		}
		out = append(out, strings.NewReplacer("\n", "", "\r", "").Replace(it.JSON())...)
	}
	return append(out, end...)
}
