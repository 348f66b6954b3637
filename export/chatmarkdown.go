// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package export

import (
	"bufio"
	"errors"
	"fmt"
	"io"

	"github.com/antiphon-go/antiphon/chatmd"
	"github.com/antiphon-go/antiphon/chatmd/transcript"
	"github.com/antiphon-go/antiphon/internal/nils"
)

// ChatMarkdown writes a session as a transcript, in the form that a run with --out
// writes after the prompt: its items, and the marks between them ([chatmd.IsMark]).
// All payloads are inline. A transcript does not contain verdicts and the sessions
// of subagents, which [JSONLines] writes, and it has no head: the model and the
// tools are declared by an agent's file.
//
// Package agentfile reads it back: see the Log of its File.
func ChatMarkdown(w io.Writer, log Log) error {
	if nils.Is(w) {
		return errNoWriter
	}
	out := bufio.NewWriterSize(w, 64<<10)
	var writer transcript.Writer
	exact := chatmd.Writer{Exact: true}
	var text []byte
	var err error
	for _, e := range log.Entries {
		if writer, text, err = writer.Append(text[:0], e, exact.Append); err != nil {
			return errors.Join(fmt.Errorf("entry %d: %w", e.Seq, err), out.Flush())
		}
		if len(text) > 0 {
			_, _ = out.WriteString(log.hide(string(text))) // Flush reports errors
		}
	}
	return out.Flush()
}
