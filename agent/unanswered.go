// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"slices"

	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
)

// This file reads from the log which input no model has answered. Hooks and guards are
// asked about it before a request carries it, and what they object to is withdrawn from
// it.

// unread is the input of a log that no reply has answered.
type unread struct {
	list []waiting
	said []int64 // entries of replies that broke off since
}

// waiting is an item that no reply has answered.
type waiting struct {
	it  item.Item
	seq int64
	// carried means that a request carried it, whose reply broke off. BeforeInput hooks
	// agreed to it before that request.
	carried bool
	// output means that a tool returned it in a run, so that AfterTool hooks have seen it.
	output bool
	// history means that a program may have appended it as history, not as input.
	history bool
}

// unreadIn returns the input since the last request that was answered, system and
// developer messages included. Items that a program appended before a reply, a call or
// reasoning that it appended, too, are history. Input of a run is not: no model has
// answered it, whatever stands behind it. All that people, programs and tools said in a
// part that was imported is input, because no guard of this program has seen it, whatever
// that part claims.
func unreadIn(log []session.Entry) (u unread) {
	imported := importedIn(log)
	from, answered := 0, false
	for i, e := range slices.Backward(log) {
		if imported.has(i) {
			continue
		}
		if end, ok := e.Body.(session.TurnEnded); ok {
			answered = answered || !end.BrokeOff()
		}
		if _, begun := e.Body.(session.TurnStarted); begun && answered {
			from = i
			break
		}
	}
	gone := withdrawnIn(log[from:])
	asked := false    // an unanswered turn has begun
	inRun := answered // entries are written by a run
	for i, e := range log[from:] {
		if gone[e.Seq] {
			continue
		}
		ours := !imported.has(from + i)
		switch b := e.Body.(type) {
		case session.RunStarted:
			inRun = true
		case session.Stopped:
			inRun = false
		case session.TurnStarted:
			asked, inRun = asked || i > 0 || !answered, true
			if ours && (i > 0 || !answered) {
				u.carry()
			}
		case session.OutputItem:
			if asked {
				u.said = append(u.said, e.Seq)
			}
		case session.CallOutput:
			if asked {
				u.said = append(u.said, e.Seq)
			}
			u.list = append(u.list, waiting{it: b.Item, seq: e.Seq, output: ours})
		case session.InputItem:
			switch {
			case isInput(b.Item):
				u.list = append(u.list, waiting{it: b.Item, seq: e.Seq, history: ours && !inRun})
			case ours && !inRun:
				u = u.answeredByProgram()
			}
		}
	}
	return u
}

// parts are parts of a log, each from an index to another, which is not included.
type parts [][2]int

func (p parts) has(i int) bool {
	return slices.ContainsFunc(p, func(part [2]int) bool { return part[0] <= i && i < part[1] })
}

// importedIn returns the parts of a log that were imported. See [session.NoticeImported].
func importedIn(log []session.Entry) (list parts) {
	begins := 0
	for i, e := range log {
		switch b, _ := e.Body.(session.Noticed); b.Kind {
		case session.NoticeImportBegins:
			begins = i
		case session.NoticeImported:
			list = append(list, [2]int{begins, i})
			begins = 0
		}
	}
	return list
}

// withdrawnIn returns the entries that hooks or guards objected to.
func withdrawnIn(log []session.Entry) map[int64]bool {
	gone := map[int64]bool{}
	for _, e := range log {
		if b, ok := e.Body.(session.ItemsWithdrawn); ok {
			for _, seq := range b.Seqs {
				gone[seq] = true
			}
		}
	}
	return gone
}

// isInput reports whether an item is what a person, a program or a tool said.
func isInput(it item.Item) bool {
	return it.IsOutput() || it.Type() == item.TypeMessage && it.Role() != item.RoleAssistant
}

func isInstruction(w *waiting) bool { return w.it.Instructs() }

// carry marks what a request carries.
func (u *unread) carry() {
	for i := range u.list {
		u.list[i].carried = true
	}
}

// answeredByProgram returns u without the items that a program appended: a reply that
// was appended behind them answered them. Parts of replies that broke off belong to the
// rest, if there is one.
func (u unread) answeredByProgram() unread {
	rest := u.without(func(w *waiting) bool { return w.history })
	if len(rest.list) == 0 {
		rest.said = nil
	}
	return rest
}

// without returns u without some items.
func (u unread) without(drop func(*waiting) bool) unread {
	rest := unread{said: u.said}
	for i := range u.list {
		if w := &u.list[i]; !drop(w) {
			rest.list = append(rest.list, *w)
		}
	}
	return rest
}

func (u unread) items() (list []item.Item) {
	for i := range u.list {
		list = append(list, u.list[i].it)
	}
	return list
}

func (u unread) seqs() (list []int64) {
	for i := range u.list {
		list = append(list, u.list[i].seq)
	}
	return list
}

// inherited returns what people, programs and tools said in the history that the
// conversation was handed over with, if the agent that speaks now has not answered yet.
// Its own hooks and guards have not seen any of it.
func (r *Run) inherited() (u unread, fresh bool) {
	path, next, _ := r.state.Speaker()
	if r.handoffs == 0 || next != "" && r.handoffs == len(path) { // the agent before speaks
		return u, false
	}
	log := r.session.Log()
	for _, e := range slices.Backward(log) {
		if end, ok := e.Body.(session.TurnEnded); ok && !end.BrokeOff() {
			return u, false
		}
		if b, ok := e.Body.(session.Noticed); ok && b.Kind == session.NoticeHandoff {
			break
		}
	}
	v := r.state.View()
	for i, it := range v.Items().All() {
		seq, _ := v.Seq(i)
		if seq < 1 || seq > int64(len(log)) || it.Instructs() || !isInput(it) {
			continue
		}
		switch log[seq-1].Body.(type) {
		case session.InputItem:
			u.list = append(u.list, waiting{it: it, seq: seq})
		case session.CallOutput:
			u.list = append(u.list, waiting{it: it, seq: seq, output: true})
		}
	}
	return u, true
}

// before returns the items of the view that are not in the given entries.
func (r *Run) before(seqs []int64) *item.List {
	v, list := r.state.View(), item.NewList()
	for i, it := range v.Items().All() {
		if seq, _ := v.Seq(i); !slices.Contains(seqs, seq) {
			list.Append(it)
		}
	}
	return list
}

// showInput shows input to hooks before it is recorded or, if another program recorded
// it, before it is sent.
func (r *Run) showInput(ctx context.Context, hooks []Hooks, input []item.Item, history *item.List) error {
	if len(input) == 0 {
		return nil
	}
	for i := range hooks {
		h := &hooks[i]
		if h.BeforeInput == nil {
			continue
		}
		// Each hook gets its own copies, so that no hook can change what the next
		// one sees.
		seen := InputCall{Session: r.session.ID(), Depth: r.depth, Input: slices.Clone(input), History: history.Clone()}
		if err := guarded(h, "BeforeInput", func() error { return h.BeforeInput(ctx, &seen) }); err != nil {
			return err
		}
	}
	return nil
}

// shown is the input that the BeforeInput hooks have seen in this run.
type shown struct {
	to        int64   // all up to this entry
	given     []int64 // and these entries, which the run recorded
	inherited int64   // what the agent that speaks now inherits, up to this entry
}

// judgeInput shows the hooks input that they have not seen, because this run did not
// record it: what other programs appended and, for the own hooks of the agent that the
// conversation was handed to, what it inherits. It reports whether the model may be asked.
// If the process ends before the turn begins, the next process calls the hooks again.
func (r *Run) judgeInput(ctx context.Context) (agreed bool, err error) {
	if !slices.ContainsFunc(r.agent.Hooks, func(h Hooks) bool { return h.BeforeInput != nil }) {
		return true, nil
	}
	s := &r.shown
	appended := unreadIn(r.session.Log()).without(func(w *waiting) bool {
		return w.carried || w.output || w.seq <= s.to || slices.Contains(s.given, w.seq)
	})
	own := len(r.first.Hooks) // the hooks after these are those of the agent that speaks now
	inherited, fresh := r.inherited()
	if inherited = inherited.without(func(w *waiting) bool { return w.output || w.seq <= s.inherited }); !fresh {
		own = len(r.agent.Hooks)
	}
	for _, due := range []struct {
		unread
		hooks []Hooks
	}{{appended, r.agent.Hooks[:own]}, {inherited, r.agent.Hooks[own:]}} {
		veto := r.showInput(ctx, due.hooks, due.items(), r.before(due.seqs()))
		switch {
		case veto == nil:
			continue
		case interrupted(ctx, veto):
			return false, nil
		case !objects(veto, true):
			return false, r.stopFor(veto)
		}
		return false, r.withdraw(veto, due.without(isInstruction).seqs())
	}
	last := r.nextSeq() - 1
	*s = shown{to: last, inherited: last}
	return true, nil
}
