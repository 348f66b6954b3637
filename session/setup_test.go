// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package session_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
)

// J12: a change of any member of a setup is a change, is kept by the log, and is
// told to people.
func TestSetupMembers(t *testing.T) {
	whole := session.Setup{
		Model: "the-model", Endpoint: "https://a.example/v1", API: "chat", Transport: "websocket", Profile: "the-profile",
		Settings: item.JSON(`{"temperature":0.5}`), Instructions: "the-instructions", Program: "the-program",
		Tools: []session.Hashed{{Name: "a-tool", Hash: "its-hash"}}, Files: []session.Hashed{{Name: "a-file", Hash: "its-sum"}},
	}
	for i := range reflect.TypeFor[session.Setup]().NumField() {
		name := reflect.TypeFor[session.Setup]().Field(i).Name
		other := whole
		if f := reflect.ValueOf(&other).Elem().Field(i); f.Kind() == reflect.Bool {
			f.SetBool(true)
		} else if f.IsZero() {
			t.Errorf("this test knows no %s", name)
		} else {
			f.SetZero()
		}
		if whole.Equal(&other) {
			t.Errorf("Equal does not look at %s", name)
		}
		if now := whole; !now.Apply(session.RunStarted{Setup: &other}) || !now.Equal(&other) {
			t.Errorf("a change of %s does not hold", name)
		}
		if told(&whole) == told(&other) {
			t.Errorf("nobody is told of %s", name)
		}
		e := session.Entry{Seq: 1, Body: session.RunStarted{Setup: &other}}
		got, err := session.ParseEntry([]byte(encode(t, e)))
		if diff := cmp.Diff(e, got, compare); diff != "" || err != nil {
			t.Errorf("%s: %v (-want +got):\n%s", name, err, diff)
		}
	}
}

// told is all that a person is told of a setup.
func told(s *session.Setup) string {
	all := []string{s.String()}
	for name, value := range s.Details() {
		all = append(all, name, value)
	}
	return strings.Join(all, "\n")
}
