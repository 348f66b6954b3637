// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package completions_test

import (
	"errors"
	"io"
	"log"
	"os"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/antiphon-go/antiphon/agenttest"
	"github.com/antiphon-go/antiphon/endpoint"
)

type randomDice struct{ *rapid.T }

func (d randomDice) IntN(n int) int { return rapid.IntRange(0, n-1).Draw(d.T, "die") }

// altering are faults that make another stream, right in itself: chunks have no
// numbers that would tell.
var altering = []string{".Without(", ".Twice(", ".Move("}

// schedule is two random answers and a right one.
func schedule(rt *rapid.T, right agenttest.Reply) []agenttest.Reply {
	var list []agenttest.Reply
	for len(list) < 2 {
		a := agenttest.RandomAnswer(randomDice{rt}, right)
		if !altered(a) {
			list = append(list, a)
		}
	}
	return append(list, right)
}

func altered(a agenttest.Reply) bool {
	for _, word := range altering {
		if strings.Contains(a.String(), word) {
			return true
		}
	}
	return false
}

// S2, E1, E4: whatever a server does, a stream yields the whole reply, once, or
// a typed error, and no request is sent when output has come.
func TestStreamSurvivesFaults(t *testing.T) {
	log.SetOutput(io.Discard) // net/http tells of every byte that nobody asked for
	defer log.SetOutput(os.Stderr)
	right := reply("one ", "two ", "three")
	rapid.Check(t, func(rt *rapid.T) {
		answers := schedule(rt, right)
		srv := agenttest.NewServer(t, answers...)
		defer srv.Close()
		c := client(srv)
		c.IdleTimeout = 100 * time.Millisecond
		d := drain(t.Context(), t, c, hello())
		var e *endpoint.Error
		switch {
		case d.err == nil && (!d.whole || d.resp.Text() != "one two three" || d.text.String() != "one two three"):
			rt.Errorf("%q, %q taken as whole\n%v", d.text.String(), d.resp.Text(), answers)
		case d.err != nil && !errors.As(d.err, &e):
			rt.Errorf("an untyped error: %v\n%v", d.err, answers)
		case !strings.HasPrefix("one two three", d.text.String()):
			rt.Errorf("output twice: %q\n%v", d.text.String(), answers)
		}
	})
}
