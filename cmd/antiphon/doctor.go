// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/antiphon-go/antiphon/agentfile"
	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/host"
	"github.com/antiphon-go/antiphon/internal/show"
	"github.com/antiphon-go/antiphon/rehearsal"
	"github.com/antiphon-go/antiphon/sandbox"
)

// doctorCommand is antiphon doctor.
type doctorCommand struct {
	File string `arg:"" optional:"" help:"An agent's file, to check its model and endpoint."`
	endpointFlags
	trustFlags
	Store    string        `placeholder:"PLACE" help:"Check a store of sessions instead: a file, postgres://…, or default for the default store."`
	StoreKey string        `name:"store-key" placeholder:"WHERE" help:"With --store: where the key of an encrypted store is, as with antiphon sessions."`
	Offline  bool          `help:"Check only the configuration; send nothing."`
	JSON     bool          `name:"json" help:"Print the findings as one JSON object on standard output."`
	Timeout  time.Duration `default:"60s" placeholder:"TIME" help:"Time limit for one probe."`
}

// Help is shown by antiphon doctor --help.
func (doctorCommand) Help() string {
	return `Says which endpoint and model would answer and why, then tries what the endpoint
can do: it looks at the effect of some twenty small requests of a few tokens each, which
a real endpoint may charge for. Without a configured endpoint, it tries the rehearsal model.

Marks: ok works, no does not (the request was refused, or taken and ignored), ?? the
model did not show it either way, !! failed, -- was not tried.

The exit code is 0 when a model answered, 3 when none did.

Examples:
  antiphon doctor --offline
  antiphon doctor --base-url http://localhost:11434/v1 --model qwen3
  antiphon doctor agent.md --json
  antiphon doctor --store default
  antiphon doctor --store private.db --store-key keyring`
}

// finding is one line of the report.
type finding struct {
	Name   string  `json:"name"`
	Result verdict `json:"result"`
	Note   string  `json:"note,omitzero"`
}

// verdict is the outcome of a probe.
type verdict string

const (
	works   verdict = "yes"
	missing verdict = "no"
	broken  verdict = "error"
	unclear verdict = "unclear" // the server may support it, but the model did not show it
	skipped verdict = "skipped"
	told    verdict = "info" // a fact about the configuration
)

// Run checks the configuration and the endpoint.
func (c *doctorCommand) Run(ctx context.Context, std stdio, env environment) error {
	switch {
	case c.Store != "":
		return c.lookAtStore(ctx, std, env)
	case c.StoreKey != "":
		return usage(errors.New("--store-key is about a store: give --store PLACE, or --store default, too"))
	}
	table, err := c.table(ctx, env)
	if err != nil {
		return err
	}
	file, err := c.file(ctx, std, env, table)
	if err != nil {
		return err
	}
	if file != nil {
		defer file.Close()
	}
	l, stop, err := c.subject(file, table, env)
	if err != nil {
		return err
	}
	defer stop()
	screen, std := onScreen(std, env, env["ANTIPHON_PLAIN"] != "")
	defer screen.Close()
	report := newDoctorReport(std, env, c.JSON)
	report.screen = screen
	report.section("Configuration", append(c.configuration(l, table, env), confinement(sandbox.Available())...))
	if c.Offline {
		return report.end(nil, true)
	}
	if err := c.probes(ctx, l, report); err != nil {
		return err
	}
	if !report.answered() {
		return report.end(nil, false)
	}
	return report.end(suggestion(report.prober, report.found), true)
}

// confinement says what programs are kept from on this machine, and what they are not.
func confinement(s sandbox.Support) (list []finding) {
	if s.Confines() {
		var parts []string
		for _, p := range s.Parts {
			parts = append(parts, string(p))
		}
		list = append(list, finding{"sandbox", told, "confines files, network and processes of commands and MCP servers, by " + strings.Join(parts, ", ")})
	} else {
		list = append(list, finding{"sandbox", told, "confines nothing: commands and MCP servers run with all your permissions"})
	}
	for _, missing := range s.Missing {
		list = append(list, finding{"no sandbox", told, missing})
	}
	return append(list, finding{"decoding", told, "images and PDF files are read in a process of their own, " + enclosure(s)})
}

// enclosure says what keeps a decoder from doing more, see package decode.
func enclosure(s sandbox.Support) string {
	switch {
	case s.Has(sandbox.Seccomp):
		return "which reaches no files, network or other processes"
	case s.Has(sandbox.Seatbelt):
		return "confined by " + string(sandbox.Seatbelt)
	}
	return "with limits of memory and time only: this system does not confine it"
}

// file reads the agent's file, if one is given.
func (c *doctorCommand) file(ctx context.Context, std stdio, env environment, table *endpoint.Table) (*agentfile.File, error) {
	if c.File == "" {
		return nil, nil
	}
	options, err := fileOptions()
	if err != nil {
		return nil, err
	}
	t, err := newTruster(c.File, &c.trustFlags, std, env, nil)
	if err != nil {
		return nil, err
	}
	options.Profiles, options.Check = table, true
	if !c.Offline {
		options.Consent, options.Configured = t.recorded(t.ask), c.endpoint(table).Configured(env)
	}
	file, err := agentfile.Load(ctx, c.File, options)
	if err != nil {
		return nil, usage(err)
	}
	return file, nil
}

// subject is the endpoint to check.
type subject struct {
	*host.Link
	notes []string // about its address
}

func (c *doctorCommand) subject(file *agentfile.File, table *endpoint.Table, env environment) (*subject, func(), error) {
	from := front(stdio{}, env, true)
	rehearsed, fallsBack, err := c.endpoint(table).Rehearses(file, from)
	if err != nil {
		return nil, nil, err
	}
	if !rehearsed {
		l, err := c.endpoint(table).Link(file, from)
		if err != nil {
			return nil, nil, err
		}
		s := &subject{Link: l}
		if l.KeptBack != "" {
			s.notes = []string{l.KeptBack}
		}
		return s, func() {}, nil
	}
	server := &rehearsal.Server{ReadOnly: func(string) bool { return true }}
	base, stop, err := server.Start()
	if err != nil {
		return nil, nil, fmt.Errorf("rehearsal: %w", err)
	}
	l := &subject{Link: &host.Link{BaseURL: base, Model: rehearsal.Model, Table: table, API: endpoint.APIResponses}, notes: []string{"the rehearsal model"}}
	if fallsBack {
		l.notes[0] += ", since no endpoint is configured: give --base-url or set OPENAI_API_KEY"
	}
	return l, stop, nil
}

// configuration describes the settings and their sources.
func (c *doctorCommand) configuration(l *subject, table *endpoint.Table, env environment) []finding {
	base := cmp.Or(l.BaseURL, endpoint.DefaultBaseURL)
	known, how := endpoint.Careful, "the address is not known"
	if l.Profile != nil {
		known, how = *l.Profile, "named"
	} else if u, err := endpoint.URL(base, "/"); err == nil {
		if known = table.Detect(u); known.Name != endpoint.Careful.Name {
			how = "known by its address"
		}
	}
	list := []finding{
		{"version", told, userAgent()},
		{"endpoint", told, strings.Join(append([]string{shownURL(base)}, l.notes...), ", ")},
		{"profile", told, known.Name + " (" + how + ")"},
		{"api", told, l.API},
		{"key", told, keyNote(l, known, env)},
		{"model", told, modelNote(l.Model, table)},
	}
	if c.Profiles != "" || env["ANTIPHON_PROFILES"] != "" {
		list = append(list, finding{"profiles", told, "from " + cmp.Or(c.Profiles, env["ANTIPHON_PROFILES"])})
	}
	return list
}

func shownURL(base string) string {
	u, err := url.Parse(base)
	if err != nil {
		return base
	}
	return endpoint.ShowURL(u)
}

func keyNote(l *subject, known endpoint.Profile, env environment) string {
	switch {
	case l.Kept:
		return "of antiphon login, sent to this endpoint only"
	case !l.Key.IsZero():
		return "OPENAI_API_KEY, sent to this endpoint only"
	case env["OPENAI_API_KEY"] != "" && l.BaseURL != "":
		return "no key is sent here; OPENAI_API_KEY is withheld"
	case known.Name == "openai":
		return "none; " + known.KeyHint
	}
	return "none"
}

func modelNote(name string, table *endpoint.Table) string {
	if name == "" {
		return "no model is given: the first model that the endpoint lists is tried"
	}
	m, ok := table.Model(name)
	if !ok {
		return name + " (not in the table: no requests are refused for it)"
	}
	facts := []string{"known"}
	if m.Reasoning == endpoint.Yes {
		facts = append(facts, "reasons")
	}
	if m.Images == endpoint.Yes {
		facts = append(facts, "sees images")
	}
	if m.ContextWindow > 0 {
		facts = append(facts, fmt.Sprintf("%d tokens of context", m.ContextWindow))
	}
	return name + " (" + strings.Join(facts, ", ") + ")"
}

// doctorReport prints findings one by one.
type doctorReport struct {
	std    stdio
	json   bool
	colour bool
	screen *show.Screen
	hide   func(string) string // an endpoint's answer may repeat the key
	config []finding
	found  []finding
	prober *prober
}

func newDoctorReport(std stdio, env environment, asJSON bool) *doctorReport {
	return &doctorReport{std: std, json: asJSON, hide: env.Hider(), colour: show.IsTerminal(std.out) && env["NO_COLOR"] == "" && env["TERM"] != "dumb"}
}

// section prints the facts of the configuration.
func (r *doctorReport) section(title string, list []finding) {
	for i := range list {
		list[i].Note = r.hide(list[i].Note)
	}
	r.config = list
	if r.json {
		return
	}
	fmt.Fprintf(r.std.out, "%s\n", title)
	for _, f := range list {
		mark := ""
		if f.Result == broken {
			mark = "!! "
		}
		fmt.Fprintf(r.std.out, "  %-10s %s%s\n", f.Name, mark, show.Printable(f.Note))
	}
}

var marks = map[verdict]struct{ sign, colour string }{
	works: {"ok", show.Green}, missing: {"no", show.Dim}, broken: {"!!", show.Red}, unclear: {"??", show.Dim}, skipped: {"--", show.Dim},
}

// begin prints the heading of the probes.
func (r *doctorReport) begin() {
	if !r.json {
		fmt.Fprintf(r.std.out, "\nProbes\n")
	}
}

// add prints the finding of a probe.
func (r *doctorReport) add(f finding) {
	f.Note = r.hide(show.Printable(r.hide(f.Note)))
	if f.Result != works && !strings.Contains(f.Note, "\n") {
		f.Note = show.Shorten(f.Note, 240)
	}
	r.found = append(r.found, f)
	if r.json {
		return
	}
	mark := marks[f.Result]
	sign := mark.sign
	if r.colour {
		sign = "\x1b[" + mark.colour + "m" + sign + "\x1b[0m"
	}
	fmt.Fprintf(r.std.out, "  %s %-28s %s\n", sign, f.Name, show.Printable(f.Note))
}

// answered reports whether a model replied.
func (r *doctorReport) answered() bool {
	for _, f := range r.found {
		if f.Result == works && (f.Name == probeCreate || f.Name == probeStream || f.Name == probeChat) {
			return true
		}
	}
	return false
}

// end prints the rest: a profile for the findings.
func (r *doctorReport) end(profile jsontext.Value, ok bool) error {
	switch {
	case r.json:
		out := struct {
			Configuration []finding      `json:"configuration"`
			Probes        []finding      `json:"probes,omitzero"`
			Profile       jsontext.Value `json:"profile,omitzero"`
		}{r.config, r.found, profile}
		text, err := json.Marshal(out, jsontext.Multiline(true), json.Deterministic(true))
		if err != nil {
			return err
		}
		fmt.Fprintf(toJSON(r.std.out), "%s\n", text)
	case profile != nil:
		fmt.Fprintf(toJSON(r.std.out), "\nA profile for these findings; save it to a file and give the file with --profiles:\n%s\n", profile)
	}
	if !ok {
		why := "no model answered; the lines above say why"
		if r.prober != nil && r.prober.hint != "" {
			why += ": " + r.hide(show.Printable(r.prober.hint))
		}
		return &exitError{exitProvider, errors.New(why)}
	}
	return nil
}
