// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package access

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/go-json-experiment/json"
)

// lines is a file of JSON lines. Each is added by one write, so that those of several processes do not mix.
// A line that was cut, such as on a full disk, ends before the next one, so that it takes no other with it.
type lines struct {
	path string
	file *os.File // nil if it must be opened
	size int      // of what was added
}

// add adds a line.
func (f *lines) add(v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if err := f.open(); err != nil {
		return err
	}
	n, err := f.file.Write(append(text, '\n'))
	if f.size += n; err != nil {
		err = errors.Join(err, f.close()) // open finds what is left of the line
	}
	return err
}

func (f *lines) open() error {
	if f.file != nil {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(f.path), 0o700); err != nil {
		return err
	}
	file, err := os.OpenFile(f.path, os.O_APPEND|os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	cut, err := isCut(file)
	if err == nil && cut {
		_, err = file.WriteString("\n")
	}
	if err != nil {
		return errors.Join(err, file.Close())
	}
	f.file = file
	return nil
}

// isCut reports whether a file ends within a line.
func isCut(file *os.File) (bool, error) {
	info, err := file.Stat()
	if err != nil || info.Size() == 0 {
		return false, err
	}
	last := make([]byte, 1)
	_, err = file.ReadAt(last, info.Size()-1)
	return last[0] != '\n', err
}

func (f *lines) close() error {
	if f == nil || f.file == nil {
		return nil
	}
	file := f.file
	f.file = nil
	return file.Close()
}

// eachLine yields the lines of a file that can be read, and an error of the file. It returns false if
// nobody wants more.
func eachLine[T any](path string, yield func(T, error) bool) bool {
	var none T
	f, err := os.Open(path)
	if err != nil {
		return yield(none, err)
	}
	defer f.Close()
	for in := bufio.NewReader(f); ; {
		text, err := in.ReadBytes('\n')
		var one T
		if json.Unmarshal(bytes.TrimSpace(text), &one) == nil && !yield(one, nil) {
			return false
		}
		switch {
		case errors.Is(err, io.EOF):
			return true
		case err != nil:
			return yield(none, fmt.Errorf("%s: %w", filepath.Base(path), err))
		}
	}
}
