// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

// Package eventlog writes the events of runs as records of log/slog. It is a package of
// its own so that programs that do not use it do not link log/slog.
package eventlog

import (
	"cmp"
	"context"
	"log/slog"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
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
	// notices. A text is shortened to 8 KB. Images and files are described by type, size
	// and hash; base64 that a text or an argument contains is not.
	Content bool
	// Hide returns a text without secrets, such as the method Hide of an
	// endpoint.Key. It is called for every text. Nil hides nothing.
	Hide func(text string) string

	mu    sync.Mutex
	known map[string]*agent.KnownCalls // by session; "" is the run's own
	took  map[string]time.Duration     // of tools that returned, by session and call
	began map[string]session.Entry     // of turns, by session
}

// Limits of texts in records, in bytes.
const (
	maxLoggedName = 128
	maxLoggedText = 8 << 10
)

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

// call returns the call that an entry is about, and the duration of its tool.
func (l *Log) call(e session.Entry, of string) (c *agent.KnownCall, took time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.known == nil {
		l.known, l.took = map[string]*agent.KnownCalls{}, map[string]time.Duration{}
	}
	if l.known[of] == nil {
		l.known[of] = new(agent.KnownCalls)
	}
	found := l.known[of].Add(e)
	if found == nil {
		return nil, 0
	}
	copied := *found
	key := of + " " + found.CallID
	took = l.took[key]
	if _, ends := e.Body.(session.CallOutput); ends {
		delete(l.took, key)
	}
	return &copied, took
}

func (l *Log) progress(ctx context.Context, p agent.Progress, of string, attrs []slog.Attr) {
	switch p.Kind {
	case agent.ProgressReturned:
		l.mu.Lock()
		if l.took == nil {
			l.known, l.took = map[string]*agent.KnownCalls{}, map[string]time.Duration{}
		}
		l.took[of+" "+p.CallID] = p.Took
		l.mu.Unlock()
	case agent.ProgressWaiting:
		l.write(ctx, slog.LevelWarn, "call waits for approval", attrs, l.id("tool", p.Tool), l.id("call_id", p.CallID))
	case agent.ProgressUnapproved:
		l.write(ctx, slog.LevelWarn, "call needs an approval", attrs, l.id("tool", p.Tool), l.id("call_id", p.CallID))
	case agent.ProgressDelayed:
		l.write(ctx, slog.LevelDebug, "call delayed", attrs, slog.Int("turn", p.Turn), l.id("tool", p.Tool), l.id("call_id", p.CallID), slog.Duration("wait", p.Took),
			l.text("reason", p.Error))
	case agent.ProgressSpeaker:
		l.write(ctx, slog.LevelDebug, "agent speaks", attrs, slog.Int("turn", p.Turn), l.id("handoff", p.Tool))
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

func (l *Log) recorded(ctx context.Context, e session.Entry, of string, attrs []slog.Attr) {
	call, took := l.call(e, of)
	attrs = append(attrs, slog.Int64("seq", e.Seq))
	aboutCall := func(id string) []slog.Attr {
		if call == nil {
			return []slog.Attr{l.id("call_id", id)}
		}
		return []slog.Attr{l.id("tool", call.Tool), l.id("call_id", id)}
	}
	switch b := e.Body.(type) {
	case session.RunStarted:
		var model string
		if b.Setup != nil {
			model = b.Setup.Model
		}
		l.write(ctx, slog.LevelDebug, "run started", attrs, l.id("model", model), slog.Bool("resumes", b.Resumes))
	case session.InputItem:
		l.write(ctx, slog.LevelDebug, "input", attrs, append([]slog.Attr{slog.String("type", string(b.Item.Type()))}, l.item(b.Item)...)...)
	case session.TurnStarted:
		l.mu.Lock()
		if l.began == nil {
			l.began = map[string]session.Entry{}
		}
		l.began[of] = e
		l.mu.Unlock()
		l.write(ctx, slog.LevelDebug, "turn started", attrs, slog.Int("turn", b.Turn))
	case session.OutputItem:
		more := []slog.Attr{slog.Int("turn", b.Turn), slog.String("type", string(b.Item.Type()))}
		if call != nil {
			more = append(more, aboutCall(call.CallID)...)
		}
		l.write(ctx, slog.LevelDebug, "output", attrs, append(more, l.item(b.Item)...)...)
	case session.TurnEnded:
		level, class := slog.LevelInfo, b.Class
		if b.BrokeOff() {
			level, class = slog.LevelWarn, cmp.Or(b.Class, b.Status)
		} else if b.Status == item.StatusIncomplete {
			level = slog.LevelWarn
		}
		more := []slog.Attr{slog.Int("turn", b.Turn), slog.String("status", b.Status), l.id("model", b.Model), l.id("response_id", b.ResponseID), l.id("request_id", b.RequestID)}
		l.mu.Lock()
		began := l.began[of].Time
		l.mu.Unlock()
		if !began.IsZero() && !e.Time.IsZero() {
			more = append(more, slog.Duration("took", e.Time.Sub(began)))
		}
		if class != "" {
			more = append(more, slog.String("error", class))
		}
		more = append(more, usageAttr(b.Usage), costAttr(b.Cost), l.text("reason", b.Reason))
		l.write(ctx, level, "turn ended", attrs, more...)
	case session.Approval:
		level, verdict := slog.LevelDebug, "allowed"
		if !b.Allowed {
			level, verdict = slog.LevelWarn, "refused"
		}
		more := append(aboutCall(b.CallID), slog.String("verdict", verdict), l.id("by", b.By), l.id("from", b.From), l.text("rule", b.Rule), l.text("reason", b.Reason))
		l.write(ctx, level, "call judged", attrs, more...)
	case session.CallStarted:
		more := append(aboutCall(b.CallID), l.id("session", b.Session))
		if call != nil {
			more = append(more, l.text("arguments", call.Arguments))
		}
		l.write(ctx, slog.LevelDebug, "call started", attrs, more...)
	case session.SubagentUsage:
		l.write(ctx, slog.LevelInfo, "subagent used", attrs, append(aboutCall(b.CallID), l.id("session", b.Session), slog.Int("turns", b.Turns), slog.Int64("tokens", b.Tokens), costAttr(b.Cost))...)
	case session.CallOutput:
		level := slog.LevelInfo
		if b.Failed {
			level = slog.LevelWarn
		}
		more := append(aboutCall(b.CallID), slog.Bool("failed", b.Failed), slog.Int("bytes", b.Item.Size()))
		if took > 0 {
			more = append(more, slog.Duration("took", took))
		}
		l.write(ctx, level, "call ended", attrs, append(more, l.item(b.Item)...)...)
	case session.CallDropped:
		l.write(ctx, slog.LevelWarn, "call dropped", attrs, append(aboutCall(b.CallID), l.text("reason", b.Reason))...)
	case session.Paused:
		l.write(ctx, slog.LevelWarn, "call paused", attrs, append(aboutCall(b.CallID), l.id("session", b.Session))...)
	case session.ItemsWithdrawn:
		l.write(ctx, slog.LevelWarn, "items withdrawn", attrs, slog.Any("entries", b.Seqs), l.id("by", b.By), l.text("reason", b.Reason))
	case session.ReasoningDropped:
		l.write(ctx, slog.LevelWarn, "reasoning dropped", attrs, l.text("reason", b.Reason))
	case session.Quarantined:
		l.write(ctx, slog.LevelWarn, "item quarantined", attrs, slog.Int64("entry", b.Seq), l.text("reason", b.Reason))
	case session.Compacted:
		level := slog.LevelInfo
		if b.Failure != "" {
			level = slog.LevelWarn
		}
		l.write(ctx, level, "compacted", attrs, slog.String("by", b.By), slog.Int64("before", b.Before), slog.Int64("after", b.After),
			slog.Bool("failed", b.Failure != ""), usageAttr(b.Usage), costAttr(b.Cost), l.text("reason", b.Failure))
	case session.Noticed:
		l.write(ctx, slog.LevelWarn, "noticed", attrs, slog.String("kind", b.Kind), slog.Int("turn", b.Turn), l.id("call_id", b.CallID), l.text("text", b.Text))
	case session.Stopped:
		l.write(ctx, stopLevel(agent.StopReason(b.Why)), "run stopped", attrs, slog.String("why", b.Why), l.text("detail", b.Detail))
	}
}

// stopLevel returns the level of the end of a run.
func stopLevel(why agent.StopReason) slog.Level {
	switch why {
	case agent.StopEndTurn, agent.StopRequested:
		return slog.LevelInfo
	case agent.StopProviderError, agent.StopContextFull, agent.StopBadItem, "":
		return slog.LevelError
	}
	return slog.LevelWarn
}

// runKey is the key of the attributes of a run in its context.
type runKey struct{}

// Hooks returns hooks that write the records of every run of the agents that use
// them, with the session of each. They change and refuse nothing. As the first of
// several Hooks they see what the others made of a call. In contrast to [Log.Add]
// there are records of turns, calls, compactions, notices and runs, and none of single
// items or entries. A nil Log has no hooks.
func (l *Log) Hooks() agent.Hooks {
	if l == nil {
		return agent.Hooks{}
	}
	run := func(id string, depth int) []slog.Attr {
		attrs := []slog.Attr{l.id("session", id)}
		if depth > 0 {
			attrs = append(attrs, slog.Int("depth", depth))
		}
		return attrs
	}
	return agent.Hooks{
		Name: "log",
		BeforeRun: func(ctx context.Context, c *agent.RunCall) (context.Context, error) {
			l.write(ctx, slog.LevelDebug, "run started", run(c.Session, c.Depth), l.id("model", c.Model))
			return context.WithValue(ctx, runKey{}, run(c.Session, c.Depth)), nil
		},
		AfterRun: func(ctx context.Context, c *agent.RunCall) error {
			level := stopLevel(c.Why)
			more := []slog.Attr{slog.String("why", string(c.Why)), slog.Duration("took", c.Ended.Sub(c.Started))}
			more = append(append(more, totalsAttr(&c.Totals)...), l.text("detail", c.Detail))
			if c.Err != nil {
				more = append(more, l.text("error", c.Err.Error()))
			}
			l.write(ctx, level, "run stopped", run(c.Session, c.Depth), more...)
			return nil
		},
		BeforeModel: func(ctx context.Context, c *agent.ModelCall) (context.Context, error) {
			l.write(ctx, slog.LevelDebug, "turn started", run(c.Session, c.Depth), slog.Int("turn", c.Turn))
			return context.WithValue(ctx, runKey{}, run(c.Session, c.Depth)), nil // an agent after a handoff has no BeforeRun
		},
		AfterModel: func(ctx context.Context, c *agent.ModelCall) error {
			if c.Stored {
				return nil // another process logged it
			}
			level := slog.LevelInfo
			if c.Err != nil || c.Status != item.StatusCompleted {
				level = slog.LevelWarn
			}
			more := []slog.Attr{slog.Int("turn", c.Turn), slog.String("status", c.Status), l.id("model", c.ResponseModel), l.id("response_id", c.ResponseID),
				slog.Duration("took", c.Ended.Sub(c.Started))}
			if c.Class != "" {
				more = append(more, slog.String("error", c.Class))
			}
			more = append(more, usageAttr(c.Usage), costAttr(c.Cost), l.text("reason", c.Reason))
			for _, it := range c.Output {
				more = append(more, l.item(it)...)
			}
			l.write(ctx, level, "turn ended", run(c.Session, c.Depth), more...)
			return nil
		},
		BeforeTool: func(ctx context.Context, c *agent.ToolCall) (context.Context, error) {
			l.write(ctx, slog.LevelDebug, "call started", run(c.Session, c.Depth), slog.Int("turn", c.Turn), l.id("tool", c.Call.Name), l.id("call_id", c.Call.ID),
				l.text("arguments", c.Call.Arguments))
			return ctx, nil
		},
		AfterTool: func(ctx context.Context, c *agent.ToolCall) error {
			level, message := slog.LevelInfo, "call ended"
			if c.Paused {
				level, message = slog.LevelWarn, "call paused"
			} else if c.Failure != "" {
				level = slog.LevelWarn
			}
			more := []slog.Attr{slog.Int("turn", c.Turn), l.id("tool", c.Call.Name), l.id("call_id", c.Call.ID), slog.Duration("took", c.Ended.Sub(c.Started))}
			if c.Failure != "" {
				more = append(more, slog.String("failure", string(c.Failure)))
			}
			l.write(ctx, level, message, run(c.Session, c.Depth), append(more, l.text("output", c.Output.Display()), l.text("error", c.Error))...)
			return nil
		},
		CallRefused: func(ctx context.Context, c *agent.ToolCall) error {
			l.write(ctx, slog.LevelWarn, "call refused", run(c.Session, c.Depth), slog.Int("turn", c.Turn), l.id("tool", c.Call.Name), l.id("call_id", c.Call.ID), l.text("reason", c.Error))
			return nil
		},
		Noticed: func(ctx context.Context, n *session.Noticed) error {
			of, _ := ctx.Value(runKey{}).([]slog.Attr)
			l.write(ctx, slog.LevelWarn, "noticed", of, slog.String("kind", n.Kind), slog.Int("turn", n.Turn), l.id("call_id", n.CallID), l.text("text", n.Text))
			return nil
		},
		AfterCompact: func(ctx context.Context, c *agent.CompactionCall) error {
			level := slog.LevelInfo
			more := []slog.Attr{slog.String("by", c.By), slog.Int64("before", c.Before), slog.Int64("after", c.After), slog.Bool("failed", c.Err != nil), usageAttr(c.Usage), costAttr(c.Cost)}
			if c.Err != nil {
				level = slog.LevelWarn
				more = append(more, l.text("reason", c.Err.Error()))
			}
			l.write(ctx, level, "compacted", run(c.Session, c.Depth), more...)
			return nil
		},
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
	return slog.String(key, l.shown(value, maxLoggedName))
}

// text returns the attribute of a text, or an empty one without Content.
func (l *Log) text(key, text string) slog.Attr {
	if !l.Content {
		return slog.Attr{}
	}
	return slog.String(key, l.shown(text, maxLoggedText))
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

// shown returns a text without secrets and up to a size, as valid UTF-8.
func (l *Log) shown(text string, limit int) string {
	text = item.ShowHeld(text)
	if l.Hide != nil {
		text = l.Hide(text)
	}
	if len(text) > limit {
		for limit > 0 && !utf8.RuneStart(text[limit]) {
			limit--
		}
		text = text[:limit] + "…"
	}
	return strings.ToValidUTF8(text, "\uFFFD")
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
