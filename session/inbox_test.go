// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package session_test

import (
	"errors"
	"testing"

	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
)

// An inbox that is full of input still takes requests to stop, answers, and what the program tells the model, but not without end.
func TestRoom(t *testing.T) {
	input := session.InputItem{Item: item.User("hello")}
	developer := session.InputItem{Item: item.Developer("The files are older.")}
	for _, test := range []struct {
		waits session.Backlog
		body  session.Body
		size  int64
		room  bool
	}{
		{session.Backlog{}, input, 200 << 20, true},
		{session.Backlog{Deliveries: 1000, Bytes: 1000}, input, 100, false},
		{session.Backlog{Deliveries: 1000, Bytes: 1000}, developer, 100, true},
		{session.Backlog{Deliveries: 1, Bytes: 96 << 20}, developer, 100, true},
		{session.Backlog{Deliveries: 1, Bytes: 200 << 20}, input, 100, false},
		{session.Backlog{Deliveries: 1, Bytes: 200 << 20}, session.StopAsked{}, 100, true},
		{session.Backlog{Deliveries: 1, Bytes: 200 << 20}, session.Approval{CallID: "c", Number: 1}, 1 << 10, true},
		{session.Backlog{Deliveries: 1, Bytes: 200 << 20}, session.StopAsked{}, 1 << 20, false},
		{session.Backlog{Deliveries: 1, Bytes: 100 << 20}, session.StopAsked{}, 1 << 20, true},
		{session.Backlog{Deliveries: 2000, Bytes: 1000}, session.StopAsked{}, 100, false},
	} {
		err := test.waits.Room(session.Delivery{Bodies: []session.Body{test.body}}, test.size)
		if (err == nil) != test.room || err != nil && !errors.Is(err, session.ErrInboxFull) {
			t.Errorf("%+v, %T of %d bytes: %v", test.waits, test.body, test.size, err)
		}
	}
}
