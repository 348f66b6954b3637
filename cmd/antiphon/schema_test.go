// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/antiphon-go/antiphon/agenttest"
	"github.com/antiphon-go/antiphon/item"
)

const (
	billSchema = `{"type":"object","properties":{"total":{"type":"number","minimum":1}},"required":["total"],"additionalProperties":false}`
	billBad    = `{"total":"41,50"}`
	billGood   = ` {"total": 41.50}`
)

// With --schema, standard output has the JSON of the answer that fits and nothing
// else; if none does, there is nothing on it, and the exit code is 3. G3, G14
func TestSchemaFlag(t *testing.T) {
	dir := t.TempDir()
	file := write(t, filepath.Join(dir, "agent.md"), "<user>Hello?</user>\n")
	schema := write(t, filepath.Join(dir, "bill.json"), billSchema)
	refusal := item.Must(&item.Message{Role: item.RoleAssistant, Status: item.StatusCompleted, ID: "m", Content: item.Parts(&item.Refusal{Refusal: "I will not."})})
	says := func(text string) agenttest.Reply { return agenttest.Completed(item.Assistant(text)) }
	for _, c := range []struct {
		name    string
		args    []string
		replies []agenttest.Reply
		code    int
		out     string
		err     string
	}{
		{"it fits", nil, []agenttest.Reply{says(billGood)}, exitOK, "{\"total\": 41.50}\n", ""},
		{"a repair", nil, []agenttest.Reply{says(billBad), says(billGood)}, exitOK, "{\"total\": 41.50}\n", "!! the answer goes back to the model, because it does not fit: total: type"},
		{"it never fits", nil, []agenttest.Reply{says(billBad), says("no"), says(`{}`)}, exitProvider, "", `the answer does not fit after 2 repairs: missing member "total"; try another model, or say in the prompt what the schema leaves open`},
		{"a limit", []string{"--max-turns", "1"}, []agenttest.Reply{says(billBad)}, exitLimit, "", "stopped at the limit max_turns"},
		{"a refusal", nil, []agenttest.Reply{agenttest.Completed(refusal)}, exitProvider, "", "the model refused to answer"},
		{"in the instructions", []string{"--schema-text"}, []agenttest.Reply{says("```json\n{\"total\":2}\n```")}, exitOK, "{\"total\":2}\n", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			srv := agenttest.NewServer(t, c.replies...)
			o := alone(t, append([]string{"run", file, "--schema", schema, "--model", "m", "--base-url", srv.URL}, c.args...)...)
			if o.code != c.code || o.out != c.out || !strings.Contains(o.err, c.err) || len(srv.Requests()) != len(c.replies) {
				t.Errorf("exit code %d, %d requests, output %q\n%s", o.code, len(srv.Requests()), o.out, o.err)
			}
			body := string(srv.Requests()[0].Body)
			if inText := strings.Contains(body, `"format"`); inText == (len(c.args) == 1) {
				t.Errorf("the request is %s", body)
			}
		})
	}
}

// A bad schema is one error with its place, and nothing is sent.
func TestSchemaFlagRefused(t *testing.T) {
	dir := t.TempDir()
	file := write(t, filepath.Join(dir, "agent.md"), "<user>Hello?</user>\n")
	srv := agenttest.NewServer(t)
	for text, want := range map[string]string{
		"{":                     "bad.json: line 1, column 2: not valid JSON",
		"{\n\"type\": \"txt\"}": `bad.json: line 1, column 1: /: type: there is no type "txt"`,
		"{\n\"properties\": {\"a\": {\"pattern\": \"(?=x)\"}}}": "bad.json: line 2, column 16: /properties/a: pattern: it cannot be checked here",
		`{"type":"array","items":{"type":"string"}}`:            `bad.json: the schema is of type array, and endpoints accept an object: make the answer a member, as in {"type":"object","properties":{"answer":{"type":"array"}},`,
		`{"type":"string"}`: `or add --schema-text`,
	} {
		schema := write(t, filepath.Join(dir, "bad.json"), text)
		o := alone(t, "run", file, "--schema", schema, "--model", "m", "--base-url", srv.URL)
		if o.code != exitUsage || o.out != "" || len(o.messages()) != 1 || !strings.Contains(o.err, want) {
			t.Errorf("%s: exit code %d, output %q\n%s", text, o.code, o.out, o.err)
		}
	}
	huge := write(t, filepath.Join(dir, "huge.json"), "")
	if err := os.Truncate(huge, 1<<40); err != nil { // nothing is on the disk
		t.Log(err)
		huge = "/dev/zero"
	}
	for want, args := range map[string][]string{
		"no such file":        {"--schema", filepath.Join(dir, "none.json")},
		"needs --schema FILE": {"--schema-text"},
		"is a directory":      {"--schema", dir},
		"--schema " + huge + ": the file has more":   {"--schema", huge},
		"--profiles " + huge + ": the file has more": {"--profiles", huge},
		"--approve-from: " + huge + " has":           {"--approve-from", huge},
	} {
		o := alone(t, append([]string{"run", file, "--model", "m", "--base-url", srv.URL}, args...)...)
		if o.code != exitUsage || !strings.Contains(o.err, want) {
			t.Errorf("%v: exit code %d\n%s", args, o.code, o.err)
		}
	}
	if n := len(srv.Requests()); n > 0 {
		t.Errorf("%d requests", n)
	}
}

// A schema of a list is for endpoints that read it in the instructions. G3
func TestSchemaOfList(t *testing.T) {
	dir := t.TempDir()
	file := write(t, filepath.Join(dir, "agent.md"), "<user>Hello?</user>\n")
	schema := write(t, filepath.Join(dir, "list.json"), `{"type":"array"}`)
	srv := agenttest.NewServer(t, agenttest.Completed(item.Assistant("[1]")))
	if o := alone(t, "run", file, "--schema", schema, "--schema-text", "--model", "m", "--base-url", srv.URL); o.code != exitOK || o.out != "[1]\n" {
		t.Errorf("exit code %d, output %q\n%s", o.code, o.out, o.err)
	}
}

// A stored answer is checked: it is printed if it fits, and goes back if not. G3, U3
func TestSchemaFlagStored(t *testing.T) {
	dir := t.TempDir()
	file := write(t, filepath.Join(dir, "agent.md"), "<user>Hello?</user>\n")
	schema := write(t, filepath.Join(dir, "bill.json"), billSchema)
	for i, keep := range [][]string{{"--session", "s", "--store", filepath.Join(dir, "s.db")}, {"--out", filepath.Join(dir, "out.md")}} {
		srv := agenttest.NewServer(t, agenttest.Completed(item.Assistant(billBad)), agenttest.Completed(item.Assistant(billGood)))
		run := func(more ...string) outcome {
			return alone(t, append(append([]string{"run", file, "--model", "m", "--base-url", srv.URL}, keep...), more...)...)
		}
		if o := run(); o.code != exitOK || o.out != billBad+"\n" {
			t.Errorf("%d: exit code %d, output %q\n%s", i, o.code, o.out, o.err)
		}
		for range 2 { // the first sends the answer back, the second finds that it fits
			if o := run("--schema", schema); o.code != exitOK || o.out != "{\"total\": 41.50}\n" {
				t.Errorf("%d: exit code %d, output %q\n%s", i, o.code, o.out, o.err)
			}
		}
		if n := len(srv.Requests()); n != 2 {
			t.Errorf("%d: %d requests", i, n)
		}
	}
}
