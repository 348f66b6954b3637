// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agentfile_test

import (
	"strings"
	"testing"

	"github.com/antiphon-go/antiphon/agentfile"
)

// A type that nobody knows may be a new one, so it is sent; if it looks like a mistyped
// one, a warning says so. M4 W7
func TestHostedTypeAlmostKnown(t *testing.T) {
	for typ, hint := range map[string]string{
		"web_serach":            "did you mean web_search?",
		"code_interpeter":       "did you mean code_interpreter?",
		"web_search_2031_01_01": "",
		"mind_reading":          "",
	} {
		f, err := agentfile.Load(t.Context(), write(t, `<tool type="`+typ+`"/><user>hi</user>`, t.TempDir(), "a.md"), agentfile.Options{})
		if err != nil || len(f.Hosted) != 1 {
			t.Fatalf("%s: %v, %v", typ, err, f)
		}
		var text strings.Builder
		for _, w := range f.Warnings {
			text.WriteString(w.Error())
		}
		if hint == "" && text.Len() > 0 || !strings.Contains(text.String(), hint) {
			t.Errorf("%s: %s", typ, &text)
		}
	}
}
