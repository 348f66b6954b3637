// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agentfile

import (
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"io"
	"path/filepath"
	"slices"

	"github.com/antiphon-go/antiphon/trust"
)

// ledger records what a run leaves in a transcript, before it is there: see
// [Options.Leave]. Without the function it records nothing.
type ledger struct {
	leave   func(trust.Left) error
	path    string // absolute
	others  []trust.Span
	size    int64
	sum     hash.Hash // of the text that is there
	changed bool      // the last record is also about other texts
}

// ledger returns the ledger of the transcript at out, which has this text.
func (f *File) ledger(out, text string, o Options) (*ledger, error) {
	path, err := filepath.Abs(out)
	l := &ledger{path: path, size: int64(len(text)), sum: sha256.New()}
	if !hasMarks(f.written) || f.known || text == "" {
		l.leave, l.others = o.Leave, f.others
	}
	_, _ = io.WriteString(l.sum, text) // it never fails
	return l, err
}

// maxParts limits the states of one change. A crash in the rest counts as in one part.
const maxParts = 16

// change records what the transcript holds now, and what it holds after each part of a text,
// if a crash breaks the change off. ends are the ends of the parts. If written is called
// afterwards, the text is there.
func (l *ledger) change(text []byte, ends []int) (written func(), err error) {
	if l.leave == nil {
		return func() {}, nil
	}
	clone, err := l.sum.(hash.Cloner).Clone()
	if err != nil {
		return nil, err
	}
	states := []trust.State{l.state()}
	next := ledger{size: l.size, sum: clone}
	from := 0
	for _, end := range append(slices.Clone(ends[:min(len(ends), maxParts)]), len(text)) {
		if end > from {
			next.sum.Write(text[from:end])
			next.size += int64(end - from)
			states = append(states, next.state())
			from = end
		}
	}
	l.changed = false // if the text is not there, nobody knows what is
	written = func() { l.sum, l.size, l.changed = next.sum, next.size, true }
	return written, l.leave(trust.Left{Path: l.path, States: states, Others: l.others})
}

// close records that the transcript holds what is there now and nothing else.
func (l *ledger) close() error {
	if !l.changed {
		return nil
	}
	l.changed = false
	return l.leave(trust.Left{Path: l.path, States: []trust.State{l.state()}, Others: l.others})
}

func (l *ledger) state() trust.State {
	return trust.State{Size: l.size, Hash: hex.EncodeToString(l.sum.Sum(nil))}
}
