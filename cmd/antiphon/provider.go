// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/agentfile"
	"github.com/antiphon-go/antiphon/completions"
	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/rehearsal"
	"github.com/antiphon-go/antiphon/responses"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/tool"
)

// profilesFlag names a file of profiles.
type profilesFlag struct {
	Profiles string `placeholder:"FILE" help:"A JSON file that adds or changes profiles of endpoints and models. Default: $$ANTIPHON_PROFILES."`
}

// table reads the file of profiles, if there is one.
func (c *profilesFlag) table(env environment) (*endpoint.Table, error) {
	if err := env.filled("ANTIPHON_PROFILES"); err != nil && c.Profiles == "" {
		return nil, err
	}
	path := cmp.Or(c.Profiles, env["ANTIPHON_PROFILES"])
	if path == "" {
		return nil, nil
	}
	data, err := os.ReadFile(path)
	if err != nil {
		from := "--profiles"
		if c.Profiles == "" {
			from = "$ANTIPHON_PROFILES"
		}
		return nil, usage(fmt.Errorf("%s: %w", from, err))
	}
	table, err := endpoint.LoadProfiles(data, path)
	if err != nil {
		return nil, usage(err)
	}
	return table, nil
}

// endpointFlags say who answers.
type endpointFlags struct {
	Model     string `placeholder:"NAME" help:"The model to ask, instead of the file's."`
	BaseURL   string `name:"base-url" placeholder:"URL" help:"The endpoint, such as http://localhost:11434/v1. Default: the file's, $$OPENAI_BASE_URL, or OpenAI's where there is $$OPENAI_API_KEY."`
	Profile   string `placeholder:"NAME" help:"What kind of endpoint it is, such as openai, llama.cpp or vllm. Default: the file's, or what the address tells."`
	API       string `name:"api" enum:"auto,responses,chat" default:"auto" help:"Speak the Responses API or Chat Completions (responses, chat). Default: what the endpoint's profile prefers."`
	Transport string `enum:"http,continue,websocket" default:"http" help:"How turns travel: each with the whole history (http), or with what is new in it (continue: by previous_response_id; websocket: over one socket)."`
	Rehearsal bool   `help:"Let the rehearsal model answer: no key, no network, no cost."`
	profilesFlag
}

// said is what an agent's file says of who is to answer.
type said struct {
	path                    string // for messages
	model, baseURL, profile string
	script                  func(path string) (*rehearsal.Script, error)
	tools                   []tool.Tool
}

func saidBy(file *agentfile.File) said {
	return said{file.Path, file.Model(), file.BaseURL(), file.Profile(), file.Script, file.Tools}
}

// provider is who answers.
type provider struct {
	model agent.Model
	// name is the model's name in requests.
	name string
	// rehearsed says that the rehearsal model answers.
	rehearsed bool
	// who is a line for a person that says who answers. It is empty if notes
	// say it.
	who  string
	link *link // nil for the rehearsal
	// notes are lines that warn a person.
	notes []string
	stop  func()
}

// provider chooses who answers. The rehearsal does when it is asked for on the
// command line, when the file or OPENAI_MODEL asks for it and the command line
// names nobody else, and when no model and no endpoint is named anywhere.
func (c *endpointFlags) provider(file said, table *endpoint.Table, env environment, std stdio) (*provider, error) {
	if script, rehearsed, err := c.rehearses(file, env); err != nil {
		return nil, err
	} else if rehearsed != "" {
		return rehearse(file, script, rehearsed)
	}
	link, err := c.link(file, table, env)
	if err != nil {
		return nil, err
	}
	if link.model == "" {
		if err := env.filled("OPENAI_MODEL"); err != nil {
			return nil, err
		}
		return nil, usage(errors.New(`no model is named: give --model NAME, set OPENAI_MODEL, or write <config model="NAME"/> in the file`))
	}
	model, stop := link.client(std)
	return &provider{model: model, name: link.model, who: link.who(), link: link, notes: link.notes, stop: stop}, nil
}

// providers are who answers the agents of a run: the one that the file
// describes, and those that it has as tools.
type providers struct {
	flags *endpointFlags
	table *endpoint.Table
	env   environment
	std   stdio
	quiet bool      // notes are warnings only
	main  *provider // who answers the agent that is run
	notes []string  // each once
	stops []func()
}

// of is an [agentfile.Models].
func (p *providers) of(file *agentfile.File) (agent.Model, string, error) {
	who, err := p.flags.provider(saidBy(file), p.table, p.env, p.std)
	if err != nil {
		return nil, "", err
	}
	p.main = cmp.Or(p.main, who)
	p.stops = append(p.stops, who.stop)
	for _, note := range append([]string{who.who}, who.notes...) {
		if note == "" || p.quiet && note == who.who {
			continue
		}
		if !slices.Contains(p.notes, note) {
			p.notes = append(p.notes, note)
		}
	}
	return who.model, who.name, nil
}

func (p *providers) stop() {
	for _, stop := range p.stops {
		stop()
	}
}

// say prints the notes, with the kind of server that answered the session before.
func (p *providers) say(sess *session.Session) {
	if m := p.main; m != nil && m.link != nil {
		agent.Recall(m.model, sess)
		if i := slices.Index(p.notes, m.who); i >= 0 {
			m.link.known.Name = m.model.(agent.Describer).About().Profile
			p.notes[i] = m.link.who()
		}
	}
	for _, note := range p.notes {
		fmt.Fprintln(p.std.err, note)
	}
}

// sayRehearsed warns that a real model is about to read what the rehearsal model
// said as its own words.
func (p *providers) sayRehearsed(sess *session.Session) {
	if p.main == nil || p.main.rehearsed {
		return
	}
	n := 0
	for e := range sess.Entries() {
		switch b := e.Body.(type) {
		case session.Given:
			n += count(rehearsal.Said(b.Item))
		case session.Received:
			n += count(rehearsal.Said(b.Item))
		}
	}
	if n > 0 {
		fmt.Fprintf(p.std.err, "!! the rehearsal model said %s of this conversation; %s reads that as its own words. A new session or transcript begins without it.\n",
			plural(n, "item"), printable(p.main.name))
	}
}

func count(yes bool) int {
	if yes {
		return 1
	}
	return 0
}

// Why the rehearsal model answers.
const (
	wanted   = "wanted"
	fallback = "fallback"
)

// rehearses says whether the rehearsal model answers, why, and by which script;
// "" means none. A model that somebody named is never replaced by the rehearsal:
// without an endpoint it is an [unreachable].
func (c *endpointFlags) rehearses(file said, env environment) (script, why string, err error) {
	named, byFlag := rehearsal.ParseModel(c.Model)
	script, byFile := rehearsal.ParseModel(file.model)
	byEnv := env["OPENAI_MODEL"] == rehearsal.Model && file.model == ""
	base, key, _ := c.address(file, env)
	switch {
	case c.Rehearsal && (c.BaseURL != "" || c.Model != "" && !byFlag):
		return "", "", usage(errors.New("--rehearsal does not go with --base-url or --model"))
	case byFlag && named != "": // as all paths on a command line, relative to the working directory
		full, err := filepath.Abs(named)
		return full, wanted, err
	case byFile && (c.Rehearsal || c.BaseURL == "" && c.Model == ""):
		return script, wanted, nil
	case byFlag, c.Rehearsal, byEnv && c.BaseURL == "" && c.Model == "":
		return "", wanted, nil
	case base != "" || !key.IsZero():
		return "", "", nil
	case c.Model == "" && file.model == "" && env["OPENAI_MODEL"] == "":
		return "", fallback, env.filled("OPENAI_MODEL", "OPENAI_BASE_URL")
	}
	return "", "", usage(c.unreachable(file, env))
}

// unreachable is a model that was named and has no endpoint.
type unreachable struct {
	model, by string
	emptyKey  bool // OPENAI_API_KEY is set, and to nothing
}

func (c *endpointFlags) unreachable(file said, env environment) *unreachable {
	u := &unreachable{model: c.Model, by: "--model"}
	if u.model == "" {
		u.model, u.by = file.model, file.path
	}
	if u.model == "" {
		u.model, u.by = env["OPENAI_MODEL"], "OPENAI_MODEL"
	}
	_, u.emptyKey = env["OPENAI_API_KEY"]
	return u
}

// Error says which model it is, and how to go on.
func (u *unreachable) Error() string {
	key := "set OPENAI_API_KEY"
	if u.emptyKey {
		key = "OPENAI_API_KEY is empty: set it"
	}
	return fmt.Sprintf("no endpoint is configured for the model %q, which %s names; %s for OpenAI, give --base-url URL for another endpoint, or give --rehearsal to try without a model", u.model, u.by, key)
}

// reachable refuses a model that nobody can answer for, before anything is made,
// started or asked for the run. It reads the file once more, and only where no
// flag and no variable names an endpoint. What else is wrong with the file is
// left to the run, which reports it.
func (c *runCommand) reachable(ctx context.Context, env environment, table *endpoint.Table) error {
	if _, _, err := c.rehearses(said{path: c.File, model: "any"}, env); !errors.As(err, new(*unreachable)) {
		return nil
	}
	options, err := fileOptions()
	if err != nil {
		return err
	}
	options.Profiles, options.Check = table, true
	path := c.File
	if _, err := os.Stat(c.Out); err == nil && c.Out != "" && !c.inSession() {
		path = c.Out
	}
	file, err := agentfile.Load(ctx, path, options)
	if err != nil {
		return nil
	}
	defer file.Close()
	_, err = file.AgentBy(func(f *agentfile.File) (agent.Model, string, error) {
		_, _, err := c.rehearses(saidBy(f), env)
		return &responses.Client{}, rehearsal.Model, err
	}, nil)
	if errors.As(err, new(*unreachable)) {
		return err
	}
	return nil
}

// link is how an endpoint is reached.
type link struct {
	base, model string
	key         endpoint.Key
	account     string
	profile     *endpoint.Profile // nil: what the address and the answers tell
	known       endpoint.Profile  // what the address tells, or profile
	host        string
	table       *endpoint.Table
	api         string
	transport   string
	notes       []string
}

// who says who answers, and as what kind of endpoint it is treated.
func (l *link) who() string {
	kind := "profile " + l.known.Name
	if l.api == endpoint.APIChat {
		kind += ", Chat Completions"
	}
	return printable(fmt.Sprintf("antiphon: %s at %s answers (%s)", l.model, l.host, kind))
}

// link puts together what flags, file and environment say of the endpoint.
func (c *endpointFlags) link(file said, table *endpoint.Table, env environment) (*link, error) {
	if err := env.filled("OPENAI_BASE_URL"); err != nil && c.BaseURL == "" && file.baseURL == "" {
		return nil, err
	}
	l := &link{table: table, account: env["OPENAI_ACCOUNT"], transport: c.Transport}
	var held string
	if l.base, l.key, held = c.address(file, env); held != "" {
		l.notes = append(l.notes, held)
	}
	u, err := endpoint.URL(cmp.Or(l.base, endpoint.DefaultBaseURL), "/")
	if err != nil {
		return nil, err
	}
	known := table.Detect(u)
	if name := cmp.Or(c.Profile, file.profile); name != "" {
		if known, err = table.ByName(name); err != nil {
			return nil, usage(fmt.Errorf("--profile: %w", err))
		}
		l.profile = &known
	}
	l.known, l.host = known, u.Host
	l.api = c.API
	if l.api == "" || l.api == "auto" {
		l.api = known.APIs[0]
	}
	if l.model = c.Model; l.model == "" {
		if _, rehearsed := rehearsal.ParseModel(file.model); !rehearsed {
			l.model = file.model
		}
	}
	l.model = cmp.Or(l.model, env["OPENAI_MODEL"])
	if l.api == endpoint.APIChat && l.transport != "" && l.transport != "http" {
		return nil, usage(errors.New("--transport is for the Responses API; Chat Completions has the whole history in each request"))
	}
	return l, nil
}

// client returns the client of the API that is to be spoken, and what ends it.
func (l *link) client(std stdio) (agent.Model, func()) {
	onRetry := sayRetry(std)
	if l.api == endpoint.APIChat {
		return &completions.Client{
			BaseURL: l.base, Key: l.key, Account: l.account, Profile: l.profile, Table: l.table,
			UserAgent: userAgent(), OnRetry: onRetry, OnLoss: sayLosses(std),
		}, func() {}
	}
	client := &responses.Client{
		BaseURL: l.base, Key: l.key, Account: l.account, Profile: l.profile, Table: l.table,
		UserAgent: userAgent(), OnRetry: onRetry,
	}
	thread := &responses.Thread{Client: client}
	switch l.transport {
	case "websocket":
		thread.Transport = responses.WebSocket
	case "continue":
	default:
		return client, func() {}
	}
	return thread, func() { _ = thread.Close() }
}

// sayLosses names what has no form in Chat Completions, each kind of thing once.
// Labels that no model reads, and what is only moved, are not worth a line: a
// reader would learn to pass over the one that matters.
func sayLosses(std stdio) func([]completions.Loss) {
	var mu sync.Mutex
	told := map[string]bool{}
	return func(losses []completions.Loss) {
		mu.Lock()
		defer mu.Unlock()
		for _, l := range losses {
			said := "not sent, Chat Completions has no place for it: "
			if strings.HasPrefix(l.Path, "choices[") {
				if l.Kind == completions.LostContent {
					continue // the run tells it, and logs it
				}
				said = "not kept, a response has no place for it: "
			}
			if (l.Kind == completions.LostMember || l.Kind == completions.LostContent) && !told[said+l.What] {
				told[said+l.What] = true
				fmt.Fprintln(std.err, unbroken("antiphon: "+said+l.String()))
			}
		}
	}
}

func userAgent() string { return "antiphon/" + programVersion() }

// sayRetry tells of waits that a person would notice.
func sayRetry(std stdio) func(error, time.Duration, int) {
	return func(err error, wait time.Duration, _ int) {
		var e *endpoint.Error
		if wait < time.Second || !errors.As(err, &e) {
			return
		}
		why := strings.ReplaceAll(string(e.Class), "_", " ")
		if e.Status != 0 {
			why += fmt.Sprintf(", status %d", e.Status)
		}
		fmt.Fprintf(std.err, "antiphon: no answer (%s), asking again in %s\n", why, duration(wait))
	}
}

// address returns the base URL and the key that may go there. The key belongs
// to the person who runs the program: a file's own base_url gets it only where
// the environment names the same host; the note says so where it does not.
func (c *endpointFlags) address(file said, env environment) (base string, key endpoint.Key, note string) {
	key = endpoint.NewKey(env["OPENAI_API_KEY"])
	fromEnv := env["OPENAI_BASE_URL"]
	if c.BaseURL != "" || file.baseURL == "" {
		return cmp.Or(c.BaseURL, fromEnv), key, ""
	}
	if !key.IsZero() && !sameHost(file.baseURL, cmp.Or(fromEnv, endpoint.DefaultBaseURL)) {
		key = endpoint.Key{}
		note = "antiphon: OPENAI_API_KEY is not sent to the base_url of the file; name it with --base-url to send it"
	}
	return file.baseURL, key, note
}

func sameHost(a, b string) bool {
	u, errA := url.Parse(a)
	v, errB := url.Parse(b)
	return errA == nil && errB == nil && u.Host != "" && strings.EqualFold(u.Host, v.Host) && u.Scheme == v.Scheme
}

// improvised says what the rehearsal does without a script.
const improvised = "it calls each tool that only reads, once"

// rehearse starts the rehearsal's server on loopback and a client of it. The
// script's path is relative to the file; "" means none.
func rehearse(file said, script, why string) (*provider, error) {
	server := &rehearsal.Server{ReadOnly: readOnly(file.tools)}
	by := improvised
	if script != "" {
		var err error
		if server.Script, err = file.script(script); err != nil {
			return nil, usage(err)
		}
		by = "scripted by " + script
	}
	base, stop, err := server.Start()
	if err != nil {
		return nil, fmt.Errorf("rehearsal: %w", err)
	}
	client := &responses.Client{BaseURL: base, IdleTimeout: time.Minute}
	p := &provider{model: rehearsed{client}, name: rehearsal.Model, rehearsed: true, stop: stop}
	p.who = "antiphon: the rehearsal model answers (" + by + "): no key, no network, no cost"
	if why == fallback { // a warning: what is made up may be taken for an answer
		p.who, p.notes = "", []string{"antiphon: no endpoint is configured, so the rehearsal model answers (" + improvised + "); for a real one name a model, and give --base-url or set OPENAI_API_KEY"}
	}
	return p, nil
}

// rehearsed is the client of a rehearsal. What it says of itself is the same for
// each run, whatever port the rehearsal has.
type rehearsed struct{ *responses.Client }

// About marks in logs that no model answered.
func (rehearsed) About() endpoint.About {
	return endpoint.About{API: endpoint.APIResponses, Rehearsal: true}
}

func readOnly(tools []tool.Tool) func(string) bool {
	names := map[string]bool{}
	if set, err := tool.NewSet(tools...); err == nil {
		for name, t := range set.All() {
			names[name] = tool.TraitsOf(t).ReadOnly
		}
	}
	return func(name string) bool { return names[name] }
}
