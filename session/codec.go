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
func ParseEntry(line []byte) (Entry, error) { return parseEntry(string(line), nil) }

// Split writes and reads entries whose items' large payloads are kept apart.
type Split struct {
	// Min is the number of decoded bytes from which on a payload is kept apart.
	Min int
	// Keep is called with each payload that is taken out while an entry is written.
	Keep func(p item.Payload, read func() ([]byte, error)) error
	// Join makes the item of its skeleton, which is what was left of it, and the
	// payloads' places.
	Join func(skeleton string, payloads []item.Payload) (item.Item, error)
}

// AppendEntry is like the function [AppendEntry], with payloads kept apart.
func (s *Split) AppendEntry(dst []byte, e Entry) ([]byte, error) { return appendEntry(dst, e, s) }

// ParseEntry is like the function [ParseEntry], with payloads kept apart; the entry shares the line's memory.
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
	c.members.Reset()
	*c = codec{members: c.members}
	codecs.Put(c)
}

// Kind returns the name of the body's kind, as it is written: that of its type
// in lower case, with underscores. It is "" for nil.
func Kind(b Body) string {
	switch b.(type) {
	case Given:
		return "given"
	case RunStarted:
		return "run_started"
	case TurnStarted:
		return "turn_started"
	case Received:
		return "received"
	case TurnEnded:
		return "turn_ended"
	case ApprovalAsked:
		return "approval_asked"
	case Approval:
		return "approval"
	case CallStarted:
		return "call_started"
	case Nested:
		return "nested"
	case Paused:
		return "paused"
	case Answered:
		return "answered"
	case Withdrawn:
		return "withdrawn"
	case ItemsWithdrawn:
		return "items_withdrawn"
	case ReasoningDropped:
		return "reasoning_dropped"
	case Quarantined:
		return "quarantined"
	case Compacted:
		return "compacted"
	case Restored:
		return "restored"
	case Collapsed:
		return "collapsed"
	case Noticed:
		return "noticed"
	case Superseded:
		return "superseded"
	case StopAsked:
		return "stop_asked"
	case Stopped:
		return "stopped"
	case Note:
		return "note"
	}
	return ""
}

// What follows are switches and functions, and no tables or methods, so that a
// program that keeps no sessions has none of it.

// write appends the kind and the members of a body.
func (c *codec) write(b Body) {
	kind := Kind(b)
	c.text("kind", &kind)
	switch b := b.(type) {
	case Given:
		givenFields(c, &b)
	case RunStarted:
		runStartedFields(c, &b)
	case TurnStarted:
		turnStartedFields(c, &b)
	case Received:
		receivedFields(c, &b)
	case TurnEnded:
		turnEndedFields(c, &b)
	case ApprovalAsked:
		approvalAskedFields(c, &b)
	case Approval:
		approvalFields(c, &b)
	case CallStarted:
		callStartedFields(c, &b)
	case Nested:
		nestedFields(c, &b)
	case Paused:
		pausedFields(c, &b)
	case Answered:
		answeredFields(c, &b)
	case Withdrawn:
		withdrawnFields(c, &b)
	case ItemsWithdrawn:
		itemsWithdrawnFields(c, &b)
	case ReasoningDropped:
		reasoningDroppedFields(c, &b)
	case Quarantined:
		quarantinedFields(c, &b)
	case Compacted:
		compactedFields(c, &b)
	case Restored:
		restoredFields(c, &b)
	case Collapsed:
		collapsedFields(c, &b)
	case Noticed:
		noticedFields(c, &b)
	case Superseded:
		supersededFields(c, &b)
	case StopAsked:
		stopAskedFields(c, &b)
	case Stopped:
		stoppedFields(c, &b)
	case Note:
		noteFields(c, &b)
	default:
		c.failf("a body of type %T cannot be written", b)
	}
}

// read returns the body of a kind.
func (c *codec) read(kind string) Body {
	switch kind {
	case "given":
		return readBody(c, givenFields)
	case "run_started":
		return readBody(c, runStartedFields)
	case "turn_started":
		return readBody(c, turnStartedFields)
	case "received":
		return readBody(c, receivedFields)
	case "turn_ended":
		return readBody(c, turnEndedFields)
	case "approval_asked":
		return readBody(c, approvalAskedFields)
	case "approval":
		return readBody(c, approvalFields)
	case "call_started":
		return readBody(c, callStartedFields)
	case "nested":
		return readBody(c, nestedFields)
	case "paused":
		return readBody(c, pausedFields)
	case "answered":
		return readBody(c, answeredFields)
	case "withdrawn":
		return readBody(c, withdrawnFields)
	case "items_withdrawn":
		return readBody(c, itemsWithdrawnFields)
	case "reasoning_dropped":
		return readBody(c, reasoningDroppedFields)
	case "quarantined":
		return readBody(c, quarantinedFields)
	case "compacted":
		return readBody(c, compactedFields)
	case "restored":
		return readBody(c, restoredFields)
	case "collapsed":
		return readBody(c, collapsedFields)
	case "noticed":
		return readBody(c, noticedFields)
	case "superseded":
		return readBody(c, supersededFields)
	case "stop_asked":
		return readBody(c, stopAskedFields)
	case "stopped":
		return readBody(c, stoppedFields)
	case "note":
		return readBody(c, noteFields)
	case "":
		c.failf("it has no kind")
	}
	c.fail(fmt.Errorf("%w: kind %q", ErrNewer, kind))
	return nil
}

func readBody[T Body](c *codec, fields func(*codec, *T)) Body {
	var b T
	fields(c, &b)
	return b
}

// The functions below name the members of each body, for both directions. What
// is zero is left out; items come last.

func givenFields(c *codec, b *Given) { c.item("item", &b.Item) }

func runStartedFields(c *codec, b *RunStarted) {
	c.bool("resumes", &b.Resumes)
	c.text("conversation", &b.Conversation.ID)
	c.text("of_session", &b.Conversation.Session)
	part(c, "setup", &b.Setup)
}

func turnStartedFields(c *codec, b *TurnStarted) {
	c.int("turn", &b.Turn)
	c.int64("continues", &b.Continues)
	c.text("conversation", &b.InConversation)
	part(c, "setup", &b.Setup)
}

func receivedFields(c *codec, b *Received) {
	c.int("turn", &b.Turn)
	c.bool("partial", &b.Partial)
	c.item("item", &b.Item)
}

func turnEndedFields(c *codec, b *TurnEnded) {
	c.int("turn", &b.Turn)
	c.text("response_id", &b.ResponseID)
	c.text("status", &b.Status)
	c.text("reason", &b.Reason)
	c.text("class", &b.Class)
	c.usage("usage", &b.Usage)
	c.int64("refused", &b.Refused)
	c.float("cost", &b.Cost)
	c.text("model", &b.Model)
	c.text("service_tier", &b.ServiceTier)
	c.text("request_id", &b.RequestID)
	c.text("conversation", &b.InConversation)
	c.int64("window", &b.Window)
	c.text("profile", &b.Profile)
	part(c, "setup", &b.Setup)
}

func approvalAskedFields(c *codec, b *ApprovalAsked) {
	c.text("call_id", &b.CallID)
	c.int("number", &b.Number)
	c.text("tool", &b.Tool)
	c.text("arguments", &b.Arguments)
	c.bool("custom", &b.Custom)
	c.text("reason", &b.Reason)
	list(c, "rules", &b.Rules)
}

func approvalFields(c *codec, b *Approval) {
	c.text("call_id", &b.CallID)
	c.int("number", &b.Number)
	c.bool("allowed", &b.Allowed)
	c.text("reason", &b.Reason)
	c.text("by", &b.By)
	c.text("from", &b.From)
	c.text("rule", &b.Rule)
	c.text("edited", &b.Edited)
	part(c, "remember", &b.Remember)
}

func (r *Rule) fields(c *codec) {
	c.text("verdict", &r.Verdict)
	c.text("tool", &r.Tool)
	c.text("member", &r.Member)
	c.texts("prefix", &r.Prefix)
	c.text("under", &r.Under)
	c.text("from", &r.From)
}

func callStartedFields(c *codec, b *CallStarted) {
	c.text("call_id", &b.CallID)
	c.text("arguments", &b.Arguments)
	c.text("session", &b.Session)
	c.bool("repeatable", &b.Repeatable)
}

func nestedFields(c *codec, b *Nested) {
	c.text("call_id", &b.CallID)
	c.text("session", &b.Session)
	c.int("turns", &b.Turns)
	c.int64("tokens", &b.Tokens)
	c.float("cost", &b.Cost)
}

func pausedFields(c *codec, b *Paused) {
	c.text("call_id", &b.CallID)
	c.text("session", &b.Session)
}

func answeredFields(c *codec, b *Answered) {
	c.text("call_id", &b.CallID)
	c.bool("failed", &b.Failed)
	c.bool("edited", &b.Edited)
	c.item("item", &b.Item)
}

func withdrawnFields(c *codec, b *Withdrawn) {
	c.text("call_id", &b.CallID)
	c.text("reason", &b.Reason)
}

func itemsWithdrawnFields(c *codec, b *ItemsWithdrawn) {
	c.int64s("entries", &b.Seqs)
	c.text("reason", &b.Reason)
	c.text("by", &b.By)
}

func reasoningDroppedFields(c *codec, b *ReasoningDropped) { c.text("reason", &b.Reason) }

func quarantinedFields(c *codec, b *Quarantined) {
	c.int64("entry", &b.Seq)
	c.text("member", &b.Member)
	c.text("reason", &b.Reason)
}

func compactedFields(c *codec, b *Compacted) {
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

func restoredFields(c *codec, b *Restored) { c.int64("entry", &b.Seq) }

func collapsedFields(c *codec, b *Collapsed) {
	c.int64s("entries", &b.Seqs)
	c.int64("by", &b.By)
}

func noticedFields(c *codec, b *Noticed) {
	c.int("turn", &b.Turn)
	c.text("notice", &b.Kind)
	c.text("item_id", &b.ItemID)
	c.text("call_id", &b.CallID)
	c.text("text", &b.Text)
}

func supersededFields(c *codec, b *Superseded) {
	c.int64s("entries", &b.Seqs)
	c.int64("by", &b.By)
}

func stopAskedFields(c *codec, b *StopAsked) {
	c.text("why", &b.Why)
	c.bool("after_turn", &b.AfterTurn)
	c.text("detail", &b.Detail)
}

func stoppedFields(c *codec, b *Stopped) {
	c.text("why", &b.Why)
	c.text("detail", &b.Detail)
}

func noteFields(c *codec, b *Note) { c.item("item", &b.Item) }

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
