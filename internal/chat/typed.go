// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/antiphon-go/antiphon/decode"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
)

// typedText returns what a person typed of a message, without the files that went with it.
func typedText(c item.Content) string {
	text, _ := typedOf(c)
	return text
}

// typedOf returns what a person typed of a message, and what the flag -f sent with it. Files that a prompt names
// behind @ follow the text, and then so do those of -f; otherwise they stand before it. Of pictures behind the text,
// nothing tells which are of -f.
func typedOf(c item.Content) (text string, sent []item.Part) {
	var texts []string
	for _, part := range c.Parts {
		if t, ok := part.(*item.InputText); ok {
			texts = append(texts, t.Text)
		}
	}
	if len(texts) == 0 || len(c.Parts) == 1 {
		return c.Display(), nil
	}
	named := func(name string) bool {
		return slices.ContainsFunc(strings.Fields(texts[0]), func(word string) bool {
			word, at := strings.CutPrefix(word, "@")
			return at && filepath.Base(word) == name
		})
	}
	last, ends := c.Parts[len(c.Parts)-1].(*item.InputText)
	begins := strings.Contains(texts[0], "@") && decode.TextName(texts[0]) == "" || len(texts) > 1 && decode.TextName(texts[1]) != "" && named(decode.TextName(texts[1]))
	if _, text := c.Parts[0].(*item.InputText); ends && !(begins && text) {
		return last.Text, c.Parts[:len(c.Parts)-1]
	}
	for _, part := range c.Parts {
		if t, ok := part.(*item.InputText); ok && decode.TextName(t.Text) != "" && t.Text != texts[0] && !named(decode.TextName(t.Text)) {
			sent = append(sent, part)
		}
	}
	return texts[0], sent
}

// lastAsked returns what the person said last.
func lastAsked(s *session.Session) (text string) {
	for e := range s.Entries() {
		if b, ok := e.Body.(session.InputItem); ok && !b.Own && b.Item.Type() == item.TypeMessage && b.Item.Role() == item.RoleUser {
			if m, err := item.As[item.Message](b.Item); err == nil {
				text = typedText(m.Content)
			}
		}
	}
	return text
}
