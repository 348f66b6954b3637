// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package eventlog

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
)

// runKey is the key of the attributes of a run in its context.
type runKey struct{}

// Hooks returns hooks that write the records of every run of the agents that use them,
// with the session of each. They change and refuse nothing. If they are the first of
// several Hooks, they record a call as the other hooks have changed it. Unlike
// [Log.Add], they write records of runs, turns, calls, compactions and notices, but
// not of single items or entries. What an agent does to which the conversation was handed
// has the name of the handoff. A nil Log has no hooks.
func (l *Log) Hooks() agent.Hooks {
	if l == nil {
		return agent.Hooks{}
	}
	return agent.Hooks{
		Name: "log", BeforeRun: l.beforeRun, AfterRun: l.afterRun, BeforeModel: l.beforeModel, AfterModel: l.afterModel,
		BeforeTool: l.beforeTool, AfterTool: l.afterTool, CallRefused: l.callRefused, Noticed: l.noticed, AfterCompact: l.afterCompact,
	}
}

// run returns the attributes of a run.
func (l *Log) run(id string, depth int) []slog.Attr {
	return []slog.Attr{l.id("session", id), slog.Int("depth", depth)}
}

func (l *Log) beforeRun(ctx context.Context, c *agent.RunCall) (context.Context, error) {
	l.write(ctx, slog.LevelDebug, "run started", l.run(c.Session, c.Depth), l.id("model", c.Model))
	return context.WithValue(ctx, runKey{}, l.run(c.Session, c.Depth)), nil
}

func (l *Log) afterRun(ctx context.Context, c *agent.RunCall) error {
	attrs := []slog.Attr{slog.String("why", string(c.Why)), slog.Duration("took", c.Ended.Sub(c.Started))}
	attrs = append(append(attrs, totalsAttr(&c.Totals)...), l.text("detail", c.Detail))
	if c.Err != nil {
		attrs = append(attrs, l.text("error", c.Err.Error()))
	}
	l.write(ctx, stopLevel(c.Why), "run stopped", l.run(c.Session, c.Depth), attrs...)
	return nil
}

func (l *Log) beforeModel(ctx context.Context, c *agent.ModelCall) (context.Context, error) {
	l.write(ctx, slog.LevelDebug, "turn started", l.run(c.Session, c.Depth), l.id("handoff", c.Speaker), slog.Int("turn", c.Turn))
	return context.WithValue(ctx, runKey{}, l.run(c.Session, c.Depth)), nil // an agent after a handoff has no BeforeRun
}

func (l *Log) afterModel(ctx context.Context, c *agent.ModelCall) error {
	if c.Stored {
		return nil // another process logged it
	}
	level := slog.LevelInfo
	if c.Err != nil || c.Status != item.StatusCompleted {
		level = slog.LevelWarn
	}
	attrs := []slog.Attr{l.id("handoff", c.Speaker), slog.Int("turn", c.Turn), slog.String("status", c.Status), l.id("model", c.ResponseModel), l.id("response_id", c.ResponseID),
		slog.Duration("took", c.Ended.Sub(c.Started)), slog.String("error", c.Class), usageAttr(c.Usage), costAttr(c.Cost), l.text("reason", c.Reason)}
	for i, it := range c.Output {
		if texts := l.item(it); len(texts) > 0 {
			attrs = append(attrs, slog.Attr{Key: fmt.Sprintf("item_%d", i+1), Value: slog.GroupValue(texts...)})
		}
	}
	l.write(ctx, level, "turn ended", l.run(c.Session, c.Depth), attrs...)
	return nil
}

// call returns the attributes of a call.
func (l *Log) call(c *agent.ToolCall) []slog.Attr {
	return append(l.run(c.Session, c.Depth), l.id("handoff", c.Speaker), slog.Int("turn", c.Turn), l.id("tool", c.Call.Name), l.id("call_id", c.Call.ID))
}

func (l *Log) beforeTool(ctx context.Context, c *agent.ToolCall) (context.Context, error) {
	l.write(ctx, slog.LevelDebug, "call started", l.call(c), l.text("arguments", c.Call.Arguments))
	return ctx, nil
}

func (l *Log) afterTool(ctx context.Context, c *agent.ToolCall) error {
	level, message := slog.LevelInfo, "call ended"
	if c.Paused {
		level, message = slog.LevelWarn, "call paused"
	} else if c.Failure != "" {
		level = slog.LevelWarn
	}
	l.write(ctx, level, message, l.call(c), slog.Duration("took", c.Ended.Sub(c.Started)), slog.String("failure", string(c.Failure)),
		l.text("output", c.Output.Display()), l.text("error", c.Error))
	return nil
}

func (l *Log) callRefused(ctx context.Context, c *agent.ToolCall) error {
	l.write(ctx, slog.LevelWarn, "call refused", l.call(c), l.text("reason", c.Error))
	return nil
}

func (l *Log) noticed(ctx context.Context, n *session.Noticed) error {
	of, _ := ctx.Value(runKey{}).([]slog.Attr)
	l.write(ctx, slog.LevelWarn, "noticed", of, slog.String("kind", n.Kind), slog.Int("turn", n.Turn), l.id("call_id", n.CallID), l.text("text", n.Text))
	return nil
}

func (l *Log) afterCompact(ctx context.Context, c *agent.CompactionCall) error {
	var failure string
	if c.Err != nil {
		failure = c.Err.Error()
	}
	r := l.compacted(c.By, c.Before, c.After, failure, c.Err != nil, usageAttr(c.Usage), costAttr(c.Cost))
	l.write(ctx, r.level, r.message, append(l.run(c.Session, c.Depth), l.id("handoff", c.Speaker)), r.attrs...)
	return nil
}
