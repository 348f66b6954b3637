// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	jsonv1 "github.com/go-json-experiment/json/v1"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/internal/excerpt"
	"github.com/antiphon-go/antiphon/internal/show"
	"github.com/antiphon-go/antiphon/session"
)

// sessionsCommand is antiphon sessions.
type sessionsCommand struct {
	storeFlag
	JSON bool `name:"json" help:"Print the outcome as JSON."`
	hide func(text string) string

	List    listCommand    `cmd:"" help:"List the sessions, the most recently written first."`
	Search  searchCommand  `cmd:"" help:"Find sessions by their text."`
	Show    showCommand    `cmd:"" help:"Print a session, entry by entry."`
	Info    infoCommand    `cmd:"" help:"Print information about a session and its usage."`
	Say     sayCommand     `cmd:"" help:"Say something to a session, whether it runs or not."`
	Approve approveCommand `cmd:"" help:"Answer calls that wait for an approval."`
	Stop    stopCommand    `cmd:"" help:"Ask the run of a session to stop."`
	Detach  detachCommand  `cmd:"" help:"End the run of a session at a terminal, and leave it to workers."`
	Take    takeCommand    `cmd:"" help:"Go on at this terminal with a session that a worker runs, or another terminal."`
	Rename  renameCommand  `cmd:"" help:"Give a session another name, title, owner or agent's file."`
	Tag     tagCommand     `cmd:"" help:"Add tags to a session, or remove them."`
	Fork    forkCommand    `cmd:"" help:"Create a session with the entries of another."`
	Compact compactCommand `cmd:"" help:"Shorten what is sent of a session, or undo that."`
	Export  exportCommand  `cmd:"" help:"Write a session as one HTML page, as JSON lines or as a transcript."`
	Import  importCommand  `cmd:"" help:"Create a session from JSON lines or a transcript."`
	Reset   resetCommand   `cmd:"" help:"Archive a session, so that its name begins anew with the next run."`
	Archive archiveCommand `cmd:"" help:"Archive a session, or undo that."`
	Rm      removeCommand  `cmd:"" help:"Delete sessions, including those of subagents."`
	Gc      sweepCommand   `cmd:"" help:"Remove data that no session needs any more."`
	Backup  backupCommand  `cmd:"" help:"Copy the whole store to a new file, even while it is in use."`
	Key     keyCommand     `cmd:"" help:"Make a key for encrypted stores."`
	Index   indexCommand   `cmd:"" help:"Rebuild the search index, or remove it."`
	Verify  verifyCommand  `cmd:"" help:"Check that the stored data is unchanged."`
	Salvage salvageCommand `cmd:"" help:"Copy the readable part of a damaged session into a new one."`
}

// Help is shown by antiphon sessions --help.
func (sessionsCommand) Help() string {
	return `A session is a conversation in a database: antiphon run --session NAME makes it.
A transcript is one in a text file: antiphon run --out FILE makes it, and sessions
export and import turn the one into the other.

A session is named by its name where no other has the same, or by its id.
Commands that only read also take the beginning of an id, with at least four of
the digits at its end.

Examples:
  antiphon run agent.md --session work "What is there to do?"
  antiphon sessions list --tag bug
  antiphon sessions search 'parser "off by one"'
  antiphon sessions show work --as-sent
  antiphon sessions fork work --at 42 --name another-way
  antiphon sessions export work --to html -o work.html`
}

// told prints the outcome of a command: one line for people, or a value as JSON.
func (c *sessionsCommand) told(std stdio, value any, format string, args ...any) error {
	if c.JSON {
		return c.printJSON(std, value)
	}
	_, err := fmt.Fprintln(std.out, show.Printable(c.hide(fmt.Sprintf(format, args...))))
	return err
}

// lineOptions let items through as they are, and write times as nanoseconds.
var lineOptions = json.JoinOptions(
	jsontext.AllowDuplicateNames(true),
	jsontext.AllowInvalidUTF8(true),
	jsonv1.FormatDurationAsNano(true),
)

// printJSON prints a value as indented JSON.
func (c *sessionsCommand) printJSON(std stdio, value any, options ...json.Options) error {
	out := &hidingWriter{out: bufio.NewWriterSize(toJSON(std.out), 64<<10), hide: c.hide}
	err := json.MarshalWrite(out, value, append([]json.Options{lineOptions, jsontext.WithIndent("  ")}, options...)...)
	return errors.Join(err, out.end())
}

// hidingWriter writes lines without secrets, one at a time. A line end in a secret is
// escaped in JSON; elsewhere the lines of the secret are secrets of their own.
type hidingWriter struct {
	out  *bufio.Writer
	hide func(text string) string
	line []byte
}

func (w *hidingWriter) Write(p []byte) (int, error) {
	for rest := p; len(rest) > 0; {
		part, after, ended := bytes.Cut(rest, []byte{'\n'})
		w.line = append(w.line, part...)
		if rest = after; ended {
			if err := w.flush(); err != nil {
				return 0, err
			}
		}
	}
	return len(p), nil
}

// flush writes the line and its end.
func (w *hidingWriter) flush() error {
	_, err := w.out.WriteString(w.hide(string(w.line)) + "\n")
	w.line = w.line[:0]
	return err
}

// end writes the rest.
func (w *hidingWriter) end() error {
	if len(w.line) == 0 {
		return w.out.Flush()
	}
	return errors.Join(w.flush(), w.out.Flush())
}

// with opens the store for a command that reads one session.
func (c *sessionsCommand) with(ctx context.Context, env environment, name string, do func(store keeper, info session.Info) error) error {
	return c.opened(ctx, env, false, func(store keeper) error {
		info, err := find(ctx, store, name, false)
		if err != nil {
			return err
		}
		return do(store, info)
	})
}

// withWhole is like with for commands that change the session; see [findWhole].
func (c *sessionsCommand) withWhole(ctx context.Context, env environment, name string, do func(store keeper, info session.Info) error) error {
	return c.opened(ctx, env, false, func(store keeper) error {
		info, err := findWhole(ctx, store, name, false)
		if err != nil {
			return err
		}
		return do(store, info)
	})
}

// opened opens the store and calls do.
func (c *sessionsCommand) opened(ctx context.Context, env environment, create bool, do func(store keeper) error) error {
	c.hide = env.Hider()
	store, err := c.open(ctx, env, create)
	if err != nil {
		return err
	}
	return errors.Join(do(store), store.Close())
}

// specials describes special properties of a session.
func specials(info session.Info) string {
	var words []string
	if info.Archived {
		words = append(words, "archived")
	}
	if info.Owner != "" {
		words = append(words, "of "+info.Owner)
	}
	for _, tag := range info.Tags {
		words = append(words, "#"+tag)
	}
	switch {
	case info.Nested:
		words = append(words, "nested in "+info.Parent)
	case info.Parent != "":
		words = append(words, fmt.Sprintf("a fork of %s at %d", info.Parent, info.At))
	}
	if len(words) == 0 {
		return ""
	}
	return " (" + strings.Join(words, ", ") + ")"
}

func when(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.Local().Format("2006-01-02 15:04")
}

// infoCommand is antiphon sessions info.
type infoCommand struct {
	Session string `arg:"" help:"The session."`
}

// account is what sessions info prints.
type account struct {
	session.Info
	Items  int         `json:"items"`
	Turns  int         `json:"turns"`
	Calls  int         `json:"calls"`
	Tokens show.Tokens `json:"tokens"`
	// Cost is the cost of this session's own turns, Nested the usage of subagents, and
	// All their sum.
	Cost   float64     `json:"cost,omitempty"`
	Nested agent.Usage `json:"nested,omitzero"`
	All    agent.Usage `json:"all"`
	// Agents, BySession, ByModel and Tools split the usage. Unread says which sessions of
	// subagents could not be read, and so are not told apart.
	Agents    []agent.AgentUsage   `json:"agents,omitempty"`
	BySession []agent.SessionUsage `json:"by_session,omitempty"`
	ByModel   []agent.ModelUsage   `json:"by_model,omitempty"`
	Tools     []agent.ToolUsage    `json:"tools,omitempty"`
	Unread    string               `json:"unread,omitempty"`
	Stop      string               `json:"stopped,omitempty"`
	Open      []string             `json:"open_calls,omitempty"`
	Inbox     int                  `json:"deliveries,omitempty"` // that wait
	Kinds     map[string]int       `json:"kinds"`
	// Approvals counts the verdicts that allowed a call. Rules are the remembered
	// rules of the session.
	Approvals int            `json:"approvals"`
	Rules     []session.Rule `json:"rules,omitempty"`
	// Setup is the setup of the next turn if nothing changes. Models are the models
	// that answered, as reported by the endpoints.
	Setup  *session.Setup `json:"setup,omitempty"`
	Models []string       `json:"models,omitempty"`
}

// Run prints the information.
func (c *infoCommand) Run(ctx context.Context, std stdio, env environment, all *sessionsCommand) error {
	return all.with(ctx, env, c.Session, func(store keeper, info session.Info) error {
		s, err := session.Open(ctx, store, info.ID)
		if err != nil {
			return err
		}
		a := accountOf(info, s)
		used, err := agent.AccountOf(ctx, s)
		a.Agents, a.BySession, a.ByModel, a.Tools = used.Agents, used.Sessions, used.Models, used.Tools
		if err != nil {
			a.Unread = err.Error()
		}
		for _, err := range s.Deliveries(ctx) {
			if err != nil {
				return err
			}
			a.Inbox++
		}
		if all.JSON {
			return all.printJSON(std, a)
		}
		return a.print(std, all.hide)
	})
}

func accountOf(info session.Info, s *session.Session) account {
	a := account{Info: info, Kinds: map[string]int{}}
	var view session.View
	var setup session.Setup
	for e := range s.Entries() {
		view.Apply(e)
		a.Kinds[session.Kind(e.Body)]++
		setup.Apply(e.Body)
		switch b := e.Body.(type) {
		case session.InputItem, session.CallOutput:
			a.Items++
		case session.OutputItem:
			a.Items++
			if b.Item.IsCall() {
				a.Calls++
			}
		case session.Approval:
			if b.Allowed {
				a.Approvals++
			}
			if b.Remember != nil {
				a.Rules = append(a.Rules, *b.Remember)
			}
		case session.TurnEnded:
			a.Turns++
			if b.Model != "" && !slices.Contains(a.Models, b.Model) {
				a.Models = append(a.Models, b.Model)
			}
			a.use(b.Usage, b.Cost)
		case session.Compacted:
			a.use(b.Usage, b.Cost)
		case session.SubagentUsage:
			a.Nested.Add(agent.Usage{Turns: b.Turns, Tokens: b.Tokens, Cost: b.Cost})
		case session.RunStarted:
			a.Stop = "interrupted"
		case session.Stopped:
			a.Stop = b.Why
		}
	}
	sum := agent.Totals{Turns: a.Turns, TotalTokens: a.Tokens.Total, Cost: a.Cost, Nested: a.Nested}
	a.All = sum.All()
	if !setup.IsZero() {
		a.Setup = &setup
	}
	for _, call := range view.Open() {
		a.Open = append(a.Open, fmt.Sprintf("%s %s", call.Item.Name(), call.CallID))
	}
	return a
}

// use adds the usage of a reply.
func (a *account) use(u *api.Usage, cost float64) {
	a.Cost += cost
	if u == nil {
		return
	}
	a.Tokens.Input += u.InputTokens
	a.Tokens.Cached += u.Cached()
	a.Tokens.Output += u.OutputTokens
	a.Tokens.Total += u.TotalTokens
}

func (a *account) print(std stdio, hide func(string) string) error {
	out := &hidingWriter{out: bufio.NewWriter(std.out), hide: hide}
	w := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	line := func(name, format string, args ...any) {
		fmt.Fprintf(w, "%s\t%s\n", name, show.Unbroken(fmt.Sprintf(format, args...)))
	}
	a.eachAbout(line)
	a.eachUsed(line)
	a.eachLeft(line)
	return errors.Join(w.Flush(), out.end())
}

// lineFunc prints a line of an account: what it is about, and a text.
type lineFunc func(name, format string, args ...any)

// eachAbout prints what the session is.
func (a *account) eachAbout(line lineFunc) {
	line("id", "%s%s", a.ID, specials(a.Info))
	line("name", "%s", cmp.Or(a.Name, "-"))
	line("file", "%s", cmp.Or(a.Path, "-"))
	line("title", "%s", cmp.Or(a.Title, "-"))
	if a.Owner != "" {
		line("owner", "%s", a.Owner)
	}
	if len(a.Tags) > 0 {
		line("tags", "%s", strings.Join(a.Tags, " "))
	}
	line("created", "%s", when(a.Created))
	line("updated", "%s", when(a.Updated))
	if a.Setup != nil {
		line("answers", "%s", a.Setup)
		for name, value := range a.Setup.Details() {
			kind, of, _ := strings.Cut(name, " ")
			line(kind, "%s", strings.TrimSpace(of+" "+value))
		}
	}
	if len(a.Models) > 0 {
		line("reported", "%s", strings.Join(a.Models, ", "))
	}
}

// eachUsed prints how much was said and used.
func (a *account) eachUsed(line lineFunc) {
	line("log", "%s, %s, %s, %s", show.Plural(int(a.Entries), "entry"), show.Plural(a.Items, "item"), show.Plural(a.Turns, "turn"), show.Plural(a.Calls, "call"))
	line("used", "%s", cmp.Or(strings.TrimPrefix(show.UsedText(a.All, a.Nested, a.Tokens), ", "), "nothing"))
	if len(a.Agents) > 1 {
		for _, one := range a.Agents {
			line("agent", "%s: %s", cmp.Or(one.Agent, "itself"), spentText(one.TokenUsage))
		}
	}
	if len(a.BySession) > 1 {
		for _, one := range a.BySession {
			line("session", "%s of %s: %s", one.Session, cmp.Or(one.Agent, "itself"), spentText(one.TokenUsage))
		}
	}
	if len(a.ByModel) > 1 {
		for _, one := range a.ByModel {
			line("model", "%s: %s", one.Model, spentText(one.TokenUsage))
		}
	}
	for _, one := range a.Tools {
		line("tool", "%s", toolText(one))
	}
}

// eachLeft prints how the last run ended, and what waits.
func (a *account) eachLeft(line lineFunc) {
	if a.Unread != "" {
		line("not read", "%s", a.Unread)
	}
	if a.Stop != "" {
		line("last run", "%s", strings.ReplaceAll(a.Stop, "_", " "))
	}
	if a.Approvals > 0 {
		line("allowed", "%s", show.Plural(a.Approvals, "call"))
	}
	for _, rule := range a.Rules {
		line("remembers", "%s", rule)
	}
	for _, call := range a.Open {
		line("waits", "%s", call)
	}
	if a.Inbox > 0 {
		line("inbox", "%s for the next run", show.Plural(a.Inbox, "delivery"))
	}
}

// costText describes a cost if it is known.
func costText(cost float64) string {
	if cost == 0 {
		return ""
	}
	return ", cost " + excerpt.Number(cost)
}

// spentText describes a usage.
func spentText(u agent.TokenUsage) string {
	text := fmt.Sprintf("%s, %d tokens", show.Plural(u.Turns, "turn"), u.Tokens)
	if u.InputTokens > 0 || u.OutputTokens > 0 {
		text += fmt.Sprintf(" (%d in, %d of them cached, %d out)", u.InputTokens, u.CachedTokens, u.OutputTokens)
	}
	return text + costText(u.Cost)
}

// toolText describes the use of a tool by an agent.
func toolText(t agent.ToolUsage) string {
	text := t.Tool
	if t.Agent != "" {
		text += " of " + t.Agent
	}
	text += ": " + show.Plural(t.Calls, "call")
	if t.Failed > 0 {
		text += fmt.Sprintf(", %d failed", t.Failed)
	}
	if t.Refused > 0 {
		text += fmt.Sprintf(", %d refused", t.Refused)
	}
	if t.Nested.Tokens > 0 {
		text += fmt.Sprintf(", %d tokens in %s of subagents%s", t.Nested.Tokens, show.Plural(t.Nested.Turns, "turn"), costText(t.Nested.Cost))
	}
	return text
}
