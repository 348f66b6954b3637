// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package rehearsal

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/antiphon-go/antiphon/server"
)

// step is a statement of a turn with its final text: the next action of the model.
type step struct {
	verb  verb
	tool  string
	text  string
	pause time.Duration
}

// steps returns the actions of the next turn: the script's, or improvised ones.
func (s *Server) steps(f *facts) ([]step, error) {
	turns := s.Script.turns(f.at.round)
	switch {
	case f.at.turn < len(turns):
		return s.Script.perform(turns[f.at.turn], f)
	case len(turns) > 0:
		return tell(f, nil), nil // the round is over, but the request needs an answer
	}
	return improvise(f, s.ReadOnly), nil
}

// perform renders a turn. A failure is a mistake in the script that a retry would
// not fix: hence status 400.
func (s *Script) perform(t turn, f *facts) ([]step, error) {
	var steps []step
	var saying bool // the last statement was a say
	var blank int   // the number of empty lines after it
	for i := range t.steps {
		st := &t.steps[i]
		switch {
		case st.verb == verbPause:
			steps = append(steps, step{verb: verbPause, pause: st.pause})
			continue
		case st.blank:
			blank++
			continue
		}
		text, err := st.render(f)
		if err != nil {
			line, offset, what := templateError(err)
			return nil, s.mistake(st, line, offset, what)
		}
		if !utf8.ValidString(text) {
			return nil, s.mistake(st, 1, 0, "the text is not UTF-8")
		}
		if st.verb == verbCall {
			if offset, what := checkArguments(text); what != "" {
				what = fmt.Sprintf("%s, at byte %d of %q", what, offset, shorten(80, text))
				return nil, s.mistake(st, 1, 0, what)
			}
		}
		if st.tool == "" && strings.TrimSpace(text) == "" {
			continue // a template with an empty result, such as a condition
		}
		if st.verb == verbSay && saying {
			text = strings.Repeat("\n", blank) + text
		}
		saying, blank = st.verb == verbSay, 0
		steps = append(steps, step{verb: st.verb, tool: st.tool, text: text})
	}
	for _, st := range steps {
		if st.verb != verbPause {
			return steps, nil
		}
	}
	return nil, server.Invalid(codeScript, scriptParam, "%s:%d:1: turn %s: all its statements are empty", s.name, t.line, t.title)
}

// The code of a mistake in the script, and the parameter at fault. Without a parameter, clients may
// send the same request in another form, and the script would see another conversation.
const (
	codeScript  = "rehearsal_script"
	scriptParam = "model"
)

func (s *Script) mistake(st *statement, line, offset int, what string) error {
	l, c := st.span.at(line, offset)
	head := string(st.verb)
	if st.tool != "" {
		head += " " + st.tool
	}
	return server.Invalid(codeScript, scriptParam, "%s:%d:%d: %s: %s", s.name, l, c, head, what)
}
