// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/item"
)

// relay is what a [Writer] knows about the response of an endpoint whose events it passes
// on.
type relay struct {
	acc   api.Accumulator // tells which item an event is about, and what the items are
	items []relayed       // by their number
	order []int           // the numbers of the items of the output
	at    int             // the number of the item that is being written
	open  int             // the number of the item that is being rebuilt
	done  item.Item       // the final form of that item, as it came
	// published are the types of events that were seen, and whether the API has them.
	published map[api.EventType]bool
}

// relayed is an item of the endpoint.
type relayed struct {
	state relayState
	id    string
	part  bool // a part began here, because the endpoint left out its beginning
}

type relayState int

const (
	unseen  relayState = iota
	asSent             // its events are passed on
	rebuilt            // its beginning was missing: the Writer makes its events
	over               // nothing more about it is passed on
)

// Relay passes on an event of another endpoint's response. Items keep their bytes, and so
// do events, except for their numbers and what the schema requires of them: members that a
// server left out are added, and so are events that begin an item or a part, and end an
// item. Events that the API does not have are left out.
//
// The events that begin the response only call Begin, and those that end it call Complete
// or Incomplete with the usage. Relay ignores events that report a failure: the backend
// returns an error in their place. A response that is relayed must not be written by the
// other methods as well, except for its end.
func (w *Writer) Relay(ev api.Event) error {
	switch ev.Type {
	case api.EventCreated, api.EventInProgress, api.EventQueued:
		return w.Begin("")
	case api.EventFailed, api.EventError, api.EventCancelled, "":
		return w.err
	}
	if err := w.Begin(""); err != nil {
		return err
	}
	if w.relay == nil {
		w.relay = new(relay)
	}
	r := w.relay
	if !r.has(&ev) {
		return nil
	}
	done, err := r.acc.Add(ev)
	if err != nil {
		return &Error{Status: http.StatusBadGateway, Code: serverError, Message: "The model's server sent an event that cannot be read."}
	}
	if ev.Terminal() {
		return w.relayEnd(&ev, done)
	}
	n, about := r.acc.About()
	switch {
	case !about && ev.ItemID != "":
		return w.err // the item was not begun, and what it lacks comes with its end
	case !about:
		return w.send(w.corrected(ev, -1))
	}
	for n >= len(r.items) {
		r.items = append(r.items, relayed{})
	}
	switch it := &r.items[n]; {
	case it.state == over:
	case ev.Type == api.EventItemAdded && it.state == unseen:
		if err := w.turnTo(n); err != nil {
			return err
		}
		if first, err := ev.Item(); err == nil {
			it.id = first.ID()
		}
		it.state = asSent
		return w.send(w.corrected(ev, n))
	case ev.Type == api.EventItemAdded:
	case ev.Type == api.EventItemDone:
		for _, last := range done {
			if err := w.relayDone(n, last, ev); err != nil {
				return err
			}
		}
	case it.state == asSent:
		return w.relayInside(it, n, ev)
	default:
		return w.rebuild(it, n, ev)
	}
	return w.err
}

// has reports whether the API has an event.
func (r *relay) has(ev *api.Event) bool {
	switch ev.Type { // most streams have no others
	case api.EventItemAdded, api.EventItemDone, api.EventPartAdded, api.EventPartDone, api.EventTextDelta, api.EventTextDone,
		api.EventArgumentsDelta, api.EventArgumentsDone, api.EventCompleted, api.EventIncomplete:
		return true
	}
	known, seen := r.published[ev.Type]
	if !seen {
		known = ev.Type.Known()
		if r.published == nil {
			r.published = map[api.EventType]bool{}
		}
		r.published[ev.Type] = known
	}
	return known
}

// relayInside passes on an event inside of an item whose beginning was passed on.
func (w *Writer) relayInside(it *relayed, n int, ev api.Event) error {
	switch ev.Type {
	case api.EventPartAdded:
		it.part = true
	case api.EventTextDelta:
		if !it.part { // clients add the text to a part that they know
			it.part = true
			first := api.PartAddedEvent{PartEvent: api.PartEvent{ItemEvent: api.ItemEvent{EventHead: w.head(), ItemID: it.id, OutputIndex: n}, ContentIndex: max(ev.ContentIndex, 0)}, Part: textPart("")}
			if err := w.tell(&first); err != nil {
				return err
			}
		}
	case api.EventPartDone:
		it.part = false
	}
	return w.send(w.corrected(ev, n))
}

// rebuild writes an event inside of an item without a beginning. What the deltas lack,
// the end of the item adds.
func (w *Writer) rebuild(it *relayed, n int, ev api.Event) error {
	var first item.Value
	switch ev.Type {
	case api.EventTextDelta:
		first = &item.Message{ID: ev.ItemID}
	case api.EventSummaryTextDelta:
		first = &item.Reasoning{ID: ev.ItemID}
	default:
		return w.err // a call needs its name, which comes with its end
	}
	if it.state == unseen {
		if err := w.turnTo(n); err != nil {
			return err
		}
		if err := w.Open(first); err != nil {
			return err
		}
		it.state, it.id, w.relay.open = rebuilt, w.open.id, n
	}
	if w.open == nil || w.open.id != it.id {
		return w.err
	}
	w.relay.at = n
	return w.Delta(strings.ToValidUTF8(ev.Delta, "\uFFFD"))
}

// relayDone ends an item. ev is the event about it, or the last event of the response.
func (w *Writer) relayDone(n int, last item.Item, ev api.Event) error {
	r := w.relay
	it := &r.items[n]
	before := it.state
	it.state = over
	r.at, r.done = n, last
	switch {
	case before == over:
		return w.err
	case before == asSent && ev.Type == api.EventItemDone:
		w.keep(last)
		return w.send(w.corrected(ev, n))
	case before == asSent:
		return w.done(last)
	case before == rebuilt && w.open != nil && w.open.id == it.id:
		return w.CloseAs(last)
	}
	if err := w.turnTo(n); err != nil {
		return err
	}
	r.done = last
	return w.Item(last)
}

// breakOff ends the messages and the reasoning that the endpoint or the backend had begun, with the
// text so far. A call that broke off is left out, because nobody can answer it.
func (w *Writer) breakOff() {
	r := w.relay
	if r == nil {
		w.closeHalf()
		return
	}
	for _, part := range r.acc.Left() {
		it, err := part.Item.With("status", item.Quote(item.StatusIncomplete))
		kind := it.Type()
		if err == nil && (kind == item.TypeMessage || kind == item.TypeReasoning) && part.Number >= 0 && part.Number < len(r.items) {
			_ = w.relayDone(part.Number, it, api.Event{}) // the error is kept
		}
	}
	_ = w.turnTo(len(r.items))
}

// turnTo closes an item that is being rebuilt, before item n is written.
func (w *Writer) turnTo(n int) error {
	r := w.relay
	if w.open != nil {
		r.at, r.done = r.open, item.Item{}
		r.items[r.open].state = over
		_ = w.Close() // the error is kept
	}
	r.at, r.open = n, n
	return w.err
}

// keep adds an item to the output, in the order of the items.
func (w *Writer) keep(it item.Item) {
	at := len(w.response.Output)
	if r := w.relay; r != nil {
		for at > 0 && r.order[at-1] > r.at {
			at--
		}
		r.order = append(r.order[:at:at], append([]int{r.at}, r.order[at:]...)...)
	}
	w.response.Output = append(w.response.Output[:at:at], append([]item.Item{it}, w.response.Output[at:]...)...)
}

// relayEnd ends the response like the endpoint did.
func (w *Writer) relayEnd(ev *api.Event, done []item.Item) error {
	r := w.relay
	for _, last := range done {
		n := r.acc.Number(last)
		for n >= len(r.items) {
			r.items = append(r.items, relayed{})
		}
		if n < 0 {
			continue
		}
		if err := w.relayDone(n, last, *ev); err != nil {
			return err
		}
	}
	if err := w.turnTo(len(r.items)); err != nil {
		return err
	}
	end, _ := r.acc.Response() // the accumulator has read it
	if end.Usage != nil {
		w.Usage(wholeUsage(*end.Usage))
	}
	if end.ServiceTier != "" {
		w.response.Extra = slices.Clone(w.response.Extra)
		w.response.Extra.Set("service_tier", item.Quote(end.ServiceTier))
	}
	if ev.Type == api.EventIncomplete || end.Status == item.StatusIncomplete {
		reason := "max_output_tokens"
		if end.Incomplete != nil && end.Incomplete.Reason != "" {
			reason = end.Incomplete.Reason
		}
		return w.Incomplete(reason)
	}
	return w.Complete()
}

// wholeUsage adds what the schema requires and many servers leave out.
func wholeUsage(u api.Usage) api.Usage {
	in := api.InputTokensDetails{}
	if u.InputDetails != nil {
		in = *u.InputDetails
	}
	if in.CacheWriteTokens == nil {
		in.CacheWriteTokens = new(int64)
	}
	if u.InputDetails = &in; u.OutputDetails == nil {
		u.OutputDetails = &api.OutputTokensDetails{}
	}
	return u
}

// corrected returns an event with its number, its item's position n, which is -1 if it has
// none, and the members that servers leave out. An event that has all of them is returned
// as it came.
func (w *Writer) corrected(ev api.Event, n int) api.Event {
	var changes []item.Member
	set := func(name string, v item.JSON) { changes = append(changes, item.Member{Name: name, Value: v}) }
	if ev.SequenceNumber != w.events {
		set("sequence_number", item.JSON(strconv.FormatInt(w.events, 10)))
	}
	if n >= 0 && ev.OutputIndex != n {
		set("output_index", item.JSON(strconv.Itoa(n)))
	}
	if w.StreamID != "" {
		set("stream_id", item.Quote(w.StreamID))
	}
	inItem := n >= 0 && ev.Type != api.EventItemAdded && ev.Type != api.EventItemDone
	if inItem && ev.ItemID == "" {
		set("item_id", item.Quote(w.relay.items[n].id))
	}
	switch ev.Type {
	case api.EventTextDelta, api.EventTextDone:
		if !strings.Contains(ev.JSON(), `"logprobs"`) {
			set("logprobs", "[]")
		}
		fallthrough
	case api.EventPartAdded, api.EventPartDone, api.EventRefusalDelta, api.EventRefusalDone, api.EventReasoningTextDelta, api.EventReasoningTextDone:
		if ev.ContentIndex < 0 {
			set("content_index", "0")
		}
	case api.EventSummaryPartAdded, api.EventSummaryPartDone, api.EventSummaryTextDelta, api.EventSummaryTextDone:
		if ev.SummaryIndex < 0 {
			set("summary_index", "0")
		}
	}
	if len(changes) == 0 {
		return ev
	}
	object, err := item.ParseString(ev.JSON())
	for _, m := range changes {
		if err == nil {
			object, err = object.With(m.Name, m.Value)
		}
	}
	if err == nil {
		var own api.Event
		if own, err = api.ParseEventString(object.JSON()); err == nil {
			return own
		}
	}
	w.err = err
	return ev
}
