// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package completions

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/dialect"
	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/item"
)

// ErrTruncated is returned by [Decoder.Finish] if the stream ended before its choice did. It wraps
// [dialect.ErrTruncated].
var ErrTruncated = fmt.Errorf("%w: the choice gave no finish_reason", dialect.ErrTruncated)

// Decoder converts the chunks of a streamed chat completion to the events that the Responses API
// would have sent. The events build the same items that [ParseResponse] returns for the same
// completion as a single object.
//
// It handles the variants of real servers: calls without an index, or all with the same index; an
// id or a name in the first chunk, in each, or in none; arguments as an object; content as a list;
// usage beside the last choice or after it. All items are done at the end of the stream, because
// only then it is known that nothing follows.
//
// The zero value is ready for one stream. A Decoder is not safe for concurrent use.
type Decoder struct {
	resp    api.Response
	reply   reply
	started bool
	ended   bool // the last event was yielded
	failed  bool // an error in a chunk ended the reply
	reason  string
	usage   item.JSON
	counted bool  // the last chunk reported usage
	closed  bool  // the stream said [DONE]
	n       int64 // number of events so far
	yield   func(api.Event) bool
	stopped bool
	fault   error // error while making an event

	next     int // next output index
	thinking *liveText
	text     *liveText
	refusal  *liveText
	message  *liveItem
	inParts  int // number of parts of the message
	details  detailList
	early    []item.JSON // annotations that were not yielded yet
	calls    []*liveCall

	like    pattern // of the last chunk, if it was only a text delta
	deltas  int     // number in this chunk
	written bool    // the message has a text besides a transcript
	events  api.EventDecoder
	buf     []byte
	losses  []Loss
	lost    map[string]bool
}

// liveItem is an output item that has begun.
type liveItem struct {
	id    string
	index int
}

// liveText is a text that has begun.
type liveText struct {
	liveItem
	part        int
	text        strings.Builder
	half        string // first half of a character, which the next delta completes
	annotations []item.JSON
	logprobs    []item.JSON
}

// Decode decodes one chunk and yields its events until yield returns false. The error is an
// [*item.SyntaxError], or an [*item.ShapeError] if the data is not a chunk.
func (d *Decoder) Decode(chunk []byte, yield func(api.Event) bool) error {
	if d.yield = yield; d.repeats(chunk) {
		return d.fault
	}
	text := item.JSON(chunk)
	if err := text.Valid(); err != nil {
		return err
	}
	if text = trim(text); text[0] != '{' {
		return shapeError("", "found "+kindOf(text)+", want a chunk")
	}
	if d.ended || d.failed {
		return nil
	}
	d.like, d.deltas = pattern{}, 0
	err := d.chunk(text)
	if err == nil && d.deltas == 1 && !d.counted && !d.failed {
		d.like.around(string(chunk))
	}
	return errors.Join(err, d.fault)
}

// Done records that the stream ended with [DONE]. Call it before [Decoder.Finish]: some servers
// never send a finish_reason, and [DONE] after a usage report is the only sign that their reply is
// whole.
func (d *Decoder) Done() { d.closed = true }

// Losses returns the parts of the chunks so far that have no counterpart, each once.
func (d *Decoder) Losses() []Loss { return d.losses }

// Reason returns the reason why the choice ended, or "" before its end.
func (d *Decoder) Reason() string { return d.reason }

// chunk decodes one chunk. The decoder keeps the values, so they must not share the chunk's memory.
func (d *Decoder) chunk(v item.JSON) error {
	d.counted = false
	var choices, fault, object item.JSON
	foreign := ""
	eachMember(v, func(name string, v item.JSON) {
		switch name {
		case "choices":
			choices = v
		case "error":
			fault = v
		case "object":
			object = v
		case "type":
			if t, _ := v.Unquote(); strings.HasPrefix(t, "response.") {
				foreign = t
			}
		default:
			d.head(name, v)
		}
	})
	if fault == "" && object == `"error"` { // vLLM's form
		fault = v
	}
	if !blank(fault) {
		d.fail(readError(item.JSON(strings.Clone(string(fault)))))
		return nil
	}
	if choices == "" && foreign == "" {
		if e := endpoint.FromEvent([]byte(v)); e != nil { // sent by gateways: {"detail":"…"}
			d.fail(&api.APIError{Code: e.Code, Type: e.Type, Message: e.Message, Param: e.Param})
			return nil
		}
	}
	if choices == "" && foreign != "" {
		return shapeError("choices", "found nothing: this is the event "+foreign+" of the Responses API")
	}
	var err error
	eachElement(choices, func(i int, c item.JSON) {
		if err == nil {
			err = d.choice(i, c)
		}
	})
	return err
}

// head reads the members of a chunk other than its choices.
func (d *Decoder) head(name string, v item.JSON) {
	if blank(v) {
		return
	}
	text, _ := v.Unquote()
	switch name {
	case "id":
		if d.resp.ID == "" {
			d.resp.ID = strings.Clone(text)
		}
	case "model":
		if d.resp.Model == "" {
			d.resp.Model = strings.Clone(text)
		}
	case "created":
		if n, ok := integer(v); ok && d.resp.CreatedAt == nil && n != 0 {
			d.resp.CreatedAt = new(float64(n))
		}
	case "service_tier":
		d.resp.ServiceTier = strings.Clone(text)
	case "usage":
		d.count(v)
	case "x_groq":
		if u := member(v, "usage"); u != "" && d.usage == "" {
			d.count(u)
		}
		d.keep(name, v)
	case "obfuscation", "p": // meaningless padding
	default:
		d.keep(name, v)
	}
}

// maxKept limits the number of unknown members that a response keeps.
const maxKept = 100

// keep keeps an unknown member; the last value counts.
func (d *Decoder) keep(name string, v item.JSON) {
	old, known := d.resp.Extra.Get(name)
	switch {
	case !known && len(d.resp.Extra) == maxKept:
		d.lose(name, v)
	case old != v:
		d.resp.Extra.Set(strings.Clone(name), item.JSON(strings.Clone(string(v))))
	}
}

func (d *Decoder) count(v item.JSON) {
	if readUsage(v) != nil {
		d.usage, d.counted = item.JSON(strings.Clone(string(v))), true
	}
}

// choice reads the choice at index at of a chunk.
func (d *Decoder) choice(at int, v item.JSON) error {
	if v[0] != '{' {
		return shapeError("choices", "found "+kindOf(v)+", want a choice")
	}
	i := member(v, "index")
	if i == "" || i == "null" {
		i = item.JSON(strconv.Itoa(at))
	}
	if i != "0" {
		d.loseContent("choices["+string(i)+"]", "a response has one choice")
		return nil
	}
	if err := d.start(); err != nil {
		return err
	}
	c := d.readChoice(v)
	if blank(c.delta) && d.next == 0 {
		c.delta = c.message // a server that streams a whole message
		d.deltas++
	}
	if d.deltas++; !blank(c.delta) && c.delta[0] == '{' {
		if err := d.delta(c.delta, c.logprobs); err != nil {
			return err
		}
	}
	if !blank(c.fault) {
		d.fail(readError(item.JSON(strings.Clone(string(c.fault)))))
	}
	return nil
}

// chunkChoice holds the members of a chunk's choice.
type chunkChoice struct{ delta, message, logprobs, fault item.JSON }

func (d *Decoder) readChoice(v item.JSON) (c chunkChoice) {
	eachMember(v, func(name string, v item.JSON) {
		switch name {
		case "delta":
			c.delta = v
		case "message":
			c.message = v
		case "logprobs":
			c.logprobs = v
		case "error":
			c.fault = v
		case "finish_reason":
			if s, _ := v.Unquote(); s != "" {
				d.reason = strings.Clone(s)
			}
		case "index":
		default:
			d.lose("choices[0]."+name, v)
		}
	})
	return c
}

// delta reads a chunk's addition to the message.
func (d *Decoder) delta(v, logprobs item.JSON) error {
	p := d.readDelta(v)
	if blank(logprobs) {
		d.like = patternOf(&p)
	}
	if !blank(p.details) {
		d.details.add(p.details)
		d.openThinking()
	}
	if p.thought == "" {
		p.thought = d.details.fresh
	}
	d.details.fresh = ""
	d.think(p.thought)
	d.transcribe(&p)
	d.say(p.content, logprobs)
	d.refuse(p.refusal)
	eachElement(p.annotations, func(_ int, a item.JSON) { d.early = append(d.early, flatAnnotation(a)) })
	d.annotate()
	var err error
	if p.function != "" && (len(d.calls) > 0 || !emptyCall(p.function)) {
		d.note(Loss{Path: "choices[0].delta.function_call", What: olderCall, Kind: Moved})
		err = d.call(`{"type":"function","function":`+p.function+`}`, 0)
	}
	eachElement(p.calls, func(i int, c item.JSON) {
		if err == nil {
			err = d.call(c, i)
		}
	})
	return err
}

// emptyCall reports whether a call of the older form is empty. Some servers send such a call with
// each answer.
func emptyCall(v item.JSON) bool {
	name, _ := member(v, "name").Unquote()
	input, isText := member(v, "arguments").Unquote()
	return name == "" && input == "" && (isText || blank(member(v, "arguments")))
}

// chunkDelta is a chunk's addition to the message. A member without an addition is "".
type chunkDelta struct {
	content, thought, refusal, annotations, details, calls, function item.JSON
	transcript                                                       string // of a spoken answer
	odd                                                              bool   // it has other members
}

func (d *Decoder) readDelta(v item.JSON) (p chunkDelta) {
	eachMember(v, func(name string, v item.JSON) {
		if blank(v) {
			return
		}
		switch name {
		case "role":
		case "content":
			p.content = v
		case "refusal":
			p.refusal = v
		case ReasoningContent:
			p.thought = v
		case ReasoningPlain:
			if p.thought == "" {
				p.thought = v
			}
		case ReasoningDetails:
			p.details = v
		case "annotations":
			p.annotations = v
		case "tool_calls":
			p.calls = v
		case "function_call":
			p.function = v
		case "audio":
			p.transcript, _ = member(v, "transcript").Unquote()
			p.odd = true
			d.loseContent("choices[0].delta.audio", soundLost)
		default:
			d.lose("choices[0].delta."+name, v)
		}
	})
	return p
}

// transcribe takes the transcript of a spoken answer as the text, unless the message
// has one.
func (d *Decoder) transcribe(p *chunkDelta) {
	const at = "choices[0].delta.audio.transcript"
	d.written = d.written || p.content != "" && p.content != `""` && p.content != "[]"
	switch {
	case p.transcript == "":
	case d.written:
		d.loseContent(at, transcriptLost)
	default:
		p.content = item.Quote(p.transcript)
		d.note(Loss{Path: at, What: transcriptKept, Kind: Moved})
	}
}

// say appends content to the message: a string, or a list of parts.
func (d *Decoder) say(v, logprobs item.JSON) {
	switch {
	case v == "":
		d.lose("choices[0].logprobs.content", member(logprobs, "content"))
	case v[0] == '"':
		d.write(v, logprobs)
	case v[0] == '[':
		eachElement(v, func(_ int, p item.JSON) { d.sayPart(p, logprobs) })
	case v[0] == '{': // from servers that parse requested JSON output
		d.note(Loss{Path: "choices[0].delta.content", What: "an object: becomes its JSON text", Kind: Moved})
		d.write(item.Quote(string(v)), logprobs)
	default:
		d.loseContent("choices[0].delta.content", "is neither a string nor a list of parts")
	}
	eachMember(logprobs, func(name string, v item.JSON) {
		if name != "content" {
			d.lose("choices[0].logprobs."+name, v)
		}
	})
}

func (d *Decoder) sayPart(v, logprobs item.JSON) {
	o := place{}.open(v)
	switch typ := o.text("type"); typ {
	case "text", "output_text", "":
		d.write(o.take("text"), logprobs)
	case "thinking":
		d.think(item.Quote(o.thinking()))
	case "refusal":
		d.refuse(o.take("refusal"))
	default:
		d.loseContent("choices[0].delta.content", "a part of the type "+typ+" has no counterpart")
	}
}

// lose records a member that has no counterpart, once, unless it is blank.
func (d *Decoder) lose(path string, v item.JSON) {
	if !blank(v) {
		d.note(Loss{Path: path, What: noCounterpart})
	}
}

func (d *Decoder) loseContent(path, what string) {
	d.note(Loss{Path: path, What: what, Kind: LostContent})
}

// maxLost limits the number of losses that are reported for one stream.
const maxLost = 1000

func (d *Decoder) note(l Loss) {
	if d.lost[l.Path] || len(d.losses) >= maxLost {
		return
	}
	if d.lost == nil {
		d.lost = map[string]bool{}
	}
	l.Path = strings.Clone(l.Path)
	d.lost[l.Path] = true
	d.losses = append(d.losses, l)
}

// detailList assembles reasoning details: pieces with the same index and type are joined.
type detailList struct {
	list  []*detail
	byKey map[string]*detail
	fresh item.JSON // what the last chunk added to the texts
}

// detail is one reasoning detail. The texts hold the members that grow, by name.
type detail struct {
	object item.Extra
	texts  map[string]*strings.Builder
}

func (l *detailList) add(v item.JSON) {
	var fresh strings.Builder
	eachElement(item.JSON(strings.Clone(string(v))), func(i int, one item.JSON) {
		typ, index := member(one, "type"), member(one, "index")
		if index == "" {
			index = item.JSON("at " + strconv.Itoa(i))
		}
		key := string(typ + " " + index)
		d := l.byKey[key]
		if d == nil {
			d = &detail{texts: map[string]*strings.Builder{}}
			l.list = append(l.list, d)
			if l.byKey == nil {
				l.byKey = map[string]*detail{}
			}
			l.byKey[key] = d
		}
		d.add(one, &fresh)
	})
	if fresh.Len() > 0 {
		l.fresh = item.Quote(fresh.String())
	}
}

func (d *detail) add(v item.JSON, fresh *strings.Builder) {
	eachMember(v, func(name string, v item.JSON) {
		s, isText := v.Unquote()
		_, known := d.object.Get(name)
		switch {
		case isText && (name == "text" || name == "summary" || name == "data"):
			if name != "data" {
				fresh.WriteString(s)
			}
			if d.texts[name] == nil {
				d.texts[name] = new(strings.Builder)
				d.object.Set(name, `""`) // reserves its position
			}
			d.texts[name].WriteString(s)
		case !known || v != "null":
			d.object.Set(name, v)
		}
	})
}

// json returns the list, or "" if it is empty.
func (l *detailList) json() item.JSON {
	if len(l.list) == 0 {
		return ""
	}
	w := newWriter()
	w.open('[')
	for _, d := range l.list {
		for name, text := range d.texts {
			d.object.Set(name, item.Quote(text.String()))
		}
		w.open('{')
		w.extra(d.object)
		w.close('}')
	}
	w.close(']')
	return item.JSON(w.buf)
}
