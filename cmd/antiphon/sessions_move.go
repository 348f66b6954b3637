// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/antiphon-go/antiphon/host"
	"github.com/antiphon-go/antiphon/internal/attach"
	"github.com/antiphon-go/antiphon/internal/person"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/session/queue"
	"github.com/antiphon-go/antiphon/worker"
)

// moveFlags are common to the commands that move a session.
type moveFlags struct {
	Now bool `help:"End the calls that run, instead of waiting for them. Their outcome is not known then."`
}

// movable returns an error for a session that cannot go on with its agent's file.
func movable(info session.Info) error {
	if info.Path == "" {
		return usage(&host.UnboundError{Session: info.ID})
	}
	if _, err := os.Stat(info.Path); err != nil {
		return usage(fmt.Errorf("the agent's file is not on this machine: %w", err))
	}
	return notAgent(info.Path)
}

// detachCommand is antiphon sessions detach.
type detachCommand struct {
	Session  string   `arg:"" help:"The session."`
	Tenant   string   `placeholder:"TENANT" help:"Whose work it is, for shares and limits."`
	Priority int      `placeholder:"N" help:"Work with a higher number is done sooner, within a tenant."`
	Needs    []string `placeholder:"LABEL" sep:"," help:"Labels that a worker must have."`
	placeFlag
	moveFlags
}

// Run leaves the session as work, and ends its run at this machine's terminal or another.
func (c *detachCommand) Run(ctx context.Context, std stdio, env environment, all *sessionsCommand) error {
	cfg, err := workConfig(std, env)
	if err != nil {
		return err
	}
	place, err := c.place()
	if err != nil {
		return usage(err)
	}
	return all.withWhole(ctx, env, c.Session, func(in keeper, info session.Info) error {
		q, err := queueOf(in)
		if err != nil {
			return err
		}
		if err := movable(info); err != nil {
			return err
		}
		type detached struct {
			Session string `json:"session"`
			Worker  string `json:"worker,omitempty"`
		}
		if w, err := q.Work(ctx, info.ID); err == nil && w.State == queue.Running {
			return all.told(std, detached{info.ID, w.Worker}, "%s: the worker %s runs it already", info.ID, w.Worker)
		} else if err != nil && !errors.Is(err, session.ErrNotFound) {
			return err
		}
		cfg.File, cfg.Session, cfg.Owner, cfg.Store = info.Path, info.ID, info.Owner, in
		// Workers find it busy until its run has ended or died, and go on then. The agent is
		// the file as it is now, as for the run at the terminal.
		if _, err := worker.Submit(ctx, worker.Job{Config: cfg, Tenant: c.Tenant, Priority: c.Priority, Needs: c.Needs, Place: place, Upgrade: true}); err != nil {
			return err
		}
		m := attach.Mover{Now: c.Now, Err: std.err, Hide: all.hide, Store: in, Info: info, From: "sessions detach", Why: "handed over to workers by " + person.AccountName()}
		if err := m.Free(ctx, true); err != nil {
			return err
		}
		return all.told(std, detached{Session: info.ID}, "%s: workers go on with it; antiphon work status %s says how it goes", info.ID, quoted(cmp.Or(info.Name, info.ID)))
	})
}

// takeCommand is antiphon sessions take.
type takeCommand struct {
	Session string `arg:"" help:"The session."`
	moveFlags
	endpointFlags `group:"who"`
	trustFlags    `group:"may"`
}

// Run ends the session's run elsewhere, and goes on with it at this terminal.
func (c *takeCommand) Run(ctx context.Context, std stdio, env environment, all *sessionsCommand) error {
	return all.withWhole(ctx, env, c.Session, func(in keeper, info session.Info) error {
		if err := movable(info); err != nil {
			return err
		}
		taken := "taken to a terminal by " + person.AccountName()
		m := attach.Mover{Now: c.Now, Err: std.err, Hide: all.hide, Store: in, Info: info, From: "sessions take", Why: taken}
		for {
			if err := m.Free(ctx, false); err != nil {
				return err
			}
			run := runCommand{
				File: info.Path,
				runFlags: runFlags{
					Session: info.ID, Owner: info.Owner, JSON: all.JSON, CompactBy: "summary", NoAttach: true,
					storeFlag: all.storeFlag, endpointFlags: c.endpointFlags, trustFlags: c.trustFlags,
				},
				locked: func(ctx context.Context, _ session.Info) error { return attach.SetAside(ctx, in, info.ID, taken) },
			}
			err := run.Run(ctx, std, env)
			switch {
			case errors.Is(err, session.ErrBusy): // a worker was faster: it is asked, too
				continue
			case err == nil:
				return attach.AnsweredHere(ctx, in, info.ID, taken)
			}
			if errors.Is(err, errMovedOn) {
				return err
			}
			fmt.Fprintf(std.err, "antiphon: the session stays with you; antiphon sessions detach %s leaves it to workers\n", quoted(cmp.Or(info.Name, info.ID)))
			return err
		}
	})
}

var errMovedOn = errors.New("the run has ended here, and the session goes on elsewhere")

// movedAway is how a run ends whose session goes on elsewhere.
func movedAway(why string) error {
	return &exitError{exitLimit, fmt.Errorf("%w: %s", errMovedOn, why)}
}
