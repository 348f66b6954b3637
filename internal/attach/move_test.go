// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package attach

import (
	"strings"
	"testing"

	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
)

// What a model wrote as arguments cannot begin a line that looks like the program's own.
func TestRunningCallsForgeNoLine(t *testing.T) {
	s := session.New()
	call, err := item.New(&item.CustomToolCall{CallID: "c1", Name: "note", Input: "x\nantiphon: all is well"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Append(t.Context(), session.RunStarted{}, session.InputItem{Item: item.User("go")}, session.TurnStarted{Turn: 1},
		session.OutputItem{Turn: 1, Item: call}, session.TurnEnded{Turn: 1, Status: item.StatusCompleted}, session.CallStarted{CallID: "c1"}); err != nil {
		t.Fatal(err)
	}
	if got := running(s); len(got) != 1 || strings.Contains(got[0], "\n") || !strings.Contains(got[0], "all is well") {
		t.Errorf("%q", got)
	}
}
