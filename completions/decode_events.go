// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package completions

import (
	"errors"
	"strconv"
	"strings"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/item"
)

// start yields the beginning of the response.
func (d *Decoder) start() error {
	if d.started {
		return nil
	}
	d.started = true
	d.reply.stem = stem(d.resp.ID)
	r := d.resp
	r.Status, r.Output, r.Extra = item.StatusInProgress, []item.Item{}, nil
	d.tell(&api.CreatedEvent{ResponseEvent: api.ResponseEvent{EventHead: d.here(), Response: &r}})
	d.tell(&api.InProgressEvent{ResponseEvent: api.ResponseEvent{EventHead: d.here(), Response: &r}})
	return d.fault
}

// here returns the head with the number of the next event.
func (d *Decoder) here() api.EventHead {
	d.n++
	return api.EventHead{SequenceNumber: d.n - 1}
}

func (d *Decoder) about(it liveItem) api.ItemEvent {
	return api.ItemEvent{EventHead: d.here(), ItemID: it.id, OutputIndex: it.index}
}

func (d *Decoder) part(t *liveText) api.PartEvent {
	return api.PartEvent{ItemEvent: d.about(t.liveItem), ContentIndex: t.part}
}

// tell yields an event.
func (d *Decoder) tell(v api.EventValue) {
	if d.stopped || d.fault != nil {
		return
	}
	ev, err := api.NewEvent(v)
	if err != nil {
		d.fault = err
		return
	}
	d.stopped = !d.yield(ev)
}

// tellDelta yields an event that adds text, given as JSON.
func (d *Decoder) tellDelta(typ api.EventType, it liveItem, part int, delta, logprobs item.JSON) {
	if d.stopped || d.fault != nil {
		return
	}
	b := append(d.buf[:0], `{"type":"`...)
	b = append(b, typ...)
	b = append(b, `","sequence_number":`...)
	b = strconv.AppendInt(b, d.n, 10)
	b = append(b, `,"item_id":"`...)
	b = append(b, it.id...) // letters and digits only
	b = append(b, `","output_index":`...)
	b = strconv.AppendInt(b, int64(it.index), 10)
	if part >= 0 {
		b = append(b, `,"content_index":`...)
		b = strconv.AppendInt(b, int64(part), 10)
	}
	b = append(append(b, `,"delta":`...), delta...)
	if logprobs != "" {
		b = append(append(b, `,"logprobs":`...), logprobs...)
	}
	d.buf = append(b, '}')
	d.n++
	ev, err := d.events.Decode(d.buf)
	if err != nil {
		d.fault = err
		return
	}
	d.stopped = !d.yield(ev)
}

// begin opens an output item.
func (d *Decoder) begin(id string, v item.Value) liveItem {
	it, err := item.New(v)
	if err != nil {
		d.fault = err
	}
	live := liveItem{id: id, index: d.next}
	d.next++
	d.tell(&api.ItemAddedEvent{EventHead: d.here(), OutputIndex: live.index, Item: it})
	return live
}

// think appends to the reasoning.
func (d *Decoder) think(v item.JSON) {
	s, ok := v.Unquote()
	if !ok || s == "" {
		return
	}
	d.openThinking()
	if d.thinking.text.Len() == 0 && d.thinking.half == "" {
		d.tell(&api.PartAddedEvent{PartEvent: d.part(d.thinking), Part: &item.ReasoningText{}})
	}
	if v = d.thinking.whole(v); v != "" {
		d.tellDelta(api.EventReasoningTextDelta, d.thinking.liveItem, d.thinking.part, v, "")
	}
}

// whole appends a delta to the text and returns its whole characters. A server may split a
// character between two deltas; the first half then waits for the second.
func (t *liveText) whole(v item.JSON) item.JSON {
	v, t.half = v.WithHalf(t.half).CutHalf()
	s, _ := v.Unquote()
	if s == "" {
		return ""
	}
	t.text.WriteString(s)
	return v
}

// half is U+FFFD as JSON. It stands for half a character.
const half = `"\ufffd"`

// endHalf ends a text whose last character is incomplete.
func (d *Decoder) endHalf(t *liveText, kind api.EventType) {
	if t == nil || t.half == "" {
		return
	}
	t.half = ""
	t.text.WriteString("\uFFFD")
	d.loseContent("choices[0].delta", "a text ends in half a character, which became U+FFFD")
	d.tellDelta(kind, t.liveItem, t.part, half, "")
}

// openThinking opens the reasoning.
func (d *Decoder) openThinking() {
	if d.thinking == nil {
		id := d.reply.itemID("rs")
		d.thinking = &liveText{liveItem: d.begin(id, &item.Reasoning{ID: id})}
	}
}

// speak opens the message, and a part of it.
func (d *Decoder) speak(p item.Part) *liveText {
	if d.message == nil {
		id := d.reply.itemID("msg")
		live := d.begin(id, &item.Message{ID: id, Status: item.StatusInProgress, Role: item.RoleAssistant, Content: item.Parts()})
		d.message = &live
	}
	t := &liveText{liveItem: *d.message, part: d.inParts}
	d.inParts++
	d.tell(&api.PartAddedEvent{PartEvent: d.part(t), Part: p})
	return t
}

// write appends to the text.
func (d *Decoder) write(v, logprobs item.JSON) {
	s, ok := v.Unquote()
	if !ok || s == "" {
		return
	}
	if d.text == nil {
		d.text = d.speak(&item.OutputText{Annotations: "[]"})
	}
	v = d.text.whole(v)
	probs := member(logprobs, "content")
	if blank(probs) || probs[0] != '[' {
		probs = "[]"
	}
	eachElement(probs, func(_ int, p item.JSON) {
		d.text.logprobs = append(d.text.logprobs, item.JSON(strings.Clone(string(p))))
	})
	if v != "" {
		d.tellDelta(api.EventTextDelta, d.text.liveItem, d.text.part, v, probs)
	}
}

func (d *Decoder) refuse(v item.JSON) {
	s, ok := v.Unquote()
	if !ok || s == "" {
		return
	}
	if d.refusal == nil {
		d.refusal = d.speak(&item.Refusal{})
	}
	if v = d.refusal.whole(v); v != "" {
		d.tellDelta(api.EventRefusalDelta, d.refusal.liveItem, d.refusal.part, v, "")
	}
}

// annotate yields the annotations of the text, as soon as there is a text.
func (d *Decoder) annotate() {
	if d.text == nil {
		return
	}
	for _, a := range d.early {
		n := len(d.text.annotations)
		d.text.annotations = append(d.text.annotations, item.JSON(strings.Clone(string(a))))
		d.tell(&api.UnknownEvent{Raw: item.JSON(`{"type":"` + string(api.EventAnnotationAdded) + `","sequence_number":` +
			strconv.FormatInt(d.here().SequenceNumber, 10) + `,"item_id":"` + d.text.id + `","output_index":` + strconv.Itoa(d.text.index) +
			`,"content_index":` + strconv.Itoa(d.text.part) + `,"annotation_index":` + strconv.Itoa(n) + `,"annotation":` + string(a) + `}`)})
	}
	d.early = nil
}

// fail yields an error from a chunk. Nothing follows it.
func (d *Decoder) fail(e *api.APIError) {
	d.failed = true
	d.tell(&api.ErrorEvent{EventHead: d.here(), Error: e})
}

// Finish ends the stream. It yields the events that end all items and the response, or returns
// [ErrTruncated] if the choice has no finish_reason and did not end in another way; see
// [Decoder.Done]. After an error it yields nothing.
func (d *Decoder) Finish(yield func(api.Event) bool) error {
	if d.ended || d.failed {
		return nil
	}
	if d.reason == "" && !d.whole() {
		return ErrTruncated
	}
	d.yield, d.ended = yield, true
	d.settle()
	if d.resp.Status == item.StatusFailed {
		d.tell(&api.FailedEvent{ResponseEvent: api.ResponseEvent{EventHead: d.here(), Response: &d.resp}})
		return d.fault
	}
	if err := d.beginCalls(); err != nil {
		return err
	}
	d.finishItems()
	last := api.ResponseEvent{EventHead: d.here(), Response: &d.resp}
	if d.resp.Status == item.StatusIncomplete {
		d.tell(&api.IncompleteEvent{ResponseEvent: last})
	} else {
		d.tell(&api.CompletedEvent{ResponseEvent: last})
	}
	return d.fault
}

// whole reports whether a reply without a finish_reason is whole: the usage came after everything
// else, the stream ended with [DONE], and no call breaks off in its arguments.
func (d *Decoder) whole() bool {
	if !d.closed || !d.counted || d.next == 0 {
		return false
	}
	for _, c := range d.calls {
		if input := item.JSON(c.input.String()); !c.custom && input != "" && input.Valid() != nil {
			return false
		}
	}
	d.note(Loss{Path: "choices[0].finish_reason", What: "was never given: usage and [DONE] ended the reply"})
	return true
}

// settle completes the response.
func (d *Decoder) settle() {
	settle(&d.resp, d.reason, place{&d.losses, "choices[0]"})
	d.resp.Usage = readUsage(d.usage)
	if len(d.early) > 0 {
		d.lose("choices[0].delta.annotations", `"are of a text that is not there"`)
	}
	d.resp.Output = []item.Item{}
}

// finishItems ends the items in the order in which they began. The last one is incomplete if the
// response is.
func (d *Decoder) finishItems() {
	for i := range d.next {
		status := item.StatusCompleted
		if i == d.next-1 {
			status = d.resp.Status
		}
		switch {
		case d.thinking != nil && d.thinking.index == i:
			d.finishThinking(status)
		case d.message != nil && d.message.index == i:
			d.finishMessage(status)
		default:
			d.finishCall(i, status)
		}
	}
}

// done yields the end of an item.
func (d *Decoder) done(index int, v item.Value) {
	it, err := item.New(v)
	if err != nil {
		d.fault = errors.Join(d.fault, err)
		return
	}
	d.resp.Output = append(d.resp.Output, it)
	d.tell(&api.ItemDoneEvent{EventHead: d.here(), OutputIndex: index, Item: it})
}

func (d *Decoder) finishThinking(status string) {
	d.endHalf(d.thinking, api.EventReasoningTextDelta)
	v := &item.Reasoning{ID: d.thinking.id}
	if s := d.thinking.text.String(); s != "" {
		p := &item.ReasoningText{Text: s}
		v.Content = []item.Part{p}
		d.tell(&api.ReasoningTextDoneEvent{PartEvent: d.part(d.thinking), Text: s})
		d.tell(&api.PartDoneEvent{PartEvent: d.part(d.thinking), Part: p})
	}
	if list := d.details.json(); list != "" {
		v.Extra.Set(ReasoningDetails, list)
	}
	if status == item.StatusIncomplete {
		v.Status = status
	}
	d.done(d.thinking.index, v)
}

func (d *Decoder) finishMessage(status string) {
	parts := make([]item.Part, d.inParts)
	d.endHalf(d.text, api.EventTextDelta)
	d.endHalf(d.refusal, api.EventRefusalDelta)
	if t := d.text; t != nil {
		p := &item.OutputText{Text: t.text.String(), Annotations: jsonList(t.annotations)}
		if len(t.logprobs) > 0 {
			p.Logprobs = jsonList(t.logprobs)
		}
		probs, _ := p.TokenLogprobs()
		d.tell(&api.TextDoneEvent{PartEvent: d.part(t), Text: p.Text, Logprobs: probs})
		d.tell(&api.PartDoneEvent{PartEvent: d.part(t), Part: p})
		parts[t.part] = p
	}
	if t := d.refusal; t != nil {
		p := &item.Refusal{Refusal: t.text.String()}
		d.tell(&api.RefusalDoneEvent{PartEvent: d.part(t), Refusal: p.Refusal})
		d.tell(&api.PartDoneEvent{PartEvent: d.part(t), Part: p})
		parts[t.part] = p
	}
	d.reply.parts = parts
	d.done(d.message.index, d.reply.message(status))
}

func jsonList(list []item.JSON) item.JSON {
	w := appendTo(nil)
	w.open('[')
	for _, v := range list {
		w.raw("", v)
	}
	w.close(']')
	return item.JSON(w.buf)
}
