// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package tui

import (
	"context"
	"encoding/base64"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"
)

// Options describe a terminal.
type Options struct {
	In, Out *os.File
	Colour  bool
	// Term is the kind of terminal, as in $TERM.
	Term string
	// Program is the program that the terminal belongs to, as in $TERM_PROGRAM.
	Program string
	// Commands are completed behind a slash.
	Commands []Command
	// Files returns the names of files that begin with a text, to complete words that begin
	// with @. Nil means that there are none.
	Files func(begin string) []string
	// Now are commands that mean the work that is under way: they go to the steer function
	// of [Terminal.Working], without waiting for its end.
	Now []string
	// Lost is called at most once, when the terminal is gone. If it is nil, that is as if the
	// person left: the work is stopped. Otherwise the work goes on, and what is written is
	// lost.
	Lost func()
	// Back is the prompt that Esc twice sends while nothing works; "" means none.
	Back string
	// Set are the commands that :set NAME=VALUE of vi may mean, and Drop the command that takes a message of the
	// person, by › and its first line, or a call, by [Node.Drop], out of what is sent. "" means none.
	Set  []string
	Drop string
	// Modes are the names that Shift+Tab goes through; see [Terminal.Mode]. The first is the usual
	// one, and is not shown.
	Modes []string
	// Pictures is one of [Pictures]; "" means off. TrueColour says that the terminal has 16 million
	// colours.
	Pictures   string
	TrueColour bool
	// Editor is the command line of the editor for long drafts; "" means none.
	Editor []string
	// Bind says what keys do in place of what they do usually.
	Bind Bindings
	// Vi means that the draft has the keys of vi.
	Vi bool
	// Still means that little moves: a reply appears line by line, and times pass in steps of ten
	// seconds.
	Still bool
	// Notice is how the person is told that a question waits, or that long work has ended, while
	// the window does not have the focus: one of [Notices]. "" is the first of them. Tmux says
	// that the terminal is one in tmux, and About what the notice is about, such as a folder.
	Notice string
	Tmux   bool
	About  string
	// Tell is called with the text instead, if it is not nil. It must not wait for anything.
	Tell func(text string)
}

// Command is a command that can be typed behind a slash.
type Command struct{ Name, Arguments, Help string }

// Terminal is a terminal with a transcript and a live part. Its methods are safe for
// concurrent use.
type Terminal struct {
	opts     Options
	in       *input
	restorer *restorer // of run, which is the only one to use it until it ends

	mu      sync.Mutex
	screen  screen
	mark    markdown
	note    string   // the unfinished line of Notes
	lines   []string // finished and not drawn yet
	past    []string // finished lines that were drawn, for the full screen
	raw     []byte   // sequences without effect on the screen, for the next write
	waits   []wait
	status  string
	mode    int    // in Modes
	modeOff bool   // the mode has no effect
	hint    string // about the last key
	compose composer
	vi      vi
	line    *string // the command line of vi, or what is searched
	sought  sought
	queue   []string
	taken   []string           // by Next, and in no other place yet
	stop    func()             // ends the work, or nil if nothing works
	steer   func(string) error // says something to the work
	pending bool               // a question waits until keys are its answer; see grace
	quiet   time.Time          // since when it is shown and no key was pressed, or zero
	asking  bool               // the next line is the answer to a question
	stashed composer           // the draft, while the composer has the answer to a question
	others  bool               // it is the work of another program
	leaving bool
	theme   *strings.Replacer
	lost    bool   // the terminal is gone, and the work goes on
	asked   bool   // ctrl+c was typed in an empty draft
	escaped bool   // esc was typed while nothing worked
	listed  bool   // the hint lists what the last tab may mean
	shut    string // the draft below which no commands are listed
	allKeys bool   // the terminal sends keys such as Shift+Enter
	blurred bool   // the window does not have the focus, as far as the terminal tells
	worked  time.Time
	prefix  string // ctrl+x
	first   viKey  // of two keys that are bound, while the second is awaited
	can     ability

	full      full
	rowsOf    []rowOf // in the order of their lines
	outline   Outline
	lineMark  string // what stands before line: a colon, a slash or a question mark
	noSide    bool   // the person does not want the pane beside the full screen
	sideText  nodeText
	browse    browse
	wantFull  bool // the person wants the full screen
	dropped   int  // lines before those of past
	pastBytes int  // of past
	find      find
	draft     string // the file that keeps the draft, or ""
	kept      string // what that file holds

	values    func(command, begin string) []string
	clipboard func() (string, error)

	clock  func() time.Time
	wake   chan struct{}
	jobs   chan func()   // for run, which calls them with mu held
	ready  chan struct{} // something is queued
	answer chan string
	left   chan struct{}
	quit   chan struct{}
	over   chan struct{}
	err    error // of writing to the terminal
}

// wait is one thing that the program waits for.
type wait struct {
	key, what, last string
	began           time.Time
}

// drawEvery is the least time between two frames, and tickEvery the time between frames
// that show how long something takes.
const (
	drawEvery  = 16 * time.Millisecond
	tickEvery  = 250 * time.Millisecond
	stillEvery = time.Second // between frames without a key, if little is to move
)

// xtermJS are programs whose terminals are xterm.js.
var xtermJS = []string{"vscode", "Hyper", "Tabby"}

// begin and end are sent when the terminal is taken over and given back: pastes are marked, the
// terminal tells when its window gets and loses the focus, and it is asked whether it can tell keys
// such as Shift+Enter from others. If it can, keysOn switches that on, and keysOff off again.
const (
	begin   = "\x1b[?2004h\x1b[?1004h\x1b[?u"
	end     = "\x1b[?1004l\x1b[?2004l"
	keysOn  = "\x1b[>5u" // keys apart, and what a key is on another layout
	keysOff = "\x1b[<u"
)

// Open takes over a terminal, and draws the first frame. Close must be called before the
// program ends.
func Open(opts Options) (*Terminal, error) {
	in, err := openInput(opts.In, opts.Term)
	if err != nil {
		return nil, err
	}
	t := &Terminal{
		opts: opts, in: in, screen: screen{out: opts.Out, low: !opts.Tmux && slices.Contains(xtermJS, opts.Program)}, mark: markdown{colour: opts.Colour},
		clock: time.Now, wake: make(chan struct{}, 1), jobs: make(chan func()), ready: make(chan struct{}, 1), answer: make(chan string, 64),
		left: make(chan struct{}), quit: make(chan struct{}), over: make(chan struct{}),
	}
	t.raw = append(t.raw, begin...)
	t.redraw()
	go t.run()
	return t, nil
}

// Close draws what is finished, removes the live part and gives the terminal back. It
// returns the first error of writing to the terminal.
func (t *Terminal) Close() error {
	close(t.quit)
	<-t.over
	t.restorer.end()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.finish()
	t.keep()
	t.leave()
	return errors.Join(t.err, t.in.close())
}

// abandon gives the terminal back, whatever state it and t are in: what broke may hold the mutex. The live
// part is removed.
func (t *Terminal) abandon() {
	t.restorer.end()
	_, _ = io.WriteString(t.opts.Out, t.givesBack()+"\r"+erase)
	_ = t.in.restore()
}

// paused tells the restorer that the terminal is given back. It is what begins sequences.
const paused = "\x1b"

// restores tells the restorer what gives the terminal back from now on.
func (t *Terminal) restores() {
	if t.restorer != nil {
		t.restorer.say(t.givesBack() + "|" + t.in.modes)
	}
}

// givesBack returns what gives the terminal back, but for its mode and the live part.
func (t *Terminal) givesBack() string {
	off := ""
	if t.allKeys {
		off = keysOff
	}
	back := "\x1b[?2026l\x1b[?7h\x1b[?25h"
	if t.full.on { // which has its own state of the keys
		back += off + leaveFull
	}
	return back + off + end
}

// leave writes the last lines and gives the screen back.
func (t *Terminal) leave() {
	width, height := t.size()
	var err error
	if t.full.on {
		err = t.exitFull(width, height)
	}
	err = errors.Join(err, t.flush(width))
	if err == nil {
		off := end
		if t.allKeys {
			off = keysOff + end
		}
		t.allKeys = false
		_, err = io.WriteString(t.opts.Out, off)
	}
	t.fail(err)
}

// finish ends the lines that are not finished.
func (t *Terminal) finish() {
	t.lines = append(t.lines, t.mark.reset()...)
	if t.note != "" {
		t.lines = append(t.lines, t.note)
		t.note = ""
	}
}

func (t *Terminal) fail(err error) {
	if t.err == nil && !t.lost {
		t.err = err
	}
}

// gone is called when the terminal is gone.
func (t *Terminal) gone() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.opts.Lost == nil || t.leaving {
		t.depart()
		return
	}
	t.lost, t.err, t.leaving = true, nil, true
	close(t.left)
	go t.opts.Lost()
}

// Left is closed when the person leaves.
func (t *Terminal) Left() <-chan struct{} { return t.left }

// Width returns the width of the terminal.
func (t *Terminal) Width() int {
	width, _ := t.size()
	return width
}

func (t *Terminal) size() (width, height int) { return sizeOf(t.opts.Out) }

func sizeOf(out *os.File) (width, height int) {
	width, height, err := term.GetSize(int(out.Fd()))
	if err != nil || width <= 0 || height <= 0 {
		return 80, 24
	}
	return width, height
}

// run draws and reads keys until Close. If it panics, the terminal is given back before the program says so.
func (t *Terminal) run() {
	defer close(t.over)
	ended := false
	defer func() {
		if !ended {
			t.abandon()
		}
	}()
	t.restorer = newRestorer(t.opts.In, t.opts.Out) // after the first frame, which does not wait for it
	t.mu.Lock()
	t.restores()
	t.mu.Unlock()
	events := t.in.events
	tick := time.NewTicker(tickEvery)
	defer tick.Stop()
	soon := time.NewTimer(time.Hour)
	var drawn time.Time
	every := drawEvery
	if t.opts.Still {
		every = stillEvery
	}
	resized, end := resizes()
	defer end()
	draw := func() {
		if since := time.Since(drawn); since < every {
			soon.Reset(every - since)
			return
		}
		t.redraw()
		drawn = time.Now()
	}
	for {
		select {
		case <-t.quit:
			ended = true
			return
		case ev, ok := <-events:
			if !ok {
				events = nil
				t.gone()
				continue
			}
			t.event(ev)
			t.redraw()
			drawn = time.Now()
		case do := <-t.jobs:
			t.mu.Lock()
			do()
			t.mu.Unlock()
			draw()
		case <-t.wake:
			draw()
		case <-resized:
			t.mu.Lock()
			t.full.drawn = nil
			t.screen.width = -1 // the terminal may have changed what it shows, whatever size it has now
			t.mu.Unlock()
			draw()
		case <-soon.C:
			draw()
		case <-tick.C:
			t.mu.Lock()
			t.keep()
			t.mu.Unlock()
			draw()
		}
	}
}

// changed has the live part drawn soon.
func (t *Terminal) changed() {
	select {
	case t.wake <- struct{}{}:
	default:
	}
}

// Text takes the model's text, which is Markdown. It may end anywhere in a line.
func (t *Terminal) Text() io.Writer { return textWriter{t} }

type textWriter struct{ t *Terminal }

func (w textWriter) Write(text []byte) (int, error) {
	w.t.mu.Lock()
	defer w.t.mu.Unlock()
	w.t.lines = append(w.t.lines, w.t.mark.write(Shown(string(text)))...)
	w.t.changed()
	return len(text), w.t.err
}

// EndText says that a text is over: what follows is another one.
func (t *Terminal) EndText() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lines = append(t.lines, t.mark.reset()...)
	t.changed()
}

// Notes takes lines about the conversation, which may have escape sequences for colours. An
// unfinished line is shown in the live part, as a question.
func (t *Terminal) Notes() io.Writer { return noteWriter{t} }

type noteWriter struct{ t *Terminal }

func (w noteWriter) Write(text []byte) (int, error) {
	w.t.mu.Lock()
	defer w.t.mu.Unlock()
	w.t.notes(string(text))
	w.t.changed()
	return len(text), w.t.err
}

func (t *Terminal) notes(text string) {
	t.lines = append(t.lines, t.mark.flush()...)
	parts := strings.Split(t.note+text, "\n")
	for _, line := range parts[:len(parts)-1] {
		t.lines = append(t.lines, untabbed(strings.TrimRight(line, "\r")))
	}
	t.note = untabbed(parts[len(parts)-1])
}

// Say adds a line to the transcript that shows what the person said.
func (t *Terminal) Say(text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.say("› ", text)
}

func (t *Terminal) say(mark, text string) {
	t.lines = append(t.lines, t.mark.reset()...)
	if t.note != "" {
		t.notes("\n")
	}
	t.lines = append(t.lines, "")
	for i, line := range strings.Split(strings.TrimRight(Shown(text), "\n"), "\n") {
		if i > 0 {
			mark = "  "
		}
		t.lines = append(t.lines, t.styled(mark+line, bold))
	}
	t.lines = append(t.lines, "")
	t.changed()
}

func (t *Terminal) styled(text, style string) string {
	if !t.opts.Colour || text == "" {
		return text
	}
	return "\x1b[" + style + "m" + text + reset
}

// Wait shows that the program waits for something, until Done is called with its key.
func (t *Terminal) Wait(key, what string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.drop(key)
	t.waits = append(t.waits, wait{key: key, what: Shown(what), began: time.Now()})
	t.rowsOf = append(t.rowsOf, rowOf{t.end() - 1, key})
	t.changed()
}

// Done ends a wait.
func (t *Terminal) Done(key string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.drop(key)
	t.changed()
}

func (t *Terminal) drop(key string) {
	t.waits = slices.DeleteFunc(t.waits, func(w wait) bool { return w.key == key })
}

// Last shows the last line of a wait's output.
func (t *Terminal) Last(key, line string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := range t.waits {
		if t.waits[i].key == key {
			t.waits[i].last = strings.TrimSpace(Shown(strings.ReplaceAll(line, "\n", " ")))
		}
	}
	t.changed()
}

// SetStatus sets the status line.
func (t *Terminal) SetStatus(text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.status = Shown(text)
	t.changed()
}

// Copy gives a text to the clipboard of the terminal, also over SSH.
func (t *Terminal) Copy(text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.copy(text)
}

func (t *Terminal) copy(text string) {
	seq := "\x1b]52;c;" + base64.StdEncoding.EncodeToString([]byte(text)) + "\x07"
	t.raw = append(t.raw, seq...)
	if t.opts.Tmux { // which may take it for itself, hand it through, or only hand through what is wrapped
		t.raw = append(t.raw, throughTmux(seq)...)
	}
	t.changed()
}

// Complete sets what completes the argument of a command: it returns the arguments that begin
// with a text. The command @ means a word behind an @, which may be the name of a file, too. It must not call methods
// of t.
func (t *Terminal) Complete(values func(command, begin string) []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.values = values
}

// Pasting sets what reads the clipboard for Ctrl+V. It may take a while.
func (t *Terminal) Pasting(read func() (string, error)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.clipboard = read
}

// AllKeys reports whether the terminal sends keys such as Shift+Enter.
func (t *Terminal) AllKeys() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.allKeys
}

// ErrNoEditor is the error of [Terminal.Edit] if there is no editor.
var ErrNoEditor = errors.New("there is no editor: set EDITOR")

// Edit opens a text in the editor, in a file whose name ends with a suffix, and returns what the
// person made of it. The person may leave meanwhile: then it returns [io.EOF].
func (t *Terminal) Edit(text, suffix string) (edited string, err error) {
	done := make(chan struct{})
	do := func() {
		edited, err = t.editText(text, suffix)
		close(done)
	}
	select {
	case t.jobs <- do:
		<-done
		return edited, err
	case <-t.left:
	case <-t.quit:
	}
	return "", io.EOF
}

// Put puts a text into the draft, before what is there.
func (t *Terminal) Put(text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.put(text)
	t.changed()
}

func (t *Terminal) put(text string) {
	if text == "" {
		return
	}
	draft := t.ownDraft()
	if draft.text != "" {
		text += "\n" + draft.text
	}
	draft.set(text)
}

// ownDraft returns the draft that is to be changed: not what a search or the history shows in its place.
func (t *Terminal) ownDraft() *composer {
	t.endFind()
	draft := t.drafted()
	draft.unshow()
	return draft
}

// drafted returns the draft, also while the composer has the answer to a question.
func (t *Terminal) drafted() *composer {
	if t.asking {
		return &t.stashed
	}
	return &t.compose
}

// Remember adds texts to the history, oldest first.
func (t *Terminal) Remember(texts ...string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, text := range texts {
		t.compose.remember(text)
	}
}

// KeepDraft names the file that keeps what is written and not sent, so that it survives the
// program. What the file holds is put into the draft.
func (t *Terminal) KeepDraft(path string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.keep() // a prompt that was sent since leaves the draft's file
	if t.draft == path {
		return
	}
	before, held := t.draft, t.kept
	t.draft, t.kept = path, ""
	if text, err := os.ReadFile(path); err == nil && len(text) > 0 {
		t.kept = string(text)
		list := strings.Split(t.kept, promptEnd)
		t.put(list[len(list)-1])
		t.putBack(list[:len(list)-1])
	}
	t.keep()
	if before != "" && held != "" {
		_ = os.Remove(before) // what it held has moved
	}
	t.changed()
}

// promptEnd stands between two prompts in the file of the draft, and is in none.
const promptEnd = "\x00"

// keep writes the draft to its file, behind prompts that wait.
func (t *Terminal) keep() {
	if t.draft == "" {
		return
	}
	text := t.drafted().written()
	if t.find.on {
		text = t.compose.whole(t.find.before.text)
	}
	list := slices.Concat(t.taken, t.queue)
	if text != "" || len(list) == 0 {
		list = append(list, text)
	}
	for i := range list {
		list[i] = strings.ReplaceAll(list[i], promptEnd, "")
	}
	text = strings.Join(list, promptEnd)
	if text == t.kept {
		return
	}
	t.kept = text
	if text == "" {
		_ = os.Remove(t.draft)
		return
	}
	_ = os.MkdirAll(filepath.Dir(t.draft), 0o700)
	part := t.draft + ".part"
	if os.WriteFile(part, []byte(text), 0o600) == nil {
		_ = os.Rename(part, t.draft)
	}
}

// Next waits for the next prompt and shows it in the transcript. It returns [io.EOF] when
// the person leaves. The prompt stays in the file of the draft until [Terminal.Sent] or
// [Terminal.Unsent].
func (t *Terminal) Next(ctx context.Context) (string, error) {
	for {
		t.mu.Lock()
		if t.leaving {
			t.mu.Unlock()
			return "", io.EOF
		}
		if len(t.queue) > 0 {
			text := t.queue[0]
			t.queue = t.queue[1:]
			t.taken = append(t.taken, text)
			t.say("› ", text)
			t.mu.Unlock()
			return text, nil
		}
		t.mu.Unlock()
		select {
		case <-t.ready:
		case <-t.left:
		case <-ctx.Done():
			return "", context.Cause(ctx)
		}
	}
}

// Sent says that a prompt of [Terminal.Next] is kept elsewhere, or needs not be kept. A text that
// is none changes nothing.
func (t *Terminal) Sent(text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.forget(text) {
		t.keep()
	}
}

// Unsent puts a prompt of [Terminal.Next] back into the draft, before what is there.
func (t *Terminal) Unsent(text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.forget(text)
	t.put(text)
	t.changed()
}

func (t *Terminal) forget(text string) bool {
	i := slices.Index(t.taken, text)
	if i >= 0 {
		t.taken = slices.Delete(t.taken, i, i+1)
	}
	return i >= 0
}

// Working says that the program works until end is called: stop ends the work, and steer
// says something to it.
func (t *Terminal) Working(stop func(), steer func(string) error) (end func()) {
	return t.work(stop, steer, false)
}

// Watching is like Working, for the work of another program: it does not end when the person
// leaves.
func (t *Terminal) Watching(stop func(), steer func(string) error) (end func()) {
	return t.work(stop, steer, true)
}

func (t *Terminal) work(stop func(), steer func(string) error, others bool) (end func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stop, t.steer, t.others, t.worked = stop, steer, others, time.Now()
	if t.leaving && !t.lost && !others {
		stop()
	}
	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.stop, t.steer, t.waits = nil, nil, nil
		if took := time.Since(t.worked); took > longWork {
			t.ring("the work has ended after " + took.Truncate(time.Second).String())
		}
		t.changed()
	}
}

// Ask says that the next line is the answer to a question, until end is called. What was
// written before stays a draft. So does what is typed in the first moment: see grace.
func (t *Terminal) Ask() (end func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.asking && !t.pending {
		t.pending, t.quiet = true, time.Time{}
		t.ring("a question waits for you")
	}
	t.changed()
	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if t.asking {
			t.compose.resume(t.stashed)
			t.stashed = composer{}
		}
		t.asking, t.pending = false, false
		t.changed()
	}
}

// grace is how long a question must have been on the screen, without a key, before keys are its answer:
// somebody who types when it comes has not read it. Until then keys mean the draft, and nothing is sent.
const grace = 300 * time.Millisecond

// takeUp gives the keys to the question that waits, if it has been shown long enough.
func (t *Terminal) takeUp(now time.Time) {
	if !t.pending || t.quiet.IsZero() || now.Sub(t.quiet) < grace {
		return
	}
	t.endFind()
	if t.first.name != "" { // it was for the draft
		t.first, t.hint = viKey{}, ""
	}
	t.pending, t.asking, t.stashed = false, true, t.compose
	t.compose.resume(composer{})
}

// calm notes that the question is shown, or that a key was pressed.
func (t *Terminal) calm(now time.Time) {
	t.quiet = now
	time.AfterFunc(grace, t.changed)
}

// longWork is the time after which the end of work is worth a notice.
const longWork = 10 * time.Second

// Mode returns which of the Modes the person has chosen, or "" if there are none.
func (t *Terminal) Mode() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.opts.Modes) == 0 {
		return ""
	}
	return t.opts.Modes[t.mode]
}

// SetMode chooses one of the Modes. Others change nothing.
func (t *Terminal) SetMode(name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if i := slices.Index(t.opts.Modes, name); i >= 0 {
		t.mode = i
	}
	t.changed()
}

// ModeApplies says whether the mode has an effect: it has none on what another program does.
func (t *Terminal) ModeApplies(yes bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.modeOff = !yes
	t.changed()
}

// Lines returns the answers to questions as lines.
func (t *Terminal) Lines() io.Reader { return &answers{t: t} }

type answers struct {
	t    *Terminal
	rest string
}

func (a *answers) Read(b []byte) (int, error) {
	if a.rest == "" {
		select {
		case line := <-a.t.answer:
			a.rest = line + "\n"
		case <-a.t.left:
			return 0, io.EOF
		case <-a.t.quit:
			return 0, io.EOF
		}
	}
	n := copy(b, a.rest)
	a.rest = a.rest[n:]
	return n, nil
}
