// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"

	"github.com/antiphon-go/antiphon/agent"
)

// jsonLines writes every event as one line of JSON: see docs/events.md.
type jsonLines struct {
	out  io.Writer
	line []byte
}

func (j *jsonLines) show(ev agent.Event) error {
	line, err := agent.AppendEvent(j.line[:0], ev)
	if err != nil {
		return err
	}
	j.line = append(line, '\n')
	_, err = j.out.Write(j.line)
	return err
}
