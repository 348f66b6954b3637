// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os/user"
	"slices"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/contrib/temporal"
	"github.com/antiphon-go/antiphon/host"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
)

// accountName is who delivers, as the system knows them, or "" if it does not say.
func accountName() string {
	if u, err := user.Current(); err == nil {
		return u.Username
	}
	return ""
}

// sayCommand is antiphon-temporal say.
type sayCommand struct {
	Session string `arg:"" help:"The id of the session."`
	Text    string `arg:"" help:"What to say."`
	Agent   string `placeholder:"NAME" help:"The agent, by the name of its file without .md. Needed for a new session."`
	Key     string `placeholder:"KEY" help:"Names the delivery: a second one with the same key and text counts once. Default: a new key."`
	Later   bool   `help:"Wait until the run has its answer, instead of being part of the next request."`
}

// Run delivers input.
func (c *sayCommand) Run(ctx context.Context, all *commands, std stdio) error {
	e, end, err := all.engine(ctx, std)
	if err != nil {
		return err
	}
	defer end()
	if c.Agent != "" {
		if err := host.CheckName(c.Session); err != nil {
			return err
		}
		// The path only names the agent: a worker looks for it in its own folders.
		err := catalog(e).Create(ctx, session.Info{ID: c.Session, Name: c.Session, Path: c.Agent + ".md"})
		if err != nil && !errors.Is(err, session.ErrExists) {
			return err
		}
	}
	d := session.Delivery{Delivered: session.Delivered{Key: c.Key, By: accountName(), From: program + " say", Queued: c.Later}, Bodies: []session.Body{session.InputItem{Item: item.User(c.Text)}}}
	if d.Key == "" {
		d.Key = rand.Text()
	}
	if err := session.CheckKey(d.Key); err != nil {
		return fmt.Errorf("--key: %w", err)
	}
	r, err := e.Deliver(ctx, c.Session, c.Agent, d)
	if errors.Is(err, session.ErrNotFound) {
		err = fmt.Errorf("%w\n  hint: --agent NAME begins a session", err)
	}
	if err == nil {
		fmt.Fprintf(std.out, "%s: delivery %d\n", c.Session, r.Number)
	}
	return err
}

// approveCommand is antiphon-temporal approve.
type approveCommand struct {
	Session string   `arg:"" help:"The id of the session."`
	Calls   []string `arg:"" optional:"" help:"The ids of the calls to answer. Default: print the calls that wait."`
	Refuse  bool     `help:"Refuse them."`
	Reason  string   `placeholder:"TEXT" help:"Why they are refused, for the model."`
}

// Run answers calls, or prints those that wait.
func (c *approveCommand) Run(ctx context.Context, all *commands, std stdio) error {
	e, end, err := all.engine(ctx, std)
	if err != nil {
		return err
	}
	defer end()
	s, err := session.Open(ctx, e.Store, c.Session)
	if err != nil {
		return err
	}
	pending, err := agent.PendingApprovals(ctx, s)
	if err != nil {
		return err
	}
	for _, p := range pending {
		if len(c.Calls) == 0 {
			fmt.Fprintf(std.out, "%s\t%q\t%q\n", p.CallID, p.Tool, p.Arguments) // quoted: a model wrote them
		}
	}
	var decisions []agent.Decision
	for _, id := range c.Calls {
		i := slices.IndexFunc(pending, func(p agent.PendingApproval) bool { return p.CallID == id })
		if i < 0 {
			return fmt.Errorf("no call with the id %q waits for an approval", id)
		}
		p := pending[i]
		decisions = append(decisions, agent.Decision{Session: p.Session, Number: p.Number, CallID: p.CallID, Allow: !c.Refuse, Reason: c.Reason, By: accountName(), From: program + " approve"})
	}
	if len(decisions) == 0 {
		return nil
	}
	return e.Decide(ctx, c.Session, decisions...)
}

// stopCommand is antiphon-temporal stop.
type stopCommand struct {
	Session   string `arg:"" help:"The id of the session."`
	AfterTurn bool   `help:"Let the reply that is under way and its calls be completed."`
}

// Run asks the run to stop.
func (c *stopCommand) Run(ctx context.Context, all *commands, std stdio) error {
	e, end, err := all.engine(ctx, std)
	if err != nil {
		return err
	}
	defer end()
	_, err = e.Deliver(ctx, c.Session, "", session.Delivery{Delivered: session.Delivered{Key: rand.Text(), By: accountName(), From: program + " stop"}, Bodies: []session.Body{session.StopAsked{AfterTurn: c.AfterTurn}}})
	return err
}

// retryCommand is antiphon-temporal retry.
type retryCommand struct {
	Session string `arg:"" help:"The id of the session."`
}

// Run goes on with a parked session.
func (c *retryCommand) Run(ctx context.Context, all *commands, std stdio) error {
	e, end, err := all.engine(ctx, std)
	if err != nil {
		return err
	}
	defer end()
	return e.Retry(ctx, c.Session)
}

// stateCommand is antiphon-temporal state.
type stateCommand struct {
	Session string `arg:"" help:"The id of the session."`
}

// Run prints the state.
func (c *stateCommand) Run(ctx context.Context, all *commands, std stdio) error {
	e, end, err := all.engine(ctx, std)
	if err != nil {
		return err
	}
	defer end()
	s, err := e.State(ctx, c.Session)
	if err != nil {
		return err
	}
	b, err := json.MarshalIndent(struct {
		temporal.State
		Detail string `json:"detail,omitempty"`
	}{s, s.Detail}, "", "  ")
	if err == nil {
		fmt.Fprintln(std.out, string(b))
	}
	return err
}
