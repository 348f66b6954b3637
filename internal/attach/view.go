// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package attach

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/internal/person"
	"github.com/antiphon-go/antiphon/internal/show"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/server"
	"github.com/antiphon-go/antiphon/session"
)

// View is a terminal that shows a session which another process runs. The fields in the first block are set before it is
// used. J2
type View struct {
	Err  io.Writer // what is for the person alone
	Who  *person.Person
	Src  Source
	Info session.Info
	Show *show.Printer

	Shown   int64                   // the number of the last entry that was shown
	Began   bool                    // a run is under way, as far as Passes was told
	Asks    []agent.PendingApproval // that the person was not asked about yet
	Stopped *session.Stopped        // how the run ended, or nil

	asked  map[string]bool // calls that they were asked about
	inside int             // subagents that are at work
	live   strings.Builder // the text of a message that was shown before its entry
	behind bool            // more of it has come than is shown before its entry
}

// mostUnsettled is how many bytes of a message are shown before its entry: pieces can come
// without an end.
const mostUnsettled = 1 << 20

// LookAfter is how long the log of an attached session may stay silent before it is checked
// that its holder is still there.
const LookAfter = time.Second

// HolderOf returns who holds a session, from the error that says so.
func HolderOf(busy error) string {
	_, who, found := strings.Cut(busy.Error(), session.ErrBusy.Error()+": ")
	if who, _, _ = strings.Cut(who, "\n"); !found || who == "" {
		return "another process"
	}
	return who
}

// Passes takes an entry that is not shown.
func (v *View) Passes(e session.Entry) {
	v.Show.Calls.Add(e)
	v.Show.Setup.Apply(e.Body)
	v.Shown = e.Seq
	switch e.Body.(type) {
	case session.RunStarted:
		v.Began = true
	case session.Stopped:
		v.Began = false
	}
}

// Begin shows the run that is under way from its start. The log may lack entries that have passed.
func (v *View) Begin(log []session.Entry) {
	from := len(log)
	if v.Began {
		from = 0
	}
	for i, e := range log {
		switch e.Body.(type) {
		case session.RunStarted:
			from, v.Began = i, true
		case session.Stopped:
			from, v.Began = len(log), false
		}
	}
	began := v.Began
	for _, e := range log[:from] {
		v.Passes(e)
	}
	v.Began = began
}

// Take shows an event, and notes what an entry asks of the person.
func (v *View) Take(ev agent.Event) error {
	if d, ok := ev.(agent.Delta); ok {
		return v.takePiece(d)
	}
	e, ok := ev.(agent.Recorded)
	if !ok {
		return nil
	}
	v.settle(e)
	v.Shown = e.Seq
	switch b := e.Body.(type) {
	case session.InputItem:
		if m, err := item.As[item.Message](b.Item); err == nil && !b.Own {
			v.Show.Tell(show.Dim, "<< %s", v.Show.Short(m.Content.Display(), 1000))
		}
	case session.ApprovalAsked:
		v.Asks = append(v.Asks, agent.PendingApproval{Session: v.Info.ID, Number: b.Number, CallID: b.CallID}) // see next
	case session.Approval:
		v.Asks = slices.DeleteFunc(v.Asks, func(p agent.PendingApproval) bool {
			return p.CallID == b.CallID && (b.Number == 0 || b.Number == p.Number)
		})
	case session.CallStarted:
		if b.Session != "" {
			v.inside++
		}
	case session.SubagentUsage:
		v.inside--
	case session.Stopped:
		v.Stopped = &b
	}
	return v.Show.Show(e)
}

// takePiece shows a piece of a message that has no entry yet.
func (v *View) takePiece(d agent.Delta) error {
	if v.behind || v.live.Len()+len(d.Text) > mostUnsettled {
		if !v.behind {
			v.Show.EndLine()
			fmt.Fprintln(v.Err, "   (the message is long: its rest is shown when it is complete)")
		}
		v.behind = true
		return nil
	}
	v.live.WriteString(d.Text)
	return v.Show.Show(d)
}

// settle ends a text that was shown before its entry: what the entry has more is added, and a
// text that differs or has no entry does not count as shown.
func (v *View) settle(e agent.Recorded) {
	live := v.live.String()
	switch b := e.Body.(type) {
	case session.OutputItem:
		m, err := item.As[item.Message](b.Item)
		if err != nil {
			return
		}
		if rest, same := strings.CutPrefix(m.Content.Display(), live); same && live != "" {
			v.Show.Text(rest)
			v.live.Reset()
			v.behind = false
			return
		}
	case session.RunStarted, session.TurnStarted, session.TurnEnded, session.Stopped:
	default:
		return
	}
	v.live.Reset()
	if v.behind = false; live != "" {
		v.Show.Drop()
	}
}

// AskNext asks the person about a call that waits, if one does and everything before it was
// shown.
func (v *View) AskNext(ctx context.Context) error {
	if len(v.Asks) == 0 {
		return nil
	}
	pending, err := v.Src.Pending(ctx)
	if err != nil {
		return err
	}
	p, waits := v.next(pending)
	if !waits {
		return nil
	}
	v.Show.EndLine()
	d, err := Ask(ctx, v.Who, v.Src, p)
	if errors.Is(err, ErrAnswered) {
		return nil
	}
	if err != nil {
		return err
	}
	err = v.Src.Answer(ctx, p, d)
	if errors.Is(err, agent.ErrDecided) || errors.As(err, new(*server.Error)) {
		fmt.Fprintf(v.Err, "   %s\n", show.Visible(err.Error()))
		return nil
	}
	return err
}

// next takes the next question, and returns it as it is pending now. It reports false if it was answered by now, or if
// the person was asked the same before.
func (v *View) next(pending []agent.PendingApproval) (p agent.PendingApproval, waits bool) {
	asks := v.Asks[0]
	v.Asks = v.Asks[1:]
	i := slices.IndexFunc(pending, func(o agent.PendingApproval) bool { return o.Session == asks.Session && o.Number == asks.Number })
	if i < 0 {
		return p, false
	}
	p = pending[i]
	key := fmt.Sprintf("%s %d %q %q", p.Session, p.Number, p.Reason, p.Sandbox)
	if v.asked[key] {
		return p, false
	}
	if v.asked == nil {
		v.asked = map[string]bool{}
	}
	v.asked[key] = true
	return p, true
}

// Look finds the questions of subagents, whose logs are not watched, and reports whether
// the holder is gone and everything that it wrote was shown.
func (v *View) Look(ctx context.Context) (gone bool, err error) {
	asks, gone, err := v.Src.Look(ctx, v.Shown, v.inside > 0)
	for _, p := range asks {
		if p.Session != v.Info.ID {
			v.Asks = append(v.Asks, p)
		}
	}
	return gone, err
}
