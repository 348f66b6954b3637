// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
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
	"github.com/antiphon-go/antiphon/tool"
)

// profilesFlag names a file of profiles.
type profilesFlag struct {
	Profiles string `placeholder:"FILE" help:"A JSON file that adds or changes profiles of endpoints and models. Default: $$ANTIPHON_PROFILES."`
}

// table reads the file of profiles, if there is one.
func (c *profilesFlag) table(env environment) (*endpoint.Table, error) {
	path := cmp.Or(c.Profiles, env["ANTIPHON_PROFILES"])
	if path == "" {
		return nil, nil
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, usage(err)
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
	model, baseURL, profile string
	script                  func(path string) (*rehearsal.Script, error)
	tools                   []tool.Tool
}

func saidBy(file *agentfile.File) said {
	return said{file.Model(), file.BaseURL(), file.Profile(), file.Script, file.Tools}
}

// provider is who answers.
type provider struct {
	model agent.Model
	// name is the model's name in requests.
	name string
	// note is the line that says who answers, where that is not plain.
	note string
	stop func()
}

// provider chooses who answers. The rehearsal does when it is asked for on the
// command line, when the file asks for it and the command line names nobody
// else, and when nothing else is configured.
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
		return nil, usage(errors.New(`no model is named: give --model NAME, set OPENAI_MODEL, or write <config model="NAME"/> in the file`))
	}
	model, stop := link.client(std)
	return &provider{model: model, name: link.model, note: link.note, stop: stop}, nil
}

// providers are who answers the agents of a run: the one that the file
// describes, and those that it has as tools.
type providers struct {
	flags *endpointFlags
	table *endpoint.Table
	env   environment
	std   stdio
	notes []string // each once
	stops []func()
}

// of is an [agentfile.Models].
func (p *providers) of(file *agentfile.File) (agent.Model, string, error) {
	who, err := p.flags.provider(saidBy(file), p.table, p.env, p.std)
	if err != nil {
		return nil, "", err
	}
	p.stops = append(p.stops, who.stop)
	if who.note != "" && !slices.Contains(p.notes, who.note) {
		p.notes = append(p.notes, who.note)
	}
	return who.model, who.name, nil
}

func (p *providers) stop() {
	for _, stop := range p.stops {
		stop()
	}
}

// Why the rehearsal model answers.
const (
	wanted   = "wanted"
	fallback = "fallback"
)

// rehearses says whether the rehearsal model answers, why, and by which script;
// "" is none.
func (c *endpointFlags) rehearses(file said, env environment) (script, why string, err error) {
	named, byFlag := rehearsal.ParseModel(c.Model)
	script, byFile := rehearsal.ParseModel(file.model)
	base, key, _ := c.address(file, env)
	switch {
	case c.Rehearsal && (c.BaseURL != "" || c.Model != "" && !byFlag):
		return "", "", usage(errors.New("--rehearsal does not go with --base-url or --model"))
	case byFlag && named != "": // as all paths on a command line, relative to the working directory
		full, err := filepath.Abs(named)
		return full, wanted, err
	case byFile && (c.Rehearsal || c.BaseURL == "" && c.Model == ""):
		return script, wanted, nil
	case byFlag, c.Rehearsal:
		return "", wanted, nil
	case base == "" && key.IsZero():
		return "", fallback, nil
	}
	return "", "", nil
}

// link is how an endpoint is reached.
type link struct {
	base, model string
	key         endpoint.Key
	account     string
	profile     *endpoint.Profile // nil: what the address and the answers tell
	table       *endpoint.Table
	api         string
	transport   string
	note        string
}

// link puts together what flags, file and environment say of the endpoint.
func (c *endpointFlags) link(file said, table *endpoint.Table, env environment) (*link, error) {
	l := &link{table: table, account: env["OPENAI_ACCOUNT"], transport: c.Transport}
	l.base, l.key, l.note = c.address(file, env)
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

// sayLosses tells what has no form in Chat Completions, each kind of thing
// once.
func sayLosses(std stdio) func([]completions.Loss) {
	var mu sync.Mutex
	told := map[string]bool{}
	return func(losses []completions.Loss) {
		mu.Lock()
		defer mu.Unlock()
		for _, l := range losses {
			if !told[l.What] {
				told[l.What] = true
				fmt.Fprintln(std.err, printable("antiphon: not sent, for Chat Completions has no place for it: "+l.String()))
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
// script's path is relative to the file; "" is none.
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
	note := "antiphon: the rehearsal model answers (" + by + "): no key, no network, no cost"
	if why == fallback {
		note = "antiphon: no endpoint is configured, so the rehearsal model answers (" + improvised + "); for a real one give --base-url or set OPENAI_API_KEY"
	}
	return &provider{model: client, name: rehearsal.Model, note: note, stop: stop}, nil
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
