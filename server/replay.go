// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"cmp"
	"errors"
	"slices"
	"strings"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/item"
)

// errDiffers stops the writer's work on events that were written already, and are others.
var errDiffers = errors.New("what is written differs from the events that were written before")

// Replay tells the writer of a [Resumer] which events the response has already. The
// backend then makes the same calls as before, which reach nobody again, until the events
// are used up; a text may be in other pieces. If the calls are others, the stream of the
// response ends where it is, and the response goes on without. Call it before Begin.
func (w *Writer) Replay(events []api.Event) {
	w.before = nil
	w.replay = slices.Clip(events)
	if w.replayed != nil {
		w.replayed(events)
	}
}

// EndAs ends a response as it has ended before: r is its final state, without its output.
func (w *Writer) EndAs(r *api.Response) error {
	if r == nil {
		return w.fail(errors.New("server: the response to end as is nil"))
	}
	if w.err != nil {
		return w.err
	}
	_ = w.settle()
	final := *r
	final.Output = w.response.Output
	w.response = final
	switch r.Status {
	case item.StatusCompleted:
		return w.tell(&api.CompletedEvent{ResponseEvent: w.about()})
	case item.StatusFailed:
		return w.tell(&api.FailedEvent{ResponseEvent: w.about()})
	case item.StatusIncomplete:
		return w.tell(&api.IncompleteEvent{ResponseEvent: w.about()})
	}
	return cmp.Or(w.err, ErrCancelled)
}

// Broken returns the message or the reasoning that begins in the replayed events, and that
// the calls so far did not write: the model had not ended it when the server did. It has
// the text so far.
func (w *Writer) Broken() (it item.Item, ok bool) {
	if len(w.replay) == 0 || w.open != nil {
		return it, false
	}
	v, err := w.replay[0].Decode()
	began, is := v.(*api.ItemAddedEvent)
	if err != nil || !is {
		w.differ()
		return it, false
	}
	var text strings.Builder
	for _, ev := range w.replay[1:] {
		more, _ := deltaOf(ev)
		text.WriteString(more)
	}
	switch began.Item.Type() {
	case item.TypeMessage:
		m := &item.Message{Role: item.RoleAssistant, Status: item.StatusIncomplete, Content: item.Parts()}
		if len(w.replay) > 1 {
			m.Content = item.Parts(textPart(text.String()))
		}
		it, err = item.New(m)
	case item.TypeReasoning:
		r := &item.Reasoning{}
		if len(w.replay) > 1 {
			r.Summary = []item.Part{&item.SummaryText{Text: text.String()}}
		}
		it, err = item.New(r)
	default:
		err = errDiffers
	}
	if err != nil {
		w.differ()
		return item.Item{}, false
	}
	return it, true
}

// differ gives up the replay.
func (w *Writer) differ() { w.replay, w.differs = nil, true }

// again takes an event from the replay, and reports whether it was there.
func (w *Writer) again(ev api.Event) bool {
	if len(w.replay) == 0 {
		return false
	}
	if w.replay[0].Type != ev.Type {
		w.differ()
		return false
	}
	w.replay = w.replay[1:]
	return true
}

// catchUp adds the deltas that follow in the replay to the open part.
func (w *Writer) catchUp() {
	for len(w.replay) > 0 {
		text, ok := deltaOf(w.replay[0])
		if !ok {
			return
		}
		w.open.text.WriteString(text)
		w.open.ahead += text
		w.events++
		w.replay = w.replay[1:]
	}
}

// unsent returns the part of a text that the replay did not have.
func (o *openItem) unsent(text string) (more string, ok bool) {
	if rest, ok := strings.CutPrefix(o.ahead, text); ok {
		o.ahead = rest
		return "", true
	}
	more, ok = strings.CutPrefix(text, o.ahead)
	o.ahead = ""
	return more, ok
}

// deltaOf returns the text of an event that adds to a text.
func deltaOf(ev api.Event) (string, bool) {
	switch ev.Type {
	case api.EventTextDelta, api.EventRefusalDelta, api.EventSummaryTextDelta, api.EventCustomInputDelta, api.EventMCPArgumentsDelta, api.EventArgumentsDelta:
		return ev.Text("delta"), true
	}
	return "", false
}
