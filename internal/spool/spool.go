// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

// Package spool holds bytes that may be too many for the memory: the first ones
// in memory, and all of them in a temporary file once there are more.
package spool

import (
	"errors"
	"io"
	"os"
	"runtime"
)

// Spool collects what is written to it, and can be read once it is sealed. The
// zero value keeps nothing in memory; see [New].
//
// The file is for its owner alone and has no name where the system allows that,
// so that nothing of it outlives the program. It goes with the Spool. Where there
// is no room for it, the middle is lost: the end is kept in memory, and Lost says
// how much is gone. A Spool is not safe for concurrent use until it is sealed.
type Spool struct {
	keep  int
	mem   []byte // the beginning, while there is no file
	file  *os.File
	held  int64 // in mem or in the file
	end   []byte
	next  int // where the ring end goes on, once it is full
	total int64
	err   error
	all   []segment // once it is sealed
}

// segment is a part of the whole.
type segment struct {
	from io.ReaderAt
	size int64
}

// New returns a Spool that holds up to keep bytes in memory, or twice as many
// where there is no room for a file.
func New(keep int) *Spool { return &Spool{keep: max(keep, 1)} }

// Write implements [io.Writer]. It takes everything and never fails.
func (s *Spool) Write(p []byte) (int, error) {
	n := len(p)
	s.total += int64(n)
	if s.file == nil && s.err == nil && len(s.mem)+n <= s.keep {
		s.mem = append(s.mem, p...)
		s.held = int64(len(s.mem))
		return n, nil
	}
	if s.file == nil && s.err == nil {
		if s.open(); s.err != nil { // the memory takes what it can
			room := min(s.keep-len(s.mem), n)
			s.mem = append(s.mem, p[:room]...)
			s.held, p = int64(len(s.mem)), p[room:]
		}
	}
	if s.err == nil {
		var written int
		written, s.err = s.file.Write(p)
		s.held += int64(written)
		p = p[written:]
	}
	if s.err != nil {
		s.ring(p)
	}
	return n, nil
}

// open moves what is in memory to a file.
func (s *Spool) open() {
	f, err := create()
	if err != nil {
		s.err = err
		return
	}
	if _, err := f.Write(s.mem); err != nil {
		s.err = errors.Join(err, f.Close())
		return
	}
	s.file, s.mem = f, nil
	runtime.AddCleanup(s, remove, f)
}

// ring keeps the last bytes of those that the file did not take.
func (s *Spool) ring(p []byte) {
	if len(p) > s.keep {
		p = p[len(p)-s.keep:]
	}
	n := min(s.keep-len(s.end), len(p))
	s.end = append(s.end, p[:n]...)
	for p = p[n:]; len(p) > 0; p = p[n:] {
		n = copy(s.end[s.next:], p)
		s.next = (s.next + n) % s.keep
	}
}

// Total is how many bytes were written.
func (s *Spool) Total() int64 { return s.total }

// Held is how many of the first bytes were kept: all of them, if none is lost.
func (s *Spool) Held() int64 { return s.held }

// Lost is how many of them were not kept, and why.
func (s *Spool) Lost() (int64, error) { return s.total - s.held - int64(len(s.end)), s.err }

// InMemory reports whether nothing but the memory holds it.
func (s *Spool) InMemory() bool { return s.file == nil }

// Seal ends the writing. If bytes are lost, mark stands where they were and end
// after the last ones.
func (s *Spool) Seal(mark, end string) {
	s.all = nil
	if s.file != nil {
		s.add(s.file, s.held)
	} else {
		s.add(reader(s.mem), s.held)
	}
	lost, _ := s.Lost()
	if lost > 0 {
		s.add(reader(mark), int64(len(mark)))
	}
	s.add(reader(s.end[s.next:]), int64(len(s.end)-s.next))
	s.add(reader(s.end[:s.next]), int64(s.next))
	if lost > 0 {
		s.add(reader(end), int64(len(end)))
	}
}

func (s *Spool) add(from io.ReaderAt, size int64) {
	if size > 0 {
		s.all = append(s.all, segment{from, size})
	}
}

type bytesAt string

func reader[T string | []byte](b T) bytesAt { return bytesAt(b) }

func (b bytesAt) ReadAt(p []byte, off int64) (int, error) { return copy(p, b[off:]), nil }

// Size is how many bytes can be read, with the mark.
func (s *Spool) Size() (n int64) {
	for _, part := range s.all {
		n += part.size
	}
	return n
}

// ReadAt implements [io.ReaderAt] for a Spool that is sealed.
func (s *Spool) ReadAt(p []byte, off int64) (read int, err error) {
	for _, part := range s.all {
		if off >= part.size {
			off -= part.size
			continue
		}
		want := p[read:][:min(int64(len(p)-read), part.size-off)]
		n, err := part.from.ReadAt(want, off)
		read += n
		if n < len(want) {
			return read, errors.Join(err, io.ErrUnexpectedEOF)
		}
		off = 0
		if read == len(p) {
			return read, nil
		}
	}
	return read, io.EOF
}

// Reader reads all of a Spool that is sealed. It holds the Spool.
func (s *Spool) Reader() *io.SectionReader { return io.NewSectionReader(s, 0, s.Size()) }
