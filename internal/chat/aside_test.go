// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"strings"
	"testing"

	"github.com/antiphon-go/antiphon/session"
)

// beside counts what requests beside the conversation used.
func besides(s *session.Session) (requests int) {
	for e := range s.Entries() {
		if b, ok := e.Body.(session.SubagentUsage); ok && b.CallID == "" && b.Tokens > 0 {
			requests += b.Turns
		}
	}
	return requests
}

// titleOf returns the title of the conversation in its store.
func titleOf(t *testing.T, d *dialogue) string {
	t.Helper()
	info, err := d.host.Store.Info(t.Context(), d.info.ID)
	if err != nil {
		t.Fatal(err)
	}
	return info.Title
}

// TestTitle proves that a title is what the person says, or what the model answers, if it is asked by /title alone, and
// that what this used counts.
func TestTitle(t *testing.T) {
	d, _, screen := conversing(t, "again\nturn\n  say \"**Red\x1b[2J and   blue**\"\n  say More.\n")
	do := func(text, want string) {
		t.Helper()
		screen.Reset()
		if err := d.command(t.Context(), text); err != nil || !strings.Contains(screen.String(), want) {
			t.Errorf("%s: %v\n%s", text, err, screen)
		}
	}
	do("/title x", "nothing was said yet")
	if err := d.turn(t.Context(), "Which colours?"); err != nil {
		t.Fatal(err)
	}
	d.entitleOnce(t.Context())
	if got := titleOf(t, d); got != "Which colours?" || besides(d.host.Session) > 0 {
		t.Errorf("without being asked: %q, %d requests", got, besides(d.host.Session))
	}
	do("/title My  own", "the title of the conversation is: My  own")
	do("/title "+strings.Repeat("x", 81), "a title has at most 80 characters")
	if got := titleOf(t, d); got != "My  own" {
		t.Errorf("it is %q", got)
	}
	before := d.used.All().Tokens
	do("/title", "the title of the conversation is: Red<U+001B>[2J and blue, ")
	if got := titleOf(t, d); got != "Red<U+001B>[2J and blue" {
		t.Errorf("by the model it is %q", got)
	}
	if d.used.All().Tokens <= before || besides(d.host.Session) != 1 {
		t.Errorf("%d tokens before, %d after it, %d requests", before, d.used.All().Tokens, besides(d.host.Session))
	}
}

// TestAsideLimits proves that the limits of the conversation apply to a request beside it: a model without a price is not asked if
// there is a limit of cost.
func TestAsideLimits(t *testing.T) {
	d, _, screen := conversing(t, "again\nturn\n  say x\n")
	if err := d.turn(t.Context(), "Which colours?"); err != nil {
		t.Fatal(err)
	}
	a, err := d.host.Agent(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	a.Limits.MaxCost = 1
	if err := d.command(t.Context(), "/title"); err != nil || !strings.Contains(screen.String(), "no title: ") || besides(d.host.Session) > 0 {
		t.Errorf("%v %d\n%s", err, besides(d.host.Session), screen)
	}
}

// TestTitleStays proves that the setting asks the model for a title once, and not if somebody has given one, here or elsewhere, and that
// the model's title does not take the place of one that was given while it was asked.
func TestTitleStays(t *testing.T) {
	for _, by := range []string{"nobody", "here", "the model", "elsewhere", "elsewhere, meanwhile"} {
		t.Run(by, func(t *testing.T) {
			d, face, _ := conversing(t, "again\nturn\n  say Yes.\n")
			d.env["ANTIPHON_TITLES"] = byModel
			label := func() {
				title := "Mine"
				if err := d.host.Store.Label(t.Context(), d.info.ID, session.Labels{Title: &title}); err != nil {
					t.Error(err)
				}
			}
			want, requests := "Mine", 0
			if err := d.turn(t.Context(), "Which colours?"); err != nil {
				t.Fatal(err)
			}
			switch by {
			case "nobody":
				want, requests = "Yes.", 1
			case "here":
				if err := d.command(t.Context(), "/title Mine"); err != nil {
					t.Fatal(err)
				}
			case "the model":
				if err := d.command(t.Context(), "/title"); err != nil {
					t.Fatal(err)
				}
				want, requests = "Yes.", 1
			case "elsewhere":
				label()
			default:
				face.begun = func(func(), func(string) error) { label() }
				requests = 1
			}
			for range 2 {
				d.entitleOnce(t.Context())
			}
			if got := titleOf(t, d); got != want || besides(d.host.Session) != requests {
				t.Errorf("it is %q after %d requests, want %q after %d", got, besides(d.host.Session), want, requests)
			}
		})
	}
}

// suggestedFace gets what is suggested.
type suggestedFace struct {
	*scriptedFace
	texts chan string
}

func (f suggestedFace) suggest(text string) { f.texts <- text }

// TestForesee proves that what the person may say next is asked for by the setting alone, after an answer, once, and that it counts.
func TestForesee(t *testing.T) {
	d, scripted, _ := conversing(t, "again\nturn\n  say And why?\n")
	face := suggestedFace{scripted, make(chan string, 2)}
	d.face, d.conf.Plain = face, false
	d.env["ANTIPHON_SUGGEST"] = byModel
	d.foresee(t.Context())
	if d.foresight != nil {
		t.Error("asked before an answer")
	}
	if err := d.turn(t.Context(), "Which colours?"); err != nil {
		t.Fatal(err)
	}
	delete(d.env, "ANTIPHON_SUGGEST")
	if d.foresee(t.Context()); d.foresight != nil {
		t.Error("asked without the setting")
	}
	d.env["ANTIPHON_SUGGEST"] = byModel
	d.foresee(t.Context())
	if got := <-face.texts; got != "And why?" {
		t.Errorf("suggested: %q", got)
	}
	d.foreseen(t.Context())
	if got := <-face.texts; got != "" || besides(d.host.Session) != 1 {
		t.Errorf("then: %q, %d requests", got, besides(d.host.Session))
	}
	if d.foresee(t.Context()); d.foresight != nil {
		t.Error("asked twice")
	}
}

// TestSayable proves that no suggestion does more than say something.
func TestSayable(t *testing.T) {
	for answer, want := range map[string]string{
		"\n \"Run the tests\"\nor not": "Run the tests", "": "", "/quit": "", " ! rm -rf x": "", "`!ls`": "", "send @notes.txt": "", "ask ann@example.com": "ask ann@example.com",
		"\u202eabc": "<U+202E>abc",
	} {
		if got := sayable(answer); got != want {
			t.Errorf("%q: %q, want %q", answer, got, want)
		}
	}
	if got := sayable(strings.Repeat("x", 1000)); len([]rune(got)) > mostSuggested {
		t.Errorf("%d characters", len([]rune(got)))
	}
}

// TestSaidSoFar proves that a request beside the conversation sends no more than the next request: nothing that was taken out, no
// call, and no more than its limit. G2
func TestSaidSoFar(t *testing.T) {
	d, _, _ := conversing(t, "again\nturn\n  call read_file {\"path\": \"agent.script\"}\n\nturn\n  say Yes.\n")
	for _, text := range []string{"first", "a secret", "last"} {
		if err := d.turn(t.Context(), text); err != nil {
			t.Fatal(err)
		}
	}
	if err := d.context(t.Context(), "drop a secret"); err != nil {
		t.Fatal(err)
	}
	got := saidSoFar(d.host.Session.Entries(), false)
	if !strings.Contains(got, "Person:\n    first\n") || !strings.Contains(got, "Model:\n    Yes.\n") || strings.Contains(got, "secret") || strings.Contains(got, "read_file") {
		t.Errorf("%s", got)
	}
	if err := d.turn(t.Context(), strings.Repeat("ä", mostAside)); err != nil {
		t.Fatal(err)
	}
	begin, end := saidSoFar(d.host.Session.Entries(), false), saidSoFar(d.host.Session.Entries(), true)
	if len(begin) > mostAside || len(end) > mostAside || !strings.HasPrefix(begin, "Person:\n    first") || !strings.HasSuffix(end, "Yes.\n") {
		t.Errorf("%d bytes, %d bytes", len(begin), len(end))
	}
}
