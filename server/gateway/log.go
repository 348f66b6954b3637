// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

// What the log of a session says about a response or a conversation: the entries, and what they come to.

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
)

// stored is an entry about an object. The items that belong to it follow it.
type stored struct {
	Kind string `json:"type"`
	// ID is the object's. The same entry in a fork is about the session that was forked.
	ID string `json:"object_id"`
	// Object is the response without its output, or the conversation.
	Object     jsontext.Value `json:"object,omitempty"`
	Items      int            `json:"items,omitzero"` // how many follow
	At         int            `json:"at,omitzero"`    // their position in the output
	Previous   string         `json:"previous,omitempty"`
	Before     int            `json:"before,omitzero"`
	Background bool           `json:"background,omitzero"`
	Streamed   bool           `json:"streamed,omitzero"`
	Made       string         `json:"made,omitempty"` // [server.StoredObject].Note
	Removed    string         `json:"removed,omitempty"`
	Left       string         `json:"left,omitempty"` // the response whose items are added
	// Events are events of the response, as text, so that their bytes stay. Older versions
	// have all of them in the entry about the end. Else they are in pages before it, and Count
	// is how many the end has of them.
	Events []string `json:"events,omitempty"`
	First  int      `json:"first_event,omitzero"` // of a page
	Count  int      `json:"event_count,omitzero"`
	Pages  []page   `json:"pages,omitempty"` // of all events, in the last entry
}

// page is a place of events: the entry, and the number of the first one in it.
type page struct {
	Entry int64 `json:"entry"`
	From  int   `json:"from"`
}

const (
	notes            = "antiphon:gateway_" // how the kinds begin
	kindBegin        = "antiphon:gateway_response"
	kindOutput       = "antiphon:gateway_output"
	kindJoins        = "antiphon:gateway_response_joins" // its conversation, before the end
	kindEnd          = "antiphon:gateway_response_end"
	kindConversation = "antiphon:gateway_conversation"
	kindAdded        = "antiphon:gateway_items"
	kindRemoved      = "antiphon:gateway_item_removed"
	kindEvents       = "antiphon:gateway_events"
	kindPages        = "antiphon:gateway_event_pages"
)

// sessionOf returns the session of an object.
func sessionOf(id string) string {
	sum := sha256.Sum256([]byte(id))
	return objects + hex.EncodeToString(sum[:16])
}

// objects is the beginning of the names of the sessions of objects.
const objects = "gateway-"

// isObject reports whether a session may be that of an object.
func isObject(name string) bool {
	sum, err := hex.DecodeString(strings.TrimPrefix(name, objects))
	return err == nil && strings.HasPrefix(name, objects) && len(sum) == 16
}

// bodies returns the entries for an object's change.
func (n stored) bodies(items []item.Item) ([]session.Body, error) {
	n.Items = len(items)
	text, err := json.Marshal(n)
	if err != nil {
		return nil, err
	}
	it, err := item.Parse(text)
	if err != nil {
		return nil, err
	}
	list := []session.Body{session.Note{Item: it}}
	for _, it := range items {
		list = append(list, session.InputItem{Item: it})
	}
	return list, nil
}

// folded is what a log says.
type folded struct {
	begin, end, talk stored
	events           []string    // in pages
	items            []item.Item // all of them
	input            int         // how many are the input of the last response
	own              int         // how many of these are its own
}

// fold reads a log from an entry on.
func fold(entries []session.Entry) (f folded, err error) {
	for i := 0; i < len(entries); i++ {
		n, ok, err := noteOf(entries[i])
		if err != nil {
			return f, err
		}
		if !ok {
			continue
		}
		var items []item.Item
		for ; len(items) < n.Items && i+1 < len(entries); i++ {
			given, ok := entries[i+1].Body.(session.InputItem)
			if !ok {
				break
			}
			it, err := given.Item.Whole()
			if err != nil {
				return f, err
			}
			items = append(items, it)
		}
		f.apply(n, items)
	}
	return f, nil
}

func (f *folded) apply(n stored, items []item.Item) {
	switch n.Kind {
	case kindBegin:
		f.begin, f.end, f.events = n, stored{}, nil
		f.items = append(f.items, items...)
		f.input, f.own = len(f.items), len(items)
	case kindOutput:
		f.begin.Made = cmp.Or(n.Made, f.begin.Made)
		f.items = slices.Insert(f.items, f.input+min(n.At, len(f.items)-f.input), items...)
	case kindEvents:
		f.events = append(f.events[:min(n.First, len(f.events))], n.Events...) // a write that failed may be there too
	case kindEnd:
		if f.end = n; n.Count > 0 && n.Count == len(f.events) {
			f.end.Events = f.events
		}
		f.events = nil
		f.items = append(f.items[:min(f.input, len(f.items)):min(f.input, len(f.items))], items...)
	case kindConversation:
		f.talk = n
		f.items = append(f.items, items...)
	case kindAdded:
		f.items = append(f.items, items...)
	case kindRemoved:
		if i := slices.IndexFunc(f.items, func(it item.Item) bool { return it.ID() == n.Removed }); i >= 0 {
			f.items = slices.Delete(slices.Clone(f.items), i, i+1)
		}
	}
}
