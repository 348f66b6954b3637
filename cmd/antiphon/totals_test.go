// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/antiphon-go/antiphon/agenttest"
	"github.com/antiphon-go/antiphon/item"
)

// U5: the last line, info, --json and the page give the same totals, with the
// runs of agents that are tools and of those that stand in messages, in tokens and
// in money.
func TestTotalsIncludeNestedRuns(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "inner.md"), "<config model=\"m\"/>\n<system>Inner.</system>\n")
	write(t, filepath.Join(dir, "asked.md"), "<config model=\"m\"/>\n<user>How many?</user>\n")
	file := write(t, filepath.Join(dir, "agent.md"), `<config model="m"/>
<tool name="inner" agent="inner.md" local description="Asks another."/>
<user>Go. <agent src="asked.md" local/></user>
`)
	reply := func(items ...item.Item) agenttest.Reply { return agenttest.Completed(items...) }
	srv := agenttest.NewServer(t,
		reply(item.Assistant("three")), // the agent in the message
		reply(item.Call("c1", "inner", `{"task":"x"}`)),
		reply(item.Assistant("inner says")),
		reply(item.Assistant("done")))
	store := filepath.Join(dir, "s.db")
	flags := []string{"run", file, "--session", "work", "--store", store, "--base-url", srv.URL, "--price", "1000,1000,1000"}
	o := program(t, flags...)
	line := regexp.MustCompile(`(\d+) tokens \(\d+ in, \d+ cached, \d+ out, (\d+) in 2 turns of subagents\), cost ([0-9.]+)`)
	said := line.FindStringSubmatch(o.err)
	if said == nil {
		t.Fatalf("no totals in\n%s", o.err)
	}
	all, nested, cost := said[1], said[2], said[3]
	if n, _ := strconv.ParseFloat(cost, 64); fmt.Sprint(n*1000) != all {
		t.Errorf("%s tokens at 1000 a million cost %s", all, cost)
	}
	info := program(t, "sessions", "--store", store, "info", "work")
	wantAll(t, "info", info.out, said[0])
	json := program(t, "sessions", "--store", store, "--json", "info", "work")
	wantAll(t, "info --json", strings.Join(strings.Fields(json.out), ""), `"all":{"turns":4,"tokens":`+all+`,"cost":`+cost+`}`)
	wantAll(t, "info --json", strings.Join(strings.Fields(json.out), ""), `"agent":"","sessions":1,"turns":2,`, `"agent":"inner","sessions":1,"turns":1,`, `"agent":"<agent>","sessions":1,"turns":1,`)
	wantAll(t, "info", info.out, "inner: 1 turn, ", "itself: 2 turns, ", "<agent>: 1 turn, ", "inner: 1 call, ")
	page := filepath.Join(dir, "work.html")
	if o := program(t, "sessions", "--store", store, "export", "work", "--to", "html", "-o", page); o.code != 0 {
		t.Fatal(o.err)
	}
	wantAll(t, "the page", read(t, page), "<b>"+all+"</b> tokens", nested+" in subagents", "<b>"+cost+"</b> cost")

	srv.Add(reply(item.Assistant("four")), reply(item.Assistant("again")))
	fresh := write(t, filepath.Join(dir, "again.md"), read(t, file)+"\n<!-- other -->\n")
	write(t, filepath.Join(dir, "asked.md"), "<config model=\"m\"/>\n<user>How many now?</user>\n")
	events := program(t, "run", fresh, "--base-url", srv.URL, "--price", "1000,1000,1000", "--json")
	wantAll(t, "--json", events.out, `"all":{"turns":2,`)
}

// U5: what agents in messages use counts against the limits of the run.
func TestLimitsIncludeAgentsInMessages(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "asked.md"), "<config model=\"m\"/>\n<user>How many?</user>\n")
	file := write(t, filepath.Join(dir, "agent.md"), "<config model=\"m\"/>\n<user>Go. <agent src=\"asked.md\" local/></user>\n")
	srv := agenttest.NewServer(t, agenttest.Completed(item.Assistant("three")))
	o := program(t, "run", file, "--base-url", srv.URL, "--max-tokens", "20")
	if o.code != exitLimit || !strings.Contains(o.err, "31 tokens were used, of 20") {
		t.Errorf("exit code %d\n%s", o.code, o.err)
	}
}

// U5: what an agent in the message of an agent in a message used is counted once.
func TestTotalsCountOnce(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "c.md"), "<config model=\"m\"/>\n<user>And you?</user>\n")
	write(t, filepath.Join(dir, "b.md"), "<config model=\"m\"/>\n<user>Ask. <agent src=\"c.md\" local/></user>\n")
	file := write(t, filepath.Join(dir, "a.md"), "<config model=\"m\"/>\n<user>Go. <agent src=\"b.md\" local/></user>\n")
	srv := agenttest.NewServer(t)
	for _, text := range []string{"c says", "b says", "a says"} {
		srv.Add(agenttest.Completed(item.Assistant(text)))
	}
	store := filepath.Join(dir, "s.db")
	o := program(t, "run", file, "--base-url", srv.URL, "--json", "--session", "work", "--store", store)
	wantAll(t, "--json", o.out, `"all":{"turns":3,`)
	info := program(t, "sessions", "--store", store, "--json", "info", "work")
	wantAll(t, "info", strings.Join(strings.Fields(info.out), ""), `"all":{"turns":3,`, `"nested":{"turns":2,`)
}
