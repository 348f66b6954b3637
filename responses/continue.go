// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package responses

import (
	"github.com/antiphon-go/antiphon/item"
)

// memory is what the last response covers: the history that it answered, and
// what it said. A history that begins with just that can be sent as the id and
// the rest.
type memory struct {
	id     string
	base   string // the caller's own previous_response_id, which stands before all
	model  string
	input  *item.List // all of it, as the endpoint takes it
	output []item.Item
	stored bool    // the endpoint keeps it
	socket *socket // that it came over, nil for HTTP
	warm   bool    // there was no answer yet
}

// rest returns the items of a history that the response does not cover, and
// whether it covers the others. Items count by their bytes.
func (m *memory) rest(history *item.List) (*item.List, bool) {
	n := m.input.Len()
	covered := n + len(m.output)
	if history.Len() < covered || history.Len() == covered && !m.warm {
		return nil, false
	}
	for i := range n {
		if history.At(i) != m.input.At(i) {
			return nil, false
		}
	}
	for i, it := range m.output {
		if history.At(n+i) != it {
			return nil, false
		}
	}
	rest := new(item.List)
	for i := covered; i < history.Len(); i++ {
		rest.Append(history.At(i))
	}
	return rest, true
}

// after returns the request that goes on from m, or the whole one.
func after(m *memory, whole *item.Request) *item.Request {
	if m == nil || m.model != whole.Model || m.base != whole.PreviousResponseID {
		return whole
	}
	rest, ok := m.rest(whole.Input)
	if !ok {
		return whole
	}
	r := *whole
	r.PreviousResponseID, r.Input = m.id, rest
	return &r
}

// goesAlone reports a request that a Thread has no part in: it names its
// history itself, or there is none to leave out.
func (t *Thread) goesAlone(r *item.Request) bool {
	background := r.Background != nil && *r.Background
	return background || r.Conversation != "" || r.PreviousResponseID != "" && t.Transport == WebSocket
}

// isStored reports whether the endpoint is to keep the response.
func isStored(r *item.Request) bool {
	if v, ok := r.Extra.Get("store"); ok {
		return v != "false"
	}
	return r.Store == nil || *r.Store
}

// witness follows the events of a response, to tell what it covers.
type witness struct {
	ended  bool // as it should
	mixed  bool // items were done in another order than theirs
	place  int  // of the last item
	answer *item.Response
}

func (w *witness) hear(ev *item.Event) {
	switch ev.Type {
	case item.EventItemDone:
		if ev.OutputIndex >= 0 {
			w.mixed = w.mixed || ev.OutputIndex < w.place
			w.place = ev.OutputIndex
		}
	case item.EventIncomplete:
		w.ended = true // and may lack anything: it is no ground to stand on
	case item.EventCompleted:
		w.ended = true
		if r, err := ev.Response(); err == nil && r.ID != "" {
			w.answer = r
		}
	}
}

// covers returns what the response covers of a request, nil if that is not
// certain: the caller's history will have the items as they were done, the
// server as they stand in the response.
func (w *witness) covers(req *item.Request, done []item.Item) *memory {
	if w.answer == nil || w.mixed || !sameItems(done, w.answer.Output) {
		return nil
	}
	echo, _ := w.answer.Extra.Get("store")
	return &memory{
		id: w.answer.ID, base: req.PreviousResponseID, model: req.Model, input: req.Input.Clone(), output: done,
		stored: isStored(req) && echo != "false",
	}
}

// sameItems reports whether the items that were done are those of the response,
// in its order. Some servers leave them out of it.
func sameItems(done, output []item.Item) bool {
	if len(output) == 0 {
		return true
	}
	if len(done) != len(output) {
		return false
	}
	for i, it := range done {
		id := it.ID()
		if id != output[i].ID() || it.Type() != output[i].Type() || id == "" && it != output[i] {
			return false
		}
	}
	return true
}
