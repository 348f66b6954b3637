// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"testing"

	"github.com/antiphon-go/antiphon/internal/compliance"
	"github.com/antiphon-go/antiphon/rehearsal"
)

// A gateway passes what the Open Responses compliance suite checks, over an upstream with
// half of the API and over one with Chat Completions alone. V1
func TestOpenResponses(t *testing.T) {
	for name, only := range map[string]rehearsal.Feature{"responses": rehearsal.Responses, "chat": rehearsal.Chat} {
		t.Run(name, func(t *testing.T) {
			up := &rehearsal.Server{ReadOnly: func(string) bool { return true }}
			for _, f := range []rehearsal.Feature{
				rehearsal.Responses, rehearsal.Stored, rehearsal.Background, rehearsal.Conversations, rehearsal.InputTokens, rehearsal.Compact, rehearsal.WebSocket, rehearsal.Chat,
			} {
				if f != only {
					up.Without = append(up.Without, f)
				}
			}
			base, stop, err := up.Start()
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(stop)
			w := serving(t, open(t, base, only == rehearsal.Chat))
			compliance.Run(t, w.base, rehearsal.Model)
		})
	}
}
