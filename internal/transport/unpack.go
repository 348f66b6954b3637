// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
)

// unpacking asks for compressed answers and unpacks them, as [http.Transport] does by itself, but
// within bounds: a megabyte of a hostile answer would otherwise become a gigabyte of memory.
type unpacking struct{ *http.Transport }

// Bounds for an answer that is unpacked: how many bytes it may become in any case, and how many for
// each byte that was sent. JSON with long repetitions is seldom packed more than 30 times.
const (
	unpackedFree = 16 << 20
	unpackedMost = 100
)

// RoundTrip implements [http.RoundTripper].
func (u unpacking) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Header.Get("Accept-Encoding") != "" || r.Header.Get("Range") != "" || r.Method == http.MethodHead {
		return u.Transport.RoundTrip(r) // the caller unpacks
	}
	asks := *r
	asks.Header = r.Header.Clone()
	asks.Header.Set("Accept-Encoding", "gzip")
	resp, err := u.Transport.RoundTrip(&asks)
	if err != nil || resp.Header.Get("Content-Encoding") != "gzip" {
		return resp, err
	}
	resp.Header.Del("Content-Encoding")
	resp.Header.Del("Content-Length")
	resp.ContentLength, resp.Uncompressed = -1, true
	resp.Body = &unpacked{packed: resp.Body}
	return resp, nil
}

// unpacked is the body of a compressed answer.
type unpacked struct {
	packed io.ReadCloser
	z      *gzip.Reader // nil until the first Read
	in     int64        // bytes of packed that were read
	out    int64
	err    error
}

// Read implements [io.Reader].
func (u *unpacked) Read(p []byte) (n int, err error) {
	if u.err != nil {
		return 0, u.err
	}
	if u.z == nil {
		if u.z, u.err = gzip.NewReader(counted{u}); u.err != nil {
			return 0, u.err
		}
	}
	n, u.err = u.z.Read(p)
	if u.out += int64(n); u.out > unpackedFree+unpackedMost*u.in {
		n, u.err = 0, &bombError{u.in, u.out}
	}
	return n, u.err
}

// Close implements [io.Closer].
func (u *unpacked) Close() error { return u.packed.Close() }

// counted counts what is read of the packed body.
type counted struct{ u *unpacked }

func (c counted) Read(p []byte) (int, error) {
	n, err := c.u.packed.Read(p)
	c.u.in += int64(n)
	return n, err
}

// bombError reports an answer that becomes much larger when it is unpacked.
type bombError struct{ in, out int64 } // bytes until then

func (e *bombError) Error() string {
	return fmt.Sprintf("the answer is packed too well: %d bytes of it have become more than %d", e.in, e.out)
}
