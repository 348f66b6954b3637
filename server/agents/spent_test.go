// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agents_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/server"
	"github.com/antiphon-go/antiphon/server/agents"
)

// silentModel is an endpoint with Chat Completions that does not say what its answers used. If hangs, it stops in
// the middle of an answer.
func silentModel(t *testing.T, hangs bool) string {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		const chunk = `data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":%s,"finish_reason":%s}]}` + "\n\n"
		fmt.Fprintf(w, chunk, `{"role":"assistant","content":"Four words of text."}`, "null")
		if hangs {
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
			return
		}
		fmt.Fprintf(w, chunk, `{}`, `"stop"`)
		fmt.Fprint(w, "data: [DONE]\n\n")
	}))
	t.Cleanup(s.Close)
	return s.URL + "/v1"
}

// What nobody has counted is null in the usage, and counts as an estimate in limits and costs: of an endpoint that
// does not say what it used, and of a response that its server or its client cuts.
func TestUncounted(t *testing.T) {
	for _, test := range []struct {
		name, status string
		hangs        bool
		end          func(w *world, stop func())
	}{
		{"silent", item.StatusCompleted, false, nil},
		{"the server ends", item.StatusIncomplete, true, func(w *world, _ func()) {
			late, stop := context.WithCancel(t.Context())
			stop()
			w.b.Drain(late)
		}},
		{"the client leaves", item.StatusCancelled, true, func(_ *world, stop func()) { stop() }},
	} {
		t.Run(test.name, func(t *testing.T) {
			url, logged := silentModel(t, test.hangs), make(chan string, 10)
			w := serving(t, "", "", func(b *agents.Backend) {
				b.Log = func(err error) { logged <- err.Error() }
				c := &b.Agents[0].Config
				c.Endpoint.BaseURL, c.Endpoint.Model, c.Endpoint.API, c.Price = url, "m", "chat", &agent.Price{Input: 1e6, Output: 1e6}
			})
			write(t, w.dir, "it.md", "<system>Be brief.</system>\n")
			settled := make(chan server.Outcome, 1)
			s := &server.Server{Backend: w.b, Admit: func(context.Context, *server.Request) (func(server.Outcome), error) {
				return func(o server.Outcome) { settled <- o }, nil
			}}
			base, stop, err := s.Start()
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(stop)
			ctx, leave := context.WithCancel(t.Context())
			defer leave()
			r, err := http.NewRequestWithContext(ctx, http.MethodPost, base+"/responses", strings.NewReader(`{"model":"it","input":"What is it?","stream":true}`))
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Content-Type", "application/json")
			resp, err := w.client.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			var last string
			for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
				data, found := strings.CutPrefix(lines.Text(), "data: ")
				if found && data != "[DONE]" {
					last = data
				}
				if found && test.end != nil && strings.Contains(data, string(api.EventTextDelta)) {
					test.end(w, leave)
				}
			}
			if test.status != item.StatusCancelled && !strings.Contains(last, `"usage":null`) {
				t.Error(last)
			}
			o := <-settled
			if o.Status != test.status || o.Usage == nil || o.Usage.InputTokens < 3 || o.Usage.OutputTokens < 3 {
				t.Fatalf("%+v, %+v", o, o.Usage)
			}
			if sum := o.Usage.InputTokens + o.Usage.OutputTokens; o.Usage.TotalTokens != sum || o.Cost != float64(sum) || o.Model != "m" {
				t.Errorf("%+v, %+v", o, o.Usage)
			}
			if test.end == nil {
				if said := <-logged; !strings.Contains(said, "the endpoint of the agent it does not say what it used") {
					t.Error(said)
				}
			}
		})
	}
}
