// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package mcpserver_test

import (
	"bytes"
	"context"
	"encoding/json"
	"image"
	"image/png"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/server/mcpserver"
)

// picture returns a PNG.
func picture(t *testing.T, size int) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, size, size))); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// A call is a run of the agent in a session that the result names; a later call continues
// it. The client reads in words what the agent does. All ways to reach the server are alike.
func TestCall(t *testing.T) {
	for _, way := range carriers {
		t.Run(way.name, func(t *testing.T) {
			w := serving(t, "<tool name=\"read_file\"/>\n<tool name=\"import_image\"/>\n",
				"turn\n  say I look.\n  call read_file {\"path\":\"notes.txt\"}\n  call import_image {\"path\":\"dot.png\"}\nturn\n  say You said {{question}}, and it says {{output \"read_file\" 1}}\nagain\nturn\n  say Now {{question}}\n",
				func(s *mcpserver.Server) { s.Agents[0].Messages = []item.Item{item.System("Be brief.")} })
			write(t, w.dir, "notes.txt", "a note")
			write(t, w.dir, "dot.png", string(picture(t, 3)))
			var told lines
			cs := w.connect(way.version, way.http, &mcp.ClientOptions{ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) {
				told.add(r.Params.Message)
			}})

			tools, err := cs.ListTools(t.Context(), nil)
			if err != nil || len(tools.Tools) != 1 || tools.Tools[0].Name != "it" || tools.Tools[0].Description != "Does it." {
				t.Fatalf("%+v, %v", tools, err)
			}
			p := &mcp.CallToolParams{Name: "it", Arguments: map[string]any{"task": "hello"}}
			p.SetProgressToken("token")
			res, err := cs.CallTool(t.Context(), p)
			if err != nil || res.IsError || !strings.HasPrefix(text(res), "You said hello, and it says a note") {
				t.Fatalf("%v %+v", err, res)
			}
			if n := slices.IndexFunc(res.Content, func(c mcp.Content) bool { _, ok := c.(*mcp.ImageContent); return ok }); n != 1 {
				t.Errorf("the image is at %d", n)
			}
			for _, want := range []string{"asks its model", "calls read_file", "has the output of read_file", "writes"} {
				if !strings.Contains(told.all(), want) {
					t.Errorf("progress does not say %q: %s", want, told.all())
				}
			}
			id := sessionOf(t, res)
			if w.stopped(id) != string(agent.StopEndTurn) {
				t.Error(w.stopped(id))
			}
			again := call(t, cs, map[string]any{"task": "more", "session": id})
			if sessionOf(t, again) != id || !strings.HasPrefix(text(again), "Now more") || w.only() != id {
				t.Error(text(again))
			}

			prompts, err := cs.ListPrompts(t.Context(), nil)
			if err != nil || len(prompts.Prompts) != 1 {
				t.Fatalf("%+v, %v", prompts, err)
			}
			prompt, err := cs.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: "it", Arguments: map[string]string{"task": "go"}})
			if err != nil || len(prompt.Messages) != 2 || prompt.Messages[0].Content.(*mcp.TextContent).Text != "Be brief." || prompt.Messages[1].Content.(*mcp.TextContent).Text != "go" {
				t.Errorf("%+v, %v", prompt, err)
			}
		})
	}
}

// Files of the client are parts of the message, and a file that asks something itself needs
// no task.
func TestInput(t *testing.T) {
	w := serving(t, "", "turn\n  say Got {{question}} {{user_image 1}}\n", func(s *mcpserver.Server) {
		s.Agents[0].Messages = []item.Item{item.User("Go on.")}
	})
	cs := w.connect("2025-06-18", false, nil)
	res := call(t, cs, map[string]any{"task": "see", "files": []any{
		map[string]any{"name": "a.txt", "data": []byte("the text")}, map[string]any{"name": "dot.png", "data": picture(t, 5)},
	}})
	if got := text(res); res.IsError || !strings.Contains(got, "the text") || !strings.Contains(got, "image/png") {
		t.Errorf("%+v %s", res, text(res))
	}
	if tools, err := cs.ListTools(t.Context(), nil); err != nil || strings.Contains(mustJSON(t, tools.Tools[0].InputSchema), "required\":[\"task") {
		t.Errorf("%+v %v", tools, err)
	}
}

func mustJSON(t *testing.T, v any) string {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// Arguments of every wrong kind are answered with what is wrong, and nothing is stored for
// them.
func TestBadArguments(t *testing.T) {
	w := serving(t, "", "turn\n  say Hello.\n", nil)
	cs := w.connect("2025-06-18", false, nil)
	big := "mcp-" + strings.Repeat("x", 1<<16)
	for _, test := range []struct {
		arguments any
		want      string
	}{
		{nil, "task is missing"},
		{map[string]any{}, "task is missing"},
		{map[string]any{"task": " \n"}, "task is missing"},
		{map[string]any{"task": 5}, "task is not what the schema says"},
		{map[string]any{"task": "x", "model": "y"}, `"model" is not a parameter`},
		{[]int{1}, "an object with a task"},
		{"text", "an object with a task"},
		{map[string]any{"task": "x", "files": "y"}, "files is not"},
		{map[string]any{"task": "x", "files": []any{map[string]any{"name": "a.txt", "data": "***"}}}, "files/0/data is not"},
		{map[string]any{"task": "x", "files": []any{map[string]any{"name": "a.txt", "data": ""}}}, "files[0]: it is empty"},
		{map[string]any{"task": "x", "files": []any{map[string]any{"name": "plan.pdf", "data": []byte{0, 1, 2}}}}, "files[0]: "},
		{map[string]any{"task": "x", "session": "work"}, "no session"},
		{map[string]any{"task": "x", "session": "mcp-none"}, "no session"},
		{map[string]any{"task": "x", "session": "../../etc/passwd"}, "no session"},
		{map[string]any{"task": "x", "session": big}, "no session"},
	} {
		res := call(t, cs, test.arguments)
		if !res.IsError || !strings.Contains(text(res), test.want) {
			t.Errorf("%.100v: %.300s, want %q", test.arguments, text(res), test.want)
		}
	}
	if _, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "other"}); err == nil || !strings.Contains(err.Error(), "unknown tool") {
		t.Error(err)
	}
	for info := range w.in.List(t.Context(), listAll) {
		t.Errorf("the session %s is left", info.ID)
	}
}

// A session that somebody else began, or another agent's, is answered like one that does
// not exist.
func TestSessionsOfOthers(t *testing.T) {
	w := serving(t, "", "turn\n  say Hello.\nagain\nturn\n  say Again.\n", nil)
	other := w.s.Agents[0]
	other.Name, other.Config.File = "other", write(t, w.dir, "other.md", "<config model=\"rehearsal:it.script\"/>\n")
	w.s.Agents = append(w.s.Agents, other)
	cs := w.connect("2025-06-18", false, nil)
	mine := sessionOf(t, call(t, cs, map[string]any{"task": "x"}))
	res, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "other", Arguments: map[string]any{"task": "x", "session": mine}})
	if err != nil || !res.IsError || !strings.Contains(text(res), "There is no session") {
		t.Errorf("%v %+v", err, res)
	}
	if err := w.in.Create(t.Context(), infoOf("mcp-work", filepath.Join(w.dir, "it.md"))); err != nil { // one of antiphon run
		t.Fatal(err)
	}
	if res := call(t, cs, map[string]any{"task": "x", "session": "mcp-work"}); !res.IsError || !strings.Contains(text(res), "There is no session") {
		t.Error(text(res))
	}
}

// A failure of the agent is a result that names the session, and says nothing of secrets.
func TestFailures(t *testing.T) {
	w := serving(t, "", "turn\n  say {{output \"none\" 1}}\n", func(s *mcpserver.Server) {
		s.Agents[0].Config.Environment = map[string]string{"OPENAI_API_KEY": "sk-secret-of-the-user-1234"}
	})
	res := call(t, w.connect("2025-06-18", false, nil), map[string]any{"task": "hello"})
	if !res.IsError || !strings.Contains(text(res), "The agent failed: ") || w.stopped(sessionOf(t, res)) == "" {
		t.Error(text(res))
	}

	w = serving(t, "<tool name=\"read_file\"/>\n", "turn\n  call read_file {\"path\":\"it.md\"}\nagain\nturn\n  say x\n", func(s *mcpserver.Server) {
		s.Agents[0].Config.Limits.MaxTurns = 1
	})
	cs := w.connect("2025-06-18", false, nil)
	res = call(t, cs, map[string]any{"task": "hello"})
	if !res.IsError || !strings.Contains(text(res), "stopped before its answer: max_turns") {
		t.Error(text(res))
	}
	if err := os.Remove(filepath.Join(w.dir, "it.md")); err != nil {
		t.Fatal(err)
	}
	if res := call(t, cs, map[string]any{"task": "hello"}); !res.IsError || !strings.Contains(text(res), "it.md") {
		t.Error(text(res))
	}
}

// waiting is a server for an agent whose tool waits for the test.
func waiting(t *testing.T) *world {
	t.Helper()
	w := serving(t, "", "turn\n  say I wait.\n  call wait {}\nturn\n  say Done.\nagain\nturn\n  say Again.\n", nil)
	fifo := w.pipe(t)
	write(t, w.dir, "it.md", "<config model=\"rehearsal:it.script\"/>\n<tool name=\"wait\" command=\"cat "+fifo+"\" description=\"Waits.\" approval=\"allow\"/>\n")
	return w
}

// running waits until the tool runs; the result lets it end.
func (w *world) running() *os.File {
	w.t.Helper()
	f, err := os.OpenFile(filepath.Join(w.dir, "fifo"), os.O_WRONLY, 0)
	if err != nil {
		w.t.Fatal(err)
	}
	return f
}

// A call that the client cancels ends the run, and the log says so. The session can be
// continued. L6
func TestCancel(t *testing.T) {
	for _, way := range carriers {
		t.Run(way.name, func(t *testing.T) {
			w := waiting(t)
			cs := w.connect(way.version, way.http, nil)
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() {
				_, err := cs.CallTool(ctx, &mcp.CallToolParams{Name: "it", Arguments: map[string]any{"task": "x"}})
				ended <- err
			}()
			end := w.running()
			defer end.Close()
			cancel()
			if err := <-ended; err == nil {
				t.Error("the call has a result")
			}
			id := w.only()
			for w.stopped(id) == "" { // the client does not wait for the end of the run
				if err := t.Context().Err(); err != nil {
					t.Fatal(err)
				}
			}
			if why := w.stopped(id); why != string(agent.StopCancelled) {
				t.Error(why)
			}
			var res *mcp.CallToolResult
			for res == nil || strings.Contains(text(res), "Another call works in this session") {
				res = call(t, cs, map[string]any{"task": "more", "session": id})
			}
			if res.IsError || !strings.HasPrefix(text(res), "Again.") {
				t.Error(text(res))
			}
		})
	}
}

// A client that ends its connection ends its calls, which record it before the server
// returns; and so does the end of the server.
func TestGone(t *testing.T) {
	for _, byServer := range []bool{false, true} {
		w := waiting(t)
		ctx, end := context.WithCancel(t.Context())
		in, to, from, out := pipePair()
		served := make(chan error, 1)
		go func() {
			served <- w.s.ServeIO(ctx, in, out)
			out.Close()
		}()
		go discard(from)
		for _, line := range []string{initialize, `{"jsonrpc":"2.0","method":"notifications/initialized"}`,
			`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"it","arguments":{"task":"x"}}}`} {
			if _, err := to.Write([]byte(line + "\n")); err != nil {
				t.Fatal(err)
			}
		}
		f := w.running()
		if byServer {
			end()
		} else {
			to.Close()
		}
		if err := <-served; err != nil {
			t.Error(err)
		}
		end()
		to.Close()
		f.Close()
		if why := w.stopped(w.only()); why != string(agent.StopCancelled) {
			t.Errorf("by the server %t: %s", byServer, why)
		}
	}
}

// Too many calls at once are refused, and others go on.
func TestTooMany(t *testing.T) {
	w := waiting(t)
	w.s.MaxCalls = 1
	cs := w.connect("2025-06-18", false, nil)
	ended := make(chan *mcp.CallToolResult, 1)
	go func() {
		res, _ := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "it", Arguments: map[string]any{"task": "x"}})
		ended <- res
	}()
	f := w.running()
	if res := call(t, cs, map[string]any{"task": "y"}); !res.IsError || !strings.Contains(text(res), "too many calls") {
		t.Error(text(res))
	}
	f.Close()
	if res := <-ended; res == nil || res.IsError || !strings.Contains(text(res), "Done.") {
		t.Errorf("%+v", res)
	}
}
