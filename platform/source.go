// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package platform

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/textproto"
	"strings"
	"sync"
	"sync/atomic"
	"unicode"

	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/internal/nils"
	"github.com/antiphon-go/antiphon/internal/transport"
)

// Source is the content of a file to send. The caller opens and closes it. It is read while it is
// sent, once for each attempt, and never kept in memory as a whole.
type Source struct {
	// Name is the file's name, as the endpoint stores and shows it. Endpoints detect formats by its
	// ending.
	Name string
	// Type is the media type, such as text/plain; another text is an error. Empty means
	// application/octet-stream.
	Type string
	// Content is read from its current position to its end. A failed request can be repeated only
	// if Content has a method Seek that works, as files, *bytes.Reader and *strings.Reader have. If
	// the context is done while a read is in progress, that read may end later.
	Content io.Reader
	// Size is the number of bytes in Content; another number is an error. 0 means unknown. It is
	// needed only if Content cannot seek and the endpoint does not accept a body of unknown length.
	Size int64
}

// content is a source that was measured.
type content struct {
	name string
	size int64 // -1 if unknown
	once bool
	open func() io.Reader
}

// measure checks a source. It reads nothing.
func (s *Source) measure(param string) (*content, error) {
	if s == nil || nils.Is(s.Content) {
		return nil, refused(param, "it has no content", "give a reader")
	}
	if s.Name == "" {
		return nil, refused(param, "it has no name", "give a name with the ending of its format")
	}
	if s.Size < 0 {
		return nil, refused(param, fmt.Sprintf("its size is %d", s.Size), "give the number of bytes, or 0 if it is not known")
	}
	if !mediaType(s.Type) {
		return nil, refused(param, fmt.Sprintf("%q is not a media type", s.Type), "give one such as text/plain, or none")
	}
	c := &content{name: s.Name, size: cmp.Or(s.Size, -1), once: true, open: func() io.Reader { return s.Content }}
	if b, ok := s.Content.(*bytes.Buffer); ok {
		c.size = int64(b.Len())
	}
	if seeker, ok := s.Content.(io.ReadSeeker); ok {
		c.seekable(seeker)
	}
	if s.Size > 0 && c.size != s.Size {
		return nil, refused(param, fmt.Sprintf("its size is %d bytes, not %d", c.size, s.Size), "give the number of bytes from the reader's position, or 0")
	}
	return c, nil
}

// mediaType reports whether a text is a media type or empty. A control character could begin
// another header, or the content.
func mediaType(text string) bool {
	if text == "" {
		return true
	}
	name, _, err := mime.ParseMediaType(text)
	_, sub, _ := strings.Cut(name, "/")
	return err == nil && sub != "" && !strings.ContainsFunc(text, unicode.IsControl)
}

// seekable uses a reader that can be read again, if it is one: a pipe has the method too.
func (c *content) seekable(r io.ReadSeeker) {
	start, err := r.Seek(0, io.SeekCurrent)
	if err != nil {
		return
	}
	end, err := r.Seek(0, io.SeekEnd)
	if err != nil {
		return
	}
	if back, err := r.Seek(start, io.SeekStart); err != nil || back != start || end < start {
		return
	}
	c.size, c.once = end-start, false
	if at, ok := r.(io.ReaderAt); ok {
		c.open = func() io.Reader { return io.NewSectionReader(at, start, c.size) }
		return
	}
	shared := &turns{r: r, start: start}
	c.open = shared.next
}

// turns lets attempts read one reader in turn: an attempt that was given up may still be reading
// when the next one begins.
type turns struct {
	mu      sync.Mutex
	r       io.ReadSeeker
	start   int64
	current atomic.Int64
}

func (t *turns) next() io.Reader { return &turn{turns: t, number: t.current.Add(1)} }

type turn struct {
	*turns
	number int64
	begun  bool
}

func (t *turn) Read(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.number != t.current.Load() {
		return 0, errors.New("the attempt was given up")
	}
	if !t.begun {
		if _, err := t.r.Seek(t.start, io.SeekStart); err != nil {
			return 0, err
		}
		t.begun = true
	}
	return t.r.Read(p)
}

// exact reads a content and reports a size that is not the expected one before the body ends.
type exact struct {
	*content
	r io.Reader
	n int64
}

func (e *exact) Read(p []byte) (int, error) {
	n, err := e.r.Read(p)
	e.n += int64(n)
	switch {
	case e.size >= 0 && e.n > e.size:
		return 0, e.broken(fmt.Sprintf("%s has more than its %d bytes", e.name, e.size), nil)
	case err == io.EOF && e.size >= 0 && e.n < e.size:
		return n, e.broken(fmt.Sprintf("%s ended after %d of its %d bytes", e.name, e.n, e.size), io.ErrUnexpectedEOF)
	case err != nil && err != io.EOF:
		return n, e.broken(fmt.Sprintf("%s cannot be read: %v", e.name, err), err)
	}
	return n, err
}

func (e *exact) broken(problem string, err error) error {
	return &endpoint.Error{Class: endpoint.BadRequest, Message: problem, Hint: "nothing was stored; send it again when it is whole", Err: err}
}

// form is a multipart body in preparation.
type form struct {
	text   bytes.Buffer // not yet in parts
	w      *multipart.Writer
	parts  []func() io.Reader
	size   int64 // -1 if unknown
	once   bool
	failed error
}

func newForm() *form {
	f := &form{}
	f.w = multipart.NewWriter(&f.text)
	return f
}

// field adds a field, unless its value is empty.
func (f *form) field(name, value string) {
	if value != "" && f.failed == nil {
		f.failed = f.w.WriteField(name, value)
	}
}

// file adds a file.
func (f *form) file(name string, s *Source) {
	if f.failed != nil {
		return
	}
	c, err := s.measure(name)
	if err != nil {
		f.failed = err
		return
	}
	h := textproto.MIMEHeader{}
	h.Set("Content-Disposition", multipart.FileContentDisposition(name, s.Name))
	h.Set("Content-Type", cmp.Or(s.Type, "application/octet-stream"))
	if _, f.failed = f.w.CreatePart(h); f.failed != nil {
		return
	}
	f.flush()
	f.parts = append(f.parts, func() io.Reader { return &exact{content: c, r: c.open()} })
	f.once = f.once || c.once
	if c.size < 0 || f.size < 0 {
		f.size = -1
	} else {
		f.size += c.size
	}
}

// flush moves the text so far to the parts.
func (f *form) flush() {
	text := bytes.Clone(f.text.Bytes())
	f.text.Reset()
	f.parts = append(f.parts, func() io.Reader { return bytes.NewReader(text) })
	if f.size >= 0 {
		f.size += int64(len(text))
	}
}

// source returns the whole form.
func (f *form) source() (*transport.Source, error) {
	if f.failed == nil {
		f.failed = f.w.Close()
	}
	if f.failed != nil {
		return nil, f.failed
	}
	f.flush()
	return &transport.Source{
		Type: f.w.FormDataContentType(), Size: f.size, Once: f.once,
		Open: func() io.ReadCloser {
			readers := make([]io.Reader, len(f.parts))
			for i, open := range f.parts {
				readers[i] = open()
			}
			return io.NopCloser(io.MultiReader(readers...))
		},
	}, nil
}
