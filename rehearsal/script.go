// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package rehearsal

import (
	"fmt"
	"os"
	"strings"
	"text/template"
	"time"

	"github.com/antiphon-go/antiphon/item"
)

// Model is the model name of the rehearsal, as in <config model="rehearsal"/>. With
// a script the name is "rehearsal:tour.script".
const Model = "rehearsal"

// ParseModel splits the name of a model. It reports whether the name means the
// rehearsal, and returns the script file, or "". A relative path is relative to the
// file that names the model; the caller must resolve it.
func ParseModel(model string) (script string, ok bool) {
	if model == Model {
		return "", true
	}
	return strings.CutPrefix(model, Model+":")
}

// idMark is part of the ids of everything that the rehearsal produces.
const idMark = "_" + Model + "_"

// Said reports whether the rehearsal model produced an item. It checks the item's
// id, which sessions, transcripts and exports keep. Items that a person wrote or
// edited have no such id.
func Said(it item.Item) bool { return strings.Contains(it.ID(), idMark) }

// Script is a parsed script. It is immutable and safe for concurrent use. The
// package documentation describes the language.
type Script struct {
	name   string
	pace   time.Duration
	window int64
	rounds [][]turn
	again  []turn
}

// turn is one response of the model.
type turn struct {
	line  int
	title string
	steps []statement
}

// verb is the kind of action of a statement.
type verb string

const (
	verbReason  verb = "reason"
	verbSay     verb = "say"
	verbCall    verb = "call"
	verbCallRaw verb = "call_raw"
	verbCustom  verb = "custom"
	verbPause   verb = "pause"
)

// statement is one line under a turn, with its continuation.
type statement struct {
	verb  verb
	line  int
	tool  string             // of a call
	text  *template.Template // of all statements except pause
	span  span               // the position of text in the file
	pause time.Duration
	blank bool // a say without text: an empty line
}

// MaxScript is the size limit of a script file in bytes.
const MaxScript = 4 << 20

// Load reads the script in a file. Errors in its text are reported as by [Parse].
func Load(path string) (*Script, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("rehearsal script: %w", err)
	}
	if !info.Mode().IsRegular() || info.Size() > MaxScript {
		return nil, fmt.Errorf("rehearsal script: %s: not a regular file of at most %d bytes", path, MaxScript)
	}
	src, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("rehearsal script: %w", err)
	}
	return Parse(path, src)
}

// Name returns the name that the script was parsed under.
func (s *Script) Name() string { return s.name }

// turns returns the turns that answer the user message of the given round,
// counted from 0, or nil when the script has none for it.
func (s *Script) turns(round int) []turn {
	switch {
	case s == nil:
		return nil
	case round < len(s.rounds):
		return s.rounds[round]
	}
	return s.again
}
