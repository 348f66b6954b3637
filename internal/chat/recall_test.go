// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"testing"

	"github.com/antiphon-go/antiphon/host"
	"github.com/antiphon-go/antiphon/internal/person"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
)

// slowStore is a store that reads no log from its beginning before it is let.
type slowStore struct {
	session.Memory
	let chan struct{}
}

func (*slowStore) Place() string { return "memory" }
func (*slowStore) Close() error  { return nil }

func (s *slowStore) Load(ctx context.Context, id string, after int64) iter.Seq2[session.Entry, error] {
	if after == 0 {
		<-s.let
	}
	return s.Memory.Load(ctx, id, after)
}

// TestChatShowsTheEndFirst proves that the end of a long conversation is shown before all of it is
// read, that nothing is shown twice, and that what was said meanwhile follows.
func TestChatShowsTheEndFirst(t *testing.T) {
	t.Parallel()
	in := &slowStore{let: make(chan struct{})}
	var entries []session.Entry
	say := func(it item.Item) {
		entries = append(entries, session.Entry{Seq: int64(len(entries)) + 1, Body: session.InputItem{Item: it}})
	}
	for n := range 2 * manyEntries {
		say(item.User(fmt.Sprintf("question %d.", n)))
		say(item.Assistant(fmt.Sprintf("answer %d.", n)))
	}
	if err := in.Append(t.Context(), "long", 0, entries); err != nil {
		t.Fatal(err)
	}
	var shown strings.Builder
	std := Streams{strings.NewReader(""), &shown, &shown}
	d := &dialogue{conf: Config{Plain: true}, face: newPlainFace(std), std: std, who: person.New(std.In, std.Err)}
	d.opening(t.Context(), in, session.Info{ID: "long", Entries: int64(len(entries))})

	last := 2*manyEntries - 1
	early := shown.String()
	for _, want := range []string{
		fmt.Sprintf("waiting for %s, %d entries", restOf, len(entries)), "the last 4 messages",
		fmt.Sprintf("> question %d.", last-1), fmt.Sprintf("answer %d.", last-1), fmt.Sprintf("> question %d.", last), fmt.Sprintf("answer %d.", last),
	} {
		if strings.Count(early, want) != 1 {
			t.Errorf("%q is not shown once:\n%s", want, early)
		}
	}
	if strings.Contains(early, fmt.Sprintf("answer %d.", last-2)) {
		t.Errorf("more is shown:\n%s", early)
	}

	close(in.let)
	s, err := session.Open(t.Context(), in, "long")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Append(t.Context(), session.InputItem{Item: item.Assistant("said meanwhile")}); err != nil {
		t.Fatal(err)
	}
	shown.Reset()
	d.host = &host.Host{Session: s}
	d.recall(s.Entries(), mostRecalled)
	if got := strings.TrimSpace(shown.String()); got != "said meanwhile" {
		t.Errorf("after the opening it shows\n%s", got)
	}
}

// A short conversation is shown when it is open, as it was.
func TestChatShortIsShownWhole(t *testing.T) {
	t.Parallel()
	var shown strings.Builder
	std := Streams{strings.NewReader(""), &shown, &shown}
	d := &dialogue{face: newPlainFace(std), std: std}
	d.opening(t.Context(), &slowStore{}, session.Info{ID: "short", Entries: manyEntries - 1})
	if d.recalled != 0 || shown.Len() > 0 {
		t.Errorf("it shows %q", shown.String())
	}
}
