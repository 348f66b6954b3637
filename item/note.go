// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package item

import "context"

// Note is something about a stream that its reader may want to know and that is
// not an error: the events do not agree with each other, or some are missing.
// The items are right as far as anybody can tell. See [WithNotes].
type Note struct {
	Kind NoteKind
	// Event is the type of the delta events of the text that it is about, or of
	// the event; "" where it is about none.
	Event EventType
	// ItemID, OutputIndex and CallID name the item, where the events did; an
	// unknown index is -1.
	ItemID      string
	OutputIndex int
	CallID      string
	// ContentIndex is the text's part of the item, or of its summary.
	ContentIndex int
	// Text says it in a sentence for people. It may quote the reply.
	Text string
	// Rest is the end of the text that was in no delta, of a NoteExtends or a
	// NoteHalf.
	Rest string
}

// NoteKind says what a [Note] is about.
type NoteKind string

// The kinds of notes.
const (
	// NoteExtends: the whole text goes on after what the deltas said.
	NoteExtends NoteKind = "extends"
	// NoteDiffers: the whole text, as a done event has it, is another one than what
	// the deltas said. It is the one that counts.
	NoteDiffers NoteKind = "differs"
	// NoteFinalDiffers: the response's last event, or another done event, has another
	// text of an item than its done event. That of the done event counts, which was
	// there first.
	NoteFinalDiffers NoteKind = "final_differs"
	// NoteLost: a reply said something that no item holds. Text quotes it, or names
	// where it stood.
	NoteLost NoteKind = "lost"
	// NoteHalf: a text ended in half a character, which is U+FFFD.
	NoteHalf NoteKind = "half"
	// NoteGap: numbers of events are missing.
	NoteGap NoteKind = "gap"
	// NoteRepeat: an event has a number that an earlier one had.
	NoteRepeat NoteKind = "repeat"
	// NoteSameCallID: two calls have one call id.
	NoteSameCallID NoteKind = "same_call_id"
	// NoteSkipped: something in the stream was not an event of the API, and was
	// left out.
	NoteSkipped NoteKind = "skipped"
	// NoteWholeHistory: a transport that sends what is new alone, where it can,
	// sends the whole history with each request.
	NoteWholeHistory NoteKind = "whole_history"
)

type notesKey struct{}

// WithNotes returns a context whose streams report what is odd about them. The
// clients of this module call take on the goroutine that ranges over the stream,
// before they yield the event that shows it; a stream of one context must not
// outlive what take needs. Where no context asks for notes, nothing is compared,
// and what is skipped is skipped without a word.
func WithNotes(ctx context.Context, take func(Note)) context.Context {
	return context.WithValue(ctx, notesKey{}, take)
}

// NotesOf returns what takes the notes of a context, or nil. It is for clients.
func NotesOf(ctx context.Context) func(Note) {
	take, _ := ctx.Value(notesKey{}).(func(Note))
	return take
}
