// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"context"
	"fmt"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
)

// A message of a chat is delivered to a session that somebody else may be running. It
// arrives twice, as such messages do, and counts once.
func Example_inbox() {
	ctx := context.Background()
	store := new(session.Memory)
	s, err := session.Open(ctx, store, "support")
	if err != nil {
		fmt.Println(err)
		return
	}
	if _, err = s.Append(ctx, session.InputItem{Item: item.Developer("Be brief.")}); err != nil {
		fmt.Println(err)
		return
	}
	message := struct{ ID, Author, Text string }{"m-17", "Ada", "Is my order on its way?"}
	for range 2 {
		receipt, err := s.Deliver(ctx, session.Delivery{
			Delivered: session.Delivered{Key: message.ID, By: message.Author, From: "chat"},
			Bodies:    []session.Body{session.InputItem{Item: item.User(message.Text)}},
		})
		fmt.Println(receipt.Number, err)
	}

	a := &agent.Agent{Model: &memory{replies: []any{[]item.Item{item.Assistant("It left this morning.")}}}}
	res, err := a.Run(ctx, s)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(res.Text)
	for e := range s.Entries() {
		if d, ok := e.Body.(session.Delivered); ok {
			fmt.Println(d.Key, "of", d.By, "by", d.From)
		}
	}
	// Output:
	// 1 <nil>
	// 1 <nil>
	// It left this morning.
	// m-17 of Ada by chat
}
