// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/agentfile"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/session/store"
	"github.com/antiphon-go/antiphon/tool"
	"github.com/antiphon-go/antiphon/toolkit"
)

// Config says which agent's file runs, and with what. Only File must be set. The
// zero value of every other field is safe: no variable of the process is read, no
// key is used, the conversation is kept in memory, and a call that needs an
// approval is refused.
type Config struct {
	Front

	// File is the path of the agent's file.
	File string

	// Session is the name or the id of a session of the file. The conversation is
	// kept in it, and goes on if it is there. It needs Store or Place.
	Session string
	// Last takes the session of the file that was written to last, and needs one.
	Last bool
	// Owner is whose session it is: a new one gets this owner, and no other owner's
	// is taken. A server with users sets it for each of them: without it every
	// session of the store can be named by its id.
	Owner string
	// Tags are added to the session.
	Tags []string
	// Store is an open store for sessions. It is not closed. Any number of hosts may
	// share it. Without it a store is opened at Place with StoreOptions, and closed
	// with the host.
	Store        store.Store
	Place        string
	StoreOptions store.Options
	// Permit may refuse a session before it is made, locked or changed: it gets what
	// was found, which has no ID if the session is to be made.
	Permit func(found session.Info) error

	// Transcript is a file that the conversation is appended to, and goes on from;
	// it may be File itself. It is not for a host with a session.
	Transcript string
	// KeepAgent goes on with a Transcript that another agent's file began.
	KeepAgent bool

	// Endpoint says who answers.
	Endpoint Endpoint

	// Rules say which calls may run, besides what the file says; Deny wins over Ask,
	// and Ask over Allow. A rule to deny or to ask that fits no tool is an error, for
	// a slip would let calls run. Rule.From names the setting in messages.
	Rules []session.Rule
	// Answers are used, once each, before the Approver is asked.
	Answers *Answers
	// Approver decides calls that ask. Nil is nobody: they are refused, or wait if
	// Pause is set.
	Approver agent.Approver
	// Pause lets calls that ask wait: the run stops, and another host with their
	// Answers goes on. The Approver is not used then.
	Pause bool
	// Hint is added to the reason of a refusal for want of an approver, as
	// [agent.Policy].Hint.
	Hint func(tool string) string
	// Asker answers the questions of the tool ask_user. Nil is nobody.
	Asker toolkit.Asker

	// Limits bound the run, with the agents that it asks before it begins. What is
	// zero is what the file says, but for MaxCost and MaxRepeats: zero is no limit.
	// MaxTime counts from [Open].
	Limits agent.Limits
	// Price is what the model's tokens cost. Nil is not known.
	Price *agent.Price
	// Parallel bounds how many calls run at once. Zero is what the file says.
	Parallel int

	// CollapseReads sends a marker instead of what a tool read if it read the same
	// again later.
	CollapseReads bool
	// Compaction changes the file's.
	Compaction Compaction
	// MaxOutput and MaxTurnOutput shorten the outputs of tools, each or all of a turn
	// together. Nil is the default, tool.Limit{} no bound.
	MaxOutput, MaxTurnOutput tool.Limiter
	// Outputs is a folder for what was left out of outputs. Default: in the store,
	// beside the transcript, or in memory.
	Outputs string

	// Workspace and Home are what files call ${workspace} and ${home}. An empty
	// Workspace is the file's own folder.
	Workspace, Home string
	// Cache is a folder for the answers of agents in the file's messages; see
	// [agentfile.Options].Answers. Empty keeps none.
	Cache string
	// Live is called with what commands put out while they run. It may be nil, and it
	// must hide secrets itself: see [Environment.Hide].
	Live func(call tool.Call, stderr bool, text []byte)
}

// Compaction says when the older part of a conversation is made shorter. The zero
// value leaves it to the file.
type Compaction struct {
	// By is how: session.BySummary, session.ByEndpoint or session.ByDropping.
	By string
	// Off never compacts, Auto near the end of the model's context, and At from so
	// many tokens on.
	Off, Auto bool
	At        int64
}

func (c Compaction) of(own agent.Compaction) agent.Compaction {
	if c.Off {
		return agent.Compaction{}
	}
	if c.By != "" {
		own.By = c.By
	}
	own.Auto = own.Auto || c.Auto
	if c.At > 0 {
		own.At = c.At
	}
	return own
}

// options are what the file may name.
func (c *Config) options() agentfile.Options {
	o := agentfile.Options{
		Workspace: c.Workspace, Home: c.Home, Profiles: c.Endpoint.Table, Asker: c.Asker, Live: c.Live,
		KeepAgent: c.KeepAgent, Answers: c.Cache,
	}
	for _, r := range c.Rules {
		if r.Verdict == session.Allow && r.Member == "" {
			o.Allow = append(o.Allow, r.Tool)
		}
	}
	return o
}

// keeps reports whether the conversation is kept in a session of a store.
func (c *Config) keeps() bool { return c.Session != "" || c.Last }

// check looks at all that can be wrong before anything is made, started or asked.
func (c *Config) check(ctx context.Context) error {
	switch info, err := os.Stat(c.File); {
	case c.File == "":
		return invalid("no agent's file is named")
	case err == nil && info.Mode()&os.ModeNamedPipe != 0:
		return invalid("%s is a pipe, and the agent's file is read more than once\n  hint: write it to a file first", c.File)
	case c.keeps() && c.Transcript != "":
		return invalid("a conversation is kept in a session or in a transcript, not in both")
	case c.keeps() && c.Store == nil && c.Place == "":
		return invalid("no store is named that keeps the session")
	}
	if c.Endpoint.Profile != "" { // a slip is one on the rehearsal too
		if _, err := c.Endpoint.Table.ByName(c.Endpoint.Profile); err != nil {
			return invalid("%s: %w", c.Terms.name("Endpoint.Profile"), err)
		}
	}
	path := c.File
	if _, err := os.Stat(c.Transcript); err == nil && c.Transcript != "" {
		path = c.Transcript
	}
	return c.Endpoint.reachable(ctx, path, c.options(), &c.Front)
}

// settings are what besides a file and the model's name says who answers, and what
// an answer may rest on.
func (c *Config) settings() string {
	e := &c.Endpoint
	said := []string{e.Model, e.BaseURL, e.Profile, e.API, c.Environment["OPENAI_BASE_URL"], string(e.script()), fmt.Sprint(c.MaxOutput), fmt.Sprint(c.MaxTurnOutput)}
	for _, r := range c.Rules { // what a call was denied is missing from the answer
		said = append(said, fmt.Sprintf("%s\x01%s\x01%s\x01%q\x01%s", r.Verdict, r.Tool, r.Member, r.Prefix, r.Under))
	}
	return strings.Join(said, "\x00")
}

// unmatched looks for rules that fit no tool of the file. A name that is to be
// denied or asked about is refused then: a slip would let a call run. Patterns are
// warned of, and so are names as long as not all tools are known: those of an agent
// in a message that is not asked again, or of an MCP server that did not start.
func (c *Config) unmatched(names []string, unsure bool) error {
	for _, r := range c.Rules {
		if slices.ContainsFunc(names, func(name string) bool { ok, err := path.Match(r.Tool, name); return ok && err == nil }) {
			continue
		}
		from := r.From
		if from == "" {
			from = "a rule"
		}
		err := fmt.Errorf("%s: no tool of %s is called %q", from, c.File, r.Tool)
		if i := slices.IndexFunc(names, func(name string) bool { return Nearly(name, r.Tool) }); i >= 0 {
			err = fmt.Errorf("%w; did you mean %s?", err, names[i])
		}
		if r.Verdict != session.Allow && !strings.ContainsAny(r.Tool, `*?[\`) && !unsure {
			return &ConfigError{err}
		}
		c.notify(NoticeRule, "%s", err)
	}
	return nil
}

// bounded is a context for what happens before the run itself, in its time.
func (h *Host) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	if h.cfg.Limits.MaxTime == 0 {
		return context.WithCancel(ctx)
	}
	return context.WithDeadline(ctx, h.until)
}

// LimitError says that a limit was reached before the run began.
type LimitError struct {
	Limit agent.StopReason
	Err   error
}

// Error is that of Err.
func (e *LimitError) Error() string { return e.Err.Error() }

// Unwrap returns Err.
func (e *LimitError) Unwrap() error { return e.Err }

// late is the error of what was not ready when the run's time was up.
func (h *Host) late(err error) error {
	if err == nil || h.cfg.Limits.MaxTime == 0 || time.Now().Before(h.until) {
		return err
	}
	return &LimitError{agent.MaxTime, fmt.Errorf("stopped at the limit %s: %s have passed: %w", agent.MaxTime, h.cfg.Limits.MaxTime, err)}
}
