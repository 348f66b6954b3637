// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package tui

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"
)

// composer is the draft of a prompt: a text of any number of lines and a cursor, which
// moves by characters as people see them.
type composer struct {
	text string
	at   int // the cursor, as an offset in bytes

	undo, redo []state
	typing     bool     // the last change was a typed character, which undo takes back with those before it
	killed     string   // what ctrl+y puts back, with pastes in full: it outlives their marks
	older      []string // what was deleted before, newest last, for alt+y
	put        []int    // where the last ctrl+y began, and how far back alt+y went; nil after other keys
	wasPut     []int    // the same before this key
	mark       int      // where ctrl+space was, plus one; 0 means nowhere

	history []string // what was sent, oldest first
	shown   int      // how far back the history is shown, from 1; 0 means the draft
	draft   state    // what was written before the history was shown

	pastes []paste  // long texts that the draft shows as a mark
	known  []string // those of drafts before, newest last, which are folded again
}

type state struct {
	text string
	at   int
}

// paste is a long text and its mark in the draft.
type paste struct{ mark, text string }

const (
	// A paste of more lines or characters than these is shown as a mark.
	foldLines, foldBytes = 6, 1000
	// A draft that comes from elsewhere with more bytes than these is shown as a mark.
	foldDraft = 16 << 10
	// mostKnown is the number of pastes that are known again.
	mostKnown = 20
	// mostUndo is the number of changes that can be taken back.
	mostUndo = 200
)

// sent returns the text of the draft with all pastes in full.
func (c *composer) sent() string {
	return c.whole(c.text)
}

// whole returns a text with all pastes in full. A mark in the text of a paste is text.
func (c *composer) whole(text string) string {
	var pairs []string
	for _, p := range c.pastes {
		pairs = append(pairs, p.mark, p.text)
	}
	return strings.NewReplacer(pairs...).Replace(text)
}

// unmarked returns the draft with blanks in place of the marks of pastes, so that places stay the same.
func (c *composer) unmarked() string {
	text := c.text
	for _, p := range c.pastes {
		text = strings.ReplaceAll(text, p.mark, strings.Repeat(" ", len(p.mark)))
	}
	return text
}

// written returns what the person has written and not sent: also while the history is shown.
func (c *composer) written() string {
	if c.shows() {
		return c.whole(c.draft.text)
	}
	return c.sent()
}

// shows reports whether a text of the history is in the place of the draft, and was not changed.
func (c *composer) shows() bool {
	return c.shown > 0 && c.sent() == c.history[len(c.history)-c.shown]
}

// unshow goes back from the history to the draft.
func (c *composer) unshow() {
	if c.shows() {
		c.restore(c.draft)
	}
}

// resume makes another draft this one, and keeps the history and the deleted texts, which are newer.
func (c *composer) resume(draft composer) {
	if draft.shown > 0 {
		draft.shown += len(c.history) - len(draft.history)
	}
	draft.history, draft.killed, draft.older, draft.known = c.history, c.killed, c.older, c.known
	*c = draft
}

// set replaces the draft.
func (c *composer) set(text string) {
	c.change(false)
	c.text, c.shown, c.mark = c.fold(text), 0, 0
	c.at = len(c.text)
}

// restore makes a draft that was replaced the draft again, with its marks of pastes as they were.
func (c *composer) restore(before state) {
	c.change(false)
	c.text, c.at, c.shown, c.mark = before.text, before.at, 0, 0
}

// fold returns a text with marks in place of what was pasted before, also of the whole if it is very long: what
// a person recalls, edits or gets back is drawn with each key.
func (c *composer) fold(text string) string {
	if len(text) <= foldBytes && strings.Count(text, "\n") < foldLines {
		return text
	}
	for _, known := range c.known {
		if strings.Contains(text, known) {
			text = strings.ReplaceAll(text, known, c.marked(known))
		}
	}
	if len(text) > foldDraft {
		return c.marked(c.whole(text))
	}
	return text
}

// marked returns the mark of a long text in the draft.
func (c *composer) marked(text string) string {
	for _, p := range c.pastes {
		if p.text == text {
			return p.mark
		}
	}
	mark := fmt.Sprintf("[paste %d: %d lines, %d characters]", len(c.pastes)+1, strings.Count(strings.TrimSuffix(text, "\n"), "\n")+1, utf8.RuneCountInString(text))
	c.pastes = append(c.pastes, paste{mark, text})
	return mark
}

// clear empties the draft, which cannot be taken back.
func (c *composer) clear() {
	c.text, c.at, c.undo, c.redo, c.shown, c.pastes, c.mark = "", 0, nil, nil, 0, nil, 0
}

// remember adds a sent text to the history.
func (c *composer) remember(text string) {
	if n := len(c.history); n == 0 || c.history[n-1] != text {
		c.history = append(c.history, text)
	}
	c.shown = 0
}

// change notes the state before a change. Typed characters are one change until a blank.
func (c *composer) change(typed bool) {
	if !typed || !c.typing {
		c.undo = append(c.undo, state{c.text, c.at})
		if len(c.undo) > mostUndo {
			c.undo = slices.Delete(c.undo, 0, 1)
		}
	}
	c.redo, c.typing = nil, typed
}

func (c *composer) insert(text string, typed bool) {
	c.change(typed && text != " ")
	if c.mark-1 > c.at {
		c.mark += len(text)
	}
	c.text = c.text[:c.at] + text + c.text[c.at:]
	c.at += len(text)
}

// paste inserts a text. A long one is shown as a mark, and sent in full.
func (c *composer) paste(text string) {
	text = strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\r", "\n")
	lines := strings.Count(text, "\n") + 1
	if lines <= foldLines && len(text) <= foldBytes {
		c.insert(text, false)
		return
	}
	if !slices.Contains(c.known, text) {
		if c.known = append(c.known, text); len(c.known) > mostKnown {
			c.known = slices.Delete(c.known, 0, 1)
		}
	}
	c.insert(c.marked(text), false)
}

// remove deletes from a place to another.
func (c *composer) remove(from, to int, keep bool) {
	if from >= to {
		return
	}
	c.change(false)
	if keep {
		c.kill(c.whole(c.text[from:to]))
	}
	if at := c.mark - 1; at > from {
		c.mark = max(from, at-(to-from)) + 1
	}
	c.text = c.text[:from] + c.text[to:]
	c.at = from
}

// mostKilled is the number of deleted texts that alt+y goes through.
const mostKilled = 20

// kill keeps a deleted text for ctrl+y.
func (c *composer) kill(text string) {
	if c.older = append(c.older, text); len(c.older) > mostKilled {
		c.older = slices.Delete(c.older, 0, 1)
	}
	c.killed = text
}

// yank puts back what was deleted last.
func (c *composer) yank() {
	c.put = []int{c.at, 0}
	c.insert(c.fold(c.killed), false)
}

// yankOlder replaces what the last key has put back by what was deleted before it.
func (c *composer) yankOlder() {
	if c.wasPut == nil || len(c.older) == 0 {
		return
	}
	begin, back := c.wasPut[0], (c.wasPut[1]+1)%len(c.older)
	c.remove(begin, c.at, false)
	c.insert(c.fold(c.older[len(c.older)-1-back]), false)
	c.put = []int{begin, back}
}

// region returns what is between the mark and the cursor. It reports false without a mark, also if another
// text has taken the place of the one that it was in.
func (c *composer) region() (from, to int, ok bool) {
	if c.mark == 0 || c.mark-1 > len(c.text) || c.mark-1 < len(c.text) && !utf8.RuneStart(c.text[c.mark-1]) {
		return 0, 0, false
	}
	return min(c.mark-1, c.at), max(c.mark-1, c.at), true
}

// before returns the place one character before another, and after the one behind it. A
// mark of a paste counts as one character.
func (c *composer) before(at int) int {
	for _, p := range c.pastes {
		if strings.HasSuffix(c.text[:at], p.mark) {
			return at - len(p.mark)
		}
	}
	line := strings.LastIndexByte(c.text[:at], '\n')
	if line == at-1 {
		return max(0, line)
	}
	last := line + 1
	for i := last; i < at; {
		last = i
		first, _ := cluster(c.text[i:])
		i += max(1, len(first))
	}
	return last
}

func (c *composer) after(at int) int {
	if at >= len(c.text) {
		return at
	}
	for _, p := range c.pastes {
		if strings.HasPrefix(c.text[at:], p.mark) {
			return at + len(p.mark)
		}
	}
	first, _ := cluster(c.text[at:])
	return at + max(1, len(first))
}

// wordBefore and wordAfter return the places of words.
func (c *composer) wordBefore(at int) int {
	for at > 0 && !isWord(c.text[c.before(at):at]) {
		at = c.before(at)
	}
	for at > 0 && isWord(c.text[c.before(at):at]) {
		at = c.before(at)
	}
	return at
}

func (c *composer) wordAfter(at int) int {
	for at < len(c.text) && !isWord(c.text[at:c.after(at)]) {
		at = c.after(at)
	}
	for at < len(c.text) && isWord(c.text[at:c.after(at)]) {
		at = c.after(at)
	}
	return at
}

func isWord(s string) bool {
	return strings.ContainsFunc(s, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) })
}

// lineBegin and lineEnd return the ends of the line of a place.
func (c *composer) lineBegin(at int) int { return strings.LastIndexByte(c.text[:at], '\n') + 1 }

func (c *composer) lineEnd(at int) int {
	if n := strings.IndexByte(c.text[at:], '\n'); n >= 0 {
		return at + n
	}
	return len(c.text)
}

// vertical moves the cursor by a line, and reports false at the first or last one.
func (c *composer) vertical(down bool) bool {
	begin := c.lineBegin(c.at)
	col := columns(c.text[begin:c.at])
	to := begin - 1
	if down {
		to = c.lineEnd(c.at) + 1
	}
	if to < 0 || to > len(c.text) {
		return false
	}
	at, end := c.lineBegin(to), c.lineEnd(to)
	for begin := at; at < end && columns(c.text[begin:at]) < col; {
		at = c.after(at)
	}
	c.at, c.typing = at, false
	return true
}

// browse shows an older or newer text of the history.
func (c *composer) browse(older bool) {
	to := c.shown - 1
	if older {
		to = c.shown + 1
	}
	if to < 0 || to > len(c.history) {
		return
	}
	if c.shown == 0 {
		c.draft = state{c.text, c.at}
	}
	c.change(false)
	c.mark = 0
	if c.shown = to; to == 0 {
		c.text, c.at = c.draft.text, c.draft.at
		return
	}
	c.text = c.fold(c.history[len(c.history)-to])
	c.at = len(c.text)
}

// takeBack undoes the last change, or does it again.
func (c *composer) takeBack(from, to *[]state) {
	n := len(*from)
	if n == 0 {
		return
	}
	*to = append(*to, state{c.text, c.at})
	last := (*from)[n-1]
	*from = (*from)[:n-1]
	c.text, c.at, c.typing, c.mark = last.text, last.at, false, 0
}

// key applies a key, and reports whether it is one of the composer's.
func (c *composer) key(name, text string) bool {
	typing := c.typing
	c.typing, c.wasPut, c.put = false, c.put, nil
	if act := draftActs[name]; act != nil {
		act(c)
		return true
	}
	c.typing = typing
	if text == "" {
		return false
	}
	c.insert(text, true)
	return true
}

// What follows is what single keys do: see keyRows.

func (c *composer) newLine()      { c.insert("\n", false) }
func (c *composer) deleteBefore() { c.remove(c.before(c.at), c.at, false) }
func (c *composer) deleteNext()   { c.remove(c.at, c.after(c.at), false) }
func (c *composer) left()         { c.at = c.before(c.at) }
func (c *composer) right()        { c.at = c.after(c.at) }
func (c *composer) leftWord()     { c.at = c.wordBefore(c.at) }
func (c *composer) rightWord()    { c.at = c.wordAfter(c.at) }
func (c *composer) toLineBegin()  { c.at = c.lineBegin(c.at) }
func (c *composer) toLineEnd()    { c.at = c.lineEnd(c.at) }
func (c *composer) killToBegin()  { c.remove(c.lineBegin(c.at), c.at, true) }
func (c *composer) killNextWord() { c.remove(c.at, c.wordAfter(c.at), true) }
func (c *composer) takeBackOne()  { c.takeBack(&c.undo, &c.redo) }

func (c *composer) up() {
	if !c.vertical(false) {
		c.browse(true)
	}
}

func (c *composer) down() {
	if !c.vertical(true) {
		c.browse(false)
	}
}

func (c *composer) killToEnd() {
	end := c.lineEnd(c.at)
	if end == c.at {
		end = c.after(c.at)
	}
	c.remove(c.at, end, true)
}

func (c *composer) killWord() {
	c.remove(c.wordBefore(c.at), c.at, true)
	c.mark = 0
}

// killRegion deletes from the mark to the cursor, or a word if there is no mark.
func (c *composer) killRegion() {
	from, to, marked := c.region()
	if !marked {
		c.killWord()
		return
	}
	c.remove(from, to, true)
	c.mark = 0
}

func (c *composer) copyRegion() {
	if from, to, marked := c.region(); marked {
		c.kill(c.whole(c.text[from:to]))
		c.mark = 0
	}
}

// rows returns the draft as rows of at most width columns, at most most of them, and the
// place of the cursor in them. The rows around the cursor are shown.
func (c *composer) rows(prompt string, width, most int) (rows []string, row, col int) {
	indent := columns(prompt)
	limit := max(1, width-indent)
	begin := 0
	for i, line := range strings.Split(c.text, "\n") {
		mark := strings.Repeat(" ", indent)
		if i == 0 {
			mark = prompt
		}
		parts := wrapped(Shown(line), limit)
		if c.at >= begin && c.at <= begin+len(line) {
			to := wrapped(Shown(line[:c.at-begin]), limit)
			row, col = len(rows)+len(to)-1, ansi.StringWidth(to[len(to)-1]) // as most terminals count
			if columns(to[len(to)-1]) >= limit {                            // the cursor stands behind a full row
				if row, col = row+1, 0; len(to) == len(parts) {
					parts = append(parts, "")
				}
			}
			col += indent
		}
		for n, part := range parts {
			if n > 0 {
				mark = strings.Repeat(" ", indent)
			}
			rows = append(rows, mark+part)
		}
		begin += len(line) + 1
	}
	if len(rows) > most {
		from := min(max(0, row-most+1), len(rows)-most)
		rows, row = rows[from:from+most], row-from
	}
	return rows, row, col
}
