// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package rehearsal

import (
	"time"

	"github.com/antiphon-go/antiphon/item"
)

// answer is one response, made in full before its first byte is sent.
type answer struct {
	*asked
	id      string
	created int64 // seconds since 1970
	pace    time.Duration
	outputs []output
	usage   item.Usage
	echoes  item.Extra    // what it repeats of the request
	tail    time.Duration // wait before the end
}

// covers returns what a request goes on from that names this response.
func (a *answer) covers() []item.Item {
	list := a.all()
	for i := range a.outputs {
		list = append(list, a.outputs[i].done)
	}
	return list
}

// answer makes the response to a request. If that fails the request is
// released.
func (s *Server) answer(q *asked) (a *answer, wrong *problem) {
	defer func() {
		if wrong != nil {
			s.release(q)
		}
	}()
	items, wrong := unpacked(q.all(), s.limit())
	if wrong != nil {
		return nil, wrong
	}
	tools, _ := q.body.Member("tools")
	if wrong = s.overflow(countInput(q.req, tools, q.all())); wrong != nil {
		return nil, wrong
	}
	f, err := factsOf(q.req, items)
	if err != nil {
		return nil, invalid("", "", "%v", err)
	}
	var steps []step
	if !q.warm {
		if steps, wrong = s.steps(f); wrong != nil {
			return nil, wrong
		}
	}
	in := s.seen.take(q.req, tools, q.all())
	list, tail, err := build(steps, naming{in.hash, f.at.total + 1}, q.req)
	if err != nil {
		return nil, invalid(codeScript, "", "%v", err)
	}
	echoes, err := s.echoes(q)
	if err != nil {
		return nil, invalid("", "", "%v", err)
	}
	a = &answer{asked: q, echoes: echoes, id: "resp" + idMark + in.hash, created: s.now(), pace: s.pace(), outputs: list, usage: usageOf(in, list), tail: tail}
	if q.warm {
		a.id += "_warm"
	}
	return a, nil
}

func (s *Server) now() int64 {
	if s.Now != nil {
		return s.Now().Unix()
	}
	return fixedTime.Unix()
}

// overflow is the problem of an input that is longer than the context.
func (s *Server) overflow(tokens int64) *problem {
	window := s.Window
	if window == 0 && s.Script != nil {
		window = s.Script.window
	}
	if window <= 0 || tokens <= window {
		return nil
	}
	return invalid("context_length_exceeded", "input",
		"Your input exceeds the context window of this model: it has %d tokens, of %d. Please adjust your input and try again.", tokens, window)
}

func (s *Server) pace() time.Duration {
	if s.Pace == 0 && s.Script != nil {
		return s.Script.pace
	}
	return s.Pace
}
