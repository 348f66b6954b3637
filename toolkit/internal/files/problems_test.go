// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package files

import "testing"

func TestUnlike(t *testing.T) {
	for _, c := range []struct {
		want, name string
		like       bool
	}{
		{"readme.md", "README.md", true}, {"readme.txt", "README.md", true}, {"main.go", "mian.go", true},
		{"config", "config.yaml", true}, {"a", "b", true}, {"main.go", "other.txt", false}, {"", "x", true}, {".env", "z.txt", false},
	} {
		if got := unlike(c.want, c.name) >= 0; got != c.like {
			t.Errorf("%q %q: %v", c.want, c.name, got)
		}
	}
}
