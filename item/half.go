// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package item

import (
	"strings"

	"github.com/antiphon-go/antiphon/internal/jsonx"
)

// A character beyond U+FFFF is two in UTF-16. A server that splits texts by UTF-16,
// as JavaScript does, may end one delta in the first half of a character and begin
// the next with the second, each written as an escape. Decoded one by one, they
// would be U+FFFD twice. This file puts the halves together.

// lengthOfHalf is that of an escape such as \ud83d.
const lengthOfHalf = 6

// CutHalf cuts the first half of a character off the end of a JSON string. Half is
// its escape, to be put in front of the text that follows: see [JSON.WithHalf]. It
// is "" where whole is j.
func (j JSON) CutHalf() (whole JSON, half string) {
	end := len(j) - 1 // where the closing quote is
	at := end - lengthOfHalf
	if at < 1 || j[0] != '"' || j[at] != '\\' || j[at+1] != 'u' {
		return j, ""
	}
	slashes := 0
	for j[at-1-slashes] == '\\' {
		slashes++
	}
	if r := jsonx.HexRune(string(j[at+2 : end])); slashes%2 != 0 || r < 0xD800 || r >= 0xDC00 {
		return j, ""
	}
	return j[:at] + `"`, strings.Clone(string(j[at:end]))
}

// WithHalf puts the half of a character in front of a JSON string.
func (j JSON) WithHalf(half string) JSON {
	if half == "" || j == "" || j[0] != '"' {
		return j
	}
	return `"` + JSON(half) + j[1:]
}

const replacement = "\uFFFD"

// halves are the texts of a stream whose last delta ended in half a character.
type halves struct {
	open []openHalf // nearly always none
	text []byte     // of the last delta that was put together
}

// openHalf is one that the next delta of the text may complete.
type openHalf struct {
	of   textName
	half string
}

// textName names the text that a delta is about, as the event does.
type textName struct {
	kind                   EventType
	id                     string
	index, content, nested int
	command                string
}

func nameOf(e *Event) textName {
	command, _ := memberOf(e.raw, "command_index")
	return textName{e.Type, e.ItemID, e.OutputIndex, e.ContentIndex, e.SummaryIndex, string(command)}
}

// join makes the event's delta end and begin in whole characters. What is held
// back of it comes with the next delta of the text. It does nothing for nearly all
// deltas. The text holds until the next call.
func (h *halves) join(e *Event) {
	if len(h.open) == 0 && !strings.HasSuffix(e.Delta, replacement) || e.Delta == "" || e.joined {
		return
	}
	h.see(e)
}

func (h *halves) see(e *Event) {
	of, before := nameOf(e), ""
	for i, o := range h.open {
		if o.of == of {
			before = o.half
			h.open = append(h.open[:i], h.open[i+1:]...)
			break
		}
	}
	v, _ := memberOf(e.raw, "delta")
	if v == "" || v[0] != '"' {
		return
	}
	whole, half := v.CutHalf()
	if half != "" {
		of.id, of.command, of.kind = strings.Clone(of.id), strings.Clone(of.command), EventType(strings.Clone(string(of.kind)))
		h.open = append(h.open, openHalf{of, half})
		e.half = true
	}
	if before != "" || half != "" {
		h.text = jsonx.AppendUnescaped(h.text[:0], before+string(whole[1:len(whole)-1]))
		e.Delta, e.joined = jsonx.String(h.text), true
	}
}
