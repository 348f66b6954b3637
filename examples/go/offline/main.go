// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

// The program orders tea by an agent. How it is tested without a network, a key or a
// model is in main_test.go. Start the tests with
//
//	go test -v ./examples/go/offline
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/responses"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/tool"
)

// Shop sells tea.
type Shop struct{ Stock map[string]int }

type order struct {
	Tea   string `json:"tea"`
	Boxes int    `json:"boxes" minimum:"1" maximum:"10"`
}

func (s *Shop) order(_ context.Context, o order) (string, error) {
	if s.Stock[o.Tea] < o.Boxes {
		return "", fmt.Errorf("there are %d boxes of %s", s.Stock[o.Tea], o.Tea)
	}
	s.Stock[o.Tea] -= o.Boxes
	return fmt.Sprintf("%d of %s are on their way", o.Boxes, o.Tea), nil
}

// Clerk returns the agent. The model is a parameter, so that a test can give another.
func (s *Shop) Clerk(model agent.Model) *agent.Agent {
	a := &agent.Agent{Model: model, Tools: []tool.Tool{tool.Must("order", "Orders boxes of tea.", s.order, tool.Exclusive())}}
	a.Request.Model, a.Request.Instructions = "gpt-5-mini", "You sell tea."
	a.Policy.Allow = []string{"order"}
	return a
}

// Sell answers a customer. An answer that is none, such as a limit, is an error.
func (s *Shop) Sell(ctx context.Context, model agent.Model, conversation *session.Session, wish string) (string, error) {
	res, err := s.Clerk(model).Run(ctx, conversation, item.User(wish))
	switch {
	case err != nil:
		return "", err
	case res.Why != agent.StopEndTurn:
		return "", errors.New("no answer: " + res.Detail)
	}
	return res.Text, nil
}

func main() {
	log.SetFlags(0)
	if os.Getenv("OPENAI_API_KEY") == "" {
		log.Fatal("set OPENAI_API_KEY to talk to a real model; go test ./examples/go/offline needs none")
	}
	shop := &Shop{Stock: map[string]int{"Darjeeling": 3}}
	model := &responses.Client{Key: endpoint.NewKey(os.Getenv("OPENAI_API_KEY"))}
	answer, err := shop.Sell(context.Background(), model, session.New(), "Two boxes of Darjeeling, please.")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(answer)
}
