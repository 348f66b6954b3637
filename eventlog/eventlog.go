// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

// Package eventlog writes the events of runs as records of log/slog. It is a package of
// its own so that programs that do not use it do not link log/slog.
package eventlog

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/internal/excerpt"
	"github.com/antiphon-go/antiphon/item"
)

// Log writes the events of runs as records of package slog, in one of two ways:
// [Log.Add] takes the events of agent.Agent.Stream, agent.Run.Events or agent.Watch, and
// [Log.Hooks] are hooks of an agent. Use one of the two for a run.
//
// Records have a constant message, such as "turn ended", and attributes: numbers,
// names and ids. They have no text of a person, a model or a tool, unless Content is
// set. The key of the endpoint is never in them.
//
// The levels are Debug for what belongs to any run, such as the start of a turn or a
// call; Info for its results; Warn for what a person may want to look at, such as a
// failed call, a notice, a reply that broke off or a limit that was reached; and Error
// for a run that ended because of an error. A handler that accepts Info gets about
// one record for each turn, call and run.
//
// The fields must not change after the first use. A Log is safe for concurrent
// use. For Add, use one Log for each run, because events do not name the run that
// they belong to; Hooks serve any number of runs.
type Log struct {
	// Logger receives the records; nil means slog.Default().
	Logger *slog.Logger
	// Content adds texts: of messages, arguments and outputs, of errors, refusals and
	// notices. A text is shortened to 8 KB. Base64 is left out wherever it is: images and
	// files are described by type and size.
	Content bool
	// Hide returns a text without secrets, such as the method Hide of an
	// endpoint.Key. It is called for every text. Nil hides nothing.
	Hide func(text string) string

	mu    sync.Mutex
	known map[string]*agent.KnownCalls // by session; "" is the run's own
	took  map[string]time.Duration     // of tools that returned, by session and call
	began map[string]time.Time         // of the last turn, by session
}

// Add writes the record of an event, if the event has one: deltas and the model's own
// events have none. A nil Log writes nothing. Add accepts nil, so that a range over events can pass all it gets.
func (l *Log) Add(ctx context.Context, ev agent.Event) {
	if l == nil {
		return
	}
	if inner, ok := ev.(agent.SubagentEvent); ok {
		l.add(ctx, inner.Event, inner.Session, []slog.Attr{slog.Group("subagent", slog.Int("depth", inner.Depth), l.id("session", inner.Session),
			l.id("tool", inner.Tool), l.id("call_id", inner.CallID))})
		return
	}
	l.add(ctx, ev, "", nil)
}

func (l *Log) add(ctx context.Context, ev agent.Event, of string, attrs []slog.Attr) {
	switch ev := ev.(type) {
	case agent.Recorded:
		l.recorded(ctx, ev.Entry, of, attrs)
	case agent.Progress:
		l.progress(ctx, ev, of, attrs)
	}
}

// begin makes the maps. The caller holds the lock.
func (l *Log) begin() {
	if l.known == nil {
		l.known, l.took, l.began = map[string]*agent.KnownCalls{}, map[string]time.Duration{}, map[string]time.Time{}
	}
}

func (l *Log) progress(ctx context.Context, p agent.Progress, of string, attrs []slog.Attr) {
	switch p.Kind {
	case agent.ProgressReturned:
		l.mu.Lock()
		l.begin()
		l.took[of+" "+p.CallID] = p.Took
		l.mu.Unlock()
	case agent.ProgressWaiting:
		l.write(ctx, slog.LevelWarn, "call waits for approval", attrs, l.id("tool", p.Tool), l.id("call_id", p.CallID))
	case agent.ProgressUnapproved:
		l.write(ctx, slog.LevelWarn, "call needs an approval", attrs, l.id("tool", p.Tool), l.id("call_id", p.CallID))
	case agent.ProgressDelayed:
		l.write(ctx, slog.LevelDebug, "call delayed", attrs, slog.Int("turn", p.Turn), l.id("tool", p.Tool), l.id("call_id", p.CallID), slog.Duration("wait", p.Wait),
			slog.Bool("retry", p.Retry), l.text("reason", p.Reason))
	case agent.ProgressSpeaker:
		l.write(ctx, slog.LevelDebug, "agent speaks", attrs, slog.Int("turn", p.Turn), l.id("handoff", p.Handoff))
	case agent.ProgressTripped:
		if t := p.Tripwire; t != nil {
			l.write(ctx, slog.LevelWarn, "guard objected", attrs, slog.Int("turn", p.Turn), l.id("guard", t.Guard), slog.String("stage", t.Stage), l.text("reason", t.Reason))
		}
	case agent.ProgressCompacting:
		l.write(ctx, slog.LevelDebug, "compaction started", attrs, slog.String("by", p.By), slog.Int64("tokens", p.Tokens), slog.Int("items", p.Items))
	case agent.ProgressTotals:
		l.write(ctx, slog.LevelInfo, "run used", attrs, totalsAttr(p.Totals)...)
	}
}

// write writes a record without the attributes that are empty.
func (l *Log) write(ctx context.Context, level slog.Level, message string, first []slog.Attr, attrs ...slog.Attr) {
	logger := l.Logger
	if logger == nil {
		logger = slog.Default()
	}
	if !logger.Enabled(ctx, level) {
		return
	}
	list := make([]slog.Attr, 0, len(first)+len(attrs))
	for _, a := range append(first[:len(first):len(first)], attrs...) {
		empty := a.Key == "" || a.Value.Kind() == slog.KindString && a.Value.String() == "" || a.Value.Kind() == slog.KindBool && !a.Value.Bool() ||
			a.Value.Kind() == slog.KindInt64 && a.Value.Int64() == 0
		if !empty {
			list = append(list, a)
		}
	}
	logger.LogAttrs(ctx, level, message, list...)
}

// id returns the attribute of a name or an id, which others choose, shortened.
func (l *Log) id(key, value string) slog.Attr {
	return slog.String(key, excerpt.Name(l.hidden(value)))
}

// text returns the attribute of a text, or an empty one without Content.
func (l *Log) text(key, text string) slog.Attr {
	if !l.Content {
		return slog.Attr{}
	}
	return slog.String(key, excerpt.Text(l.hidden(text), excerpt.MaxText))
}

// item returns the attribute of an item's text.
func (l *Log) item(it item.Item) []slog.Attr {
	if !l.Content {
		return nil
	}
	v, err := it.Decode()
	if err != nil {
		return nil
	}
	switch v := v.(type) {
	case *item.Message:
		return []slog.Attr{slog.String("role", string(v.Role)), l.text("text", v.Content.Display())}
	case *item.FunctionCall:
		return []slog.Attr{l.text("arguments", v.Arguments)}
	case *item.CustomToolCall:
		return []slog.Attr{l.text("arguments", v.Input)}
	case *item.FunctionCallOutput:
		return []slog.Attr{l.text("output", v.Output.Display())}
	case *item.CustomToolCallOutput:
		return []slog.Attr{l.text("output", v.Output.Display())}
	}
	return nil
}

// hidden returns a text without secrets.
func (l *Log) hidden(text string) string {
	if l.Hide == nil {
		return text
	}
	return l.Hide(text)
}

// usageAttr returns the group of a reply's tokens.
func usageAttr(u *api.Usage) slog.Attr {
	if u == nil {
		return slog.Attr{}
	}
	return slog.Group("tokens", slog.Int64("input", u.InputTokens), slog.Int64("cached", u.Cached()), slog.Int64("output", u.OutputTokens), slog.Int64("reasoning", u.Reasoning()))
}

func costAttr(cost float64) slog.Attr {
	if cost == 0 {
		return slog.Attr{}
	}
	return slog.Float64("cost", cost)
}

// totalsAttr returns the attributes of a run's usage.
func totalsAttr(t *agent.Totals) []slog.Attr {
	if t == nil {
		return nil
	}
	attrs := []slog.Attr{
		slog.Int("turns", t.Turns), slog.Int("calls", t.Calls), slog.Int("failed_calls", t.FailedCalls), slog.Int("refused_calls", t.RefusedCalls),
		slog.Group("tokens", slog.Int64("input", t.InputTokens), slog.Int64("cached", t.CachedTokens), slog.Int64("output", t.OutputTokens), slog.Int64("reasoning", t.ReasoningTokens)),
		costAttr(t.Cost),
	}
	if t.Nested != (agent.Usage{}) {
		attrs = append(attrs, slog.Group("subagents", slog.Int("turns", t.Nested.Turns), slog.Int64("tokens", t.Nested.Tokens), slog.Float64("cost", t.Nested.Cost)))
	}
	return attrs
}
