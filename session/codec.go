// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"fmt"
	"reflect"
	"sync"

	"github.com/antiphon-go/antiphon/internal/record"
	"github.com/antiphon-go/antiphon/item"
)

// AppendEntry appends e to dst as one line of JSON without the newline: an object
// with seq, time, kind and the members of the kind. An item is written byte for byte
// or, if it contains newlines, as a JSON string of its text. For a value that cannot
// be written, such as a body of a type that is not listed at [Body], AppendEntry
// returns dst unchanged and an error.
func AppendEntry(dst []byte, e Entry) ([]byte, error) { return appendEntry(dst, e, nil) }

// ParseEntry parses the output of [AppendEntry], from a copy of line. If the entry
// has a kind or a member that this program does not know, because a newer program
// wrote it, the error wraps [ErrNewer] and names it. Ignoring it instead could lose
// a decision, such as the withdrawal of an item.
func ParseEntry(line []byte) (Entry, error) { return parseEntry(string(line), nil) }

// Split writes and reads entries whose items' large payloads are stored separately.
type Split struct {
	// Min is the decoded size, in bytes, from which a payload is stored separately.
	Min int
	// Keep is called with each payload that is removed while an entry is written.
	Keep func(p item.Payload, read func() ([]byte, error)) error
	// Join creates the item from its skeleton, which is the item without its
	// payloads, and the payloads' positions.
	Join func(skeleton string, payloads []item.Payload) (item.Item, error)
}

// AppendEntry is like the function [AppendEntry], with payloads stored separately.
func (s *Split) AppendEntry(dst []byte, e Entry) ([]byte, error) { return appendEntry(dst, e, s) }

// ParseEntry is like the function [ParseEntry], with payloads stored separately. The
// entry shares the line's memory.
func (s *Split) ParseEntry(line string) (Entry, error) { return parseEntry(line, s) }

func appendEntry(dst []byte, e Entry, split *Split) ([]byte, error) {
	out, err := record.Append(dst, func(rc *record.Codec) {
		c := codec{Codec: rc, split: split}
		c.int64("seq", &e.Seq)
		c.time("time", &e.Time)
		k := kindOf(e.Body)
		if k == nil {
			c.failf("", "a body of type %T cannot be written", e.Body)
			return
		}
		c.text("kind", &k.name)
		k.write(c, e.Body)
	})
	if err != nil {
		return dst, fmt.Errorf("entry %d: %w", e.Seq, err)
	}
	return out, nil
}

func parseEntry(line string, split *Split) (Entry, error) {
	var e Entry
	err := record.With(func(rc *record.Codec) {
		c := codec{Codec: rc, split: split}
		c.open(line)
		c.int64("seq", &e.Seq)
		c.time("time", &e.Time)
		var name string
		c.text("kind", &name)
		switch k := kindNamed(name); {
		case k != nil:
			e.Body = k.read(c)
			c.close(name)
		case name == "":
			// A line without a kind is damaged. It does not come from a newer program.
			c.failf("", "it has no kind")
		default:
			c.failf("", "%w: kind %q", ErrNewer, name)
		}
	})
	if err != nil {
		return Entry{}, fmt.Errorf("entry %d: %w", e.Seq, err)
	}
	return e, nil
}

// Kind returns the name of the body's kind in the log, such as "turn_ended", or ""
// for nil. The names are part of the stored format, so a name stays the same when
// its type is renamed.
func Kind(b Body) string { return kindNames[reflect.TypeOf(b)] }

// kindNames has the names of all types of bodies.
var kindNames = map[reflect.Type]string{
	reflect.TypeFor[InputItem]():        "given",
	reflect.TypeFor[RunStarted]():       "run_started",
	reflect.TypeFor[TurnStarted]():      "turn_started",
	reflect.TypeFor[OutputItem]():       "received",
	reflect.TypeFor[TurnEnded]():        "turn_ended",
	reflect.TypeFor[ApprovalAsked]():    "approval_asked",
	reflect.TypeFor[Approval]():         "approval",
	reflect.TypeFor[CallStarted]():      "call_started",
	reflect.TypeFor[SubagentUsage]():    "nested",
	reflect.TypeFor[Paused]():           "paused",
	reflect.TypeFor[CallOutput]():       "answered",
	reflect.TypeFor[CallDropped]():      "withdrawn",
	reflect.TypeFor[ItemsWithdrawn]():   "items_withdrawn",
	reflect.TypeFor[ReasoningDropped](): "reasoning_dropped",
	reflect.TypeFor[Quarantined]():      "quarantined",
	reflect.TypeFor[Compacted]():        "compacted",
	reflect.TypeFor[Restored]():         "restored",
	reflect.TypeFor[Collapsed]():        "collapsed",
	reflect.TypeFor[Noticed]():          "noticed",
	reflect.TypeFor[Superseded]():       "superseded",
	reflect.TypeFor[Delivered]():        "delivered",
	reflect.TypeFor[StopAsked]():        "stop_asked",
	reflect.TypeFor[Stopped]():          "stopped",
	reflect.TypeFor[Note]():             "note",
}

// kind is how a type of body is written and read.
type kind struct {
	name  string
	of    reflect.Type
	write func(c codec, b Body)
	read  func(c codec) Body
}

func newKind[T Body](fields func(*T, codec)) *kind {
	of := reflect.TypeFor[T]()
	return &kind{
		name:  kindNames[of],
		of:    of,
		write: func(c codec, b Body) { v := b.(T); fields(&v, c) },
		read:  func(c codec) Body { var v T; fields(&v, c); return v },
	}
}

// kinds finds a kind by its name and by its type. It is made when an entry is first
// written or read, and not when the program starts, so that a program that keeps its
// sessions in memory does not link the codec.
var kinds struct {
	once  sync.Once
	named map[string]*kind
	typed map[reflect.Type]*kind
}

func kindNamed(name string) *kind {
	kinds.once.Do(makeKinds)
	return kinds.named[name]
}

func kindOf(b Body) *kind {
	kinds.once.Do(makeKinds)
	return kinds.typed[reflect.TypeOf(b)]
}

func makeKinds() {
	kinds.named, kinds.typed = map[string]*kind{}, map[reflect.Type]*kind{}
	for _, k := range []*kind{
		newKind((*InputItem).fields),
		newKind((*RunStarted).fields),
		newKind((*TurnStarted).fields),
		newKind((*OutputItem).fields),
		newKind((*TurnEnded).fields),
		newKind((*ApprovalAsked).fields),
		newKind((*Approval).fields),
		newKind((*CallStarted).fields),
		newKind((*SubagentUsage).fields),
		newKind((*Paused).fields),
		newKind((*CallOutput).fields),
		newKind((*CallDropped).fields),
		newKind((*ItemsWithdrawn).fields),
		newKind((*ReasoningDropped).fields),
		newKind((*Quarantined).fields),
		newKind((*Compacted).fields),
		newKind((*Restored).fields),
		newKind((*Collapsed).fields),
		newKind((*Noticed).fields),
		newKind((*Superseded).fields),
		newKind((*Delivered).fields),
		newKind((*StopAsked).fields),
		newKind((*Stopped).fields),
		newKind((*Note).fields),
	} {
		kinds.named[k.name], kinds.typed[k.of] = k, k
	}
}

// The fields methods name the members of each body, for writing and reading, so
// that the two cannot differ. Zero values are left out. An item comes last, so that
// open can parse it without scanning its text first.

func (b *InputItem) fields(c codec) {
	c.bool("own", &b.Own)
	c.item("item", &b.Item)
}

func (b *RunStarted) fields(c codec) {
	c.bool("resumes", &b.Resumes)
	c.text("conversation", &b.Conversation.ID)
	c.text("of_session", &b.Conversation.Session)
	part(c, "setup", &b.Setup, (*Setup).fields)
}

func (b *TurnStarted) fields(c codec) {
	c.int("turn", &b.Turn)
	c.int64("continues", &b.Continues)
	c.text("conversation", &b.InConversation)
	part(c, "setup", &b.Setup, (*Setup).fields)
}

func (b *OutputItem) fields(c codec) {
	c.int("turn", &b.Turn)
	c.bool("partial", &b.Partial)
	c.item("item", &b.Item)
}

func (b *TurnEnded) fields(c codec) {
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
	part(c, "setup", &b.Setup, (*Setup).fields)
}

func (b *ApprovalAsked) fields(c codec) {
	c.text("call_id", &b.CallID)
	c.int("number", &b.Number)
	c.text("tool", &b.Tool)
	c.text("arguments", &b.Arguments)
	c.bool("custom", &b.Custom)
	c.text("reason", &b.Reason)
	parts(c, "rules", &b.Rules, (*Rule).fields)
	c.text("sandbox", &b.Sandbox)
}

func (b *Approval) fields(c codec) {
	c.text("call_id", &b.CallID)
	c.int("number", &b.Number)
	c.bool("allowed", &b.Allowed)
	c.text("reason", &b.Reason)
	c.text("by", &b.By)
	c.text("from", &b.From)
	c.text("rule", &b.Rule)
	c.text("decided", (*string)(&b.Decided))
	c.text("edited", &b.Edited)
	part(c, "remember", &b.Remember, (*Rule).fields)
	c.text("definition", &b.Definition)
	c.text("asked", &b.Asked)
}

func (r *Rule) fields(c codec) {
	c.text("verdict", (*string)(&r.Verdict))
	c.text("tool", &r.Tool)
	c.text("member", &r.Member)
	c.texts("prefix", &r.Prefix)
	c.text("under", &r.Under)
	c.text("arguments", &r.Arguments)
	c.text("definition", &r.Definition)
	c.text("from", &r.From)
}

func (b *CallStarted) fields(c codec) {
	c.text("call_id", &b.CallID)
	c.text("arguments", &b.Arguments)
	c.text("session", &b.Session)
	c.bool("repeatable", &b.Repeatable)
}

func (b *SubagentUsage) fields(c codec) {
	c.text("call_id", &b.CallID)
	c.text("session", &b.Session)
	c.int("turns", &b.Turns)
	c.int64("tokens", &b.Tokens)
	c.float("cost", &b.Cost)
}

func (b *Paused) fields(c codec) {
	c.text("call_id", &b.CallID)
	c.text("session", &b.Session)
	c.time("until", &b.Until)
	c.text("reason", &b.Reason)
}

func (b *CallOutput) fields(c codec) {
	c.text("call_id", &b.CallID)
	c.bool("failed", &b.Failed)
	c.bool("edited", &b.Edited)
	c.item("item", &b.Item)
}

func (b *CallDropped) fields(c codec) {
	c.text("call_id", &b.CallID)
	c.text("reason", &b.Reason)
}

func (b *ItemsWithdrawn) fields(c codec) {
	c.int64s("entries", &b.Seqs)
	c.text("reason", &b.Reason)
	c.text("by", &b.By)
}

func (b *ReasoningDropped) fields(c codec) { c.text("reason", &b.Reason) }

func (b *Quarantined) fields(c codec) {
	c.int64("entry", &b.Seq)
	c.text("member", &b.Member)
	c.text("reason", &b.Reason)
}

func (b *Compacted) fields(c codec) {
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

func (b *Restored) fields(c codec) { c.int64("entry", &b.Seq) }

func (b *Collapsed) fields(c codec) {
	c.int64s("entries", &b.Seqs)
	c.int64("by", &b.By)
}

func (b *Noticed) fields(c codec) {
	c.int("turn", &b.Turn)
	c.text("notice", &b.Kind)
	c.text("item_id", &b.ItemID)
	c.text("call_id", &b.CallID)
	c.text("text", &b.Text)
}

func (b *Superseded) fields(c codec) {
	c.int64s("entries", &b.Seqs)
	c.int64("by", &b.By)
}

func (b *Delivered) fields(c codec) {
	c.text("key", &b.Key)
	c.text("by", &b.By)
	c.text("from", &b.From)
	c.text("shown", &b.Shown)
	c.bool("queued", &b.Queued)
	c.int("entries", &b.Entries)
	c.text("problem", &b.Problem)
}

func (b *StopAsked) fields(c codec) {
	c.text("why", &b.Why)
	c.bool("after_turn", &b.AfterTurn)
	c.text("detail", &b.Detail)
	c.int64("run", &b.Run)
}

func (b *Stopped) fields(c codec) {
	c.text("why", &b.Why)
	c.text("detail", &b.Detail)
}

func (b *Note) fields(c codec) { c.item("item", &b.Item) }
