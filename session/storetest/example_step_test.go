// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package storetest_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/session/storetest"
)

// A store can be made to fail at any step, to see what a program makes of it: here
// when a question to the model is to be written.
func ExampleStepStore() {
	ctx := context.Background()
	memory := new(session.Memory)
	full := storetest.StepStore(memory, func(s storetest.Step) error {
		fmt.Println(s)
		if s.String() == "append/turn_started/before" {
			return errors.New("the disk is full")
		}
		return nil
	})
	s, err := session.Open(ctx, full, "notes")
	if err != nil {
		log.Fatal(err)
	}
	if _, err := s.Append(ctx, session.InputItem{Item: item.User("Is it late?")}); err != nil {
		log.Fatal(err)
	}
	_, err = s.Append(ctx, session.TurnStarted{Turn: 1})
	fmt.Println(err)
	fmt.Println("entries:", len(s.Log()))
	// Output:
	// load/before
	// load/after
	// append/given/before
	// append/given/after
	// append/turn_started/before
	// session "notes": the disk is full
	// entries: 1
}
