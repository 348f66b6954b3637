// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"path/filepath"
	"strings"
	"testing"
)

// TestCommandsAreDocumented proves that docs/terminal.md names each command of the chat.
func TestCommandsAreDocumented(t *testing.T) {
	page := read(t, filepath.Join("..", "..", "docs", "terminal.md"))
	for _, c := range commands {
		if !strings.Contains(page, "`/"+c.Name+"`") && !strings.Contains(page, "`/"+c.Name+" ") {
			t.Errorf("/%s: %s", c.Name, c.Help)
		}
	}
}
