// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/antiphon-go/antiphon/dialect"
	"github.com/antiphon-go/antiphon/host"
	"github.com/antiphon-go/antiphon/internal/show"
	"github.com/antiphon-go/antiphon/platform"
)

// modelsCommand is antiphon models.
type modelsCommand struct {
	BaseURL string `name:"base-url" placeholder:"URL" help:"The endpoint, such as http://localhost:11434/v1. Default: $$OPENAI_BASE_URL, or OpenAI's if $$OPENAI_API_KEY is set."`
	Profile string `placeholder:"NAME" help:"What kind of endpoint it is, such as openai, llama.cpp or vllm. Default: detected from the address."`
	profilesFlag
	JSON    bool          `name:"json" help:"Print one JSON object for each model, as the endpoint describes it."`
	Timeout time.Duration `default:"30s" placeholder:"TIME" help:"Time limit for the list."`
}

// Help is shown by antiphon models --help.
func (modelsCommand) Help() string {
	return `Prints the names of the models that the endpoint offers, one on each line, in the
order of the endpoint. It asks for the list and for nothing else. Lines on standard error
say for which endpoints there is no key: this one, and those of your settings.

Examples:
  antiphon models
  antiphon models --base-url http://localhost:11434/v1
  antiphon models --json`
}

// Run lists the models.
func (c *modelsCommand) Run(ctx context.Context, std stdio, env environment, own settings) error {
	if c.BaseURL == "" {
		if err := own.sayKeyless(std.err, env); err != nil {
			return err
		}
	}
	table, err := c.table(ctx, env)
	if err != nil {
		return err
	}
	at := host.Endpoint{BaseURL: c.BaseURL, Profile: c.Profile, Table: table}
	from := front(stdio{}, env, true)
	rehearsed, _, err := at.Rehearses(nil, from)
	switch {
	case err != nil:
		return err
	case rehearsed:
		return usage(errors.New("no endpoint is configured: give --base-url URL, set OPENAI_API_KEY, or keep a key with antiphon login openai"))
	}
	l, err := at.Link(nil, from)
	if err != nil {
		return err
	}
	if name, _, _ := strings.Cut(l.Host, ":"); l.Key.IsZero() && !here(name) {
		fmt.Fprintf(std.err, "antiphon: no key is sent to %s; antiphon login %s keeps one\n", show.Visible(l.Host), show.Visible(quoted(l.Host)))
	}
	config := l.Config()
	config.UserAgent = userAgent()
	if c.Timeout <= 0 {
		return usage(errors.New("--timeout takes a positive time such as 30s"))
	}
	limited, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	screen, std := onScreen(std, env, env["ANTIPHON_PLAIN"] != "")
	defer screen.Close()
	screen.Wait("models", show.Visible(l.Host))
	err = c.print(limited, std, env, config)
	if err != nil && ctx.Err() == nil && errors.Is(limited.Err(), context.DeadlineExceeded) {
		return &exitError{exitProvider, fmt.Errorf("%s did not list its models within %s; check the address, or give it longer with --timeout", show.Visible(l.Host), show.Duration(c.Timeout))}
	}
	return err
}

// print prints the models of an endpoint.
func (c *modelsCommand) print(ctx context.Context, std stdio, env environment, config *dialect.Config) error {
	for m, err := range (*platform.Client)(config).Models(ctx) {
		if err != nil {
			return err
		}
		line, out := show.Printable(env.Hide(m.ID)), std.out
		if c.JSON {
			text, err := m.MarshalJSON()
			if err != nil {
				return err
			}
			object := jsontext.Value(text)
			if err := object.Compact(); err != nil { // an endpoint may spread its values over lines
				return err
			}
			line, out = env.Hide(string(object)), toJSON(out)
		}
		if _, err := fmt.Fprintln(out, line); err != nil {
			return err
		}
	}
	return nil
}

// sayKeyless says for which endpoints of the settings no key is kept.
func (s *settings) sayKeyless(w io.Writer, env environment) error {
	kept, err := readKept(env)
	if err != nil {
		return err
	}
	for _, name := range s.keyless(kept) {
		u, err := url.Parse(s.endpoints[name])
		if s.endpoints[name] == env["OPENAI_BASE_URL"] || err == nil && here(u.Hostname()) {
			continue // it is the one that is asked, or gets a key only if its owner wants it
		}
		if _, err := fmt.Fprintf(w, "antiphon: no key is kept for %s (%s); antiphon login %[1]s keeps one\n", name, show.Visible(s.endpoints[name])); err != nil {
			return err
		}
	}
	return nil
}
