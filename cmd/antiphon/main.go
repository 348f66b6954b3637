// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

// Command antiphon runs agents that are stored as ChatMarkdown files.
//
//	antiphon ask QUESTION        ask the built-in assistant; antiphon "QUESTION" is the same
//	antiphon run FILE [PROMPT]   run an agent
//	antiphon init [FILE]         write a first agent
//	antiphon config              print the settings for all agents
//	antiphon chat [FILE]         hold a conversation at the terminal
//	antiphon serve FILE...       serve agents over the Responses API
//	antiphon mcp FILE...         serve agents as tools of an MCP server
//	antiphon keys ...            create, list and revoke the keys of a server's clients
//	antiphon usage               show what the clients of a server have used
//	antiphon check FILE...       report all problems of files
//	antiphon fmt FILE...         format files
//	antiphon convert [FILE]      convert a conversation to another format
//	antiphon sessions ...        list, show, fork, export, import and delete sessions
//	antiphon work --agents DIR   run the sessions that have something to do
//	antiphon trust FILE          agree to what a file may do
//	antiphon audit show          show who agreed to what, and what was started
//	antiphon doctor [FILE]       check the configuration and the endpoint
//	antiphon models              list the models of the endpoint
//	antiphon login NAME          keep the key of an endpoint
//	antiphon logout NAME         forget it
//	antiphon completion SHELL    print a script that completes commands in a shell
//	antiphon man [COMMAND]       print a manual page
//	antiphon version             print the version
//
// It parses flags and prints; package host does the work. This package reads the
// environment; docs/architecture.md names the few others that do.
package main

import (
	"context"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"
	_ "time/tzdata" // zones of schedules, where the system has no files of them

	"github.com/antiphon-go/antiphon/internal/tui"
	"github.com/antiphon-go/antiphon/sandbox"
)

func main() {
	// Before a key is read: no program that this one starts can read it from here. What
	// cannot be done is said by antiphon doctor. A10
	_ = sandbox.Hide()
	// If the reader of standard output disconnects, as head does, the write fails and
	// the run can end in order. Without this the signal would kill the program.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	ctx, end := context.WithCancel(context.Background())
	ends := make(chan os.Signal, 1)
	signal.Notify(ends, os.Interrupt, syscall.SIGTERM)
	// A hangup of the terminal also ends the run and its tools in order. Shells and
	// systems may send it twice, and with nohup it is ignored.
	hangup := make(chan os.Signal, 1)
	if !signal.Ignored(syscall.SIGHUP) {
		signal.Notify(hangup, syscall.SIGHUP)
	}
	drop := make(chan chan struct{})
	dropped := func() {
		done := make(chan struct{})
		select {
		case drop <- done:
			<-done
		case <-ctx.Done():
		}
	}
	tui.DropInterrupts.Store(&dropped)
	go func() {
		obey(ends, hangup, drop)
		end()
		signal.Stop(ends) // a second signal ends the program at once
	}()
	os.Exit(run(ctx, os.Args[1:], os.Environ(), stdio{os.Stdin, os.Stdout, os.Stderr}))
}

// hungUp is called instead of ending the program when the terminal is gone, if it is set.
var hungUp atomic.Pointer[func()]

// sameHangup is how long a hangup counts as the same one: shells and systems send it again. One that comes later ends
// the program.
const sameHangup = 2 * time.Second

// obey returns when a signal ends the program. A request of drop is closed when all interrupts that have come are judged.
func obey(ends, hangup <-chan os.Signal, drop <-chan chan struct{}) {
	stops := func(sig os.Signal) bool {
		return sig != os.Interrupt || !tui.Editing() // which the person's editor gets, too
	}
	var told time.Time // that the terminal is gone
	for {
		select {
		case <-hangup:
			lost := hungUp.Load()
			if lost == nil || !told.IsZero() && time.Since(told) > sameHangup {
				return
			}
			if told.IsZero() {
				told = time.Now()
				go (*lost)() // a chat leaves its work to workers, or ends
			}
		case sig := <-ends:
			if stops(sig) {
				return
			}
		case done := <-drop:
			select {
			case sig := <-ends:
				if stops(sig) {
					close(done)
					return
				}
			default:
			}
			close(done)
		}
	}
}
