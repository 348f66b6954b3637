// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/antiphon-go/antiphon/host"
	"github.com/antiphon-go/antiphon/worker"
)

// agentsPoll is how often a worker or a server looks whether its agents have changed. They are read
// when two looks have found the same, so that a file is not read while it is written.
const agentsPoll = time.Second

// watchAgents calls takeUp when the state of agents is not the one that was taken, until end is called. The
// first state that was taken is one from before they were read.
func watchAgents(ctx context.Context, taken string, state func() string, takeUp func(context.Context)) (end func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		look := time.NewTicker(agentsPoll)
		defer look.Stop()
		for last := taken; ; {
			select {
			case <-ctx.Done():
				return
			case <-look.C:
			}
			before := last
			if last = state(); last != taken && last == before {
				taken = last
				takeUp(ctx)
			}
		}
	}()
	return func() {
		cancel()
		<-done
	}
}

// stateOfAgents describes what agents are made from: the agreements, the agents' files of the folders, and at most
// this many other files and folders below each. What cannot be read has changed when it can be.
func stateOfAgents(env environment, most int, folders ...string) string {
	var b strings.Builder
	note := func(path string) {
		if info, err := os.Stat(path); err == nil {
			fmt.Fprintf(&b, "%q %d %d\n", path, info.Size(), info.ModTime().UnixNano())
		}
	}
	if agreed, err := trustStore(env); err == nil {
		note(agreed.Path())
	}
	for _, folder := range folders {
		files, _ := filesOfFolder(folder)
		for _, file := range files {
			note(file)
		}
		seen := 0
		_ = filepath.WalkDir(folder, func(path string, _ fs.DirEntry, err error) error {
			if seen++; seen > most {
				return fs.SkipAll
			}
			if err == nil {
				note(path)
			}
			return nil
		})
	}
	return b.String()
}

// takeUp adds the agents of the folder as they are now. Nobody is asked, and --trust does not agree to
// what was not there when the worker started.
func (c *workStartCommand) takeUp(ctx context.Context, std stdio, env environment, agents *worker.Agents, cfg host.Config, log *slog.Logger) {
	files, err := c.files()
	if err != nil {
		return // the pattern was right when the worker started
	}
	known, err := agents.Hashes()
	if err != nil {
		log.Error("agents were not read", "error", env.Hide(err.Error()))
		return
	}
	flags := c.trustFlags
	flags.Trust = false
	for _, file := range files {
		var added worker.Agent
		t, err := newTruster(file, &flags, std, env, nil)
		if err == nil {
			added, err = addAgent(ctx, agents, t, cfg, file)
		}
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			log.Warn("agent not taken up", "file", file, "reason", notRun(env, file, err))
		case !slices.Contains(known, added.Hash):
			log.Info("agent taken up", "file", file, "agent", added.Hash[:12])
		}
	}
}
