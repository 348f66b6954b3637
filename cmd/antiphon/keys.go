// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/antiphon-go/antiphon/internal/excerpt"
	"github.com/antiphon-go/antiphon/internal/show"
	"github.com/antiphon-go/antiphon/server/access"
)

// keysCommand is antiphon keys.
type keysCommand struct {
	Create keysCreateCommand `cmd:"" help:"Create a key, and print it once."`
	List   keysListCommand   `cmd:"" help:"List the keys, without their secrets."`
	Revoke keysRevokeCommand `cmd:"" help:"End a key at once."`

	keysFlag
	JSON bool `name:"json" help:"Print JSON."`
}

// Help is shown by antiphon keys --help.
func (keysCommand) Help() string {
	return `Keys are for the clients of antiphon serve, which send them as a bearer token. As soon
as there is a key, also a revoked one, every request needs a key; a running server
notices new and revoked keys. What is made with a key belongs to its project: keys of
other projects cannot find it.

Scopes are models (make responses), read (read what is stored), urls (give URLs that
are fetched for the client), sessions (read whole sessions, say something to them and stop
them), approve (answer requests for approval) and admin (read /metrics).

Examples:
  antiphon keys create ci --project shop --expires 90d --requests 60 --cost 5
  antiphon keys create lead --project shop --scopes sessions,approve
  antiphon keys list
  antiphon keys revoke ci`
}

// keysCreateCommand is antiphon keys create.
type keysCreateCommand struct {
	Name     string   `arg:"" help:"A name for the key, which logs and antiphon usage show."`
	Project  string   `default:"default" help:"The project that owns what is made with the key."`
	Scopes   []string `default:"models,read" sep:"," placeholder:"SCOPE" help:"What the key may do: models, read, urls, sessions, approve, admin. The default is models,read."`
	Expires  string   `placeholder:"TIME" help:"When the key ends: after a time such as 12h or 90d, or on a day such as 2027-05-31."`
	Requests *int64   `placeholder:"N" help:"At most N requests a minute."`
	Tokens   *int64   `placeholder:"N" help:"At most N tokens a minute."`
	Runs     *int64   `placeholder:"N" help:"At most N responses at once."`
	Cost     *float64 `placeholder:"COST" help:"At most this cost a day, in the unit of the agents' prices."`
	Trial    bool     `help:"The limits refuse nothing: what they would refuse is logged and counted."`
}

// Help is shown by antiphon keys create --help.
func (keysCreateCommand) Help() string {
	return `Prints the key once and stores only its hash: a key that is lost is revoked and made
again. A server that runs with this file of keys notices it. With the first key, the server
begins to refuse requests without one.

Examples:
  antiphon keys create anna
  antiphon keys create ci --project shop --expires 90d --requests 60 --cost 5
  antiphon keys create lead --project shop --scopes sessions,approve`
}

// Run creates a key.
func (c *keysCreateCommand) Run(ctx context.Context, std stdio, env environment, all *keysCommand) error {
	keys, err := all.keys(env)
	if err != nil {
		return err
	}
	key := access.Key{Name: c.Name, Project: c.Project}
	if key.Limits, err = c.limits(); err != nil {
		return err
	}
	for _, s := range c.Scopes {
		key.Scopes = append(key.Scopes, access.Scope(strings.TrimSpace(s)))
	}
	if key.Expires, err = later(c.Expires, time.Now()); err != nil {
		return err
	}
	sent, made, err := keys.Create(ctx, key)
	if err != nil {
		return usage(err)
	}
	if all.JSON {
		return json.MarshalWrite(toJSON(std.out), struct {
			Sent string `json:"key"`
			access.Key
		}{sent, made}, jsontext.WithIndent("  "))
	}
	fmt.Fprintln(std.out, sent)
	fmt.Fprintf(std.err, "antiphon: the key %s of the project %s: keep it now, it cannot be shown again\n", made.Name, made.Project)
	return nil
}

// limits returns the limits of the key. A limit of 0 would be none.
func (c *keysCreateCommand) limits() (access.Limits, error) {
	l := access.Limits{Trial: c.Trial}
	for _, one := range []struct {
		name  string
		given *int64
		to    *int64
	}{{"--requests", c.Requests, &l.Requests}, {"--tokens", c.Tokens, &l.Tokens}, {"--runs", c.Runs, &l.Running}} {
		switch {
		case one.given == nil:
		case *one.given < 1:
			return l, usage(fmt.Errorf("%s %d: it must be at least 1; leave it out for no limit", one.name, *one.given))
		default:
			*one.to = *one.given
		}
	}
	if c.Cost != nil {
		if l.Cost = *c.Cost; !(l.Cost > 0) {
			return l, usage(fmt.Errorf("--cost %v: it must be more than 0; leave it out for no limit", l.Cost))
		}
	}
	return l, nil
}

// later reads a time in the future: after a duration, or on a day.
func later(text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	at, err := pastTime(text, now)
	if err != nil {
		return at, usage(fmt.Errorf("--expires %q is not a time such as 12h or 90d, nor a day such as 2027-05-31", text))
	}
	if _, err := time.ParseDuration(text); err == nil || strings.HasSuffix(text, "d") {
		at = now.Add(now.Sub(at)) // it was read as an age
	}
	return at.UTC().Truncate(time.Second), nil
}

// keysListCommand is antiphon keys list.
type keysListCommand struct{}

// Run lists.
func (*keysListCommand) Run(_ context.Context, std stdio, env environment, all *keysCommand) error {
	keys, err := all.keys(env)
	if err != nil {
		return err
	}
	if err := there("--keys", all.Keys); err != nil {
		return err
	}
	list, err := keys.List()
	if err != nil {
		return usage(err)
	}
	if all.JSON {
		for i := range list {
			list[i].Hash = "" // nobody needs it
		}
		return json.MarshalWrite(toJSON(std.out), list, jsontext.WithIndent("  "), json.FormatNilSliceAsNull(false))
	}
	out := tabwriter.NewWriter(std.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(out, "NAME\tID\tPROJECT\tSCOPES\tLIMITS\tSTATE")
	for _, k := range list {
		fmt.Fprintf(out, "%s\t%s\t%s\t%s\t%s\t%s\n", k.Name, k.ID, k.Project, scopesOf(&k), keyLimits(&k.Limits), keyState(&k, time.Now()))
	}
	return out.Flush()
}

func scopesOf(k *access.Key) string {
	var list []string
	for _, s := range k.Scopes {
		list = append(list, string(s))
	}
	return strings.Join(list, ",")
}

func keyLimits(l *access.Limits) string {
	var list []string
	add := func(some bool, format string, args ...any) {
		if some {
			list = append(list, fmt.Sprintf(format, args...))
		}
	}
	add(l.Requests > 0, "%d requests/min", l.Requests)
	add(l.Tokens > 0, "%d tokens/min", l.Tokens)
	add(l.Running > 0, "%d at once", l.Running)
	add(l.Cost > 0, "%s/day", excerpt.Number(l.Cost))
	add(len(list) == 0, "-")
	add(l.Trial, "trial")
	return strings.Join(list, ", ")
}

func keyState(k *access.Key, now time.Time) string {
	switch {
	case !k.Revoked.IsZero():
		return "revoked " + k.Revoked.Local().Format(time.DateOnly)
	case !k.Valid(now):
		return "expired " + k.Expires.Local().Format(time.DateOnly)
	case !k.Expires.IsZero():
		return "until " + k.Expires.Local().Format(time.DateOnly)
	}
	return "valid"
}

// keysRevokeCommand is antiphon keys revoke.
type keysRevokeCommand struct {
	Key string `arg:"" help:"The name or the id of the key."`
}

// Run revokes a key.
func (c *keysRevokeCommand) Run(ctx context.Context, std stdio, env environment, all *keysCommand) error {
	keys, err := all.keys(env)
	if err != nil {
		return err
	}
	key, err := keys.Revoke(ctx, c.Key)
	if err != nil {
		return usage(err)
	}
	if all.JSON {
		key.Hash = ""
		return json.MarshalWrite(toJSON(std.out), key, jsontext.WithIndent("  "))
	}
	fmt.Fprintf(std.err, "antiphon: the key %s (%s) of the project %s is revoked\n", key.Name, key.ID, key.Project)
	return all.warnOfNoKey(std, env)
}

// warnOfNoKey says so if there are keys and none is valid.
func (f *keysFlag) warnOfNoKey(std stdio, env environment) error {
	path, err := f.path(env)
	if err != nil {
		return err
	}
	keys := access.OpenKeys(path)
	list, err := keys.List()
	if err != nil {
		return usage(err)
	}
	now := time.Now()
	if len(list) > 0 && !slices.ContainsFunc(list, func(k access.Key) bool { return k.Valid(now) }) {
		fmt.Fprintf(std.err, "antiphon: warning: no key is valid any more, so a server refuses every request; antiphon keys create NAME makes one, and without the file %s none is needed\n", show.Visible(path))
	}
	return nil
}
