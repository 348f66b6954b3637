// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/antiphon-go/antiphon/agentfile"
	"github.com/antiphon-go/antiphon/audit"
	"github.com/antiphon-go/antiphon/host"
	"github.com/antiphon-go/antiphon/internal/person"
	"github.com/antiphon-go/antiphon/internal/show"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/trust"
)

// trustCommand is antiphon trust.
type trustCommand struct {
	Add    trustAddCommand    `cmd:"" default:"withargs" help:"Show what a file may do, and agree to it. This is the default: antiphon trust FILE."`
	List   trustListCommand   `cmd:"" help:"List the files that you agreed to."`
	Revoke trustRevokeCommand `cmd:"" help:"Take an agreement back."`
}

// Help is shown by antiphon trust --help.
func (trustCommand) Help() string {
	return `An agent's file that only reads its own folder and the workspace, asks your own
endpoint, and asks you before its tools act, runs at once. A file that does more is
asked about first: what it starts, which calls it allows itself, which variables
it sends and where, which other endpoints and folders it uses. You agree to exactly
these bytes of the file and all that it includes; when they change, you are asked again.

Examples:
  antiphon trust agent.md
  antiphon trust agent.md --diff
  antiphon trust talk.md --mine
  antiphon trust sessions.db --mine
  antiphon trust agent.md --env MCP_ID@mcp.example --env MCP_SECRET@mcp.example
  antiphon trust list
  antiphon trust revoke agent.md`
}

// trustAddCommand is antiphon trust FILE.
type trustAddCommand struct {
	File string   `arg:"" help:"The agent's file."`
	Env  []string `placeholder:"NAME@HOST" sep:"," help:"Let the file send the variable NAME to HOST. May be repeated."`
	Diff bool     `help:"Only show what has changed since you agreed; agree to nothing."`
	Yes  bool     `short:"y" help:"Agree without being asked, after showing it. Without a terminal, nothing else agrees."`
	Mine bool     `help:"Count what others added to the transcript FILE as yours, or all that the store of sessions FILE remembers, after showing it."`

	StoreKey string `name:"store-key" placeholder:"WHERE" help:"With --mine: where the key of an encrypted store is, as for antiphon run."`

	variables []trust.Variable // of Env
	// agreed are the claims to remember: more than one if a file that is read from outside
	// brings more powers. A file is agreed to already since then.
	agreed []trust.Claim
	since  time.Time
}

// Run shows the powers of a file and remembers that the person agrees to them. A file with
// mistakes is not remembered: what it may do is not known.
func (c *trustAddCommand) Run(ctx context.Context, std stdio, env environment) (err error) {
	flags := trustFlags{Env: c.Env}
	if c.variables, err = flags.variables(); err != nil {
		return err
	}
	t, err := newTruster(c.File, &flags, std, env, nil)
	if err != nil {
		return err
	}
	if show.IsTerminal(std.in) && show.IsTerminal(std.err) && !c.Yes {
		t.who = person.New(std.in, std.err)
	}
	if c.Mine && isDatabase(c.File) {
		return c.adoptStore(ctx, t, env)
	}
	options, err := fileOptions()
	if err != nil {
		return err
	}
	options.Check, options.Configured, options.Known, options.Made = true, host.Endpoint{}.Configured(env), t.knows, t.made
	if !c.Mine { // which agrees to no power
		options.Consent = func(ctx context.Context, claim trust.Claim) (trust.Agreement, error) {
			return c.agree(ctx, t, claim)
		}
	}
	file, err := agentfile.Load(ctx, c.File, options)
	if errors.Is(err, errOnlyShown) {
		return nil
	}
	if err == nil {
		defer file.Close()
		err = checkScript(file)
	}
	if err != nil {
		return host.LoadError(err)
	}
	if c.Mine {
		return c.adopt(ctx, t, file)
	}
	if lines := added(file); lines != "" {
		fmt.Fprintf(std.err, "   No run of yours wrote %s of it, so calls there are asked about, and decisions there count for nothing; antiphon trust --mine %s shows them\n", lines, quoted(c.File))
	}
	claim := file.Claim()
	for _, v := range c.variables {
		if !slices.ContainsFunc(claim.Powers, func(p trust.Power) bool { return p.Kind == trust.Reveals && p.What == v.Name }) {
			return usage(fmt.Errorf("--env: the file names no variable %s, so it is sent nowhere", show.Visible(v.Name)))
		}
	}
	return c.remember(ctx, t)
}

// remember keeps what was agreed to, after it is recorded.
func (c *trustAddCommand) remember(ctx context.Context, t *truster) error {
	for _, claim := range c.agreed {
		if err := c.record(ctx, t, claim); err != nil {
			return err
		}
		if err := t.store.Add(ctx, trust.GrantOf(claim, t.now(), c.variables...)); err != nil {
			return err
		}
	}
	said := "needs no trust: it reads only its own folder and the workspace, and its tools ask before they act"
	switch {
	case len(c.agreed) > 0:
		said = "is trusted until it changes"
	case !c.since.IsZero():
		said = "is trusted already, since " + when(c.since)
	}
	fmt.Fprintf(t.std.out, "%s %s\n", show.Visible(c.File), said)
	return nil
}

// errOnlyShown ends antiphon trust --diff, and errNotAgreed a question without a yes: a script
// that goes on after antiphon trust must not take it for one.
var (
	errOnlyShown = errors.New("the claim was only shown")
	errNotAgreed = errors.New("nothing was agreed to")
)

// agree shows a claim, and asks the person about it at a terminal.
func (c *trustAddCommand) agree(ctx context.Context, t *truster, claim trust.Claim) (trust.Agreement, error) {
	grant, known, err := t.store.Find(claim)
	if err != nil {
		return trust.Agreement{}, usage(err)
	}
	more := slices.DeleteFunc(slices.Clone(c.variables), func(v trust.Variable) bool { return slices.Contains(grant.Variables, v) })
	if known && len(more) == 0 {
		c.since = grant.At
		return grant.Agreement(), nil
	}
	s, hidden := t.show(claim)
	for _, v := range more {
		fmt.Fprintf(io.MultiWriter(t.std.err, &t.seen), "   You name %s for the variable %s\n", show.Visible(v.Host), show.Visible(v.Name))
		if others := otherHosts(claim.Powers, v); len(others) > 0 {
			fmt.Fprintf(io.MultiWriter(t.std.err, &t.seen), "   !! The file sends %s to %s, not to %s, which gets it only if a server there names it for the login\n", show.Visible(v.Name), show.Visible(strings.Join(others, ", ")), show.Visible(v.Host))
		}
	}
	if c.Diff {
		return trust.Agreement{}, errOnlyShown
	}
	switch {
	case c.Yes, !known && t.answers(&claim):
	case t.who == nil:
		return trust.Agreement{}, usage(fmt.Errorf("nobody can be asked here, so nothing was agreed to\n  hint: read what is shown above; antiphon trust %s --yes agrees to it", quoted(c.File)))
	default:
		if err := c.confirm(ctx, t, s, hidden); err != nil {
			return trust.Agreement{}, err
		}
	}
	t.saidTo = claim
	c.agreed = append(c.agreed, claim)
	return trust.Agreement{Powers: claim.Powers}, nil
}

// otherHosts returns the hosts to which a file sends a variable, or nil if the host that the person
// named is one of them, or none is known.
func otherHosts(powers trust.Powers, v trust.Variable) (hosts []string) {
	for _, p := range powers {
		if p.Kind != trust.Reveals || p.What != v.Name {
			continue
		}
		u, err := url.Parse(p.Where)
		switch {
		case err != nil || u.Host == "":
		case strings.EqualFold(u.Host, v.Host):
			return nil
		case !slices.Contains(hosts, strings.ToLower(u.Host)):
			hosts = append(hosts, strings.ToLower(u.Host))
		}
	}
	return hosts
}

// record writes the agreement to the audit log, before it is remembered.
func (c *trustAddCommand) record(ctx context.Context, t *truster, claim trust.Claim) error {
	a := trust.Agreement{Powers: claim.Powers, Decided: session.DeciderPerson, By: "the caller of the command", From: "antiphon trust", Shown: t.seen.String()}
	if t.who != nil {
		a.By = person.Name
	}
	records := []audit.Record{audit.Agreed(claim, a, nil)}
	for _, v := range c.variables {
		records = append(records, audit.Record{Kind: audit.KindReleased, File: claim.Path, Claim: claim.Hash(), What: v.Name, Where: v.Host, Decided: session.DeciderPerson, By: a.By, From: "--env"})
	}
	return t.record(ctx, records...)
}

// confirm asks for a yes.
func (c *trustAddCommand) confirm(ctx context.Context, t *truster, s show.Shown, hidden int) error {
	t.who.Unasked()
	for {
		answer, ok, err := t.reply(ctx, "agree until it changes? [y]es, [n]o:", s, &hidden)
		if err != nil {
			return err
		}
		if !ok {
			return errNotAgreed
		}
		switch answer {
		case "y", "yes":
			return nil
		case "n", "no":
			return errNotAgreed
		case "?", "h", "help":
			fmt.Fprintln(t.std.err, "   y: later runs of the file do all of this without asking, until it or a file that it includes changes\n   n: later runs ask")
		}
	}
}
