// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/antiphon-go/antiphon/host"
	"github.com/antiphon-go/antiphon/internal/private"
	"github.com/antiphon-go/antiphon/internal/show"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/session/store"
)

// This file has the status line.

// answerer is who would be asked next.
type answerer struct {
	setup  session.Setup // the model and the endpoint
	window int64         // of the model's context, as the table of models says, or 0
}

// whoAnswers returns who would be asked, as far as the configuration tells without asking anybody, or nil.
func whoAnswers(h *host.Host, cfg *host.Config) *answerer {
	rehearsed, _, err := cfg.Endpoint.Rehearses(h.File, cfg.FrontEnd)
	if err != nil {
		return nil
	}
	if rehearsed {
		return &answerer{setup: session.Setup{Rehearsal: true}}
	}
	link, err := cfg.Endpoint.Link(h.File, cfg.FrontEnd)
	if err != nil || link.Model == "" {
		return nil
	}
	known, _ := link.Table.Model(link.Model)
	return &answerer{session.Setup{Model: link.Model, Endpoint: link.Host}, int64(known.ContextWindow)}
}

// tell updates the status line.
func (t *dialogue) tell() { t.face.status(t.statusLine(t.face.width())) }

// barred is the least width of a terminal whose status line has a bar.
const barred = 100

// statusLine says what stands in the status line of a terminal of a width.
func (t *dialogue) statusLine(width int) string {
	var parts []string
	setup, window := &t.print.Setup, t.window
	if next := t.answers; next != nil {
		if next.setup.Model != setup.Model { // the window is that of another model
			window = 0
		}
		setup, window = &next.setup, cmp.Or(window, next.window)
	}
	if setup.Model != "" || setup.Rehearsal {
		parts = append(parts, show.Asking(setup))
	}
	if t.effort != "" {
		parts = append(parts, t.effort)
	}
	switch {
	case t.size > 0 && window > 0:
		bar := ""
		if width >= barred {
			bar = contextBar(t.size, window) + " "
		}
		parts = append(parts, fmt.Sprintf("context %s%d%% of %s", bar, 100*t.size/window, tokensIn(window)))
	case t.size > 0:
		parts = append(parts, "context "+tokensIn(t.size))
	case window > 0:
		parts = append(parts, "context of "+tokensIn(window))
	}
	all := t.used.All()
	if all.Tokens > 0 {
		parts = append(parts, tokensIn(all.Tokens)+" tokens")
	}
	if all.Cost > 0 {
		cost := fmt.Sprintf("cost %.4g", all.Cost)
		if sum := t.spentToday(); sum > all.Cost {
			cost += fmt.Sprintf(", today %.4g", sum)
		}
		parts = append(parts, cost)
	}
	if branch := branchOf(t.cfg.Workspace); branch != "" {
		parts = append(parts, "branch "+branch)
	}
	return strings.Join(append(parts, cmp.Or(t.info.Name, t.info.ID)), " · ")
}

// contextBar returns eight cells that show how full a context is. The first cell is full as soon as
// there is a token.
func contextBar(size, window int64) string {
	const cells = 8
	full := int(min(cells, (cells*size+window-1)/window))
	return strings.Repeat("█", full) + strings.Repeat("░", cells-full)
}

// tokensIn returns a number of tokens in few characters.
func tokensIn(n int64) string {
	switch {
	case n >= 10_000_000:
		return fmt.Sprintf("%dM", n/1_000_000)
	case n >= 10_000:
		return fmt.Sprintf("%dk", n/1000)
	case n >= 1000:
		return fmt.Sprintf("%.1fk", float64(n)/1000)
	}
	return fmt.Sprint(n)
}

// costOf returns the cost that an entry records.
func costOf(e session.Entry) float64 {
	switch b := e.Body.(type) {
	case session.TurnEnded:
		return b.Cost
	case session.Compacted:
		return b.Cost
	case session.SubagentUsage:
		return b.Cost
	}
	return 0
}

// daySpent counts what was spent on one day.
type daySpent struct {
	from   time.Time // the beginning of the day
	here   float64   // by the conversation itself
	others atomic.Pointer[float64]
}

// today returns a counter for the current day.
func today() *daySpent {
	now := time.Now()
	return &daySpent{from: time.Date(now.Year(), now.Month(), now.Day(), 0, 0, 0, 0, now.Location())}
}

// add counts an entry of a session. What a fork has from the session before was spent there.
func (s *daySpent) add(e session.Entry, of session.Info) float64 {
	if cost := costOf(e); cost > 0 && !e.Time.Before(s.from) && (of.Parent == "" || of.Nested || e.Seq > of.At) {
		return cost
	}
	return 0
}

// count sums up what the other sessions of a store spent, newest first.
func (s *daySpent) count(ctx context.Context, in store.Store, own session.Info) {
	sum := 0.0
	for info, err := range in.List(ctx, session.Query{Owner: own.Owner}) {
		if err != nil || info.Updated.Before(s.from) {
			break
		}
		if info.ID == own.ID {
			continue
		}
		for e, err := range in.Load(ctx, info.ID, 0) {
			if err != nil {
				break
			}
			sum += s.add(e, info)
		}
	}
	s.others.Store(&sum)
}

// spentToday returns what was spent today. What other sessions spent is counted beside, once, so that
// nothing waits for it.
func (t *dialogue) spentToday() float64 {
	here := t.here.Load()
	if here == nil {
		return 0
	}
	if now := today(); t.today == nil || !t.today.from.Equal(now.from) {
		t.today = now
		go now.count(context.Background(), here.store, here.info)
	}
	t.today.here = 0
	for e := range t.host.Session.Entries() {
		t.today.here += t.today.add(e, here.info)
	}
	return t.today.total()
}

// total returns what was spent on the day, as far as it is counted.
func (s *daySpent) total() float64 {
	sum := s.here
	if others := s.others.Load(); others != nil {
		sum += *others
	}
	return sum
}

// mostHead is how many bytes a file of git may have that names a branch.
const mostHead = 4 << 10

// branchOf returns the branch of git that a folder is on, or "". The files are read, because they may
// be a stranger's: git itself would run what they say.
func branchOf(folder string) string {
	folder, err := filepath.Abs(folder)
	if err != nil {
		return ""
	}
	for {
		git := filepath.Join(folder, ".git")
		head := line(filepath.Join(git, "HEAD"))
		if of, linked := strings.CutPrefix(line(git), "gitdir: "); linked { // a worktree
			if !filepath.IsAbs(of) {
				of = filepath.Join(folder, of)
			}
			if strings.HasPrefix(filepath.VolumeName(of), `\\`) {
				return "" // Windows would connect to the host that the file names
			}
			head = line(filepath.Join(of, "HEAD"))
		}
		if branch, ok := strings.CutPrefix(head, "ref: refs/heads/"); ok {
			return show.Shorten(show.Visible(branch), 40)
		}
		up := filepath.Dir(folder)
		if head != "" || up == folder {
			return ""
		}
		folder = up
	}
}

// line returns the first line of a small file, or "".
func line(path string) string {
	f, _, err := private.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, mostHead))
	if err != nil {
		return ""
	}
	first, _, _ := strings.Cut(string(text), "\n")
	return strings.TrimSpace(first)
}
