// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
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

// usageCommand is antiphon usage.
type usageCommand struct {
	By    string `default:"project" enum:"key,project,agent,model,session,day" help:"Sums for each: key, project, agent, model, session or day; the default is project."`
	Since string `placeholder:"TIME" help:"Only since then: an age such as 2h or 7d, a day such as 2026-05-31, or a time such as 2026-05-31T12:00:00Z."`
	JSON  bool   `name:"json" help:"Print JSON."`
	ledgerFlag
}

// Help is shown by antiphon usage --help.
func (usageCommand) Help() string {
	return `The server records what each response has used when it ends: names and numbers, no
contents, in a file of JSON lines for each day. Days are in UTC. Responses that were
cancelled count with what is known of them. Those whose server was killed, and those of an
upstream that does not say what it used, count with an estimate.

Examples:
  antiphon usage
  antiphon usage --by key --since 7d
  antiphon usage --by day --json`
}

// spent is the usage of one key, project and so on.
type spent struct {
	Of           string  `json:"of"`
	Responses    int64   `json:"responses"`
	Tokens       int64   `json:"tokens"`
	InputTokens  int64   `json:"input_tokens"`
	CachedTokens int64   `json:"cached_tokens"`
	OutputTokens int64   `json:"output_tokens"`
	Cost         float64 `json:"cost"`
}

// Run sums.
func (c *usageCommand) Run(std stdio, env environment) error {
	since, err := pastTime(c.Since, time.Now())
	if err != nil {
		return err
	}
	if err := there("--usage", c.Ledger); err != nil {
		return err
	}
	ledger, err := c.ledger(env)
	if err != nil {
		return err
	}
	sums := map[string]*spent{}
	for u, err := range ledger.All(since) {
		if err != nil {
			return err
		}
		c.add(sums, &u)
	}
	left, err := ledger.Left() // after the rest, so that nothing counts twice
	if err != nil {
		fmt.Fprintf(std.err, "antiphon: warning: what killed servers used is not counted: %v\n", err)
	}
	for _, u := range left {
		if !u.At.Before(since) {
			c.add(sums, &u)
		}
	}
	list := make([]*spent, 0, len(sums))
	for _, s := range sums {
		list = append(list, s)
	}
	slices.SortFunc(list, func(a, b *spent) int {
		if c.By == "day" {
			return cmp.Compare(a.Of, b.Of)
		}
		return cmp.Or(cmp.Compare(b.Cost, a.Cost), cmp.Compare(b.Tokens, a.Tokens), cmp.Compare(a.Of, b.Of))
	})
	if c.JSON {
		return json.MarshalWrite(toJSON(std.out), list, jsontext.WithIndent("  "))
	}
	out := tabwriter.NewWriter(std.out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(out, "%s\tRESPONSES\tTOKENS\tINPUT\tCACHED\tOUTPUT\tCOST\n", strings.ToUpper(c.By))
	for _, s := range list {
		fmt.Fprintf(out, "%s\t%d\t%d\t%d\t%d\t%d\t%s\n", show.Printable(s.Of), s.Responses, s.Tokens, s.InputTokens, s.CachedTokens, s.OutputTokens, excerpt.Number(s.Cost))
	}
	return out.Flush()
}

func (c *usageCommand) add(sums map[string]*spent, u *access.Use) {
	of := cmp.Or(c.of(u), "-")
	s := sums[of]
	if s == nil {
		s = &spent{Of: of}
		sums[of] = s
	}
	s.Responses++
	s.Tokens += u.Tokens
	s.InputTokens += u.InputTokens
	s.CachedTokens += u.CachedTokens
	s.OutputTokens += u.OutputTokens
	s.Cost += u.Cost
}

// of returns what a line is summed by.
func (c *usageCommand) of(u *access.Use) string {
	switch c.By {
	case "key":
		return u.Key
	case "agent":
		return u.Agent
	case "model":
		return cmp.Or(u.Model, u.Agent)
	case "session":
		return sessionOf(u.Response)
	case "day":
		return u.At.UTC().Format(time.DateOnly)
	}
	return u.Project
}

// sessionOf returns the session of a response: antiphon sessions knows it by this id.
func sessionOf(response string) string {
	name, ok := strings.CutPrefix(response, "resp_")
	end := strings.LastIndexByte(name, '_')
	if !ok || end < 0 {
		return response
	}
	return "api-" + name[:end]
}
