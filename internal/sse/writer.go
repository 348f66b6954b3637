// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package sse

import (
	"bytes"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
)

// Writer writes a stream. Each call makes one Write to the destination, followed by
// Flush if the destination has it, as an http.ResponseWriter does, so that readers
// receive each event at once. It is not safe for concurrent use.
type Writer struct {
	dst io.Writer
	buf []byte  // what waits
	own *[]byte // the buffer of buf, or nil while nothing waits
}

// buffers are those of all Writers: a stream that waits for its next event has none.
var buffers = sync.Pool{New: func() any { return new([]byte) }}

// largestKept is the size of a buffer that is not used again.
const largestKept = 64 << 10

// take makes sure that there is a buffer to append to.
func (w *Writer) take() {
	if w.own == nil {
		w.own = buffers.Get().(*[]byte)
		w.buf = (*w.own)[:0]
	}
}

// NewWriter returns a Writer to w.
func NewWriter(w io.Writer) *Writer { return &Writer{dst: w} }

// Event writes one event, after those of Add. If typ is empty, the event field is omitted. Data may
// contain any bytes; CR, LF and CRLF in it are written as line breaks of the format,
// so a reader receives each of them as LF. A line break in typ is an error.
func (w *Writer) Event(typ string, data []byte) error {
	return w.event(typ, data)
}

// Numbered is like Event for an event with an id.
func (w *Writer) Numbered(id int64, typ string, data []byte) error {
	w.take()
	w.buf = append(strconv.AppendInt(append(w.buf, "id: "...), id, 10), '\n')
	return w.event(typ, data)
}

// event adds an event to buf and sends it.
func (w *Writer) event(typ string, data []byte) error {
	if strings.ContainsAny(typ, "\r\n") {
		return fmt.Errorf("event type %q holds a line break", typ)
	}
	w.take()
	if typ != "" {
		w.buf = append(w.buf, "event: "...)
		w.buf = append(w.buf, typ...)
		w.buf = append(w.buf, '\n')
	}
	w.lines("data: ", data)
	w.buf = append(w.buf, '\n')
	return w.send()
}

// Text is like Event for a string, which it does not copy.
func (w *Writer) Text(typ, data string) error {
	if _, err := w.Add(typ, data); err != nil {
		return err
	}
	return w.Flush()
}

// Add is like Text for an event that waits for the next one which is sent, or for Flush. It
// returns how many bytes wait.
func (w *Writer) Add(typ, data string) (waiting int, err error) {
	if strings.ContainsAny(typ, "\r\n") {
		return len(w.buf), fmt.Errorf("event type %q holds a line break", typ)
	}
	w.take()
	if typ != "" {
		w.buf = append(append(append(w.buf, "event: "...), typ...), '\n')
	}
	if strings.IndexByte(data, '\n') < 0 && strings.IndexByte(data, '\r') < 0 {
		w.buf = append(append(append(w.buf, "data: "...), data...), "\n\n"...)
	} else {
		w.lines("data: ", []byte(data))
		w.buf = append(w.buf, '\n')
	}
	return len(w.buf), nil
}

// Flush sends what waits, if anything does.
func (w *Writer) Flush() error {
	if len(w.buf) == 0 {
		return nil
	}
	return w.send()
}

// Comment writes text as comment lines, which readers ignore. It keeps the
// connection alive.
func (w *Writer) Comment(text string) error {
	w.take()
	w.lines(": ", []byte(text))
	w.buf = append(w.buf, '\n')
	return w.send()
}

// lines appends each line of data after the prefix.
func (w *Writer) lines(prefix string, data []byte) {
	for {
		w.buf = append(w.buf, prefix...)
		i := bytes.IndexAny(data, "\r\n")
		if i < 0 {
			w.buf = append(append(w.buf, data...), '\n')
			return
		}
		w.buf = append(append(w.buf, data[:i]...), '\n')
		if data[i] == '\r' && i+1 < len(data) && data[i+1] == '\n' {
			i++
		}
		data = data[i+1:]
	}
}

func (w *Writer) send() error {
	_, err := w.dst.Write(w.buf)
	if *w.own = w.buf; cap(w.buf) <= largestKept {
		buffers.Put(w.own)
	}
	w.own, w.buf = nil, nil
	if err != nil {
		return err
	}
	switch f := w.dst.(type) {
	case interface{ FlushError() error }:
		return f.FlushError()
	case interface{ Flush() }:
		f.Flush()
	}
	return nil
}
