// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"

	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
)

// takeNote is called by the client with what is odd about the reply. It is
// called within the stream; see [listener.notes].
func (r *Run) takeNote(n item.Note) { r.heard.notes = append(r.heard.notes, n) }

// tellNotes tells what the client noted. Text that came without deltas is told as
// a delta, so that deltas add up to the text of the item that follows them; all
// else is a notice.
func (l *listener) tellNotes() error {
	notes := l.notes
	l.notes = nil
	for _, n := range notes {
		if n.Rest != "" && l.rest(&n) && n.Kind == item.NoteExtends {
			continue
		}
		told := Noticed{Turn: l.seen.Turn, Kind: kindOfNotice(n), ItemID: n.ItemID, CallID: n.CallID, Text: n.Text}
		if err := l.run.notice(l.ctx, told); err != nil {
			return err
		}
	}
	return nil
}

// rest tells text that came without a delta as one. It reports false if that would
// stand after another text: then the whole text is told to differ from what was
// shown.
func (l *listener) rest(n *item.Note) bool {
	if l.run.quiet {
		return true
	}
	switch ev := l.run.modelEvent(item.Event{Type: n.Event, ItemID: n.ItemID, Delta: n.Rest}).(type) {
	case TextDelta:
		return l.order.rest(n.Event, textNames{n.ItemID, n.OutputIndex, n.ContentIndex}, ev)
	case ReasoningDelta:
		l.run.emit(ev)
	}
	return true
}

// kindOfNotice returns the kind of notice for a note.
func kindOfNotice(n item.Note) string {
	switch n.Kind {
	case item.NoteDiffers, item.NoteExtends:
		switch n.Event {
		case item.EventReasoningTextDelta, item.EventSummaryTextDelta:
			return session.NoticeReasoningDiffers
		case item.EventArgumentsDelta, item.EventCustomInputDelta:
			return session.NoticeArgumentsDiffer
		}
		return session.NoticeTextDiffers
	case item.NoteFinalDiffers:
		return session.NoticeFinalDiffers
	case item.NoteLost:
		return session.NoticeTextLost
	case item.NoteHalf:
		return session.NoticeHalfCharacter
	case item.NoteGap:
		return session.NoticeEventsMissing
	case item.NoteRepeat:
		return session.NoticeEventsRepeated
	case item.NoteSameCallID:
		return session.NoticeSameCallID
	case item.NoteSkipped:
		return session.NoticeEventSkipped
	case item.NoteWholeHistory:
		return session.NoticeWholeHistory
	}
	return string(n.Kind)
}

// notice records a notice and then emits it. What the run has told already, of
// the same kind about the same item or call, is not repeated: a server that does
// something odd does it in every reply. The error is the store's.
func (r *Run) notice(ctx context.Context, n Noticed) error {
	if r.tells(n) {
		return nil
	}
	if err := r.record(session.Noticed(n)); err != nil {
		return err
	}
	r.emit(n)
	if objection := after(ctx, "Noticed", r.agent.Hooks, noticed, &n); objection != nil {
		return r.stopFor(objection)
	}
	return nil
}

// tells takes note that the run tells of something, and reports whether it has
// before.
func (r *Run) tells(n Noticed) bool {
	about := Noticed{Kind: n.Kind, ItemID: n.ItemID, CallID: n.CallID}
	switch n.Kind {
	case session.NoticeTextDiffers, session.NoticeReasoningDiffers, session.NoticeArgumentsDiffer, session.NoticeFinalDiffers:
		about.Turn = n.Turn // servers that name no items, or all alike
	}
	if r.noticed[about] {
		return true
	}
	if r.noticed == nil {
		r.noticed = map[Noticed]bool{}
	}
	r.noticed[about] = true
	return false
}

// quotes reports a kind of notice whose text quotes the reply that it is about.
func quotes(kind string) bool {
	switch kind {
	case session.NoticeTextDiffers, session.NoticeReasoningDiffers, session.NoticeArgumentsDiffer, session.NoticeFinalDiffers,
		session.NoticeTextLost, session.NoticeItemMissing, session.NoticeSameCallID, session.NoticeEventSkipped:
		return true
	}
	return false
}
