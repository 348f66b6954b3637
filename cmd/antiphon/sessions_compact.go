// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/host"
	"github.com/antiphon-go/antiphon/session"
)

// compactCommand is antiphon sessions compact.
type compactCommand struct {
	Session string `arg:"" help:"The session."`
	By      string `enum:"summary,endpoint,dropping" default:"summary" help:"How: by a summary that the model writes, by the endpoint's own compaction, or by dropping (summary, endpoint, dropping)."`
	Keep    int64  `placeholder:"TOKENS" help:"The number of the newest tokens that stay unchanged."`
	Restore bool   `help:"Undo compactions: send the replaced items again."`
	At      int64  `placeholder:"N" help:"With --restore: undo the compaction of entry N and later ones. Default: all."`
	File    string `placeholder:"AGENT" help:"The agent's file. Default: the one that the session belongs to."`

	endpointFlags
}

// Help is shown by antiphon sessions compact --help.
func (compactCommand) Help() string {
	return `Nothing is deleted: the log keeps all, and --restore sends it again.

Examples:
  antiphon sessions compact work
  antiphon sessions compact work --by dropping --keep 4000
  antiphon sessions compact work --restore`
}

// Run compacts, or undoes compactions.
func (c *compactCommand) Run(ctx context.Context, std stdio, env environment, all *sessionsCommand) error {
	if c.Keep < 0 || c.At < 0 {
		return usage(errors.New("--keep and --at cannot be negative"))
	}
	if c.At > 0 && !c.Restore {
		return usage(errors.New("--at needs --restore"))
	}
	return all.withWhole(ctx, env, c.Session, func(store keeper, info session.Info) (err error) {
		s, err := session.Open(ctx, store, info.ID)
		if err != nil {
			return err
		}
		unlock, err := s.Lock(ctx)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, unlock()) }()
		if c.Restore {
			return c.restore(ctx, std, all, s)
		}
		return c.compact(ctx, std, env, all, s, info)
	})
}

// restored is what sessions compact --restore --json prints.
type restored struct {
	Session string `json:"session"`
	// InForce is the compaction that is now in force, or 0.
	InForce int64 `json:"in_force"`
}

func (c *compactCommand) restore(ctx context.Context, std stdio, all *sessionsCommand, s *session.Session) error {
	left, err := agent.Restore(ctx, s, c.At)
	if err != nil {
		return usage(err)
	}
	word := "the whole conversation is sent again"
	if left > 0 {
		word = fmt.Sprintf("the compaction of entry %d is in force again", left)
	}
	return all.told(std, restored{s.ID(), left}, "%s: %s", s.ID(), word)
}

// compacted is what sessions compact --json prints.
type compacted struct {
	Session string `json:"session"`
	Seq     int64  `json:"seq"`
	By      string `json:"by"`
	// Items is how many items were replaced, Before and After are estimates of what
	// a request takes, in tokens.
	Items  int        `json:"items"`
	Before int64      `json:"before"`
	After  int64      `json:"after"`
	Usage  *api.Usage `json:"usage,omitempty"`
	Cost   float64    `json:"cost,omitempty"`
}

func (c *compactCommand) compact(ctx context.Context, std stdio, env environment, all *sessionsCommand, s *session.Session, info session.Info) error {
	path := info.Path
	if c.File != "" {
		path = c.File
	}
	if path == "" {
		return usage(errors.New("the session belongs to no agent's file; give --file AGENT"))
	}
	table, err := c.table(ctx, env)
	if err != nil {
		return err
	}
	options, err := fileOptions()
	if err != nil {
		return err
	}
	cfg := host.Config{
		FrontEnd: front(std, env, false), File: path, Workspace: options.Workspace, Home: options.Home,
		Endpoint: c.endpoint(table), Compaction: host.Compaction{By: c.By},
	}
	t, err := newTruster(path, &trustFlags{}, std, env, nil)
	if err != nil {
		return err
	}
	cfg.Trust, cfg.Audit = t.ask, t.record
	done, err := host.Compact(ctx, s, cfg, c.Keep)
	if err != nil && c.File == "" && gone(path) {
		return usage(fmt.Errorf("%w; give --file AGENT if it is elsewhere now", err))
	}
	if err != nil {
		return err
	}
	if c.By == session.ByEndpoint && done.By == session.BySummary {
		fmt.Fprintln(std.err, "!! "+agent.SummaryInstead)
	}
	return all.told(std, compacted{s.ID(), done.Entry, done.By, len(done.Replaced), done.Before, done.After, done.Usage, done.Cost}, "%s: about %d tokens became %d, by %s, in entry %d; --restore undoes it", s.ID(), done.Before, done.After, done.By, done.Entry)
}
