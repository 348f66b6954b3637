// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package responses

import (
	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/item"
)

// memory is the part of a conversation that the last response covers: the history it answered, and
// its output. A history that begins with exactly these items can be sent as the id and the
// remaining items.
type memory struct {
	id     string
	base   string // the caller's own previous_response_id, which comes before the history
	model  string
	input  *item.List // the whole history, as the endpoint accepts it
	output []item.Item
	stored bool    // the endpoint stores the response
	socket *socket // the socket of the response, or nil for HTTP
	warm   bool    // made by Warm, without an answer
}

// rest returns the items of a history that the response does not cover, and whether it covers the
// items before them. It compares items byte for byte.
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

// after returns the request that continues from m, or the whole request.
func after(m *memory, whole *api.Request) *api.Request {
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

// goesAlone reports whether the Client sends the request unchanged: the request refers to its own
// history, or has none that could be left out.
func (t *Chain) goesAlone(r *api.Request) bool {
	background := r.Background != nil && *r.Background
	return background || r.Conversation != "" || r.PreviousResponseID != "" && t.Transport == WebSocket
}

// isStored reports whether the request asks the endpoint to store the response.
func isStored(r *api.Request) bool {
	if v, ok := r.Extra.Get("store"); ok {
		return v != "false"
	}
	return r.Store == nil || *r.Store
}

// witness observes the events of a response to learn what it covers.
type witness struct {
	ended  bool // the response ended normally
	mixed  bool // items were not done in order
	place  int  // output index of the last item
	answer *api.Response
}

func (w *witness) hear(ev *api.Event) {
	switch ev.Type {
	case api.EventItemDone:
		if ev.OutputIndex >= 0 {
			w.mixed = w.mixed || ev.OutputIndex < w.place
			w.place = ev.OutputIndex
		}
	case api.EventIncomplete:
		w.ended = true // an incomplete response may lack items, so nothing can continue from it
	case api.EventCompleted:
		w.ended = true
		if r, err := ev.Response(); err == nil && r.ID != "" {
			w.answer = r
		}
	}
}

// covers returns the part of the conversation that the response covers, or nil if that is not
// certain: the caller's history has the items as they were done, the server has them as they are in
// the response.
func (w *witness) covers(req *api.Request, done []item.Item) *memory {
	if w.answer == nil || w.mixed || !sameItems(done, w.answer.Output) {
		return nil
	}
	echo, _ := w.answer.Extra.Get("store")
	return &memory{
		id: w.answer.ID, base: req.PreviousResponseID, model: req.Model, input: req.Input.Clone(), output: done,
		stored: isStored(req) && echo != "false",
	}
}

// sameItems reports whether the items that were done are the items of the response, in the same
// order. Some servers leave the items out of the response.
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
