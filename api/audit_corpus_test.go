// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"testing"

	"github.com/antiphon-go/antiphon/api"
)

// S4: of recorded streams, hardly any is odd: what is noted is worth a person's
// attention.
func TestAuditorOnCorpus(t *testing.T) {
	counts, streams := map[api.NoteKind]int{}, 0
	var a api.Auditor
	eachStream(t, func(t *testing.T, name string, events []string) {
		streams++
		a.Reset()
		for _, data := range events {
			ev, err := api.ParseEvent([]byte(data))
			if err != nil {
				continue
			}
			a.Add(&ev, func(n api.Note) {
				counts[n.Kind]++
				t.Logf("%s: %s: %s", name, n.Kind, n.Text)
			})
		}
	})
	// One recording was shortened by hand.
	if delete(counts, api.NoteExtends); counts[api.NoteGap] > 1 || len(counts) > 1 {
		t.Errorf("%d streams: %v", streams, counts)
	}
}
