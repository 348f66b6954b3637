// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package mcpbridge

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// process is a server's program. Nothing here waits for it but end and Wait:
// what is written to it is queued, and what it writes is read all the time, so
// that a program that hangs holds nobody up.
type process struct {
	cmd    *exec.Cmd
	in     *queue
	out    *io.PipeReader // its messages
	stderr *tail
	exited chan struct{} // closed when it is gone and all it wrote is read

	mu    sync.Mutex
	fault error // why its output is not read any more, but for its end
	state string
	stray string // the first line of its output that was not a message
	lines int    // how many were not
}

// maxNotices bounds how many stray lines of one program are told.
const maxNotices = 5

// strayed counts a line of output that is not a message, and tells the first
// ones.
func (p *process) strayed(line string, tell func(line string)) {
	p.mu.Lock()
	p.lines++
	n := p.lines
	if n == 1 {
		p.stray = line
	}
	p.mu.Unlock()
	if n == maxNotices {
		line += " (further lines are skipped without a remark)"
	}
	if n <= maxNotices {
		tell(line)
	}
}

// strayLine returns the first line of output that was not a message, or "".
func (p *process) strayLine() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stray
}

// startProcess starts the server's program as the leader of a process group.
// changed is called when its list of tools has changed, stray for the first lines
// of its output that are not messages.
func startProcess(s *Server, lookup func(string) (string, bool), changed func(), stray func(line string)) (*process, error) {
	cmd := exec.Command(s.Command[0], s.Command[1:]...)
	cmd.Dir = s.Dir
	cmd.Env = s.environment(lookup)
	ownGroup(cmd)
	var pipes pipes
	defer pipes.closeTheirs()
	in, out, errs := pipes.write(&cmd.Stdin), pipes.read(&cmd.Stdout), pipes.read(&cmd.Stderr)
	if pipes.err != nil {
		pipes.closeOurs()
		return nil, pipes.err
	}
	if err := cmd.Start(); err != nil {
		pipes.closeOurs()
		return nil, err
	}
	p := &process{cmd: cmd, in: newQueue(in), stderr: new(tail), exited: make(chan struct{})}
	var readers sync.WaitGroup
	messages, feed := io.Pipe()
	p.out = messages
	fix := noticing(fixLines(func(line string) { p.strayed(line, stray) }), changed)
	readers.Go(func() { p.pump(newTapReader(out, s.MaxMessage, fix), out, feed) })
	readers.Go(func() { io.Copy(p.stderr, errs) })
	go p.reap(&readers, out, errs)
	return p, nil
}

// pump passes on what the program writes, until it is not a message any more; the
// rest is read and dropped, so that the program does not block.
func (p *process) pump(messages io.Reader, out io.Reader, feed *io.PipeWriter) {
	_, err := io.Copy(feed, messages)
	if err != nil && !errors.Is(err, io.ErrClosedPipe) && !errors.Is(err, os.ErrClosed) {
		p.mu.Lock()
		p.fault = err
		p.mu.Unlock()
	}
	feed.CloseWithError(err)
	io.Copy(io.Discard, out)
}

// drainTime is how long output is awaited after the program has ended, which
// something that it left behind may hold open.
const drainTime = time.Second

// reap waits for the program's end, ends what is left of its group and lets go
// of its pipes.
func (p *process) reap(readers *sync.WaitGroup, files ...*os.File) {
	err := p.cmd.Wait()
	killGroup(p.cmd.Process)
	p.mu.Lock()
	p.state = exitText(p.cmd.ProcessState, err)
	p.mu.Unlock()
	p.in.Close()
	drained := make(chan struct{})
	go func() { readers.Wait(); close(drained) }()
	timer := time.NewTimer(drainTime)
	defer timer.Stop()
	select {
	case <-drained:
	case <-timer.C:
	}
	for _, f := range files {
		f.Close()
	}
	<-drained
	close(p.exited)
}

func exitText(state *os.ProcessState, err error) string {
	if state != nil {
		return state.String()
	}
	return err.Error()
}

// Connect implements [mcp.Transport].
func (p *process) Connect(ctx context.Context) (mcp.Connection, error) {
	t := &mcp.IOTransport{Reader: p.out, Writer: p.in, MaxLineLength: -1} // the tap has the limit
	return t.Connect(ctx)
}

// end ends the program: its input is closed, after the grace it is asked to
// end, after another it and its group are ended. It returns when it is gone.
func (p *process) end(grace time.Duration) {
	p.in.Close()
	for _, signal := range []func(*os.Process){askToEnd, func(leader *os.Process) { killGroup(leader) }} {
		timer := time.NewTimer(grace)
		select {
		case <-p.exited:
			timer.Stop()
			return
		case <-timer.C:
			signal(p.cmd.Process)
		}
	}
	<-p.exited
}

// condition returns what is known of a program that stopped answering: how it
// ended, and why its output is not read any more.
func (p *process) condition() (state string, fault error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.state, p.fault
}

// pipes makes the pipes to a program and closes them.
type pipes struct {
	ours, theirs []*os.File
	err          error
}

func (p *pipes) make() (r, w *os.File) {
	r, w, err := os.Pipe()
	p.err = errors.Join(p.err, err)
	return r, w
}

func (p *pipes) write(to *io.Reader) *os.File {
	r, w := p.make()
	p.ours, p.theirs, *to = append(p.ours, w), append(p.theirs, r), r
	return w
}

func (p *pipes) read(from *io.Writer) *os.File {
	r, w := p.make()
	p.ours, p.theirs, *from = append(p.ours, r), append(p.theirs, w), w
	return r
}

func (p *pipes) closeOurs()   { closeAll(p.ours) }
func (p *pipes) closeTheirs() { closeAll(p.theirs) }

func closeAll(files []*os.File) {
	for _, f := range files {
		if f != nil {
			f.Close()
		}
	}
}

// tail keeps the end of what is written to it.
type tail struct {
	mu   sync.Mutex
	text []byte
}

// maxTail is how much of it is shown. More is kept, so that a secret is not cut
// before it can be recognised.
const (
	maxTail = 1500
	maxKept = maxTail + 8<<10
)

// Write implements [io.Writer].
func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, b...)
	if over := len(t.text) - maxKept; over > 0 {
		t.text = append(t.text[:0], t.text[over:]...)
	}
	return len(b), nil
}

// show returns the end of what was written, as clean makes it, from the
// beginning of a line if that is not far.
func (t *tail) show(clean func(string) string) string {
	t.mu.Lock()
	text := string(t.text)
	t.mu.Unlock()
	text = strings.TrimSpace(clean(text))
	if len(text) <= maxTail {
		return text
	}
	text = strings.ToValidUTF8(text[len(text)-maxTail:], "")
	if line, rest, ok := strings.Cut(text, "\n"); ok && len(line) < maxTail/2 {
		text = rest
	}
	return text
}

// queue writes behind the writer's back, since a pipe that nobody reads blocks.
type queue struct {
	out    *os.File
	mu     sync.Mutex
	ready  sync.Cond
	chunks [][]byte
	size   int
	closed bool
}

// maxQueued bounds what a server that does not read its input lets pile up.
const maxQueued = 256 << 20

func newQueue(out *os.File) *queue {
	q := &queue{out: out}
	q.ready.L = &q.mu
	go q.run()
	return q
}

// Write implements [io.Writer]. It does not keep b.
func (q *queue) Write(b []byte) (int, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case q.closed:
		return 0, os.ErrClosed
	case q.size+len(b) > maxQueued:
		return 0, fmt.Errorf("the server does not read its input: %d bytes wait", q.size)
	}
	q.chunks = append(q.chunks, bytes.Clone(b))
	q.size += len(b)
	q.ready.Signal()
	return len(b), nil
}

// Close implements [io.Closer]: the program sees the end of its input once it
// has read what is queued, or nothing more if it does not read.
func (q *queue) Close() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.closed {
		q.closed = true
		q.out.SetWriteDeadline(time.Now().Add(drainTime))
		q.ready.Signal()
	}
	return nil
}

func (q *queue) run() {
	defer q.out.Close()
	for {
		q.mu.Lock()
		for len(q.chunks) == 0 && !q.closed {
			q.ready.Wait()
		}
		if len(q.chunks) == 0 {
			q.mu.Unlock()
			return
		}
		chunk := q.chunks[0]
		q.chunks = q.chunks[1:]
		q.mu.Unlock()
		_, err := q.out.Write(chunk)
		q.mu.Lock()
		q.size -= len(chunk)
		if err != nil {
			q.closed, q.chunks = true, nil
		}
		q.mu.Unlock()
	}
}
