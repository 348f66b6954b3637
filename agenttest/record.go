// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agenttest

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/internal/nils"
)

// Recorder is an http.RoundTripper that records the traffic for [Replay]: requests,
// answers with the boundaries of network reads, failures, and, with
// [Recorder.Handler], the frames of WebSockets. The zero value is ready for use. A
// Recorder is safe for concurrent use; concurrent requests are recorded in the order
// in which they began.
//
// Recordings contain no keys: the values of headers and query parameters are removed
// except for those known to be harmless, and so is each occurrence of the Secrets in
// bodies, URLs and messages, verbatim or escaped. Everything else is recorded
// unchanged: read a recording before you publish it.
type Recorder struct {
	// Transport sends the requests; nil means http.DefaultTransport.
	Transport http.RoundTripper
	// Secrets are removed. Secrets of at least eight bytes are found everywhere,
	// shorter ones only in headers.
	Secrets []endpoint.Key

	mu   sync.Mutex
	list []*exchange
}

// add begins a record.
func (r *Recorder) add(x *exchange) *exchange {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.list = append(r.list, x)
	return x
}

// note changes a record.
func (r *Recorder) note(change func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change()
}

func (r *Recorder) scrubber() *scrubber { return newScrubber(r.Secrets) }

// RoundTrip sends the request and records it. The answer's body is recorded as it is
// read. It removes Accept-Encoding, so that the transport decompresses and the
// recording is readable.
func (r *Recorder) RoundTrip(req *http.Request) (*http.Response, error) {
	body, err := takeBody(req)
	if err != nil {
		return nil, err
	}
	x := r.add(&exchange{method: req.Method, url: r.scrubber().url(req.URL), header: req.Header.Clone(), body: body})
	sent := req.Clone(req.Context())
	sent.Header.Del("Accept-Encoding")
	if req.Body != nil {
		sent.Body, sent.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		sent.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	}
	resp, err := cmp.Or[http.RoundTripper](r.Transport, http.DefaultTransport).RoundTrip(sent)
	if err != nil {
		r.note(func() { x.end = err.Error() })
		return nil, err
	}
	resp.Request = req
	r.note(func() { x.status, x.respHeader = resp.StatusCode, resp.Header.Clone() })
	resp.Body = &recordedBody{src: resp.Body, recorder: r, x: x}
	return resp, nil
}

// takeBody reads a request's body and closes it, as a RoundTripper must.
func takeBody(req *http.Request) ([]byte, error) {
	if req.Body == nil {
		return nil, nil
	}
	body, err := io.ReadAll(req.Body)
	return body, errors.Join(err, req.Body.Close())
}

// recordedBody is an answer's body that is recorded as it is read. It reads in large
// pieces, whatever the size of the caller's buffer.
type recordedBody struct {
	src      io.ReadCloser
	recorder *Recorder
	x        *exchange
	buf      []byte
	left     []byte // unread part of the buffer
	err      error
}

const readSize = 64 << 10

func (b *recordedBody) Read(p []byte) (int, error) {
	if len(b.left) == 0 && b.err == nil {
		b.fill()
	}
	if len(b.left) == 0 {
		return 0, b.err
	}
	n := copy(p, b.left)
	b.left = b.left[n:]
	return n, nil
}

func (b *recordedBody) fill() {
	if b.buf == nil {
		b.buf = make([]byte, readSize)
	}
	n, err := b.src.Read(b.buf)
	b.left, b.err = b.buf[:n], err
	b.recorder.note(func() {
		if n > 0 {
			b.x.chunks = append(b.x.chunks, bytes.Clone(b.left))
		}
		if err != nil && err != io.EOF {
			b.x.end = err.Error()
		}
	})
}

// notRead marks the record of a body that was closed before its end.
const notRead = "closed by the client"

func (b *recordedBody) Close() error {
	if b.err == nil {
		b.err = http.ErrBodyReadAfterClose
		b.recorder.note(func() { b.x.end = notRead })
	}
	return b.src.Close()
}

// WriteTo writes the recording so far. It fails without writing if the output would
// contain a secret.
func (r *Recorder) WriteTo(w io.Writer) (int64, error) {
	s := r.scrubber()
	var out recordWriter
	out.WriteString(magic + "\n")
	r.mu.Lock()
	for i, x := range r.list {
		clean := s.exchange(x)
		if s.inPieces(clean) {
			r.mu.Unlock()
			return 0, fmt.Errorf("record %d: the model says a secret, in pieces that cannot be replaced", i)
		}
		out.exchange(clean)
	}
	r.mu.Unlock()
	for _, secret := range s.secrets {
		if len(secret) >= minSecret && strings.Contains(out.String(), secret) {
			return 0, errors.New("a secret would be in the recording")
		}
	}
	if nils.Is(w) {
		return 0, errors.New("the recording has no writer to be written to")
	}
	return out.Buffer.WriteTo(w)
}

// Save writes the recording to a file, completely or not at all, and creates the
// directory.
func (r *Recorder) Save(file string) error {
	var b bytes.Buffer
	if _, err := r.WriteTo(&b); err != nil {
		return err
	}
	dir := filepath.Dir(file)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	tmp, err := os.CreateTemp(dir, filepath.Base(file)+".*")
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name())
	_, err = b.WriteTo(tmp)
	if err = errors.Join(err, tmp.Chmod(0o644), tmp.Close()); err != nil {
		return err
	}
	return os.Rename(tmp.Name(), file)
}
