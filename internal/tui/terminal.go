// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package tui

import (
	"encoding/base64"
	"errors"
	"io"
	"os"
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
	past    past     // finished lines that were drawn, for the full screen
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
	suggest string             // what the person may want to say next, or ""
	taken   []string           // by Next, and in no other place yet
	stop    func()             // ends the work, or nil if nothing works
	steer   func(string) error // says something to the work
	pending bool               // a question waits until keys are its answer; see grace
	quiet   time.Time          // since when it is shown and no key was pressed, or zero
	asking  bool               // the next line is the answer to a question
	words   bool               // any text may be that answer
	stashed composer           // the draft, while the composer has the answer to a question
	others  bool               // it is the work of another program
	leaving bool
	theme   *strings.Replacer
	lost    bool   // the terminal is gone, and the work goes on
	shut    string // the draft below which no commands are listed
	allKeys bool   // the terminal sends keys such as Shift+Enter
	blurred bool   // the window does not have the focus, as far as the terminal tells
	worked  time.Time
	last    lastKey // what the last key left
	was     lastKey // and the one before it, while a key is applied
	first   viKey   // of two keys that are bound, while the second is awaited
	can     ability

	full     full
	rowsOf   []rowOf // in the order of their lines
	outline  Outline
	lineMark string // what stands before line: a colon, a slash or a question mark
	noSide   bool   // the person does not want the pane beside the full screen
	sideText nodeText
	browse   browse
	wantFull bool // the person wants the full screen
	find     find
	draft    string // the file that keeps the draft, or ""
	kept     string // what that file holds

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
	t.past.close()
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
	t.locked(t.restores)
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
			t.locked(do)
			draw()
		case <-t.wake:
			draw()
		case <-resized:
			t.locked(func() {
				t.full.drawn = nil
				t.screen.width = -1 // the terminal may have changed what it shows, whatever size it has now
			})
			draw()
		case <-soon.C:
			draw()
		case <-tick.C:
			t.locked(func() { t.keep() })
			draw()
		}
	}
}

// locked does something with the mutex. If do panics, the mutex stays locked, so that nobody draws any more.
func (t *Terminal) locked(do func()) {
	t.mu.Lock()
	do()
	t.mu.Unlock()
}

// changed has the live part drawn soon.
func (t *Terminal) changed() {
	select {
	case t.wake <- struct{}{}:
	default:
	}
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
