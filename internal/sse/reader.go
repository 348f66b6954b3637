// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package sse

import (
	"bytes"
	"fmt"
	"io"
	"strconv"
	"time"
)

// DefaultMaxEvent is the default size limit of one event.
const DefaultMaxEvent = 256 << 20

// FirstBuffer is the initial buffer size of a [Reader].
const FirstBuffer = 4 << 10

// maxType is the initial capacity for an event's type, which may be longer.
const maxType = 64

// Options configure a [Reader]. The zero value is ready for use.
type Options struct {
	// MaxEvent is the maximum size in bytes of the data of one event, or of one line
	// of the stream. 0 means [DefaultMaxEvent]. Memory use is at most a small multiple
	// of the largest event.
	MaxEvent int
}

// Event is one event of a stream. All slices are valid until the next call of
// [Reader.Next]; copy them to keep them.
type Event struct {
	// Type is the event field, or empty for the standard's "message".
	Type []byte
	// ID is the last id that the stream set, in this event or an earlier one.
	ID []byte
	// Data is the data fields joined by newlines, as sent. The standard replaces
	// invalid UTF-8 by U+FFFD; this package leaves it to the caller.
	Data []byte
	// Retry is the reconnection time that the stream last requested, or 0.
	Retry time.Duration
	// Unterminated marks a last event without the final blank line. The standard drops
	// such an event, because it may be incomplete. Some servers omit the blank line,
	// so it is delivered and the caller decides.
	Unterminated bool
}

// TooLargeError reports an event above [Options.MaxEvent].
type TooLargeError struct {
	Limit int // bytes
}

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("event of the stream is larger than %d bytes", e.Limit)
}

// Reader splits a stream into events. It accepts CR, LF and CRLF, a leading byte
// order mark and any chunk boundaries, and allocates only to grow its single buffer.
// It is not safe for concurrent use.
type Reader struct {
	src io.Reader
	max int
	err error // the error that ended the stream; sticky

	// buf[pos:end] is unread. lf and cr are the positions of the search for the next
	// line feed and carriage return: the bytes between pos and them do not contain
	// that byte, so that no byte is searched twice.
	buf      []byte
	pos, end int
	lf, cr   int
	skipLF   bool // the last line ended in CR: a following LF belongs to it
	fast     bool // the last read filled most of the buffer, up to its end
	started  bool // the first line, which may begin with a byte order mark, was read

	// The current event. Its data is buf[data:dataEnd]; further data lines are moved
	// up to it, over lines already read.
	hasData       bool
	data, dataEnd int
	typ, id       []byte
	retry         time.Duration
	head          []byte // the line that set typ, with its line feed
	names         [2 * maxType]byte
}

// NewReader returns a Reader of r. It reads ahead. The caller closes r.
func NewReader(r io.Reader, opts Options) *Reader {
	rd := new(Reader)
	rd.Reset(r, nil, 0, opts)
	return rd
}

// Reset makes r a Reader of another stream: the first n bytes of buf, which becomes
// its buffer, followed by src.
func (r *Reader) Reset(src io.Reader, buf []byte, n int, opts Options) {
	limit := opts.MaxEvent
	if limit <= 0 {
		limit = DefaultMaxEvent
	}
	*r = Reader{src: src, max: limit, buf: buf, end: n}
	r.typ, r.head = r.names[:0:maxType], r.names[maxType:maxType] // both are short; if not, they grow separately
}

// Next returns the next event as soon as its last bytes have arrived. At the end of
// the stream it returns io.EOF or the error of the source; an event that is too
// large is a [*TooLargeError]. Errors are final.
func (r *Reader) Next() (Event, error) {
	r.hasData = false
	if r.sameHead() {
		r.pos += len(r.head)
	} else {
		r.untyped()
	}
	if r.oneLine() {
		return r.event(), nil
	}
	for {
		from, to, ok := r.line()
		switch {
		case ok && from == to && r.hasData:
			return r.event(), nil
		case ok && from == to:
			r.untyped()
		case ok:
			r.field(from, to)
		case r.err != nil:
			return r.last()
		default:
			r.fill()
		}
	}
}

// untyped clears the type and the line that set it.
func (r *Reader) untyped() { r.typ, r.head = r.typ[:0], r.head[:0] }

// sameHead reports whether the event begins with the type line of the previous
// event, as the deltas of a reply do.
func (r *Reader) sameHead() bool {
	return len(r.head) > 0 && !r.skipLF && bytes.HasPrefix(r.buf[r.pos:r.end], r.head)
}

// oneLine handles the usual rest of an event if it is completely in the buffer: a
// line of data and a blank line, both ended by a line feed.
func (r *Reader) oneLine() bool {
	b := r.buf[:r.end]
	if r.skipLF || !r.started || !bytes.HasPrefix(b[r.pos:], []byte("data:")) {
		return false
	}
	r.lf = search(b, max(r.lf, r.pos), '\n')
	if r.cr < r.end {
		r.cr = search(b, max(r.cr, r.pos), '\r')
	}
	stop := r.lf
	if stop+1 >= r.end || b[stop+1] != '\n' || r.cr <= stop || stop-r.pos > r.max {
		return false
	}
	r.data, r.dataEnd = r.pos+len("data:"), stop
	if b[r.data] == ' ' {
		r.data++
	}
	r.pos = stop + 2
	return true
}

func (r *Reader) event() Event {
	return Event{
		Type:  r.typ,
		ID:    r.id,
		Data:  r.buf[r.data:r.dataEnd:r.dataEnd],
		Retry: r.retry,
	}
}

// last handles the unfinished end of a stream: a line without its end, an event
// without its blank line.
func (r *Reader) last() (Event, error) {
	if r.pos < r.end {
		from, to := r.take(r.end)
		r.field(from, to)
	}
	if !r.hasData {
		return Event{}, r.err
	}
	ev := r.event()
	ev.Unterminated = true
	return ev, nil
}

// line takes the next complete line from the buffer.
func (r *Reader) line() (from, to int, ok bool) {
	if r.skipLF && r.pos < r.end {
		r.skipLF = false
		if r.buf[r.pos] == '\n' {
			r.pos++
		}
	}
	r.lf = search(r.buf[:r.end], max(r.lf, r.pos), '\n')
	if r.cr < r.end {
		r.cr = search(r.buf[:r.end], max(r.cr, r.pos), '\r')
	}
	stop := min(r.lf, r.cr)
	if stop-r.pos > r.max {
		r.tooLarge()
		return 0, 0, false
	}
	if stop == r.end {
		return 0, 0, false
	}
	r.skipLF = stop == r.cr
	from, to = r.take(stop)
	r.pos = stop + 1
	return from, to, true
}

// take consumes the bytes up to stop as a line, without the byte order mark.
func (r *Reader) take(stop int) (from, to int) {
	from = r.pos
	if !r.started {
		r.started = true
		if bytes.HasPrefix(r.buf[from:stop], []byte("\xef\xbb\xbf")) {
			from += 3
		}
	}
	r.pos = stop
	return from, stop
}

// search returns the index of c in b at or after from, or len(b).
func search(b []byte, from int, c byte) int {
	if i := bytes.IndexByte(b[from:], c); i >= 0 {
		return from + i
	}
	return len(b)
}

// field interprets the line buf[from:to].
func (r *Reader) field(from, to int) {
	name, value := r.buf[from:to], to
	i := len("data") // most lines are data lines, and they can be long
	if !bytes.HasPrefix(name, []byte("data:")) {
		i = bytes.IndexByte(name, ':')
	}
	if i >= 0 {
		name, value = name[:i], from+i+1
		if value < to && r.buf[value] == ' ' {
			value++
		}
	}
	switch string(name) {
	case "data":
		r.addData(value, to)
	case "event":
		r.typ = append(r.typ[:0], r.buf[value:to]...)
		r.head = r.head[:0]
		if !r.hasData && !r.skipLF && to < r.end {
			r.head = append(append(r.head, r.buf[from:to]...), '\n')
		}
	case "id":
		if id := r.buf[value:to]; bytes.IndexByte(id, 0) < 0 {
			r.id = append(r.id[:0], id...)
		}
	case "retry":
		r.setRetry(r.buf[value:to])
	}
}

// addData appends buf[from:to] to the event's data. There is space for the newline
// between them, because the previous line had an end.
func (r *Reader) addData(from, to int) {
	if !r.hasData {
		r.hasData, r.data, r.dataEnd = true, from, to
		return
	}
	r.buf[r.dataEnd] = '\n'
	r.dataEnd += 1 + copy(r.buf[r.dataEnd+1:], r.buf[from:to])
	if r.dataEnd-r.data > r.max {
		r.tooLarge()
	}
}

// tooLarge gives up the stream and discards the buffer.
func (r *Reader) tooLarge() {
	r.hasData = false
	r.pos = r.end
	r.err = &TooLargeError{Limit: r.max}
}

func (r *Reader) setRetry(digits []byte) {
	for _, c := range digits {
		if c < '0' || c > '9' {
			return
		}
	}
	if ms, err := strconv.ParseInt(string(digits), 10, 64); err == nil && ms <= int64(24*time.Hour/time.Millisecond) {
		r.retry = time.Duration(ms) * time.Millisecond
	}
}

// maxEmptyReads is how many consecutive reads may return neither bytes nor an error
// before the source counts as broken.
const maxEmptyReads = 100

// fill reads more bytes after buf[:end].
func (r *Reader) fill() {
	if r.pos == r.end && !r.hasData || r.end == len(r.buf) {
		r.makeRoom()
	}
	for range maxEmptyReads {
		n, err := r.src.Read(r.buf[r.end:])
		r.end += n
		r.fast = r.end == len(r.buf) && n > len(r.buf)/2
		r.err = err
		if n > 0 || err != nil {
			return
		}
	}
	r.err = io.ErrNoProgress
}

// fastBuffer is the size in bytes up to which a buffer grows only because its source fills it:
// then a read takes more at once.
const fastBuffer = 32 << 10

// makeRoom moves the event's data and the unread bytes to the front of the buffer,
// or of a larger one if they fill most of it. It leaves one byte between them for
// the newline that may join them.
func (r *Reader) makeRoom() {
	kept := 0
	if r.hasData {
		kept = r.dataEnd - r.data + 1
	}
	used := kept + r.end - r.pos
	dst := r.buf
	switch {
	case r.fast && len(dst) < fastBuffer:
		dst = make([]byte, min(4*len(dst), fastBuffer))
	case used > len(dst)-len(dst)/4 || len(dst) == 0:
		dst = make([]byte, max(FirstBuffer, 2*len(dst)))
	}
	if r.hasData {
		copy(dst, r.buf[r.data:r.dataEnd])
		r.data, r.dataEnd = 0, kept-1
	}
	copy(dst[kept:], r.buf[r.pos:r.end])
	shift := r.pos - kept
	r.buf, r.pos, r.end = dst, kept, used
	r.lf, r.cr = max(r.lf-shift, kept), max(r.cr-shift, kept)
}
