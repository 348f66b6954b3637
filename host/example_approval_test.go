// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package host_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/host"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/session/store"
)

// A call waits for a person: the run stops, and what waits is plain data. The answer
// goes into the session, days later and in another process if need be, and the next
// run goes on.
func Example_approval() {
	dir, err := os.MkdirTemp("", "host")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "agent.md")
	text := "<config model=\"rehearsal\"/>\n<tool name=\"read_file\"><read id=\"here\" path=\"${prompt_dir}\"/></tool>\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	sessions, err := store.Open(ctx, filepath.Join(dir, "sessions.db"), store.Options{Create: true})
	if err != nil {
		log.Fatal(err)
	}
	defer sessions.Close()
	cfg := host.Config{
		File: file, Store: sessions, Session: "ann", Pause: true,
		Rules: []session.Rule{{Verdict: session.Ask, Tool: "*"}},
	}

	h, err := host.Open(ctx, cfg)
	if err != nil {
		log.Fatal(err)
	}
	res, err := h.Run(ctx, "What is here?")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(res.Why, res.Pending[0].Tool)
	h.Close()

	if h, err = host.Open(ctx, cfg); err != nil {
		log.Fatal(err)
	}
	defer h.Close()
	wanted, err := agent.PendingApprovals(ctx, h.Session)
	if err != nil {
		log.Fatal(err)
	}
	yes := agent.Decision{Session: wanted[0].Session, Number: wanted[0].Number, CallID: wanted[0].CallID, Allow: true, By: "ann"}
	if err := agent.Decide(ctx, h.Session, yes); err != nil {
		log.Fatal(err)
	}
	if res, err = h.Run(ctx, ""); err != nil {
		log.Fatal(err)
	}
	fmt.Println(res.Why, res.Calls, "call")
	// Output:
	// approval_wanted read_file
	// answered 1 call
}
