// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package mcpserver_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/audit"
	"github.com/antiphon-go/antiphon/server/mcpserver"
	"github.com/antiphon-go/antiphon/session"
)

// asking is a server for an agent that wants to make a file.
func asking(t *testing.T) *world {
	t.Helper()
	w := serving(t, "", "turn\n  call make {\"arguments\":[\"a\\u202eb\"]}\nturn\n  say It said {{output \"make\" 1}}\nagain\nturn\n  say Again.\n", func(s *mcpserver.Server) {
		s.Agents[0].Config.Hint = func(tool string) string { return "Say --allow " + tool + "." }
	})
	write(t, w.dir, "it.md", "<config model=\"rehearsal:it.script\"/>\n<tool name=\"make\" command=\"touch "+filepath.Join(w.dir, "made")+"\" description=\"Makes it.\"/>\n")
	return w
}

func (w *world) made() bool {
	_, err := os.Stat(filepath.Join(w.dir, "made"))
	return err == nil
}

// verdict returns the verdict about the one call.
func (w *world) verdict(id string) (a session.Approval) {
	w.t.Helper()
	n := 0
	for _, e := range w.log(id) {
		if b, ok := e.Body.(session.Approval); ok {
			a = b
			n++
		}
	}
	if n != 1 {
		w.t.Errorf("%d verdicts", n)
	}
	return a
}

// A call that needs approval is asked about in the client, with all of it, and only the
// answer that says so approves. Nothing is approved by itself, and the log says who
// answered.
func TestElicitation(t *testing.T) {
	answer := func(action string, content map[string]any) func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
		return func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			return &mcp.ElicitResult{Action: action, Content: content}, nil
		}
	}
	for _, test := range []struct {
		name    string
		handler func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error)
		allowed bool
		decided session.Decider
		said    string // in the output
		told    string // in the result
	}{
		{"yes", answer("accept", map[string]any{"answer": "run it"}), true, session.DeciderPerson, "It said The tool ran successfully", ""},
		{"no", answer("accept", map[string]any{"answer": "refuse", "reason": "too early"}), false, session.DeciderPerson, "too early", ""},
		{"declined", answer("decline", nil), false, session.DeciderPerson, "refused by the person", ""},
		{"dismissed", answer("cancel", nil), false, session.DeciderNobody, "nobody answered", "nobody answered the question. Say --allow make."},
		{"no capability", nil, false, session.DeciderNobody, "nobody to give it. Nothing was done. Say --allow make.", "this client cannot ask for one. Say --allow make."},
	} {
		for _, way := range carriers {
			t.Run(test.name+" "+way.name, func(t *testing.T) {
				w := asking(t)
				var question lines
				var shown []string // by the audit log
				w.s.Agents[0].Config.Audit = func(_ context.Context, records ...audit.Record) error {
					for _, r := range records {
						if r.Kind == audit.KindAllowed || r.Kind == audit.KindRefused {
							shown = append(shown, r.Shown)
						}
					}
					return nil
				}
				o := &mcp.ClientOptions{}
				if test.handler != nil {
					o.ElicitationHandler = func(ctx context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
						question.add(r.Params.Message)
						return test.handler(ctx, r)
					}
				}
				res := call(t, w.connect(way.version, way.http, o), map[string]any{"task": "x"})
				if res.IsError || !strings.Contains(text(res), test.said) || !strings.Contains(text(res), test.told) {
					t.Errorf("%s, want %q and %q", text(res), test.said, test.told)
				}
				if w.made() != test.allowed {
					t.Errorf("made: %t", w.made())
				}
				v := w.verdict(sessionOf(t, res))
				if v.Allowed != test.allowed || v.Decided != test.decided || test.handler != nil && v.From != "elicitation by tester" {
					t.Errorf("%+v", v)
				}
				if asked := question.all(); test.handler != nil && (!strings.Contains(asked, "The agent it wants to call make") || !strings.Contains(asked, `It runs: "touch" "`+filepath.Join(w.dir, "made")+`" "a`) || strings.Contains(asked, "\u202e")) {
					t.Errorf("the question is %q", asked)
				}
				if test.handler != nil && !slices.Equal(shown, []string{audit.Hash(question.all())}) {
					t.Errorf("recorded as shown: %q", shown)
				}
			})
		}
	}
}

// A client that never answers is waited for a bounded time, and what it says then does not
// count. So it is with one that answers with something else.
func TestUnanswered(t *testing.T) {
	for _, never := range []bool{true, false} {
		w := asking(t)
		w.s.Wait = 50 * time.Millisecond
		if !never {
			w.s.Wait = time.Hour
		}
		cs := w.connect("2025-06-18", true, &mcp.ClientOptions{ElicitationHandler: func(ctx context.Context, _ *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			if never {
				<-ctx.Done()
			}
			return nil, errors.New("no")
		}})
		res := call(t, cs, map[string]any{"task": "x"})
		if res.IsError || !strings.Contains(text(res), "nobody answered the question") || w.made() {
			t.Error(text(res))
		}
		if v := w.verdict(sessionOf(t, res)); v.Allowed || v.Decided != session.DeciderNobody {
			t.Errorf("%+v", v)
		}
	}
}

// Somebody who answers with another word than the two is told so. It is no approval, and neither is a form that does not fit.
// Clients of the SDK check the form themselves.
func TestOtherWord(t *testing.T) {
	for _, test := range []struct{ content, told string }{
		{`{"answer":"Run it"}`, `A call of make was refused: the answer \"Run it\" is neither \"run it\" nor \"refuse\".`},
		{`{"answer":true}`, `the answer \"true\" is neither`},
		{`{"answer":"run it","reason":5}`, "nobody answered the question"},
		{`{}`, "nobody answered the question"},
	} {
		w := asking(t)
		to, from := w.pipes()
		answers := bufio.NewReader(from)
		say := func(line string) {
			t.Helper()
			if _, err := io.WriteString(to, line+"\n"); err != nil {
				t.Fatal(err)
			}
		}
		hears := func(what string) string {
			for {
				if line, err := answers.ReadString('\n'); err != nil || strings.Contains(line, what) {
					return line
				}
			}
		}
		say(strings.Replace(initialize, `"capabilities":{}`, `"capabilities":{"elicitation":{}}`, 1))
		hears(`"id":1,`)
		say(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
		say(`{"jsonrpc":"2.0","id":"mine","method":"tools/call","params":{"name":"it","arguments":{"task":"x"}}}`)
		_, rest, _ := strings.Cut(hears("elicitation/create"), `"id":`)
		id, _, _ := strings.Cut(rest, ",")
		say(`{"jsonrpc":"2.0","id":` + id + `,"result":{"action":"accept","content":` + test.content + `}}`)
		if got := hears(`"id":"mine"`); !strings.Contains(got, test.told) || w.made() {
			t.Errorf("%s: made %t, %s", test.content, w.made(), got)
		}
	}
	w := asking(t)
	cs := w.connect("2026-07-28", false, &mcp.ClientOptions{MultiRoundTrip: &mcp.MultiRoundTripOptions{Disabled: true},
		ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			return nil, errors.New("not here")
		}})
	asked := call(t, cs, map[string]any{"task": "x"})
	answers := mcp.InputResponseMap{}
	for key := range asked.InputRequests {
		answers[key] = &mcp.ElicitResult{Action: "accept", Content: map[string]any{"answer": "yes"}}
	}
	res, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "it", Arguments: map[string]any{"task": "x"}, RequestState: asked.RequestState, InputResponses: answers})
	if err != nil || !strings.Contains(text(res), `the answer "yes" is neither`) || w.made() {
		t.Errorf("%v %v", res, err)
	}
	if v := w.verdict(sessionOf(t, res)); v.Decided != session.DeciderPerson || v.Allowed {
		t.Errorf("%+v", v)
	}
}

// In the version without requests to clients a question is a result, and its session waits:
// also for an answer that comes to another server. Answers that were not asked for, or come
// twice, approve nothing. L7
func TestAnswerLater(t *testing.T) {
	w := asking(t)
	o := &mcp.ClientOptions{ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
		return nil, errors.New("not here")
	},
		MultiRoundTrip: &mcp.MultiRoundTripOptions{Disabled: true}}
	first := w.connect("2026-07-28", false, o)
	res := call(t, first, map[string]any{"task": "x"})
	if !res.NeedsInput() || len(res.InputRequests) != 1 || w.made() || w.stopped(w.only()) != string(agent.StopApprovalPending) {
		t.Fatalf("%+v", res)
	}
	var key string
	for key = range res.InputRequests {
	}
	second := w.connect("2026-07-28", true, o)
	send := func(state, key, word string) *mcp.CallToolResult {
		t.Helper()
		res, err := second.CallTool(t.Context(), &mcp.CallToolParams{Name: "it", Arguments: map[string]any{"task": "x"}, RequestState: state,
			InputResponses: mcp.InputResponseMap{key: &mcp.ElicitResult{Action: "accept", Content: map[string]any{"answer": word}}}})
		if err != nil {
			t.Fatal(err)
		}
		return res
	}
	for _, state := range []string{"x", "mcp-none.1", w.only(), w.only() + ".-1", "work.1"} {
		if res := send(state, key, "run it"); !res.IsError || w.made() {
			t.Errorf("%s: %s", state, text(res))
		}
	}
	for _, other := range []string{key + "1", "approval/other#1"} {
		if res := send(res.RequestState, other, "run it"); !res.NeedsInput() || w.made() {
			t.Errorf("%s: %+v", other, res)
		}
	}
	done := send(res.RequestState, key, "run it")
	if done.IsError || !strings.Contains(text(done), "It said") || !w.made() || sessionOf(t, done) != w.only() {
		t.Errorf("%s", text(done))
	}
	if again := send(res.RequestState, key, "run it"); again.NeedsInput() {
		t.Errorf("%+v", again)
	}
	w.verdict(w.only())
}

// An image that the agent made before a question is in the result, also if the call was made
// again with the answer.
func TestImageBeforeQuestion(t *testing.T) {
	for _, way := range carriers {
		t.Run(way.name, func(t *testing.T) {
			w := serving(t, "<tool name=\"import_image\"/>\n<tool name=\"make\" command=\"true\" description=\"Makes it.\"/>\n",
				"turn\n  call import_image {\"path\":\"dot.png\"}\nturn\n  call make {}\nturn\n  call make {}\nturn\n  say Done.\nagain\nturn\n  call make {}\nturn\n  say Again.\n", nil)
			write(t, w.dir, "dot.png", string(picture(t, 3)))
			cs := w.connect(way.version, way.http, &mcp.ClientOptions{ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
				return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"answer": "run it"}}, nil
			}})
			images := func(res *mcp.CallToolResult) (n int) {
				for _, c := range res.Content {
					if _, is := c.(*mcp.ImageContent); is {
						n++
					}
				}
				return n
			}
			res := call(t, cs, map[string]any{"task": "x"})
			if res.IsError || images(res) != 1 {
				t.Errorf("%d images: %s", images(res), text(res))
			}
			if res := call(t, cs, map[string]any{"task": "x", "session": sessionOf(t, res)}); res.IsError || images(res) != 0 {
				t.Errorf("a later call has %d images: %s", images(res), text(res))
			}
		})
	}
}
