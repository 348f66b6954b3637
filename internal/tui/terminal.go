// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package tui

import (
	"context"
	"encoding/base64"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"golang.org/x/term"

	uv "github.com/charmbracelet/ultraviolet"
)

// Options describe a terminal.
type Options struct {
	In, Out *os.File
	Colour  bool
	// Term is the kind of terminal, as in $TERM.
	Term string
	// Commands are completed behind a slash.
	Commands []Command
	// Files returns the names of files that begin with a text, to complete words that begin
	// with @. Nil means that there are none.
	Files func(begin string) []string
	// Back is the prompt that Esc twice sends while nothing works; "" means none.
	Back string
	// Editor is the command line of the editor for long drafts; "" means none.
	Editor []string
}

// Command is a command that can be typed behind a slash.
type Command struct{ Name, Arguments, Help string }

// Terminal is a terminal with a transcript and a live part. Its methods are safe for
// concurrent use.
type Terminal struct {
	opts Options
	in   *input

	mu      sync.Mutex
	screen  screen
	mark    markdown
	note    string   // the unfinished line of Notes
	lines   []string // finished and not drawn yet
	raw     []byte   // sequences without effect on the screen, for the next write
	waits   []wait
	status  string
	hint    string // about the last key
	compose composer
	queue   []string
	stop    func()             // ends the work, or nil if nothing works
	steer   func(string) error // says something to the work
	asking  bool               // a question waits for a line
	stashed state              // the draft while a question is asked
	leaving bool
	asked   bool // ctrl+c was typed in an empty draft
	escaped bool // esc was typed while nothing worked
	blurred bool // the window does not have the focus, as far as the terminal tells
	worked  time.Time
	prefix  string // ctrl+x
	find    find
	draft   string // the file that keeps the draft, or ""
	kept    string // what that file holds

	wake   chan struct{}
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
	drawEvery = 16 * time.Millisecond
	tickEvery = 250 * time.Millisecond
)

// begin and end are sent when the terminal is taken over and given back: pastes are marked, and
// the terminal tells when its window gets and loses the focus.
const begin, end = "\x1b[?2004h\x1b[?1004h", "\x1b[?1004l\x1b[?2004l"

// Open takes over a terminal, and draws the first frame. Close must be called before the
// program ends.
func Open(opts Options) (*Terminal, error) {
	in, err := openInput(opts.In, opts.Term)
	if err != nil {
		return nil, err
	}
	t := &Terminal{
		opts: opts, in: in, screen: screen{out: opts.Out}, mark: markdown{colour: opts.Colour},
		wake: make(chan struct{}, 1), ready: make(chan struct{}, 1), answer: make(chan string, 64),
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
	t.mu.Lock()
	defer t.mu.Unlock()
	t.finish()
	t.keep()
	t.leave()
	return errors.Join(t.err, t.in.close())
}

// leave writes the last lines and gives the screen back.
func (t *Terminal) leave() {
	lines := t.lines
	t.lines = nil
	width, _ := t.size()
	err := t.screen.draw(width, lines, frame{})
	if err == nil {
		_, err = io.WriteString(t.opts.Out, end)
	}
	t.screen.forget()
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
	if t.err == nil {
		t.err = err
	}
}

// Left is closed when the person leaves.
func (t *Terminal) Left() <-chan struct{} { return t.left }

// Width returns the width of the terminal.
func (t *Terminal) Width() int {
	width, _ := t.size()
	return width
}

func (t *Terminal) size() (width, height int) {
	width, height, err := term.GetSize(int(t.opts.Out.Fd()))
	if err != nil || width <= 0 || height <= 0 {
		return 80, 24
	}
	return width, height
}

// run draws and reads keys until Close.
func (t *Terminal) run() {
	defer close(t.over)
	tick := time.NewTicker(tickEvery)
	defer tick.Stop()
	soon := time.NewTimer(time.Hour)
	var drawn time.Time
	resized, end := resizes()
	defer end()
	draw := func() {
		if since := time.Since(drawn); since < drawEvery {
			soon.Reset(drawEvery - since)
			return
		}
		t.redraw()
		drawn = time.Now()
	}
	for {
		select {
		case <-t.quit:
			return
		case ev, ok := <-t.in.events:
			if !ok {
				t.depart() // the terminal is gone
				t.in.events = nil
				continue
			}
			t.event(ev)
			t.redraw()
			drawn = time.Now()
		case <-t.wake:
			draw()
		case <-resized:
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
		t.lines = append(t.lines, strings.TrimRight(line, "\r"))
	}
	t.note = parts[len(parts)-1]
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
	t.raw = append(t.raw, "\x1b]52;c;"+base64.StdEncoding.EncodeToString([]byte(text))+"\x07"...)
	t.changed()
}

// Put puts a text into the draft, before what is there.
func (t *Terminal) Put(text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.put(text)
	t.changed()
}

func (t *Terminal) put(text string) {
	draft := &t.compose.text
	if t.asking {
		draft = &t.stashed.text
	}
	if *draft != "" && text != "" {
		text += "\n" + *draft
	}
	if t.asking {
		t.stashed = state{text, len(text)}
	} else {
		t.compose.set(text)
	}
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
	if t.draft != "" && t.draft != path && t.kept != "" {
		_ = os.Remove(t.draft) // what it holds moves
	}
	t.draft, t.kept = path, ""
	if text, err := os.ReadFile(path); err == nil && len(text) > 0 {
		t.kept = string(text)
		t.put(t.kept)
	}
	t.changed()
}

// keep writes the draft to its file.
func (t *Terminal) keep() {
	if t.draft == "" {
		return
	}
	text := t.compose.sent()
	if t.asking {
		text = t.stashed.text
	}
	text = strings.Join(append(slices.Clone(t.queue), text), "\n")
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
// the person leaves.
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

// Working says that the program works until end is called: stop ends the work, and steer
// says something to it.
func (t *Terminal) Working(stop func(), steer func(string) error) (end func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stop, t.steer, t.worked = stop, steer, time.Now()
	if t.leaving {
		stop()
	}
	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.stop, t.steer, t.waits = nil, nil, nil
		if time.Since(t.worked) > longWork {
			t.ring()
		}
		t.changed()
	}
}

// Ask says that the next line is the answer to a question, until end is called. What was
// written before stays a draft.
func (t *Terminal) Ask() (end func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.asking {
		t.asking, t.stashed = true, state{t.compose.sent(), t.compose.at}
		t.compose.clear()
		t.ring()
	}
	t.changed()
	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if t.asking {
			t.asking = false
			t.compose.clear()
			t.compose.text, t.compose.at = t.stashed.text, min(t.stashed.at, len(t.stashed.text))
		}
		t.changed()
	}
}

// longWork is the time after which the end of work is worth a bell.
const longWork = 10 * time.Second

// ring rings the terminal's bell if the person looks at something else.
func (t *Terminal) ring() {
	if t.blurred {
		t.raw = append(t.raw, '\a')
	}
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

// event applies what the terminal sent.
func (t *Terminal) event(ev uv.Event) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch ev := ev.(type) {
	case uv.PasteEvent:
		t.compose.paste(strings.ToValidUTF8(ev.Content, "\ufffd"))
		t.hint, t.asked = "", false
	case uv.FocusEvent:
		t.blurred = false
	case uv.BlurEvent:
		t.blurred = true
	case uv.KeyPressEvent:
		t.key(uv.Key(ev).Keystroke(), ev.Text)
	case uv.MultiEvent:
		for _, one := range ev {
			if k, ok := one.(uv.KeyPressEvent); ok {
				t.key(uv.Key(k).Keystroke(), k.Text)
			}
		}
	}
}

// key applies a key.
func (t *Terminal) key(name, text string) {
	if t.find.on && t.search(name, text) {
		return
	}
	asked, escaped, prefix := t.asked, t.escaped, t.prefix
	t.hint, t.asked, t.escaped, t.prefix = "", false, false, ""
	if prefix != "" && name == "ctrl+e" {
		t.edit()
		return
	}
	switch name {
	case "enter":
		t.enter()
	case "alt+s", "ctrl+enter":
		t.send(t.compose.sent(), true)
	case "esc":
		t.escape(escaped)
	case "ctrl+c":
		switch {
		case t.compose.text != "":
			t.compose.set("")
		case asked:
			t.depart()
		default:
			t.asked, t.hint = true, "Ctrl+C again leaves; the conversation is kept"
		}
	case "ctrl+d":
		if t.compose.text == "" {
			t.depart()
		} else {
			t.compose.key("delete", "")
		}
	case "ctrl+z":
		t.suspend()
	case "ctrl+l":
		t.screen.width = 0 // all of the live part is drawn again
	case "ctrl+x":
		t.prefix, t.hint = name, "Ctrl+E opens the draft in $EDITOR"
	case "ctrl+r":
		if !t.asking {
			t.find = find{on: true, before: state{t.compose.text, t.compose.at}, at: len(t.compose.history)}
		}
	case "tab":
		t.complete()
	case "up":
		if t.compose.text == "" && len(t.queue) > 0 && !t.asking {
			last := len(t.queue) - 1
			t.compose.set(t.queue[last])
			t.queue = t.queue[:last]
			return
		}
		t.compose.key(name, text)
	default:
		t.compose.key(name, text)
	}
}

// find is a search in the history.
type find struct {
	on     bool
	query  string
	before state // the draft
	at     int   // what is shown of the history, or its length
}

// search applies a key to the search, and reports false if the key ends it and means the draft.
func (t *Terminal) search(name, text string) bool {
	f := &t.find
	from := f.at
	switch {
	case name == "ctrl+r":
		from--
	case name == "backspace":
		_, size := utf8.DecodeLastRuneInString(f.query)
		f.query, from = f.query[:len(f.query)-size], len(t.compose.history)-1
	case name == "esc", name == "ctrl+c", name == "ctrl+g":
		t.compose.set(f.before.text)
		f.on = false
		return true
	case text != "":
		f.query, from = f.query+text, min(from, len(t.compose.history)-1)
	default:
		f.on = false
		return false
	}
	for ; from >= 0; from-- {
		if entry := t.compose.history[from]; strings.Contains(strings.ToLower(entry), strings.ToLower(f.query)) {
			f.at = from
			t.compose.set(entry)
			return true
		}
	}
	return true
}

// enter sends the draft.
func (t *Terminal) enter() {
	text := t.compose.sent()
	if t.asking {
		text = strings.ReplaceAll(text, "\n", " ") // one answer
		t.notes(Shown(text) + "\n")
		t.compose.clear()
		select {
		case t.answer <- text:
		default:
		}
		return
	}
	if rest, ok := strings.CutPrefix(text, "/steer "); ok {
		t.send(rest, true)
		return
	}
	t.send(text, false)
}

// send queues a prompt, or says it to the work.
func (t *Terminal) send(text string, now bool) {
	if strings.TrimSpace(text) == "" || t.asking || t.leaving {
		return
	}
	steer := t.steer
	if now && steer != nil {
		t.mu.Unlock() // it may write to a store
		err := steer(text)
		t.mu.Lock()
		if err == nil {
			t.say("» ", text)
			t.compose.remember(text)
			t.compose.clear()
			return
		}
		t.hint = Shown(err.Error())
	}
	t.compose.remember(text)
	t.compose.clear()
	t.queue = append(t.queue, text)
	t.tellReady()
}

func (t *Terminal) tellReady() {
	select {
	case t.ready <- struct{}{}:
	default:
	}
}

// escape stops the work: what was queued becomes the draft. If nothing works, the second time
// goes back.
func (t *Terminal) escape(again bool) {
	if t.stop == nil {
		switch {
		case t.opts.Back == "" || t.asking || t.compose.text != "":
		case again:
			t.queue = append(t.queue, t.opts.Back)
			t.tellReady()
		default:
			t.escaped, t.hint = true, "Esc again goes back to your last message"
		}
		return
	}
	t.stop()
	t.hint = "stopped; everything so far is kept"
	if len(t.queue) > 0 {
		queued := strings.Join(t.queue, "\n")
		t.queue = nil
		t.put(queued)
	}
}

// depart leaves.
func (t *Terminal) depart() {
	if t.leaving {
		return
	}
	t.leaving = true
	if t.stop != nil {
		t.stop()
	}
	close(t.left)
}

// complete completes a command or the name of a file.
func (t *Terminal) complete() {
	before := t.compose.text[:t.compose.at]
	word := before[strings.LastIndexAny(before, " \n")+1:]
	if begin, ok := strings.CutPrefix(word, "@"); ok && t.opts.Files != nil {
		found := t.opts.Files(begin)
		if common := commonBegin(found); len(common) > len(begin) {
			t.compose.insert(common[len(begin):], false)
		} else if len(found) > 1 {
			t.hint = Shown(strings.Join(found, " "))
		}
		return
	}
	name, ok := strings.CutPrefix(t.compose.text, "/")
	if !ok || strings.ContainsAny(name, " \n") {
		return
	}
	var found []string
	for _, c := range t.opts.Commands {
		if strings.HasPrefix(c.Name, name) {
			found = append(found, c.Name)
		}
	}
	if len(found) == 0 {
		return
	}
	common := commonBegin(found)
	if len(found) == 1 {
		common += " "
	}
	t.compose.set("/" + common)
}

// commonBegin returns what all texts begin with, in whole characters.
func commonBegin(list []string) string {
	if len(list) == 0 {
		return ""
	}
	common := list[0]
	for _, one := range list[1:] {
		for !strings.HasPrefix(one, common) {
			_, size := utf8.DecodeLastRuneInString(common)
			common = common[:len(common)-size]
		}
	}
	return common
}

// matching returns the commands that the draft may mean.
func (t *Terminal) matching() string {
	name, ok := strings.CutPrefix(t.compose.text, "/")
	if !ok || t.asking || strings.Contains(name, "\n") {
		return ""
	}
	name, _, argued := strings.Cut(name, " ")
	var found []Command
	for _, c := range t.opts.Commands {
		if c.Name == name || !argued && strings.HasPrefix(c.Name, name) {
			found = append(found, c)
		}
	}
	if len(found) == 1 {
		return strings.TrimSpace("/"+found[0].Name+" "+found[0].Arguments) + ": " + found[0].Help
	}
	var names []string
	for _, c := range found {
		names = append(names, "/"+c.Name)
	}
	return strings.Join(names, " ")
}

// edit opens the draft in the editor.
func (t *Terminal) edit() {
	if len(t.opts.Editor) == 0 {
		t.hint = "set EDITOR to the editor for long drafts"
		return
	}
	file, err := os.CreateTemp("", "antiphon-*.md")
	if err == nil {
		defer os.Remove(file.Name())
		_, err = file.WriteString(t.compose.sent())
		err = errors.Join(err, file.Close())
	}
	if err == nil {
		err = t.away(func() error {
			cmd := exec.Command(t.opts.Editor[0], append(slices.Clone(t.opts.Editor[1:]), file.Name())...) //nolint:gosec,noctx // the person's own editor; the person ends it
			cmd.Stdin, cmd.Stdout, cmd.Stderr = t.opts.In, t.opts.Out, t.opts.Out
			return cmd.Run()
		})
	}
	var text []byte
	if err == nil {
		text, err = os.ReadFile(file.Name())
	}
	if err != nil {
		t.hint = Shown(err.Error())
		return
	}
	t.compose.set(strings.TrimRight(strings.ToValidUTF8(string(text), "\ufffd"), "\n"))
}

// away gives the terminal to something else.
func (t *Terminal) away(do func() error) error {
	t.leave()
	if err := t.in.pause(); err != nil {
		return err
	}
	err := do()
	t.raw = append(t.raw, begin...)
	return errors.Join(err, t.in.resume())
}

// suspend stops the program, as ctrl+z does for others, until the shell continues it.
func (t *Terminal) suspend() {
	t.keep()
	if err := t.away(stopSelf); err != nil {
		t.hint = Shown(err.Error())
	}
}
