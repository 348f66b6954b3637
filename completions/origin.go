// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package completions

import (
	"strconv"
	"strings"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/item"
)

// origin holds the items that a message was made from: the items of its content, in order, and the
// items of its calls.
type origin struct {
	content, calls []int
	parts          bool // content has one item for each part
}

// item returns the item for a place in the message, such as content[1].image_url, or -1 if it is
// unknown.
func (o origin) item(place string) int {
	member, i := step(place)
	list := o.content
	switch {
	case member == "tool_calls":
		list = o.calls
	case member != "" && member != "content":
		return -1 // the place belongs to several items
	case !o.parts:
		i = 0
		if len(o.content) > 1 || member == "" && len(o.calls) > 0 {
			return -1
		}
	case i < 0 && len(list) == 1:
		i = 0
	}
	if i < 0 || i >= len(list) {
		return -1
	}
	return list[i]
}

// itemOf returns the index in the request's input of the item that an error's parameter is about,
// or -1 if it is unknown. Ok is false if the parameter does not name a message. T12
func (o Options) itemOf(r *api.Request, param string) (index int, ok bool) {
	if !strings.HasPrefix(param, "messages") {
		return -1, false
	}
	sent := inputOf(r)
	var origins []origin
	m := &messages{options: o, dst: new(item.List), src: sent, at: place{path: "input"}, origins: &origins}
	for i := range sent.Len() {
		if m.item(i) != nil {
			return -1, false
		}
	}
	if m.end() != nil {
		return -1, false
	}
	_, n := step(param)
	if r.Instructions != "" {
		n-- // the instructions are the first message
	}
	if n < 0 || n >= len(origins) {
		return -1, true
	}
	return origins[n].item(behind(param)), true
}

// step reads the first step of a place such as messages[2].content, messages.[2].content or
// messages.2.content. It returns a member and an index, or -1 if no index follows.
func step(place string) (member string, index int) {
	place = strings.TrimLeft(place, ".")
	end := strings.IndexAny(place, ".[")
	if end < 0 {
		return place, -1
	}
	rest := strings.TrimLeft(place[end:], ".[")
	digits := rest[:len(rest)-len(strings.TrimLeft(rest, "0123456789"))]
	index, err := strconv.Atoi(digits)
	if err != nil {
		index = -1
	}
	return place[:end], index
}

// behind returns the rest of a place after its first index.
func behind(place string) string {
	i := strings.IndexAny(place, "0123456789")
	if i < 0 {
		return ""
	}
	return strings.TrimLeft(strings.TrimLeft(place[i:], "0123456789"), "].")
}
