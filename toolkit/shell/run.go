// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package shell

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/antiphon-go/antiphon/internal/spool"
	"github.com/antiphon-go/antiphon/internal/variables"
	"github.com/antiphon-go/antiphon/sandbox"
	"github.com/antiphon-go/antiphon/tool"
	"github.com/antiphon-go/antiphon/toolkit/internal/wording"
)

// setAlways tells programs that there is no user at a terminal.
var setAlways = []string{"TERM=dumb", "NO_COLOR=1", "PAGER=cat", "GIT_PAGER=cat", "GIT_TERMINAL_PROMPT=0"}

// commandEnv returns the environment of commands.
func commandEnv(more []string) ([]string, error) {
	env := append(variables.Take(os.LookupEnv), setAlways...)
	for _, v := range more {
		name, _, set := strings.Cut(v, "=")
		switch {
		case name == "" || strings.ContainsRune(v, 0):
			return nil, fmt.Errorf("shell: %q is not an environment variable", v)
		case set:
			env = append(env, v)
		case variables.Secret(name, ""):
			return nil, fmt.Errorf("shell: the variable %s looks like a secret, which commands do not get", name)
		default:
			if value, ok := os.LookupEnv(name); ok {
				env = append(env, name+"="+value)
			}
		}
	}
	return env, nil
}

// absolutePath removes relative directories from PATH and returns the others.
// Otherwise a program could be found in whatever directory is the current one.
func absolutePath(env []string) (_, dirs []string) {
	for i, v := range env {
		if name, list, _ := strings.Cut(v, "="); strings.EqualFold(name, "PATH") {
			dirs = slices.DeleteFunc(filepath.SplitList(list), func(dir string) bool { return !filepath.IsAbs(dir) })
			env[i] = name + "=" + strings.Join(dirs, string(filepath.ListSeparator))
		}
	}
	return env, dirs
}

// programs finds programs in the same way as a command does.
type programs struct {
	dir      string   // the working directory
	dirs     []string // the directories in PATH
	writable []string // the roots, which tools can write to
	first    bool     // the working directory is the first root
}

var errNoProgram = errors.New("no such program in the directories of PATH")

// find returns the absolute path of a program: from PATH if the name has no
// slash, otherwise relative to the working directory.
func (p *programs) find(name string) (string, error) {
	if strings.ContainsRune(filepath.ToSlash(name), '/') || filepath.VolumeName(name) != "" {
		if !filepath.IsAbs(name) {
			name = filepath.Join(p.dir, name)
		}
		return exec.LookPath(name)
	}
	if name == "." || name == ".." {
		return "", errNoProgram
	}
	for _, dir := range p.dirs {
		if path, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
			return path, nil
		}
	}
	return "", errNoProgram
}

// trusted reports whether a program lies outside the directories in which the
// tools of this package could place a program.
func (p *programs) trusted(path string) bool {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return false
	}
	for _, dir := range p.writable {
		for _, path := range []string{path, real} {
			if rel, err := filepath.Rel(dir, path); err == nil && filepath.IsLocal(rel) {
				return false
			}
		}
	}
	return true
}

// baseName returns the name of a program without its directory and, on Windows,
// without its extension.
func baseName(name string) string {
	name = filepath.Base(filepath.FromSlash(name))
	if runtime.GOOS == "windows" {
		name = strings.ToLower(name)
		for _, ext := range []string{".exe", ".com", ".bat", ".cmd"} {
			name = strings.TrimSuffix(name, ext)
		}
	}
	return name
}

// identify returns the name by which an Allow rule may refer to a program, or ""
// if the program is not what its name says, and all names by which a Deny or Ask
// rule may refer to it.
func (p *programs) identify(name string) (sure string, all []string) {
	base := baseName(name)
	all = []string{name, base}
	path, err := p.find(name)
	if err != nil {
		return "", all
	}
	all = append(all, path)
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return "", all
	}
	all = append(all, baseName(real), real)
	usual, err := p.find(base)
	if err != nil || !p.trusted(path) {
		return "", all
	}
	if usual, err = filepath.EvalSymlinks(usual); err != nil || usual != real {
		return "", all
	}
	return base, all
}

// A process is one run of a program.
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
	profile sandbox.Profile
	asked   []string // the hosts that the call asks for
	roots   []string
	fixed   bool // the model cannot ask for a wider profile
	notYet  time.Duration
}

// ExitNotYet is the exit code by which a command says that its result is not there yet, if
// [Options].NotYet allows it: EX_TEMPFAIL of sysexits.h.
const ExitNotYet = 75

// The reasons why a command is stopped.
var (
	errCommandTime   = errors.New("its time was up")
	errCommandOutput = errors.New("it put out too much")
)

// drainTime is how long to wait for what is still in the pipes after the program and
// its processes have ended.
const drainTime = 200 * time.Millisecond

// run runs the program until it exits or is stopped, and returns the result for
// the model.
func (p *process) run(ctx context.Context) (tool.Result, error) {
	e, err := p.exec(ctx)
	if e == nil {
		return tool.Result{}, err
	}
	if p.notYet > 0 && e.code == ExitNotYet && err == nil {
		return tool.Result{}, &tool.NotYet{After: p.notYet, Reason: firstLine(e.stdout)}
	}
	var r report
	r.add(e)
	res := r.result()
	res.Error = e.problem
	return res, err
}

// firstLine returns the beginning of an output, for people.
func firstLine(s *spool.Spool) string {
	var text [200]byte
	n, _ := s.ReadAt(text[:], 0) // it is only a remark
	line, _, _ := strings.Cut(strings.TrimSpace(string(text[:n])), "\n")
	return strings.ToValidUTF8(strings.TrimSpace(line), "")
}

// leftBehind is the note about processes that a command left running.
const leftBehind = "[processes that the command left in the background were ended]"

// ended is the result of a program.
type ended struct {
	stdout, stderr *spool.Spool
	left           bool   // background processes were left and killed
	problem        string // why the program failed, or ""
	lacked         string // what the sandbox refused to it, in brackets, or ""
	planted        string // what it made that other programs obey, in brackets, or ""
	code           int    // exit code, -1 if it was killed
	late           bool   // its time limit was exceeded
}

// notes returns what is to be said after the output.
func (e *ended) notes() (list []string) {
	if e.left {
		list = append(list, leftBehind)
	}
	if e.lacked != "" {
		list = append(list, e.lacked)
	}
	if e.planted != "" {
		list = append(list, e.planted)
	}
	return list
}

// exec runs the program until it exits or is stopped. It returns the output even
// with an error, unless the program could not be started.
func (p *process) exec(ctx context.Context) (*ended, error) {
	limited, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	limited, cancel := context.WithTimeoutCause(limited, p.timeout, errCommandTime)
	defer cancel()

	budget := outputBudget{left: p.most, stop: func() { stop(errCommandOutput) }}
	stdout := newCollector(p.keep, &budget, p.teller(false))
	stderr := newCollector(p.keep, &budget, p.teller(true))
	run, pipes, err := p.start(limited, stdout, stderr)
	if err != nil && limited.Err() == nil {
		return nil, p.notStarted(err)
	}
	var end sandbox.Exit
	if err == nil {
		end, err = run.Wait()
	}
	drain := drainTime
	if ctx.Err() != nil {
		drain = tool.Grace / 2 // there is no time left to pass output on
	}
	if pipes != nil {
		pipes.finish(drain)
	}
	e := &ended{code: -1, stdout: stdout.seal(), stderr: stderr.seal()}
	if run != nil {
		e.planted = planted(run.Planted())
	}
	cause := context.Cause(limited)
	killed := cause != nil && errors.Is(err, limited.Err()) // the program had not exited yet
	var failed *sandbox.SetupError
	switch {
	case errors.As(err, &failed):
		return nil, p.notStarted(err)
	case killed && ctx.Err() != nil:
		return e, ctx.Err()
	case killed && errors.Is(cause, errCommandTime):
		e.late = true
		e.problem = fmt.Sprintf("the command was stopped after %v, its time limit, with all its processes", p.timeout)
	case killed && errors.Is(cause, errCommandOutput):
		e.problem = fmt.Sprintf("the command was stopped after it had put out %d bytes, the limit, with all its processes", p.most)
	case err != nil:
		return e, fmt.Errorf("waiting for the command: %w", err)
	default:
		e.code, e.left = end.Code, end.Rest
		var first string
		first, e.lacked = p.lacked(run, end, e.stdout, e.stderr)
		if end.Code != 0 {
			e.problem = p.failure(end)
			if first != "" {
				e.problem += "; " + first
			}
		}
	}
	return e, nil
}

// failure describes the end of a program that did not succeed.
func (p *process) failure(end sandbox.Exit) string {
	if end.Code >= 0 {
		return fmt.Sprintf("the command failed with exit code %d", end.Code)
	}
	text := fmt.Sprintf("the command was ended by the system (signal: %v)", end.Signal)
	if p.memory > 0 {
		text += fmt.Sprintf("; its memory is limited to %d bytes", p.memory)
	}
	return text
}

// notStarted is the error of a program that could not be started.
func (p *process) notStarted(err error) error {
	var failed *sandbox.SetupError
	switch {
	case !errors.As(err, &failed) && p.profile.Unconfined:
		return notFoundProgram(p.argv, err)
	case failed == nil:
		return fmt.Errorf("cannot run %s: %w", wording.Clip(p.argv[0]), err)
	}
	err = fmt.Errorf("cannot run %s: %s", wording.Clip(p.argv[0]), failed.Problem)
	if !p.profile.Unconfined {
		err = fmt.Errorf("%w; %s", err, p.howToAsk(sandbox.NameFull, nil))
	}
	return err
}

// start starts the program with two pipes. A goroutine reads each pipe, so that the
// program never blocks on a full one.
func (p *process) start(ctx context.Context, stdout, stderr *collector) (*sandbox.Run, *pipes, error) {
	cmd := &exec.Cmd{Path: p.path, Args: p.argv, Dir: p.dir, Env: p.env}
	ps := &pipes{done: make(chan struct{})}
	var writers []*os.File
	defer func() {
		for _, w := range writers {
			_ = w.Close() // the program has its own copy
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
	run, err := sandbox.Command(ctx, p.profile, cmd)
	if err == nil {
		err = run.Start()
	}
	if err != nil {
		ps.close()
		return nil, nil, err
	}
	ps.read()
	return run, ps, nil
}

// pipes holds the reading ends of the pipes of a program.
type pipes struct {
	readers []*os.File
	to      []*collector
	done    chan struct{} // closed when all pipes are read to the end
}

func (ps *pipes) read() {
	var wg sync.WaitGroup
	for i, r := range ps.readers {
		wg.Go(func() { _, _ = io.Copy(ps.to[i], onlyReader{r}) })
	}
	go func() { wg.Wait(); close(ps.done) }()
}

// onlyReader hides the other methods of a file, so that io.Copy uses a buffer.
type onlyReader struct{ io.Reader }

func (ps *pipes) close() {
	for _, r := range ps.readers {
		_ = r.Close()
	}
}

// finish is called after the program and its processes have ended. It reads the
// remaining output. A process that could not be ended may still hold the pipes; finish
// does not wait for it.
func (ps *pipes) finish(drain time.Duration) {
	t := time.NewTimer(drain)
	defer t.Stop()
	select {
	case <-ps.done:
	case <-t.C:
	}
	ps.close()
	<-ps.done
}

// teller returns the function that passes output on while the command runs. If
// the receiver panics, it gets no more output, and the program continues.
func (p *process) teller(stderr bool) func([]byte) {
	if p.live == nil {
		return nil
	}
	return func(text []byte) { p.live(stderr, text) }
}

// outputBudget is the number of bytes that both streams may write together. Its
// lock also keeps them from calling the receiver at the same time.
type outputBudget struct {
	mu   sync.Mutex
	left int64
	stop func()
	mute bool // the receiver has panicked
}

// A collector stores everything that is written to it. It never fails.
type collector struct {
	budget *outputBudget
	tell   func([]byte)
	all    *spool.Spool
}

func newCollector(keep int, budget *outputBudget, tell func([]byte)) *collector {
	return &collector{budget: budget, tell: tell, all: spool.New(keep)}
}

// Write implements [io.Writer].
func (c *collector) Write(b []byte) (int, error) {
	c.budget.mu.Lock()
	defer c.budget.mu.Unlock()
	_, _ = c.all.Write(b) // never fails
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

// seal returns the collected output. If some of it was lost for lack of space, a
// note between the two ends says how much.
func (c *collector) seal() *spool.Spool {
	c.budget.mu.Lock()
	defer c.budget.mu.Unlock()
	mark := ""
	if lost, err := c.all.Lost(); lost > 0 {
		mark = fmt.Sprintf("\n[%d bytes of %d are lost here and cannot be read again: there was no room for them (%v)]\n", lost, c.all.Total(), err)
	}
	c.all.Seal(mark, "")
	return c.all
}

// A report is the text about commands that a model reads.
type report struct {
	parts []io.Reader
	last  byte
	long  bool // longer than should be held in memory
}

func (r *report) say(text string) {
	if text != "" {
		r.parts, r.last = append(r.parts, strings.NewReader(text)), text[len(text)-1]
	}
}

// line adds text on a new line.
func (r *report) line(text string) {
	if len(r.parts) > 0 && r.last != '\n' {
		text = "\n" + text
	}
	r.say(text)
}

func (r *report) stream(s *spool.Spool) {
	var last [1]byte
	if n := s.Size(); n > 0 {
		_, _ = s.ReadAt(last[:], n-1) // an error shows up again when the stream is read
		r.parts, r.last, r.long = append(r.parts, s.Reader()), last[0], r.long || !s.InMemory()
	}
}

// add adds the output of a command, and notes about lost output and killed
// processes.
func (r *report) add(e *ended) {
	if e.stderr.Size() == 0 {
		r.stream(e.stdout)
	} else {
		if e.stdout.Size() > 0 {
			r.line("stdout:\n")
			r.stream(e.stdout)
		}
		r.line("stderr:\n")
		r.stream(e.stderr)
	}
	out, _ := e.stdout.Lost()
	errs, _ := e.stderr.Lost()
	if out+errs > 0 { // at the end, because the next limit hides the middle
		r.line(fmt.Sprintf("[the command put out %d bytes in all; %d of them are lost and cannot be read again]", e.stdout.Total()+e.stderr.Total(), out+errs))
	}
	for _, note := range e.notes() {
		r.line(note)
	}
}

func (r *report) result() tool.Result {
	all := io.MultiReader(r.parts...)
	if r.long {
		return tool.Result{Long: all}
	}
	text, err := io.ReadAll(all)
	if err != nil { // reading from memory cannot fail
		return tool.Result{Text: string(text), Error: err.Error()}
	}
	return tool.Result{Text: string(text)}
}
