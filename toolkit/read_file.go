// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package toolkit

import (
	"bufio"
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/antiphon-go/antiphon/tool"
	"github.com/antiphon-go/antiphon/toolkit/internal/files"
	"github.com/antiphon-go/antiphon/toolkit/internal/wording"
)

// MaxReadBytes is the maximum size of the text that one call of read_file returns.
const MaxReadBytes = 1 << 20

//go:embed read_file.md
var readFileText string

// readFileInput are the arguments of read_file.
type readFileInput struct {
	Path   string `json:"path" jsonschema:"the file, relative to a root, or name:path for a named root"`
	Offset int    `json:"offset,omitzero" jsonschema:"the first line to read, counted from 1; default 1"`
	Limit  int    `json:"limit,omitzero" jsonschema:"how many lines to read; default: to the end of the file"`
	Skip   int64  `json:"skip,omitzero" jsonschema:"bytes to skip at the beginning of the first line; only to go on inside a very long line"`
}

func newReadFile(name string, f *files.Files) (tool.Tool, error) {
	t, err := tool.New(name, f.Describe(readFileText), fileTools{f}.readFile, tool.ReadOnly(), tool.Idempotent(), tool.ReadKey(fileTools{f}.region))
	if err != nil {
		return nil, err
	}
	return f.Guard(t, files.None, files.PathOf), nil
}

// region returns a key for what a call of read_file reads. It is the same for all
// spellings of a path, whichever root they use, and differs for each range of lines.
func (f fileTools) region(arguments string) (string, bool) {
	var in readFileInput
	if err := json.Unmarshal([]byte(arguments), &in); err != nil {
		return "", false
	}
	p, err := f.Resolve(in.Path)
	if err != nil {
		return "", false
	}
	return fmt.Sprintf("%s\x00%d,%d,%d", p.Path(), max(in.Offset, 1), in.Limit, in.Skip), true
}

// readFile returns the requested lines of a text file.
func (f fileTools) readFile(ctx context.Context, in readFileInput) (string, error) {
	if in.Offset < 0 || in.Limit < 0 || in.Skip < 0 {
		return "", errors.New("offset, limit and skip cannot be negative; the first line is 1")
	}
	p, release, err := f.Pin(ctx, in.Path, "read", false)
	if err != nil {
		return "", err
	}
	defer func() { _ = release() }()
	file, info, err := p.Open("read")
	if err != nil {
		return "", err
	}
	defer file.Close()
	if info.Size() == 0 {
		return fmt.Sprintf("%s is empty (0 bytes).", p), nil
	}
	size := min(max(info.Size()+1, 512), 64<<10) // most files are small
	r := bufio.NewReaderSize(files.ReadWithin(ctx, file), int(size))
	head, _ := r.Peek(files.SniffBytes) // the next read returns the error again
	if err := p.RefuseBinary(head, info.Size()); err != nil {
		return "", err
	}
	text, err := readLines(r, p, in)
	// A toldError is worded for the model already. Other errors may contain the path
	// on this machine, which Problem removes.
	var told toldError
	if err != nil && !errors.As(err, &told) {
		err = p.Problem("read", err)
	}
	return text, err
}

// toldError has a text for the model.
type toldError string

func (e toldError) Error() string { return string(e) }

// readLines returns the requested lines exactly as in the file, up to the size
// limit. A last line names the rest and the arguments to read it.
func readLines(r *bufio.Reader, p files.Place, in readFileInput) (string, error) {
	from := max(in.Offset, 1)
	if err := skipLines(r, p, from); err != nil {
		return "", err
	}
	if err := skipBytes(r, p, from, in.Skip); err != nil {
		return "", err
	}
	text := make([]byte, 0, r.Buffered()) // all of most files
	line, column := from, in.Skip         // of the next byte
	for in.Limit == 0 || line-from < in.Limit {
		piece, err := r.ReadSlice('\n')
		if room := MaxReadBytes - len(text); len(piece) > room {
			return endText(text, piece[:room], p, in, line, column), nil
		}
		text = append(text, piece...)
		column += int64(len(piece))
		if err == nil {
			line, column = line+1, 0
		} else if err == io.EOF {
			break
		} else if !errors.Is(err, bufio.ErrBufferFull) {
			return "", err
		}
	}
	if len(text) == 0 && in.Skip > 0 {
		return "", shortLine(p, from, in.Skip)
	}
	if len(text) == 0 {
		return "", toldError(fmt.Sprintf("%s has %d lines; there is nothing at line %d", p, line-1, from))
	}
	return string(text), nil
}

// skipLines reads up to the given line.
func skipLines(r *bufio.Reader, p files.Place, to int) error {
	for line := 1; line < to; {
		piece, err := r.ReadSlice('\n')
		switch {
		case err == nil:
			line++
		case err == io.EOF:
			if len(piece) > 0 {
				line++
			}
			return toldError(fmt.Sprintf("%s has %d lines; offset %d is past its end", p, line-1, to))
		case !errors.Is(err, bufio.ErrBufferFull):
			return err
		}
	}
	return nil
}

// skipBytes skips the beginning of a line.
func skipBytes(r *bufio.Reader, p files.Place, line int, n int64) error {
	for left := n; left > 0; {
		b, err := r.Peek(int(min(left, int64(r.Size()))))
		if i := bytes.IndexByte(b, '\n'); i >= 0 || err == io.EOF {
			return shortLine(p, line, n)
		}
		if err != nil {
			return err
		}
		left -= int64(len(b))
		_, _ = r.Discard(len(b)) // b is in the buffer
	}
	return nil
}

// shortLine returns the error for a skip that goes beyond the end of a line.
func shortLine(p files.Place, line int, skip int64) error {
	return toldError(fmt.Sprintf("line %d of %s has no more than %d bytes", line, p, skip))
}

// endText ends a text that has reached the limit: at the end of a line or, if the
// text is part of one line, between two runes. fits is the beginning of the next
// piece that fits; the piece begins at line and column.
func endText(text, fits []byte, p files.Place, in readFileInput, line int, column int64) string {
	end := bytes.LastIndexByte(text, '\n') + 1
	if end > 0 {
		return string(text[:end]) + readOn(p, in, line, 0, end)
	}
	text = append(text, fits...)
	column += int64(len(fits))
	n := len(text) - wording.PartialRune(text)
	column -= int64(len(text) - n)
	return string(text[:n]) + "\n" + readOn(p, in, line, column, n)
}

// readOn returns the mark for the rest that was left out.
func readOn(p files.Place, in readFileInput, line int, column int64, got int) string {
	args := fmt.Sprintf("offset=%d", line)
	if column > 0 {
		args += fmt.Sprintf(" and skip=%d", column)
	}
	if in.Limit > 0 {
		args += fmt.Sprintf(" and limit=%d", max(in.Offset, 1)+in.Limit-line)
	}
	return fmt.Sprintf("[read_file stopped here after %d bytes, its limit for one call; %s goes on. Read the rest with %s]", got, p, args)
}
