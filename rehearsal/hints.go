// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package rehearsal

import (
	"path"
	"slices"
	"strings"

	"github.com/antiphon-go/antiphon/internal/lazyregexp"
)

// hints are the things mentioned in a conversation that a call could be about.
type hints struct {
	question string
	files    []string
	images   []string
	url      string
}

var (
	// fileName matches text that looks like a file name, with or without directories.
	fileName = lazyregexp.New(`[\pL\pN_./\\-]*[\pL\pN_-]\.[A-Za-z][A-Za-z0-9]{0,5}\b`)
	address  = lazyregexp.New(`https?://[^\s"'<>)\]]+`)
)

var imageEndings = []string{".png", ".jpg", ".jpeg", ".gif", ".webp"}

// notFiles are suffixes of abbreviations and addresses, which are not files.
var notFiles = []string{".com", ".org", ".net", ".io", ".dev", ".e", ".g", ".eg", ".ie"}

// hintsOf reads the last user message, then the outputs of tools, then the
// instructions.
func hintsOf(f *facts) *hints {
	h := &hints{question: question(f.lastUser)}
	h.read(h.question)
	h.read(f.lastUser)
	for _, c := range slices.Backward(f.calls) {
		if _, failed := failure(c.output.Display()); !failed {
			h.read(textOf(c.output))
		}
	}
	for _, s := range f.system {
		h.read(s)
	}
	return h
}

// maxRead limits the part of a text that is searched, in bytes.
const maxRead = 64 << 10

func (h *hints) read(text string) {
	text = text[:min(len(text), maxRead)]
	if h.url == "" {
		h.url = strings.TrimRight(address.FindString(text), ".,;:!?")
	}
	text = address.ReplaceAllString(text, " ")
	for _, name := range fileName.FindAllString(text, -1) {
		end := strings.ToLower(path.Ext(name))
		switch {
		case slices.Contains(notFiles, end):
		case slices.Contains(imageEndings, end):
			h.images = append(h.images, name)
		default:
			h.files = append(h.files, name)
		}
	}
}

// path returns a file that the conversation mentions, or "".
func (h *hints) path(image bool) string {
	list := h.files
	if image {
		list = h.images
	}
	if len(list) == 0 {
		return ""
	}
	return list[0]
}
