// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package temporal_test

import (
	"context"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/contrib/temporal"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/tool"
)

// A worker, which runs the steps of sessions. The code of the README is here.
func Example() {
	_ = func(ctx context.Context, c client.Client, store session.Inbox, clerk *agent.Agent) error {
		engine := &temporal.Engine{Client: c, Store: store}
		engine.Open = func(ctx context.Context, id, name string) (*temporal.Opened, error) {
			s, err := session.Open(ctx, store, id)
			return &temporal.Opened{Agent: clerk, Session: s}, err
		}
		w, err := engine.Worker(ctx, worker.Options{})
		if err != nil {
			return err
		}
		return w.Run(worker.InterruptCh())
	}
}

// A program that passes messages of a chat on. It needs no agent.
func ExampleEngine_Deliver() {
	_ = func(ctx context.Context, engine *temporal.Engine, message struct{ ID, Author, Text string }) error {
		_, err := engine.Deliver(ctx, "order-4711", "clerk", session.Delivery{
			Delivered: session.Delivered{Key: message.ID, By: message.Author, From: "chat"},
			Bodies:    []session.Body{session.InputItem{Item: item.User(message.Text)}},
		})
		return err
	}
}

// The calls of a tool run on machines with what it needs.
func ExampleEngine_Remote() {
	_ = func(engine *temporal.Engine, clerk *agent.Agent, render tool.Tool) error {
		// In the worker of the sessions:
		remote, err := engine.Remote(render, "with-gpu")
		if err != nil {
			return err
		}
		clerk.Tools = append(clerk.Tools, remote)

		// On the machines of the tool:
		w, err := engine.ToolWorker("with-gpu", worker.Options{WorkerStopTimeout: time.Minute}, render)
		if err != nil {
			return err
		}
		return w.Run(worker.InterruptCh())
	}
}
