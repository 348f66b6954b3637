// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/antiphon-go/antiphon/agent/plan"
	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/tool"
)

// Answer says what the answer of a run must be: JSON that fits a schema. An answer
// that does not fit is sent back with the reason, and the run goes on; so these
// repairs count in the run's Limits and Budget. If the last one does not fit either,
// the run stops with [StopUnfit] and an [*AnswerError].
//
// The log records each repair as a notice [session.NoticeUnfit] and a message of the
// user that gives the reason. If a process ends before an answer was repaired, a run
// without input checks the stored answer: it succeeds without a request if the answer
// fits, and repairs it otherwise.
//
// Set [Agent].Answer for every run of an agent; [RunAs] makes an Answer of a Go type.
// Handoffs do not change it, and forks do not have it.
type Answer struct {
	// Schema is what the answer must fit. [RunAs] sets it.
	Schema *tool.Schema
	// Name is the name of the schema in requests: "" means answer.
	Name string
	// Repairs bounds how often a run sends an answer back: 0 means 2, and a negative
	// number never.
	Repairs int
	// Instruct puts the schema into the instructions instead of the request's text
	// format, for endpoints that have no structured outputs. A Markdown code fence
	// around the answer is then removed. By default the text format is json_schema,
	// strict if [tool.Schema.Strict] allows it; an endpoint that refuses it ends the
	// run with its error, and one that ignores it is corrected by repairs.
	Instruct bool
	// Check finds problems that a schema cannot express. It may be nil. It gets the
	// JSON of an answer that fits the schema, and its error is what the model reads. A
	// panic ends the run with [StopVetoed] and an error.
	Check func(text string) error

	decode func(text string) error // checks the schema and keeps the value
	format item.JSON               // the text format of requests that have no other settings of the text
}

// AnswerError reports that a run has no answer that fits.
type AnswerError struct {
	// Why is how the run stopped: [StopUnfit], or the reason why it ended before it had
	// an answer, such as [StopRefused], [StopIncomplete], [StopMaxTurns] or
	// [StopApprovalPending].
	Why StopReason
	// Detail explains Why: for StopUnfit it is what does not fit.
	Detail string
	// Text is the last thing that the model said: the answer that does not fit, the
	// refusal, or the beginning of an answer.
	Text string
	// Repairs is the number of times that the run sent an answer back.
	Repairs int
}

// Error returns one sentence.
func (e *AnswerError) Error() string {
	times := fmt.Sprintf("%d repairs", e.Repairs)
	if e.Repairs == 1 {
		times = "one repair"
	}
	switch {
	case e.Why == StopUnfit:
		return fmt.Sprintf("the answer does not fit after %s: %s", times, e.Detail)
	case e.Why == StopRefused:
		return fmt.Sprintf("the model refused to answer: %s", e.Text)
	case e.Detail == "":
		return fmt.Sprintf("there is no answer: the run stopped with %s", e.Why)
	}
	return fmt.Sprintf("there is no answer: the run stopped with %s: %s", e.Why, e.Detail)
}

// defaultRepairs bounds the repairs of an answer that sets no bound.
const defaultRepairs = 2

// Texts that the model reads.
const (
	answerAgain    = "Your answer does not fit: %s\nAnswer again, with JSON that fits and nothing else."
	answerInstruct = "Your final answer must be JSON that fits this JSON Schema, and nothing else: no explanation and no Markdown.\n%s"
)

func (a *Answer) repairs() int { return max(0, cmp.Or(a.Repairs, defaultRepairs)) }

// check returns an error if a request cannot have the answer's schema.
func (a *Answer) check(req *api.Request) error {
	if a == nil {
		return nil
	}
	if a.Schema.JSON() == "" {
		return errors.New("agent: Answer has no Schema: set it with tool.NewSchema or tool.ParseSchema, or call RunAs")
	}
	if a.Name != "" && tool.CheckName(a.Name) != nil {
		return fmt.Errorf("agent: Answer.Name is %q: want 1 to 64 letters, digits, '_' and '-'", a.Name)
	}
	if kind := a.Schema.Kind(); kind != "" && kind != "object" && !a.Instruct {
		return fmt.Errorf("agent: Answer.Schema is of type %s, and endpoints accept an object: make the answer a member of an object, set Instruct, or call RunAs, which does the former", kind)
	}
	if req.Text == "" {
		return nil
	}
	text, err := api.ParseTextConfig(req.Text)
	if err != nil {
		return fmt.Errorf("agent: Request.Text: %w", err)
	}
	if text.Format != nil && text.Format.Type != "text" {
		return fmt.Errorf("agent: Request.Text has the format %s, and there is an Answer: leave the format out", text.Format.Type)
	}
	return nil
}

// ask puts the schema into a request.
func (a *Answer) ask(req *api.Request) {
	if a.Instruct {
		text := fmt.Sprintf(answerInstruct, a.Schema.JSON())
		if req.Instructions != "" {
			text = req.Instructions + "\n\n" + text
		}
		req.Instructions = text
		return
	}
	if req.Text == "" && a.format != "" {
		req.Text = a.format
		return
	}
	text := new(api.TextConfig)
	if req.Text != "" {
		text, _ = api.ParseTextConfig(req.Text) // check has read it
	}
	if value, err := a.formatIn(text); err == nil {
		req.Text = value
	}
}

// formatIn returns the configuration of the text with the answer's format.
func (a *Answer) formatIn(text *api.TextConfig) (item.JSON, error) {
	strict := a.Schema.Strict() == nil
	text.Format = &api.TextFormat{Type: api.TextJSONSchema, Name: cmp.Or(a.Name, "answer"), Schema: a.Schema.JSON(), Strict: &strict}
	return text.JSON()
}

// text returns the answer in what the model said.
func (a *Answer) text(said string) string {
	if !a.Instruct {
		return said
	}
	return unfenced(said, true)
}

// unfenced removes the Markdown code fence around a text, if there is one. A text that is
// not whole may lack the end of its fence, or have a part of it.
func unfenced(s string, whole bool) string {
	inside, ok := strings.CutPrefix(strings.TrimSpace(s), "```")
	first, rest, more := strings.Cut(inside, "\n")
	body, closed := strings.CutSuffix(rest, "```")
	switch {
	case !ok || !more || strings.ContainsAny(first, "{[`") || whole && !closed:
		return s
	case whole:
		return body
	}
	return strings.TrimRight(rest, "`")
}

// problem returns what does not fit, or "". A panic of a check is an error: the model
// cannot repair it.
func (a *Answer) problem(said string) (what string, failed error) {
	defer func() {
		if v := recover(); v != nil {
			failed = &HookError{Hook: "Check", Name: "the answer", Err: &StopError{fmt.Errorf("it panicked: %v", v)}, Stack: debug.Stack()}
		}
	}()
	text, fits := a.text(said), a.Schema.Check
	if a.decode != nil {
		fits = a.decode
	}
	err := fits(text)
	if err == nil && a.Check != nil {
		err = a.Check(text)
	}
	if err == nil {
		return "", nil
	}
	return cmp.Or(strings.TrimSpace(err.Error()), "it is not accepted"), nil
}

// judgeAnswer decides about a run that would stop with an answer. It reports again if
// the run goes on because the answer went back to the model, and otherwise sets how
// the run stops. A run without input that has nothing to send judges the stored
// answer.
func (r *Run) judgeAnswer(ctx context.Context, stop *plan.Stop) (again bool, err error) {
	if r.wanted == nil || stop.Why != StopEndTurn && stop.Why != StopNothingToSend || r.hasInput() {
		return false, nil
	}
	if stop.Why == StopNothingToSend && len(r.input) > 0 {
		return false, nil // the last words are the caller's, not the model's
	}
	said, ok := lastAnswer(r.session.Log())
	text, refuses := "", false
	if m, err := item.As[item.Message](said); ok && err == nil {
		text = m.Content.Display()
		refuses = slices.ContainsFunc(m.Content.Parts, func(p item.Part) bool { _, is := p.(*item.Refusal); return is })
	}
	if (!ok || refuses) && stop.Why == StopNothingToSend {
		return false, nil
	}
	r.result.read, r.result.readText = said, text
	problem, failed := r.wanted.problem(text)
	if failed != nil {
		return true, r.stopFor(failed)
	}
	switch done := r.repaired(); {
	case problem == "":
		r.result.Answer = r.wanted.text(text)
		if stop.Why == StopNothingToSend {
			*stop = plan.Stop{Why: StopEndTurn, Detail: "the stored answer fits"}
			r.result.said = said
		}
		return false, nil
	case done >= r.wanted.repairs():
		*stop = plan.Stop{Why: StopUnfit, Detail: problem}
		r.result.said = said
		return false, nil
	}
	notice := session.Noticed{Kind: session.NoticeUnfit, ItemID: said.ID(), Text: "the answer goes back to the model, because it does not fit: " + problem}
	if err := r.giveAs(ctx, true, []session.Body{notice}, []item.Item{item.User(fmt.Sprintf(answerAgain, problem))}); err != nil {
		return false, err
	}
	if objection := after(ctx, "Noticed", r.agent.Hooks, noticed, &notice); objection != nil {
		return true, r.stopFor(objection)
	}
	return true, nil
}

// hasInput reports whether input waits that [Run.Say] was given.
func (r *Run) hasInput() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.inbox) > 0 || r.mail.arrived.Load()
}

// repaired returns how often an answer to the same input was sent back: in this run, in
// all of its processes, and in runs before it that a crash ended.
func (r *Run) repaired() (n int) {
	log := r.session.Log()
	for i, e := range slices.Backward(log) {
		switch b := e.Body.(type) {
		case session.Noticed:
			if b.Kind == session.NoticeUnfit {
				n++
			}
		case session.RunStarted:
			if !b.Resumes && !afterCrash(log, i) {
				return n
			}
		}
	}
	return n
}

// afterCrash reports whether the run that begins with entry i has no input and follows
// a run that did not stop.
func afterCrash(log []session.Entry, i int) bool {
	if i == 0 || i+1 < len(log) && session.Kind(log[i+1].Body) == session.Kind(session.InputItem{}) {
		return false
	}
	_, stopped := log[i-1].Body.(session.Stopped)
	return !stopped
}

// lastAnswer returns the message with which a log ends, if it is a complete reply of
// the model.
func lastAnswer(log []session.Entry) (item.Item, bool) {
	var gone []int64
	for _, e := range slices.Backward(log) {
		switch b := e.Body.(type) {
		case session.ItemsWithdrawn:
			gone = append(gone, b.Seqs...)
		case session.CallOutput:
			return item.Item{}, false
		case session.InputItem: // in a transcript, replies are given items too
			it := b.Item
			return it, it.Type() == item.TypeMessage && it.Role() == item.RoleAssistant && it.Status() != item.StatusIncomplete
		case session.TurnEnded:
			if b.BrokeOff() || b.Status == item.StatusIncomplete {
				return item.Item{}, false
			}
		case session.OutputItem:
			if b.Item.Type() == item.TypeMessage && !b.Item.FromSubagent() {
				return b.Item, !b.Partial && !slices.Contains(gone, e.Seq)
			}
			if b.Item.IsCall() {
				return item.Item{}, false
			}
		}
	}
	return item.Item{}, false
}

// unfit returns the error of a run that stopped without an answer that fits.
func (r *Run) unfit() *AnswerError {
	res := r.Result()
	return &AnswerError{Why: r.why.Why, Detail: r.why.Detail, Text: res.Text, Repairs: r.repaired()}
}

// explainRefusal adds a hint to the error of an endpoint that refuses the format of
// the answer.
func (r *Run) explainRefusal(err error) error {
	var e *endpoint.Error
	var refused *endpoint.RefusedError
	param := ""
	switch {
	case r.wanted == nil || r.wanted.Instruct:
	case errors.As(err, &e):
		param = e.Param
	case errors.As(err, &refused):
		param = refused.Param
	}
	for _, of := range []string{"text", "response_format"} {
		if param == of || strings.HasPrefix(param, of+".") {
			return fmt.Errorf("%w\n  hint: the endpoint does not accept the format of the answer; Answer.Instruct puts the schema into the instructions instead", err)
		}
	}
	return err
}
