// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package chatmd

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/antiphon-go/antiphon/item"
)

// Append appends it to dst as one element, on its own lines. Reading the element
// gives an equal item, and writing that item gives the same bytes.
//
// An item is written in the short form that a person would write if that form can
// hold all its members; this is verified by reading the element back. Any other item
// is written as <item> with its JSON. Items are equal if their JSON has the same
// meaning: members in any order, numbers with the same spelling. See [Writer.Exact]
// for a stronger guarantee.
//
// Append returns an error for an item without JSON.
func Append(dst []byte, it item.Item) ([]byte, error) {
	w := Writer{}
	return w.Append(dst, it)
}

// Writer writes items and can put long payloads of calls and outputs into other
// files. The zero value keeps all payloads in place.
type Writer struct {
	// Put stores a payload that is longer than Inline bytes and returns the path to
	// write in the transcript. If Put is nil, all payloads stay in place.
	Put    func(payload string) (src string, err error)
	Inline int
	// Exact requires that elements read back as exactly the bytes of the item's JSON.
	// Items for which no short form achieves that are written as <item>.
	Exact bool
}

// Append is like the function [Append], with payloads stored as w says. It may
// return an error of Put; then nothing is appended.
func (w *Writer) Append(dst []byte, it item.Item) ([]byte, error) {
	if it.IsZero() {
		return dst, fmt.Errorf("chatmd: no item to write")
	}
	it, err := it.Whole()
	if err != nil {
		return dst, err
	}
	e := encoder{outside: w.Put != nil && (it.IsCall() || it.IsOutput()), inline: w.Inline, exact: w.Exact}
	start := len(dst)
	out, ok := e.short(dst, it)
	if ok {
		out, ok = e.fit(out, start, it)
	}
	if !ok {
		e.payload = ""
		out = e.item(dst[:start], it)
	}
	if e.payload == "" {
		return out, nil
	}
	src, err := w.Put(e.payload)
	if err != nil {
		return dst[:start], err
	}
	return e.named(out, start, src), nil
}

// encoder writes one item.
type encoder struct {
	outside bool // a payload longer than inline goes into a file
	exact   bool
	inline  int
	payload string // the payload for the file, or ""
}

// placeholder is written in place of the path of a payload until the path is known.
const placeholder = `<doc src="payload" local/>`

// body appends the payload of a call or an output, or a reference to it.
func (e *encoder) body(dst []byte, s string) []byte {
	if !e.outside || len(s) <= e.inline || s == "" {
		return appendFence(dst, s)
	}
	e.payload = s
	return append(dst, placeholder+"\n"...)
}

// named writes the path and the digest of the payload in place of the placeholder,
// at the end of the element.
func (e *encoder) named(out []byte, start int, src string) []byte {
	at := start + bytes.LastIndex(out[start:], []byte(placeholder))
	rest := string(out[at+len(placeholder):])
	out = appendAttr(append(out[:at], "<doc"...), "src", src)
	out = appendAttr(append(out, " local"...), "sha256", digest(e.payload))
	return append(append(out, "/>"...), rest...)
}

// digest returns the SHA-256 of a payload in hexadecimal.
func digest(payload string) string {
	sum := sha256.Sum256([]byte(payload))
	return hex.EncodeToString(sum[:])
}

// fit reports whether the element at start is read as the item, and adds the order
// of members if necessary.
func (e *encoder) fit(out []byte, start int, it item.Item) ([]byte, bool) {
	got, want := e.read(out[start:]), it.JSON()
	if got == want || got != "" && !e.exact && sameJSON(got, want) {
		return out, true
	}
	if got == "" || !e.exact {
		return out, false
	}
	order, ok := orderOf(got, want)
	if !ok {
		return out, false
	}
	end := start + bytes.IndexByte(out[start:], '>') // attributes contain none
	out = slices.Insert(out, end, appendAttr(nil, "members", order)...)
	return out, e.read(out[start:]) == want
}

// read returns the JSON of the item that an element represents, or "".
func (e *encoder) read(src []byte) string {
	f, err := Parse("", src)
	if err != nil {
		return ""
	}
	list, err := f.Items(context.Background(), ResolverFunc(func(context.Context, Ref) ([]byte, string, error) {
		return []byte(e.payload), "", nil
	}))
	if err != nil || len(list) != 1 {
		return ""
	}
	return list[0].Item.JSON()
}

func (e *encoder) item(dst []byte, it item.Item) []byte {
	dst = append(dst, "<item"...)
	dst = appendAttr(dst, "type", string(it.Type()))
	dst = append(dst, ">\n"...)
	dst = e.body(dst, it.JSON())
	return append(dst, "</item>\n"...)
}

// short appends the element of the item's kind. It returns false for an item that
// has none or has more members than the element can hold.
func (e *encoder) short(dst []byte, it item.Item) ([]byte, bool) {
	v, err := it.Decode()
	if err != nil {
		return dst, false
	}
	switch v := v.(type) {
	case *item.Message:
		return appendMessage(dst, v)
	case *item.FunctionCall:
		return e.call(dst, v, "")
	case *item.CustomToolCall:
		call := item.FunctionCall{ID: v.ID, CallID: v.CallID, Name: v.Name, Namespace: v.Namespace, Arguments: v.Input, Status: v.Status, Extra: v.Extra}
		return e.call(dst, &call, "custom_tool_call")
	case *item.FunctionCallOutput:
		return e.response(dst, v, "")
	case *item.CustomToolCallOutput:
		response := item.FunctionCallOutput{ID: v.ID, CallID: v.CallID, Output: v.Output, Status: v.Status, Extra: v.Extra}
		return e.response(dst, &response, "custom_tool_call")
	case *item.Reasoning:
		return appendReasoning(dst, v)
	}
	return dst, false
}

// appendNulls appends the names of the further members if all of them are null, and
// reports whether they are.
func appendNulls(dst []byte, x item.Extra) ([]byte, bool) {
	if len(x) == 0 {
		return dst, true
	}
	names := make([]string, len(x))
	for i, m := range x {
		if m.Value != "null" {
			return dst, false
		}
		names[i] = m.Name
	}
	return appendAttr(dst, "null", strings.Join(names, " ")), true
}

func appendMessage(dst []byte, m *item.Message) ([]byte, bool) {
	tag := string(m.Role)
	switch m.Role {
	case item.RoleUser, item.RoleSystem, item.RoleDeveloper, item.RoleAssistant:
	default:
		return dst, false
	}
	dst = append(append(dst, '<'), tag...)
	dst = appendAttr(dst, "id", m.ID)
	dst = appendAttr(dst, "status", statusOf(m))
	dst = appendAttr(dst, "phase", m.Phase)
	dst, ok := appendNulls(dst, m.Extra)
	if !ok {
		return dst, false
	}
	if m.Role == item.RoleAssistant {
		dst, ok = appendReply(dst, m)
	} else {
		dst, ok = appendInput(dst, m.Content)
	}
	dst = append(append(dst, "</"...), tag...)
	return append(dst, ">\n"...), ok
}

// statusOf returns the status attribute of a message. For an output message, a
// missing attribute means completed.
func statusOf(m *item.Message) string {
	_, isNull := m.Extra.Get("status")
	if m.Status == "" && m.ID != "" && m.Role == item.RoleAssistant && !m.Content.IsText() && !isNull {
		return absent
	}
	return m.Status
}

// appendInput appends the content of a message to the model. Its text is always in a
// fence, so that [Recover] can distinguish it from text that a person types.
func appendInput(dst []byte, c item.Content) ([]byte, bool) {
	if c.IsText() {
		dst = appendAttr(dst, "content", "text")
		dst = append(dst, ">\n"...)
		return appendFence(dst, c.Text), true
	}
	dst = append(dst, ">\n"...)
	return appendParts(dst, c.Parts, true)
}

// appendReply appends the content of a message from the model.
func appendReply(dst []byte, m *item.Message) ([]byte, bool) {
	s := m.Content.Text
	switch {
	case m.Content.IsText():
		if m.ID != "" {
			dst = appendAttr(dst, "content", "text")
		}
	case len(m.Content.Parts) != 1:
		return dst, false
	default:
		if m.ID == "" {
			dst = appendAttr(dst, "content", "parts")
		}
		switch p := m.Content.Parts[0].(type) {
		case *item.OutputText:
			s = p.Text
			if p.Annotations != "[]" {
				dst = appendAttr(dst, "annotations", orAbsent(p.Annotations))
			}
			dst = appendAttr(dst, "logprobs", string(p.Logprobs))
		case *item.Refusal:
			s = p.Refusal
			dst = append(dst, " refusal"...)
		default:
			return dst, false
		}
	}
	dst = append(dst, ">\n"...)
	if m.ID == "" {
		return appendFence(dst, s), true
	}
	return appendPlain(dst, s), true
}

func orAbsent(v item.JSON) string {
	if v == "" {
		return absent
	}
	return string(v)
}

// appendParts appends texts, images and files. It returns false for two consecutive
// texts, because they would be read back as one.
func appendParts(dst []byte, parts []item.Part, message bool) ([]byte, bool) {
	wasText := false
	for _, p := range parts {
		isText := false
		switch p := p.(type) {
		case *item.InputText:
			if wasText || len(p.Extra) > 0 {
				return dst, false
			}
			isText = true
			dst = appendFence(dst, p.Text)
		case *item.InputImage:
			if _, err := imageData(p.ImageURL); message && err != nil && strings.HasPrefix(p.ImageURL, "data:") {
				return dst, false // it would not be read back
			}
			dst = append(dst, "<img"...)
			dst = appendAttr(dst, "src", p.ImageURL)
			dst = appendAttr(dst, "file_id", p.FileID)
			if message && p.Detail == "" {
				dst = append(dst, ` detail=""`...)
			}
			dst = appendAttr(dst, "detail", string(p.Detail))
			dst = append(dst, "/>\n"...)
		case *item.InputFile:
			if p.FileData != "" && p.FileURL != "" {
				return dst, false
			}
			dst = append(dst, "<file"...)
			dst = appendAttr(dst, "src", p.FileData+p.FileURL)
			dst = appendAttr(dst, "file_id", p.FileID)
			dst = appendAttr(dst, "filename", p.Filename)
			dst = appendAttr(dst, "detail", string(p.Detail))
			dst = append(dst, "/>\n"...)
		default:
			return dst, false
		}
		wasText = isText
	}
	return dst, len(parts) > 0
}

func (e *encoder) call(dst []byte, v *item.FunctionCall, typ string) ([]byte, bool) {
	dst = append(dst, "<tool_call"...)
	dst = appendAttr(dst, "tool_call_id", v.CallID)
	dst = appendAttr(dst, "function_name", v.Name)
	dst = appendAttr(dst, "namespace", v.Namespace)
	dst = appendAttr(dst, "id", v.ID)
	dst = appendAttr(dst, "status", v.Status)
	dst = appendAttr(dst, "type", typ)
	dst, ok := appendNulls(dst, v.Extra)
	dst = append(dst, ">\n"...)
	dst = e.body(dst, v.Arguments)
	return append(dst, "</tool_call>\n"...), ok
}

// response appends a tool response. The output attribute says which branch of the
// union it is; images and files need no attribute.
func (e *encoder) response(dst []byte, v *item.FunctionCallOutput, typ string) ([]byte, bool) {
	branch, text, err := v.Output.Persist()
	if err != nil {
		return dst, false
	}
	dst = append(dst, "<tool_response"...)
	dst = appendAttr(dst, "tool_call_id", v.CallID)
	dst = appendAttr(dst, "id", v.ID)
	dst = appendAttr(dst, "status", v.Status)
	dst = appendAttr(dst, "type", typ)
	dst = appendAttr(dst, "output", string(branch))
	dst, ok := appendNulls(dst, v.Extra)
	dst = append(dst, ">\n"...)
	body := len(dst)
	asParts := false
	if branch == item.BranchContent && hasMedia(v.Output.Parts) && (!e.outside || len(text) <= e.inline) {
		dst, asParts = appendParts(dst, v.Output.Parts, false)
	}
	if !asParts {
		dst = e.body(dst[:body], text)
	}
	return append(dst, "</tool_response>\n"...), ok
}

// hasMedia reports whether the parts include an image or a file.
func hasMedia(parts []item.Part) bool {
	for _, p := range parts {
		switch p.(type) {
		case *item.InputImage, *item.InputFile:
			return true
		}
	}
	return false
}

func appendReasoning(dst []byte, v *item.Reasoning) ([]byte, bool) {
	dst = append(dst, "<reasoning"...)
	dst = appendAttr(dst, "id", v.ID)
	dst = appendAttr(dst, "status", v.Status)
	dst = appendAttr(dst, "encrypted", v.EncryptedContent)
	if v.Content != nil && len(v.Content) == 0 {
		dst = appendAttr(dst, "content", "[]")
	}
	dst, ok := appendNulls(dst, v.Extra)
	if !ok {
		return dst, false
	}
	dst = append(dst, ">\n"...)
	for _, p := range v.Content {
		t, ok := p.(*item.ReasoningText)
		if !ok {
			return dst, false
		}
		dst = append(dst, "<summary type=\"reasoning_text\">\n"...)
		dst = appendSummary(dst, t.Text, v.ID != "")
	}
	for _, p := range v.Summary {
		t, ok := p.(*item.SummaryText)
		if !ok {
			return dst, false
		}
		dst = append(dst, "<summary>\n"...)
		dst = appendSummary(dst, t.Text, v.ID != "")
	}
	return append(dst, "</reasoning>\n"...), true
}

func appendSummary(dst []byte, s string, plain bool) []byte {
	if plain {
		dst = appendPlain(dst, s)
	} else {
		dst = appendFence(dst, s)
	}
	return append(dst, "</summary>\n"...)
}
