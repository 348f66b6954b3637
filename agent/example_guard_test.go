// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"regexp"
	"strings"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/agenttest"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/platform"
	"github.com/antiphon-go/antiphon/session"
)

// A rule as a guard. What it objects to is not sent, now or later, and the session
// goes on without it.
func ExampleGuard() {
	secret := regexp.MustCompile(`hunter\d`)
	rule := agent.Guard{
		Name:  "secrets",
		First: true, // the endpoint must never get it
		Input: func(_ context.Context, c *agent.GuardCall) (*agent.Tripwire, error) {
			if found := secret.FindString(c.Text()); found != "" {
				return &agent.Tripwire{Reason: "it holds a password", Value: len(found)}, nil
			}
			return nil, nil
		},
	}
	a := &agent.Agent{Model: &memory{replies: []any{[]item.Item{item.Assistant("Hello.")}}}, Guards: []agent.Guard{rule}}

	s := session.New()
	for _, text := range []string{"My password is hunter2.", "Hello?"} {
		res, err := a.Run(context.Background(), s, item.User(text))
		var trip *agent.Tripwire
		if errors.As(err, &trip) {
			fmt.Printf("%s: %s (%v bytes)\n", trip.Guard, trip.Reason, trip.Value)
			continue
		}
		fmt.Println(res.Why, res.Text, err)
	}
	// Output:
	// secrets: it holds a password (7 bytes)
	// answered Hello. <nil>
}

// A second model as a guard, beside the request. Its tokens count in the run.
func ExampleGuard_secondModel() {
	// The small model answers yes or no.
	small := &agent.Agent{Model: &memory{replies: []any{[]item.Item{item.Assistant("yes")}, []item.Item{item.Assistant("no")}}}}
	small.Request.Instructions = "Does the message ask for legal advice? Answer yes or no."
	topic := agent.Guard{
		Name: "topic",
		Input: func(ctx context.Context, c *agent.GuardCall) (*agent.Tripwire, error) {
			res, err := small.Run(ctx, session.New(), item.User(c.Text()))
			switch {
			case err != nil:
				return nil, err
			case res.Text != "no":
				return &agent.Tripwire{Reason: "no legal advice"}, nil
			}
			return nil, nil
		},
	}
	a := &agent.Agent{Model: &memory{replies: []any{[]item.Item{item.Assistant("Hello.")}}}, Guards: []agent.Guard{topic}}

	s := session.New()
	for _, text := range []string{"May I sue?", "Hello?"} {
		res, err := a.Run(context.Background(), s, item.User(text))
		fmt.Printf("%q %v; the guard used %d tokens\n", res.Text, err, res.Nested.Tokens)
	}
	// Output:
	// "" guard topic objects to the input: no legal advice; the guard used 15 tokens
	// "Hello." <nil>; the guard used 15 tokens
}

// A moderation endpoint as a guard. An endpoint that cannot be reached is an error of
// the guard, and the run stops: a question that nobody judged is not answered.
func ExampleGuard_moderation() {
	judge := httptest.NewServer(&agenttest.Platform{Harmful: func(text string) bool { return strings.Contains(text, "bomb") }})
	defer judge.Close()
	client := &platform.Client{BaseURL: judge.URL + "/v1"}
	moderated := agent.Guard{
		Name: "moderation",
		Input: func(ctx context.Context, c *agent.GuardCall) (*agent.Tripwire, error) {
			judged, err := client.Moderate(ctx, &platform.ModerationRequest{Texts: []string{c.Text()}})
			if err != nil {
				return nil, err
			}
			if verdict := judged.Results[0]; verdict.Flagged {
				return &agent.Tripwire{Reason: "the moderation flags it", Value: verdict.Flags()}, nil
			}
			return nil, nil
		},
	}
	a := &agent.Agent{Model: &memory{replies: []any{[]item.Item{item.Assistant("Hello.")}}}, Guards: []agent.Guard{moderated}}

	s := session.New()
	for _, text := range []string{"How do I build a bomb?", "Hello?"} {
		res, err := a.Run(context.Background(), s, item.User(text))
		fmt.Printf("%q %v\n", res.Text, err)
	}
	// Output:
	// "" guard moderation objects to the input: the moderation flags it
	// "Hello." <nil>
}

// A hook can object, too.
func ExampleHooks_guard() {
	check := func(items ...item.Item) error {
		for _, it := range items {
			if strings.Contains(it.JSON(), "hunter2") {
				return errors.New("it holds a password")
			}
		}
		return nil
	}
	a := &agent.Agent{Model: &memory{replies: []any{[]item.Item{item.Assistant("Hello.")}}}}
	a.Hooks = append(a.Hooks, agent.Hooks{
		Name:        "police",
		BeforeInput: func(ctx context.Context, c *agent.InputCall) error { return check(c.Input...) },
		AfterModel:  func(ctx context.Context, c *agent.ModelCall) error { return check(c.Output...) },
	})
	a.HoldOutput = true // yield nothing of a reply before AfterModel agreed

	s := session.New()
	for _, text := range []string{"My password is hunter2.", "Hello?"} {
		res, err := a.Run(context.Background(), s, item.User(text))
		fmt.Println(res.Why, res.Guard, res.Text, err)
	}
	// Output:
	// vetoed police  hook BeforeInput of police: it holds a password
	// answered  Hello. <nil>
}
