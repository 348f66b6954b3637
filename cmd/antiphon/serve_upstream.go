// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"io"
	"log"
	"net/url"
	"slices"
	"strings"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/dialect"
	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/host"
	"github.com/antiphon-go/antiphon/internal/show"
	"github.com/antiphon-go/antiphon/server/gateway"
)

// upstreamFlags are the flags of antiphon serve for endpoints that it serves.
type upstreamFlags struct {
	Upstream     []string `group:"who" sep:"none" placeholder:"[MODELS=]URL" help:"Serve the models of an endpoint. MODELS says which: a name, a beginning such as gpt-*, or a name in front such as local/. May be repeated; the next one with the same MODELS is asked if one cannot answer."`
	UpstreamKey  []string `group:"who" name:"upstream-key" sep:"," placeholder:"NAME@HOST" help:"Send the key in the variable NAME to the upstreams at HOST. May be repeated. Default: $$OPENAI_API_KEY goes to a single upstream, or to the one at $$OPENAI_BASE_URL."`
	Counted      []string `group:"who" sep:"," placeholder:"HOST" help:"Count the tokens of requests at the upstreams at HOST also if they have no way to do it: the model is asked for the shortest reply, which costs what the input costs each time. May be repeated."`
	AccountIDs   bool     `group:"may" name:"account-ids" help:"Clients may name files, vector stores, containers, prompts and skills of the accounts at the upstreams by their ids. All clients share these accounts."`
	UpstreamNote bool     `group:"who" name:"upstream-log" help:"Print a line for each response of an upstream: who was asked, and with what result."`
}

// upstreams returns the endpoints that the flags name. alone says that no agents are served
// beside them, for which the key of the environment is.
func (c *upstreamFlags) upstreams(at *endpointFlags, table *endpoint.Table, env environment, alone bool) (list []gateway.Upstream, err error) {
	keys, err := c.keys(env)
	if err != nil {
		return nil, err
	}
	for _, at := range c.Counted {
		if !c.named(at) {
			return nil, usage(fmt.Errorf("--counted: no --upstream is at %s", show.Visible(at)))
		}
	}
	for _, given := range c.Upstream {
		models, address := splitUpstream(given)
		e := at.endpoint(table)
		e.Model, e.BaseURL, e.Rehearsal, e.Transport = "", address, false, ""
		said := ""
		switch trimmed := strings.TrimRight(address, "/"); { // the whole address says which API it is
		case strings.HasSuffix(trimmed, "/chat/completions"):
			said = endpoint.APIChat
		case strings.HasSuffix(trimmed, "/responses"):
			said = endpoint.APIResponses
		}
		if said != "" && e.API != "" && e.API != said {
			return nil, usage(fmt.Errorf("--upstream %s is of another API than --api %s: leave --api out, or the end of the URL", show.Visible(address), e.API))
		}
		e.API = cmp.Or(e.API, said)
		for _, end := range []string{"/chat/completions", "/responses"} {
			e.BaseURL = strings.TrimSuffix(strings.TrimRight(e.BaseURL, "/"), end)
		}
		link, err := e.Link(nil, host.FrontEnd{Environment: env, Terms: terms})
		if err != nil {
			return nil, usage(fmt.Errorf("--upstream: %w", err))
		}
		config := link.Config()
		config.UserAgent = userAgent()
		if key, ok := keys[strings.ToLower(link.Host)]; ok {
			config.Key = key
		} else if !link.Kept && !c.theirs(link, env, alone) {
			config.Key, config.Account = endpoint.Key{}, ""
		}
		counted := slices.ContainsFunc(c.Counted, func(at string) bool { return strings.EqualFold(at, link.Host) })
		list = append(list, gateway.Upstream{Models: models, Dialect: link.Dialect, Config: config, Counted: counted})
	}
	return list, nil
}

// splitUpstream splits the value of --upstream. The models end at the first = in front of
// the scheme; a URL may have others.
func splitUpstream(given string) (models, address string) {
	before, after, ok := strings.Cut(given, "=")
	if ok && !strings.Contains(before, "://") {
		return before, after
	}
	return "", given
}

// theirs reports whether the key of the environment is for an upstream: if it is the only
// one, or at the address that the environment names. B5
func (c *upstreamFlags) theirs(l *host.Link, env environment, alone bool) bool {
	if alone && len(c.Upstream) == 1 {
		return true
	}
	own, err := url.Parse(cmp.Or(env["OPENAI_BASE_URL"], endpoint.DefaultBaseURL))
	at, wrong := url.Parse(l.BaseURL)
	return err == nil && wrong == nil && own.Scheme == at.Scheme && strings.EqualFold(own.Host, at.Host)
}

// named reports whether an upstream is at a host.
func (c *upstreamFlags) named(host string) bool {
	return slices.ContainsFunc(c.Upstream, func(given string) bool {
		_, address := splitUpstream(given)
		parsed, err := url.Parse(address)
		return err == nil && strings.EqualFold(parsed.Host, host)
	})
}

// keys returns the keys by host.
func (c *upstreamFlags) keys(env environment) (map[string]endpoint.Key, error) {
	keys := map[string]endpoint.Key{}
	for _, given := range c.UpstreamKey {
		name, at, ok := strings.Cut(given, "@")
		if !ok || name == "" || at == "" {
			return nil, usage(fmt.Errorf("--upstream-key %s: want NAME@HOST, such as MY_KEY@api.example.com", show.Visible(given)))
		}
		if env[name] == "" {
			return nil, usage(fmt.Errorf("--upstream-key: the variable %s is not set", show.Visible(name)))
		}
		if !c.named(at) {
			return nil, usage(fmt.Errorf("--upstream-key: no --upstream is at %s", show.Visible(at)))
		}
		keys[strings.ToLower(at)] = endpoint.NewKey(env[name])
	}
	return keys, nil
}

// gateway returns the backend for the upstreams. costs tells what their answers cost.
func (c *upstreamFlags) gateway(ups []gateway.Upstream, costs func(model, baseURL string, used *api.Usage) float64, std stdio, hide func(string) string) *gateway.Backend {
	errorLog := log.New(hider{std, hide}, "antiphon: ", 0)
	b := &gateway.Backend{Upstreams: ups, AccountIDs: c.AccountIDs, Cost: costs, Log: func(err error) { errorLog.Print(err) }}
	if c.UpstreamNote {
		b.Made = func(r gateway.Record) { errorLog.Print(r) }
	}
	return b
}

// sayUpstreams tells which upstreams there are, and which get a key. Each line begins with
// before. beside says that agents are served, too.
func (c *upstreamFlags) sayUpstreams(to io.Writer, before string, ups []gateway.Upstream, beside bool) {
	for _, u := range ups {
		models := "all models"
		if beside || len(ups) > 1 {
			models = "all other models"
		}
		if u.Models != "" {
			models = "the models " + u.Models
		}
		key := "without a key"
		if !u.Config.Key.IsZero() {
			key = "with a key"
		}
		about := dialect.Client{Config: u.Config, Dialect: u.Dialect}.About()
		fmt.Fprintf(to, before+"%s are asked at %s by %s, %s\n", show.Visible(models), show.Visible(about.URL), u.Dialect.Info().Title, key)
	}
	if c.AccountIDs && len(ups) > 0 {
		fmt.Fprintln(to, before+"clients may name what is in the accounts of the upstreams by ids")
	}
}
