// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/internal/show"
	"github.com/antiphon-go/antiphon/trust"
)

// waiting lists the calls that wait for an approval.
func waiting(std stdio, wanted []agent.PendingApproval) error {
	for _, p := range wanted {
		fmt.Fprintf(std.err, "?? %s %s (call %s)\n", show.Shorten(p.Tool, 100), show.Shorten(p.Arguments, 1000), show.Shorten(p.CallID, 100))
		if p.Of != "" {
			fmt.Fprintf(std.err, "   a tool of %s\n", show.Shorten(show.Visible(p.Of), 1000))
		}
		if p.Command != nil {
			fmt.Fprintf(std.err, "   runs: %s\n", show.Shorten(show.Visible(trust.CommandLine(p.Command...)), 1000))
		}
		if p.Sandbox != "" {
			fmt.Fprintf(std.err, "   %s\n", show.InSandbox(p.Sandbox))
		}
	}
	wait := "wait"
	if len(wanted) == 1 {
		wait = "waits"
	}
	return &exitError{exitNeedsAllow, fmt.Errorf("%s %s for an approval: answer by antiphon sessions approve, if it is a session, or write the answers into a file, and run it again with --approve-from FILE", show.Plural(len(wanted), "call"), wait)}
}
