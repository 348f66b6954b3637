// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package completions

import (
	"errors"
	"strconv"
	"strings"

	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/item"
)

// ErrTruncated is what [Decoder.Finish] returns when the stream ended before
// its choice did.
var ErrTruncated = errors.New("the stream ended before the choice gave its finish_reason")

// Decoder turns the chunks of one streamed chat completion into the events
// that the Responses API would have sent. The items that they build are those
// that [ParseResponse] makes of the same completion in one piece.
//
// It reads what servers really send: calls without an index, or all with the
// same one; an id or a name in the first chunk, in each, or in none; arguments
// that are an object; contents that are a list; usage beside the last choice or
// after it. Items are done when the stream is, for only then is it known that
// nothing follows.
//
// The zero value is ready for one stream; a Decoder is not safe for concurrent
// use.
type Decoder struct {
	resp    item.Response
	reply   reply
	started bool
	ended   bool // the last event was passed on
	failed  bool // by an error in a chunk
	reason  string
	usage   item.JSON
	counted bool  // the last chunk reported usage
	closed  bool  // the stream said [DONE]
	n       int64 // events so far
	yield   func(item.Event) bool
	stopped bool
	fault   error // of an event that could not be made

	next     int // output index
	thinking *liveText
	text     *liveText
	refusal  *liveText
	message  *liveItem
	inParts  int // parts of the message
	details  detailList
	early    []item.JSON // annotations that were not told yet
	calls    []*liveCall

	events item.EventDecoder
	buf    []byte
	losses []Loss
	lost   map[string]bool
}

// liveItem is an output item that has begun.
type liveItem struct {
	id    string
	index int
}

// liveText is a text of an item that has begun.
type liveText struct {
	liveItem
	part        int
	text        strings.Builder
	half        string // of a character, which the next delta completes
	annotations []item.JSON
	logprobs    []item.JSON
}

// Decode reads one chunk and passes the events that it makes on to yield, which
// returns false to have no more. The error is
// an [*item.SyntaxError], or an [*item.ShapeError] for what is not a chunk.
func (d *Decoder) Decode(chunk []byte, yield func(item.Event) bool) error {
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
	d.yield = yield
	err := d.chunk(text)
	return errors.Join(err, d.fault)
}

// Done says that the stream said [DONE]. Call it before [Decoder.Finish]: some
// servers never give a finish_reason, and [DONE] after a report of usage is the
// only end that their replies have.
func (d *Decoder) Done() { d.closed = true }

// Losses returns what the chunks so far held that has no place, each once.
func (d *Decoder) Losses() []Loss { return d.losses }

// Reason reports why the choice ended, "" before it did.
func (d *Decoder) Reason() string { return d.reason }

// chunk reads one chunk. What is read stays, so it must not be of the chunk's
// memory.
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
	if fault == "" && object == `"error"` { // vLLM's
		fault = v
	}
	if !blank(fault) {
		d.fail(readError(item.JSON(strings.Clone(string(fault)))))
		return nil
	}
	if choices == "" && foreign == "" {
		if e := endpoint.FromEvent([]byte(v)); e != nil { // of gateways: {"detail":"…"}
			d.fail(&item.APIError{Code: e.Code, Type: e.Type, Message: e.Message, Param: e.Param})
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

// head reads what a chunk says besides its choices.
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
	case "obfuscation", "p": // padding of no meaning
	default:
		d.keep(name, v)
	}
}

// maxKept bounds the members that a response keeps without knowing them.
const maxKept = 100

// keep keeps a member that this version does not know; the last one counts.
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

// choice reads a choice of a chunk, of which it is the one at index at.
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
		c.delta = c.message // a server that streams a whole one
	}
	if !blank(c.delta) && c.delta[0] == '{' {
		if err := d.delta(c.delta, c.logprobs); err != nil {
			return err
		}
	}
	if !blank(c.fault) {
		d.fail(readError(item.JSON(strings.Clone(string(c.fault)))))
	}
	return nil
}

// chunkChoice is what a chunk says of its choice.
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

// delta reads what a chunk adds to the message.
func (d *Decoder) delta(v, logprobs item.JSON) error {
	p := d.readDelta(v)
	if !blank(p.details) {
		d.details.add(p.details)
		d.openThinking()
	}
	if p.thought == "" {
		p.thought = d.details.fresh
	}
	d.details.fresh = ""
	d.think(p.thought)
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

// emptyCall reports a call of the older form that names nothing and gives
// nothing, as some servers send with each answer.
func emptyCall(v item.JSON) bool {
	name, _ := member(v, "name").Unquote()
	input, isText := member(v, "arguments").Unquote()
	return name == "" && input == "" && (isText || blank(member(v, "arguments")))
}

// chunkDelta is what a chunk adds, each "" where it adds nothing.
type chunkDelta struct {
	content, thought, refusal, annotations, details, calls, function item.JSON
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
			if s, ok := member(v, "transcript").Unquote(); ok && s != "" {
				p.content = item.Quote(s)
			}
			d.loseContent("choices[0].delta.audio", "the sound has no counterpart; its transcript is the text")
		default:
			d.lose("choices[0].delta."+name, v)
		}
	})
	return p
}

// say adds to the text: a string, or a list of parts.
func (d *Decoder) say(v, logprobs item.JSON) {
	switch {
	case v == "":
		d.lose("choices[0].logprobs.content", member(logprobs, "content"))
	case v[0] == '"':
		d.write(v, logprobs)
	case v[0] == '[':
		eachElement(v, func(_ int, p item.JSON) { d.sayPart(p, logprobs) })
	case v[0] == '{': // of servers that parse what they were asked to write as JSON
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

// lose names a member that has no place, once, unless it says nothing.
func (d *Decoder) lose(path string, v item.JSON) {
	if !blank(v) {
		d.note(Loss{Path: path, What: noCounterpart})
	}
}

func (d *Decoder) loseContent(path, what string) {
	d.note(Loss{Path: path, What: what, Kind: LostContent})
}

// maxLost bounds the losses that are told of one stream.
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

// detailList puts reasoning details together: pieces of one index and type are
// one.
type detailList struct {
	list  []*detail
	byKey map[string]*detail
	fresh item.JSON // what the last chunk added to the texts
}

// detail is one of them. The members that grow are in texts, by their names.
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
				d.object.Set(name, `""`) // its place
			}
			d.texts[name].WriteString(s)
		case !known || v != "null":
			d.object.Set(name, v)
		}
	})
}

// json is the list, "" when it is empty.
func (l *detailList) json() item.JSON {
	if len(l.list) == 0 {
		return ""
	}
	w := appendTo(nil)
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
