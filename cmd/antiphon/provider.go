// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
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

func rehearsed(model string) bool {
	_, ok := rehearsal.ParseModel(model)
	return ok
}

// provider chooses who answers. The rehearsal does when it is asked for on the
// command line, when the file asks for it and the command line names nobody
// else, and when nothing else is configured.
func (c *runCommand) provider(file *agentfile.File, env environment) (*provider, error) {
	asked := file.Model()
	switch {
	case c.Rehearsal && (c.BaseURL != "" || c.Model != "" && !rehearsed(c.Model)):
		return nil, usage(errors.New("--rehearsal does not go with --base-url or --model"))
	case c.Rehearsal:
		if !rehearsed(asked) {
			asked = rehearsal.Model
		}
		return c.rehearse(file, asked)
	case rehearsed(c.Model):
		return c.rehearse(file, c.Model)
	case rehearsed(asked) && c.BaseURL == "" && c.Model == "":
		return c.rehearse(file, asked)
	}
	if rehearsed(asked) {
		asked = ""
	}
	base, key := c.endpoint(file, env)
	if base == "" && key.IsZero() {
		return c.rehearse(file, rehearsal.Model)
	}
	name := cmp.Or(c.Model, asked, env["OPENAI_MODEL"])
	if name == "" {
		return nil, usage(errors.New(`no model is named; give --model NAME, or <config model="NAME"/> in the file`))
	}
	client := &responses.Client{BaseURL: base, Key: key, UserAgent: "antiphon/" + programVersion()}
	return &provider{model: client, name: name, stop: func() {}}, nil
}

// endpoint returns the base URL and the key that may go there. The key belongs
// to the person who runs the program: a file's own base_url gets it only where
// the environment names the same host.
func (c *runCommand) endpoint(file *agentfile.File, env environment) (base string, key endpoint.Key) {
	key = endpoint.NewKey(env["OPENAI_API_KEY"])
	fromEnv := env["OPENAI_BASE_URL"]
	fromFile := file.BaseURL()
	if c.BaseURL != "" || fromFile == "" {
		return cmp.Or(c.BaseURL, fromEnv), key
	}
	if !sameHost(fromFile, cmp.Or(fromEnv, endpoint.DefaultBaseURL)) {
		key = endpoint.Key{}
	}
	return fromFile, key
}

func sameHost(a, b string) bool {
	u, errA := url.Parse(a)
	v, errB := url.Parse(b)
	return errA == nil && errB == nil && u.Host != "" && strings.EqualFold(u.Host, v.Host) && u.Scheme == v.Scheme
}

// rehearse starts the rehearsal's server on loopback and a client of it.
func (c *runCommand) rehearse(file *agentfile.File, model string) (*provider, error) {
	server := &rehearsal.Server{ReadOnly: readOnly(file.Tools)}
	by := "it calls each tool that only reads, once"
	if path, _ := rehearsal.ParseModel(model); path != "" {
		script, err := file.Script(path)
		if err != nil {
			return nil, usage(err)
		}
		server.Script = script
		by = "scripted by " + path
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
