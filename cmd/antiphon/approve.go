// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/tool"
)

// asker asks the person at the terminal about calls.
type asker struct {
	err    io.Writer
	lines  chan string
	always map[string]bool
}

func newAsker(std stdio) *asker {
	a := &asker{err: std.err, lines: make(chan string), always: map[string]bool{}}
	go func() {
		defer close(a.lines)
		for in := bufio.NewReader(std.in); ; {
			line, err := in.ReadString('\n')
			if err != nil {
				return
			}
			a.lines <- strings.ToLower(strings.TrimSpace(line))
		}
	}()
	return a
}

// ask is an [agent.Approver]. End of input means no.
func (a *asker) ask(ctx context.Context, call tool.Call, _ tool.Traits) (agent.Verdict, error) {
	if a.always[call.Name] {
		return agent.Verdict{Allowed: true}, nil
	}
	for {
		fmt.Fprintf(a.err, "?? %s %s\n   run it? [y]es, [n]o, [a]lways for this tool: ", call.Name, shorten(call.Arguments, 1000))
		select {
		case <-ctx.Done():
			fmt.Fprintln(a.err)
			return agent.Verdict{}, ctx.Err()
		case line, ok := <-a.lines:
			switch {
			case !ok, line == "n", line == "no":
				return agent.Verdict{}, nil
			case line == "a", line == "always":
				a.always[call.Name] = true
				return agent.Verdict{Allowed: true}, nil
			case line == "y", line == "yes":
				return agent.Verdict{Allowed: true}, nil
			}
		}
	}
}
