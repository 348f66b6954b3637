// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package completions

import (
	"slices"
	"strconv"
	"strings"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/item"
)

// maxCalls limits the number of calls in one reply.
const maxCalls = 4096

// liveCall is a call that has begun.
type liveCall struct {
	liveItem
	number int // number of the call in the reply
	place  item.JSON
	callID string
	name   string
	custom bool
	input  strings.Builder
	half   string // first half of a character, which the next delta completes
	told   int    // bytes of the input that were yielded
	added  bool
}

// callDelta is a chunk's addition to a call.
type callDelta struct {
	place  item.JSON // its index, or ""
	id     string
	name   string
	input  item.JSON // a string, or an object from servers that parse it; "" if absent
	custom bool
}

func (d *Decoder) readCallDelta(v item.JSON) (c callDelta, err error) {
	if v[0] != '{' {
		return c, shapeError("choices[0].delta.tool_calls", "found "+kindOf(v)+", want a call")
	}
	inside := func(at string, v item.JSON, input string) {
		eachMember(v, func(name string, v item.JSON) {
			switch name {
			case "name":
				c.name, _ = v.Unquote()
			case input:
				c.input = v
			default:
				d.lose("choices[0].delta.tool_calls[]."+at+"."+name, v)
			}
		})
	}
	eachMember(v, func(name string, v item.JSON) {
		switch name {
		case "index":
			c.place = v
		case "id":
			c.id, _ = v.Unquote()
		case "type":
		case "function":
			inside(name, v, "arguments")
		case "custom":
			c.custom = !blank(v)
			inside(name, v, "input")
		default:
			d.lose("choices[0].delta.tool_calls[]."+name, v)
		}
	})
	if c.place == "null" {
		c.place = ""
	}
	if c.input == "null" {
		c.input = ""
	}
	return c, nil
}

// call reads a chunk's addition to a call; at is its position in the chunk.
func (d *Decoder) call(v item.JSON, at int) error {
	delta, err := d.readCallDelta(v)
	if err != nil {
		return err
	}
	c := d.callFor(delta)
	if c == nil && len(d.calls) == maxCalls {
		return shapeError("choices[0].delta.tool_calls", "found more calls than "+strconv.Itoa(maxCalls))
	}
	if c == nil {
		c = &liveCall{number: len(d.calls), place: item.JSON(strings.Clone(string(delta.place))), custom: delta.custom}
		d.calls = append(d.calls, c)
	}
	if c.callID == "" {
		c.callID = strings.Clone(delta.id)
	}
	c.custom = c.custom || delta.custom && c.name == ""
	if delta.name != c.name { // some servers repeat it in every chunk
		c.name += delta.name
	}
	whole := delta.input != "" && delta.input[0] != '"'
	if s, ok := delta.input.Unquote(); ok && s != "" {
		delta.input, c.half = delta.input.WithHalf(c.half).CutHalf()
		s, _ = delta.input.Unquote()
		c.input.WriteString(s)
	} else if whole {
		c.input.WriteString(string(delta.input))
	}
	if c.name != "" && delta.input != "" {
		d.tellCall(c)
	}
	return nil
}

// callFor returns the call that a delta belongs to, or nil if the delta begins a new call.
func (d *Decoder) callFor(delta callDelta) *liveCall {
	if len(d.calls) == 0 {
		return nil
	}
	var found *liveCall
	for _, c := range slices.Backward(d.calls) {
		if c.callID == delta.id && delta.id != "" && (delta.place == "" || delta.place == c.place) {
			found = c
			break
		}
	}
	for _, c := range slices.Backward(d.calls) {
		if found == nil && (delta.place == "" || c.place == delta.place) {
			found = c // the last call, or the last one with this index
		}
	}
	switch {
	case found == nil, delta.name == "":
		return found // usually only the beginning of a call has a name
	case delta.id != "" && found.callID != "" && delta.id != found.callID:
		return nil // servers that use one index for all calls, or none
	case delta.id == "" && delta.name != found.name && found.input.Len() > 0:
		return nil // a name after arguments begins a new call
	case strings.HasSuffix(found.input.String(), "}") && delta.begins():
		return nil // another whole call
	}
	return found
}

// begins reports whether the input is the beginning of an object.
func (c *callDelta) begins() bool {
	s, ok := c.input.Unquote()
	return ok && strings.HasPrefix(s, "{") || !ok && c.input != ""
}

// beginCalls yields the beginning of calls that have only a name so far.
func (d *Decoder) beginCalls() error {
	for _, c := range d.calls {
		if c.name == "" {
			return shapeError("choices[0].delta.tool_calls", "found no name of what is called")
		}
		d.tellCall(c)
	}
	return nil
}

// tellCall yields the new part of a call.
func (d *Decoder) tellCall(c *liveCall) {
	if !c.added {
		c.added = true
		id := d.reply.callItemID(c.number, c.custom)
		if c.callID == "" {
			c.callID = d.reply.callID(c.number)
		}
		c.liveItem = d.begin(id, c.value(id, "", item.StatusInProgress))
	}
	news := c.input.String()[c.told:]
	if news == "" {
		return
	}
	c.told += len(news)
	typ := api.EventArgumentsDelta
	if c.custom {
		typ = api.EventCustomInputDelta
	}
	d.tellDelta(typ, c.liveItem, -1, item.Quote(news), "")
}

func (c *liveCall) value(id, input, status string) item.Value {
	if c.custom {
		return &item.CustomToolCall{ID: id, CallID: c.callID, Name: c.name, Input: input, Status: status}
	}
	return &item.FunctionCall{ID: id, CallID: c.callID, Name: c.name, Arguments: input, Status: status}
}

// finishCall ends the call at an output index.
func (d *Decoder) finishCall(index int, status string) {
	for _, c := range d.calls {
		if !c.added || c.index != index {
			continue
		}
		if c.half != "" {
			c.half = ""
			c.input.WriteString("\uFFFD")
			d.loseContent("choices[0].delta.tool_calls", "the input of a call ends in half a character, which became U+FFFD")
		}
		if c.input.Len() == 0 && !c.custom {
			c.input.WriteString("{}") // I6
		}
		d.tellCall(c)
		input := c.input.String()
		if c.custom {
			d.tell(&api.CustomInputDoneEvent{ItemEvent: d.about(c.liveItem), Input: input})
		} else {
			d.tell(&api.ArgumentsDoneEvent{ItemEvent: d.about(c.liveItem), Name: c.name, Arguments: input})
		}
		d.done(index, c.value(c.id, input, status))
	}
}
