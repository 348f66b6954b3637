// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"io"
	"net/http"

	"github.com/antiphon-go/antiphon/item"
)

// small is the length up to which a body is joined: net/http sends the headers
// in a packet of their own before a body that it does not know.
const small = 32 << 10

// attach makes b the body of a request, with its length known. A nil body is
// none.
func attach(r *http.Request, b item.Body) {
	if b == nil {
		return
	}
	r.ContentLength = b.Len()
	if len(b) > 1 && r.ContentLength <= small {
		if joined, err := b.Text(); err == nil { // otherwise its reader will tell
			b = item.TextBody(joined)
		}
	}
	r.Body = b.NewReader()
	r.GetBody = func() (io.ReadCloser, error) { return b.NewReader(), nil }
}
