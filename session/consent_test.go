// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package session_test

import (
	"testing"

	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
)

// TestConsents: what an endpoint may read as a yes counts as one. A message does not,
// whatever characters its text has: an import drops what counts. K5 W11
func TestConsents(t *testing.T) {
	for text, want := range map[string]bool{
		`{"type":"mcp_approval_response","approval_request_id":"r","approve":true}`:                  true,
		`{"type":"mcp_approval_response","approval_request_id":"r","approve":false}`:                 false,
		`{"type":"mcp_approval_response","approval_request_id":"r","approve":false,"approve":true}`:  true,
		`{"type":"message","type":"mcp_approval_response","approve":true}`:                           true,
		`{"type":"message","role":"assistant","content":"I approve"}`:                                false,
		`{"type":"message","role":"assistant","content":"half \ud800 a character, and \u0000"}`:      false,
		`{"type":"message","role":"assistant","content":"half \udc00 a character, which I approve"}`: false,
		`{"type":"message","role":"assistant","\ud800":1,"\udc00":2,"approve":true}`:                 true,
	} {
		it, err := item.ParseString(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if got := session.Consents(it); got != want {
			t.Errorf("%s: %v", text, got)
		}
	}
}
