// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/agentfile"
	"github.com/antiphon-go/antiphon/audit"
	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/internal/nils"
	"github.com/antiphon-go/antiphon/sandbox"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/session/store"
	"github.com/antiphon-go/antiphon/tool"
	"github.com/antiphon-go/antiphon/tool/output"
	"github.com/antiphon-go/antiphon/toolkit"
	"github.com/antiphon-go/antiphon/trust"
)

// Config names the agent's file and configures its run. Only File must be set. The
// zero value of every other field is safe: no variable of the process is read, no
// key is used, the conversation is kept in memory, and a call that needs approval is
// refused.
type Config struct {
	FrontEnd

	// File is the path of the agent's file.
	File string

	// Session is the name or the id of a session of the file. The conversation is kept
	// in this session, and is continued if the session exists. It needs Store or
	// Place.
	Session string
	// Last selects the most recently written session of the file, which must exist. It
	// must have the tags in Among.
	Last  bool
	Among []string
	// Owner is the owner of the session: a new session gets this owner, and sessions
	// of other owners are refused. A server with users must set it for each of them;
	// otherwise every session of the store can be named by its id.
	Owner string
	// Tags are added to the session.
	Tags []string
	// Store is an open store for sessions. The host does not close it, and any number
	// of hosts may share it. Without it, a store is opened at Place with StoreOptions,
	// and closed with the host.
	Store        store.Store
	Place        string
	StoreOptions store.Options
	// Opened is called when [Open] has opened the store at Place, before anything of it
	// counts. What a store remembers, such as rules and answers about calls, counts as said by
	// whoever uses the program. So a program whose users name stores refuses here those
	// that somebody else may have made: see [Carried]. It may be nil.
	Opened func(ctx context.Context, in store.Store) error
	// Permit may refuse a session before it is created, locked or changed. Its
	// argument has no ID if the session does not exist yet.
	Permit func(found session.Info) error
	// Locked is called when the host has locked the session, before anything is read of
	// the file or written. An error of it ends [Open]. It may be nil.
	Locked func(ctx context.Context, locked session.Info) error

	// Opening is called when the host has locked a session that existed before, and before it
	// reads its log, for example to show the end of a long one meanwhile. found is what the
	// store said of the session before it was locked. It may be nil.
	Opening func(ctx context.Context, in store.Store, found session.Info)

	// Transcript is a file that the conversation is appended to and continued from; it
	// may be File itself. It cannot be combined with a session.
	Transcript string
	// KeepAgent continues a Transcript that another agent's file began.
	KeepAgent bool

	// Endpoint selects the model.
	Endpoint Endpoint

	// Rules decide which calls may run, in addition to the file's rules. Deny has
	// precedence over Ask, and Ask over Allow. A rule to deny or ask that matches no
	// tool is an error, because a typing error would let calls run. Rule.From names
	// the setting in messages. A rule to allow is about the tools of File and, in the agents
	// of other files, about built-in tools; one for "*" is about all tools of all agents.
	Rules []session.Rule
	// OtherTools are names of tools of other files that get the same Rules. A rule that matches one of
	// them may match no tool of File.
	OtherTools []string
	// Answers are used, each once, before the Approver is asked.
	Answers *Answers
	// Approver decides about calls that need approval. If it is nil, they are refused
	// or, with Pause, wait. If the conversation is kept in a session, others may answer
	// while it is asked: see [agent.Policy].Shared.
	Approver agent.Approver
	// ApprovalTime is how long each of the Approvers has to answer, one after the other. If none answers,
	// the call does not run, and the model reads that nobody answered. 0 means no time limit. See
	// [Unseen].
	ApprovalTime time.Duration
	// Approvers are the names of the people who are asked, in order, as messages show them. Nil means
	// one person without a name.
	Approvers []string
	// Pause makes calls that need approval wait: the run stops, and another host
	// continues it with their Answers. The Approver is not used.
	Pause bool
	// RefuseMessageAgents makes [Open] return an error for a new session of a file with agents in its messages,
	// because Open would run them. A session that has begun already holds their answers.
	RefuseMessageAgents bool
	// Park ends a run that has to wait longer than this for the result of a polling tool; see
	// [agent.Agent].Park. 0 means that it waits.
	Park time.Duration
	// Hint is added to the reason of a refusal if there is no approver, like
	// [agent.Policy].Hint.
	Hint func(tool string) string
	// Sandbox is the name of a profile of package sandbox for all programs of the run, such as
	// [sandbox.NameWorkspace]. It replaces the profiles that the file names; if it is empty,
	// those apply. Hosts are the hosts of the profile [sandbox.NameHosts]; if there are any,
	// Sandbox may be empty. If the system cannot provide the profile, [Open] returns an error.
	// If no profile is chosen and the system has no sandbox, programs run with all of the
	// user's permissions, [NoticeSandbox] says so, and every command needs an approval even if
	// a rule allows it.
	Sandbox string
	Hosts   []string
	// Trust is asked whether the file may do what it claims: see
	// [agentfile.Options].Consent. If it is nil, a file with powers does not run, and the
	// error is a [*trust.UntrustedError]. [trust.Everything] is for a program that runs only
	// files of its own author.
	Trust func(context.Context, trust.Claim) (trust.Agreement, error)
	// Audit records who agreed to what, and what is started: see [audit.Log.Write]. It
	// must be safe for concurrent use. If it returns an error, what the records are about
	// does not start: a file does not run, a call is refused. Nil records nothing.
	Audit func(ctx context.Context, records ...audit.Record) error
	// Protected are files and folders that a person is asked about before a tool writes to
	// them, even if its calls are allowed, such as the file of the Audit log. The agents'
	// files, the store and the transcript are protected without being named.
	Protected []string
	// Began is called with the claims of a new Transcript: see [agentfile.Options].Began.
	Began func(trust.Claim)
	// Known reports whether a run of this user began a transcript, and Leave is called with
	// what runs leave in it: see [agentfile.Options].
	Known func(trust.Source) (left trust.Left, known bool)
	Leave func(trust.Left) error
	// Made remembers which files the calls of declared commands made: see [agentfile.Options].Made.
	Made *trust.Outputs
	// Variables are variables of the Environment that files may name, and the hosts that
	// these may be sent to, in addition to those of the agreement.
	Variables []trust.Variable
	// Caller returns the token of the client that made the request, for an MCP server declared
	// with credentials="caller". The token is sent only to the host of url. If Caller is nil, a
	// file with such a server does not run.
	Caller func(url string) (endpoint.Key, error)
	// Asker answers the questions of the tool ask_user. Nil means that nobody can be
	// asked.
	Asker toolkit.Asker

	// Limits limit the run together with the agents that it asks before it begins. A
	// zero field means the file's value, except for MaxCost and MaxRepeats, where it
	// means no limit. MaxTime counts from [Open].
	Limits agent.Limits
	// Price is the price of the tokens of all models. Nil means that Prices is
	// asked.
	Price *agent.Price
	// Prices returns the price of a model's tokens at a base URL, and whether it is known. It may be nil,
	// and is called concurrently.
	Prices func(model, baseURL string) (agent.Price, bool)
	// Parallel is the maximum number of concurrent calls. Zero means the file's value.
	Parallel int

	// Answer says what the answer of the file's agent must be; nil means any text. It is
	// not for the agents that it has as tools, nor for agents in messages.
	Answer *agent.Answer

	// CollapseReads sends a marker instead of a tool's output if a later call read the
	// same again.
	CollapseReads bool
	// Compaction overrides the file's setting.
	Compaction Compaction
	// MaxOutput and MaxTurnOutput limit the output of each call and of a turn. Nil
	// means the default, output.Limit{} no limit.
	MaxOutput, MaxTurnOutput *output.Limit
	// Outputs is a folder for the parts of outputs that were not sent. By default they
	// are kept in the store, beside the transcript, or in memory.
	Outputs string

	// Workspace and Home are the values of ${workspace} and ${home} in files. An empty
	// Workspace means the file's own folder.
	Workspace, Home string
	// Cache is a folder for the answers of agents in the file's messages; see
	// [agentfile.Options].Answers. If it is empty, answers are not stored.
	Cache string
	// Live receives the output of commands while they run. It may be nil. It must hide
	// secrets itself: see [Environment.Hide].
	Live func(call tool.Call, stderr bool, text []byte)
}

// Compaction says when the older part of a conversation is shortened. The zero value
// uses the file's setting.
type Compaction struct {
	// By is the method: session.BySummary, session.ByEndpoint or session.ByDropping.
	By string
	// Off disables compaction, Auto compacts near the end of the model's context, and
	// At compacts from that number of tokens on.
	Off, Auto bool
	At        int64
}

// of returns the file's own setting, changed by c.
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

// options returns the options for loading the file.
func (c *Config) options() agentfile.Options {
	o := agentfile.Options{
		Workspace: c.Workspace, Home: c.Home, Profiles: c.Endpoint.Table, Asker: c.Asker, Live: c.Live,
		KeepAgent: c.KeepAgent, Sandbox: c.Sandbox, Hosts: c.Hosts, Answers: c.Cache, Protected: c.protected(), Consent: c.Trust, Began: c.Began, Known: c.Known, Leave: c.Leave, Made: c.Made, Configured: c.Endpoint.Configured(c.Environment),
	}
	for _, r := range c.Rules {
		if r.Verdict == session.Allow && r.Member == "" {
			o.Allow = append(o.Allow, r.Tool)
		}
	}
	return o
}

// protected returns the paths that decide about later runs, beside the agents' files.
func (c *Config) protected() []string {
	list := slices.Clone(c.Protected)
	place := c.Place
	if local, ok := c.Store.(store.Local); ok {
		place = local.File()
	}
	if place != "" && store.IsPath(place) {
		list = append(list, place, place+"-wal", place+"-shm", place+"-journal") // SQLite's files
	}
	if c.Transcript != "" {
		list = append(list, c.Transcript, c.Transcript+".cut", besideTranscript(c.Transcript))
	}
	return list
}

// keeps reports whether the conversation is stored in a session of a store.
func (c *Config) keeps() bool { return c.Session != "" || c.Last }

// check finds all errors that can be found before anything is created, started or
// asked.
func (c *Config) check(ctx context.Context) error {
	switch info, err := os.Stat(c.File); {
	case c.File == "":
		return invalid("name the agent's file")
	case err == nil && info.Mode()&os.ModeNamedPipe != 0:
		return invalid("%s is a pipe, and the agent's file is read more than once\n  hint: write it to a file first", c.File)
	case c.keeps() && c.Transcript != "":
		return invalid("a conversation is kept either in a session or in a transcript; give only one")
	case c.keeps() && nils.Is(c.Store) && (c.Store != nil || c.Place == ""):
		return invalid("a session needs a store; name one")
	}
	if err := c.checkSandbox(); err != nil {
		return err
	}
	if err := c.Endpoint.check(&c.FrontEnd); err != nil {
		return err
	}
	path := c.File
	if _, err := os.Stat(c.Transcript); err == nil && c.Transcript != "" {
		path = c.Transcript
	}
	options := c.options()
	options.Consent = nil // the person is asked when the file is opened
	return c.Endpoint.reachable(ctx, path, options, &c.FrontEnd)
}

// checkSandbox refuses a profile that this system cannot give.
func (c *Config) checkSandbox() error {
	if c.Sandbox == "" && len(c.Hosts) == 0 {
		return nil
	}
	setting := c.Terms.name("Sandbox")
	if len(c.Hosts) > 0 && (c.Sandbox == "" || slices.Contains(sandbox.Names(), c.Sandbox)) {
		setting = c.Terms.name("Hosts")
	}
	made, err := sandbox.Maker(c.Sandbox, c.Hosts...)
	if err != nil {
		return invalid("%s: %s", setting, strings.TrimPrefix(err.Error(), "sandbox: "))
	}
	p := made()
	if p.Unconfined {
		return nil
	}
	hint := fmt.Sprintf("leave it out, or give %s %s, to run programs with all your permissions", c.Terms.name("Sandbox"), sandbox.NameFull)
	if s := available(); !s.Confines() {
		return invalid("%s %s: programs cannot be confined here: %s\n  hint: %s", c.Terms.name("Sandbox"), p.Name, strings.Join(s.Missing, "; "), hint)
	}
	if err := p.Supported(); err != nil {
		return invalid("%s: %s\n  hint: %s", setting, strings.TrimPrefix(err.Error(), "sandbox: "), hint)
	}
	return nil
}

// available says what this system can confine.
var available = sandbox.Available

// settings returns everything besides a file and the model's name that an answer may
// depend on.
func (c *Config) settings() string {
	e := &c.Endpoint
	said := []string{e.Model, e.BaseURL, e.Profile, e.API, c.Environment["OPENAI_BASE_URL"], c.Sandbox, strings.Join(c.Hosts, ","), string(e.script()), fmt.Sprint(c.MaxOutput), fmt.Sprint(c.MaxTurnOutput)}
	for _, r := range c.Rules { // an answer lacks the results of denied calls
		said = append(said, fmt.Sprintf("%s\x01%s\x01%s\x01%q\x01%s", r.Verdict, r.Tool, r.Member, r.Prefix, r.Under))
	}
	return strings.Join(said, "\x00")
}

// maxListed is how many tools a message lists. More would hide the message itself.
const maxListed = 20

// unmatched looks for rules that match no tool of the file. For a name in a deny or
// ask rule that is an error, because a typing error would let a call run. For
// patterns it is a warning, and also for names while not all tools are known: those
// of an agent in a message that is not asked again, or of an MCP server that did not
// start. A rule that allows is about the tools in allowable.
func (c *Config) unmatched(all, allowable []string, unsure bool) error {
	for _, r := range c.Rules {
		names := all
		if r.Verdict == session.Allow && r.Tool != "*" {
			names = allowable
		}
		if slices.ContainsFunc(slices.Concat(names, c.OtherTools), func(name string) bool { ok, err := path.Match(r.Tool, name); return ok && err == nil }) {
			continue
		}
		from := r.From
		if from == "" {
			from = "a rule"
		}
		err := fmt.Errorf("%s: %s has no tool %q", from, c.File, r.Tool)
		if i := slices.IndexFunc(names, func(name string) bool { return Nearly(name, r.Tool) }); i >= 0 {
			err = fmt.Errorf("%w; did you mean %s?", err, names[i])
		} else if len(names) > 0 && len(names) <= maxListed {
			err = fmt.Errorf("%w; its tools: %s", err, strings.Join(names, ", "))
		}
		if r.Verdict != session.Allow && !strings.ContainsAny(r.Tool, `*?[\`) && !unsure {
			return &ConfigError{err}
		}
		c.notify(NoticeRule, "%s", err)
	}
	return nil
}

// bounded returns a context for the work before the run, with the run's time limit.
func (h *Host) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	if h.cfg.Limits.MaxTime == 0 {
		return context.WithCancel(ctx)
	}
	return context.WithDeadline(ctx, h.until)
}

// LimitError means that a limit was reached before the run began.
type LimitError struct {
	Limit agent.StopReason
	Err   error
}

// Error returns the message of Err.
func (e *LimitError) Error() string {
	return fmt.Sprint(cmp.Or(e.Err, fmt.Errorf("the limit %s was reached", e.Limit)))
}

// Unwrap returns Err.
func (e *LimitError) Unwrap() error { return e.Err }

// late turns the error of work that was not finished when the run's time was up into
// a LimitError.
func (h *Host) late(err error) error {
	if err == nil || h.cfg.Limits.MaxTime == 0 || time.Now().Before(h.until) {
		return err
	}
	return &LimitError{agent.StopMaxTime, fmt.Errorf("stopped at the limit %s: %s have passed: %w", agent.StopMaxTime, h.cfg.Limits.MaxTime, err)}
}
