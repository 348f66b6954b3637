// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"io"
	"strings"

	"github.com/antiphon-go/antiphon/endpoint"
)

// Kind is what a body is. Its first bytes decide more than its Content-Type:
// servers and the proxies before them are careless with that.
type Kind int

const (
	Other  Kind = iota // neither of the two, or a web page
	Stream             // events
	JSON               // one JSON text
)

func kindOf(head []byte, contentType string) Kind {
	start := trimStart(head)
	switch {
	case len(start) == 0:
		return Stream // an empty one: truncated
	case encoding(start) != "":
		return Other
	case start[0] == '{' || start[0] == '[':
		return JSON
	case start[0] == '<' && endpoint.LooksLikeHTML(start):
		return Other
	case isEventStream(contentType):
		return Stream
	}
	for _, field := range []string{":", "data", "event", "id", "retry"} {
		if bytes.HasPrefix(start, []byte(field)) {
			return Stream
		}
	}
	return Other
}

// trimStart takes the mark of UTF-8 and white space off.
func trimStart(head []byte) []byte {
	return bytes.TrimLeft(bytes.TrimPrefix(head, []byte("\ufeff")), " \t\r\n")
}

// encoding names what bytes are in that are not text of UTF-8, "" for text: what
// begins so was generated, may have been paid for, and would come again.
func encoding(start []byte) string {
	switch {
	case bytes.HasPrefix(start, []byte{0x1f, 0x8b}):
		return "gzip without a Content-Encoding header"
	case bytes.HasPrefix(start, []byte{0x28, 0xb5, 0x2f, 0xfd}):
		return "zstd without a Content-Encoding header"
	case bytes.HasPrefix(start, []byte{0xff, 0xfe}), bytes.HasPrefix(start, []byte{0xfe, 0xff}), len(start) > 1 && (start[0] == 0) != (start[1] == 0):
		return "text in UTF-16"
	case start[0] < ' ' || start[0] >= 0x7f:
		return "binary data"
	}
	return ""
}

func isEventStream(contentType string) bool {
	t, _, _ := strings.Cut(contentType, ";")
	return strings.EqualFold(strings.TrimSpace(t), TypeEvents)
}

const (
	maxHead = 512
	minHead = 16 // bytes after leading white space that decide
)

// readHead reads as much as it takes to tell what the body is, into head, which
// has room for more than maxHead. It returns io.EOF, with the bytes, when that is all
// there was.
func readHead(r io.Reader, head []byte, contentType string) ([]byte, error) {
	need := minHead
	if isEventStream(contentType) {
		need = 2 // the second byte tells UTF-16
	}
	for len(head) < maxHead {
		n, err := r.Read(head[len(head):cap(head)])
		head = head[:len(head)+n]
		if err != nil {
			return head, err
		}
		start := bytes.TrimLeft(head, "\ufeff \t\r\n")
		if len(start) >= need || bytes.ContainsAny(start, "\r\n") || len(start) > 0 && (start[0] == '{' || start[0] == ':') {
			break
		}
	}
	return head, nil
}
