// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package completions

import (
	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/item"
)

// Done is the data of the event that ends a stream of chunks.
const Done = "[DONE]"

// Encoder converts the events of a response to the chunks of a streamed chat completion, for
// servers. The caller must send the event [Done] after the last chunk.
//
// The zero value is ready for one response. An Encoder is not safe for concurrent use.
type Encoder struct {
	// Options select the member for reasoning, see [Options.Reasoning].
	Options Options

	resp    api.Response
	started bool
	items   map[int]*sentItem
	calls   int
	speaker *sentItem // the message or refusal that was sent last
	thinker *sentItem
	probs   item.JSON // for the next chunk
	losses  []Loss
	emit    func(chunk []byte) error
}

// sentItem records which parts of an output item were sent.
type sentItem struct {
	call   int  // its number, -1 if it is not a call
	said   bool // something was sent
	whole  bool
	custom bool
}

// Encode passes an event's chunks to emit, and returns the error of emit. The callee may keep the
// chunks.
func (e *Encoder) Encode(ev api.Event, emit func(chunk []byte) error) error {
	e.emit = emit
	switch ev.Type {
	case api.EventCreated, api.EventInProgress, api.EventQueued:
		if r, err := ev.Response(); err == nil && e.resp.ID == "" {
			e.resp = *r
		}
		return e.start()
	case api.EventItemAdded:
		it, err := ev.Item()
		if err != nil {
			return err
		}
		return e.added(it, ev.OutputIndex)
	case api.EventItemDone:
		it, err := ev.Item()
		if err != nil {
			return err
		}
		return e.done(it, ev.OutputIndex)
	case api.EventCompleted, api.EventIncomplete, api.EventFailed, api.EventCancelled, api.EventError:
		return e.last(ev)
	}
	return e.delta(ev)
}

// Losses returns the parts of the events so far that have no counterpart.
func (e *Encoder) Losses() []Loss { return e.losses }

// delta sends the addition of a delta event.
func (e *Encoder) delta(ev api.Event) error {
	s := e.item(ev.OutputIndex)
	switch ev.Type {
	case api.EventTextDelta:
		if v, _ := ev.Member("logprobs"); !blank(v) {
			e.probs = v
		}
		return e.speak(s, "content", ev.Delta)
	case api.EventRefusalDelta:
		return e.speak(s, "refusal", ev.Delta)
	case api.EventReasoningTextDelta, api.EventSummaryTextDelta:
		return e.think(s, ev.Delta)
	case api.EventArgumentsDelta, api.EventCustomInputDelta:
		return e.argue(s, ev.Delta)
	case api.EventAnnotationAdded:
		a, _ := ev.Member("annotation")
		return e.chunk(func(w *writer) { w.raw("annotations", writeAnnotations("["+a+"]")) }, "")
	}
	return nil
}

func (e *Encoder) item(index int) *sentItem {
	if e.items == nil {
		e.items = map[int]*sentItem{}
	}
	if e.items[index] == nil {
		e.items[index] = &sentItem{call: -1}
	}
	return e.items[index]
}

func (e *Encoder) start() error {
	if e.started {
		return nil
	}
	e.started = true
	return e.chunk(func(w *writer) {
		w.text("role", string(item.RoleAssistant))
		w.text("content", "")
	}, "")
}

// chunk sends a chunk with a delta and, at the end, the finish reason.
func (e *Encoder) chunk(delta func(*writer), reason string) error {
	probs := e.probs
	e.probs = ""
	if err := e.start(); err != nil {
		return err
	}
	w := newWriter()
	w.open('{')
	e.Options.writeHead(w, &e.resp, "chat.completion.chunk")
	w.name("choices")
	w.open('[')
	w.open('{')
	w.number("index", 0)
	w.name("delta")
	w.open('{')
	delta(w)
	w.close('}')
	if probs != "" {
		w.raw("logprobs", `{"content":`+probs+`}`)
	}
	if reason == "" {
		w.raw("finish_reason", "null")
	} else {
		w.text("finish_reason", reason)
	}
	w.close('}')
	w.close(']')
	w.close('}')
	return e.emit(w.buf)
}

// speak sends a piece of text or refusal. Text of another message begins on a new line.
func (e *Encoder) speak(s *sentItem, member, text string) error {
	if text == "" {
		return nil
	}
	if e.speaker != nil && e.speaker != s {
		text = "\n" + text
	}
	e.speaker, s.said = s, true
	return e.chunk(func(w *writer) { w.text(member, text) }, "")
}

func (e *Encoder) think(s *sentItem, text string) error {
	s.said = true
	name := e.Options.Reasoning
	if name == "" {
		return nil // reported when the item is done
	}
	if name == ReasoningDetails {
		name = ReasoningPlain
	}
	if e.thinker != nil && e.thinker != s {
		text = "\n" + text
	}
	e.thinker = s
	return e.chunk(func(w *writer) { w.text(name, text) }, "")
}

func (e *Encoder) argue(s *sentItem, text string) error {
	if s.call < 0 || text == "" {
		return nil
	}
	s.said = true
	return e.callChunk(s, func(w *writer) {
		holder, input := "function", "arguments"
		if s.custom {
			holder, input = "custom", "input"
		}
		w.name(holder)
		w.open('{')
		w.text(input, text)
		w.close('}')
	})
}

func (e *Encoder) callChunk(s *sentItem, inside func(*writer)) error {
	return e.chunk(func(w *writer) {
		w.name("tool_calls")
		w.open('[')
		w.open('{')
		w.number("index", int64(s.call))
		inside(w)
		w.close('}')
		w.close(']')
	}, "")
}

// added sends the beginning of a call.
func (e *Encoder) added(it item.Item, index int) error {
	s := e.item(index)
	if t := it.Type(); t != item.TypeFunctionCall && t != item.TypeCustomToolCall || s.call >= 0 {
		return nil
	}
	c, err := readCall(it, place{})
	if err != nil {
		return err
	}
	s.call, s.custom = e.calls, c.custom
	e.calls++
	return e.callChunk(s, func(w *writer) {
		w.text("id", c.id)
		holder, input := "function", "arguments"
		if c.custom {
			holder, input = "custom", "input"
		}
		w.text("type", holder)
		w.name(holder)
		w.open('{')
		w.text("name", c.name)
		w.text(input, "")
		w.close('}')
	})
}

// done sends the parts of an item that no delta sent.
func (e *Encoder) done(it item.Item, index int) error {
	s := e.item(index)
	if s.whole {
		return nil
	}
	s.whole = true
	a, err := e.Options.answer([]item.Item{it}, place{&e.losses, "output"})
	if err != nil {
		return err
	}
	if err := e.added(it, index); err != nil || s.said {
		return err
	}
	for _, p := range a.said {
		if err := e.speak(s, "content", p.(*item.OutputText).Text); err != nil {
			return err
		}
	}
	if err := e.speak(s, "refusal", a.refusal); err != nil {
		return err
	}
	for _, t := range a.thoughts {
		if err := e.think(s, t); err != nil {
			return err
		}
	}
	if !a.isCalling() {
		return nil
	}
	c, err := readCall(it, place{})
	if err != nil {
		return err
	}
	return e.argue(s, c.input)
}

// last sends the end of the response.
func (e *Encoder) last(ev api.Event) error {
	if a, ok := ev.Err(); ok {
		body, err := (&api.ErrorBody{Error: a}).AppendJSON(nil)
		if err != nil {
			return err
		}
		return e.emit(body)
	}
	r, err := ev.Response()
	if err != nil {
		return err
	}
	if e.resp.ID == "" {
		e.resp = *r
	}
	for i, it := range r.Output {
		if err := e.done(it, i); err != nil {
			return err
		}
	}
	if r.Status == "" {
		r.Status = string(ev.Type)[len("response."):]
	}
	if err := e.chunk(func(*writer) {}, finishOf(r, e.calls > 0)); err != nil || r.Usage == nil {
		return err
	}
	w := newWriter()
	w.open('{')
	e.Options.writeHead(w, &e.resp, "chat.completion.chunk")
	w.raw("choices", "[]")
	writeUsage(w, r.Usage)
	w.close('}')
	return e.emit(w.buf)
}
