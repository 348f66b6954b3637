// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package toolkit

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/tool"
	"github.com/antiphon-go/antiphon/tool/output"
	"github.com/antiphon-go/antiphon/toolkit/internal/kittest"
	"github.com/antiphon-go/antiphon/toolkit/internal/wording"
)

func invokeAsk(t *testing.T, ctx context.Context, asker Asker, a args) tool.Outcome {
	t.Helper()
	ask, err := AskUser("ask_user", asker)
	if err != nil {
		t.Fatal(err)
	}
	set, err := tool.NewSet(ask)
	if err != nil {
		t.Fatal(err)
	}
	return set.Invoke(ctx, tool.Call{ID: "call_7", Name: "ask_user", Arguments: kittest.JSON(t, a)}, output.Policy{})
}

// A5: asking needs no approval, and no two questions are open at once.
func TestAskUserTraits(t *testing.T) {
	ask, err := AskUser("ask_user", nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := tool.AnnotationsOf(ask); !got.Exclusive || !got.ReadOnly {
		t.Errorf("got %+v", got)
	}
	if d := ask.Definition().(*item.FunctionTool); d.Description == "" || d.Name != "ask_user" {
		t.Errorf("got %+v", d)
	}
}

func TestAskUser(t *testing.T) {
	var got Question
	asker := AskerFunc(func(_ context.Context, q Question) (string, error) {
		got = q
		return " yes\x1b[31m,\x00 \r\nplease\u202e \n", nil
	})
	o := invokeAsk(t, t.Context(), asker, args{
		"question": "May I\x1b]0;title\a \x07delete\r\nit?\u202e\t ",
		"choices":  []string{"yes", " no\n\x1b[2J ", "yes", "", "\u2066later"},
	})
	want := Question{CallID: "call_7", Text: "May I delete\nit?", Choices: []string{"yes", "no", "later"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if o.Failed || o.Content.Text != "yes, \nplease" {
		t.Errorf("got %q", o.Content.Text)
	}
}

// T5: what cannot be answered is a fixed sentence.
func TestAskUserWithoutAnswer(t *testing.T) {
	answers := func(s string, err error) Asker {
		return AskerFunc(func(context.Context, Question) (string, error) { return s, err })
	}
	q := args{"question": "Which?"}
	kittest.WantError(t, invokeAsk(t, t.Context(), nil, q), NobodyToAsk)
	kittest.WantError(t, invokeAsk(t, t.Context(), answers("", fmt.Errorf("input ended: %w", ErrNobody)), q), NobodyToAsk)
	kittest.WantError(t, invokeAsk(t, t.Context(), answers("", errors.New("no window")), q), "no window")
	for _, s := range []string{"", " \n", "\x1b[0m"} {
		if o := invokeAsk(t, t.Context(), answers(s, nil), q); o.Failed || o.Content.Text != EmptyAnswer {
			t.Errorf("%q: got %q", s, o.Content.Text)
		}
	}
	o := invokeAsk(t, t.Context(), answers(strings.Repeat("é", MaxAnswer), nil), q)
	if !strings.HasSuffix(o.Content.Text, "cut off]") || len(o.Content.Text) > MaxAnswer+100 || o.Repairs != 0 {
		t.Errorf("got %d bytes, %d repairs", len(o.Content.Text), o.Repairs)
	}
}

func TestAskUserRefuses(t *testing.T) {
	never := AskerFunc(func(context.Context, Question) (string, error) {
		t.Error("asked")
		return "", nil
	})
	for _, c := range []struct {
		in   args
		want string
	}{
		{args{"question": " \x1b[0m"}, "empty"},
		{args{"question": strings.Repeat("x", MaxQuestion+1)}, "too long"},
		{args{"question": "?", "choices": make([]string, MaxChoices+1)}, "too many choices"},
		{args{"question": "?", "choices": []string{strings.Repeat("x", MaxChoice+1)}}, "a choice is too long"},
		{args{"choices": []string{"a"}}, "question"},
	} {
		kittest.WantError(t, invokeAsk(t, t.Context(), never, c.in), c.want)
	}
}

// T15: a call that waits for an answer can be cancelled.
func TestAskUserCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	asker := AskerFunc(func(ctx context.Context, _ Question) (string, error) {
		cancel()
		<-ctx.Done()
		return "", ctx.Err()
	})
	o := invokeAsk(t, ctx, asker, args{"question": "?"})
	if o.Failure != tool.Cancelled || o.Abandoned {
		t.Errorf("got %q: %s", o.Failure, o.Error)
	}
}

// FuzzQuestion: what is shown can harm no terminal.
func FuzzQuestion(f *testing.F) {
	f.Add("a\x1b[31mb", "c\u202e")
	f.Add("\xff\u009b1m", "\r\n")
	f.Fuzz(func(t *testing.T, text, choice string) {
		q, err := questionOf(askUserInput{Question: text, Choices: []string{choice}})
		if err != nil {
			return
		}
		for i, s := range append([]string{q.Text}, q.Choices...) {
			for _, r := range s {
				if r == utf8.RuneError || wording.TurnsText(r) || unicode.IsControl(r) && (i > 0 || r != '\n' && r != '\t') {
					t.Errorf("%q is shown", s)
				}
			}
		}
	})
}
