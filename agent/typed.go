// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/internal/nils"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/tool"
)

// Typed is the outcome of [RunAs] and [StreamAs].
type Typed[T any] struct {
	// Value is the answer. It is the zero value if there is an error.
	Value T
	// Item is the message that holds the answer, as the model sent it; or, with an
	// error, the last message.
	Item item.Item
	// Repairs is the number of times that an answer was sent back.
	Repairs int
	// Result is the result of the run, over all attempts. It is never nil.
	Result *Result
}

// TypedEvent is an event of [StreamAs].
type TypedEvent[T any] struct {
	// Event is an event of the run. It is nil in the last TypedEvent, whose Final is
	// set.
	Event Event
	// Partial is what the text of the answer says so far, or nil if this event did not
	// change it. See [tool.Schema.Partial] for what it may leave out: nothing in it is
	// half of something, except for a text that has no enum, pattern or format.
	// Members that are missing are zero. It may not fit the schema, and Check does not
	// see it. A repair begins again. The value belongs to the caller.
	Partial *T
	// Final is the outcome, also if the error beside it is not nil.
	Final *Typed[T]
}

// RunAs is like [Agent.Run] for an answer that is a Go value. The model gets the
// schema of T (see [tool.SchemaOf]) as the format of its text. The answer is checked
// against the schema and decoded, and an answer that does not fit is sent back with
// the reason. If T has a method Check() error, its error is such a reason too. See
// [Answer] for repairs, and for continuing after a crash: call RunAs without input. To
// change its settings, set [Agent].Answer without a Schema.
//
// An answer that is not a struct or a map, such as a list, is the member answer of an
// object in the model's text, because endpoints want an object.
//
// If there is no value that fits, RunAs returns an [*AnswerError], whatever the reason
// why the run stopped: a refusal, an incomplete reply, a limit, a pending approval.
// Other errors are those of [Agent.Run]. The Typed is never nil.
func RunAs[T any](ctx context.Context, a *Agent, s *session.Session, input ...item.Item) (*Typed[T], error) {
	run, read, err := startAs[T](a, s, input)
	if err != nil {
		return &Typed[T]{Result: new(Result)}, err
	}
	run.quiet = true
	for _, failed := range run.Events(ctx) {
		err = failed
	}
	return read.outcome(run, err)
}

// StreamAs is like [RunAs] and yields the events of the run, and what the answer says
// so far. The last TypedEvent has the outcome; breaking out of the range cancels the
// run. Of a long answer not every piece of text gives a partial value.
func StreamAs[T any](ctx context.Context, a *Agent, s *session.Session, input ...item.Item) iter.Seq2[TypedEvent[T], error] {
	input = slices.Clone(input)
	return func(yield func(TypedEvent[T], error) bool) {
		run, read, err := startAs[T](a, s, input)
		if err != nil {
			yield(TypedEvent[T]{Final: &Typed[T]{Result: new(Result)}}, err)
			return
		}
		for ev, failed := range run.Events(ctx) {
			if failed != nil {
				err = failed
				break
			}
			if !yield(TypedEvent[T]{Event: ev, Partial: read.partial(ev)}, nil) {
				return
			}
		}
		final, err := read.outcome(run, err)
		yield(TypedEvent[T]{Final: final}, err)
	}
}

// boxed is the object around an answer that is not an object.
type boxed[T any] struct {
	Answer T `json:"answer"`
}

// answers are the answers of types without settings, as known, by type. They do not
// change.
var answers sync.Map

// known is what is computed once for a type.
type known struct {
	schema *tool.Schema
	boxed  bool
	format item.JSON // of an answer without a name
}

// knownFor returns what is known of a type.
func knownFor[T any]() (*known, error) {
	key := reflect.TypeFor[T]()
	if v, ok := answers.Load(key); ok {
		if k, ok := v.(*known); ok {
			return k, nil
		}
	}
	schema, err := tool.NewSchema[T]()
	if err != nil {
		return nil, err
	}
	k := &known{schema: schema}
	if !schema.Object() {
		k.boxed = true
		if k.schema, err = tool.NewSchema[boxed[T]](); err != nil {
			return nil, err
		}
	}
	if k.format, err = (&Answer{Schema: k.schema}).formatIn(new(api.TextConfig)); err != nil {
		return nil, err
	}
	answers.Store(key, k)
	return k, nil
}

// reader reads the answers of a run.
type reader[T any] struct {
	answer *Answer
	boxed  bool
	value  T // of the last answer that fits

	text  strings.Builder // of the message that arrives
	id    string          // of the message
	part  int
	shown string // the last partial value as JSON
	tried int    // the length of the text when the last partial value was made
}

// startAs prepares a typed run.
func startAs[T any](a *Agent, s *session.Session, input []item.Item) (*Run, *reader[T], error) {
	if a == nil {
		return nil, nil, errors.New("agent: the *Agent is nil")
	}
	answer := new(Answer)
	if a.Answer != nil {
		*answer = *a.Answer
	}
	if answer.Schema != nil {
		return nil, nil, errors.New("agent: Answer.Schema is set, and RunAs uses the schema of its type: leave it out")
	}
	of, err := knownFor[T]()
	if err != nil {
		return nil, nil, err
	}
	read := &reader[T]{answer: answer, boxed: of.boxed}
	if answer.Schema = of.schema; answer.Name == "" {
		answer.format = of.format
	}
	answer.decode = func(text string) (err error) {
		read.value, err = read.decode(text, answer.Schema.Decode)
		if err != nil {
			return err
		}
		for _, value := range []any{&read.value, read.value} { // the second if T is a pointer or an interface
			if own, ok := value.(interface{ Check() error }); ok && !nils.Is(own) {
				return own.Check()
			}
		}
		return nil
	}
	run := a.start(s, input)
	run.wanted = answer
	return run, read, nil
}

// decode returns the value of a JSON text, which may be in a box.
func (t *reader[T]) decode(text string, into func(string, any) error) (T, error) {
	if t.boxed {
		var box boxed[T]
		err := into(text, &box)
		return box.Answer, err
	}
	var value T
	err := into(text, &value)
	return value, err
}

// outcome returns the outcome of a run that has ended.
func (t *reader[T]) outcome(run *Run, err error) (*Typed[T], error) {
	typed := &Typed[T]{Result: run.Result(), Item: run.result.said}
	if run.session != nil && run.why.Why != "" {
		typed.Repairs = run.repaired()
	}
	switch {
	case err != nil:
	case run.why.Why == StopEndTurn:
		typed.Value = t.value
	default:
		err = run.unfit()
	}
	return typed, err
}

// sparse says how much longer a text must be than the last one that a partial value
// was made of: by one part in so many. It bounds the work for a long answer.
const sparse = 64

// partial takes an event and returns the partial value after it, if it is a new one.
func (t *reader[T]) partial(ev Event) *T {
	switch ev := ev.(type) {
	case Recorded:
		if _, begins := ev.Body.(session.TurnStarted); begins {
			t.text.Reset()
			t.shown, t.tried, t.id = "", 0, ""
		}
		return nil
	case Delta:
		if ev.Kind != DeltaText {
			return nil
		}
		switch {
		case ev.ItemID != t.id: // another message
			t.text.Reset()
			t.shown, t.tried = "", 0
		case ev.Part != t.part && t.text.Len() > 0:
			t.text.WriteByte('\n') // as the text of the whole message has it
		}
		t.id, t.part = ev.ItemID, ev.Part
		t.text.WriteString(ev.Text)
	default:
		return nil
	}
	if t.text.Len()-t.tried < t.tried/sparse {
		return nil
	}
	text := t.text.String()
	t.tried = len(text)
	if t.answer.Instruct {
		text = unfenced(text, false)
	}
	out, ok := t.answer.Schema.Partial(text)
	if !ok || out == t.shown {
		return nil
	}
	value, err := t.decodePartial(out)
	if err != nil {
		return nil
	}
	t.shown = out
	return &value
}

// decodePartial decodes a partial value. A panic of a type that reads its own JSON is an
// error here; the check of the whole answer reports it.
func (t *reader[T]) decodePartial(text string) (value T, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("it panicked: %v", v)
		}
	}()
	return t.decode(text, t.answer.Schema.DecodePartial)
}
