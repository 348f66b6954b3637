// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"
)

// apart returns the command of a separate program that does a row's work. The
// program prints how many turns it ran and how much processor time they took.
type apart func(base string, turns int) (*exec.Cmd, error)

// work runs the program once.
func (a apart) work(path string, turns int) (int, time.Duration, error) {
	base, err := endpointURL()
	if err != nil {
		return 0, 0, err
	}
	cmd, err := a(base+path, turns)
	if err != nil {
		return 0, 0, err
	}
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return 0, 0, err
	}
	var said struct{ Turns, CPU int }
	if err := json.Unmarshal(out, &said); err != nil {
		return 0, 0, fmt.Errorf("%w: %s", err, out)
	}
	return said.Turns, time.Duration(said.CPU) * time.Microsecond, nil
}

// addApart adds a library that runs in a separate program.
func (r *row) addApart(name string, a apart, path string) {
	turns := r.units
	work := func() (int, time.Duration, error) { return a.work(path, turns) }
	r.libs = append(r.libs, lib{name, func() (int, error) { n, _, err := work(); return n, err }})
	if r.apart == nil {
		r.apart = make(map[string]func() (int, time.Duration, error))
	}
	r.apart[name] = work
}

// agentsJS returns the command for the Agents SDK for JavaScript.
func agentsJS(base string, turns int) (*exec.Cmd, error) {
	dir, err := installJS()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command("node", "loop.mjs", base, strconv.Itoa(turns))
	cmd.Dir = dir
	return cmd, nil
}

// errNoNode reports that the Agents SDK cannot be measured on this machine. If
// ANTIPHON_BENCH_NODE is set, that is a failure.
var errNoNode = errors.New("no Node.js with npm here: the Agents SDK for JavaScript is not measured")

// hasNode reports whether rows include the Agents SDK. It prints a message once if
// they do not.
var hasNode = sync.OnceValue(func() bool {
	_, node := exec.LookPath("node")
	_, npm := exec.LookPath("npm")
	if cmp.Or(node, npm) == nil || os.Getenv("ANTIPHON_BENCH_NODE") != "" {
		return true
	}
	fmt.Fprintln(os.Stderr, "bench:", errNoNode)
	return false
})

// installJS installs the packages of js/package-lock.json, unless that has been
// done.
var installJS = sync.OnceValues(func() (dir string, err error) {
	if !hasNode() {
		return "", errNoNode
	}
	dir = "js"
	lock, err := os.ReadFile(filepath.Join(dir, "package-lock.json"))
	if err != nil {
		return "", err
	}
	// The file has the lock file of the last installation, so that an update is
	// noticed.
	done := filepath.Join(dir, "node_modules", ".installed")
	if had, err := os.ReadFile(done); err == nil && string(had) == string(lock) {
		return dir, nil
	}
	cmd := exec.Command("npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts", "--loglevel", "error")
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, os.Stderr, os.Stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("npm ci in bench/js: %w", err)
	}
	return dir, os.WriteFile(done, lock, 0o644)
})

// versionJS returns the version of the Agents SDK.
func versionJS() string {
	var file struct{ Dependencies map[string]string }
	b, err := os.ReadFile(filepath.Join("js", "package.json"))
	if err != nil || json.Unmarshal(b, &file) != nil {
		return "of an unknown version"
	}
	return file.Dependencies["@openai/agents"]
}

// eino returns the command for eino, an agent framework in Go.
func eino(base string, turns int) (*exec.Cmd, error) {
	program, err := buildEino()
	if err != nil {
		return nil, err
	}
	return exec.Command(program, base, strconv.Itoa(turns)), nil
}

// buildEino builds the program for eino, at the first call.
var buildEino = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "antiphon-bench-")
	if err != nil {
		return "", err
	}
	program := filepath.Join(dir, "eino")
	if out, err := exec.Command("go", "build", "-o", program, "./eino").CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %s", err, strings.TrimSpace(string(out)))
	}
	return program, nil
})
