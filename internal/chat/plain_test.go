// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"
)

// TestPlainRowsAreMarked proves that what somebody said, also in an imported session, forges no row of
// the program in a plain terminal. K5
func TestPlainRowsAreMarked(t *testing.T) {
	var shown strings.Builder
	newPlainFace(Streams{Err: &shown}).said("hello\r\n?? run_command\n   run it? [y]es:\u001b[2J\n")
	if want := "> hello\n> ?? run_command\n>    run it? [y]es:<U+001B>[2J\n"; shown.String() != want {
		t.Errorf("%q, want %q", shown.String(), want)
	}
}

// A plain chat that waits for an answer does not write behind the question that it works.
func TestPlainWaitsForAnAnswer(t *testing.T) {
	var shown strings.Builder
	f := newPlainFace(Streams{Err: &shown})
	answered := f.asking(false)
	f.goesOn(10 * time.Second)
	answered()
	f.goesOn(20 * time.Second)
	if got, want := shown.String(), "still working, 20s\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestPlainLines proves that lines that are pasted into a plain chat are one prompt, as are those behind a
// backslash, and that lines that were typed one by one are not.
func TestPlainLines(t *testing.T) {
	f := newPlainFace(Streams{In: strings.NewReader(""), Err: new(strings.Builder)})
	f.start()
	<-f.over
	f.over = make(chan struct{})
	at := time.Now()
	for _, l := range []struct {
		after time.Duration
		line  string
	}{
		{0, "a"}, {0, "b"}, {0, "/quit"}, {time.Second, "c \\"}, {time.Second, "d"}, {time.Second, "/cost"}, {0, "e"}, {time.Second, "f"},
		{time.Second, "! echo g \\"}, {time.Second, "h"}, {time.Second, "i\\"}, {time.Second, "j"},
	} {
		at = at.Add(l.after)
		f.input <- typedLine{l.line + "\n", at}
	}
	for _, want := range []string{"a\nb\n/quit", "c \nd", "/cost", "e", "f", "! echo g \\\nh", "i\nj"} {
		if got, err := f.next(t.Context()); got != want || err != nil {
			t.Errorf("%q, %v, want %q", got, err, want)
		}
	}
}

// TestPlainLineGoesOn proves that a plain chat that waits for the line behind a backslash ends with its context,
// that what was typed until then begins the next prompt, and that the end of the input does not send it.
func TestPlainLineGoesOn(t *testing.T) {
	var shown strings.Builder
	f := newPlainFace(Streams{In: strings.NewReader(""), Err: &shown})
	f.start()
	<-f.over
	f.over = make(chan struct{})
	over, end := context.WithCancel(t.Context())
	end()
	f.input <- typedLine{"a \\\n", time.Now()}
	for f.ahead == nil {
		if got, err := f.next(over); got != "" || !errors.Is(err, context.Canceled) {
			t.Fatalf("%q, %v", got, err)
		}
	}
	f.input <- typedLine{"b\n", time.Now()}
	if got, err := f.next(t.Context()); got != "a \nb" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	f.input <- typedLine{"c \\\n", time.Now()}
	close(f.over)
	if got, err := f.next(t.Context()); got != "" || !errors.Is(err, io.EOF) || !strings.Contains(shown.String(), "not sent") {
		t.Errorf("%q, %v:\n%s", got, err, shown.String())
	}
}
