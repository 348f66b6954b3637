// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package attach

import (
	"context"
	"errors"
	"sync"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/internal/person"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/tool"
)

var (
	// ErrAnswered means that somebody else answered a question first, or that it is not
	// asked any more. The person was told.
	ErrAnswered = errors.New("the question is answered")
	errNotAsked = errors.New("the call does not wait any more")
)

// Ask asks the person about a call that the run of another process may be asking
// about too. The question ends when another answer is in the log.
func Ask(ctx context.Context, who *person.Person, src Source, p agent.PendingApproval) (d agent.Decision, err error) {
	log, err := src.Entries(ctx, p.Session)
	if err != nil {
		return d, err
	}
	asking, end := context.WithCancelCause(ctx)
	var watching sync.WaitGroup
	defer watching.Wait()
	defer end(nil)
	watching.Go(func() { end(answerTo(asking, src, log, p)) })
	call := tool.Call{ID: p.CallID, Name: p.Tool, Arguments: p.Arguments, Custom: p.Custom}
	d, err = who.Approve(asking, agent.ApprovalRequest{Session: p.Session, Call: call, Reason: p.Reason, Rules: p.Rules, Command: p.Command, Sandbox: p.Sandbox})
	if err == nil || ctx.Err() != nil {
		return d, err
	}
	others := new(agent.AnsweredError)
	switch cause := context.Cause(asking); {
	case errors.As(cause, &others):
		return d, ErrAnswered
	case errors.Is(cause, errNotAsked):
		who.Tell(errNotAsked.Error())
		return d, ErrAnswered
	}
	return d, err
}

// answerTo waits for an answer about a call in the log, and returns it as an
// [agent.AnsweredError]. It returns nil if the log cannot be watched.
func answerTo(ctx context.Context, src Source, log []session.Entry, p agent.PendingApproval) error {
	asked := int64(0) // older answers are about older questions
	for _, e := range log {
		if b, ok := e.Body.(session.ApprovalAsked); ok && b.CallID == p.CallID && b.Number == p.Number {
			asked = e.Seq
		}
	}
	for ev, err := range src.Watch(ctx, p.Session, asked) {
		if err != nil {
			<-ctx.Done() // the person may answer all the same
			return nil
		}
		e, ok := ev.(agent.Recorded)
		if !ok {
			continue
		}
		switch b := e.Body.(type) {
		case session.Approval:
			if b.CallID == p.CallID && (b.Number == 0 || b.Number == p.Number) {
				return &agent.AnsweredError{Answer: b}
			}
		case session.CallOutput:
			if b.CallID == p.CallID {
				return errNotAsked
			}
		}
	}
	return nil
}
