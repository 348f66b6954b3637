// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/antiphon-go/antiphon/agent/plan"
	"github.com/antiphon-go/antiphon/agenttest"
	"github.com/antiphon-go/antiphon/internal/memstore"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/session/queue"
	"github.com/antiphon-go/antiphon/session/storetest"
)

// quiet reports whether everything is done that anybody asked for.
func (w *world) quiet() bool {
	if w.left > 0 || len(w.db.Schedules(false)) > 0 {
		return false
	}
	w.parked = false
	for _, now := range w.db.Works() {
		lacks := strings.HasPrefix(now.Reason, needed)
		if now.State != queue.Done && now.State != queue.Parked || lacks && !w.gone {
			return false
		}
		w.parked = w.parked || lacks
	}
	return true
}

// verdict looks at what is left when all is quiet.
func (w *world) verdict() {
	var auditor storetest.Auditor
	for _, r := range w.reports {
		if err := auditor.Hear(r, nil); err != nil {
			w.problem("%v", err)
		}
	}
	if _, err := auditor.Check(context.Background(), w.db.Open(memstore.Options{}), nil); err != nil {
		w.problem("the auditor: %v", err)
	}
	logs := map[string][]session.Entry{}
	for _, id := range w.sessions() {
		log, err := w.db.Log(id, 0)
		if err != nil {
			w.problem("session %s: %v", id, err)
		}
		logs[id] = log
		w.session(id, log)
	}
	for _, now := range w.db.Works() {
		if now.State != queue.Done {
			w.problem("the work of %s is %s: %s", now.Session, now.State, now.Reason)
		}
	}
	w.firings(logs)
	for text, id := range w.inputs {
		n := 0
		for _, e := range logs[id] {
			if b, ok := e.Body.(session.InputItem); ok && textIn(b.Item) == text {
				n++
			}
		}
		if n != 1 {
			w.problem("session %s: %q was said once, and is there %d times", id, text, n)
		}
	}
}

// session looks at the log of a session.
func (w *world) session(id string, log []session.Entry) {
	problem := func(err error) {
		if err != nil {
			w.problem("session %s: %v", id, err)
		}
	}
	problem(agenttest.CheckLog(log))
	problem(agenttest.CheckCalls(id, log, 0, w.ledger))
	problem(w.outputs(id, log))
	problem(w.approvals(log))
	w.silence(id, log)
	if waits, err := w.db.Waiting(id); err != nil || len(waits) > 0 {
		w.problem("session %s: deliveries wait: %v %v", id, waits, err)
	}
	var state plan.State
	for _, e := range log {
		state.Apply(e)
	}
	for _, c := range state.View().Open() {
		w.problem("session %s: the call %s is open", id, c.CallID)
	}
	state.Apply(session.Entry{Seq: int64(len(log)) + 1, Body: session.RunStarted{}})
	if stop, ok := state.Next().(plan.Stop); !ok {
		w.problem("session %s: %T is left to do", id, state.Next())
	} else if stop.Why != "nothing_to_send" && stop.Why != "end_turn" {
		w.problem("session %s: %+v", id, stop)
	}
}

// approvals looks at what is said of calls about which nobody answered.
func (w *world) approvals(log []session.Entry) error {
	asked := map[int]time.Time{}
	for _, e := range log {
		switch b := e.Body.(type) {
		case session.ApprovalAsked:
			if asked[b.Number].IsZero() {
				asked[b.Number] = e.Time
			}
		case session.Approval:
			if b.Decided != session.DeciderUnanswered {
				continue
			}
			w.unanswered++
			if waited := e.Time.Sub(asked[b.Number]); w.asking == 0 || waited < 2*w.asking || b.Allowed || b.By != "" {
				return fmt.Errorf("entry %d: after %v nobody answered: %+v", e.Seq, waited, b)
			}
		}
	}
	return nil
}

// outputs compares what the model was told of its calls with what they did.
func (w *world) outputs(id string, log []session.Entry) error {
	turns := map[string]int{}
	for _, e := range log {
		switch b := e.Body.(type) {
		case session.OutputItem:
			if b.Item.IsCall() {
				turns[b.Item.CallID()] = b.Turn
			}
		case session.CallOutput:
			out, err := item.As[item.FunctionCallOutput](b.Item)
			if err != nil {
				return err
			}
			text, key := out.Output.Display(), agenttest.CallKey(id, turns[b.CallID], b.CallID)
			ran := w.ledger[key]
			switch says := strings.Contains(text, "ran <"); {
			case says && !strings.Contains(text, "ran <"+key+">"):
				return fmt.Errorf("entry %d: the output of %s is that of another call: %s", e.Seq, key, text)
			case says && ran.Ended == 0:
				return fmt.Errorf("entry %d: %s has an output, and did not end: %s", e.Seq, key, text)
			case strings.Contains(text, "Nothing was done.") && ran.Began > 0:
				return fmt.Errorf("entry %d: %s was begun, and the model was told: %s", e.Seq, key, text)
			}
		}
	}
	return nil
}

// textIn returns the text of a message.
func textIn(it item.Item) string {
	if m, err := item.As[item.Message](it); err == nil {
		return m.Content.Display()
	}
	return ""
}
