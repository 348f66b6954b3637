// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"fmt"
	"sync"
	"time"

	"github.com/antiphon-go/antiphon/item"
)

// AppendEntry appends e as one line of JSON without its end: an object with seq,
// time, kind and what the kind says. An item stands in it byte for byte, or, if
// it holds newlines, as a JSON string of its text. The error is about a value
// that cannot be written, such as a body of a type that is not listed at [Body];
// then dst is returned as it was.
func AppendEntry(dst []byte, e Entry) ([]byte, error) { return appendEntry(dst, e, nil) }

// ParseEntry reads what [AppendEntry] appended, from a copy of line. What a
// newer program wrote, a kind or a member that this one does not know, is an
// error that wraps [ErrNewer] and names it.
func ParseEntry(line []byte) (Entry, error) { return ParseEntryString(string(line)) }

// ParseEntryString is [ParseEntry] without the copy: the entry shares the
// memory of line.
func ParseEntryString(line string) (Entry, error) { return parseEntry(line, nil) }

// Split writes and reads entries whose items' large payloads are kept apart.
type Split struct {
	// Min is the number of decoded bytes from which on a payload is cut out.
	Min int
	// Keep is told of each payload that was cut out while an entry is written.
	Keep func(cut item.Cut, payload func() ([]byte, error)) error
	// Join makes the item of what was left of it and the payloads' places.
	Join func(skeleton string, cuts []item.Cut) (item.Item, error)
}

// AppendEntry is as the function of that name.
func (s *Split) AppendEntry(dst []byte, e Entry) ([]byte, error) { return appendEntry(dst, e, s) }

// ParseEntry is as [ParseEntryString].
func (s *Split) ParseEntry(line string) (Entry, error) { return parseEntry(line, s) }

func appendEntry(dst []byte, e Entry, split *Split) ([]byte, error) {
	c := codec{out: append(dst, '{'), split: split}
	c.int64("seq", &e.Seq)
	c.time("time", &e.Time)
	c.write(e.Body)
	if c.err != nil {
		return dst, fmt.Errorf("entry %d: %w", e.Seq, c.err)
	}
	return append(c.out, '}'), nil
}

func parseEntry(line string, split *Split) (Entry, error) {
	c := codecs.Get().(*codec)
	defer c.free()
	c.decoding, c.split = true, split
	c.open(line)
	var e Entry
	var kind string
	c.int64("seq", &e.Seq)
	c.time("time", &e.Time)
	c.text("kind", &kind)
	if c.err == nil {
		e.Body = c.read(kind)
		c.close(kind)
	}
	if c.err != nil {
		return Entry{}, fmt.Errorf("entry %d: %w", e.Seq, c.err)
	}
	return e, nil
}

// codecs are kept for reading: a long log has many entries.
var codecs = sync.Pool{New: func() any { return new(codec) }}

func (c *codec) free() {
	clear(c.members)
	*c = codec{members: c.members[:0]}
	codecs.Put(c)
}

// kind is one kind of body.
type kind struct {
	name  string
	is    func(b Body) bool
	write func(c *codec, b Body)
	read  func(c *codec) Body
}

func of[T Body, P interface {
	*T
	fielder
}](name string) kind {
	return kind{name,
		func(b Body) bool { _, ok := b.(T); return ok },
		func(c *codec, b Body) {
			v := b.(T)
			P(&v).fields(c)
		},
		func(c *codec) Body {
			var v T
			P(&v).fields(c)
			return v
		},
	}
}

// kinds are all kinds of bodies.
var kinds = [...]kind{
	of[Given]("given"),
	of[RunStarted]("run_started"),
	of[TurnStarted]("turn_started"),
	of[Received]("received"),
	of[TurnEnded]("turn_ended"),
	of[ApprovalAsked]("approval_asked"),
	of[Approval]("approval"),
	of[CallStarted]("call_started"),
	of[Nested]("nested"),
	of[Paused]("paused"),
	of[Answered]("answered"),
	of[Withdrawn]("withdrawn"),
	of[ReasoningDropped]("reasoning_dropped"),
	of[Quarantined]("quarantined"),
	of[Compacted]("compacted"),
	of[Restored]("restored"),
	of[Collapsed]("collapsed"),
	of[StopAsked]("stop_asked"),
	of[Stopped]("stopped"),
	of[Note]("note"),
}

// Kind returns the name of the body's kind, as it is written: that of its type
// in lower case, with underscores. It is "" for nil.
func Kind(b Body) string {
	for i := range kinds {
		if kinds[i].is(b) {
			return kinds[i].name
		}
	}
	return ""
}

// write appends the kind and the members of a body.
func (c *codec) write(b Body) {
	for i := range kinds {
		if k := &kinds[i]; k.is(b) {
			c.text("kind", &k.name)
			k.write(c, b)
			return
		}
	}
	c.failf("a body of type %T cannot be written", b)
}

// read returns the body of a kind.
func (c *codec) read(name string) Body {
	for i := range kinds {
		if kinds[i].name == name {
			return kinds[i].read(c)
		}
	}
	if name == "" {
		c.failf("it has no kind")
	}
	c.fail(fmt.Errorf("%w: kind %q", ErrNewer, name))
	return nil
}

// fielder names the members of a body, or of a part of one, for both
// directions. What is zero is left out; items come last.
type fielder interface{ fields(c *codec) }

func (b *Given) fields(c *codec)       { c.item("item", &b.Item) }
func (b *RunStarted) fields(*codec)    {}
func (b *TurnStarted) fields(c *codec) { c.int("turn", &b.Turn) }

func (b *Received) fields(c *codec) {
	c.int("turn", &b.Turn)
	c.bool("partial", &b.Partial)
	c.item("item", &b.Item)
}

func (b *TurnEnded) fields(c *codec) {
	c.int("turn", &b.Turn)
	c.text("response_id", &b.ResponseID)
	c.text("status", &b.Status)
	c.text("reason", &b.Reason)
	c.text("class", &b.Class)
	c.usage("usage", &b.Usage)
	c.int64("refused", &b.Refused)
	c.float("cost", &b.Cost)
}

func (b *ApprovalAsked) fields(c *codec) {
	c.text("call_id", &b.CallID)
	c.int("number", &b.Number)
	c.text("tool", &b.Tool)
	c.text("arguments", &b.Arguments)
	c.bool("custom", &b.Custom)
	c.text("reason", &b.Reason)
	list(c, "rules", &b.Rules)
}

func (b *Approval) fields(c *codec) {
	c.text("call_id", &b.CallID)
	c.int("number", &b.Number)
	c.bool("allowed", &b.Allowed)
	c.text("reason", &b.Reason)
	c.text("by", &b.By)
	c.text("edited", &b.Edited)
	part(c, "remember", &b.Remember)
}

func (r *Rule) fields(c *codec) {
	c.text("verdict", &r.Verdict)
	c.text("tool", &r.Tool)
	c.text("member", &r.Member)
	c.texts("prefix", &r.Prefix)
	c.text("under", &r.Under)
}

func (b *CallStarted) fields(c *codec) {
	c.text("call_id", &b.CallID)
	c.text("arguments", &b.Arguments)
	c.text("session", &b.Session)
	c.bool("repeatable", &b.Repeatable)
}

func (b *Nested) fields(c *codec) {
	c.text("call_id", &b.CallID)
	c.text("session", &b.Session)
	c.int("turns", &b.Turns)
	c.int64("tokens", &b.Tokens)
	c.float("cost", &b.Cost)
}

func (b *Paused) fields(c *codec) {
	c.text("call_id", &b.CallID)
	c.text("session", &b.Session)
}

func (b *Answered) fields(c *codec) {
	c.text("call_id", &b.CallID)
	c.bool("failed", &b.Failed)
	c.bool("edited", &b.Edited)
	c.item("item", &b.Item)
}

func (b *Withdrawn) fields(c *codec) {
	c.text("call_id", &b.CallID)
	c.text("reason", &b.Reason)
}

func (b *ReasoningDropped) fields(c *codec) { c.text("reason", &b.Reason) }

func (b *Quarantined) fields(c *codec) {
	c.int64("entry", &b.Seq)
	c.text("reason", &b.Reason)
}

func (b *Compacted) fields(c *codec) {
	c.int64("through", &b.Through)
	c.int64s("kept", &b.Kept)
	c.text("by", &b.By)
	c.text("failure", &b.Failure)
	c.int64("before", &b.Before)
	c.int64("after", &b.After)
	c.usage("usage", &b.Usage)
	c.float("cost", &b.Cost)
	c.items("items", &b.Items)
}

func (b *Restored) fields(c *codec) { c.int64("entry", &b.Seq) }

func (b *Collapsed) fields(c *codec) {
	c.int64s("entries", &b.Seqs)
	c.int64("by", &b.By)
}

func (b *StopAsked) fields(c *codec) {
	c.text("why", &b.Why)
	c.bool("after_turn", &b.AfterTurn)
	c.text("detail", &b.Detail)
}

func (b *Stopped) fields(c *codec) {
	c.text("why", &b.Why)
	c.text("detail", &b.Detail)
}

func (b *Note) fields(c *codec) { c.item("item", &b.Item) }

// time is RFC 3339 in UTC.
func (c *codec) time(name string, v *time.Time) {
	if !c.decoding {
		if !v.IsZero() {
			c.name(name)
			c.out = append(v.UTC().AppendFormat(append(c.out, '"'), time.RFC3339Nano), '"')
		}
		return
	}
	if value := c.take(name); value != "" {
		text, _ := unquoted(value)
		t, err := time.Parse(time.RFC3339Nano, text)
		if err != nil {
			c.failf("%s: no time", name)
		}
		*v = t.UTC()
	}
}
