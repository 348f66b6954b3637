// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package export

import (
	"html/template"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/antiphon-go/antiphon/item"
)

// member is a member of an object, for a list of names and values.
type member struct {
	Name  string
	Value template.HTML
	Block bool // the value has its own lines
}

// maxMembers is the maximum number of members of an object that is shown as a list.
const maxMembers = 40

var lenient = []jsontext.Options{jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)}

// objectOf returns the members of a JSON object in order. It returns false for any
// other text.
func objectOf(s string) (names []string, values []item.JSON, ok bool) {
	d := jsontext.NewDecoder(strings.NewReader(s), lenient...)
	if token, err := d.ReadToken(); err != nil || token.Kind() != '{' {
		return nil, nil, false
	}
	for d.PeekKind() == '"' {
		name, err := d.ReadToken()
		if err != nil {
			return nil, nil, false
		}
		names = append(names, name.String())
		value, err := d.ReadValue()
		if err != nil {
			return nil, nil, false
		}
		values = append(values, item.JSON(value.Clone()))
	}
	_, err := d.ReadToken()
	return names, values, err == nil && item.JSON(s).Valid() == nil
}

// members returns an object as a list of its members, if it can be shown as one.
func (p *printer) members(s string) ([]member, bool) {
	names, values, ok := objectOf(s)
	if !ok || len(names) == 0 || len(names) > maxMembers {
		return nil, false
	}
	list := make([]member, len(names))
	for i, v := range values {
		list[i].Name = plain(p.hide(names[i]))
		text, isText := v.Unquote()
		switch {
		case isText && !strings.Contains(text, "\n"):
			list[i].Value = markup(p.hide(short(text)))
		case isText:
			list[i].Value, list[i].Block = template.HTML(code(p.hide(short(text)))), true
		default:
			list[i].Value, list[i].Block = p.json(v)
		}
	}
	return list, true
}

// maxInline is the maximum length of a value on one line.
const maxInline = 80

// json returns a value, formatted over several lines if it is long.
func (p *printer) json(v item.JSON) (shown template.HTML, block bool) {
	w := jsonWriter{hide: p.hide}
	if w.flat = true; w.value(v) && len(v) <= maxInline {
		return template.HTML(w.out.String()), false
	}
	w = jsonWriter{hide: p.hide}
	if !w.value(v) {
		return markup(p.hide(string(v))), true
	}
	return template.HTML(w.out.String()), true
}

// jsonWriter writes a value with its kinds marked. Texts and numbers keep their
// spelling.
type jsonWriter struct {
	hide func(string) string
	flat bool
	out  strings.Builder
}

// maxDepth is the maximum nesting depth of a value that is formatted.
const maxDepth = 200

func (w *jsonWriter) value(v item.JSON) bool {
	d := jsontext.NewDecoder(strings.NewReader(string(v)), lenient...)
	for {
		kind := d.PeekKind()
		if d.StackDepth() > maxDepth {
			return false
		}
		depth := d.StackDepth()
		parent, length := d.StackIndex(depth)
		isValue := parent == '{' && length%2 == 1
		raw, end, err := next(d, kind)
		if err != nil {
			return false
		}
		if !isValue && !end {
			w.newItem(depth, length, parent)
		}
		if end {
			w.close(kind, depth, length)
		} else {
			w.token(kind, raw, parent == '{' && !isValue)
		}
		if d.StackDepth() == 0 {
			return true
		}
	}
}

// next reads a name, a simple value, or a bracket.
func next(d *jsontext.Decoder, kind jsontext.Kind) (raw string, end bool, err error) {
	switch kind {
	case '{', '[':
		_, err = d.ReadToken()
		return string(kind), false, err
	case '}', ']':
		_, err = d.ReadToken()
		return string(kind), true, err
	}
	v, err := d.ReadValue()
	return string(v), false, err
}

func (w *jsonWriter) newItem(depth int, length int64, parent jsontext.Kind) {
	if depth == 0 {
		return
	}
	if length > 0 {
		w.out.WriteString(",")
	}
	switch {
	case !w.flat:
		w.indent(depth)
	case length > 0 || parent == '{' && length > 0:
		w.out.WriteString(" ")
	}
}

func (w *jsonWriter) indent(depth int) {
	w.out.WriteString("\n" + strings.Repeat("  ", depth))
}

func (w *jsonWriter) close(kind jsontext.Kind, depth int, length int64) {
	if !w.flat && length > 0 {
		w.indent(depth - 1)
	}
	w.out.WriteString(string(kind))
}

func (w *jsonWriter) token(kind jsontext.Kind, raw string, name bool) {
	class := map[jsontext.Kind]string{'"': "str", '0': "num", 't': "lit", 'f': "lit", 'n': "lit"}[kind]
	if name {
		class = "key"
	}
	if class == "" {
		w.out.WriteString(raw)
		return
	}
	if kind == '"' {
		if text, ok := item.JSON(raw).Unquote(); ok {
			if said := w.hide(short(text)); said != text {
				raw = string(item.Quote(said))
			}
		}
	}
	w.out.WriteString(`<span class="` + class + `">`)
	writeText(&w.out, w.hide(raw))
	w.out.WriteString("</span>")
	if name {
		w.out.WriteString(": ")
	}
}

// short returns a text, or a description if it is a base64 payload.
func short(s string) string {
	if len(s) < 256 {
		return s
	}
	if mediaType, payload, ok := item.CutDataURI(s); ok {
		return "<" + shorten(mediaType, 60) + ", " + sizeText(decodedLen(payload)) + ">"
	}
	if isBase64(s) {
		return "<base64, " + sizeText(decodedLen(s)) + ">"
	}
	return s
}

// preview returns the arguments of a call on one line: the values of its members,
// with their names if there are several.
func (p *printer) preview(arguments string) string {
	names, values, ok := objectOf(arguments)
	if !ok {
		return plain(shorten(p.hide(arguments), 100))
	}
	var words []string
	for i, v := range values[:min(len(values), 8)] {
		said := valueText(v)
		if len(names) > 1 {
			said = names[i] + ": " + said
		}
		words = append(words, shorten(said, 100))
	}
	return plain(shorten(p.hide(strings.Join(words, ", ")), 100))
}

// valueText formats a value for people: texts without quotes, lists of texts as
// words.
func valueText(v item.JSON) string {
	if s, ok := v.Unquote(); ok {
		return short(s)
	}
	if strings.HasPrefix(string(v), "[") {
		var words []string
		for _, r := range strings.Split(strings.Trim(string(v), "[]"), ",") {
			s, ok := item.JSON(strings.TrimSpace(r)).Unquote()
			if !ok || item.JSON(strings.TrimSpace(r)).Valid() != nil {
				return string(v)
			}
			words = append(words, s)
		}
		return strings.Join(words, " ")
	}
	return string(v)
}
