// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"io"
	"net/http"
	"strings"

	"github.com/antiphon-go/antiphon/item"
)

// small is the length up to which a body is joined: net/http sends the headers
// in a packet of their own before a body that it does not know. What is larger
// takes several in any case.
const small = 4 << 10

// attach makes b the body of a request, with its length known. A nil body is
// none.
func attach(r *http.Request, b item.Body) {
	if b == nil {
		return
	}
	r.ContentLength = b.Len()
	open := func() (io.ReadCloser, error) { return newBody(b), nil }
	if r.ContentLength <= small {
		if joined, err := b.Text(); err == nil { // otherwise its reader will tell
			open = func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(joined)), nil }
		}
	}
	r.Body, _ = open()
	r.GetBody = open
}
