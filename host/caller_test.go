// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"testing"

	"github.com/antiphon-go/antiphon/audit"
	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/mcpbridge"
)

// The record of a token that an MCP server gets does not hold the query of the server's URL, in
// which a key may be. B5
func TestTokenRecordHasNoQuery(t *testing.T) {
	var got []audit.Record
	h := &Host{cfg: Config{
		Caller: func(string) (endpoint.Key, error) { return endpoint.NewKey("token-of-the-caller"), nil },
		Audit:  func(_ context.Context, records ...audit.Record) error { got = append(got, records...); return nil },
	}}
	if _, err := h.caller()(t.Context(), &mcpbridge.Server{URL: "https://mcp.example/mcp?api_key=very-secret"}); err != nil {
		t.Fatal(err)
	}
	if len(got) != 1 || got[0].Where != "https://mcp.example/mcp" {
		t.Errorf("%+v", got)
	}
}
