// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package tui

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// This file is about what is written and not sent yet, and the file that keeps it.

// Put puts a text into the draft, before what is there.
func (t *Terminal) Put(text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.put(text)
	t.changed()
}

func (t *Terminal) put(text string) {
	if text == "" {
		return
	}
	draft := t.ownDraft()
	if draft.text != "" {
		text += "\n" + draft.text
	}
	draft.set(text)
}

// ownDraft returns the draft that is to be changed: not what a search or the history shows in its place.
func (t *Terminal) ownDraft() *composer {
	t.endFind()
	draft := t.drafted()
	draft.unshow()
	return draft
}

// drafted returns the draft, also while the composer has the answer to a question.
func (t *Terminal) drafted() *composer {
	if t.asking {
		return &t.stashed
	}
	return &t.compose
}

// Remember adds texts to the history, oldest first.
func (t *Terminal) Remember(texts ...string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, text := range texts {
		t.compose.remember(text)
	}
}

// KeepDraft names the file that keeps what is written and not sent, so that it survives the
// program. What the file holds is put into the draft.
func (t *Terminal) KeepDraft(path string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.keep() // a prompt that was sent since leaves the draft's file
	if t.draft == path {
		return
	}
	before, held := t.draft, t.kept
	t.draft, t.kept = path, ""
	if text, err := os.ReadFile(path); err == nil && len(text) > 0 {
		t.kept = string(text)
		list := strings.Split(t.kept, promptEnd)
		t.put(list[len(list)-1])
		t.putBack(list[:len(list)-1])
	}
	if t.keep() && before != "" && held != "" {
		_ = os.Remove(before) // what it held has moved
	}
	t.changed()
}

// promptEnd stands between two prompts in the file of the draft, and is in none.
const promptEnd = "\x00"

// keep writes the draft to its file, behind prompts that wait. It reports whether the file holds them. What could not be
// written is written with the next change.
func (t *Terminal) keep() (kept bool) {
	if t.draft == "" {
		return false
	}
	text := t.drafted().written()
	if t.find.on {
		text = t.compose.whole(t.find.before.text)
	}
	list := slices.Concat(t.taken, t.queue)
	if text != "" || len(list) == 0 {
		list = append(list, text)
	}
	for i := range list {
		list[i] = strings.ReplaceAll(list[i], promptEnd, "")
	}
	text = strings.Join(list, promptEnd)
	if text == t.kept {
		return true
	}
	if text == "" {
		_ = os.Remove(t.draft)
		t.kept = text
		return true
	}
	_ = os.MkdirAll(filepath.Dir(t.draft), 0o700)
	part := t.draft + ".part"
	if os.WriteFile(part, []byte(text), 0o600) != nil || os.Rename(part, t.draft) != nil {
		return false
	}
	t.kept = text
	return true
}
