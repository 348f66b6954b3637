// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/internal/nils"
	"github.com/antiphon-go/antiphon/item"
)

// Writer writes one response as the events of a stream. It numbers the events,
// assigns ids and positions to items, and repeats the content at the end of a text,
// an item and the response, so that a backend writes everything once:
//
//	w.Text("Let me ")
//	w.Text("look.")
//	w.Item(item.Call("call_1", "read_file", `{"path":"notes.txt"}`))
//
// After an error, every method returns this first error and writes nothing more. The
// error means that the client is gone, or that a value cannot be encoded. So a
// backend need not check the error of each call.
//
// A Writer is not safe for concurrent use.
type Writer struct {
	// StreamID is repeated in every event, for WebSockets with several concurrent
	// responses. Set it before the first event.
	StreamID string
	// Header is sent with the response over HTTP, such as the state of rate limits. Set
	// it before the first event. It may be nil.
	Header http.Header
	// Cost is what the response cost, if the backend knows the prices, in their unit, and
	// Model the name of the model that made it, if it is not the one that the request
	// names. They are not sent, but given to [Server].Admit.
	Cost  float64
	Model string
	// Spent is what a response has used that ends without a usage, because it was cancelled or
	// broke off, or nobody counted it: what is known of it, or an estimate. It is not sent, but given to
	// [Server].Admit, in place of a usage that is less. It may be nil.
	Spent *api.Usage

	response api.Response // the current state; its status is "" before the first event
	emit     func(api.Event) error
	events   int64
	open     *openItem
	err      error
	before   *api.Response // the state before the end, which may be refused
	relay    *relay        // what Relay has passed on, or nil
	note     item.JSON     // the argument of Note

	// Set by a Server:
	queued bool                            // the response is queued before it begins
	admit  func(id string) (string, error) // returns the id of the response for the argument of Begin
	clock  func() float64                  // the time for completed_at
	flush  func() error                    // sends the events that wait, or nil if none do
	// unread reports whether nobody reads an event of a type. It is counted then, but not made. It may be nil.
	unread func(api.EventType) bool
	// replayed is told the argument of Replay.
	replayed func([]api.Event)

	replay  []api.Event // what was written before, and is not written again yet
	differs bool        // it cannot be: see Replay
}

// openItem is the output item that is being written.
type openItem struct {
	value item.Value // the argument of Open
	id    string
	done  int             // the number of complete parts
	part  item.Part       // the part that is being written, or nil
	text  strings.Builder // the text of the part or the call
	ahead string          // the end of text, if it comes from a replay and was not written again yet
}

// NewWriter returns a writer that passes its events to emit. Events about the
// response repeat the members of response, such as its id and model; the writer adds
// status, output, usage and errors. A null in Extra is a placeholder for one of
// these until it has a value. emit may keep the events that it receives.
func NewWriter(response api.Response, emit func(api.Event) error) *Writer {
	response.Status, response.Output = "", []item.Item{}
	response.Extra = slices.Clone(response.Extra)
	return &Writer{response: response, emit: emit}
}

// Response returns a copy of the current state of the response, with the complete
// items.
func (w *Writer) Response() *api.Response {
	r := w.state()
	r.Output = append([]item.Item{}, r.Output...)
	r.Extra = slices.Clone(r.Extra)
	return r
}

// state is Response for readers that change nothing in it: the writer copies a list before it changes one.
func (w *Writer) state() *api.Response {
	r := w.response
	if !w.Ended() {
		r.Usage = nil // it is sent at the end
	}
	return &r
}

// beginning returns the response as Begin begins it, unless the backend gives it an id.
func (w *Writer) beginning() *api.Response {
	r := w.state()
	if r.Status = item.StatusInProgress; w.queued {
		r.Status = item.StatusQueued
	}
	return r
}

// Begin accepts the request. Before Begin an error refuses the request; afterwards
// it ends the response. The first write calls Begin. A client that asked for a
// background response gets its answer at this time, so a slow backend should call
// Begin early. If id is not "", the response gets this id; if another response has
// it, the server adds a number.
func (w *Writer) Begin(id string) error {
	if w.response.Status != "" || w.err != nil {
		return w.err
	}
	if w.admit != nil {
		var err error
		if id, err = w.admit(id); err != nil {
			return w.fail(err)
		}
	}
	w.response.ID = cmp.Or(id, w.response.ID)
	w.response.Status = item.StatusInProgress
	if w.queued {
		w.response.Status = item.StatusQueued
	}
	w.tell(&api.CreatedEvent{ResponseEvent: w.about()})
	if w.queued {
		w.tell(&api.QueuedEvent{ResponseEvent: w.about()})
		w.response.Status = item.StatusInProgress
	}
	return w.tell(&api.InProgressEvent{ResponseEvent: w.about()})
}

// Text adds to the text of the open message, or of a new message. It closes an open
// item of another kind first.
func (w *Writer) Text(s string) error {
	if w.open != nil {
		if _, ok := w.open.value.(*item.Message); !ok {
			_ = w.Close() // the error is kept
		}
	}
	if w.open == nil {
		_ = w.Open(&item.Message{})
	}
	return w.Delta(s)
}

// Item writes a complete item: its beginning, its text in pieces of about one word,
// and its end. Missing members of an output item are filled in, so
// item.Assistant("Hello") is sufficient. Items without text to stream, calls of MCP tools that
// have an id already, and items that cannot be decoded, are written unchanged. An open item
// is closed first.
func (w *Writer) Item(it item.Item) error {
	v, err := it.Decode()
	if made, ran := v.(*item.MCPCall); err != nil || !streams(v) || ran && made.ID != "" {
		_ = w.settle()
		w.tell(&api.ItemAddedEvent{EventHead: w.head(), OutputIndex: w.index(), Item: it})
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
	case *item.Message, *item.Reasoning, *item.FunctionCall, *item.CustomToolCall, *item.MCPCall:
		return true
	}
	return false
}

// Open begins an output item: a message, reasoning, a function call, or a call of a
// custom tool or of a tool that the server runs ([item.MCPCall]). Its first event does not
// contain the text of v, but has an id, a status and, for a message, the role assistant. [Writer.Delta] adds to its text;
// [Writer.Close] or [Writer.CloseAs] ends it. An open item is closed first.
func (w *Writer) Open(v item.Value) error {
	if err := w.settle(); err != nil {
		return err
	}
	if nils.Is(v) {
		return w.fail(errors.New("server: the item to open is nil"))
	}
	if !streams(v) {
		return w.fail(fmt.Errorf("an item of type %s has no text to stream: write it with Item", v.ItemType()))
	}
	if m, ok := v.(*item.Message); ok && m.Role != "" && m.Role != item.RoleAssistant {
		return w.fail(fmt.Errorf("server: a message of the role %q is no output: want item.Assistant", m.Role))
	}
	o := &openItem{value: v, id: fmt.Sprintf("%s_%s_%d", idPrefix(v.ItemType()), w.response.ID, w.index())}
	it, err := item.New(o.first())
	if err != nil {
		return w.fail(err)
	}
	w.open = o
	w.tell(&api.ItemAddedEvent{EventHead: w.head(), OutputIndex: w.index(), Item: it})
	if _, runs := v.(*item.MCPCall); runs {
		w.tell(&api.ProgressEvent{ItemEvent: w.inItem(), Type: api.EventMCPInProgress})
	}
	w.catchUp()
	return w.err
}

// first returns the item in its initial form, and determines the id.
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
	case *item.MCPCall:
		first := *v
		first.ID, first.Status, first.Arguments, first.Output, first.Error = cmp.Or(v.ID, o.id), item.StatusInProgress, "", "", nil
		o.id = first.ID
		return &first
	}
	return o.value
}

// errNothingOpen reports a mistake in the backend.
var errNothingOpen = errors.New("no output item is open: call Open before Delta and Close")

// Delta adds to the text of the open item: the text of a message, the summary of
// reasoning, the arguments or input of a call. The text must be valid UTF-8. An item
// that gets only an empty delta has an empty text; an item without any delta has no
// text part.
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
	if w.open.ahead != "" {
		var ok bool
		if text, ok = w.open.unsent(text); !ok {
			w.differ()
		}
	}
	if text == "" || w.err != nil {
		return w.err
	}
	w.open.text.WriteString(text)
	switch w.open.part.(type) {
	case *item.OutputText:
		return w.tell(&api.TextDeltaEvent{PartEvent: w.inContent(), Delta: text})
	case *item.Refusal:
		return w.tell(&api.RefusalDeltaEvent{PartEvent: w.inContent(), Delta: text})
	case *item.SummaryText:
		return w.tell(&api.SummaryTextDeltaEvent{SummaryEvent: w.inSummary(), Delta: text})
	}
	switch w.open.value.(type) {
	case *item.CustomToolCall:
		return w.tell(&api.CustomInputDeltaEvent{ItemEvent: w.inItem(), Delta: text})
	case *item.MCPCall:
		return w.tell(&api.MCPArgumentsDeltaEvent{ItemEvent: w.inItem(), Delta: text})
	}
	return w.tell(&api.ArgumentsDeltaEvent{ItemEvent: w.inItem(), Delta: text})
}

// Close ends the open item. The item is the argument of Open with the text of the
// deltas.
func (w *Writer) Close() error {
	switch {
	case w.open == nil:
		return w.fail(errNothingOpen)
	case w.err != nil: // a part of the text may be missing
		return w.err
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
	case *item.MCPCall:
		last := *v
		last.Arguments = text
		return w.finish(&last)
	}
	return w.err
}

// CloseAs ends the open item with its final form, which a backend may have from a
// model: with annotations, several parts, encrypted content. Text that was not sent
// as a delta is streamed first. The item keeps its id.
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

// closeHalf ends the open item of a response that breaks off: a message or reasoning with the text so far, if
// there is some. Anything else is left out.
func (w *Writer) closeHalf() {
	if w.open != nil && w.open.text.Len() > 0 {
		text := w.open.text.String()
		switch v := w.open.value.(type) {
		case *item.Message:
			half := *v
			half.Content, half.Status = item.Parts(textPart(text)), item.StatusIncomplete
			_ = w.finish(&half) // the error is kept
		case *item.Reasoning:
			half := *v
			half.Summary, half.Status = []item.Part{&item.SummaryText{Text: text}}, item.StatusIncomplete
			_ = w.finish(&half) // likewise
		}
	}
	w.open = nil
}

// finish ends the open item with v as its final value, and streams the missing text.
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
		w.tell(&api.ArgumentsDoneEvent{ItemEvent: w.inItem(), Name: c.Name, Arguments: c.Arguments})
		last = &c
	case *item.CustomToolCall:
		c := *v
		c.ID = w.open.id
		w.rest(c.Input)
		w.tell(&api.CustomInputDoneEvent{ItemEvent: w.inItem(), Input: c.Input})
		last = &c
	case *item.MCPCall:
		c := *v
		c.ID, c.Status = w.open.id, cmp.Or(v.Status, item.StatusCompleted)
		w.rest(c.Arguments)
		w.tell(&api.MCPArgumentsDoneEvent{ItemEvent: w.inItem(), Arguments: c.Arguments})
		done := api.EventMCPCompleted
		if c.Status != item.StatusCompleted {
			done = api.EventMCPFailed
		}
		w.tell(&api.ProgressEvent{ItemEvent: w.inItem(), Type: done})
		last = &c
	}
	id := w.open.id
	w.open = nil
	if w.relay != nil && w.relay.done.ID() == id {
		return w.done(w.relay.done) // as it came
	}
	it, err := item.New(last)
	if err != nil {
		return w.fail(err)
	}
	return w.done(it)
}

// parts writes the parts of the open message or reasoning. The first part may
// already be open.
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

// rest streams the part of a text that the deltas did not contain.
func (w *Writer) rest(text string) {
	w.open.ahead = ""
	if more, ok := strings.CutPrefix(text, w.open.text.String()); ok {
		w.deltas(more)
	}
}

func (w *Writer) done(it item.Item) error {
	ev := &api.ItemDoneEvent{EventHead: w.head(), OutputIndex: w.index(), Item: it}
	w.keep(it)
	return w.tell(ev)
}

// settle prepares for a new item: it begins the response if necessary, and closes
// the open item.
func (w *Writer) settle() error {
	if w.open != nil {
		return w.Close()
	}
	return w.Begin("")
}

func textPart(text string) *item.OutputText {
	return &item.OutputText{Text: text, Annotations: "[]", Logprobs: "[]"}
}

// beginPart opens a part of the open message or reasoning. p is its initial form.
func (w *Writer) beginPart(p item.Part) {
	w.open.part = p
	if _, ok := w.open.value.(*item.Reasoning); ok {
		w.tell(&api.SummaryPartAddedEvent{SummaryEvent: w.inSummary(), Part: p})
		w.catchUp()
		return
	}
	w.tell(&api.PartAddedEvent{PartEvent: w.inContent(), Part: p})
	w.catchUp()
}

// endPart ends the open part. p is its final form.
func (w *Writer) endPart(p item.Part) {
	switch p := p.(type) {
	case *item.OutputText:
		w.tell(&api.TextDoneEvent{PartEvent: w.inContent(), Text: p.Text})
	case *item.Refusal:
		w.tell(&api.RefusalDoneEvent{PartEvent: w.inContent(), Refusal: p.Refusal})
	case *item.SummaryText:
		w.tell(&api.SummaryTextDoneEvent{SummaryEvent: w.inSummary(), Text: p.Text})
	}
	if _, ok := w.open.value.(*item.Reasoning); ok {
		w.tell(&api.SummaryPartDoneEvent{SummaryEvent: w.inSummary(), Part: p})
	} else {
		w.tell(&api.PartDoneEvent{PartEvent: w.inContent(), Part: p})
	}
	w.open.part = nil
	w.open.done++
	w.open.text.Reset()
	w.open.ahead = ""
}

// deltas writes a text in pieces that end after white space or a comma, like most
// tokens.
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

// Note sets what is stored with the response about how it was made: a JSON value for
// those who run the server, which is not sent to clients; see [StoredObject].
func (w *Writer) Note(v item.JSON) { w.note = v }

// Usage sets the token usage of the response. It is sent with the last event, unless
// the response fails.
func (w *Writer) Usage(u api.Usage) { w.response.Usage = &u }

// Complete ends a response successfully. A [Server] calls it when the backend
// returns without an error.
func (w *Writer) Complete() error {
	w.end(item.StatusCompleted)
	return w.tell(&api.CompletedEvent{ResponseEvent: w.about()})
}

// Incomplete ends a response early, for a reason such as max_output_tokens.
func (w *Writer) Incomplete(reason string) error {
	w.end(item.StatusIncomplete)
	w.response.Incomplete = &api.IncompleteDetails{Reason: reason}
	w.response.Extra.Delete("incomplete_details")
	return w.tell(&api.IncompleteEvent{ResponseEvent: w.about()})
}

// Interrupt ends a response early for a reason that the API has no word for, which the
// error of the response tells. What was written is kept, and so is the text so far of a message
// or reasoning that is open, as incomplete. A call that is open is left out.
func (w *Writer) Interrupt(code, message string) error {
	w.breakOff()
	w.end(item.StatusIncomplete)
	w.response.Error = &api.APIError{Code: code, Message: message}
	w.response.Extra.Delete("error")
	return w.tell(&api.IncompleteEvent{ResponseEvent: w.about()})
}

// cut is Interrupt for a response whose events nobody reads any more. It returns the response.
func (w *Writer) cut(code, message string) *api.Response {
	w.reopen()
	w.emit = func(api.Event) error { return nil }
	_ = w.Interrupt(code, message) // nothing is written
	return w.Response()
}

// Fail ends a response with an error. A [Server] calls it when the backend returns
// an error after the response began.
func (w *Writer) Fail(code, message string) error {
	w.failed(code, message)
	return w.tell(&api.FailedEvent{ResponseEvent: w.about()})
}

// failed sets the final state of a response with an error.
func (w *Writer) failed(code, message string) {
	w.end(item.StatusFailed)
	w.response.Error = &api.APIError{Code: code, Message: message}
	w.response.Extra.Delete("error")
}

// Error ends the stream with a bare error event. Some endpoints do this when they
// cannot report more. A backend should return an error instead.
func (w *Writer) Error(code, message string) error {
	_ = w.settle()
	return w.tell(&api.ErrorEvent{EventHead: w.head(), Code: code, Message: message})
}

// Flush sends the events that wait. None do before the first call; afterwards an event may
// wait until the next call, so that events which are there at the same time are sent together. A
// backend that calls Flush must call it whenever it begins to wait for something. The last event
// of the response does not wait.
func (w *Writer) Flush() error {
	if w.flush == nil || w.err != nil {
		return w.err
	}
	return w.fail(w.flush())
}

// Ended reports whether the last event was written.
func (w *Writer) Ended() bool { return ended(&w.response) }

// ended reports whether the status of a response is final.
func ended(r *api.Response) bool {
	switch r.Status {
	case "", item.StatusQueued, item.StatusInProgress:
		return false
	}
	return true
}

// end sets the final state of the response.
func (w *Writer) end(status string) {
	_ = w.settle()
	before := w.response
	w.before = &before
	w.response.Extra = slices.Clone(w.response.Extra)
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

// tell sends an event.
func (w *Writer) tell(v api.EventValue) error {
	if w.err != nil {
		return w.err
	}
	if w.unread != nil && w.unread(v.EventType()) {
		w.events++
		return nil
	}
	ev, err := api.NewEvent(v)
	if err != nil {
		return w.fail(err)
	}
	return w.send(ev)
}

func (w *Writer) send(ev api.Event) (err error) {
	switch {
	case w.err != nil:
		return w.err
	case w.emit == nil:
		err = errors.New("server: the Writer has no function that takes its events: make it by NewWriter")
	default:
		err = w.emit(ev)
	}
	if err == nil {
		w.events++
	}
	return w.fail(err)
}

// reopen prepares the writer for Fail after an event that was refused. An end that
// was refused is undone.
func (w *Writer) reopen() {
	w.err = nil
	if w.before != nil {
		w.response = *w.before
	}
}

// fail records an error. The first error is kept.
func (w *Writer) fail(err error) error {
	w.err = cmp.Or(w.err, err)
	return w.err
}

// head returns the head of the next event, with its number. An event that is refused
// uses no number.
func (w *Writer) head() api.EventHead {
	return api.EventHead{SequenceNumber: w.events, StreamID: w.StreamID}
}

func (w *Writer) about() api.ResponseEvent {
	return api.ResponseEvent{EventHead: w.head(), Response: w.state()}
}

// index returns the position of the item that is being written.
func (w *Writer) index() int {
	switch r := w.relay; {
	case r == nil:
	case w.open != nil:
		return r.open
	default:
		return r.at
	}
	return len(w.response.Output)
}

func (w *Writer) inItem() api.ItemEvent {
	return api.ItemEvent{EventHead: w.head(), ItemID: w.open.id, OutputIndex: w.index()}
}

func (w *Writer) inContent() api.PartEvent {
	return api.PartEvent{ItemEvent: w.inItem(), ContentIndex: w.open.done}
}

func (w *Writer) inSummary() api.SummaryEvent {
	return api.SummaryEvent{ItemEvent: w.inItem(), SummaryIndex: w.open.done}
}

// idPrefix returns the prefix for generated ids of items.
func idPrefix(t item.Type) string { return cmp.Or(idPrefixes[t], "item") }

var idPrefixes = map[item.Type]string{
	item.TypeMessage: "msg", item.TypeReasoning: "rs", item.TypeCompaction: "cmp",
	item.TypeFunctionCall: "fc", item.TypeFunctionCallOutput: "fco",
	item.TypeCustomToolCall: "ctc", item.TypeCustomToolCallOutput: "ctco",
	item.TypeMCPCall: "mcp", item.TypeMCPApprovalRequest: "mcpr", item.TypeMCPApprovalResponse: "mcpa",
}
