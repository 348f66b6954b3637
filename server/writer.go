// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/antiphon-go/antiphon/item"
)

// Writer writes one response as the events of a stream. It numbers the events,
// gives items their ids and places, and repeats at the end of a text, an item
// and the response what came before, so that a backend says everything once:
//
//	w.Text("Let me ")
//	w.Text("look.")
//	w.Item(item.Call("call_1", "read_file", `{"path":"notes.txt"}`))
//
// The first error stays: every method returns it, and nothing more is written. It
// means that nobody listens any more, or that a value cannot be encoded. So a
// backend need not look at each.
//
// A Writer is not safe for concurrent use.
type Writer struct {
	// StreamID is repeated in every event; WebSockets with several responses at
	// once use it. It is set before the first event.
	StreamID string

	response item.Response // as it stands; its status is "" before the first event
	emit     func(item.Event) error
	events   int64
	open     *openItem
	err      error

	// Set by a Server:
	queued bool                   // the response waits before it begins
	admit  func(id string) string // makes the id of the response of what Begin was given
	clock  func() float64         // for completed_at
}

// openItem is the output item that is being written.
type openItem struct {
	value item.Value // as Open got it
	id    string
	done  int             // parts that are done
	part  item.Part       // that is being written, or nil
	text  strings.Builder // of the part, or of the call
}

// NewWriter returns a writer that passes its events to emit. The response is what
// every event about the response repeats, such as its id and model; the writer
// adds status, output, usage and errors. A null in Extra stands for one of these
// until it has a value. An event that emit receives may be kept.
func NewWriter(response item.Response, emit func(item.Event) error) *Writer {
	response.Status, response.Output = "", []item.Item{}
	response.Extra = slices.Clone(response.Extra)
	return &Writer{response: response, emit: emit}
}

// Response returns a copy of the response as it stands: it has the items that are
// done.
func (w *Writer) Response() *item.Response {
	r := w.response
	if !w.Ended() {
		r.Usage = nil // it is told at the end
	}
	r.Output = append([]item.Item{}, r.Output...)
	r.Extra = slices.Clone(r.Extra)
	return &r
}

// Begin says that the request is accepted. From then on an error ends the
// response; before, it refuses the request. A client that asked for a response in
// the background gets its answer at this moment, so a slow backend should call
// Begin early; otherwise the first write does. An id, if not "", is a wish: a
// server that has another response of that id adds a number to it.
func (w *Writer) Begin(id string) error {
	if w.response.Status != "" {
		return w.err
	}
	if w.admit != nil {
		id = w.admit(id)
	}
	w.response.ID = cmp.Or(id, w.response.ID)
	w.response.Status = item.StatusInProgress
	if w.queued {
		w.response.Status = item.StatusQueued
	}
	w.tell(&item.CreatedEvent{ResponseEvent: w.about()})
	if w.queued {
		w.tell(&item.QueuedEvent{ResponseEvent: w.about()})
		w.response.Status = item.StatusInProgress
	}
	return w.tell(&item.InProgressEvent{ResponseEvent: w.about()})
}

// Text adds to the text of the answer: to the message that is open, or to a new
// one. An item of another kind that is open is closed first.
func (w *Writer) Text(s string) error {
	if w.open != nil {
		if _, ok := w.open.value.(*item.Message); !ok {
			_ = w.Close() // the error stays
		}
	}
	if w.open == nil {
		_ = w.Open(&item.Message{})
	}
	return w.Delta(s)
}

// Item writes a whole item: how it begins, its text in pieces of about a word,
// and how it ends. What an output item must have is filled in, so
// item.Assistant("Hello") will do. Items that have no text to stream, and items
// that cannot be decoded, are written as they are. An item that is open is closed
// first.
func (w *Writer) Item(it item.Item) error {
	v, err := it.Decode()
	if err != nil || !streams(v) {
		_ = w.settle()
		w.tell(&item.ItemAddedEvent{EventHead: w.head(), OutputIndex: w.index(), Item: it})
		return w.done(it)
	}
	if err := w.Open(v); err != nil {
		return err
	}
	return w.finish(v)
}

// streams reports whether an item has text to stream.
func streams(v item.Value) bool {
	switch v.(type) {
	case *item.Message, *item.Reasoning, *item.FunctionCall, *item.CustomToolCall:
		return true
	}
	return false
}

// Open begins an output item: a message, reasoning, a function call or a call of
// a custom tool. It is told without the text that v holds, and with an id, a
// status and, if it is a message, the role of the assistant. [Writer.Delta] adds
// to its text; [Writer.Close] or [Writer.CloseAs] ends it. An item that is open is
// closed first.
func (w *Writer) Open(v item.Value) error {
	if err := w.settle(); err != nil {
		return err
	}
	if !streams(v) {
		return w.fail(fmt.Errorf("an item of type %s has no text to stream: write it with Item", v.ItemType()))
	}
	o := &openItem{value: v, id: fmt.Sprintf("%s_%s_%d", idPrefix(v.ItemType()), w.response.ID, w.index())}
	it, err := item.New(o.first())
	if err != nil {
		return w.fail(err)
	}
	w.open = o
	return w.tell(&item.ItemAddedEvent{EventHead: w.head(), OutputIndex: w.index(), Item: it})
}

// first is the item as it begins. It settles the id.
func (o *openItem) first() item.Value {
	switch v := o.value.(type) {
	case *item.Message:
		first := *v
		first.ID, first.Role = cmp.Or(v.ID, o.id), cmp.Or(v.Role, item.RoleAssistant)
		first.Status, first.Content = item.StatusInProgress, item.Parts()
		o.id = first.ID
		return &first
	case *item.Reasoning:
		first := *v
		first.ID = cmp.Or(v.ID, o.id)
		first.Summary, first.Content, first.EncryptedContent = []item.Part{}, nil, ""
		o.id = first.ID
		return &first
	case *item.FunctionCall:
		first := *v
		first.ID, first.Status, first.Arguments = cmp.Or(v.ID, o.id), item.StatusInProgress, ""
		o.id = first.ID
		return &first
	case *item.CustomToolCall:
		first := *v
		first.ID, first.Input = cmp.Or(v.ID, o.id), ""
		o.id = first.ID
		return &first
	}
	return o.value
}

// errNothingOpen is a mistake of the backend.
var errNothingOpen = errors.New("no output item is open: call Open before Delta and Close")

// Delta adds to the text of the item that is open: of a message its text, of
// reasoning its summary, of a call its arguments or input. It must hold whole
// characters. A text that gets no delta but an empty one is an empty text; one
// that gets none at all is not there.
func (w *Writer) Delta(text string) error {
	switch {
	case w.open == nil:
		return w.fail(errNothingOpen)
	case !utf8.ValidString(text):
		return w.fail(fmt.Errorf("the text %.40q is not UTF-8", text))
	}
	if w.open.part == nil {
		switch w.open.value.(type) {
		case *item.Message:
			w.beginPart(textPart(""))
		case *item.Reasoning:
			w.beginPart(&item.SummaryText{})
		}
	}
	if text == "" || w.err != nil {
		return w.err
	}
	w.open.text.WriteString(text)
	switch w.open.part.(type) {
	case *item.OutputText:
		return w.tell(&item.TextDeltaEvent{PartEvent: w.inContent(), Delta: text})
	case *item.Refusal:
		return w.tell(&item.RefusalDeltaEvent{PartEvent: w.inContent(), Delta: text})
	case *item.SummaryText:
		return w.tell(&item.SummaryTextDeltaEvent{SummaryEvent: w.inSummary(), Delta: text})
	}
	if _, custom := w.open.value.(*item.CustomToolCall); custom {
		return w.tell(&item.CustomInputDeltaEvent{ItemEvent: w.inItem(), Delta: text})
	}
	return w.tell(&item.ArgumentsDeltaEvent{ItemEvent: w.inItem(), Delta: text})
}

// Close ends the item that is open: it is what Open was given, with the text of
// the deltas.
func (w *Writer) Close() error {
	if w.open == nil {
		return w.fail(errNothingOpen)
	}
	text, some := w.open.text.String(), w.open.part != nil
	switch v := w.open.value.(type) {
	case *item.Message:
		last := *v
		last.Content = item.Parts()
		if some {
			last.Content = item.Parts(textPart(text))
		}
		return w.finish(&last)
	case *item.Reasoning:
		last := *v
		last.Summary = nil
		if some {
			last.Summary = []item.Part{&item.SummaryText{Text: text}}
		}
		return w.finish(&last)
	case *item.FunctionCall:
		last := *v
		last.Arguments = text
		return w.finish(&last)
	case *item.CustomToolCall:
		last := *v
		last.Input = text
		return w.finish(&last)
	}
	return w.err
}

// CloseAs ends the item that is open with its final form, which a backend may have
// from a model: with annotations, several parts, what is encrypted. Text of it that
// no delta brought is streamed first. The item keeps the id that it began with.
func (w *Writer) CloseAs(it item.Item) error {
	if w.open == nil {
		return w.fail(errNothingOpen)
	}
	v, err := it.Decode()
	if err != nil {
		return w.fail(err)
	}
	if v.ItemType() != w.open.value.ItemType() {
		return w.fail(fmt.Errorf("an item that began as %s cannot end as %s", w.open.value.ItemType(), v.ItemType()))
	}
	return w.finish(v)
}

// finish ends the open item, which is now v. It says what of the text is missing.
func (w *Writer) finish(v item.Value) error {
	var last item.Value
	switch v := v.(type) {
	case *item.Message:
		m := *v
		m.ID, m.Role, m.Status = w.open.id, cmp.Or(v.Role, item.RoleAssistant), cmp.Or(v.Status, item.StatusCompleted)
		if v.Content.IsText() {
			m.Content = item.Parts(textPart(v.Content.Text))
		}
		w.parts(m.Content.Parts)
		last = &m
	case *item.Reasoning:
		r := *v
		r.ID = w.open.id
		w.parts(r.Summary)
		last = &r
	case *item.FunctionCall:
		c := *v
		c.ID, c.Status = w.open.id, cmp.Or(v.Status, item.StatusCompleted)
		w.rest(c.Arguments)
		w.tell(&item.ArgumentsDoneEvent{ItemEvent: w.inItem(), Name: c.Name, Arguments: c.Arguments})
		last = &c
	case *item.CustomToolCall:
		c := *v
		c.ID = w.open.id
		w.rest(c.Input)
		w.tell(&item.CustomInputDoneEvent{ItemEvent: w.inItem(), Input: c.Input})
		last = &c
	}
	w.open = nil
	it, err := item.New(last)
	if err != nil {
		return w.fail(err)
	}
	return w.done(it)
}

// parts writes the parts of the open message or reasoning. The first of them may
// be open already.
func (w *Writer) parts(list []item.Part) {
	for _, p := range list {
		var first item.Part
		text := ""
		switch p := p.(type) {
		case *item.OutputText:
			first, text = textPart(""), p.Text
		case *item.Refusal:
			first, text = &item.Refusal{}, p.Refusal
		case *item.SummaryText:
			first, text = &item.SummaryText{}, p.Text
		default:
			first = p
		}
		if w.open.part == nil {
			w.beginPart(first)
		}
		w.rest(text)
		w.endPart(p)
	}
}

// rest streams what the deltas did not bring of a text.
func (w *Writer) rest(text string) {
	if more, ok := strings.CutPrefix(text, w.open.text.String()); ok {
		w.deltas(more)
	}
}

func (w *Writer) done(it item.Item) error {
	ev := &item.ItemDoneEvent{EventHead: w.head(), OutputIndex: w.index(), Item: it}
	w.response.Output = append(w.response.Output, it)
	return w.tell(ev)
}

// settle makes room for an item: it begins the response, and closes the item that
// is open.
func (w *Writer) settle() error {
	if w.open != nil {
		return w.Close()
	}
	return w.Begin("")
}

func textPart(text string) *item.OutputText {
	return &item.OutputText{Text: text, Annotations: "[]", Logprobs: "[]"}
}

// beginPart opens a part of the open message or reasoning, as it is at first.
func (w *Writer) beginPart(p item.Part) {
	w.open.part = p
	if _, ok := w.open.value.(*item.Reasoning); ok {
		w.tell(&item.SummaryPartAddedEvent{SummaryEvent: w.inSummary(), Part: p})
		return
	}
	w.tell(&item.PartAddedEvent{PartEvent: w.inContent(), Part: p})
}

// endPart ends the open part, which is now p.
func (w *Writer) endPart(p item.Part) {
	switch p := p.(type) {
	case *item.OutputText:
		w.tell(&item.TextDoneEvent{PartEvent: w.inContent(), Text: p.Text})
	case *item.Refusal:
		w.tell(&item.RefusalDoneEvent{PartEvent: w.inContent(), Refusal: p.Refusal})
	case *item.SummaryText:
		w.tell(&item.SummaryTextDoneEvent{SummaryEvent: w.inSummary(), Text: p.Text})
	}
	if _, ok := w.open.value.(*item.Reasoning); ok {
		w.tell(&item.SummaryPartDoneEvent{SummaryEvent: w.inSummary(), Part: p})
	} else {
		w.tell(&item.PartDoneEvent{PartEvent: w.inContent(), Part: p})
	}
	w.open.part = nil
	w.open.done++
	w.open.text.Reset()
}

// deltas writes a text in pieces that end after white space or a comma, as tokens
// mostly do.
func (w *Writer) deltas(text string) {
	for text != "" && w.err == nil {
		n := len(text)
		if i := strings.IndexAny(text, " \n,"); i >= 0 {
			n = i + 1
		}
		_ = w.Delta(text[:n])
		text = text[n:]
	}
}

// Usage sets what the response cost. It is told with the last event, unless the
// response fails.
func (w *Writer) Usage(u item.Usage) { w.response.Usage = &u }

// Complete ends a response that came to its end. A [Server] does it when the
// backend returns without an error.
func (w *Writer) Complete() error {
	w.end(item.StatusCompleted)
	return w.tell(&item.CompletedEvent{ResponseEvent: w.about()})
}

// Incomplete ends a response that stopped early, for a reason such as
// max_output_tokens.
func (w *Writer) Incomplete(reason string) error {
	w.response.Incomplete = &item.IncompleteDetails{Reason: reason}
	w.response.Extra.Delete("incomplete_details")
	w.end(item.StatusIncomplete)
	return w.tell(&item.IncompleteEvent{ResponseEvent: w.about()})
}

// Fail ends a response with an error. A [Server] does it when the backend returns
// an error after it began.
func (w *Writer) Fail(code, message string) error {
	w.response.Error = &item.APIError{Code: code, Message: message}
	w.response.Extra.Delete("error")
	w.end(item.StatusFailed)
	return w.tell(&item.FailedEvent{ResponseEvent: w.about()})
}

// Error ends the stream with an event that is only an error. Endpoints do so when
// they cannot say more; a backend returns an error instead.
func (w *Writer) Error(code, message string) error {
	_ = w.settle()
	return w.tell(&item.ErrorEvent{EventHead: w.head(), Code: code, Message: message})
}

// Ended reports whether the last event was written.
func (w *Writer) Ended() bool {
	switch w.response.Status {
	case "", item.StatusQueued, item.StatusInProgress:
		return false
	}
	return true
}

// end makes the response what it is at its end.
func (w *Writer) end(status string) {
	_ = w.settle()
	w.response.Status = status
	if status == item.StatusFailed {
		w.response.Usage = nil
	}
	if w.response.Usage != nil {
		w.response.Extra.Delete("usage")
	}
	if status == item.StatusCompleted && w.clock != nil {
		w.response.CompletedAt = new(w.clock())
		w.response.Extra.Delete("completed_at")
	}
}

// tell passes an event on.
func (w *Writer) tell(v item.EventValue) error {
	if w.err != nil {
		return w.err
	}
	ev, err := item.NewEvent(v)
	if err == nil {
		err = w.emit(ev)
	}
	return w.fail(err)
}

// fail notes an error, the first of which stays.
func (w *Writer) fail(err error) error {
	w.err = cmp.Or(w.err, err)
	return w.err
}

// head numbers the next event.
func (w *Writer) head() item.EventHead {
	w.events++
	return item.EventHead{SequenceNumber: w.events - 1, StreamID: w.StreamID}
}

func (w *Writer) about() item.ResponseEvent {
	return item.ResponseEvent{EventHead: w.head(), Response: w.Response()}
}

// index is the place of the item that is being written.
func (w *Writer) index() int { return len(w.response.Output) }

func (w *Writer) inItem() item.ItemEvent {
	return item.ItemEvent{EventHead: w.head(), ItemID: w.open.id, OutputIndex: w.index()}
}

func (w *Writer) inContent() item.PartEvent {
	return item.PartEvent{ItemEvent: w.inItem(), ContentIndex: w.open.done}
}

func (w *Writer) inSummary() item.SummaryEvent {
	return item.SummaryEvent{ItemEvent: w.inItem(), SummaryIndex: w.open.done}
}

// idPrefix begins the ids of items that came without one.
func idPrefix(t item.Type) string { return cmp.Or(idPrefixes[t], "item") }

var idPrefixes = map[item.Type]string{
	item.TypeMessage: "msg", item.TypeReasoning: "rs", item.TypeCompaction: "cmp",
	item.TypeFunctionCall: "fc", item.TypeFunctionCallOutput: "fco",
	item.TypeCustomToolCall: "ctc", item.TypeCustomToolCallOutput: "ctco",
}
