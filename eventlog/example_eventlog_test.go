// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package eventlog_test

import (
	"context"
	"log/slog"
	"os"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/agenttest"
	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/eventlog"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/tool"
)

// observed is an agent that asks for the weather once.
func observed() *agent.Agent {
	model := agenttest.ModelFunc(func(_ context.Context, req *api.Request) agenttest.Reply {
		if req.Input.Len() == 1 {
			return agenttest.Completed(item.Call("call_1", "weather", `{"city":"Bergen"}`))
		}
		return agenttest.Completed(item.Assistant("Take an umbrella."))
	})
	type place struct {
		City string `json:"city"`
	}
	weather := tool.Must("weather", "Tell the weather in a city.", func(_ context.Context, p place) (string, error) {
		return "It rains in " + p.City + ".", nil
	}, tool.ReadOnly())
	a := &agent.Agent{Model: model, Tools: []tool.Tool{weather}}
	a.Request.Model = "gpt-5"
	return a
}

// The events of a run as records of package slog, without any text of the
// conversation.
func Example() {
	logger := slog.New(slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		switch a.Key {
		case "level", "msg", "turn", "tool", "status", "calls", "why":
			return a
		}
		return slog.Attr{} // for short lines here
	}}))
	ctx, a := context.Background(), observed()

	l := &eventlog.Log{Logger: logger}
	for ev, err := range a.Stream(ctx, session.New(), item.User("Do I need an umbrella in Bergen?")) {
		if err != nil {
			logger.Error(err.Error())
		}
		l.Add(ctx, ev)
	}
	// Output:
	// level=INFO msg="turn ended" turn=1 status=completed
	// level=INFO msg="call ended" tool=weather
	// level=INFO msg="turn ended" turn=2 status=completed
	// level=INFO msg="run used" calls=1
	// level=INFO msg="run stopped" why=answered
}
