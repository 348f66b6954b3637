// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package session_test

import (
	"context"
	"fmt"
	"log"

	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
)

// A fork has what was said up to an entry. Both go on by themselves.
func ExampleSession_Fork() {
	ctx := context.Background()
	s, err := session.Open(ctx, new(session.Memory), "recipe")
	if err != nil {
		log.Fatal(err)
	}
	if _, err := s.Append(ctx, session.InputItem{Item: item.User("Soup?")}, session.InputItem{Item: item.Assistant("Leek.")}); err != nil {
		log.Fatal(err)
	}
	fork, err := s.Fork(ctx, 1, "another")
	if err != nil {
		log.Fatal(err)
	}
	if _, err := fork.Append(ctx, session.InputItem{Item: item.Assistant("Pea.")}); err != nil {
		log.Fatal(err)
	}
	for _, s := range []*session.Session{s, fork} {
		fmt.Println(s.ID())
		for e := range s.Entries() {
			m, err := item.As[item.Message](e.Body.(session.InputItem).Item)
			if err != nil {
				log.Fatal(err)
			}
			fmt.Println(" ", e.Seq, m.Role, m.Content.Display())
		}
	}
	// Output:
	// recipe
	//   1 user Soup?
	//   2 assistant Leek.
	// another
	//   1 user Soup?
	//   2 assistant Pea.
}

// The log has all that was said. Explain tells what the next request carries of
// it, and why the rest is not there.
func ExampleExplain() {
	ctx := context.Background()
	s := session.New()
	_, err := s.Append(ctx,
		session.InputItem{Item: item.System("Be brief.")},
		session.InputItem{Item: item.User("Where is Emma?")},
		session.InputItem{Item: item.Assistant("On shelf 12, between Persuasion and Sanditon.")},
		session.Compacted{Through: 3, By: session.BySummary, Items: []item.Item{item.User("[Emma is on shelf 12.]")}},
		session.InputItem{Item: item.User("And Persuasion?")},
	)
	if err != nil {
		log.Fatal(err)
	}
	account := session.Explain(s.Entries())
	for _, l := range account.Log {
		fmt.Printf("%d %s: %s\n", l.Seq, l.Kind, l.Disposition)
	}
	for _, c := range account.Request {
		fmt.Println("sent:", c.Seq, c.Item, "instead of", c.For)
	}
	// Output:
	// 1 given: sent
	// 2 given: compacted
	// 3 given: compacted
	// 4 compacted: sent
	// 5 given: sent
	// sent: 1 message system instead of 0
	// sent: 4 message user instead of 2
	// sent: 5 message user instead of 0
}

// A watcher is told of each entry as it comes, whoever writes it.
func ExampleWatcher() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	store := new(session.Memory)
	go func() {
		s, err := session.Open(ctx, store, "news")
		if err != nil {
			log.Fatal(err)
		}
		for _, text := range []string{"one", "two"} {
			if _, err := s.Append(ctx, session.Note{Item: item.User(text)}); err != nil {
				log.Fatal(err)
			}
		}
	}()
	var watcher session.Watcher = store
	for e, err := range watcher.Watch(ctx, "news", 0) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(e.Seq, session.Kind(e.Body))
		if e.Seq == 2 {
			cancel() // ends the range
		}
	}
	// Output:
	// 1 note
	// 2 note
}
