// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package person

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/agenttest"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/tool"
	"github.com/antiphon-go/antiphon/toolkit"
)

// TestLikeIt proves that what a person allows for calls like one, or for a tool,
// holds for the rest of the run also where a file wants to be asked every time.
// A5 L7
func TestLikeIt(t *testing.T) {
	look := tool.Must("look", "Looks.", func(_ context.Context, in struct {
		Path string `json:"path"`
	}) (string, error) {
		return "saw " + in.Path, nil
	})
	call := func(id, path string) item.Item {
		return item.Call(id, "look", `{"path":`+string(item.Quote(path))+`}`)
	}
	for _, tt := range []struct {
		typed string
		asked int
		runs  int
	}{
		{"l\nn\n", 2, 2}, // d/a, and with it d/a again; e/c is refused
		{"a\n", 1, 3},
		{"y\ny\nn it is secret\n", 3, 2},
		{"what\nl\nl\n", 3, 3}, // asked again after a word that means nothing
		{"", 1, 0},             // the end of the input: there is nobody any more
	} {
		srv := agenttest.NewServer(t, agenttest.Completed(call("c1", "d/a"), call("c2", "d/a"), call("c3", "e/c")), agenttest.Completed(item.Assistant("done")))
		var screen bytes.Buffer
		who := New(strings.NewReader(tt.typed), &screen)
		a := &agent.Agent{Model: srv.Client(), Tools: []tool.Tool{look}, Policy: agent.Policy{Ask: []string{"look"}, Approver: who.Approve}}
		a.Request.Model = "m"
		res, err := a.Run(t.Context(), session.New(), item.User("go"))
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Count(screen.String(), "run it?"); res.Calls != tt.runs || got < tt.asked || tt.typed != "" && got != tt.asked {
			t.Errorf("%q: %d calls ran, %d questions\n%s", tt.typed, res.Calls, got, screen.String())
		}
	}
}

// TestQuestionsTakeTurns proves that a line answers one question: one of the model and one about a call, of
// two subagents, are asked one after the other, and a question that ends while it waits is not asked.
func TestQuestionsTakeTurns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		in, typed := io.Pipe()
		var screen bytes.Buffer
		who := New(in, &screen)
		said, decided, gone := make(chan string, 1), make(chan agent.Decision, 1), make(chan error, 1)
		go func() {
			answer, _ := who.Ask(t.Context(), toolkit.Question{Text: "Which colour?"})
			said <- answer
		}()
		synctest.Wait()
		go func() {
			v, _ := who.Approve(t.Context(), agent.ApprovalRequest{Call: tool.Call{Name: "build", Arguments: "{}"}})
			decided <- v
		}()
		synctest.Wait()
		late, end := context.WithCancel(t.Context())
		go func() {
			_, err := who.Ask(late, toolkit.Question{Text: "Which size?"})
			gone <- err
		}()
		synctest.Wait()
		if got := screen.String(); !strings.Contains(got, "Which colour?") || strings.Contains(got, "build") {
			t.Errorf("the screen:\n%s", got)
		}
		end()
		if err := <-gone; err == nil {
			t.Error("a question that is over was answered")
		}
		_, _ = io.WriteString(typed, "yes\n")
		if got := <-said; got != "yes" {
			t.Errorf("the model reads %q", got)
		}
		synctest.Wait()
		if got := screen.String(); !strings.Contains(got, "build") || strings.Contains(got, "size") {
			t.Errorf("the screen:\n%s", got)
		}
		_, _ = io.WriteString(typed, "n\n")
		if v := <-decided; v.Allow {
			t.Error("the call is allowed")
		}
		_ = typed.Close()
	})
}

// TestAnswerBeforeIsARule proves that a call which an answer before allows is recorded as allowed by its
// rule, which then also holds for the place that the call opens, and not as one that a person was asked about. A1
func TestAnswerBeforeIsARule(t *testing.T) {
	t.Parallel()
	p := New(strings.NewReader(""), io.Discard)
	p.liked = []session.Rule{{Verdict: session.Allow, Tool: "other*"}, {Verdict: session.Allow, Tool: "append_*", Member: "path", Under: "pub"}}
	d, err := p.Approve(t.Context(), agent.ApprovalRequest{Call: tool.Call{Name: "append_to_file", Arguments: `{"path":"pub/f"}`}})
	if err != nil || !d.Allow || d.Rule == nil || d.Rule.Under != "pub" || d.Decided != session.DeciderRule || d.By != "" {
		t.Errorf("%+v %v", d, err)
	}
}

// TestOverTakesNoLine proves that a question that is over before it is asked takes no line that is there:
// the line answers what is asked next. If the terminal is gone it answers nothing.
func TestOverTakesNoLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		who := New(strings.NewReader("yes\n"), io.Discard)
		who.Typed()
		synctest.Wait() // the line is there
		over, end := context.WithCancel(t.Context())
		end()
		for range 50 { // chance would take the line in one of them
			if line, _, err := who.Line(over); line != "" || !errors.Is(err, context.Canceled) {
				t.Fatalf("%q, %v", line, err)
			}
		}
		gone := make(chan struct{})
		close(gone)
		who.Lost = gone
		for range 50 {
			if line, ok, err := who.Line(t.Context()); line != "" || ok || err != nil {
				t.Fatalf("the terminal is gone: %q, %v, %v", line, ok, err)
			}
		}
		who.Lost = nil
		if line, ok, err := who.Line(t.Context()); line != "yes" || !ok || err != nil {
			t.Errorf("%q, %v, %v", line, ok, err)
		}
	})
}
