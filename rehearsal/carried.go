// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package rehearsal

import (
	"regexp"
	"strings"

	"github.com/antiphon-go/antiphon/item"
)

// Where outputs are text alone, as in Chat Completions, their images follow in
// a user message right after them, which nobody said: it is not a new round, and
// the images are those of the outputs. Such a message holds images and files
// only, or before those of each output a line that names its call.

// carried gives what such a message holds to the outputs it belongs to, and
// reports whether it is one. Behind are the calls whose outputs stand before.
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

// namesCall reads the line before the images of an output.
func namesCall(line string) (id string, ok bool) {
	id, ok = strings.CutPrefix(line, "From the output of ")
	if !ok {
		return "", false
	}
	return strings.CutSuffix(id, ":")
}

// marker is what stands in a text where a part was.
var marker = regexp.MustCompile(`<(?:image|file) src="`)

// marked tells whose n parts are, by the markers in the outputs; all are the
// last output's where these do not add up.
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
