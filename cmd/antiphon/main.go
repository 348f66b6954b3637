// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

// Command antiphon runs agents that are kept as ChatMarkdown files.
//
//	antiphon run FILE [PROMPT]   run an agent
//	antiphon check FILE...       report all problems of files
//	antiphon fmt FILE...         give files one layout
//	antiphon convert [FILE]      convert a conversation between forms
//	antiphon sessions ...        list, show, fork, export, import and delete sessions
//	antiphon doctor [FILE]       look at the configuration, and try the endpoint
//	antiphon version             print the version
//
// It parses flags and prints; what runs is package host.
// This package is the only one that reads the environment.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	// A reader that goes away, as head does, is an error of the write: the run
	// can then be put in order. It would end the program otherwise.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	ctx, end := context.WithCancel(context.Background())
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	// A terminal that is closed ends the run in order, too, and the tools with it.
	// Shells and systems may say so twice, and nohup says that nobody wants to know.
	hangup := make(chan os.Signal, 1)
	if !signal.Ignored(syscall.SIGHUP) {
		signal.Notify(hangup, syscall.SIGHUP)
	}
	go func() {
		select {
		case <-hangup:
			end()
		case <-ctx.Done():
		}
		stop() // a second signal ends the program at once
	}()
	os.Exit(run(ctx, os.Args[1:], os.Environ(), stdio{os.Stdin, os.Stdout, os.Stderr}))
}
