// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
	"time"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/agentfile"
	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/rehearsal"
	"github.com/antiphon-go/antiphon/responses"
	"github.com/antiphon-go/antiphon/tool"
)

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
func (c *runCommand) provider(file *agentfile.File, env environment, std stdio) (*provider, error) {
	named, wanted := rehearsal.ParseModel(c.Model)
	script, asked := rehearsal.ParseModel(file.Model())
	switch {
	case c.Rehearsal && (c.BaseURL != "" || c.Model != "" && !wanted):
		return nil, usage(errors.New("--rehearsal does not go with --base-url or --model"))
	case wanted && named != "": // as all paths on a command line, relative to the working directory
		full, err := filepath.Abs(named)
		if err != nil {
			return nil, err
		}
		return rehearse(file, full)
	case asked && (c.Rehearsal || c.BaseURL == "" && c.Model == ""):
		return rehearse(file, script)
	case wanted, c.Rehearsal:
		return rehearse(file, "")
	}
	base, key, note := c.endpoint(file, env)
	if base == "" && key.IsZero() {
		return fallback(file)
	}
	if _, err := endpoint.URL(cmp.Or(base, endpoint.DefaultBaseURL), endpoint.Generic.ResponsesPath); err != nil {
		return nil, err
	}
	name := c.Model
	if name == "" && !asked {
		name = file.Model()
	}
	if name = cmp.Or(name, env["OPENAI_MODEL"]); name == "" {
		return nil, usage(errors.New(`no model is named: give --model NAME, set OPENAI_MODEL, or write <config model="NAME"/> in the file`))
	}
	client := &responses.Client{BaseURL: base, Key: key, UserAgent: "antiphon/" + programVersion(), OnRetry: sayRetry(std)}
	return &provider{model: client, name: name, note: note, stop: func() {}}, nil
}

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

// endpoint returns the base URL and the key that may go there. The key belongs
// to the person who runs the program: a file's own base_url gets it only where
// the environment names the same host; the note says so where it does not.
func (c *runCommand) endpoint(file *agentfile.File, env environment) (base string, key endpoint.Key, note string) {
	key = endpoint.NewKey(env["OPENAI_API_KEY"])
	fromEnv := env["OPENAI_BASE_URL"]
	fromFile := file.BaseURL()
	if c.BaseURL != "" || fromFile == "" {
		return cmp.Or(c.BaseURL, fromEnv), key, ""
	}
	if !key.IsZero() && !sameHost(fromFile, cmp.Or(fromEnv, endpoint.DefaultBaseURL)) {
		key = endpoint.Key{}
		note = "antiphon: OPENAI_API_KEY is not sent to the base_url of the file; name it with --base-url to send it"
	}
	return fromFile, key, note
}

func sameHost(a, b string) bool {
	u, errA := url.Parse(a)
	v, errB := url.Parse(b)
	return errA == nil && errB == nil && u.Host != "" && strings.EqualFold(u.Host, v.Host) && u.Scheme == v.Scheme
}

// improvised says what the rehearsal does without a script.
const improvised = "it calls each tool that only reads, once"

// fallback is the rehearsal where nothing else is configured.
func fallback(file *agentfile.File) (*provider, error) {
	p, err := rehearse(file, "")
	if err == nil {
		p.note = "antiphon: no endpoint is configured, so the rehearsal model answers (" + improvised + "); for a real one give --base-url or set OPENAI_API_KEY"
	}
	return p, err
}

// rehearse starts the rehearsal's server on loopback and a client of it. The
// script's path is relative to the file; "" is none.
func rehearse(file *agentfile.File, script string) (*provider, error) {
	server := &rehearsal.Server{ReadOnly: readOnly(file.Tools)}
	by := improvised
	if script != "" {
		var err error
		if server.Script, err = file.Script(script); err != nil {
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
