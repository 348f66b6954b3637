// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/antiphon-go/antiphon/agenttest"
	"github.com/antiphon-go/antiphon/item"
)

// Tools that the endpoint runs: check says so, a run shows their calls, info counts
// them, and what would be sent shows no address of a server. G1 U4 U5
func TestEndpointTools(t *testing.T) {
	dir := t.TempDir()
	file := write(t, filepath.Join(dir, "agent.md"), `<config model="m"/>
<tool type="web_search"/>
<tool type="mcp" server_label="maps" server_url="https://maps.example/key-of-mine"/>
<user>Go.</user>
`)
	o := program(t, "check", file)
	wantAll(t, "check", o.out, `agent.md:2:1: <tool type="web_search"> runs at the endpoint, which does not ask before it uses it; queries go to the web [note]`,
		`agent.md:3:1: <tool type="mcp"> runs at the endpoint, which asks before each call, as maps.*; calls go to maps.example [note]`)
	search, err := item.ParseString(`{"type":"web_search_call","id":"ws_1","status":"completed","action":{"type":"search","query":"tea"}}`)
	if err != nil {
		t.Fatal(err)
	}
	srv := agenttest.NewServer(t, agenttest.Completed(search, item.Assistant("done")))
	store := filepath.Join(dir, "s.db")
	o = program(t, "run", file, "--trust", "--session", "work", "--store", store, "--base-url", srv.URL)
	wantAll(t, "run", o.out+o.err, "-> web_search tea (at the endpoint)\n", "done")
	wantAll(t, "info", program(t, "sessions", "--store", store, "info", "work").out, "web_search: 1 call")
	for _, command := range [][]string{{"info", "work"}, {"show", "work"}, {"show", "work", "--as-sent"}, {"show", "work", "--json"}} {
		o := program(t, append([]string{"sessions", "--store", store}, command...)...)
		if strings.Contains(o.out+o.err, "key-of-mine") {
			t.Errorf("%v shows the address of the server:\n%s", command, o.out)
		}
	}
}
