// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"bufio"
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/antiphon-go/antiphon/agenttest"
	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/server"
	"github.com/antiphon-go/antiphon/server/gateway"
)

// What an upstream did for a client that went away, for a response that was cancelled, and for one
// that broke off, counts by an estimate, because the upstream does not report it.
func TestSpentOnBroken(t *testing.T) {
	const deltas = 20
	words := strings.TrimSpace(strings.Repeat("twelve bytes ", deltas))
	up := agenttest.NewServer(t)
	never := make(chan struct{})
	defer close(never)
	stalled := agenttest.Completed(item.Assistant(words)).StallAfter(deltas, never)
	b := &gateway.Backend{Upstreams: []gateway.Upstream{open(t, up.URL, false)}}
	b.Cost = func(_, _ string, used *api.Usage) float64 { return float64(used.InputTokens + 100*used.OutputTokens) }
	got := make(chan server.Outcome, 1)
	w := &world{t: t, b: b}
	w.serve(&server.Server{Backend: b, Admit: func(context.Context, *server.Request) (func(server.Outcome), error) {
		return func(o server.Outcome) { got <- o }, nil
	}})
	defer w.end()
	input := strings.Repeat("many words ", 400)
	leave := func(lines int) {
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, w.base+"/responses", strings.NewReader(`{"model":"m","stream":true,"input":"`+input+`"}`))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		if lines == 0 { // the upstream has the request, and says nothing
			n := len(up.Requests())
			go func() {
				for len(up.Requests()) == n && ctx.Err() == nil {
					time.Sleep(time.Millisecond)
				}
				stop()
			}()
		}
		resp, err := w.client.Do(r)
		if err != nil {
			return
		}
		defer resp.Body.Close()
		read := bufio.NewScanner(resp.Body)
		for range lines {
			read.Scan()
		}
	}
	outcome := func(what string) (o server.Outcome) {
		t.Helper()
		select {
		case o = <-got:
		case <-time.After(time.Minute):
			t.Fatalf("%s: the server does not say how it ended", what)
		}
		return o
	}
	check := func(what, status string, in, out int64) {
		t.Helper()
		o := outcome(what)
		if o.Usage == nil || o.Usage.InputTokens < in || o.Usage.InputTokens > 3*in || o.Usage.OutputTokens < out || out == 0 && o.Usage.OutputTokens != 0 || o.Status != status ||
			o.Usage.TotalTokens != o.Usage.InputTokens+o.Usage.OutputTokens || o.Cost != float64(o.Usage.InputTokens+100*o.Usage.OutputTokens) || o.Model != "m" {
			t.Errorf("%s: %+v, %+v", what, o, o.Usage)
		}
	}
	up.Add(stalled)
	leave(3 * deltas)
	check("a client that left", "cancelled", 1000, deltas/2)
	up.Add(agenttest.Completed(item.Assistant(words)).Stall(never))
	leave(0)
	check("a client that left before the first event", "cancelled", 1000, 0)
	up.Add(stalled)
	asked := len(up.Requests())
	r := w.create(`{"model":"m","background":true,"input":"` + input + `"}`)
	for until := time.Now().Add(time.Minute); len(up.Requests()) == asked; time.Sleep(time.Millisecond) {
		if time.Now().After(until) {
			t.Fatal("the upstream is not asked")
		}
	}
	if status, _, text := w.ask(http.MethodPost, "/responses/"+r.ID+"/cancel", ""); status != http.StatusOK {
		t.Fatal(text)
	}
	check("a cancelled one", "cancelled", 1000, -1)
	up.Add(agenttest.Completed(item.Assistant(words)).CutAfter(1500))
	_, _, _ = w.ask(http.MethodPost, "/responses", `{"model":"m","stream":true,"input":"`+input+`"}`)
	check("one that broke off", "failed", 1000, 1)
	up.Add(agenttest.Failure(http.StatusBadRequest, "invalid_prompt", "No."))
	_, _, _ = w.ask(http.MethodPost, "/responses", `{"model":"m","input":"x"}`)
	if o := outcome("refused"); o.Usage != nil || o.Cost != 0 {
		t.Errorf("refused: %+v", o)
	}
}

// What an upstream did that does not say what it used counts by an estimate, too, and is logged once. The
// response claims no usage. V1
func TestSpentUnsaid(t *testing.T) {
	const words = "As many words as forty bytes of text are."
	input := strings.Repeat("many words ", 400)
	for name, usage := range map[string]string{"none": "", "null": `,"usage":null`, "zero": `,"usage":{"input_tokens":0,"output_tokens":0,"total_tokens":0}`} {
		ended := `"object":"response","status":"completed","model":"m","output":[{"type":"message","id":"m1","role":"assistant","status":"completed","content":[{"type":"output_text","text":"` + words + `","annotations":[]}]}]` + usage
		for kind, reply := range map[string]agenttest.Reply{
			"without deltas": agenttest.Events(`{"type":"response.created","sequence_number":0,"response":{"id":"r","object":"response","status":"in_progress","model":"m","output":[]}}`,
				`{"type":"response.completed","sequence_number":1,"response":{"id":"r",`+ended+`}}`),
			"with an item": agenttest.Events(`{"type":"response.created","sequence_number":0,"response":{"id":"r","object":"response","status":"in_progress","model":"m","output":[]}}`,
				`{"type":"response.output_item.done","sequence_number":1,"output_index":0,"item":{"type":"message","id":"m1","role":"assistant","status":"completed","content":[{"type":"output_text","text":"`+words+`","annotations":[]}]}}`,
				`{"type":"response.completed","sequence_number":2,"response":{"id":"r",`+strings.Replace(ended, `"output":[{`, `"output":[],"was":[{`, 1)+`}}`),
			"chat": agenttest.Events(`{"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":"`+words+`"},"finish_reason":null}]`+usage+`}`,
				`{"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]`+usage+`}`).WithDone(),
		} {
			t.Run(name+" "+kind, func(t *testing.T) {
				up := agenttest.NewServer(t)
				up.Otherwise(func(int, agenttest.Request) agenttest.Reply { return reply })
				w := serving(t, open(t, up.URL, kind == "chat"))
				w.end()
				w.b.Cost = func(_, _ string, used *api.Usage) float64 { return float64(used.InputTokens + 100*used.OutputTokens) }
				got := make(chan server.Outcome, 1)
				w.serve(&server.Server{Backend: w.b, Admit: func(context.Context, *server.Request) (func(server.Outcome), error) {
					return func(o server.Outcome) { got <- o }, nil
				}})
				defer w.end()
				check := func() {
					t.Helper()
					if o := <-got; o.Status != "completed" || o.Usage == nil || o.Usage.InputTokens < 1000 || o.Usage.InputTokens > 3000 || o.Usage.OutputTokens < 10 || o.Usage.OutputTokens > 20 ||
						o.Usage.TotalTokens != o.Usage.InputTokens+o.Usage.OutputTokens || o.Cost != float64(o.Usage.InputTokens+100*o.Usage.OutputTokens) || o.Model != "m" {
						t.Errorf("%+v, %+v", o, o.Usage)
					}
				}
				if r := w.create(`{"model":"m","input":"` + input + `"}`); r.Text() != words || r.Usage != nil && r.Usage.TotalTokens != 0 {
					t.Errorf("%q, %+v", r.Text(), r.Usage)
				}
				check()
				_ = w.events(`{"model":"m","stream":true,"input":"` + input + `"}`)
				check()
				if n := strings.Count(w.logged.String(), "does not say what it used"); n != 1 {
					t.Errorf("said %d times: %s", n, w.logged.String())
				}
			})
		}
	}
}

// A summary by an upstream that does not say what it used counts by an estimate, and claims no usage.
func TestSpentUnsaidBeside(t *testing.T) {
	up := agenttest.NewServer(t, agenttest.Failure(http.StatusNotFound, "not_found", "No."), agenttest.Events(
		`{"type":"response.created","sequence_number":0,"response":{"id":"r","object":"response","status":"in_progress","model":"m","output":[]}}`,
		`{"type":"response.completed","sequence_number":1,"response":{"id":"r","object":"response","status":"completed","model":"m","output":[{"type":"message","id":"m1","role":"assistant","status":"completed","content":[{"type":"output_text","text":"They talked.","annotations":[]}]}]}}`))
	got := make(chan server.Outcome, 1)
	w := serving(t, open(t, up.URL, false))
	w.end()
	w.serve(&server.Server{Backend: w.b, Admit: func(context.Context, *server.Request) (func(server.Outcome), error) {
		return func(o server.Outcome) { got <- o }, nil
	}})
	defer w.end()
	if _, err := w.typed().Compact(t.Context(), &api.CompactRequest{Model: "m", Input: item.NewList(item.User(strings.Repeat("many words ", 400)))}); err != nil {
		t.Fatal(err)
	}
	if o := <-got; o.Usage == nil || o.Usage.InputTokens < 1000 || o.Usage.OutputTokens < 3 {
		t.Errorf("%+v, %+v", o, o.Usage)
	}
}

// An estimate counts the content of the files that a request names, as it counts that of files in the request.
func TestSpentOnFiles(t *testing.T) {
	up, never := agenttest.NewServer(t), make(chan struct{})
	defer close(never)
	up.Add(agenttest.Completed(item.Assistant("Yes.")).Stall(never))
	keep := &gateway.Store{In: opened(t)}
	w := &world{t: t, b: &gateway.Backend{Upstreams: []gateway.Upstream{open(t, up.URL, false)}}}
	got := make(chan server.Outcome, 1)
	w.serve(&server.Server{Backend: w.b, Store: keep, Admit: func(context.Context, *server.Request) (func(server.Outcome), error) {
		return func(o server.Outcome) { got <- o }, nil
	}})
	defer func() {
		w.end()
		if err := keep.Close(); err != nil {
			t.Error(err)
		}
	}()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	body := naming(w.uploaded("one.txt", strings.Repeat("x", 9000)))
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, w.base+"/responses", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	go func() {
		for len(up.Requests()) == 0 && ctx.Err() == nil {
			time.Sleep(time.Millisecond)
		}
		stop() // the client leaves
	}()
	if resp, err := w.client.Do(r); err == nil {
		resp.Body.Close()
	}
	if o := <-got; o.Usage == nil || o.Usage.InputTokens < 1500 || o.Usage.InputTokens > 2000 {
		t.Errorf("%+v %+v", o, o.Usage)
	}
}
