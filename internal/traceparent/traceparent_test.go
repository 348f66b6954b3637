// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package traceparent_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/antiphon-go/antiphon/internal/traceparent"
)

// What is not a trace, or too long, is not carried.
func TestWith(t *testing.T) {
	const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	for _, test := range []struct {
		parent, state string
		carried       int
	}{
		{"", "a=b", 0}, {"short", "", 0}, {strings.Repeat("0", 129), "", 0},
		{parent, "", 1}, {parent, "a=b", 2}, {parent, strings.Repeat("a", 5000), 1},
	} {
		h := http.Header{}
		h.Set(traceparent.Parent, test.parent)
		h.Set(traceparent.State, test.state)
		got := traceparent.Of(traceparent.With(t.Context(), h))
		if len(got) != test.carried || test.carried > 0 && got[traceparent.Parent] != parent {
			t.Errorf("%q, %.10q: %v", test.parent, test.state, got)
		}
	}
}
