// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package completions

import (
	"errors"
	"strconv"
	"strings"

	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/internal/wire"
	"github.com/antiphon-go/antiphon/item"
)

// origin says which items a message was made of: those of its content, in their
// order, and those of its calls.
type origin struct {
	content, calls []int
	parts          bool // content is one item for each part
}

// item returns the item that a place in the message is of, such as
// content[1].image_url; -1 if that cannot be told.
func (o origin) item(place string) int {
	member, i := step(place)
	list := o.content
	switch {
	case member == "tool_calls":
		list = o.calls
	case member != "" && member != "content":
		return -1 // it is not one item's
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

// refused returns err such that it names the item of the request's input which
// the endpoint's error is about, if that names a message. T12
func (c *Client) refused(err error, link *wire.Link, profile *endpoint.Profile, req *item.Request) error {
	var e *endpoint.Error
	if !errors.As(err, &e) || e.Class != endpoint.BadRequest || !strings.HasPrefix(e.Param, "messages") {
		return err
	}
	given := inputOf(req)
	fitted, unfit := link.Fit(req, profile)
	if unfit != nil {
		return err
	}
	sent := inputOf(fitted)
	var origins []origin
	m := &messages{options: c.options(fitted.Model, profile), dst: new(item.List), src: sent, at: place{path: "input"}, origins: &origins}
	for i := range sent.Len() {
		if m.item(i) != nil {
			return err
		}
	}
	if m.end() != nil {
		return err
	}
	_, n := step(e.Param)
	if fitted.Instructions != "" {
		n-- // they are the first message
	}
	at := -1
	if n >= 0 && n < len(origins) {
		at = origins[n].item(behind(e.Param))
	}
	return wire.RefusedAt(e, given, sent, at)
}

// step reads the first step of a place such as messages[2].content or
// messages.[2].content or messages.2.content: a member and an index, -1 if none
// follows.
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

// behind is what follows the first index of a place.
func behind(place string) string {
	i := strings.IndexAny(place, "0123456789")
	if i < 0 {
		return ""
	}
	return strings.TrimLeft(strings.TrimLeft(place[i:], "0123456789"), "].")
}
