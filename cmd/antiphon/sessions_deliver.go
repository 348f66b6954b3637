// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/audit"
	"github.com/antiphon-go/antiphon/host"
	"github.com/antiphon-go/antiphon/internal/attach"
	"github.com/antiphon-go/antiphon/internal/person"
	"github.com/antiphon-go/antiphon/internal/show"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/session/queue"
	"github.com/antiphon-go/antiphon/tool"
	"github.com/antiphon-go/antiphon/worker"
)

// deliverFlags are common to the commands that leave something in an inbox.
type deliverFlags struct {
	Key string `placeholder:"KEY" help:"Names the delivery, so that a second one with the same key and content counts once. Default: a new key."`
}

// keyUsed is the error about a --key with which something else was said.
func keyUsed(key string) error {
	return usage(fmt.Errorf("--key %s: %w\n  hint: give what you said before, or another key", quoted(key), session.ErrKeyUsed))
}

// deliver leaves bodies for a session and says what became of them.
func (f *deliverFlags) deliver(ctx context.Context, std stdio, all *sessionsCommand, store keeper, info session.Info, d session.Delivery, what string) error {
	s, err := session.Open(ctx, store, info.ID)
	if err != nil {
		return err
	}
	if d.Key = f.Key; d.Key == "" {
		d.Key = rand.Text()
	}
	d.By = person.AccountName()
	if err := session.CheckKey(d.Key); err != nil {
		return usage(fmt.Errorf("--key: %w", err))
	}
	if err := session.CheckDelivery(d); err != nil {
		return usage(err)
	}
	receipt, err := s.Deliver(ctx, d)
	switch {
	case errors.Is(err, session.ErrKeyUsed):
		return keyUsed(f.Key)
	case errors.Is(err, errors.ErrUnsupported):
		return usage(err)
	case err != nil:
		return err
	}
	value := struct {
		Session string `json:"session"`
		Key     string `json:"key"`
		Number  int64  `json:"number"`
		Taken   int64  `json:"taken,omitempty"`
		Parked  string `json:"parked,omitempty"`
	}{info.ID, d.Key, receipt.Number, receipt.Taken, ""}
	if receipt.Taken > 0 {
		return all.told(std, value, "%s: it was delivered before, and is entry %d", info.ID, receipt.Taken)
	}
	row, parked, err := parkedRow(ctx, store, info)
	if err != nil {
		return err
	}
	if parked && attach.UnderWay(s) == 0 {
		value.Parked = row.work.Reason
		return all.told(std, value, "%s: %s waits as delivery %d in the session, whose work is parked: %s%s", info.ID, what, receipt.Number, show.Printable(all.hide(row.work.Reason)), parkedHint(&row))
	}
	taker := "the run that is under way takes it, or the next one"
	if _, stops := d.Bodies[0].(session.StopAsked); stops && !info.Nested && isIdle(ctx, store, info.ID) {
		taker = "the session does not run now, so its next run takes it, and ends at once"
	}
	return all.told(std, value, "%s: %s waits as delivery %d; %s", info.ID, what, receipt.Number, taker)
}

// isIdle reports whether nobody runs a session, as far as the store knows.
func isIdle(ctx context.Context, store keeper, id string) bool {
	locks, ok := store.(session.LockLister)
	if !ok {
		return false
	}
	running, err := locks.Locked(ctx)
	return err == nil && !slices.Contains(running, id)
}

// parkedRow returns the work of a session, if it is parked.
func parkedRow(ctx context.Context, store keeper, info session.Info) (row workRow, parked bool, err error) {
	q, ok := store.(queue.Queue)
	if !ok {
		return row, false, nil
	}
	outer, _, nested := strings.Cut(info.ID, "/")
	row.Session = outer
	if !nested {
		row.Name = info.Name
	}
	row.work, err = q.Work(ctx, outer)
	if errors.Is(err, session.ErrNotFound) {
		err = nil
	}
	return row, row.work.State == queue.Parked, err
}

// sayCommand is antiphon sessions say.
type sayCommand struct {
	Session string `arg:"" help:"The session."`
	Text    string `arg:"" help:"What to say. -: standard input."`
	Later   bool   `help:"Wait until the run has its answer, instead of being part of the next request."`
	deliverFlags
}

// Run delivers input.
func (c *sayCommand) Run(ctx context.Context, std stdio, env environment, all *sessionsCommand) error {
	text := c.Text
	if text == "-" {
		read, err := io.ReadAll(std.in)
		if err != nil {
			return fmt.Errorf("standard input: %w", err)
		}
		text = string(read)
	}
	if strings.TrimSpace(text) == "" {
		return usage(errors.New("there is nothing to say: give a text, or - and the text on standard input"))
	}
	return all.withWhole(ctx, env, c.Session, func(store keeper, info session.Info) error {
		d := session.Delivery{Delivered: session.Delivered{From: "sessions say", Queued: c.Later}, Bodies: []session.Body{session.InputItem{Item: item.User(text)}}}
		return c.deliver(ctx, std, all, store, info, d, "it")
	})
}

// stopCommand is antiphon sessions stop.
type stopCommand struct {
	Session   string `arg:"" help:"The session."`
	AfterTurn bool   `help:"Let the reply that is under way and its calls be completed."`
	Reason    string `placeholder:"TEXT" help:"Why, for people who read the session."`
	deliverFlags
}

// Help is shown by antiphon sessions stop --help.
func (stopCommand) Help() string {
	return `Asks the run of a session to end: one of antiphon run, chat, serve, mcp or work, on any
machine with the store. Replies and calls that are under way are cut off, unless
--after-turn lets them end. antiphon run then ends with exit code 4. The session keeps
what there is, and a later run continues it.

If nothing runs, the next run takes the request, and ends. A response of antiphon serve
does not, unless calls wait for an approval: the request was for what ran before.

Examples:
  antiphon sessions stop work
  antiphon sessions stop work --after-turn --reason "wrong branch"`
}

// Run delivers a request to stop.
func (c *stopCommand) Run(ctx context.Context, std stdio, env environment, all *sessionsCommand) error {
	return all.withWhole(ctx, env, c.Session, func(store keeper, info session.Info) error {
		d := session.Delivery{Delivered: session.Delivered{From: "sessions stop"}, Bodies: []session.Body{session.StopAsked{AfterTurn: c.AfterTurn, Detail: c.Reason}}}
		return c.deliver(ctx, std, all, store, info, d, "the request to stop")
	})
}

// approveCommand is antiphon sessions approve.
type approveCommand struct {
	Session string   `arg:"" help:"The session."`
	Calls   []string `arg:"" optional:"" help:"The ids of the calls to allow, as sessions info shows them. Default: show each waiting call and ask about it."`
	Refuse  bool     `help:"Refuse the calls that are named."`
	Reason  string   `placeholder:"TEXT" help:"Why they are refused, for the model."`
}

// Run answers calls that wait for an approval.
func (c *approveCommand) Run(ctx context.Context, std stdio, env environment, all *sessionsCommand) error {
	switch {
	case c.Reason != "" && !c.Refuse:
		return usage(errors.New("--reason belongs to --refuse: an allowed call needs no reason"))
	case c.Refuse && len(c.Calls) == 0:
		return usage(errors.New("name the calls to refuse: antiphon sessions info lists those that wait"))
	}
	log, err := auditLog(env)
	if err != nil {
		return err
	}
	return all.withWhole(ctx, env, c.Session, func(store keeper, info session.Info) error {
		s, err := session.Open(ctx, store, info.ID)
		if err != nil {
			return err
		}
		pending, err := agent.PendingApprovals(ctx, s)
		if err != nil {
			return err
		}
		if len(pending) == 0 && len(c.Calls) == 0 {
			// The process that gave the last answer may have died before it told the queue.
			if _, err := worker.Wake(ctx, store, info.ID); err != nil {
				return err
			}
			return all.told(std, []answeredCall{}, "%s: no call waits for an approval", info.ID)
		}
		if pending, err = c.chosen(pending, s); err != nil {
			return err
		}
		done, err := c.answer(ctx, std, store, info, log, pending)
		if err != nil {
			return err
		}
		works, err := worker.Wake(ctx, store, info.ID) // the answers may be in the log, and not in the inbox
		if err != nil {
			return err
		}
		if works {
			return all.told(std, done, "%s: %s answered; a worker goes on with that", info.ID, show.Plural(len(done), "call"))
		}
		return all.told(std, done, "%s: %s answered; the run that is under way goes on with that, or the next one: antiphon run FILE --session %s", info.ID, show.Plural(len(done), "call"), quoted(info.ID))
	})
}

// answer decides about calls, and leaves each answer in the audit log and for the session.
func (c *approveCommand) answer(ctx context.Context, std stdio, store keeper, info session.Info, log *audit.Log, pending []agent.PendingApproval) (done []answeredCall, err error) {
	asked := person.New(std.in, std.err)
	for _, p := range pending {
		d, err := c.decide(ctx, std, asked, store, p)
		if errors.Is(err, attach.ErrAnswered) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if log != nil {
			if err := log.Write(ctx, host.Answered(p, d)...); err != nil {
				return nil, err
			}
		}
		if err := worker.Answer(ctx, store, info.ID, d); err != nil {
			return nil, err
		}
		done = append(done, answeredCall{p.Session, p.CallID, p.Tool, d.Allow})
	}
	return done, nil
}

// answeredCall is what sessions approve prints of a call.
type answeredCall struct {
	Session string `json:"session"`
	CallID  string `json:"call_id"`
	Tool    string `json:"tool"`
	Allowed bool   `json:"allowed"`
}

// chosen returns the waiting calls that are named, or all of them.
func (c *approveCommand) chosen(pending []agent.PendingApproval, s *session.Session) (chosen []agent.PendingApproval, err error) {
	if len(c.Calls) == 0 {
		return pending, nil
	}
	for _, id := range c.Calls {
		fits := func(p agent.PendingApproval) bool { return p.CallID == id }
		i := slices.IndexFunc(pending, fits)
		before, known := verdictOn(s, id)
		switch {
		case i < 0 && known:
			return nil, usage(fmt.Errorf("the call %s was %s", id, person.SaidBy(before)))
		case i < 0:
			return nil, usage(fmt.Errorf("no call with the id %q waits for an approval\n  hint: antiphon sessions info %s lists those that do", id, quoted(c.Session)))
		case slices.ContainsFunc(pending[i+1:], fits):
			return nil, usage(fmt.Errorf("several calls with the id %q wait; answer them one by one: antiphon sessions approve %s", id, quoted(c.Session)))
		}
		chosen = append(chosen, pending[i])
	}
	return chosen, nil
}

// verdictOn returns the last verdict on a call of a session.
func verdictOn(s *session.Session, callID string) (a session.Approval, known bool) {
	for e := range s.Entries() {
		if b, ok := e.Body.(session.Approval); ok && b.CallID == callID {
			a, known = b, true
		}
	}
	return a, known
}

// decide returns the person's answer about a call, which they gave on the command
// line, or give now.
func (c *approveCommand) decide(ctx context.Context, std stdio, asked *person.Person, store keeper, p agent.PendingApproval) (d agent.Decision, err error) {
	call := tool.Call{ID: p.CallID, Name: p.Tool, Arguments: p.Arguments, Custom: p.Custom}
	if len(c.Calls) > 0 {
		// A list of waiting calls shows the ids alone, so the person sees here what they answer.
		s := show.Asked(call, p.Command, p.Sandbox)
		shown := s.Whole(p.Reason)
		fmt.Fprint(std.err, shown)
		d = person.ByPerson(agent.Decision{Allow: !c.Refuse, Reason: host.Refusal(c.Reason), Shown: shown}, fromApprove)
	} else {
		if !show.IsTerminal(std.in) {
			return d, usage(fmt.Errorf("there is no terminal to ask at: name the calls, such as antiphon sessions approve %s %s", quoted(c.Session), quoted(p.CallID)))
		}
		d, err = attach.Ask(ctx, asked, &attach.Stored{In: store, ID: p.Session}, p)
	}
	d.Session, d.Number, d.CallID, d.By, d.From = p.Session, p.Number, p.CallID, person.AccountName(), fromApprove
	return d, err
}

// fromApprove is how answers were given, for those who read the log.
const fromApprove = "sessions approve"
