// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package tui

import (
	"errors"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync/atomic"
	"time"
	"unicode"
	"unicode/utf8"

	uv "github.com/charmbracelet/ultraviolet"
)

// This file is what keys and other events of the terminal do.

// event applies what the terminal sent.
func (t *Terminal) event(ev uv.Event) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch ev := ev.(type) {
	case uv.PasteEvent:
		t.alone()
		if t.browse.on {
			return
		}
		t.typed()
		t.find.on = false // what was found is the draft now, and esc must not take the paste away
		t.compose.paste(strings.ToValidUTF8(ev.Content, "\ufffd"))
		t.hint, t.last.asked = "", false
	case uv.FocusEvent:
		t.blurred = false
	case uv.BlurEvent:
		t.blurred = true
	case uv.KittyGraphicsEvent, uv.TerminalVersionEvent, uv.CellSizeEvent, uv.PrimaryDeviceAttributesEvent:
		t.answered(ev)
	case uv.MouseWheelEvent:
		t.wheel(ev)
	case uv.KeyboardEnhancementsEvent:
		if !t.allKeys {
			t.allKeys = true
			t.raw = append(t.raw, keysOn...)
		}
	case uv.KeyPressEvent:
		t.stroke(keystroke(ev), ev.Text)
	case uv.MultiEvent:
		for _, one := range ev {
			switch one := one.(type) {
			case uv.KeyPressEvent:
				t.stroke(keystroke(one), one.Text)
			case uv.MouseWheelEvent:
				t.wheel(one)
			}
			t.answered(one)
		}
	}
}

// keystroke returns the name of a key. Terminals that tell all keys apart send Shift with those that
// need it.
func keystroke(ev uv.KeyPressEvent) string {
	if ev.Code < unicode.MaxASCII { // the place of the key counts only on layouts without Latin letters
		ev.BaseCode = 0
	}
	return sameKey(uv.Key(ev).Keystroke())
}

// sameKey returns the usual name of a key that terminals send under several.
func sameKey(name string) string {
	switch name {
	case "ctrl+[":
		return "esc"
	case "ctrl+i":
		return "tab"
	case "ctrl+m":
		return "enter"
	case "ctrl+@":
		return "ctrl+space"
	case "shift+backspace":
		return "backspace"
	case "ctrl+shift+-", "ctrl+-", "ctrl+7":
		return "ctrl+_"
	case "alt+shift+-":
		return "alt+_"
	}
	return name
}

// wheel scrolls the full screen.
func (t *Terminal) wheel(ev uv.MouseWheelEvent) {
	switch {
	case !t.full.on:
	case t.browse.on && ev.Button == uv.MouseWheelUp:
		t.browse.top -= wheelRows
	case t.browse.on && ev.Button == uv.MouseWheelDown:
		t.browse.top += wheelRows
	case ev.Button == uv.MouseWheelUp:
		t.scroll(-wheelRows)
	case ev.Button == uv.MouseWheelDown:
		t.scroll(wheelRows)
	}
}

// typed notes that a key was pressed, and reports whether a question waits that keys are not meant for yet.
func (t *Terminal) typed() (pending bool) {
	now := t.clock()
	if t.takeUp(now); t.pending && !t.quiet.IsZero() {
		t.calm(now)
	}
	return t.pending
}

// key applies a key.
func (t *Terminal) key(name, text string) {
	if name == "alt+esc" { // two that came at once
		t.key("esc", "")
		t.key("esc", "")
		return
	}
	t.typed()
	if t.find.on && t.search(name, text) {
		return
	}
	if t.opts.Vi && !t.asking && !t.browse.on && t.viKey(name, text) {
		return
	}
	t.was, t.hint, t.last = t.last, "", lastKey{}
	if t.browse.on && name != "ctrl+z" {
		t.browseKey(name)
		return
	}
	if first := t.was.first; first != "" {
		if act := keyActs[first+" "+name]; act != nil {
			act(t)
			return
		}
	}
	if second := prefixes[name]; second != "" {
		t.last.first, t.hint = name, second
		return
	}
	if act := keyActs[name]; act == nil || !act(t) {
		t.compose.key(name, text)
	}
}

// lastKey is what a key leaves for the next one.
type lastKey struct {
	first   string // of two keys
	asked   bool   // ctrl+c was typed in an empty draft
	escaped bool   // esc was typed while nothing worked
	listed  bool   // the hint lists what a tab may mean
}

// sendNow says the draft to the work.
func (t *Terminal) sendNow() { t.send(t.compose.sent(), true) }

// escapeKey closes a list, or does what escape does.
func (t *Terminal) escapeKey() {
	switch {
	case t.was.listed: // the hint was the list, and is gone
	case t.matching() != "" && t.shut != t.compose.text:
		t.shut = t.compose.text
	default:
		t.escape(t.was.escaped)
	}
}

// interrupt clears the draft, or leaves the second time.
func (t *Terminal) interrupt() {
	switch {
	case t.compose.text != "":
		t.compose.set("")
	case t.was.asked:
		t.depart()
	default:
		t.last.asked, t.hint = true, t.howToLeave()
	}
}

// departIfEmpty leaves if the draft is empty.
func (t *Terminal) departIfEmpty() bool {
	if t.compose.text != "" {
		return false
	}
	t.depart()
	return true
}

// drawAnew has all of the live part, or of the full screen, drawn again.
func (t *Terminal) drawAnew() { t.full.drawn, t.screen.width = nil, 0 }

// findKey begins a search in the history.
func (t *Terminal) findKey() {
	if !t.asking {
		t.find = find{on: true, before: state{t.compose.text, t.compose.at}, at: len(t.compose.history)}
	}
}

// nextMode chooses the next approval mode.
func (t *Terminal) nextMode() {
	switch n := len(t.opts.Modes); {
	case n > 0 && t.modeOff:
		t.hint = "what is asked about is chosen where this runs"
	case n > 0:
		t.mode = (t.mode + 1) % n
		t.hint = "mode: " + t.opts.Modes[t.mode]
	}
}

// tab takes what is suggested, or completes.
func (t *Terminal) tab() {
	if text := t.suggested(); text != "" {
		t.suggest = ""
		t.compose.paste(text)
		return
	}
	t.complete()
}

// takeQueued takes the last queued prompt back into an empty draft.
func (t *Terminal) takeQueued() bool {
	if t.compose.text != "" || len(t.queue) == 0 || t.asking {
		return false
	}
	last := len(t.queue) - 1
	t.compose.set(t.queue[last])
	t.queue = t.queue[:last]
	return true
}

// pasteClipboard puts the clipboard into the draft, when it is read.
func (t *Terminal) pasteClipboard() {
	read := t.clipboard
	if read == nil {
		return
	}
	t.hint = "reading the clipboard"
	answers := t.asking
	go func() {
		text, err := read()
		insert := func() {
			if t.hint = ""; err != nil {
				t.hint = Shown(err.Error())
				return
			}
			into := t.drafted()
			if answers && t.asking {
				into = &t.compose
			}
			into.paste(text)
		}
		select {
		case t.jobs <- insert:
		case <-t.quit:
		}
	}()
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
		t.endFind()
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

// endFind ends the search, if there is one, and gives the draft back.
func (t *Terminal) endFind() {
	if t.find.on {
		t.compose.restore(t.find.before)
		t.find.on = false
	}
}

// tooSoon reports that nothing is sent, because a question has come that the person may not have read.
func (t *Terminal) tooSoon() bool {
	if t.pending {
		t.hint = "a question waits for you; what you wrote stays a draft"
	}
	return t.pending
}

// enter sends the draft, or the answer to a question.
func (t *Terminal) enter() {
	if t.tooSoon() {
		return
	}
	text := t.compose.sent()
	if !t.asking {
		t.send(text, false)
		return
	}
	if t.compose.clear(); t.commanded(text) {
		return
	}
	text = strings.ReplaceAll(text, "\n", " ") // one answer
	t.notes(Shown(text) + "\n")
	select {
	case t.answer <- text:
	default:
	}
}

// commanded performs or queues a command that was typed in place of an answer, and reports whether it is one. If any
// text may be the answer, only what leaves or concerns the screen is a command.
func (t *Terminal) commanded(text string) bool {
	text = strings.TrimRight(text, " ")
	name, _, _ := strings.Cut(strings.TrimPrefix(text, "/"), " ")
	switch known := func(c Command) bool { return c.Name == name }; {
	case !t.words && strings.HasPrefix(text, "!"): // a shell line
		t.later(text)
	case !strings.HasPrefix(text, "/"):
		return false
	case text == "/quit":
		t.depart()
	case text != "/fullscreen" && (t.words || !slices.ContainsFunc(t.opts.Commands, known)):
		return false
	default:
		t.later(text)
	}
	return true
}

// later performs what was typed at a question and is no answer: most of it waits until the question is answered.
func (t *Terminal) later(text string) {
	t.compose.remember(text)
	if t.dispatch(text, false); slices.Contains(t.queue, text) {
		t.hint = Shown(text + " waits until the question is answered; /quit leaves")
	}
}

// send queues the draft, or says it to the work, and empties it.
func (t *Terminal) send(text string, now bool) {
	if t.submit(text, now) {
		t.compose.remember(text)
		t.takeOut(text)
		t.keep() // a text that was given to the work leaves the draft's file
	}
}

// takeOut takes a text that was sent out of the draft. What came before it while it was sent stays.
func (t *Terminal) takeOut(text string) {
	draft := t.drafted()
	rest, ok := strings.CutSuffix(draft.sent(), text)
	if !ok { // the text was one of the history, and what came has put the draft in its place
		return
	}
	if draft.clear(); rest != "" {
		draft.set(strings.TrimSuffix(rest, "\n"))
	}
}

// submit queues a prompt, performs it or says it to the work. It reports false if it does nothing.
func (t *Terminal) submit(text string, now bool) bool {
	if strings.TrimSpace(text) == "" || t.asking || t.leaving || t.tooSoon() {
		return false
	}
	t.dispatch(text, now)
	return true
}

// dispatch does what submit does, also while a question waits.
func (t *Terminal) dispatch(text string, now bool) {
	if !now {
		switch plain := strings.TrimSpace(text); {
		case t.stop != nil && slices.Contains(t.opts.Now, plain):
			text, now = plain, true
		case plain == "/fullscreen":
			t.wantFull = !t.wantFull
			return
		case strings.HasPrefix(text, "/steer "):
			text, now = strings.TrimPrefix(text, "/steer "), true
		}
	}
	steer := t.steer
	if now && steer != nil {
		err := t.unlocked(func() error { return steer(text) })
		if err == nil {
			t.say("» ", text)
			return
		}
		t.hint = Shown(err.Error())
	}
	t.queue = append(t.queue, text)
	t.tellReady()
}

// unlocked does something that may take a while, such as writing to a store, without holding mu. It takes mu again
// also if that panics: what called it unlocks it.
func (t *Terminal) unlocked(do func() error) error {
	t.mu.Unlock()
	defer t.mu.Lock()
	return do()
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
		case t.asking: // as an empty line
			t.compose.clear()
			t.enter()
		case t.opts.Back == "" || t.compose.text != "" || t.pending:
		case again:
			t.queue = append(t.queue, t.opts.Back)
			t.tellReady()
		default:
			t.last.escaped, t.hint = true, "Esc again goes back to what you said before"
		}
		return
	}
	t.stop()
	t.hint = "stopped; everything so far is kept"
	queued := t.queue
	t.queue = nil
	if past := t.putBack(queued); len(past) > 0 {
		t.hint = Shown("stopped; Up has what was queued: " + strings.Join(past, " "))
	}
}

// putBack puts prompts that were not sent into the draft, before what is there. A command or a shell line is
// one only at the beginning of a prompt, so it does not go beside others: it stays in the history, and is returned.
func (t *Terminal) putBack(prompts []string) (past []string) {
	draft := t.ownDraft()
	all := prompts
	if text := draft.sent(); text != "" {
		all = append(slices.Clone(all), text)
	}
	if len(prompts) == 0 || len(all) == 1 {
		t.put(strings.Join(prompts, "\n"))
		return nil
	}
	var said []string
	for _, text := range all {
		if strings.HasPrefix(text, "/") || strings.HasPrefix(text, "!") {
			t.compose.remember(text) // which has the history, also while it has the answer to a question
			past = append(past, text)
		} else {
			said = append(said, text)
		}
	}
	draft.set(strings.Join(said, "\n"))
	return past
}

// howToLeave says what Ctrl-C does the second time. Other programs stop the work with it.
func (t *Terminal) howToLeave() string {
	switch {
	case t.stop == nil:
		return "Ctrl-C again leaves; the conversation is kept"
	case t.others:
		return "Esc stops the work; Ctrl-C again leaves, and it goes on"
	}
	return "Esc stops the work; Ctrl-C again stops it and leaves; all is kept"
}

// depart leaves.
func (t *Terminal) depart() {
	if t.leaving {
		return
	}
	t.leaving = true
	if t.stop != nil && !t.others {
		t.stop()
	}
	close(t.left)
}

// complete completes a command, or a name behind an @.
func (t *Terminal) complete() {
	before := t.compose.text[:t.compose.at]
	word := before[strings.LastIndexAny(before, " \n")+1:]
	if begin, ok := strings.CutPrefix(word, "@"); ok {
		found := t.behindAt(begin)
		if common := commonBegin(found); len(common) > len(begin) {
			t.compose.insert(common[len(begin):], false)
		} else if len(found) > 1 {
			t.hint, t.last.listed = Shown(strings.Join(found, " ")), true
		}
		return
	}
	name, ok := strings.CutPrefix(t.compose.text, "/")
	if !ok || t.asking || strings.Contains(name, "\n") {
		return
	}
	if name, begin, argued := strings.Cut(name, " "); argued {
		t.completeArgument(name, begin)
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

// behindAt returns what a word behind an @ may mean: files, and what else has a name.
func (t *Terminal) behindAt(begin string) (found []string) {
	if t.opts.Files != nil {
		found = t.opts.Files(begin)
	}
	if t.values == nil {
		return found
	}
	for _, name := range t.values("@", begin) {
		if !slices.Contains(found, name) {
			found = append(found, name)
		}
	}
	return found
}

// completeArgument completes the argument of a command.
func (t *Terminal) completeArgument(name, begin string) {
	if t.values == nil || t.compose.at < len(t.compose.text) {
		return
	}
	found := t.values(name, begin)
	if common := commonBegin(found); len(common) > len(begin) {
		t.compose.insert(common[len(begin):], false)
	}
	if len(found) > 1 {
		t.hint, t.last.listed = Shown(strings.Join(found, " ")), true
	}
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

// edit opens the draft in the editor, or an answer. What comes meanwhile stays.
func (t *Terminal) edit() {
	before, asking := t.compose.sent(), t.asking
	text, err := t.editText(before, ".md")
	switch {
	case err != nil:
		t.hint = Shown(err.Error())
	case asking && !t.asking:
		t.hint = "the question is over"
	case asking:
		t.compose.set(text)
	default:
		t.edited(before, text)
	}
}

// edited replaces what the draft was, behind what was put before it meanwhile.
func (t *Terminal) edited(before, text string) {
	added, ok := strings.CutSuffix(t.drafted().sent(), before)
	if added = strings.TrimSuffix(added, "\n"); ok && added != "" {
		text = added + "\n" + text
	}
	t.drafted().set(text)
}

// editing counts the editors that have a terminal of this program, and edited is when the last of them
// gave it back.
var editing, lastEdited atomic.Int64

// interruptsLate is how long after an editor has ended an interrupt may still come from the system that was meant for
// it. Those that have come are known: see DropInterrupts.
const interruptsLate = time.Second

// DropInterrupts is called when an editor has ended, while Editing still says that there is one: it returns when the
// program has judged all interrupts that have come. It may hold nil.
var DropInterrupts atomic.Pointer[func()]

// Editing reports whether the person's editor has the terminal: an interrupt then means the editor.
func Editing() bool {
	return editing.Load() > 0 || time.Since(time.Unix(0, lastEdited.Load())) < interruptsLate
}

// besideEditor runs an editor while the rest of the program goes on.
func (t *Terminal) besideEditor(run func() error) error {
	editing.Add(1)
	t.mu.Unlock()
	defer func() {
		if drop := DropInterrupts.Load(); drop != nil {
			(*drop)()
		}
		t.mu.Lock()
		lastEdited.Store(time.Now().UnixNano())
		editing.Add(-1)
	}()
	return run()
}

// editText opens a text in the editor.
func (t *Terminal) editText(text, suffix string) (string, error) {
	if len(t.opts.Editor) == 0 {
		return "", ErrNoEditor
	}
	file, err := os.CreateTemp("", "antiphon-*"+suffix)
	if err != nil {
		return "", err
	}
	defer os.Remove(file.Name())
	_, err = file.WriteString(text)
	if err = errors.Join(err, file.Close()); err != nil {
		return "", err
	}
	err = t.away(func() error {
		cmd := exec.Command(t.opts.Editor[0], append(slices.Clone(t.opts.Editor[1:]), file.Name())...) //nolint:gosec,noctx // the person's own editor; the person ends it
		cmd.Stdin, cmd.Stdout, cmd.Stderr = t.opts.In, t.opts.Out, t.opts.Out
		return t.besideEditor(cmd.Run)
	})
	if err != nil {
		return "", err
	}
	edited, err := os.ReadFile(file.Name())
	return strings.TrimRight(strings.ToValidUTF8(string(edited), "\ufffd"), "\n"), err
}

// away gives the terminal to something else. If it is gone afterwards, that is as if it had gone before.
func (t *Terminal) away(do func() error) error {
	t.leave()
	t.restorer.say(paused)
	err := t.in.pause()
	if err == nil {
		err = do()
	}
	t.raw = append(t.raw, begin...)
	if again := t.in.resume(); again != nil {
		t.in.gone()
		err = errors.Join(err, again)
	}
	return err
}

// suspend stops the program, as ctrl+z does for others, until the shell continues it.
func (t *Terminal) suspend() {
	t.keep()
	if err := t.away(stopSelf); err != nil {
		t.hint = Shown(err.Error())
	}
}
