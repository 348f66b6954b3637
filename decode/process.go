// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package decode

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// A job is a request, and what its decoder may use.
type job struct {
	what string // the file, as an error calls it
	request
	limits
}

type limits struct {
	memory int64 // bytes
	cpu    int   // seconds of processor time
	time   time.Duration
	answer int // bytes of data
}

// slots limits how many decoders run at a time. Each may use much memory.
var slots = make(chan struct{}, max(2, runtime.NumCPU()))

// run has the file decoded in a process of its own, which has ended when run returns. An
// answer that is an error is one.
func (j *job) run(ctx context.Context) (answer, error) {
	select {
	case slots <- struct{}{}:
		defer func() { <-slots }()
	case <-ctx.Done():
		return answer{}, context.Cause(ctx)
	}
	a, problem := j.decode(ctx)
	switch {
	case problem != "" && ctx.Err() != nil:
		return answer{}, context.Cause(ctx)
	case problem != "":
		return answer{}, j.failed(problem)
	case a.kind == refused:
		return answer{}, errors.New(a.text)
	}
	return a, nil
}

func (j *job) failed(problem string) error { return fmt.Errorf("%s was not read: %s", j.what, problem) }

// decode returns the answer of a decoder, or says why there is none.
func (j *job) decode(ctx context.Context) (a answer, problem string) {
	const notStarted = "the process that decodes it did not start: "
	c, err := start(j.limits)
	if err != nil {
		return a, notStarted + err.Error()
	}
	var late atomic.Bool
	timer := time.AfterFunc(j.time, func() {
		late.Store(true)
		c.kill()
	})
	defer timer.Stop()
	defer context.AfterFunc(ctx, c.kill)()
	greeted, a, err := c.ask(j.request, j.answer)
	if err != nil {
		c.kill() // if it has not ended
	}
	e := c.wait()
	switch {
	case err == nil && e.code == 0:
		return a, ""
	case late.Load():
		return a, fmt.Sprintf("it was not decoded within %v", j.time)
	case errors.Is(err, errDamaged), errors.Is(err, errTooLong):
		return a, err.Error()
	case c.noisy.Load():
		return a, errTooLong.Error()
	case !greeted:
		return a, notStarted + e.how
	case e.code == exitMemory || e.outOfMemory():
		return a, fmt.Sprintf("to decode it takes more than %d MB of memory", j.memory>>20)
	case e.killed && e.cpu >= time.Duration(j.cpu)*time.Second/2: // the kernel's limit counts in whole ticks, which on a busy machine are more than was used
		return a, fmt.Sprintf("to decode it takes more than %d seconds of processor time", j.cpu)
	}
	return a, "its decoder crashed: " + e.how
}

// A child is a process that decodes.
type child struct {
	in, out, errs *os.File // our ends of its pipes
	kill          func()
	exited        func() end
	fed, drained  chan struct{} // closed when nothing is written to it, or read of its errors, any more
	said          []byte        // the beginning of what it wrote to its standard error
	noisy         atomic.Bool   // it wrote too much there
}

// An end says how a child has ended.
type end struct {
	code   int
	killed bool // by SIGKILL
	cpu    time.Duration
	how    string // in words
	said   string
}

// outOfMemory reports whether the runtime of Go ended the process because the system gave
// it no more memory.
func (e end) outOfMemory() bool {
	for _, text := range []string{"out of memory", "cannot allocate memory", "cannot map pages"} {
		if strings.HasPrefix(e.said, "fatal error: ") && strings.Contains(e.said, text) || strings.HasPrefix(e.said, "runtime: out of memory") {
			return true
		}
	}
	return false
}

// Limits of what a child may write to its standard error: how much is kept, and how much
// ends it.
const (
	keptErrors = 300
	mostErrors = 64 << 10
)

// start starts a child.
func start(l limits) (*child, error) {
	path, err := executable()
	if err != nil {
		return nil, err
	}
	c := &child{fed: make(chan struct{}), drained: make(chan struct{})}
	var theirs []*os.File
	pipe := func(ours **os.File, writes bool) *os.File {
		r, w, e := os.Pipe()
		if e != nil {
			err = errors.Join(err, e)
			return nil
		}
		if writes {
			r, w = w, r
		}
		*ours, theirs = r, append(theirs, w)
		return w
	}
	cmd := &exec.Cmd{
		Path: path, Args: []string{childName, childName, strconv.FormatInt(l.memory, 10), strconv.Itoa(l.cpu)},
		// Two processors: one decodes while the other collects garbage. The C library reserves
		// much memory for each thread otherwise.
		Env:   []string{"GOMAXPROCS=2", "GOTRACEBACK=none", "MALLOC_ARENA_MAX=1"},
		Stdin: pipe(&c.in, true), Stdout: pipe(&c.out, false), Stderr: pipe(&c.errs, false),
	}
	if err == nil {
		c.kill, c.exited, err = launch(cmd)
	}
	for _, f := range theirs {
		_ = f.Close()
	}
	if err != nil {
		c.close()
		return nil, err
	}
	return c, nil
}

func (c *child) close() {
	for _, f := range []*os.File{c.in, c.out, c.errs} {
		if f != nil {
			_ = f.Close()
		}
	}
}

// ask gives the child a request and reads its answer. Its standard input stays open: the
// child ends when it is closed, also because this process has ended.
func (c *child) ask(r request, most int) (greeted bool, a answer, err error) {
	go c.drain()
	var greeting [len(hello)]byte
	if _, err = io.ReadFull(c.out, greeting[:]); err == nil && string(greeting[:]) != hello {
		err = errDamaged
	}
	if err != nil {
		close(c.fed)
		return false, a, err
	}
	go func() {
		defer close(c.fed)
		_ = r.write(c.in) // if the child has ended, the missing answer says so
	}()
	a, err = readAnswer(c.out, most)
	return true, a, err
}

// drain reads what the child writes to its standard error.
func (c *child) drain() {
	defer close(c.drained)
	c.said, _ = io.ReadAll(io.LimitReader(c.errs, keptErrors))
	if n, _ := io.CopyN(io.Discard, c.errs, mostErrors); n == mostErrors {
		c.noisy.Store(true)
		c.kill()
		_, _ = io.Copy(io.Discard, c.errs)
	}
}

// wait waits until the child has ended.
func (c *child) wait() end {
	e := c.exited()
	<-c.fed
	<-c.drained
	c.close()
	e.said = string(c.said)
	if first, _, _ := strings.Cut(strings.TrimSpace(e.said), "\n"); first != "" {
		e.how += ": " + inOneLine(first)
	}
	return e
}

// launchPlain starts a program, and returns functions that end it and that wait for it.
// The thread that starts it waits, too: Linux ends a child with the thread that started
// it, if it is to end with its parent.
func launchPlain(cmd *exec.Cmd) (kill func(), exited func() end, err error) {
	started, done := make(chan error), make(chan struct{})
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer close(done)
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait() // its state says how it ended
		}
	}()
	if err := <-started; err != nil {
		return nil, nil, err
	}
	kill = func() { _ = cmd.Process.Kill() }
	exited = func() end {
		<-done
		s := cmd.ProcessState
		if s == nil {
			return end{code: -1, how: "it was not found any more"}
		}
		return end{code: s.ExitCode(), killed: wasKilled(s), cpu: s.UserTime() + s.SystemTime(), how: s.String()}
	}
	return kill, exited, nil
}
