// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/antiphon-go/antiphon/host"
	"github.com/antiphon-go/antiphon/platform"
)

// modelsCommand is antiphon models.
type modelsCommand struct {
	BaseURL string `name:"base-url" placeholder:"URL" help:"The endpoint, such as http://localhost:11434/v1. Default: $$OPENAI_BASE_URL, or OpenAI's if $$OPENAI_API_KEY is set."`
	Profile string `placeholder:"NAME" help:"What kind of endpoint it is, such as openai, llama.cpp or vllm. Default: detected from the address."`
	profilesFlag
	JSON bool `name:"json" help:"Print one JSON object for each model, as the endpoint describes it."`
}

// Help is shown by antiphon models --help.
func (modelsCommand) Help() string {
	return `Prints the names of the models that the endpoint offers, one on each line, in the
order of the endpoint. It asks for the list and for nothing else.

Examples:
  antiphon models
  antiphon models --base-url http://localhost:11434/v1
  antiphon models --json`
}

// Run lists the models.
func (c *modelsCommand) Run(ctx context.Context, std stdio, env environment) error {
	table, err := c.table(env)
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
		return usage(errors.New("no endpoint is configured: give --base-url URL or set OPENAI_API_KEY"))
	}
	l, err := at.Link(nil, from)
	if err != nil {
		return err
	}
	config := l.Config()
	config.UserAgent = userAgent()
	for m, err := range (*platform.Client)(config).Models(ctx) {
		if err != nil {
			return err
		}
		line, out := printable(env.Hide(m.ID)), std.out
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
