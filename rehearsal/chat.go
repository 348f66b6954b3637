// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package rehearsal

import (
	"errors"
	"strings"

	"github.com/antiphon-go/antiphon/completions"
	"github.com/antiphon-go/antiphon/internal/sse"
	"github.com/antiphon-go/antiphon/item"
)

// chat serves POST /chat/completions: the same script, in other words. Nothing
// of it is stored.
func (s *Server) chat(c *call) *problem {
	body, wrong := s.body(c)
	if wrong != nil {
		return wrong
	}
	q, wrong := s.readChat(body)
	if wrong != nil {
		return wrong.ofMessages()
	}
	a, wrong := s.answer(q)
	if wrong != nil {
		return wrong
	}
	c.w.Header().Set("X-Request-Id", "req_"+a.name())
	a.id = "chatcmpl-" + a.name()
	if isSet(q.req.Stream) {
		c.streamChat(a, wantsUsage(body))
		return nil
	}
	return c.wholeChat(a)
}

// readChat reads a request to Chat Completions as one for a response.
func (s *Server) readChat(body []byte) (*asked, *problem) {
	req, losses, err := completions.ParseRequest(body)
	switch {
	case errors.Is(err, completions.ErrNothing):
		return nil, invalid("missing_required_parameter", "messages", "Missing required parameter: 'messages' with at least one message.")
	case err != nil:
		return nil, unreadable(err)
	}
	for _, l := range losses {
		if l.Kind == completions.LostContent || l.Path == "n" {
			return nil, invalid("unsupported_value", l.Path, "Unsupported value: '%s' %s.", l.Path, l.What)
		}
	}
	req.MaxOutputTokens = nil // Chat Completions has no least number of them
	b, err := req.AppendJSON(nil)
	if err != nil {
		return nil, internal(err)
	}
	object, err := item.Parse(b)
	if err != nil {
		return nil, internal(err)
	}
	return s.check(req, object, nil)
}

// ofMessages says the same to one who does not know of items.
func (p *problem) ofMessages() *problem {
	if strings.HasPrefix(p.param, "input") {
		p.param = "messages"
	}
	if strings.Contains(p.message, "'input[") {
		p.message += " (The input is the items that the messages stand for.)"
	}
	return p
}

// wantsUsage reports whether a stream is to end with its usage.
func wantsUsage(body []byte) bool {
	request, err := item.Parse(body)
	if err != nil {
		return false
	}
	v, _ := request.Member("stream_options")
	options, err := item.ParseString(string(v))
	if err != nil {
		return false
	}
	want, _ := options.Member("include_usage")
	return want == "true"
}

// wholeChat sends a completion in one piece, after the time that a stream takes.
func (c *call) wholeChat(a *answer) *problem {
	b, err := a.response(item.StatusCompleted, a.items()).AppendJSON(nil)
	if err != nil {
		return internal(err)
	}
	r, err := item.ParseResponse(b)
	if err != nil {
		return internal(err)
	}
	r.Extra = nil // what only responses have
	b, _, err = completions.AppendResponse(nil, r, completions.Options{})
	if err != nil {
		return internal(err)
	}
	if sleep(c.r.Context(), a.duration()) == nil {
		c.sendJSON(b)
	}
	return nil
}

// streamChat sends a completion in chunks.
func (c *call) streamChat(a *answer, usage bool) {
	var encoder completions.Encoder
	to := c.live()
	w := sse.NewWriter(c.w)
	to.emit = func(_ item.EventType, data []byte) error {
		ev, err := item.ParseEvent(data)
		if err != nil {
			return err
		}
		return encoder.Encode(ev, func(chunk []byte) error {
			if object, err := item.Parse(chunk); err == nil && !usage {
				if choices, _ := object.Member("choices"); choices == "[]" {
					return nil // the chunk that holds the usage
				}
			}
			return w.Event("", chunk)
		})
	}
	st := &stream{to: to}
	if a.stream(st); st.err == nil {
		_ = w.Event("", []byte(completions.Done)) // a client that is gone is not an error
	}
}
