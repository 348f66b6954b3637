// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package rehearsal_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/rehearsal"
	"github.com/antiphon-go/antiphon/responses"
	"github.com/antiphon-go/antiphon/session"
)

const longTalk = "window 1500\nturn\n  say {{user}}\nagain\nturn\n  say and {{user}}\n"

// E5 C6: a history that is longer than the script's window is refused as an
// endpoint refuses it; the endpoint's own compaction makes it fit, with all that
// the script needs to go on.
func TestWindow(t *testing.T) {
	script, err := rehearsal.Parse("s", []byte(longTalk))
	if err != nil {
		t.Fatal(err)
	}
	server := &rehearsal.Server{Script: script}
	base, stop, err := server.Start()
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	client := &responses.Client{BaseURL: base}
	for _, c := range []struct {
		compaction agent.Compaction
		fits       bool
	}{
		{agent.Compaction{}, false},
		{agent.Compaction{Auto: true, Keep: 10, By: session.ByEndpoint}, true},
		{agent.Compaction{Auto: true, Keep: 10, By: session.ByDropping}, true},
	} {
		a := &agent.Agent{Model: client, Compaction: c.compaction}
		a.Request.Model = rehearsal.Model
		s := session.New()
		var failure error
		for range 4 {
			res, err := a.Run(t.Context(), s, item.User(strings.Repeat("word ", 300)))
			if failure = err; err != nil {
				var e *endpoint.Error
				if !errors.As(err, &e) || e.Class != endpoint.ContextOverflow || res.Why != agent.StopContextFull {
					t.Fatalf("%+v: %v", res, err)
				}
				break
			}
			if !strings.Contains(res.Text, "word word") {
				t.Errorf("it said %q", res.Text)
			}
		}
		if (failure == nil) != c.fits {
			t.Errorf("%+v: %v", c.compaction, failure)
		}
	}
}
