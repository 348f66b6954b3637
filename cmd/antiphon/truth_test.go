// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/antiphon-go/antiphon/agenttest"
	"github.com/antiphon-go/antiphon/item"
)

// S4: where the text that came in pieces is not the text that is kept, the
// person is told, and standard output ends with the one that is kept. Where the
// pieces only end too soon, the rest is printed.
func TestRunShowsTheTruth(t *testing.T) {
	reply := func(deltas ...string) agenttest.Reply {
		list := []string{`{"type":"response.output_item.added","output_index":0,"item":{"type":"message","id":"m","role":"assistant","content":[]}}`}
		for _, d := range deltas {
			list = append(list, `{"type":"response.output_text.delta","item_id":"m","output_index":0,"content_index":0,"delta":"`+d+`"}`)
		}
		const whole = `{"type":"message","id":"m","role":"assistant","status":"completed","content":[{"type":"output_text","text":"Hello world","annotations":[]}]}`
		return agenttest.Events(append(list, `{"type":"response.output_item.done","output_index":0,"item":`+whole+`}`,
			`{"type":"response.completed","response":{"id":"r","status":"completed","output":[`+whole+`]}}`)...)
	}
	const notice = `!! the final text differs from what was shown: "Hello world", and not "Hello there"`
	for name, test := range map[string]struct {
		answer agenttest.Reply
		out    string
		says   string
	}{
		"the same":             {reply("Hello", " world"), "Hello world\n", ""},
		"the end is missing":   {reply("Hello"), "Hello world\n", ""},
		"nothing but the item": {reply(), "Hello world\n", ""},
		"another text":         {reply("Hello", " there"), "Hello there\nHello world\n", notice},
	} {
		t.Run(name, func(t *testing.T) {
			srv := agenttest.NewServer(t)
			srv.Otherwise(func(int, agenttest.Request) agenttest.Reply { return test.answer })
			dir := t.TempDir()
			agent := write(t, filepath.Join(dir, "agent.md"), "<config model=\"test-model\"/>\n<user>Say hello.</user>\n")
			store := "--store=" + filepath.Join(dir, "store.db")
			o := program(t, "run", agent, "--base-url", srv.URL, store, "--session", "s")
			if o.code != 0 || o.out != test.out {
				t.Errorf("exit code %d, standard output %q, want %q\n%s", o.code, o.out, test.out, o.err)
			}
			if strings.Contains(o.err, "!! ") != (test.says != "") || !strings.Contains(o.err, test.says) {
				t.Errorf("standard error:\n%s", o.err)
			}
			shown := program(t, "sessions", "show", "s", store)
			if strings.Contains(shown.out, "notice") != (test.says != "") || strings.Count(shown.out, "Hello world") < 1 {
				t.Errorf("the log:\n%s", shown.out)
			}
			lines := program(t, "run", agent, "--base-url", srv.URL, "--json")
			if strings.Contains(lines.out, `"kind":"noticed","turn":1,"notice":"text_differs","item_id":"m","text":"the final text differs`) != (test.says != "") {
				t.Errorf("JSON lines:\n%s", lines.out)
			}
		})
	}
}

// What is piped is the model's text and nothing else: a notice within it adds no
// byte, and messages that a server mixes stand one after another.
func TestPipedTextIsTheModels(t *testing.T) {
	message := func(id, text string) string {
		return `{"type":"message","id":"` + id + `","role":"assistant","status":"completed","content":[{"type":"output_text","text":"` + text + `","annotations":[]}]}`
	}
	delta := func(number int, id string, index int, text string) string {
		return fmt.Sprintf(`{"type":"response.output_text.delta","sequence_number":%d,"item_id":%q,"output_index":%d,"content_index":0,"delta":%q}`, number, id, index, text)
	}
	done := func(id string, index int, text string) string {
		return fmt.Sprintf(`{"type":"response.output_item.done","output_index":%d,"item":%s}`, index, message(id, text))
	}
	for name, test := range map[string]struct {
		events []string
		out    string
		says   string
	}{
		"numbers are missing": {[]string{
			delta(1, "a", 0, "one "), delta(2, "a", 0, "two "), delta(3, "a", 0, "three "), delta(7, "a", 0, "four"), done("a", 0, "one two three four"),
			`{"type":"response.completed","response":{"id":"r","status":"completed","output":[` + message("a", "one two three four") + `]}}`,
		}, "one two three four\n", "!! events of the reply are missing"},
		"mixed": {[]string{
			delta(1, "a", 0, "one "), delta(2, "b", 1, "two "), delta(3, "a", 0, "ONE"), delta(4, "b", 1, "TWO"), done("a", 0, "one ONE"), done("b", 1, "two TWO"),
			`{"type":"response.completed","response":{"id":"r","status":"completed","output":[` + message("a", "one ONE") + `,` + message("b", "two TWO") + `]}}`,
		}, "one ONE\ntwo TWO\n", ""},
		"another text under another id": {[]string{
			delta(1, "a", 0, "shown"), `{"type":"response.completed","response":{"id":"r","status":"completed","output":[` + message("b", "kept") + `]}}`,
		}, "shown\nkept\n", "!! the final text differs from what was shown"},
		"a message that is missing": {[]string{
			delta(1, "a", 0, "shown"), done("b", 1, "kept"), `{"type":"response.completed","response":{"id":"r","status":"completed","output":[` + message("b", "kept") + `]}}`,
		}, "shown\nkept\n", "!! a message that was shown is not in the reply's last event"},
	} {
		t.Run(name, func(t *testing.T) {
			srv := agenttest.NewServer(t)
			srv.Otherwise(func(int, agenttest.Request) agenttest.Reply { return agenttest.Events(test.events...) })
			file := write(t, filepath.Join(t.TempDir(), "agent.md"), "<config model=\"test-model\"/>\n<user>Say hello.</user>\n")
			o := program(t, "run", file, "--base-url", srv.URL)
			if o.out != test.out || !strings.Contains(o.err, test.says) || strings.Contains(o.err, "!! ") != (test.says != "") {
				t.Errorf("standard output %q, want %q\n%s", o.out, test.out, o.err)
			}
		})
	}
}

// TestMaxTimeIsOfTheWholeRun proves that the time of a run includes that of agents
// in its messages and of its MCP servers' start, and that its end is told as any
// limit's. L4
func TestMaxTimeIsOfTheWholeRun(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: waits for time limits")
	}
	t.Parallel()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "sub.md"), "<config model=\"m\"/>\n<user>Hi.</user>\n")
	srv := agenttest.NewServer(t)
	srv.Otherwise(func(int, agenttest.Request) agenttest.Reply {
		return agenttest.Completed(item.Assistant("Hello.")).Stall(nil)
	})
	for _, text := range []string{
		`<user><agent src="sub.md" local/> and so on</user>`,
		`<tool mcp_server="stdio:sleep 60" start_timeout="3s"/><user>Hi.</user>`,
	} {
		file := write(t, filepath.Join(dir, "agent.md"), text)
		o := program(t, "run", file, "--trust", "--model", "m", "--base-url", srv.URL, "--max-time", "500ms", "--session", "work", "--store", filepath.Join(dir, "s.db"))
		if o.code != exitLimit || !strings.Contains(o.err, "stopped at the limit max_time: 500ms have passed") || strings.Contains(o.err, ": :") {
			t.Errorf("%s\nexit code %d\n%s", text, o.code, o.err)
		}
	}
	store := "postgres://u@" + strings.TrimPrefix(agenttest.DeadURL(t, agenttest.Refusing), "http://")
	o := program(t, "run", filepath.Join(dir, "sub.md"), "--base-url", srv.URL, "--max-time", "500ms", "--session", "work", "--store", store, "--store-retry", "1h")
	if o.code != exitLimit || !strings.Contains(o.err, "500ms have passed: opening the store") {
		t.Errorf("a store that is away: exit code %d\n%s", o.code, o.err)
	}
}
