// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/antiphon-go/antiphon/audit"
	"github.com/antiphon-go/antiphon/internal/person"
	"github.com/antiphon-go/antiphon/internal/show"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/trust"
)

// trustFlags are the flags of commands that run an agent's file.
type trustFlags struct {
	Trust bool     `help:"Agree, for this time, to all that the file may do; antiphon trust remembers it."`
	Env   []string `placeholder:"NAME@HOST" sep:"," help:"Send the variable NAME, which the file names, to HOST. May be repeated."`
}

// variables parses --env.
func (f *trustFlags) variables() (list []trust.Variable, err error) {
	for _, text := range f.Env {
		v, err := trust.ParseVariable(text)
		if err != nil {
			return nil, usage(fmt.Errorf("--env: %w", err))
		}
		list = append(list, v)
	}
	return list, nil
}

// trustStore returns the store of grants. It is in the user's data folder, and never
// beside a file, which may come from somebody else.
func trustStore(env environment) (*trust.Store, error) {
	sessions, err := dataFile(env)
	if err != nil {
		return nil, usage(errors.New("the home folder, which holds what you agreed to, is not known; set HOME"))
	}
	return trust.Open(filepath.Join(filepath.Dir(sessions), "trust.jsonl")), nil
}

// truster decides whether a file may do what it claims: by what is remembered, by
// --trust, or by asking the person at the terminal.
type truster struct {
	file  string // as typed
	all   bool   // --trust
	quiet bool   // --quiet
	// sandbox is the profile of --sandbox for all programs, or "".
	sandbox  string
	settings string // the folder of the person's settings and agents, or ""
	std      stdio
	store    *trust.Store
	begun    *trust.Store // the transcripts that runs of this user began, without powers
	stores   *trust.Store // the stores of sessions that count as this user's, without powers
	left     *trust.Ledger
	made     *trust.Outputs
	audit    *audit.Log     // nil if none is written
	who      *person.Person // nil if nobody can be asked

	said     answer          // in this run
	saidTo   trust.Claim     // what the answer was about
	decided  session.Decider // who answered
	by       string          // with the name
	seen     strings.Builder // what was shown last
	remember bool            // the file is remembered, and so is a transcript that it begins
	now      func() time.Time
	unsure   sync.Once // whether the transcript is remembered
	unknown  sync.Once // which transcripts are
}

// answer is what a person said about a file.
type answer int

const (
	unsaid answer = iota
	always
	once
	askEach // without the tools that it allows itself
)

// newTruster returns a truster for a file. who may be nil.
func newTruster(file string, flags *trustFlags, std stdio, env environment, who *person.Person) (*truster, error) {
	store, err := trustStore(env)
	if err != nil {
		return nil, err
	}
	log, err := auditLog(env)
	if err != nil {
		return nil, err
	}
	begun := trust.Open(filepath.Join(filepath.Dir(store.Path()), "transcripts.jsonl"))
	return &truster{file: file, all: flags.Trust, settings: settingsFolder(env), std: std, store: store, begun: begun, stores: trust.Open(filepath.Join(filepath.Dir(store.Path()), "stores.jsonl")), left: trust.OpenLedger(filepath.Join(filepath.Dir(store.Path()), "transcripts")), made: trust.OpenOutputs(filepath.Join(filepath.Dir(store.Path()), "outputs")), audit: log, who: who, now: time.Now}, nil
}

// record writes to the audit log, if there is one.
func (t *truster) record(ctx context.Context, records ...audit.Record) error {
	if t.audit == nil {
		return nil
	}
	return t.audit.Write(ctx, records...)
}

// protected returns the folder of the agreements and sessions, that of the settings, which say
// where conversations go, and the audit log.
func (t *truster) protected() []string {
	list := []string{filepath.Dir(t.store.Path())}
	if t.settings != "" {
		list = append(list, t.settings)
	}
	if t.audit != nil {
		list = append(list, t.audit.Path())
	}
	return list
}

// recorded wraps ask so that its answers are in the audit log, for commands without a host,
// which would record them.
func (t *truster) recorded(ask func(context.Context, trust.Claim) (trust.Agreement, error)) func(context.Context, trust.Claim) (trust.Agreement, error) {
	return func(ctx context.Context, c trust.Claim) (trust.Agreement, error) {
		a, err := ask(ctx, c)
		if failed := t.record(ctx, audit.Agreed(c, a, err)); failed != nil && err == nil {
			return trust.Agreement{}, failed
		}
		return a, err
	}
}

// ask implements [agentfile.Options].Consent.
func (t *truster) ask(ctx context.Context, c trust.Claim) (trust.Agreement, error) {
	grant, known, err := t.store.Find(c)
	switch {
	case err != nil:
		return trust.Agreement{}, usage(err)
	case known:
		t.remember = true
		a := grant.Agreement()
		a.Decided, a.By, a.From = session.DeciderPerson, "an earlier answer", "remembered on "+grant.At.UTC().Format(time.DateOnly)
		return a, nil
	case t.all:
		if t.seen.Reset(); !t.quiet || t.audit == nil { // quiet runs have the audit log say it
			t.show(c)
		}
		return trust.Agreement{Powers: c.Powers, Decided: session.DeciderFlag, From: "--trust", Shown: t.seen.String()}, nil
	case t.who == nil:
		return trust.Agreement{}, t.nobody(c)
	case t.said == unsaid || !t.answers(&c):
		if err := t.question(ctx, c); err != nil {
			return t.answered(), err
		}
	}
	return t.agreed(c), nil
}

// answers reports whether the last answer is one to a claim too: it has no more powers, and none of
// the files that the answer was about has changed. Others may be new, because files outside are read
// when a person has agreed to that.
func (t *truster) answers(c *trust.Claim) bool {
	return len(c.Powers.Without(t.saidTo.Powers)) == 0 && t.unchanged(c)
}

// unchanged reports whether none of the files that the last answer was about has changed.
func (t *truster) unchanged(c *trust.Claim) bool {
	return !slices.ContainsFunc(c.Sources, func(s trust.Source) bool {
		return slices.ContainsFunc(t.saidTo.Sources, func(o trust.Source) bool {
			return o.Path == s.Path && o.Word == s.Word && o.Hash != s.Hash
		})
	})
}

// askToRead is like ask for a command that runs nothing of the file: only what it reads
// and fetches needs trust.
func (t *truster) askToRead(ctx context.Context, c trust.Claim) (trust.Agreement, error) {
	if slices.ContainsFunc(c.Powers, func(p trust.Power) bool {
		return p.Kind == trust.Reads || p.Kind == trust.Changes || p.Kind == trust.Fetches
	}) {
		return t.ask(ctx, c)
	}
	return trust.Everything(ctx, c)
}

// answered says who answered, without what they agreed to.
func (t *truster) answered() trust.Agreement {
	return trust.Agreement{Decided: t.decided, By: t.by, From: show.AtTerminal, Shown: t.seen.String()}
}

// agreed turns the person's answer into an agreement.
func (t *truster) agreed(c trust.Claim) trust.Agreement {
	a := t.answered()
	a.Powers = c.Powers
	switch t.said {
	case always:
		t.remember = true
		a.Remember = func(ctx context.Context) error { return t.store.Add(ctx, trust.GrantOf(c, t.now())) }
	case askEach:
		a.Powers = slices.DeleteFunc(slices.Clone(a.Powers), func(p trust.Power) bool { return p.Kind == trust.Allows })
	}
	return a
}

// began implements [agentfile.Options].Began: a transcript that a remembered file
// begins is remembered too, and that a run of this user began it always is.
func (t *truster) began(c trust.Claim) {
	var err error
	ctx := context.Background()
	if t.remember && len(c.Powers) > 0 {
		err = t.record(ctx, audit.Agreed(c, trust.Agreement{Powers: c.Powers, Decided: session.DeciderPerson, By: "the agreement about the file", From: "--out"}, nil))
		if err == nil {
			err = t.store.Add(ctx, trust.GrantOf(c, t.now()))
		}
	}
	_, gone := t.begun.Remove(ctx, func(g trust.Grant) bool { return g.Path == c.Path })
	c.Powers = nil
	if err = errors.Join(err, gone, t.begun.Add(ctx, trust.GrantOf(c, t.now()))); err != nil {
		fmt.Fprintf(t.std.err, "!! the transcript is not remembered as yours: %s\n", show.Printable(err.Error()))
	}
}

// knows implements [agentfile.Options].Known.
func (t *truster) knows(src trust.Source) (left trust.Left, known bool) {
	for _, store := range []*trust.Store{t.begun, t.store} {
		known, err := store.Knows(src)
		if err != nil {
			t.unknown.Do(func() {
				fmt.Fprintf(t.std.err, "!! it is not known which transcripts are yours, so none is: %s\n", show.Printable(err.Error()))
			})
			return left, false
		}
		if known {
			if left, err = t.left.Left(src.Path); err != nil {
				t.unremembered(err)
			}
			return left, true
		}
	}
	return left, false
}

// leave implements [agentfile.Options].Leave. A record that cannot be written costs a question
// later, and not the run.
func (t *truster) leave(left trust.Left) error {
	if err := t.left.Leave(left); err != nil {
		t.unremembered(err)
	}
	return nil
}

// unremembered says, once, that what runs leave in the transcript is not known.
func (t *truster) unremembered(err error) {
	t.unsure.Do(func() {
		fmt.Fprintf(t.std.err, "!! it is not remembered what runs of yours left in the transcript, so it counts as added by others: %s\n", show.Printable(err.Error()))
	})
}

// name is the name of the file that a claim is about: as typed, unless it is a
// transcript.
func (t *truster) name(c trust.Claim) string {
	if typed, err := filepath.Abs(t.file); err == nil && typed == c.Path {
		return t.file
	}
	here, err := filepath.Abs(".")
	if err != nil {
		return c.Path
	}
	name, err := filepath.Rel(here, c.Path)
	if err != nil || !filepath.IsLocal(name) {
		return c.Path
	}
	return name
}

// nobody is the error if nobody can be asked.
func (t *truster) nobody(c trust.Claim) error {
	file := quoted(t.name(c))
	return usage(fmt.Errorf("%w\n  hint: antiphon trust %s agrees to this until the file changes; --trust agrees once. Without a terminal, antiphon trust needs --yes", &trust.UntrustedError{Claim: c}, file))
}
