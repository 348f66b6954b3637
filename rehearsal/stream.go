// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package rehearsal

import (
	"context"
	"strconv"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/antiphon-go/antiphon/item"
)

// stream sends an answer as events. The first error, which is that the client
// is gone, sticks; nothing is sent after it.
type stream struct {
	to   sink
	done func() // called before the last event, if not nil
	lane string // of a WebSocket
	pace time.Duration
	seq  int
	err  error
}

// sink is where events go.
type sink interface {
	// wait lets time pass before the next event.
	wait(time.Duration) error
	// send takes an event; data is its own.
	send(typ item.EventType, data []byte) error
}

// event is a stream event in the making.
type event struct {
	typ  item.EventType
	data []byte
}

func (s *stream) event(typ item.EventType) *event {
	e := &event{typ: typ, data: append([]byte(`{"type":`), item.Quote(string(typ))...)}
	e.index("sequence_number", s.seq)
	if s.lane != "" {
		e.text("stream_id", s.lane)
	}
	s.seq++
	return e
}

func (e *event) raw(name string, value item.JSON) *event {
	e.data = append(append(append(append(e.data, `,"`...), name...), `":`...), value...)
	return e
}

func (e *event) index(name string, n int) *event { return e.raw(name, item.JSON(strconv.Itoa(n))) }
func (e *event) text(name, s string) *event      { return e.raw(name, item.Quote(s)) }

// of adds what names an output item's place.
func (e *event) of(i int, o *output) *event {
	return e.text("item_id", o.done.ID()).index("output_index", i)
}

func (s *stream) send(e *event) {
	if s.err == nil {
		s.err = s.to.send(e.typ, append(e.data, '}'))
	}
}

// wait lets time pass, unless the client is gone.
func (s *stream) wait(d time.Duration) {
	if s.err == nil {
		s.err = s.to.wait(d)
	}
}

func sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

// stream sends the whole answer.
func (a *answer) stream(s *stream) {
	s.pace, s.lane = a.pace, a.lane
	if isSet(a.req.Background) {
		s.response(item.EventCreated, a, item.StatusQueued)
		s.response(item.EventQueued, a, item.StatusQueued)
	} else {
		s.response(item.EventCreated, a, item.StatusInProgress)
	}
	s.response(item.EventInProgress, a, item.StatusInProgress)
	for i := range a.outputs {
		s.output(i, &a.outputs[i])
	}
	s.wait(a.tail)
	if s.err == nil && s.done != nil {
		s.done()
	}
	s.response(item.EventCompleted, a, item.StatusCompleted)
}

func (s *stream) output(i int, o *output) {
	s.wait(o.wait)
	s.send(s.event(item.EventItemAdded).index("output_index", i).raw("item", item.JSON(o.added.JSON())))
	switch o.done.Type() {
	case item.TypeMessage:
		s.message(i, o)
	case item.TypeReasoning:
		s.reasoning(i, o)
	default:
		s.call(i, o)
	}
	s.send(s.event(item.EventItemDone).index("output_index", i).raw("item", item.JSON(o.done.JSON())))
}

func (s *stream) response(typ item.EventType, a *answer, status string) {
	var outputs []item.Item
	if status == item.StatusCompleted {
		outputs = a.items()
	}
	b, err := a.response(status, outputs).AppendJSON(nil)
	if err != nil && s.err == nil {
		s.err = err
	}
	s.send(s.event(typ).raw("response", item.JSON(b)))
}

// part is the place of a message's only part.
func (e *event) part(i int, o *output) *event { return e.of(i, o).index("content_index", 0) }

func (s *stream) message(i int, o *output) {
	s.send(s.event(item.EventPartAdded).part(i, o).raw("part", partJSON("")))
	s.deltas(o, func(text string) *event {
		return s.event(item.EventTextDelta).part(i, o).text("delta", text).raw("logprobs", "[]")
	})
	text := o.text()
	s.send(s.event(item.EventTextDone).part(i, o).text("text", text).raw("logprobs", "[]"))
	s.send(s.event(item.EventPartDone).part(i, o).raw("part", partJSON(text)))
}

func partJSON(text string) item.JSON {
	return `{"type":"output_text","annotations":[],"logprobs":[],"text":` + item.Quote(text) + `}`
}

func (s *stream) reasoning(i int, o *output) {
	place := func(e *event) *event { return e.of(i, o).index("summary_index", 0) }
	part := func(text string) item.JSON { return `{"type":"summary_text","text":` + item.Quote(text) + `}` }
	s.send(place(s.event(item.EventSummaryPartAdded)).raw("part", part("")))
	s.deltas(o, func(text string) *event {
		return place(s.event(item.EventSummaryTextDelta)).text("delta", text)
	})
	s.send(place(s.event(item.EventSummaryTextDone)).text("text", o.text()))
	s.send(place(s.event(item.EventSummaryPartDone)).raw("part", part(o.text())))
}

// call streams the arguments of a function call or the input of a custom one.
func (s *stream) call(i int, o *output) {
	custom := o.done.Type() == item.TypeCustomToolCall
	delta := item.EventArgumentsDelta
	if custom {
		delta = item.EventCustomInputDelta
	}
	s.deltas(o, func(text string) *event { return s.event(delta).of(i, o).text("delta", text) })
	if custom {
		s.send(s.event(item.EventCustomInputDone).of(i, o).text("input", o.text()))
		return
	}
	s.send(s.event(item.EventArgumentsDone).of(i, o).text("name", o.done.Name()).text("arguments", o.text()))
}

// deltas sends the text of an output word by word.
func (s *stream) deltas(o *output, event func(text string) *event) {
	for _, p := range o.pieces {
		s.wait(p.wait)
		for _, word := range words(p.text) {
			s.wait(s.pace)
			if s.err != nil {
				return
			}
			s.send(event(word))
		}
	}
}

// maxWord is where text without spaces is cut, in bytes.
const maxWord = 24

// words cuts a text after its white space; joined they are the text. A rune is
// never cut.
func words(text string) []string {
	var list []string
	begin, space := 0, false
	for i, r := range text {
		if isSpace := unicode.IsSpace(r); space && !isSpace || i-begin+utf8.RuneLen(r) > maxWord && !isSpace {
			list = append(list, text[begin:i])
			begin = i
		}
		space = unicode.IsSpace(r)
	}
	if begin < len(text) {
		list = append(list, text[begin:])
	}
	return list
}

// duration is how long a whole answer takes: as long as its stream.
func (a *answer) duration() time.Duration {
	d := a.tail
	for i := range a.outputs {
		d += a.outputs[i].wait
		for _, p := range a.outputs[i].pieces {
			d += p.wait + a.pace*time.Duration(len(words(p.text)))
		}
	}
	return d
}
