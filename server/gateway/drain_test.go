// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/antiphon-go/antiphon/agenttest"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/server"
	"github.com/antiphon-go/antiphon/server/gateway"
)

// When the time is over that responses have to end, a response is incomplete and its usage is
// settled by an estimate. One of which the client has nothing is refused, as every later request.
func TestDrain(t *testing.T) {
	up := agenttest.NewServer(t)
	never := make(chan struct{})
	defer close(never)
	b := &gateway.Backend{Upstreams: []gateway.Upstream{open(t, up.URL, false)}}
	settled := make(chan server.Outcome, 3) // one for each request
	w := &world{t: t, b: b}
	w.serve(&server.Server{Backend: b, Admit: func(context.Context, *server.Request) (func(server.Outcome), error) {
		return func(o server.Outcome) { settled <- o }, nil
	}})
	defer w.end()
	up.Add(agenttest.Completed(item.Assistant(strings.Repeat("twelve bytes ", 20))).StallAfter(10, never))
	up.Add(agenttest.Completed(item.Assistant("x")).Stall(never))
	back := w.create(`{"model":"m","background":true,"input":"` + strings.Repeat("many words ", 400) + `"}`)
	for len(up.Requests()) < 1 { // the first reply is for it
		time.Sleep(time.Millisecond)
	}
	refused := make(chan string, 1)
	go func() {
		_, _, text := w.ask(http.MethodPost, "/responses", `{"model":"m","input":"y"}`)
		refused <- text
	}()
	for len(up.Requests()) < 2 {
		time.Sleep(time.Millisecond)
	}
	late, stop := context.WithCancel(t.Context())
	stop()
	b.Drain(late)
	if text := <-refused; !strings.Contains(text, "server_stopping") {
		t.Errorf("one that had not begun: %s", text)
	}
	one, other := <-settled, <-settled
	if one.Status != item.StatusIncomplete {
		one, other = other, one
	}
	if one.Status != item.StatusIncomplete || one.Usage == nil || one.Usage.InputTokens < 1000 || other.Usage == nil || other.Usage.InputTokens < 1 {
		t.Errorf("settled: %+v %+v", one, other)
	}
	_, _, text := w.ask(http.MethodGet, "/responses/"+back.ID, "")
	w.spec.Check(t, "Response", []byte(text))
	if !strings.Contains(text, `"status":"incomplete"`) || !strings.Contains(text, "The server stopped") {
		t.Errorf("%s", text)
	}
	if status, _, text := w.ask(http.MethodPost, "/responses", `{"model":"m","input":"z"}`); status != http.StatusServiceUnavailable || !strings.Contains(text, "server_stopping") {
		t.Errorf("a later one: %d %s", status, text)
	}
	b.Drain(late) // nothing is being made
}
