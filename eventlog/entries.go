// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package eventlog

import (
	"cmp"
	"context"
	"log/slog"
	"time"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
)

// entryRecord is the record of an entry.
type entryRecord struct {
	level   slog.Level
	message string
	attrs   []slog.Attr
}

// known is what the log said before an entry: the call that the entry is about, if any,
// how long its tool ran, and when the turn began.
type known struct {
	call *agent.KnownCall
	took time.Duration
	turn time.Time
}

// recorded writes the record of an entry.
func (l *Log) recorded(ctx context.Context, e session.Entry, of string, attrs []slog.Attr) {
	k := l.follow(e, of)
	r, ok := l.ofRun(e, k)
	if !ok {
		r, ok = l.ofCall(e, k)
	}
	if !ok {
		r, ok = l.ofItem(e, k)
	}
	if ok {
		l.write(ctx, r.level, r.message, append(attrs, slog.Int64("seq", e.Seq)), r.attrs...)
	}
}

// follow notes what an entry says about later ones, and returns what is known about it.
func (l *Log) follow(e session.Entry, of string) (k known) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.begin()
	if l.known[of] == nil {
		l.known[of] = new(agent.KnownCalls)
	}
	if found := l.known[of].Add(e); found != nil {
		copied := *found
		key := of + " " + found.CallID
		k.call, k.took = &copied, l.took[key]
		if _, ends := e.Body.(session.CallOutput); ends {
			delete(l.took, key)
		}
	}
	switch e.Body.(type) {
	case session.TurnStarted:
		l.began[of] = e.Time
	case session.TurnEnded:
		k.turn = l.began[of]
	}
	return k
}

// aboutCall returns the attributes of the call that an entry is about.
func (l *Log) aboutCall(k known, id string) []slog.Attr {
	if k.call == nil {
		return []slog.Attr{l.id("call_id", id)}
	}
	return []slog.Attr{l.id("tool", k.call.Tool), l.id("call_id", id)}
}

// ofRun returns the record of an entry about a run or a turn.
func (l *Log) ofRun(e session.Entry, k known) (entryRecord, bool) {
	switch b := e.Body.(type) {
	case session.RunStarted:
		var model string
		if b.Setup != nil {
			model = b.Setup.Model
		}
		return entryRecord{slog.LevelDebug, "run started", []slog.Attr{l.id("model", model), slog.Bool("resumes", b.Resumes)}}, true
	case session.TurnStarted:
		return entryRecord{slog.LevelDebug, "turn started", []slog.Attr{slog.Int("turn", b.Turn)}}, true
	case session.TurnEnded:
		return l.turnEnded(e.Time, b, k), true
	case session.Compacted:
		return l.compacted(b.By, b.Before, b.After, b.Failure, b.Failure != "", usageAttr(b.Usage), costAttr(b.Cost)), true
	case session.Noticed:
		return entryRecord{slog.LevelWarn, "noticed", []slog.Attr{slog.String("kind", b.Kind), slog.Int("turn", b.Turn), l.id("call_id", b.CallID), l.text("text", b.Text)}}, true
	case session.Stopped:
		return entryRecord{stopLevel(agent.StopReason(b.Why)), "run stopped", []slog.Attr{slog.String("why", b.Why), l.text("detail", b.Detail)}}, true
	}
	return entryRecord{}, false
}

func (l *Log) turnEnded(at time.Time, b session.TurnEnded, k known) entryRecord {
	level, class := slog.LevelInfo, b.Class
	if b.BrokeOff() {
		level, class = slog.LevelWarn, cmp.Or(b.Class, b.Status)
	} else if b.Status == item.StatusIncomplete {
		level = slog.LevelWarn
	}
	attrs := []slog.Attr{slog.Int("turn", b.Turn), slog.String("status", b.Status), l.id("model", b.Model), l.id("response_id", b.ResponseID), l.id("request_id", b.RequestID)}
	if !k.turn.IsZero() && !at.IsZero() {
		attrs = append(attrs, slog.Duration("took", at.Sub(k.turn)))
	}
	return entryRecord{level, "turn ended", append(attrs, slog.String("error", class), usageAttr(b.Usage), costAttr(b.Cost), l.text("reason", b.Reason))}
}

func (l *Log) compacted(by string, before, after int64, failure string, failed bool, used ...slog.Attr) entryRecord {
	level := slog.LevelInfo
	if failed {
		level = slog.LevelWarn
	}
	attrs := []slog.Attr{slog.String("by", by), slog.Int64("before", before), slog.Int64("after", after), slog.Bool("failed", failed)}
	return entryRecord{level, "compacted", append(append(attrs, used...), l.text("reason", failure))}
}

// ofCall returns the record of an entry about a call.
func (l *Log) ofCall(e session.Entry, k known) (entryRecord, bool) {
	switch b := e.Body.(type) {
	case session.Approval:
		level, verdict := slog.LevelDebug, "allowed"
		if !b.Allowed {
			level, verdict = slog.LevelWarn, "refused"
		}
		if b.Decided == session.DeciderUnanswered {
			verdict = "unanswered"
		}
		return entryRecord{level, "call judged", append(l.aboutCall(k, b.CallID), slog.String("verdict", verdict), l.id("by", b.By), l.id("from", b.From),
			l.text("rule", b.Rule), l.text("reason", b.Reason))}, true
	case session.CallStarted:
		attrs := append(l.aboutCall(k, b.CallID), l.id("session", b.Session))
		if k.call != nil {
			attrs = append(attrs, l.text("arguments", k.call.Arguments))
		}
		return entryRecord{slog.LevelDebug, "call started", attrs}, true
	case session.SubagentUsage:
		return entryRecord{slog.LevelInfo, "subagent used", append(l.aboutCall(k, b.CallID), l.id("session", b.Session), slog.Int("turns", b.Turns),
			slog.Int64("tokens", b.Tokens), costAttr(b.Cost))}, true
	case session.CallOutput:
		level := slog.LevelInfo
		if b.Failed {
			level = slog.LevelWarn
		}
		attrs := append(l.aboutCall(k, b.CallID), slog.Bool("failed", b.Failed), slog.Int("bytes", b.Item.Size()))
		if k.took > 0 {
			attrs = append(attrs, slog.Duration("took", k.took))
		}
		return entryRecord{level, "call ended", append(attrs, l.item(b.Item)...)}, true
	case session.CallDropped:
		return entryRecord{slog.LevelWarn, "call dropped", append(l.aboutCall(k, b.CallID), l.text("reason", b.Reason))}, true
	case session.Paused:
		return entryRecord{slog.LevelWarn, "call paused", append(l.aboutCall(k, b.CallID), l.id("session", b.Session))}, true
	}
	return entryRecord{}, false
}

// ofItem returns the record of an entry about items of the conversation.
func (l *Log) ofItem(e session.Entry, k known) (entryRecord, bool) {
	switch b := e.Body.(type) {
	case session.InputItem:
		return entryRecord{slog.LevelDebug, "input", append([]slog.Attr{slog.String("type", string(b.Item.Type()))}, l.item(b.Item)...)}, true
	case session.OutputItem:
		attrs := []slog.Attr{slog.Int("turn", b.Turn), slog.String("type", string(b.Item.Type()))}
		if k.call != nil {
			attrs = append(attrs, l.aboutCall(k, k.call.CallID)...)
		}
		return entryRecord{slog.LevelDebug, "output", append(attrs, l.item(b.Item)...)}, true
	case session.ItemsWithdrawn:
		return entryRecord{slog.LevelWarn, "items withdrawn", []slog.Attr{slog.Any("entries", b.Seqs), l.id("by", b.By), l.text("reason", b.Reason)}}, true
	case session.ReasoningDropped:
		return entryRecord{slog.LevelWarn, "reasoning dropped", []slog.Attr{l.text("reason", b.Reason)}}, true
	case session.Quarantined:
		return entryRecord{slog.LevelWarn, "item quarantined", []slog.Attr{slog.Int64("entry", b.Seq), l.text("reason", b.Reason)}}, true
	}
	return entryRecord{}, false
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
