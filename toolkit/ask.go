// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package toolkit

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"slices"
	"strings"

	"github.com/antiphon-go/antiphon/tool"
	"github.com/antiphon-go/antiphon/toolkit/internal/wording"
)

// Limits of a question and its answer.
const (
	MaxQuestion = 16 << 10 // bytes of a question
	MaxChoices  = 20
	MaxChoice   = 500      // bytes of one choice
	MaxAnswer   = 64 << 10 // bytes of an answer; the rest is cut
)

// The fixed texts of ask_user.
const (
	// NobodyToAsk is the error if nobody can answer.
	NobodyToAsk = "Nobody can answer questions in this run. Go on with your best guess, and say in your answer what you assumed."
	// EmptyAnswer is the output if the user's answer is empty.
	EmptyAnswer = "The user gave no answer. Go on with your best guess, and say in your answer what you assumed."
)

// ErrNobody is returned by an [Asker] if nobody can answer: there is no terminal, or
// its input has ended.
var ErrNobody = errors.New("nobody can answer")

// Question is a question of a model. Its text can be shown as it is: it is valid
// UTF-8 without control characters (except for line ends and tabs) and without
// characters that change the direction of text.
type Question struct {
	// CallID is the id of the call of ask_user.
	CallID string
	// Text is the question, never empty.
	Text string
	// Choices are answers that the model suggests, each on one line and unique.
	Choices []string
}

// Asker asks the user. Calls of one agent are sequential; agents that share an Asker
// may call it concurrently.
type Asker interface {
	// Ask returns the user's answer. It must return soon after ctx is done, and
	// returns [ErrNobody] if nobody can answer. With a [tool.NotYet] the call stays open: the run ends when nothing
	// else is left to do, and a later run asks again.
	Ask(ctx context.Context, q Question) (answer string, err error)
}

// AskerFunc is a function that implements [Asker].
type AskerFunc func(ctx context.Context, q Question) (string, error)

// Nobody is the [Asker] of an unattended run: it returns [ErrNobody].
var Nobody Asker = AskerFunc(func(context.Context, Question) (string, error) { return "", ErrNobody })

// Ask implements [Asker]. A nil function answers nothing: see [ErrNobody].
func (f AskerFunc) Ask(ctx context.Context, q Question) (string, error) {
	if f == nil {
		return "", ErrNobody
	}
	return f(ctx, q)
}

//go:embed ask.md
var askUserText string

// askUserInput are the arguments of ask_user.
type askUserInput struct {
	Question string   `json:"question" jsonschema:"the question, in whole sentences"`
	Choices  []string `json:"choices,omitzero" jsonschema:"answers to choose from, at most 20, each one line"`
}

// AskUser returns the tool by which a model asks the user. It is exclusive, so that
// two questions are never open at once, and read-only, so that it needs no approval.
// A nil asker means [Nobody]: each question fails with [NobodyToAsk].
func AskUser(name string, asker Asker) (tool.Tool, error) {
	if asker == nil {
		asker = Nobody
	}
	ask := func(ctx context.Context, in askUserInput) (string, error) { return askUser(ctx, asker, in) }
	return tool.New(name, strings.TrimSpace(askUserText), ask, tool.ReadOnly(), tool.Idempotent(), tool.Exclusive())
}

// askUser asks one question.
func askUser(ctx context.Context, asker Asker, in askUserInput) (string, error) {
	q, err := questionOf(in)
	if err != nil {
		return "", err
	}
	if call, ok := tool.FromContext(ctx); ok {
		q.CallID = call.ID
	}
	answer, err := asker.Ask(ctx, q)
	switch {
	case errors.Is(err, ErrNobody):
		return "", toldError(NobodyToAsk)
	case err != nil:
		return "", err
	}
	answer = strings.TrimSpace(wording.Showable(answer))
	if len(answer) > MaxAnswer {
		answer = answer[:MaxAnswer]
		answer = answer[:len(answer)-wording.PartialRune([]byte(answer))] + "\n[the rest of the answer was cut off]"
	}
	return cmp.Or(answer, EmptyAnswer), nil
}

// questionOf checks a question and makes it safe to show.
func questionOf(in askUserInput) (q Question, err error) {
	q.Text = strings.TrimSpace(wording.Showable(in.Question))
	switch {
	case q.Text == "":
		return q, errors.New("the question is empty. Ask it in whole sentences")
	case len(q.Text) > MaxQuestion:
		return q, errors.New("the question is too long to be shown: the limit is 16 KiB. Ask for less, or point to a file")
	case len(in.Choices) > MaxChoices:
		return q, errors.New("too many choices: the limit is 20. Offer fewer, or none")
	}
	for _, c := range in.Choices {
		c = strings.Join(strings.Fields(wording.Showable(c)), " ")
		if len(c) > MaxChoice {
			return q, errors.New("a choice is too long: the limit is 500 bytes. Explain it in the question")
		}
		if c != "" && !slices.Contains(q.Choices, c) {
			q.Choices = append(q.Choices, c)
		}
	}
	return q, nil
}
