// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package rehearsal

import (
	"strings"

	"github.com/antiphon-go/antiphon/internal/lazyregexp"
	"github.com/antiphon-go/antiphon/item"
)

// If outputs are text only, as in Chat Completions, clients send their images in a
// user message directly after them. That message does not come from a person: it
// does not begin a new round, and its images belong to the outputs. Such a message
// contains only images and files, optionally with a line before the images of each
// output that names its call.

// carried assigns the content of such a message to its outputs, and reports whether
// m is one. behind are the calls whose outputs precede the message.
func (f *facts) carried(m *item.Message, behind []int, byID map[string]int) bool {
	if len(behind) == 0 || m.Role != item.RoleUser || len(m.Content.Parts) == 0 {
		return false
	}
	owner, named := -1, false
	var parts []item.Part
	var owners []int
	for _, p := range m.Content.Parts {
		switch p := p.(type) {
		case *item.InputText:
			id, ok := namesCall(p.Text)
			i, known := byID[id]
			if !ok || !known {
				return false
			}
			owner, named = i, true
		case *item.InputImage, *item.InputFile:
			parts, owners = append(parts, p), append(owners, owner)
		default:
			return false
		}
	}
	if !named {
		owners = f.marked(behind, len(parts))
	}
	for n, p := range parts {
		f.append(max(owners[n], 0), p)
	}
	return true
}

// namesCall parses the line before the images of an output.
func namesCall(line string) (id string, ok bool) {
	id, ok = strings.CutPrefix(line, "From the output of ")
	if !ok {
		return "", false
	}
	return strings.CutSuffix(id, ":")
}

// marker matches the placeholder of a part in a text.
var marker = lazyregexp.New(`<(?:image|file) src="`)

// marked returns the owners of n parts according to the placeholders in the outputs.
// If the numbers differ, all parts belong to the last output.
func (f *facts) marked(behind []int, n int) (owners []int) {
	for _, i := range behind {
		for range marker.FindAllString(f.calls[i].output.Display(), -1) {
			owners = append(owners, i)
		}
	}
	if len(owners) == n {
		return owners
	}
	owners = make([]int, n)
	for i := range owners {
		owners[i] = behind[len(behind)-1]
	}
	return owners
}

// append adds a part to an output.
func (f *facts) append(i int, p item.Part) {
	out := &f.calls[i].output
	if out.IsText() {
		*out = item.Parts(&item.InputText{Text: out.Text})
	}
	*out = item.Parts(append(out.Parts[:len(out.Parts):len(out.Parts)], p)...)
}
