// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/agentfile"
	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/host"
	"github.com/antiphon-go/antiphon/internal/person"
	"github.com/antiphon-go/antiphon/internal/show"
	"github.com/antiphon-go/antiphon/trust"
)

// serveCommand is antiphon serve.
type serveCommand struct {
	Listen string `default:"127.0.0.1:8787" placeholder:"HOST:PORT" help:"Where to listen, or unix:PATH for a socket of your own. Port 0 takes a free one. An address other than loopback needs keys: see antiphon keys --help. A socket that systemd passes takes its place."`
	servedFlags
	upstreamFlags
	accessFlags
	traceFlags
	Work        string        `enum:"here,queue" default:"here" placeholder:"here|queue" help:"Who runs the agents: here, this server, or queue, workers over the same store (see antiphon work). The default is here."`
	KeepStreams time.Duration `name:"keep-streams" placeholder:"TIME" help:"How long after its last event the stream of a background response of an agent can be read again; the default is 1h."`
	Drain       time.Duration `name:"drain-time" default:"30s" placeholder:"TIME" help:"When the server is told to end: how long running responses may take. Then they end with the status incomplete."`
	DrainDelay  time.Duration `name:"drain-delay" default:"0s" placeholder:"TIME" help:"How long the server takes requests as before after it is told to end. Meanwhile /readyz says 503, so that load balancers notice."`
}

// workQueue is the value of --work with which workers run the agents.
const workQueue = "queue"

// servedFlags are the flags of commands that serve agents' files to other programs.
type servedFlags struct {
	Files []string `arg:"" optional:"" name:"file-or-folder" help:"The agents: ChatMarkdown files, or folders with files that end in .md."`
	configFlags
	storeFlag
	Owner string `placeholder:"OWNER" help:"The owner of the sessions that the server makes."`

	workers bool // they make the runs, at their endpoints
	later   bool // the server runs already, so nobody is asked about a file

	endpointFlags `group:"who"`

	Allow      []string `group:"may" placeholder:"TOOL" sep:"," help:"Tools that may run without approval: see antiphon run --help."`
	Ask        []string `group:"may" placeholder:"TOOL" sep:"," help:"Tools that need approval. Overrides --allow."`
	Deny       []string `group:"may" placeholder:"TOOL" sep:"," help:"Tools that must not run. Overrides all others."`
	trustFlags `group:"may"`
	Sandbox    string        `group:"may" placeholder:"PROFILE" help:"What programs may do, whatever the files say: see antiphon run --help."`
	Hosts      []string      `group:"may" placeholder:"HOST" sep:"," help:"With the profile hosts: the hosts that programs may reach."`
	MaxTurns   int           `group:"limits" placeholder:"N" help:"Ask the model at most N times for a response."`
	MaxTime    time.Duration `group:"limits" placeholder:"TIME" help:"Stop a response after this time, such as 90s or 5m."`
	MaxTokens  int64         `group:"limits" placeholder:"N" help:"Stop a response when the endpoint has counted N tokens."`
	Price      string        `group:"limits" placeholder:"IN,CACHED,OUT" help:"Prices of a million input, cached and output tokens, such as 1.25,0.125,10. They are needed for the cost of keys."`
}

// Help is shown by antiphon serve --help.
func (serveCommand) Help() string {
	return `Any program that speaks the Responses API, or Chat Completions, can use the agents as
models: their names are those of the files, without .md. The agents' tools run here. A
call that needs approval is an mcp_approval_request, which the client answers.

With --upstream it is a gateway: an endpoint with Chat Completions alone, or with a part
of the Responses API, gets all of it. With agents beside it, a name is first that of an
agent.

Without keys the server listens on loopback only, and every program of this machine can
use it. As soon as there is a key (see antiphon keys --help), every request needs one,
also on loopback. A file with powers is served after you have agreed to them: see
antiphon trust --help.

Examples:
  antiphon serve examples/tour/tour.md
  antiphon serve agents --listen 127.0.0.1:9000 --store api.db
  antiphon serve --upstream http://localhost:8000/v1 --api chat
  antiphon serve --config serve.conf --check
  curl localhost:8787/v1/responses -H 'Content-Type: application/json' -d '{"model":"tour","input":"Hello"}'`
}

// check refuses flags that do not go together, and warns of those that change nothing.
func (c *serveCommand) check(std stdio) error {
	if c.Drain < 0 || c.DrainDelay < 0 || c.KeepStreams < 0 {
		return usage(errors.New("limits and times cannot be negative"))
	}
	if c.take(); len(c.Files) == 0 && len(c.Upstream) == 0 {
		return usage(errors.New("name at least one agent's file or folder, or an endpoint with --upstream URL"))
	}
	if c.Work == workQueue && len(c.Files) == 0 {
		return usage(errors.New("--work queue is about agents: name a file or folder, and without one leave it out"))
	}
	if given := c.ofWorkers(); c.Work == workQueue && given != "" {
		return usage(fmt.Errorf("%s: with --work queue the flags of the worker count: antiphon work --help", given))
	}
	if c.Work == workQueue {
		c.warnOfWorkers(std)
	}
	return c.accessFlags.check()
}

// Run serves until ctx is done.
func (c *serveCommand) Run(ctx context.Context, std stdio, env environment) error {
	if err := c.check(std); err != nil {
		return err
	}
	hook, err := c.webhook(env)
	if err != nil {
		return err
	}
	c.workers = c.Work == workQueue
	if c.Check {
		return c.show(ctx, std, env)
	}
	s := &serving{hook: hook}
	if err := s.offer(ctx, c, std, env); err != nil {
		return err
	}
	table, err := c.table(ctx, env)
	if err != nil {
		return err
	}
	ups, err := c.upstreams(&c.endpointFlags, table, env, s.agents == nil)
	if err != nil {
		return err
	}
	if s.costs, err = c.costs(env); err != nil {
		return err
	}
	if len(ups) > 0 {
		s.upstreams = c.gateway(ups, s.costs, std, env.Hider())
	}
	end, err := s.traced(&c.traceFlags, env)
	if err != nil {
		return err
	}
	defer end()
	l, err := c.listen(ctx, env)
	if err != nil {
		return err
	}
	in, err := c.openVouched(ctx, std, env)
	if err != nil {
		return errors.Join(err, l.Close())
	}
	if c.workers {
		if _, err := queueOf(in); err != nil {
			return errors.Join(err, l.Close(), in.Close())
		}
		fmt.Fprintln(std.err, "antiphon: workers run the agents: antiphon work --agents DIR, with the same --store, starts one")
	}
	s.store, s.given = in, isActivated(env)
	if s.agents != nil {
		s.agents.Store = in
	}
	if len(ups) > 0 {
		c.sayUpstreams(std.err, "antiphon: ", ups, len(c.Files) > 0)
	}
	if err := c.warnOfCosts(ctx, std, std.err, "antiphon: warning: ", env, ups); err != nil {
		return errors.Join(err, l.Close(), in.Close())
	}
	return errors.Join(c.serve(ctx, std, env, l, s), in.Close())
}

// givenFlag is a flag, and whether it was given.
type givenFlag struct {
	name  string
	given bool
}

// warnOfWorkers says which flags are not about runs, because workers make them.
func (c *serveCommand) warnOfWorkers(std stdio) {
	alone := len(c.Upstream) == 0
	for _, f := range []givenFlag{{"--model", c.Model != ""}, {"--base-url", c.BaseURL != ""}, {"--profile", c.Profile != ""}, {"--rehearsal", c.Rehearsal}, {"--api", c.API != "auto" && alone}, {"--transport", c.Transport != "http" && alone}, {"--price", c.Price != "" && alone}} {
		if f.given {
			fmt.Fprintf(std.err, "antiphon: warning: %s is here about counted tokens and compaction alone: workers run the agents, with flags of their own\n", f.name)
		}
	}
	if c.OTLP != "" && alone {
		fmt.Fprintln(std.err, "antiphon: warning: --otlp-endpoint gets no spans: workers run the agents, and send none")
	}
}

// ofWorkers returns a flag that is about runs and was given, or "".
func (c *servedFlags) ofWorkers() string {
	for _, f := range []givenFlag{
		{"--allow", len(c.Allow) > 0}, {"--ask", len(c.Ask) > 0}, {"--deny", len(c.Deny) > 0}, {"--sandbox", c.Sandbox != ""}, {"--hosts", len(c.Hosts) > 0},
		{"--max-turns", c.MaxTurns != 0}, {"--max-time", c.MaxTime != 0}, {"--max-tokens", c.MaxTokens != 0},
	} {
		if f.given {
			return f.name
		}
	}
	return ""
}

// take takes the agents of a file of flags, if the command line names none.
func (c *servedFlags) take() {
	if len(c.Files) == 0 {
		c.Files = c.Agents
	}
}

// answeredBy says who answers for an agent.
func (c *servedFlags) answeredBy(ctx context.Context, cfg host.Config) (string, error) {
	if c.workers {
		return "the endpoints of workers", nil
	}
	address, _, err := host.Address(ctx, cfg)
	return cmp.Or(address, "the rehearsal model, a mock"), err
}

// hider is a writer of lines without secrets.
type hider struct {
	std  stdio
	hide func(string) string
}

func (h hider) Write(line []byte) (int, error) {
	_, err := fmt.Fprintln(h.std.err, show.Unbroken(strings.TrimSuffix(h.hide(string(line)), "\n")))
	return len(line), err
}

// files returns the agents' files, each once. what is what each is to clients.
func (c *servedFlags) files(what string) (files []string, err error) {
	if len(c.Files) == 0 {
		return nil, usage(errors.New("name at least one agent's file or folder"))
	}
	for _, name := range c.Files {
		info, err := os.Stat(name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil, usage(fmt.Errorf("%s: no such file or folder; antiphon init writes a first agent", show.Visible(name)))
		case err != nil:
			return nil, usage(err)
		case !info.IsDir():
			files = append(files, name)
			continue
		}
		found, err := filesOfFolder(name)
		if err == nil && len(found) == 0 {
			err = fmt.Errorf("%s: the folder has no file that ends in .md", show.Visible(name))
		}
		if err != nil {
			return nil, usage(err)
		}
		files = append(files, found...)
	}
	return c.apart(files, what)
}

// apart returns files without those that are named twice, as by a file and its folder. Two files of one name are an error.
func (c *servedFlags) apart(all []string, what string) (files []string, err error) {
	seen := map[string]string{}
	for _, file := range all {
		name := modelName(file)
		switch other := seen[name]; {
		case other != "" && sameFile(other, file):
			continue
		case other != "":
			return nil, usage(fmt.Errorf("%s and %s would both be the %s %s: rename one", show.Visible(other), show.Visible(file), what, show.Visible(name)))
		}
		seen[name] = file
		if err := notAgent(file); err != nil {
			return nil, usage(err)
		}
		files = append(files, file)
	}
	return files, nil
}

// modelName returns the name of the model that a file is.
func modelName(file string) string { return strings.TrimSuffix(filepath.Base(file), ".md") }

// prices returns the price of all models, if one is given, and what tells those of each.
func (c *servedFlags) prices(env environment) (all *agent.Price, each func(model, baseURL string) (agent.Price, bool), err error) {
	given := runCommand{runFlags: runFlags{Price: c.Price}}
	if all, err = given.price(); err != nil {
		return nil, nil, err
	}
	if each, err = pricesFor(env["ANTIPHON_PRICES"]); err != nil {
		err = usage(fmt.Errorf("ANTIPHON_PRICES: %w", err))
	}
	return all, each, err
}

// costs returns what tells the cost of tokens.
func (c *servedFlags) costs(env environment) (func(model, baseURL string, used *api.Usage) float64, error) {
	all, each, err := c.prices(env)
	return func(model, baseURL string, used *api.Usage) float64 {
		if all != nil {
			return all.Of(used)
		}
		price, _ := each(model, baseURL) // of nothing, if it is not known
		return price.Of(used)
	}, err
}

// config returns the configuration of all runs.
func (c *servedFlags) config(ctx context.Context, std stdio, env environment) (cfg host.Config, err error) {
	table, err := c.table(ctx, env)
	if err != nil {
		return cfg, err
	}
	if cfg, err = workConfig(std, env); err != nil {
		return cfg, err
	}
	rules := ruleFlags{Allow: c.Allow, Ask: c.Ask, Deny: c.Deny}
	if cfg.Price, cfg.Prices, err = c.prices(env); err != nil {
		return cfg, err
	}
	cfg.Endpoint, cfg.Rules, cfg.Sandbox, cfg.Hosts, cfg.Owner = c.endpoint(table), rules.rules(), c.Sandbox, c.Hosts, c.Owner
	cfg.Endpoint.Several = true
	cfg.Limits = agent.Limits{MaxTurns: c.MaxTurns, MaxTime: c.MaxTime, MaxTokens: c.MaxTokens}
	cfg.Variables, err = c.variables()
	return cfg, err
}

// agent asks about a file, and returns it. A later change of the file is not
// covered by --trust or an answer for this time. K1 K6
func (c *servedFlags) agent(ctx context.Context, cfg host.Config, file string, std stdio, env environment) (a offeredAgent, err error) {
	var who *person.Person
	if !c.later && show.IsTerminal(std.in) && show.IsTerminal(std.err) {
		who = person.New(std.in, std.err)
	}
	t, err := newTruster(file, &c.trustFlags, std, env, who)
	if err != nil {
		return a, err
	}
	t.sandbox = profileFlag(c.Sandbox, c.Hosts)
	cfg.File, cfg.Audit, cfg.Protected, cfg.Known, cfg.Made = file, t.record, t.protected(), t.knows, t.made
	options, err := fileOptions()
	if err != nil {
		return a, err
	}
	agreed := &agreements{first: t.ask, later: t}
	options.Check, options.Profiles = true, cfg.Endpoint.Table
	options.Configured = cfg.Endpoint.Configured(env)
	consent := t.recorded(agreed.ask)
	options.Consent = consent
	if c.later { // the file is looked at again and again, and that nobody has agreed yet is no decision
		options.Consent = func(ctx context.Context, claim trust.Claim) (trust.Agreement, error) {
			if _, err := t.ask(ctx, claim); err != nil {
				return trust.Agreement{}, err
			}
			return consent(ctx, claim)
		}
	}
	f, err := agentfile.Load(ctx, file, options)
	if err != nil {
		return a, host.LoadError(err)
	}
	if err := f.Close(); err != nil {
		return a, err
	}
	agreed.started()
	cfg.Trust, cfg.Notify = agreed.ask, func(n host.Notice) {
		if !goesWell(n.Kind) && !slices.Contains([]host.NoticeKind{host.NoticeWaiting, host.NoticeReady, host.NoticeUnconfigured}, n.Kind) {
			fmt.Fprintln(std.err, noticeText(n))
		}
	}
	return offeredAgent{name: modelName(file), config: cfg, file: f}, nil
}

// agreements keeps what was agreed to about a file when the server began, and asks nobody
// later.
type agreements struct {
	first func(context.Context, trust.Claim) (trust.Agreement, error)
	later *truster

	mu     sync.Mutex
	begun  bool
	agreed map[string]trust.Agreement // by the hash of the claim
}

func (a *agreements) started() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.begun, a.later.all, a.later.who = true, false, nil
}

// ask implements [host.Config].Trust.
func (a *agreements) ask(ctx context.Context, claim trust.Claim) (trust.Agreement, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if said, ok := a.agreed[claim.Hash()]; ok {
		return said, nil
	}
	said, err := a.first(ctx, claim)
	if err == nil {
		if a.agreed == nil {
			a.agreed = map[string]trust.Agreement{}
		}
		a.agreed[claim.Hash()] = said
	}
	return said, err
}
