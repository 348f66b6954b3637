// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/session"
)

// takeNote receives the client's notes about oddities of the reply. It is called
// within the stream; see [listener.notes].
func (r *Run) takeNote(n api.Note) { r.heard.notes = append(r.heard.notes, n) }

// tellNotes reports the client's notes. Text that arrived without deltas is yielded
// as a delta, so that the deltas add up to the text of the following item. Everything
// else is a notice.
func (l *listener) tellNotes() error {
	notes := l.notes
	l.notes = nil
	for _, n := range notes {
		if n.Rest != "" && l.rest(&n) && n.Kind == api.NoteExtends {
			continue
		}
		told := session.Noticed{Turn: l.seen.Turn, Kind: kindOfNotice(n), ItemID: n.ItemID, CallID: n.CallID, Text: n.Text}
		if err := l.run.notice(l.ctx, told); err != nil {
			return err
		}
	}
	return nil
}

// rest yields text that arrived without a delta. It reports false if the text would
// follow another text; a notice then says that the text differs from the deltas.
func (l *listener) rest(n *api.Note) bool {
	if l.run.quiet {
		return true
	}
	d := Delta{Kind: deltaKind(n.Event), ItemID: n.ItemID, Text: n.Rest}
	switch d.Kind {
	case DeltaText, DeltaRefusal:
		d.Kind = l.speaks(d.Kind, n.OutputIndex)
		return l.order.rest(n.Event, textNames{n.ItemID, n.OutputIndex, n.ContentIndex}, d)
	case DeltaReasoning, DeltaSummary:
		l.run.emit(d)
	}
	return true
}

// kindOfNotice returns the kind of notice for a note.
func kindOfNotice(n api.Note) string {
	switch n.Kind {
	case api.NoteDiffers, api.NoteExtends:
		switch n.Event {
		case api.EventReasoningTextDelta, api.EventSummaryTextDelta:
			return session.NoticeReasoningDiffers
		case api.EventArgumentsDelta, api.EventCustomInputDelta:
			return session.NoticeArgumentsDiffer
		}
		return session.NoticeTextDiffers
	case api.NoteFinalDiffers:
		return session.NoticeFinalDiffers
	case api.NoteLost:
		return session.NoticeTextLost
	case api.NoteHalf:
		return session.NoticeHalfCharacter
	case api.NoteGap:
		return session.NoticeEventsMissing
	case api.NoteRepeat:
		return session.NoticeEventsRepeated
	case api.NoteSameCallID:
		return session.NoticeSameCallID
	case api.NoteSkipped:
		return session.NoticeEventSkipped
	case api.NoteWholeHistory:
		return session.NoticeWholeHistory
	}
	return string(n.Kind)
}

// notice records a notice. It does not repeat a notice of the same kind about the
// same item or call within a run, because a server with an oddity shows it in every
// reply. The error is the store's.
func (r *Run) notice(ctx context.Context, n session.Noticed) error {
	if r.tells(n) {
		return nil
	}
	if err := r.record(n); err != nil {
		return err
	}
	// The hooks see a notice only after it is recorded, so that they never see one
	// that the log lacks.
	if objection := after(ctx, "Noticed", r.agent.Hooks, noticed, &n); objection != nil {
		return r.stopFor(objection)
	}
	return nil
}

// tells reports whether the run has already recorded such a notice, and remembers it.
func (r *Run) tells(n session.Noticed) bool {
	about := session.Noticed{Kind: n.Kind, ItemID: n.ItemID, CallID: n.CallID}
	switch n.Kind {
	case session.NoticeTextDiffers, session.NoticeReasoningDiffers, session.NoticeArgumentsDiffer, session.NoticeFinalDiffers:
		about.Turn = n.Turn // some servers give items no ids, or all the same id
	}
	if r.noticed[about] {
		return true
	}
	if r.noticed == nil {
		r.noticed = map[session.Noticed]bool{}
	}
	r.noticed[about] = true
	return false
}
