// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package trust

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/go-json-experiment/json"

	"github.com/antiphon-go/antiphon/internal/private"
)

// Left is what a run left in a transcript, so that what others add to it later is told
// apart. The zero value knows nothing of the text.
type Left struct {
	Path string `json:"path"` // absolute
	// States are what the file may hold, shortest first: during a run what it held before
	// the last change, and what it holds after each part of the change. A crash leaves one of
	// them.
	States []State `json:"states"`
	// Others are the parts that somebody else wrote, in order.
	Others []Span `json:"others,omitzero"`
}

// State is the beginning of a file: its size in bytes, and the hash of its text.
type State struct {
	Size int64  `json:"size"`
	Hash string `json:"hash"`
}

// Span is a part of a file, from a byte to another, which is not part of it.
type Span struct {
	From int64 `json:"from"`
	To   int64 `json:"to"`
}

// maxSpans limits how many parts of others are told apart.
const maxSpans = 64

// Strange returns the parts of a text that others wrote, in order: those that are known,
// and all that follows the longest known state.
func (l *Left) Strange(text string) []Span {
	var ours, at int64
	sum, end := sha256.New(), int64(len(text))
	for _, s := range l.States {
		if s.Size < at || s.Size > end {
			continue
		}
		_, _ = io.WriteString(sum, text[at:s.Size]) // it never fails
		at = s.Size
		if hex.EncodeToString(sum.Sum(nil)) == s.Hash {
			ours = at
		}
	}
	var list []Span
	for _, o := range l.Others {
		if o.From < min(o.To, ours) {
			list = append(list, Span{max(o.From, 0), min(o.To, ours)})
		}
	}
	if ours < end {
		list = append(list, Span{ours, end})
	}
	return joined(list)
}

// joined returns spans without gaps as one, and at most maxSpans: where the gap is the
// smallest, what is in it counts as written by others too.
func joined(list []Span) []Span {
	for {
		least := 0
		for i := 1; i < len(list); i++ {
			if least == 0 || list[i].From-list[i-1].To < list[least].From-list[least-1].To {
				least = i
			}
		}
		if least == 0 || list[least].From > list[least-1].To && len(list) <= maxSpans {
			return list
		}
		list[least-1].To = max(list[least-1].To, list[least].To)
		list = slices.Delete(list, least, least+1)
	}
}

// Ledger remembers what runs of this user left in transcripts, in a folder with a small
// file for each. Only its owner can read and write them. The caller makes sure that one
// process at a time writes about a transcript. The zero value has no folder, and its
// methods return an error.
type Ledger struct{ folder string }

var errNoFolder = errors.New("trust: the ledger has no folder: use OpenLedger")

// OpenLedger returns the ledger in a folder, which is created when it is needed.
func OpenLedger(folder string) *Ledger { return &Ledger{folder} }

// maxLeft limits the size of a record. Ours have a few kilobytes.
const maxLeft = 1 << 20

func (l *Ledger) file(path string) string {
	return filepath.Join(l.folder, Hash([]byte(path))[:32]+".json")
}

// Left returns the record about the transcript at an absolute path, or the zero value if there
// is none. A record that is damaged, or that others may write to, is an error.
func (l *Ledger) Left(path string) (left Left, err error) {
	if l.folder == "" {
		return left, errNoFolder
	}
	name := l.file(path)
	defer func() {
		if err != nil {
			left, err = Left{}, fmt.Errorf("%s: %w", name, err)
		}
	}()
	info, err := os.Stat(name) // opening a pipe would wait for a writer
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return left, nil
	case err != nil:
		return left, err
	case !info.Mode().IsRegular() || info.Size() > maxLeft:
		return left, errors.New("it is not a record of a transcript")
	}
	if err := private.Check(info); err != nil {
		return left, err
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return left, err
	}
	if err := json.Unmarshal(text, &left); err != nil || left.Path != path {
		return left, errors.New("it is not a record of this transcript")
	}
	return left, nil
}

// Leave records what will be in a transcript. The record is durable when it
// returns, so call it before the transcript is changed.
func (l *Ledger) Leave(left Left) error {
	if l.folder == "" {
		return errNoFolder
	}
	if !filepath.IsAbs(left.Path) {
		return errors.New("trust: the path of a transcript in a ledger must be absolute")
	}
	text, err := json.Marshal(left, json.Deterministic(true))
	if err != nil {
		return err
	}
	if err := os.MkdirAll(l.folder, 0o700); err != nil {
		return err
	}
	return replace(l.file(left.Path), func(w io.Writer) error {
		_, err := w.Write(append(text, '\n'))
		return err
	})
}
