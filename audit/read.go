// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/antiphon-go/antiphon/internal/private"
)

// Line is a line of a log.
type Line struct {
	Record
	// Number counts from 1.
	Number int
	// Hash is the hash of the line, which the next line has as its Prev.
	Hash string
	// JSON is the line as it is in the file.
	JSON jsontext.Value
	// Damage says what is wrong with the line, or is "". A damaged line may have no
	// Record.
	Damage string
	// Cut says that the line has no end, or is "". It is the last one, and has nothing but
	// a Number: the record is being written now, or a crash interrupted the write. Nobody
	// was told that it is written, and the next write replaces it. See [KindRepaired].
	Cut string
}

// All yields the lines of the log, oldest first. An error of reading ends it.
func (l *Log) All() iter.Seq2[Line, error] {
	return func(yield func(Line, error) bool) {
		if l.path == "" {
			yield(Line{}, errNoFile)
			return
		}
		f, _, err := private.Open(l.path)
		if errors.Is(err, fs.ErrNotExist) {
			return
		}
		if err != nil {
			yield(Line{}, err)
			return
		}
		defer f.Close()
		prev, at := "", 0
		for in, n := bufio.NewReader(f), 1; ; n++ {
			text, err := in.ReadBytes('\n')
			text, whole := bytes.CutSuffix(text, []byte("\n"))
			switch {
			case whole:
			case err != nil && !errors.Is(err, io.EOF):
				yield(Line{}, err)
				return
			case len(text) > 0:
				yield(Line{Number: n, Cut: fmt.Sprintf("the %d bytes from byte %d on are a record that a crash cut, or that is being written now; it says nothing about the lines before it, and the next record replaces it", len(text), at)}, nil)
				return
			default:
				return
			}
			line := parse(text, n, prev)
			prev, at = line.Hash, at+len(text)+1
			if !yield(line, nil) {
				return
			}
		}
	}
}

// parse reads a line after a line with the hash prev.
func parse(text []byte, number int, prev string) Line {
	line := Line{Number: number, Hash: Hash(string(text)), JSON: text}
	switch err := json.Unmarshal(text, &line.Record); {
	case err != nil:
		line.Record, line.JSON, line.Damage = Record{}, nil, "it is not a record"
	case line.Prev == prev:
	case number == 1:
		line.Damage = "the log begins with it, but it follows another line: lines before it are missing"
	default:
		line.Damage = fmt.Sprintf("it does not follow line %d as it is now: that line was changed, or lines were removed, added or moved between them", number-1)
	}
	return line
}

// Report is the outcome of [Log.Verify].
type Report struct {
	// Lines is the number of lines, and Head the hash of the last one.
	Lines int    `json:"lines"`
	Head  string `json:"head"`
	// Damage lists where the chain breaks.
	Damage []Damage `json:"damage"`
	// Cut is the last line if it has no end, which is no damage: see [Line].
	Cut *Damage `json:"cut,omitzero"`
}

// Damage is one place of a log, and what is wrong there.
type Damage struct {
	Line int    `json:"line"` // 0: the log as a whole
	What string `json:"what"`
}

// String describes the damage.
func (d Damage) String() string {
	if d.Line == 0 {
		return d.What
	}
	return fmt.Sprintf("line %d: %s", d.Line, d.What)
}

// Verify checks the chain. Heads are hashes of last lines that somebody kept; each must
// be the hash of a line.
func (l *Log) Verify(heads ...string) (Report, error) {
	r := Report{Damage: []Damage{}}
	missing := map[string]bool{}
	for _, h := range heads {
		missing[h] = true
	}
	for line, err := range l.All() {
		if err != nil {
			return r, err
		}
		if line.Cut != "" {
			r.Cut = &Damage{line.Number, line.Cut}
			break
		}
		r.Lines, r.Head = line.Number, line.Hash
		delete(missing, line.Hash)
		if line.Damage != "" {
			r.Damage = append(r.Damage, Damage{line.Number, line.Damage})
		}
	}
	for _, h := range heads {
		if missing[h] {
			r.Damage = append(r.Damage, Damage{0, fmt.Sprintf("no line has the hash %.64q: the log was cut off before that line, or written anew", h)})
		}
	}
	return r, nil
}
