// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"fmt"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/internal/jsonx"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
)

// eventJSON is the JSON form of an event. Entry and Event are written by hand,
// because their bytes must stay exactly as they are.
type eventJSON struct {
	Type     string         `json:"type"`
	Subagent *Subagent      `json:"subagent,omitempty"`
	Entry    jsontext.Value `json:"entry,omitempty"`
	Kind     string         `json:"kind,omitempty"`

	ItemID string `json:"item_id,omitempty"`
	Part   int    `json:"part,omitzero"`
	Text   string `json:"text,omitempty"`

	Turn    int      `json:"turn,omitzero"`
	CallID  string   `json:"call_id,omitempty"`
	Tool    string   `json:"tool,omitempty"`
	By      string   `json:"by,omitempty"`
	Tokens  int64    `json:"tokens,omitzero"`
	Items   int      `json:"items,omitzero"`
	Took    int64    `json:"took_ns,omitzero"`
	Error   string   `json:"error,omitempty"`
	LeftOut int      `json:"left_out,omitzero"`
	Kept    []string `json:"kept,omitempty"`
	Wait    int64    `json:"wait_ns,omitzero"`
	Reason  string   `json:"reason,omitempty"`
	Retry   bool     `json:"retry,omitzero"`
	Handoff string   `json:"handoff,omitempty"`

	Pending *PendingApproval `json:"pending,omitempty"`
	Cache   *Cache           `json:"cache,omitempty"`
	Totals  *Totals          `json:"totals,omitempty"`
	All     *Usage           `json:"all,omitempty"` // Totals.All, for other programs; ParseEvent ignores it

	Tripwire *Tripwire      `json:"tripwire,omitempty"`
	Event    jsontext.Value `json:"event,omitempty"`
}

// The values of the member type.
const (
	typeRecorded = "recorded"
	typeDelta    = "delta"
	typeProgress = "progress"
)

var eventOptions = json.JoinOptions(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))

// AppendEvent appends an event as one line of JSON, without a line end, in the form
// that docs/events.md describes. It writes an entry like [session.AppendEntry], and
// an event of the model as it was received. If the value cannot be written,
// AppendEvent returns dst unchanged and an error.
func AppendEvent(dst []byte, ev Event) ([]byte, error) {
	out, err := appendEvent(dst, ev)
	if err != nil {
		return dst, fmt.Errorf("agent: writing an event: %w", err)
	}
	return out, nil
}

func appendEvent(dst []byte, ev Event) ([]byte, error) {
	var of *Subagent
	if s, ok := ev.(SubagentEvent); ok {
		of, ev = &s.Subagent, s.Event
	}
	switch ev := ev.(type) {
	case Recorded:
		dst, err := beginEvent(dst, typeRecorded, of)
		if err != nil {
			return nil, err
		}
		dst, err = session.AppendEntry(append(dst, `,"entry":`...), ev.Entry)
		return append(dst, '}'), err
	case Delta:
		dst, err := beginEvent(dst, typeDelta, of)
		if err != nil {
			return nil, err
		}
		dst = append(append(dst, `,"kind":`...), item.Quote(string(ev.Kind))...)
		if ev.ItemID != "" {
			dst = append(append(dst, `,"item_id":`...), item.Quote(ev.ItemID)...)
		}
		if ev.Part != 0 {
			dst = fmt.Appendf(dst, `,"part":%d`, ev.Part)
		}
		// Deltas are by far the most frequent events, so they are written without
		// reflection.
		text, err := jsonx.AppendQuoted(append(dst, `,"text":`...), ev.Text)
		if err != nil {
			// The text is not valid UTF-8.
			text = append(append(dst, `,"text":`...), item.Quote(ev.Text)...)
		}
		return append(text, '}'), nil
	case Progress:
		return appendProgress(dst, ev, of)
	}
	return nil, fmt.Errorf("it is a %T", ev)
}

func beginEvent(dst []byte, typ string, of *Subagent) ([]byte, error) {
	dst = append(append(append(dst, `{"type":"`...), typ...), '"')
	if of == nil {
		return dst, nil
	}
	b, err := json.Marshal(of, eventOptions)
	return append(append(dst, `,"subagent":`...), b...), err
}

func appendProgress(dst []byte, p Progress, of *Subagent) ([]byte, error) {
	var all *Usage
	if p.Totals != nil {
		sum := p.Totals.All()
		all = &sum
	}
	if t := p.Tripwire; t != nil && t.Value != nil {
		if _, err := json.Marshal(t.Value, eventOptions); err != nil {
			bare := *t
			bare.Value, p.Tripwire = nil, &bare
		}
	}
	b, err := json.Marshal(eventJSON{
		Type: typeProgress, Subagent: of, Kind: string(p.Kind), Turn: p.Turn, CallID: p.CallID, Tool: p.Tool,
		By: p.By, Tokens: p.Tokens, Items: p.Items, Took: int64(p.Took), Error: p.Error, LeftOut: p.LeftOut, Kept: p.Kept,
		Wait: int64(p.Wait), Reason: p.Reason, Retry: p.Retry, Handoff: p.Handoff, Pending: p.Pending, Cache: p.Cache, Totals: p.Totals, All: all, Tripwire: p.Tripwire,
	}, eventOptions)
	// The event is the last member, and its bytes stay as they were received.
	if err != nil || p.Event == nil {
		return append(dst, b...), err
	}
	dst = append(append(dst, b[:len(b)-1]...), `,"event":`...)
	return append(append(dst, onOneLine(p.Event.JSON())...), '}'), nil
}

// onOneLine replaces the line breaks of a JSON text by spaces. In valid JSON they
// occur only between tokens, so the value stays the same.
func onOneLine(s string) string {
	return strings.NewReplacer("\n", " ", "\r", " ").Replace(s)
}

// ParseEvent reads an event that [AppendEvent] wrote. It copies the data that it
// needs from line. It ignores unknown members and accepts unknown kinds, so that an
// old reader can read events of a newer program. For an entry of a newer program the
// error wraps [session.ErrNewer].
func ParseEvent(line []byte) (Event, error) {
	var w eventJSON
	if err := json.Unmarshal(line, &w, eventOptions); err != nil {
		return nil, fmt.Errorf("agent: reading an event: %w", err)
	}
	ev, err := w.event()
	if err != nil {
		return nil, fmt.Errorf("agent: reading an event: %w", err)
	}
	if w.Subagent != nil {
		ev = SubagentEvent{*w.Subagent, ev}
	}
	return ev, nil
}

func (w *eventJSON) event() (Event, error) {
	switch w.Type {
	case typeRecorded:
		e, err := session.ParseEntry(w.Entry)
		return Recorded{e}, err
	case typeDelta:
		return Delta{Kind: DeltaKind(w.Kind), ItemID: w.ItemID, Part: w.Part, Text: w.Text}, nil
	case typeProgress:
		p := Progress{
			Kind: ProgressKind(w.Kind), Turn: w.Turn, CallID: w.CallID, Tool: w.Tool, By: w.By, Tokens: w.Tokens, Items: w.Items,
			Took: time.Duration(w.Took), Error: w.Error, LeftOut: w.LeftOut, Kept: w.Kept, Wait: time.Duration(w.Wait), Reason: w.Reason, Retry: w.Retry,
			Handoff: w.Handoff, Pending: w.Pending, Cache: w.Cache, Totals: w.Totals, Tripwire: w.Tripwire,
		}
		if w.Event == nil {
			return p, nil
		}
		ev, err := api.ParseEvent(w.Event)
		p.Event = &ev
		return p, err
	}
	return nil, fmt.Errorf("its type is %q: want recorded, delta or progress", w.Type)
}
