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
)

// ChatMarkdown writes a session as a transcript, what a run with --out would
// have written of it after the prompt: its items, and the marks between them
// ([chatmd.IsMark]). All payloads stand in it. Verdicts and the sessions of nested
// runs have no place in a transcript; [JSONLines] has them. Nor has it a head: what model and which tools is what an agent's file says.
//
// Package agentfile reads it back: the Log of its File.
func ChatMarkdown(w io.Writer, log Log) error {
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
			_, _ = out.WriteString(log.hide(string(text))) // Flush tells
		}
	}
	return out.Flush()
}
