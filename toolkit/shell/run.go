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
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/antiphon-go/antiphon/internal/spool"
	"github.com/antiphon-go/antiphon/tool"
)

// passedOn are the variables that every command gets from this process.
var passedOn = []string{
	"PATH", "HOME", "USER", "LOGNAME", "SHELL", "TMPDIR", "TZ", "LANG", "LANGUAGE", "LC_ALL", "LC_CTYPE", "LC_MESSAGES",
	// Windows programs do not start without some of these.
	"SYSTEMROOT", "SYSTEMDRIVE", "WINDIR", "COMSPEC", "PATHEXT", "TEMP", "TMP", "USERPROFILE", "APPDATA", "LOCALAPPDATA", "PROGRAMFILES", "PROGRAMDATA",
}

// setAlways tell programs that nobody is at a terminal.
var setAlways = []string{"TERM=dumb", "NO_COLOR=1", "PAGER=cat", "GIT_PAGER=cat", "GIT_TERMINAL_PROMPT=0"}

// secretName fits variables that hold keys.
var secretName = regexp.MustCompile(`(?i)KEY|TOKEN|SECRET|PASSW|CREDENTIAL`)

// commandEnv returns the environment of commands.
func commandEnv(more []string) ([]string, error) {
	var env []string
	pass := func(name string) {
		if value, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+value)
		}
	}
	for _, name := range passedOn {
		pass(name)
	}
	env = append(env, setAlways...)
	for _, v := range more {
		name, _, set := strings.Cut(v, "=")
		switch {
		case name == "" || strings.ContainsRune(v, 0):
			return nil, fmt.Errorf("shell: %q is not an environment variable", v)
		case set:
			env = append(env, v)
		case secretName.MatchString(name):
			return nil, fmt.Errorf("shell: the variable %s looks like a secret, which commands do not get", name)
		default:
			pass(name)
		}
	}
	return env, nil
}

// absolutePath leaves only absolute directories in PATH, and returns them: a
// program is never found in the directory that happens to be the current one.
func absolutePath(env []string) (_, dirs []string) {
	for i, v := range env {
		if name, list, _ := strings.Cut(v, "="); strings.EqualFold(name, "PATH") {
			dirs = slices.DeleteFunc(filepath.SplitList(list), func(dir string) bool { return !filepath.IsAbs(dir) })
			env[i] = name + "=" + strings.Join(dirs, string(filepath.ListSeparator))
		}
	}
	return env, dirs
}

// programs finds programs as a command will.
type programs struct {
	dir      string   // the working directory
	dirs     []string // of PATH
	writable []string // directories that tools write to
}

var errNoProgram = errors.New("no such program in the directories of PATH")

// find returns the absolute path of a program: from PATH if the name has no
// slash, and else from the working directory.
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

// trusted reports whether a program lies where the tools of this package cannot
// put one of their own.
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

// baseName is the name of a program without what differs between systems.
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

// identify returns the name that an Allow rule may know a program by, "" for
// one that is not what its name says, and all the names that a Deny or Ask rule
// may know it by.
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
	var r report
	r.add(e)
	res := r.result()
	res.Error = e.problem
	return res, err
}

// leftBehind is said where a command did not end all that it started.
const leftBehind = "[processes that the command left in the background were ended]"

// ended is a program that is over.
type ended struct {
	stdout, stderr *spool.Spool
	left           bool   // processes were left in the background, and ended
	problem        string // why it failed, or ""
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
	e.stdout, e.stderr = stdout.seal(), stderr.seal()
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

// collector takes all that is written to it, and never fails.
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
	c.all.Write(b)
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

// seal returns what was collected. Where there was no room for all of it, it says
// between the two ends how much is gone.
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

// report is what a model reads of commands.
type report struct {
	parts []io.Reader
	last  byte
	long  bool // more than is to be held in memory
}

func (r *report) say(text string) {
	if text != "" {
		r.parts, r.last = append(r.parts, strings.NewReader(text)), text[len(text)-1]
	}
}

// line says something on a line of its own.
func (r *report) line(text string) {
	if len(r.parts) > 0 && r.last != '\n' {
		text = "\n" + text
	}
	r.say(text)
}

func (r *report) stream(s *spool.Spool) {
	var last [1]byte
	if n := s.Size(); n > 0 {
		_, _ = s.ReadAt(last[:], n-1) // who reads all of it is told what is wrong
		r.parts, r.last, r.long = append(r.parts, s.Reader()), last[0], r.long || !s.InMemory()
	}
}

// add adds what a command put out, and what of it is lost or was ended with it.
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
	if out+errs > 0 { // said at the end, for the middle is what the next limit hides
		r.line(fmt.Sprintf("[the command put out %d bytes in all; %d of them are lost and cannot be read again]", e.stdout.Total()+e.stderr.Total(), out+errs))
	}
	if e.left {
		r.line(leftBehind)
	}
}

func (r *report) result() tool.Result {
	all := io.MultiReader(r.parts...)
	if r.long {
		return tool.Result{Long: all}
	}
	text, err := io.ReadAll(all)
	if err != nil { // of memory: it does not happen
		return tool.Result{Text: string(text), Error: err.Error()}
	}
	return tool.Result{Text: string(text)}
}
