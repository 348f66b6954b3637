// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/host"
	"github.com/antiphon-go/antiphon/internal/person"
	"github.com/antiphon-go/antiphon/internal/show"
	"github.com/antiphon-go/antiphon/item"
	agentserver "github.com/antiphon-go/antiphon/server/agents"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/trust"
	"github.com/antiphon-go/antiphon/worker"
)

// workCommand is antiphon work.
type workCommand struct {
	storeFlag
	JSON bool `name:"json" help:"Print the outcome as JSON; of a worker, its log as lines of JSON."`

	Start    workStartCommand    `cmd:"" default:"withargs" help:"Do work, until the program is told to end. This is the default: antiphon work --agents DIR."`
	Submit   workSubmitCommand   `cmd:"" help:"Leave work for a worker: an agent, a session and what to say."`
	Status   workStatusCommand   `cmd:"" help:"Say why work does not move: who or what it waits for, since when, and when it is tried next."`
	List     workListCommand     `cmd:"" help:"List the work, also what is done."`
	Park     workParkCommand     `cmd:"" help:"Stop work at once, until it is retried."`
	Retry    workRetryCommand    `cmd:"" help:"Make parked work ready again."`
	Patch    workPatchCommand    `cmd:"" help:"Print what a session has changed in the repository that is its place, for git apply."`
	Drain    workDrainCommand    `cmd:"" help:"Park all that is ready, and wait until nothing runs."`
	Schedule workScheduleCommand `cmd:"" help:"Leave work at certain times: add, list and remove schedules."`
	Limits   workLimitsCommand   `cmd:"" help:"List or set what all workers together may do at an endpoint."`
}

// Help is shown by antiphon work --help.
func (workCommand) Help() string {
	return `Workers run the sessions of a store that have something to do: any number of them,
on one machine with a file, or on many with Postgres. Work goes on where it was if its
worker dies. A call that needs an approval waits in the store: antiphon sessions approve.

A worker runs only the agents in the folder --agents, after its operator agreed to what
they may do: see antiphon trust --help. Work goes on with the version of the agent that
it began with, also after the file has changed.

Examples:
  antiphon work --agents agents
  antiphon work submit agents/review.md monday "Review the last commit"
  antiphon work status
  antiphon work park monday --reason "wrong branch"
  antiphon work retry monday`
}

// sessions returns the commands about sessions with the same store.
func (c *workCommand) sessions() *sessionsCommand {
	all := &sessionsCommand{storeFlag: c.storeFlag, JSON: c.JSON}
	all.begins = "antiphon work submit FILE SESSION"
	return all
}

// workStartCommand is antiphon work start.
type workStartCommand struct {
	Agents string `required:"" placeholder:"DIR" help:"The folder with the agents that this worker may run: its files that end in .md."`

	Engine        engineName     `placeholder:"ENGINE" default:"queue" help:"What decides when work is done: queue, which stands in the store. A Temporal server has a program of its own, antiphon-temporal."`
	Name          string         `placeholder:"NAME" help:"The name of the worker, for people. Default: of the machine and the process."`
	Labels        []string       `placeholder:"LABEL" sep:"," help:"What this worker has, such as gpu. It does no work that needs other labels."`
	Host          string         `placeholder:"NAME" help:"The name of this machine, for work whose files it alone has. Default: the machine's own name."`
	Volumes       []string       `placeholder:"DIR" sep:"," help:"Folders in which sessions may work if their --place says so, and in those below them. Work of this machine may also be in the current folder."`
	Repos         []string       `name:"repositories" placeholder:"URL" sep:"," help:"Git repositories that this worker may check out for sessions with a --place: URLs or full paths. One that ends in / stands for all below it."`
	KeepCheckouts time.Duration  `name:"keep-checkouts" default:"720h" placeholder:"TIME" help:"How long a checkout stays on the disk after its last run, if all its changes are in the store; 0 is for ever."`
	Tenants       []string       `placeholder:"TENANT" sep:"," help:"Do only the work of these. Default: of everybody."`
	Caps          map[string]int `mapsep:"," placeholder:"TENANT=N" help:"The most sessions of a tenant to run at once, over all workers."`
	Runs          int            `default:"4" placeholder:"N" help:"The most sessions to run at once."`
	Once          bool           `help:"End as soon as there is nothing left to do."`

	Attempts int           `default:"5" placeholder:"N" help:"Park work that failed N times."`
	Patience time.Duration `default:"1m" placeholder:"TIME" help:"How long work that this worker cannot do waits for one that perhaps can, before it is parked with what is missing. If none can, it is parked at once."`

	ApprovalTime time.Duration `name:"approval-time" placeholder:"TIME" help:"How long an approval waits for each of --approvers. After the last of them the call does not run, and the model reads that nobody answered. Default: it waits for ever."`
	Approvers    []string      `placeholder:"NAME" sep:"," help:"With --approval-time: the people who are asked, one after the other, as work status says. Anybody may answer."`

	Drain time.Duration `name:"drain-time" default:"30s" placeholder:"TIME" help:"When the worker is told to end: how long its runs may take to end their turn."`

	Metrics string `placeholder:"ADDRESS" help:"Serve metrics for Prometheus at http://ADDRESS/metrics, and /healthz and /readyz. ADDRESS is HOST:PORT; without HOST, only this machine can connect."`

	endpointFlags `group:"who"`
	trustFlags    `group:"may"`
	Sandbox       string        `group:"may" placeholder:"PROFILE" help:"What programs may do, whatever the files say: see antiphon run --help."`
	Hosts         []string      `group:"may" placeholder:"HOST" sep:"," help:"With the profile hosts: the hosts that programs may reach."`
	MaxTurns      int           `group:"limits" placeholder:"N" help:"Ask the model at most N times in a run."`
	MaxTime       time.Duration `group:"limits" placeholder:"TIME" help:"Stop a run after this time, such as 90s or 5m. Waiting does not count."`
	MaxTokens     int64         `group:"limits" placeholder:"N" help:"Stop a run when the endpoint has counted N tokens."`
}

// engineName is what decides when work is done.
type engineName string

// UnmarshalText refuses an engine that this program does not contain.
func (e *engineName) UnmarshalText(text []byte) error {
	switch *e = engineName(text); *e {
	case "queue":
		return nil
	case "temporal":
		return errors.New("this program does not contain Temporal: antiphon-temporal work does the same on a Temporal server" +
			"\n  hint: in a clone of the repository: cd contrib/temporal && go install ./cmd/antiphon-temporal; see contrib/temporal/README.md")
	}
	return fmt.Errorf("there is no engine %q, only queue, and temporal in the program antiphon-temporal", text)
}

// check refuses flags that make no sense, and completes the paths and addresses.
func (c *workStartCommand) check(env environment) error {
	if c.Runs < 1 || c.Attempts < 1 || c.MaxTurns < 0 || c.MaxTime < 0 || c.MaxTokens < 0 || c.Patience < 0 || c.Drain < 0 || c.KeepCheckouts < 0 {
		return usage(errors.New("--runs and --attempts are at least 1, and limits and times cannot be negative"))
	}
	if c.ApprovalTime < 0 || len(c.Approvers) > 0 && c.ApprovalTime == 0 || slices.Contains(c.Approvers, "") {
		return usage(errors.New("--approvers are names that are not empty and need --approval-time, which cannot be negative"))
	}
	for _, tenant := range slices.Sorted(maps.Keys(c.Caps)) {
		if c.Caps[tenant] < 1 {
			return usage(fmt.Errorf("--caps: %s has %d runs: give at least 1, or park its work: antiphon work park --tenant %s", show.Visible(tenant), c.Caps[tenant], quoted(tenant)))
		}
	}
	for i, dir := range c.Volumes {
		if info, err := os.Stat(dir); err != nil || !info.IsDir() {
			return usage(fmt.Errorf("--volumes %s: %w", quoted(dir), cmp.Or(err, errors.New("it is not a folder"))))
		}
		path, err := filepath.Abs(dir)
		if err != nil {
			return err
		}
		c.Volumes[i] = path
	}
	if _, err := exec.LookPath("git"); err != nil && len(c.Repos) > 0 {
		return usage(fmt.Errorf("--repositories: %w", err))
	}
	if len(c.Repos) > 0 && cacheFolder(env, "checkouts") == "" {
		return usage(errors.New("--repositories: checkouts are in the cache folder, and you have none: set HOME or XDG_CACHE_HOME"))
	}
	for i, address := range c.Repos {
		if address == "" {
			return usage(errors.New("--repositories: an address is empty"))
		}
		c.Repos[i] = fullAddress(address)
	}
	if info, err := os.Stat(c.Agents); err != nil || !info.IsDir() {
		return usage(fmt.Errorf("--agents %s: %w", quoted(c.Agents), cmp.Or(err, errors.New("it is not a folder"))))
	}
	return nil
}

// Run does work until ctx is done.
func (c *workStartCommand) Run(ctx context.Context, std stdio, env environment, work *workCommand) error {
	if err := c.check(env); err != nil {
		return err
	}
	cfg, err := c.config(ctx, std, env)
	if err != nil {
		return err
	}
	return work.sessions().opened(ctx, env, true, func(in keeper) error {
		cfg.Store = in
		if _, err := queueOf(in); err != nil { // before anybody is asked
			return err
		}
		if err := vouched(ctx, in, std, env); err != nil {
			return err
		}
		agents, err := workerAgents(env)
		if err != nil {
			return err
		}
		state := func() string { return stateOfAgents(env, math.MaxInt, c.Agents) }
		taken := state()
		if err := c.add(ctx, std, env, agents, &cfg); err != nil {
			return err
		}
		cfg.Notify = nil // the log has the notices of runs
		w := c.worker(env)
		w.Config, w.Agents, w.Log = cfg, agents, slog.New(slog.NewTextHandler(std.err, nil))
		if work.JSON {
			w.Log = slog.New(slog.NewJSONHandler(std.out, nil))
		}
		if c.Metrics != "" {
			end, err := serveMetrics(ctx, c.Metrics, w)
			if err != nil {
				return err
			}
			defer end()
		}
		if !c.Once {
			defer watchAgents(ctx, taken, state, func(ctx context.Context) { c.takeUp(ctx, std, env, agents, cfg, w.Log) })()
		}
		do := w.Run
		if c.Once {
			do = w.Once
		}
		if err = do(ctx); errors.Is(err, errors.ErrUnsupported) {
			return usage(err)
		}
		return err
	})
}

// worker returns a worker as the flags describe it.
func (c *workStartCommand) worker(env environment) *worker.Worker {
	w := &worker.Worker{
		Prepare: agentserver.Prepare, Name: c.Name, Labels: c.Labels, Host: c.Host, Tenants: c.Tenants, Caps: c.Caps,
		Volumes: c.Volumes, Repositories: c.Repos, Checkouts: cacheFolder(env, "checkouts"), KeepCheckouts: c.KeepCheckouts,
		Runs: c.Runs, Attempts: c.Attempts, Patience: c.Patience, Drain: c.Drain, ApprovalTime: c.ApprovalTime, Approvers: c.Approvers,
	}
	machine, err := os.Hostname()
	if w.Host == "" && err == nil {
		w.Host = machine
	}
	if w.Name == "" {
		w.Name = fmt.Sprintf("%s %d", cmp.Or(w.Host, "a machine without a name"), os.Getpid())
	}
	return w
}

// config returns the configuration of all runs.
func (c *workStartCommand) config(ctx context.Context, std stdio, env environment) (cfg host.Config, err error) {
	table, err := c.table(ctx, env)
	if err != nil {
		return cfg, err
	}
	if cfg, err = workConfig(std, env); err != nil {
		return cfg, err
	}
	cfg.Endpoint, cfg.Sandbox, cfg.Hosts = c.endpoint(table), c.Sandbox, c.Hosts
	cfg.Endpoint.Several = true
	cfg.Limits = agent.Limits{MaxTurns: c.MaxTurns, MaxTime: c.MaxTime, MaxTokens: c.MaxTokens}
	if cfg.Variables, err = c.variables(); err != nil {
		return cfg, err
	}
	t, err := newTruster("", &c.trustFlags, std, env, nil)
	if err != nil {
		return cfg, err
	}
	cfg.Audit, cfg.Protected, cfg.Known, cfg.Made = t.record, t.protected(), t.knows, t.made
	return cfg, nil
}

// workConfig returns what a configuration of work has in common for those who submit it
// and those who do it.
func workConfig(std stdio, env environment) (host.Config, error) {
	options, err := fileOptions()
	return host.Config{Workspace: options.Workspace, Home: options.Home, Cache: answersFolder(env), FrontEnd: front(std, env, true)}, err
}

// workPatchCommand is antiphon work patch.
type workPatchCommand struct {
	Session string `arg:"" help:"The session."`
}

// Run prints a patch.
func (c *workPatchCommand) Run(ctx context.Context, std stdio, env environment, work *workCommand) error {
	all := work.sessions()
	return all.opened(ctx, env, false, func(in keeper) error {
		info, err := findWhole(ctx, in, c.Session, false)
		if err != nil {
			return err
		}
		changes, err := worker.ChangesOf(ctx, in, info.ID)
		if errors.Is(err, session.ErrNotFound) {
			err = usage(err)
		}
		if err != nil {
			return err
		}
		value := struct {
			Repository string `json:"repository"`
			Reference  string `json:"reference"`
			Commit     string `json:"commit"`
			Patch      []byte `json:"patch"` // in base64: files may have any bytes
		}{changes.Repository, changes.Reference, changes.Commit, changes.Patch}
		if work.JSON {
			return all.printJSON(std, value)
		}
		fmt.Fprintf(std.err, "antiphon: changes to the commit %s of %s\n", changes.Commit, show.Visible(changes.Repository))
		patch := changes.Patch
		if show.IsTerminal(std.out) { // git apply gets all bytes
			patch = []byte(show.Printable(string(patch)))
		}
		_, err = std.out.Write(patch)
		return err
	})
}

// workerAgents returns the agreements of the user about what workers may run. They are in
// the user's data folder.
func workerAgents(env environment) (*worker.Agents, error) {
	agreed, err := trustStore(env)
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(filepath.Dir(agreed.Path()), "work")
	return &worker.Agents{Folder: filepath.Join(dir, "definitions"), Agreed: trust.Open(filepath.Join(dir, "agreed.jsonl"))}, nil
}

// add asks about the agents of the folder. One that cannot be run is a warning: the others
// can.
func (c *workStartCommand) add(ctx context.Context, std stdio, env environment, agents *worker.Agents, cfg *host.Config) error {
	files, err := c.files()
	if err != nil {
		return err
	}
	var who *person.Person
	if show.IsTerminal(std.in) && show.IsTerminal(std.err) {
		who = person.New(std.in, std.err)
	}
	added := 0
	for _, file := range files {
		t, err := newTruster(file, &c.trustFlags, std, env, who)
		if err != nil {
			return err
		}
		t.sandbox = profileFlag(c.Sandbox, c.Hosts)
		switch _, err := addAgent(ctx, agents, t, *cfg, file); {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			fmt.Fprintf(std.err, "antiphon: warning: this worker does not run %s: %s\n", show.Visible(file), show.Printable(notRun(env, file, err)))
		default:
			added++
		}
	}
	if added == 0 {
		return usage(fmt.Errorf("--agents %s: no file there that ends in .md can be run", quoted(c.Agents)))
	}
	return nil
}

// files are the agents of the folder.
func (c *workStartCommand) files() ([]string, error) { return filesOfFolder(c.Agents) }

// addAgent adds a file if the operator agrees.
func addAgent(ctx context.Context, agents *worker.Agents, t *truster, cfg host.Config, file string) (worker.Agent, error) {
	cfg.File = file
	cfg.Trust = func(ctx context.Context, claim trust.Claim) (trust.Agreement, error) {
		a, err := t.ask(ctx, claim)
		if err == nil && a.Remember == nil && t.remember { // it is remembered already
			a.Remember = func(context.Context) error { return nil }
		}
		return a, err
	}
	return agents.Add(ctx, cfg)
}

// notRun says why an agent is not run.
func notRun(env environment, file string, err error) string {
	text := env.Hide(err.Error())
	if problems, more, found := strings.Cut(text, "\n"); found && !strings.HasPrefix(strings.TrimSpace(more), "hint:") && !errors.As(err, new(*trust.UntrustedError)) {
		text = problems + "\n  hint: antiphon check " + quoted(file) + " lists all problems"
	}
	return text
}

// filesOfFolder returns the agents' files of a folder.
func filesOfFolder(path string) ([]string, error) {
	return filepath.Glob(filepath.Join(globbed(path), "*.md"))
}

// globbed returns a path as a pattern that matches it alone.
func globbed(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}

// workSubmitCommand is antiphon work submit.
type workSubmitCommand struct {
	File    string `arg:"" help:"The agent's file."`
	Session string `arg:"" help:"The name of the session, which is made if the file has none with the name."`
	Input   string `arg:"" optional:"" help:"What to say; - means standard input. Default: the file's own question."`

	Key      string   `placeholder:"KEY" help:"Names the input, so that it counts once if the command is repeated. Default: a new key."`
	Owner    string   `placeholder:"OWNER" help:"The owner of the session."`
	Tag      []string `sep:"none" placeholder:"TAG" help:"Add a tag to a new session; may be repeated."`
	Tenant   string   `placeholder:"TENANT" help:"Whose work it is, for shares and limits."`
	Priority int      `placeholder:"N" help:"Work with a higher number is done sooner, within a tenant."`
	Needs    []string `placeholder:"LABEL" sep:"," help:"Labels that a worker must have."`
	placeFlag
	In      time.Duration `placeholder:"TIME" help:"Do it after this time, such as 2h, with all that waits in the session."`
	Upgrade bool          `help:"Go on with the file as it is now, instead of the version that the session's work began with."`
}

// Help is shown by antiphon work submit --help.
func (workSubmitCommand) Help() string {
	return `Leaves the agent's file, with all that it includes, a session and what to say to it in
the store, and ends. A worker does the work when it is due; nothing runs here. The
answer is in the session: antiphon sessions show NAME.

The work keeps the file as it is now, also if the file changes before a worker runs it.

Examples:
  antiphon work submit agents/review.md monday "Review the last commit"
  antiphon work submit agents/review.md monday --key job-17 --in 2h --needs gpu
  git diff | antiphon work submit agents/review.md monday -`
}

// job returns the work that the flags describe.
func (c *workSubmitCommand) job(std stdio, env environment) (j worker.Job, err error) {
	if c.In < 0 {
		return j, usage(errors.New("--in cannot be negative"))
	}
	if err := cmp.Or(absentAgent(c.File, nil), notAgent(c.File)); err != nil {
		return j, usage(err)
	}
	cfg, err := workConfig(std, env)
	if err != nil {
		return j, err
	}
	place, err := c.place()
	if err != nil {
		return j, usage(err)
	}
	cfg.File, cfg.Session, cfg.Owner, cfg.Tags = c.File, c.Session, c.Owner, c.Tag
	j = worker.Job{
		Config: cfg, Key: c.Key, By: person.AccountName(), From: "work submit",
		Tenant: c.Tenant, Priority: c.Priority, Needs: c.Needs, Place: place, Upgrade: c.Upgrade,
	}
	if c.In > 0 {
		j.Due = time.Now().Add(c.In)
	}
	text := c.Input
	if text == "-" {
		read, err := io.ReadAll(std.in)
		if err != nil {
			return j, fmt.Errorf("standard input: %w", err)
		}
		if text = string(read); strings.TrimSpace(text) == "" {
			return j, usage(errors.New("standard input is empty: there is nothing to say"))
		}
	}
	if text != "" {
		j.Input = []item.Item{item.User(text)}
	}
	return j, nil
}

// Run submits.
func (c *workSubmitCommand) Run(ctx context.Context, std stdio, env environment, work *workCommand) error {
	j, err := c.job(std, env)
	if err != nil {
		return err
	}
	all := work.sessions()
	return all.opened(ctx, env, true, func(in keeper) error {
		j.Config.Store = in
		r, err := worker.Submit(ctx, j)
		switch {
		case errors.Is(err, session.ErrKeyUsed):
			return keyUsed(c.Key)
		case errors.Is(err, errors.ErrUnsupported):
			return usage(err)
		case err != nil:
			return err
		}
		value := struct {
			Session string `json:"session"`
			Agent   string `json:"agent"`
			Key     string `json:"key"`
			Taken   int64  `json:"taken,omitempty"`
			Parked  string `json:"parked,omitempty"`
		}{r.Session.ID, r.Agent, r.Key, r.Taken, r.Parked}
		switch {
		case r.Parked != "":
			return all.told(std, value, "%s: it waits in the session, whose work is parked: %s; antiphon work retry %s", r.Session.ID, r.Parked, quoted(c.Session))
		case r.Taken > 0:
			return all.told(std, value, "%s: it was said before, and is entry %d", r.Session.ID, r.Taken)
		case c.In > 0:
			return all.told(std, value, "%s: waits until %s; antiphon work retry %s begins sooner", r.Session.ID, j.Due.Format("2006-01-02 15:04"), quoted(c.Session))
		}
		return all.told(std, value, "%s: waits for a worker; antiphon work status %s says how it goes", r.Session.ID, quoted(c.Session))
	})
}
