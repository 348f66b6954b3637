// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	jsonv1 "github.com/go-json-experiment/json/v1"

	"github.com/antiphon-go/antiphon/agent"
)

// jsonLines writes every event as one line of JSON: an object whose first
// member, event, is the event's name. Events of the model's stream that have no
// form of their own come as they were received, in the member data.
type jsonLines struct {
	out  io.Writer
	line []byte
}

// lineOptions let items through as they are, and write times as nanoseconds.
var lineOptions = json.JoinOptions(
	jsontext.AllowDuplicateNames(true),
	jsontext.AllowInvalidUTF8(true),
	jsonv1.FormatDurationAsNano(true),
)

func (j *jsonLines) show(ev agent.Event) error {
	name, err := jsontext.AppendQuote(nil, ev.Name())
	if err != nil {
		return err
	}
	j.line = append(append(j.line[:0], `{"event":`...), name...)
	if m, ok := ev.(agent.ModelEvent); ok {
		j.line = append(append(j.line, `,"data":`...), oneLine(m.Event.JSON())...)
		j.line = append(j.line, '}')
	} else {
		members, err := json.Marshal(ev, lineOptions)
		if err != nil {
			return err
		}
		if len(members) > len("{}") {
			j.line = append(j.line, ',')
		}
		j.line = append(j.line, members[1:]...)
	}
	_, err = j.out.Write(append(j.line, '\n'))
	return err
}

// oneLine returns a JSON text with its line breaks, which can only stand
// between tokens, as spaces.
func oneLine(s string) string {
	b := []byte(s)
	for i, c := range b {
		if c == '\n' || c == '\r' {
			b[i] = ' '
		}
	}
	return string(b)
}
