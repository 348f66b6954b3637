// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"
)

// An answer that does not fit goes back once, with a reason that helps.
func TestTyped(t *testing.T) {
	var out strings.Builder
	if err := run(t.Context(), script, &out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`assistant: {"vendor": "Harbour Tea", "total": "41,50", "due": "2026-12-01"}`,
		`user: Your answer does not fit: total: type: 41,50 has type "string", want "number"`,
		"{Vendor:Harbour Tea Total:41.5 Due:2026-12-01}",
	} {
		if !strings.Contains(out.String(), want+"\n") {
			t.Errorf("%q is missing in:\n%s", want, &out)
		}
	}
}

// A second answer that does not fit is an error with the reason, whether the schema or
// the type's own check refuses it.
func TestTypedTwiceWrong(t *testing.T) {
	for second, want := range map[string]string{
		`{"vendor": "Harbour Tea"}`:                              `missing member "total"`,
		`{"vendor": "Tea", "total": 1, "due": "1926-12-01"}`:     "due is in the year 1926",
		`{"vendor": "Tea", "total": 1, "due": "tomorrow"}`:       "tomorrow",
		`I am afraid that I cannot read it.`:                     "JSON",
		`{"vendor": "", "total": 1, "due": "2026-12-01"}`:        "vendor",
		`{"vendor": "T", "total": 1, "due": "2026-12-01","x":1}`: "x",
	} {
		play := "turn\n  say {}\nround\nturn\n  say " + second + "\n"
		err := run(t.Context(), play, new(strings.Builder))
		if err == nil || !strings.Contains(err.Error(), "does not fit after one repair") || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", second, err, want)
		}
	}
}
