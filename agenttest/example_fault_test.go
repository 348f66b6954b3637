// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agenttest_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/antiphon-go/antiphon/agenttest"
	"github.com/antiphon-go/antiphon/item"
)

// withoutPort prints with the URL of a loopback server taken out.
type withoutPort struct{ url string }

func (w withoutPort) Write(b []byte) (int, error) {
	_, err := os.Stdout.Write(bytes.ReplaceAll(b, []byte(w.url), []byte("http://host")))
	return len(b), err
}

// Faults add up; a storm ends with what follows it.
func ExampleReply() {
	reply := agenttest.Completed(item.Assistant("hello"))
	for _, a := range agenttest.Storm(2,
		agenttest.Failure(429, "rate_limit_exceeded", "slow down").RetryAfter("2"),
		reply.LineEnds("\r\n").WithComments().CutAfter(700),
		reply) {
		fmt.Println(a)
	}
	// Output:
	// Failure(429, rate_limit_exceeded).WithHeader(Retry-After, 2)
	// Failure(429, rate_limit_exceeded).WithHeader(Retry-After, 2)
	// Reply(1 items).LineEnds("\r\n").WithComments().CutAfter(700)
	// Reply(1 items)
}

// A property test of a program: whatever the server does, it does not do the
// work twice.
func ExampleSchedule() {
	_ = func(t *testing.T) {
		for seed := range uint64(100) {
			dice := rand.New(rand.NewPCG(seed, 0))
			srv := agenttest.NewServer(t, agenttest.Schedule(dice, 3, agenttest.Completed(item.Call("call_1", "pay", `{}`)))...)
			srv.Otherwise(func(int, agenttest.Request) agenttest.Reply { return agenttest.Completed(item.Assistant("paid")) })
			_ = srv.Client() // … run the program with it, and count the payments
			srv.Close()
		}
	}
}
