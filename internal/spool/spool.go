// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

// Package spool stores bytes that may not fit in memory: small amounts in memory,
// larger ones in a temporary file.
package spool

import (
	"errors"
	"io"
	"os"
	"runtime"
)

// Spool collects bytes, and can be read after it is sealed. The zero value holds
// nothing in memory; see [New].
//
// The file is private to its owner and has no name if the system supports that, so
// that it does not outlive the program. It is removed with the Spool. If the disk is
// full, the middle is lost: the end is kept in memory, and Lost reports the number
// of lost bytes. A Spool is not safe for concurrent use until it is sealed.
type Spool struct {
	keep  int
	mem   []byte // the beginning, if there is no file
	file  *os.File
	held  int64 // in mem or in the file
	end   []byte
	next  int // next position in the ring end when it is full
	total int64
	err   error
	all   []segment // set by Seal
}

// segment is a part of the content.
type segment struct {
	from io.ReaderAt
	size int64
}

// New returns a Spool that holds up to keep bytes in memory, or twice as many if no
// file can be created.
func New(keep int) *Spool { return &Spool{keep: max(keep, 1)} }

// Write implements [io.Writer]. It accepts everything and never fails.
func (s *Spool) Write(p []byte) (int, error) {
	n := len(p)
	s.total += int64(n)
	if s.file == nil && s.err == nil && len(s.mem)+n <= s.keep {
		s.mem = append(s.mem, p...)
		s.held = int64(len(s.mem))
		return n, nil
	}
	if s.file == nil && s.err == nil {
		if s.open(); s.err != nil { // the memory holds what it can
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

// open moves the bytes in memory to a file.
func (s *Spool) open() {
	f, err := Temporary()
	if err != nil {
		s.err = err
		return
	}
	if _, err := f.Write(s.mem); err != nil {
		s.err = errors.Join(err, f.Close())
		return
	}
	s.file, s.mem = f, nil
	runtime.AddCleanup(s, Remove, f)
}

// ring keeps the last bytes that the file did not accept.
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

// Total returns the number of written bytes.
func (s *Spool) Total() int64 { return s.total }

// Held returns the number of leading bytes that were kept.
func (s *Spool) Held() int64 { return s.held }

// Lost returns the number of bytes that were not kept, and the reason.
func (s *Spool) Lost() (int64, error) { return s.total - s.held - int64(len(s.end)), s.err }

// InMemory reports whether there is no file.
func (s *Spool) InMemory() bool { return s.file == nil }

// Seal ends writing. If bytes are lost, mark replaces them and end follows the last
// bytes.
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

// Size returns the number of readable bytes, including the mark.
func (s *Spool) Size() (n int64) {
	for _, part := range s.all {
		n += part.size
	}
	return n
}

// ReadAt implements [io.ReaderAt] for a sealed Spool.
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

// Reader returns a reader of a sealed Spool. It keeps the Spool alive.
func (s *Spool) Reader() *io.SectionReader { return io.NewSectionReader(s, 0, s.Size()) }
