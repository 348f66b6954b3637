// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package item

import (
	"encoding/base64"
	"testing"
)

// FuzzEncodeBase64: the fast encoder writes what the standard one does, and
// nothing behind it.
func FuzzEncodeBase64(f *testing.F) {
	all := make([]byte, 256)
	for i := range all {
		all[i] = byte(i * 7)
	}
	for n := range 40 {
		f.Add(all[:n], 0)
	}
	f.Add(all, 9)
	f.Fuzz(func(t *testing.T, data []byte, room int) {
		want := base64.StdEncoding.EncodeToString(data)
		got := make([]byte, len(want)+min(max(room, 0), 100))
		encodeBase64(got, data)
		if string(got[:len(want)]) != want {
			t.Fatalf("%q becomes %q, want %q", data, got, want)
		}
		for _, c := range got[len(want):] {
			if c != 0 {
				t.Fatalf("%q: wrote more: %q", data, got)
			}
		}
	})
}
