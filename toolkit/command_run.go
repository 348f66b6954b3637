// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package toolkit

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"time"

	"github.com/antiphon-go/antiphon/tool"
)

// process is one run of a program.
type process struct {
	path    string
	argv    []string
	dir     string
	env     []string
	timeout time.Duration
	keep    int
	most    int64
	memory  int64
	live    func(stderr bool, text []byte)
}

// Why a command was ended before it was done.
var (
	errCommandTime   = errors.New("its time was up")
	errCommandOutput = errors.New("it put out too much")
)

// How long is waited for output once the program itself has ended: for
// processes that it left behind to finish theirs, and for what is still in the
// pipes when these were ended.
const (
	lingerTime = 100 * time.Millisecond
	drainTime  = 200 * time.Millisecond
)

// run runs the program to its end, or ends it, and returns what a model reads of
// it.
func (p *process) run(ctx context.Context) (tool.Result, error) {
	e, err := p.exec(ctx)
	if e == nil {
		return tool.Result{}, err
	}
	text := report(e.stdout, e.stderr)
	if e.left {
		text = withLine(text, leftBehind)
	}
	return tool.Result{Text: text, Error: e.problem}, err
}

// leftBehind is said where a command did not end all that it started.
const leftBehind = "[processes that the command left in the background were ended]"

// ended is a program that is over.
type ended struct {
	stdout, stderr []byte
	left           bool   // processes were left in the background, and ended
	problem        string // why it was no success, or ""
	code           int    // its exit code, -1 if it was ended
	late           bool   // its time was up
}

// exec runs the program to its end, or ends it. What it put out is returned also
// beside an error, unless it could not be started.
func (p *process) exec(ctx context.Context) (*ended, error) {
	limited, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	limited, cancel := context.WithTimeoutCause(limited, p.timeout, errCommandTime)
	defer cancel()

	budget := outputBudget{left: p.most, stop: func() { stop(errCommandOutput) }}
	stdout := newCollector(p.keep, &budget, p.teller(false))
	stderr := newCollector(p.keep, &budget, p.teller(true))
	cmd, pipes, err := p.start(stdout, stderr)
	if err != nil {
		return nil, notFoundProgram(p.argv, err)
	}
	all := groupOf(cmd.Process)
	defer all.release()
	kill := context.AfterFunc(limited, func() { all.kill() })
	state, err := cmd.Process.Wait()
	killed := !kill() // before it was done
	drain := drainTime
	if ctx.Err() != nil {
		drain = tool.Grace / 2 // there is no more time to hand anything over
	}
	e := &ended{code: -1}
	e.left = pipes.finish(limited, all, drain)
	e.stdout, e.stderr = stdout.text(), stderr.text()
	switch cause := context.Cause(limited); {
	case err != nil:
		return e, fmt.Errorf("waiting for the command: %w", err)
	case killed && ctx.Err() != nil:
		return e, ctx.Err()
	case killed && errors.Is(cause, errCommandTime):
		e.late = true
		e.problem = fmt.Sprintf("the command was stopped after %v, its time limit, with all its processes", p.timeout)
	case killed && errors.Is(cause, errCommandOutput):
		e.problem = fmt.Sprintf("the command was stopped after it had put out %d bytes, the limit, with all its processes", p.most)
	case !state.Success():
		e.problem, e.code = p.failure(state), state.ExitCode()
	default:
		e.code = 0
	}
	return e, nil
}

// failure words how a program ended that did not succeed.
func (p *process) failure(state *os.ProcessState) string {
	if code := state.ExitCode(); code >= 0 {
		return fmt.Sprintf("the command failed with exit code %d", code)
	}
	text := fmt.Sprintf("the command was ended by the system (%v)", state)
	if p.memory > 0 {
		text += fmt.Sprintf("; its memory is limited to %d bytes", p.memory)
	}
	return text
}

// start starts the program with its own group and two pipes, each read by a
// goroutine so that the program never waits for a full one.
func (p *process) start(stdout, stderr *collector) (*exec.Cmd, *pipes, error) {
	cmd := &exec.Cmd{Path: p.path, Args: p.argv, Dir: p.dir, Env: p.env}
	ownGroup(cmd)
	ps := &pipes{done: make(chan struct{})}
	var writers []*os.File
	defer func() {
		for _, w := range writers {
			w.Close() // the program has its own
		}
	}()
	for _, to := range []struct {
		file *io.Writer
		c    *collector
	}{{&cmd.Stdout, stdout}, {&cmd.Stderr, stderr}} {
		r, w, err := os.Pipe()
		if err != nil {
			ps.close()
			return nil, nil, err
		}
		*to.file = w
		ps.readers, ps.to, writers = append(ps.readers, r), append(ps.to, to.c), append(writers, w)
	}
	if err := cmd.Start(); err != nil {
		ps.close()
		return nil, nil, err
	}
	ps.read()
	return cmd, ps, nil
}

// pipes are the reading ends of what a program writes to.
type pipes struct {
	readers []*os.File
	to      []*collector
	done    chan struct{} // closed when all are read to the end
}

func (ps *pipes) read() {
	var wg sync.WaitGroup
	for i, r := range ps.readers {
		wg.Go(func() { io.Copy(ps.to[i], onlyReader{r}) })
	}
	go func() { wg.Wait(); close(ps.done) }()
}

// onlyReader hides what a file can do beside reading, so that copying goes
// through a buffer.
type onlyReader struct{ io.Reader }

func (ps *pipes) close() {
	for _, r := range ps.readers {
		r.Close()
	}
}

// finish is called when the program has ended: it ends the rest of its group
// and reads what there is to read. What has left the group may still hold the
// pipes; it is not waited for. It reports whether there was a rest.
func (ps *pipes) finish(ctx context.Context, all *group, drain time.Duration) (left bool) {
	left = !ps.wait(ctx.Done(), lingerTime)
	if all.kill() {
		left = true
	}
	if ctx.Err() != nil {
		left = false // it is told otherwise that all were ended
	}
	ps.wait(nil, drain)
	ps.close()
	<-ps.done
	return left
}

// wait waits until all is read, and reports whether it is.
func (ps *pipes) wait(stop <-chan struct{}, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ps.done:
		return true
	case <-stop:
	case <-t.C:
	}
	return false
}

// teller returns what hands output on while the command runs. A panic of the
// one who is told ends the telling, not the program.
func (p *process) teller(stderr bool) func([]byte) {
	if p.live == nil {
		return nil
	}
	return func(text []byte) { p.live(stderr, text) }
}

// outputBudget is what both streams may put out together. Its lock also keeps
// the two from telling at the same time.
type outputBudget struct {
	mu   sync.Mutex
	left int64
	stop func()
	mute bool // the one who is told has panicked
}

// collector keeps the beginning and the end of what is written to it, takes all
// of it, and never fails.
type collector struct {
	budget *outputBudget
	tell   func([]byte)
	half   int
	head   []byte
	tail   []byte // a ring once it is full
	next   int    // where the ring goes on
	total  int64
}

func newCollector(keep int, budget *outputBudget, tell func([]byte)) *collector {
	return &collector{budget: budget, tell: tell, half: max(keep/2, 1)}
}

// Write implements [io.Writer].
func (c *collector) Write(b []byte) (int, error) {
	c.budget.mu.Lock()
	defer c.budget.mu.Unlock()
	c.total += int64(len(b))
	c.keep(b)
	if c.tell != nil && !c.budget.mute {
		c.told(b)
	}
	if c.budget.left -= int64(len(b)); c.budget.left < 0 && c.budget.stop != nil {
		c.budget.stop()
		c.budget.stop = nil
	}
	return len(b), nil
}

func (c *collector) told(b []byte) {
	defer func() {
		if recover() != nil {
			c.budget.mute = true
		}
	}()
	c.tell(b)
}

func (c *collector) keep(b []byte) {
	n := min(c.half-len(c.head), len(b))
	c.head = append(c.head, b[:n]...)
	b = b[n:]
	if len(b) > c.half {
		b = b[len(b)-c.half:]
	}
	n = min(c.half-len(c.tail), len(b))
	c.tail = append(c.tail, b[:n]...)
	for b = b[n:]; len(b) > 0; b = b[n:] {
		n = copy(c.tail[c.next:], b)
		c.next = (c.next + n) % c.half
	}
}

// text returns what was kept, whole runes only, and says between the two ends
// how much is gone.
func (c *collector) text() []byte {
	c.budget.mu.Lock()
	defer c.budget.mu.Unlock()
	tail := append(c.tail[c.next:len(c.tail):len(c.tail)], c.tail[:c.next]...)
	if c.total == int64(len(c.head)+len(tail)) {
		return append(c.head, tail...)
	}
	head := c.head[:len(c.head)-partialRune(c.head)]
	for n := 0; n < 3 && len(tail) > 0 && tail[0]&0xc0 == 0x80; n++ {
		tail = tail[1:]
	}
	gone := c.total - int64(len(head)+len(tail))
	return fmt.Appendf(nil, "%s\n[… %d bytes of %d left out here; they were not kept and cannot be read again. Send long output to a file, or ask for less …]\n%s", head, gone, c.total, tail)
}

func withLine(text, line string) string {
	if text != "" && text[len(text)-1] != '\n' {
		text += "\n"
	}
	return text + line
}
