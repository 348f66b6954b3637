// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/antiphon-go/antiphon/agentfile"
	"github.com/antiphon-go/antiphon/host"
	"github.com/antiphon-go/antiphon/internal/show"
	"github.com/antiphon-go/antiphon/session/store"
)

// errRefused is the result of --check if something would be refused.
func errRefused(bad int) error {
	if bad == 0 {
		return nil
	}
	return usage(fmt.Errorf("%s in the list above would be refused", show.Plural(bad, "thing")))
}

// showAgents prints the agents that would be served, and returns how many would be
// refused. Nothing of a file is started.
func (c *servedFlags) showAgents(ctx context.Context, what string, std stdio, env environment) (bad int, err error) {
	files, err := c.files(what)
	if err != nil {
		return 0, err
	}
	cfg, err := c.config(ctx, std, env)
	if err != nil {
		return 0, err
	}
	served := 0
	var tools offeredTools
	for _, file := range files {
		ok, err := c.showAgent(ctx, cfg, what, file, &tools, std, env)
		switch {
		case err == nil && ok:
			served++
		case err == nil:
			bad++
		case ctx.Err() != nil:
			return bad, ctx.Err()
		default:
			said := "left out"
			if slices.Contains(c.Files, file) {
				said = "refused"
				bad++
			}
			fmt.Fprintf(std.out, "%s %s: %s: %s\n", what, show.Visible(modelName(file)), said, show.Printable(leftOut(env, file, err)))
		}
	}
	if served == 0 && bad == 0 {
		return 0, usage(errors.New("none of the files can be served"))
	}
	if err := tools.check(cfg.Rules); err != nil && len(tools.files) > 0 {
		bad++
		fmt.Fprintf(std.out, "refused: %s\n", show.Printable(err.Error()))
	}
	return bad, nil
}

// showAgent prints what a file may do, and reports whether somebody has agreed to it.
func (c *servedFlags) showAgent(ctx context.Context, cfg host.Config, what, file string, tools *offeredTools, std stdio, env environment) (ok bool, err error) {
	t, err := newTruster(file, &c.trustFlags, std, env, nil)
	if err != nil {
		return false, err
	}
	options, err := fileOptions()
	if err != nil {
		return false, err
	}
	options.Check, options.Profiles, options.Known, options.Made = true, cfg.Endpoint.Table, t.knows, t.made
	options.Configured = cfg.Endpoint.Configured(env)
	f, err := agentfile.Load(ctx, file, options)
	if err != nil {
		return false, host.LoadError(err)
	}
	defer f.Close()
	tools.add(f)
	cfg.File = file
	by, err := c.answeredBy(ctx, cfg)
	if err != nil {
		return false, err
	}
	fmt.Fprintf(std.out, "%s %s: %s, answered by %s\n", what, show.Visible(modelName(file)), show.Visible(file), show.Visible(by))
	claim := f.Claim()
	for _, p := range claim.Powers {
		fmt.Fprintf(std.out, "  the file %s\n", show.Visible(p.String()))
	}
	if len(claim.Powers) == 0 {
		return true, nil
	}
	_, known, err := t.store.Find(claim)
	switch {
	case err != nil:
		return false, usage(err)
	case known:
		fmt.Fprintln(std.out, "  you have agreed to this")
	case c.Trust:
		fmt.Fprintln(std.out, "  --trust agrees to this")
	default:
		fmt.Fprintf(std.out, "  refused: nobody has agreed to this; antiphon trust %s\n", show.Visible(quoted(file)))
		return false, nil
	}
	return true, nil
}

// show prints what antiphon serve would serve, and returns an error if something would be
// refused.
func (c *serveCommand) show(ctx context.Context, std stdio, env environment) error {
	bad := 0
	if len(c.Files) > 0 {
		n, err := c.showAgents(ctx, "model", std, env)
		if err != nil {
			return err
		}
		bad += n
	}
	table, err := c.table(ctx, env)
	if err != nil {
		return err
	}
	ups, err := c.upstreams(&c.endpointFlags, table, env, len(c.Files) == 0)
	if err != nil {
		return err
	}
	c.sayUpstreams(std.out, "", ups, len(c.Files) > 0)
	place, _, err := c.at(env, true)
	if err != nil {
		return err
	}
	fmt.Fprintf(std.out, "sessions: %s\n", show.Visible(placeShown(place)))
	refuses := func(err error) {
		if err != nil {
			bad++
			fmt.Fprintf(std.out, "refused: %s\n", show.Printable(err.Error()))
		}
	}
	if c.TLSCert != "" && c.TLSKey != "" {
		_, err := tls.LoadX509KeyPair(c.TLSCert, c.TLSKey)
		refuses(err)
	}
	if err := c.mayListen(ctx, env); err != nil {
		refuses(err)
	} else {
		scheme := map[bool]string{true: "https", false: "http"}[c.TLSCert != ""]
		fmt.Fprintf(std.out, "listens: %s, %s, below %s/\n", show.Visible(c.Listen), scheme, c.Base)
	}
	if c.OTLP != "" {
		if _, err := newExporter(c.OTLP, env[otlpHeaders], nil); err != nil {
			refuses(fmt.Errorf("--otlp-endpoint: %w", err))
		} else {
			fmt.Fprintf(std.out, "spans: sent to %s\n", show.Visible(c.OTLP))
		}
	}
	if u, err := url.Parse(c.Webhook); err == nil && c.Webhook != "" { // the rest of it may be a secret
		fmt.Fprintf(std.out, "webhook: events are sent to %s\n", show.Visible(u.Host))
	}
	for _, origin := range c.Origins {
		fmt.Fprintf(std.out, "pages of %s may use it\n", origin)
	}
	if err := c.showKeys(std, env); err != nil {
		return err
	}
	if err := c.warnOfCosts(ctx, std, std.out, "warning: ", env, ups); err != nil {
		return err
	}
	return errRefused(bad)
}

// placeShown returns the place of a store without a password.
func placeShown(place string) string {
	if store.IsPath(place) {
		return place
	}
	scheme, _, _ := strings.Cut(place, ":")
	return scheme + "://…"
}

// showKeys prints whose keys are accepted, and for what.
func (c *serveCommand) showKeys(std stdio, env environment) error {
	keys, err := c.keysFlag.keys(env)
	if err != nil {
		return err
	}
	list, err := keys.List()
	if err != nil {
		return usage(err)
	}
	if c.Issuer != "" {
		fmt.Fprintf(std.out, "tokens of %s for %s: the project is the claim %s\n", show.Visible(c.Issuer), show.Visible(c.Audience), show.Visible(c.Claim))
	} else if len(list) == 0 {
		fmt.Fprintln(std.out, "keys: none; every program that reaches the address may do everything")
	}
	for i := range list {
		k := &list[i]
		fmt.Fprintf(std.out, "key %s: project %s, %s, %s, %s\n", show.Visible(k.Name), show.Visible(k.Project), scopesOf(k), keyLimits(&k.Limits), keyState(k, time.Now()))
	}
	return nil
}
