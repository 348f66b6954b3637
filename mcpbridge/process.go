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

// A process is the program of a server. Only the methods end and Wait wait for the
// program: messages to it are queued and its output is read all the time, so that a
// program that hangs does not block its caller.
type process struct {
	run    *program
	in     *queue
	out    *io.PipeReader // messages from the program
	stderr *tail
	exited chan struct{} // closed when the program has exited and its output is read

	mu    sync.Mutex
	fault error // why its output is no longer read, other than its exit
	state string
	stray string // first line of output that was not a message
	lines int    // number of such lines
}

// maxNotices limits the stray lines of one program that are reported.
const maxNotices = 5

// strayed counts a line of output that is not a message, and reports the first
// few.
func (p *process) strayed(line string, tell func(EventKind, string)) {
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
		tell(Stray, line)
	}
}

// strayLine returns the first line of output that was not a message, or "".
func (p *process) strayLine() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stray
}

// startProcess starts the server's program in its sandbox. It calls changed when the
// program's list of tools has changed, and tell for the first lines of output that are not
// messages and for what the program planted.
func startProcess(s *Server, lookup func(string) (string, bool), changed func(), tell func(EventKind, string)) (*process, error) {
	if s.Unchanged != nil {
		if err := s.Unchanged(); err != nil {
			return nil, err
		}
	}
	cmd := exec.Command(s.Command[0], s.Command[1:]...) //nolint:noctx // the method end stops it and its group, in steps
	cmd.Dir = s.Dir
	cmd.Env = s.environment(lookup)
	run, err := s.confine(cmd)
	if err != nil {
		return nil, err
	}
	var pipes pipes
	defer pipes.closeTheirs()
	in, out, errs := pipes.write(&cmd.Stdin), pipes.read(&cmd.Stdout), pipes.read(&cmd.Stderr)
	if pipes.err != nil {
		pipes.closeOurs()
		run.Close()
		return nil, pipes.err
	}
	if err := run.Start(); err != nil {
		pipes.closeOurs()
		return nil, err
	}
	p := &process{run: run, in: newQueue(in), stderr: new(tail), exited: make(chan struct{})}
	var readers sync.WaitGroup
	messages, feed := io.Pipe()
	p.out = messages
	fix := noticing(paced(newMeter(), inLine, fixLines(tapper{s.takes}, func(line string) { p.strayed(line, tell) })), changed)
	readers.Go(func() { p.pump(newTapReader(out, s.MaxMessage, fix), out, feed) })
	readers.Go(func() { _, _ = io.Copy(p.stderr, errs) })
	go p.reap(&readers, tell, out, errs)
	return p, nil
}

// pump passes on the output of the program until it is no longer a message. It
// reads the rest and drops it, so that the program does not block.
func (p *process) pump(messages io.Reader, out io.Reader, feed *io.PipeWriter) {
	_, err := io.Copy(feed, messages)
	if err != nil && !errors.Is(err, io.ErrClosedPipe) && !errors.Is(err, os.ErrClosed) {
		p.mu.Lock()
		p.fault = err
		p.mu.Unlock()
	}
	feed.CloseWithError(err)
	_, _ = io.Copy(io.Discard, out)
}

// drainTime limits the wait for output after the program has exited. A process it
// left behind may keep the pipes open.
const drainTime = time.Second

// mostPlanted is how many of the files that a program made for other programs are named.
const mostPlanted = 5

// reap waits until the program exits, kills the rest of its group, tells what it planted and
// releases its pipes.
func (p *process) reap(readers *sync.WaitGroup, tell func(EventKind, string), files ...*os.File) {
	state := p.run.Wait()
	p.mu.Lock()
	p.state = state
	p.mu.Unlock()
	_ = p.in.Close()
	if list := p.run.Planted(); len(list) > 0 {
		if n := len(list) - mostPlanted; n > 0 {
			list = append(list[:mostPlanted], fmt.Sprintf("and %d more", n))
		}
		tell(Planted, strings.Join(list, "; "))
	}
	drained := make(chan struct{})
	go func() { readers.Wait(); close(drained) }()
	timer := time.NewTimer(drainTime)
	defer timer.Stop()
	select {
	case <-drained:
	case <-timer.C:
	}
	for _, f := range files {
		_ = f.Close()
	}
	<-drained
	close(p.exited)
}

// Connect implements [mcp.Transport].
func (p *process) Connect(ctx context.Context) (mcp.Connection, error) {
	t := &mcp.IOTransport{Reader: p.out, Writer: p.in, MaxLineLength: -1} // the tap has the limit
	return t.Connect(ctx)
}

// end ends the program and returns when it has exited. It closes the program's
// input; after the grace period it asks the program to end, and after another one
// it kills the program and its group.
func (p *process) end(grace time.Duration) {
	_ = p.in.Close()
	for _, end := range []func(){p.run.AskToEnd, p.run.Stop} {
		timer := time.NewTimer(grace)
		select {
		case <-p.exited:
			timer.Stop()
			return
		case <-timer.C:
			end()
		}
	}
	<-p.exited
}

// condition returns what is known about a program that stopped answering: how it
// exited, and why its output is no longer read.
func (p *process) condition() (state string, fault error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.state, p.fault
}

// pipes creates and closes the pipes to a program.
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
			_ = f.Close()
		}
	}
}

// A tail keeps the end of what is written to it.
type tail struct {
	mu   sync.Mutex
	text []byte
}

// maxTail is the number of bytes that are shown. More are kept, because a secret
// that is cut could not be recognized.
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

// all returns what is kept.
func (t *tail) all() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.text)
}

// show returns the end of the text after clean has been applied. It begins at the
// start of a line if that is near.
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

// A queue writes in the background, because a write to a pipe that is not read
// would block.
type queue struct {
	out    *os.File
	mu     sync.Mutex
	ready  sync.Cond
	chunks [][]byte
	size   int
	closed bool
}

// errNotSent means that a message was not queued, because the program takes none any more.
var errNotSent = errors.New("the input of the program is closed")

// maxQueued limits the bytes that wait for a server that does not read its input.
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
		return 0, errNotSent
	case q.size+len(b) > maxQueued:
		return 0, fmt.Errorf("the server does not read its input: %d bytes wait", q.size)
	}
	q.chunks = append(q.chunks, bytes.Clone(b))
	q.size += len(b)
	q.ready.Signal()
	return len(b), nil
}

// Close implements [io.Closer]. The program sees the end of its input when it has
// read what is queued. If it does not read, the rest is dropped.
func (q *queue) Close() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.closed {
		q.closed = true
		_ = q.out.SetWriteDeadline(time.Now().Add(drainTime))
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
