// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package attach

import (
	"strings"
	"testing"

	"github.com/antiphon-go/antiphon/host"
)

// TestChatAttachAddresses proves that a key is not sent without encryption, and is not accepted in an address. K4
func TestChatAttachAddresses(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"http://agents.example.com/work":      "http is for loopback alone",
		"http://127.0.0.1.evil.example/work":  "http is for loopback alone",
		"https://agents.example.com":          "name the session behind the server",
		"https://agents.example.com/":         "name the session behind the server",
		"https://u:secret@example.com/work":   "a key is never part of it",
		"https://example.com/work?key=secret": "a key is never part of it",
		"https://example.com/base/work":       "",
		"http://localhost:1/my%20work":        "",
		"http://[::1]:1/work":                 "",
	} {
		c, name, err := remoteClient(address, host.Environment{serverKey: "k"})
		if want == "" && (err != nil || c.Key != "k" || !strings.HasSuffix(name, "work") || name == "my%20work") {
			t.Errorf("%s: %v %q %v", address, c, name, err)
		}
		if want != "" && (err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret")) {
			t.Errorf("%s: %v", address, err)
		}
	}
}
