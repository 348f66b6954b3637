// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/host"
	"github.com/antiphon-go/antiphon/internal/show"
	"github.com/antiphon-go/antiphon/session"
)

// profilesFlag is the flag for a file of profiles.
type profilesFlag struct {
	Profiles string `placeholder:"FILE" help:"A JSON file that adds or changes profiles of endpoints and models. Default: $$ANTIPHON_PROFILES."`
}

// table reads the file of profiles, if one is given.
func (c *profilesFlag) table(ctx context.Context, env environment) (*endpoint.Table, error) {
	if err := env.Filled("ANTIPHON_PROFILES"); err != nil && c.Profiles == "" {
		return nil, err
	}
	path := cmp.Or(c.Profiles, env["ANTIPHON_PROFILES"])
	if path == "" {
		return nil, nil
	}
	data, err := readAtMost(ctx, path, maxSchema)
	if err != nil {
		from := "--profiles"
		if c.Profiles == "" {
			from = "$ANTIPHON_PROFILES"
		}
		return nil, usage(fmt.Errorf("%s %w", from, err))
	}
	table, err := endpoint.LoadProfiles(data, path)
	if err != nil {
		return nil, usage(err)
	}
	return table, nil
}

// endpointFlags are the flags that select the endpoint.
type endpointFlags struct {
	Model     string `short:"m" placeholder:"NAME" help:"The model to ask, instead of the file's."`
	BaseURL   string `name:"base-url" placeholder:"URL" help:"The endpoint, such as http://localhost:11434/v1. Default: the file's, $$OPENAI_BASE_URL, or OpenAI's if $$OPENAI_API_KEY is set."`
	Profile   string `placeholder:"NAME" help:"What kind of endpoint it is, such as openai, llama.cpp or vllm. Default: the file's, or detected from the address."`
	API       string `name:"api" default:"auto" help:"Speak the Responses API or Chat Completions (responses, chat). Default: what the endpoint's profile prefers."`
	Transport string `enum:"http,continue,websocket" default:"http" help:"How requests carry the conversation: all of it each time (http), or only the new items (continue: by previous_response_id; websocket: over one connection)."`
	Rehearsal bool   `help:"Let the rehearsal model answer: no key, no network, no cost."`
	profilesFlag
}

// replyFlags are the flags about the model's replies.
type replyFlags struct {
	Effort      string   `placeholder:"EFFORT" help:"How much the model reasons, instead of the file's: none, minimal, low, medium, high, xhigh or max, as the model has them."`
	Temperature *float64 `placeholder:"T" help:"The sampling temperature, instead of the file's, such as 0.2."`
}

// ruleFlags are the rules about tools of commands at a terminal.
type ruleFlags struct {
	Allow []string `placeholder:"TOOL" sep:"," help:"Tools of the file, and built-in tools, that may run without approval; * means all, also those of other agents' files."`
	Ask   []string `placeholder:"TOOL" sep:"," help:"Tools that need approval. Overrides --allow."`
	Deny  []string `placeholder:"TOOL" sep:"," help:"Tools that must not run. Overrides all others."`
}

// rules returns the rules of --deny, --ask and --allow.
func (f *ruleFlags) rules() (list []session.Rule) {
	for _, flag := range []struct {
		verdict  session.Verdict
		name     string
		patterns []string
	}{{session.Deny, "--deny", f.Deny}, {session.Ask, "--ask", f.Ask}, {session.Allow, "--allow", f.Allow}} {
		for _, pattern := range flag.patterns {
			list = append(list, session.Rule{Verdict: flag.verdict, Tool: pattern, From: flag.name})
		}
	}
	return list
}

// endpoint returns the endpoint that the flags select.
func (c *endpointFlags) endpoint(table *endpoint.Table) host.Endpoint {
	e := host.Endpoint{Model: c.Model, BaseURL: c.BaseURL, Profile: c.Profile, API: c.API, Transport: c.Transport, Rehearsal: c.Rehearsal, Table: table}
	if e.API == "auto" {
		e.API = ""
	}
	return e
}

// terms maps the settings of a [host.Config] to the names this program uses for
// them.
var terms = host.SettingNames{
	"Endpoint.Model":     "--model NAME",
	"Endpoint.BaseURL":   "--base-url URL",
	"Endpoint.Profile":   "--profile NAME",
	"Endpoint.API":       "--api NAME",
	"Endpoint.Transport": "--transport",
	"Endpoint.Rehearsal": "--rehearsal",
	"Session":            "--session NAME",
	"Last":               "--last",
	"Owner":              "--owner",
	"Outputs":            "--spill FOLDER",
	"Variables":          "--env NAME@HOST",
	"Sandbox":            "--sandbox PROFILE",
	"Hosts":              "--hosts HOST",
	"Compaction.By":      "--by dropping",
	"Key":                "antiphon login openai",
}

// front returns the description of this program for package host. If quiet is set,
// notices that everything works as expected are left out.
func front(std stdio, env environment, quiet bool) host.FrontEnd {
	return host.FrontEnd{Environment: env, Program: "antiphon " + programVersion(), Terms: terms, Notify: func(n host.Notice) {
		if !quiet || !goesWell(n.Kind) {
			fmt.Fprintln(std.err, noticeText(n))
		}
	}}
}

// goesWell reports whether a notice only says that everything works as expected.
func goesWell(kind host.NoticeKind) bool {
	return slices.Contains([]host.NoticeKind{host.NoticeAnswers, host.NoticeAsking, host.NoticeNew, host.NoticeContinues}, kind)
}

// noticeText returns a notice as a line for the terminal.
func noticeText(n host.Notice) string {
	switch n.Kind {
	case host.NoticeFile:
		return show.Printable(n.Text) // with its place, and perhaps a hint
	case host.NoticeRehearsed, host.NoticeMissing, host.NoticeSaved:
		return "!! " + show.Unbroken(n.Text)
	case host.NoticeRule, host.NoticeUnused: // else they look like errors that ended the run
		return "antiphon: warning: " + show.Unbroken(n.Text)
	case host.NoticeNotBeside:
		return "!! " + show.Unbroken(n.Text) + "; with -o FILE it is kept beside that, in .chatmd"
	}
	return "antiphon: " + show.Unbroken(n.Text)
}

func userAgent() string { return "antiphon/" + programVersion() }
