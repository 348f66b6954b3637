// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package tui

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// This file has the keys of vi, for the draft.

// viMode is what keys do to a draft.
type viMode int

const (
	viInsert viMode = iota
	viNormal
	viVisual
	viLines // visual, by lines
)

// vi is the state of vi's keys. Its zero value is in the mode that inserts.
type vi struct {
	mode      viMode
	keys      []string // of a command that is not complete
	anchor    int      // where the selection begins
	selected  string   // the draft in which it begins
	registers map[string]register
	sought    [2]string // the last of f F t T, and its character

	record, last []viKey // the keys of this command, and of the last change
	inserting    bool    // record goes on while text is inserted
	undos        int     // how many steps for undo there were before that
	replaying    bool
}

type viKey struct{ name, text string }

// register holds a text, with pastes in full, and whether it is whole lines.
type register struct {
	text  string
	lines bool
}

// name returns what the status line says.
func (v *vi) name(c *composer) string {
	v.current(c)
	name := [...]string{"", "NORMAL", "VISUAL", "VISUAL LINE"}[v.mode]
	if len(v.keys) > 0 {
		name += " " + strings.Join(v.keys, "")
	}
	return name
}

// current ends a selection if the draft is not the one any more in which it begins: keys that are not
// vi's, and what is sent meanwhile, change it.
func (v *vi) current(c *composer) {
	if (v.mode == viVisual || v.mode == viLines) && c.text != v.selected {
		v.mode, v.keys = viNormal, nil
	}
}

// key applies a key, and reports whether it is one of vi's.
func (v *vi) key(c *composer, name, text string) bool {
	v.current(c)
	if v.mode == viInsert {
		return v.keyInserting(c, name, text)
	}
	switch name {
	case "esc":
		waits := len(v.keys) > 0 || v.mode != viNormal
		v.mode, v.keys = viNormal, nil
		return waits
	case "ctrl+r":
		c.takeBack(&c.redo, &c.undo)
		v.keys = nil
		return true
	}
	if text = cmp.Or(viArrows[name], text); text == "" {
		return false
	}
	if len(v.keys) == 0 && !v.replaying {
		v.record = nil
	}
	if !v.replaying {
		v.record = append(v.record, viKey{name, text})
	}
	before, undos := c.text, len(c.undo)
	selected := v.selection(c)
	v.keys = append(v.keys, text)
	if v.run(c) {
		v.keys = nil
		if selected != nil && v.mode != viVisual && v.mode != viLines {
			v.record = append(selected, v.record...) // the change is one of as much from the cursor on
		}
		switch {
		case v.replaying:
		case v.mode == viInsert:
			v.inserting, v.undos = true, undos
		case c.text != before && text != "u":
			v.last = v.record
		}
	}
	v.settle(c)
	return true
}

// viArrows are the commands of keys that are not characters.
var viArrows = map[string]string{"left": "h", "backspace": "h", "right": "l", "down": "j", "up": "k", "home": "0", "end": "$"}

// keyInserting is key while text is inserted. Only esc is vi's then.
func (v *vi) keyInserting(c *composer, name, text string) bool {
	if v.inserting && !v.replaying {
		v.record = append(v.record, viKey{name, text})
	}
	if name != "esc" {
		return false
	}
	if v.inserting {
		v.last, v.inserting = v.record, false
		oneStep(c, v.undos)
	}
	v.mode, v.keys = viNormal, nil
	if c.at > c.lineBegin(c.at) {
		c.at = c.before(c.at)
	}
	return true
}

// selection returns the keys that select as much as is selected, from the cursor on, or nil.
func (v *vi) selection(c *composer) (keys []viKey) {
	from, to := min(v.anchor, c.at), max(v.anchor, c.at)
	n, first, step := 0, "v", " "
	switch v.mode {
	case viVisual:
		for ; from < to; from = c.after(from) {
			n++
		}
	case viLines:
		n, first, step = strings.Count(c.text[from:to], "\n"), "V", "j"
	default:
		return nil
	}
	keys = append(keys, viKey{first, first})
	if n > 0 {
		for _, digit := range strconv.Itoa(n) {
			keys = append(keys, viKey{string(digit), string(digit)})
		}
		keys = append(keys, viKey{step, step})
	}
	return keys
}

// settle keeps the cursor on a character.
func (v *vi) settle(c *composer) {
	if v.mode == viNormal && c.at > c.lineBegin(c.at) && c.at == c.lineEnd(c.at) {
		c.at = c.before(c.at)
	}
}

// run performs the command that the keys are, and reports false if it is not complete.
func (v *vi) run(c *composer) (done bool) {
	k := v.keys
	reg := ""
	if k[0] == `"` {
		if len(k) < 3 {
			return false
		}
		reg, k = k[1], k[2:]
	}
	count, counted, k := number(k)
	if len(k) == 0 {
		return false
	}
	if v.mode != viNormal {
		return v.visual(c, reg, count, counted, k)
	}
	if strings.Contains("dyc><", k[0]) {
		return v.operate(c, reg, count, counted, k)
	}
	at := c.at
	switch k[0] {
	case "i", "a", "I", "A", "o", "O":
		v.insert(c, k[0])
	case "x", "s", "X", "D", "C":
		v.erase(c, reg, count, k[0])
	case "S":
		return v.operate(c, reg, count, counted, []string{"c", "c"})
	case "Y":
		v.keep(reg, c, c.lineBegin(at), c.lineEnd(at), true)
	case "r":
		if len(k) < 2 {
			return false
		}
		if at < c.lineEnd(at) {
			c.change(false)
			c.text = c.text[:at] + k[1] + c.text[c.after(at):]
		}
	case "p", "P":
		for range count {
			v.put(c, reg, k[0] == "P")
		}
	case "u":
		c.takeBack(&c.undo, &c.redo)
	case ".":
		v.again(c)
	case "v":
		v.mode, v.anchor, v.selected = viVisual, at, c.text
	case "V":
		v.mode, v.anchor, v.selected = viLines, at, c.text
	case "j", "k":
		for range count {
			if !c.vertical(k[0] == "j") {
				c.browse(k[0] == "k")
			}
		}
	default:
		return v.move(c, count, counted, k)
	}
	return true
}

// erase deletes characters of the line, as many as count says or up to its end.
func (v *vi) erase(c *composer, reg string, count int, key string) {
	from, to := c.at, c.at
	switch key {
	case "D", "C":
		to = c.lineEnd(to)
	case "X":
		for range count {
			from = steps["h"](c, from)
		}
	default:
		for range count {
			to = steps["l"](c, to)
		}
	}
	v.cut(c, reg, from, to, false)
	if key == "s" || key == "C" {
		v.mode = viInsert
	}
}

// insert goes to the mode that inserts, at the place that the key says.
func (v *vi) insert(c *composer, key string) {
	v.mode = viInsert
	switch at := c.at; key {
	case "a":
		if at < c.lineEnd(at) {
			c.at = c.after(at)
		}
	case "I":
		c.at = textBegin(c, at)
	case "A":
		c.at = c.lineEnd(at)
	case "o":
		c.at = c.lineEnd(at)
		c.insert("\n", false)
	case "O":
		c.at = c.lineBegin(at)
		c.insert("\n", false)
		c.at = c.before(c.at)
	}
}

// number takes a count from keys. Without one it is 1.
func number(k []string) (count int, counted bool, rest []string) {
	n := 0
	for n < len(k) && k[n] >= "0" && k[n] <= "9" && len(k[n]) == 1 && (n > 0 || k[n] != "0") {
		n++
	}
	count, _ = strconv.Atoi(strings.Join(k[:n], ""))
	return min(max(1, count), 9999), n > 0, k[n:]
}

// again performs the last change again.
func (v *vi) again(c *composer) {
	if v.replaying || len(v.last) == 0 {
		return
	}
	v.replaying, v.keys = true, nil
	undos := len(c.undo)
	for _, k := range v.last {
		if !v.key(c, k.name, k.text) {
			c.key(k.name, k.text)
		}
	}
	v.replaying, v.mode = false, viNormal
	oneStep(c, undos)
}

// oneStep makes one step for undo of all since there were so many.
func oneStep(c *composer, undos int) {
	c.undo = c.undo[:min(len(c.undo), undos+1)]
}

// operate performs an operator with a motion or a text object.
func (v *vi) operate(c *composer, reg string, count int, counted bool, k []string) (done bool) {
	op := k[0]
	more, again, k := number(k[1:])
	if count, counted = count*more, counted || again; len(k) == 0 {
		return false
	}
	at := c.at
	var from, to int
	lines := false
	switch {
	case k[0] == op:
		from, to, lines = c.lineBegin(at), c.lineEnd(at), true
		for range count - 1 {
			to = c.lineEnd(min(to+1, len(c.text)))
		}
	case k[0] == "i" || k[0] == "a":
		if len(k) < 2 {
			return false
		}
		var ok bool
		if from, to, lines, ok = object(c, k[0] == "a", k[1]); !ok {
			return true
		}
	case op == "c" && k[0] == "w" && at < len(c.text) && class(c, at, false) != 0:
		k = []string{"e"} // as vi does
		fallthrough
	default:
		there, is := v.motion(c, count, counted, k)
		if is != somewhere {
			return is != incomplete
		}
		from, to, lines = min(at, there.to), max(at, there.to), there.lines
		switch {
		case lines:
			from, to = c.lineBegin(from), c.lineEnd(to)
		case there.inclusive:
			to = c.after(to)
		case k[0] == "w" && strings.Contains(c.text[from:to], "\n") && to == textBegin(c, to): // dw of the last word of a line
			to = c.lineEnd(from)
		}
	}
	v.apply(c, op, reg, from, to, lines)
	return true
}

// apply performs an operator on a part of the draft.
func (v *vi) apply(c *composer, op, reg string, from, to int, lines bool) {
	switch op {
	case "y":
		v.keep(reg, c, from, to, lines)
		c.at = from
	case "d":
		v.cut(c, reg, from, to, lines)
	case "c":
		v.keep(reg, c, from, to, lines)
		c.remove(from, to, false)
		c.at, v.mode = from, viInsert
	case ">", "<":
		v.shift(c, op == ">", from, to)
	}
}

// shift moves lines by two columns.
func (v *vi) shift(c *composer, right bool, from, to int) {
	from, to = c.lineBegin(from), c.lineEnd(to)
	lines := strings.Split(c.text[from:to], "\n")
	for i, line := range lines {
		switch {
		case !right:
			lines[i] = strings.TrimPrefix(strings.TrimPrefix(line, " "), " ")
		case line != "":
			lines[i] = "  " + line
		}
	}
	c.change(false)
	c.text = c.text[:from] + strings.Join(lines, "\n") + c.text[to:]
	c.at = textBegin(c, from)
}

// visual performs a command on the selection.
func (v *vi) visual(c *composer, reg string, count int, counted bool, k []string) (done bool) {
	from, to := min(v.anchor, c.at), max(v.anchor, c.at)
	lines := v.mode == viLines
	switch {
	case lines:
		from, to = c.lineBegin(from), c.lineEnd(to)
	case to < len(c.text):
		to = c.after(to)
	}
	op := k[0]
	switch op {
	case "v", "V":
		other := map[string]viMode{"v": viVisual, "V": viLines}[op]
		if v.mode == other {
			other = viNormal
		}
		v.mode = other
		return true
	case "x", "X", "D":
		op = "d"
	case "s", "C":
		op = "c"
	case "Y":
		op = "y"
	case "p", "P":
		held := v.registers[reg]
		v.mode = viNormal
		c.remove(from, to, false)
		c.insert(c.fold(held.text), false)
		return true
	case "j", "k":
		for range count {
			c.vertical(op == "j")
		}
		return true
	case "i", "a":
		if len(k) < 2 {
			return false
		}
		if from, to, _, ok := object(c, op == "a", k[1]); ok && to > from {
			v.anchor, c.at = from, c.before(to)
		}
		return true
	}
	if strings.Contains("dyc><", op) {
		v.mode = viNormal
		v.apply(c, op, reg, from, to, lines)
		return true
	}
	return v.move(c, count, counted, k)
}

// move moves the cursor, and reports false if the motion is not complete.
func (v *vi) move(c *composer, count int, counted bool, k []string) (done bool) {
	there, is := v.motion(c, count, counted, k)
	if is == somewhere {
		c.at = there.to
	}
	return is != incomplete
}

// keep puts a part of the draft into a register.
func (v *vi) keep(reg string, c *composer, from, to int, lines bool) {
	if v.registers == nil {
		v.registers = map[string]register{}
	}
	held := register{c.whole(c.text[from:to]), lines}
	v.registers[reg], v.registers[""] = held, held
	c.killed = held.text
}

// cut deletes a part of the draft and keeps it.
func (v *vi) cut(c *composer, reg string, from, to int, lines bool) {
	if from == to && !lines {
		return
	}
	v.keep(reg, c, from, to, lines)
	if lines {
		switch {
		case to < len(c.text):
			to++
		case from > 0:
			from--
		}
	}
	c.remove(from, to, false)
	if c.at = min(c.at, len(c.text)); lines {
		c.at = textBegin(c, c.at)
	}
}

// put inserts a register behind or before the cursor.
func (v *vi) put(c *composer, reg string, before bool) {
	held, there := v.registers[reg]
	if !there {
		return
	}
	held.text = c.fold(held.text)
	switch {
	case held.lines && before:
		c.at = c.lineBegin(c.at)
		c.insert(held.text+"\n", false)
		c.at = textBegin(c, c.at-len(held.text)-1)
	case held.lines:
		c.at = c.lineEnd(c.at)
		c.insert("\n"+held.text, false)
		c.at = textBegin(c, c.at-len(held.text))
	default:
		if !before && c.at < c.lineEnd(c.at) {
			c.at = c.after(c.at)
		}
		c.insert(held.text, false)
		if held.text != "" {
			c.at = c.before(c.at)
		}
	}
}

// viKey applies a key by the rules of vi, and reports false if it means what it means without them.
func (t *Terminal) viKey(name, text string) bool {
	if t.line != nil {
		t.lineKey(name, text)
		return true
	}
	v := &t.vi
	if v.mode != viNormal {
		t.full.selects = false
	}
	switch {
	case name == "esc" && t.full.selects:
		t.full.selects = false
		return true
	case name == "esc" && v.mode == viInsert && t.stop != nil && t.compose.text == "":
		return false // it stops the work
	case name == "enter" && !t.pending:
		v.mode, v.keys, v.inserting = viInsert, nil, false
		return false
	case name == "up" && v.mode == viNormal && t.compose.text == "" && len(t.queue) > 0:
		return false // it takes back what is queued
	case v.mode == viNormal && len(v.keys) == 0 && text == ":":
		t.line, t.lineMark, t.hint = new(string), text, ""
		return true
	case v.mode == viNormal && len(v.keys) == 1 && v.keys[0]+text == "gg" && t.full.on && t.compose.text == "":
		v.keys, t.full.top, t.full.held, t.full.line = nil, place{line: t.past.begin()}, true, t.past.begin()
		return true
	case v.mode == viNormal && len(v.keys) == 0 && t.full.on && (t.compose.text == "" || text == "/" || text == "?") && t.transcriptKey(text):
		return true
	case v.mode == viNormal && len(v.keys) == 0 && (text == "/" || text == "?"):
		t.find = find{on: true, before: state{t.compose.text, t.compose.at}, at: len(t.compose.history)}
		return true
	}
	if !v.key(&t.compose, name, text) {
		return false
	}
	t.hint, t.last = "", lastKey{}
	return true
}

// lineKey applies a key to the command line.
func (t *Terminal) lineKey(name, text string) {
	line := *t.line
	switch {
	case name == "enter":
		t.line = nil
		if t.lineMark == ":" {
			t.perform(strings.TrimSpace(line))
			break
		}
		if t.hint = ""; line != "" {
			t.sought.text = line
		}
		if t.sought.back = t.lineMark == "?"; t.sought.text != "" {
			t.seek(t.sought.back)
		}
	case name == "esc", name == "ctrl+c", name == "backspace" && line == "":
		t.line = nil
	case name == "backspace":
		before := composer{text: line}
		line = line[:before.before(len(line))]
		t.line = &line
	case text != "":
		line += text
		t.line = &line
	}
}

// perform performs a line of the command line: commands of the program are those behind a slash.
func (t *Terminal) perform(line string) {
	t.hint = ""
	typed := line // which is there again if a question has come that the person may not have read
	switch line {
	case "", "noh":
	case "w":
		t.vi.mode = viInsert
		t.enter()
	case "q", "q!":
		t.depart()
	case "wq", "x":
		if t.tooSoon() {
			t.line = &typed
			return
		}
		t.vi.mode = viInsert
		t.enter()
		t.queue = append(t.queue, "/quit")
		t.tellReady()
	case "d":
		found := t.foundMessage()
		if found == "" {
			t.hint = "choose a message first, with [ or ] in full screen; Ctrl-O chooses a call, and d there takes it out"
			return
		}
		if t.opts.Drop != "" && !t.submit(t.opts.Drop+" "+saidMark+found, false) && t.pending {
			t.line = &typed
		}
	case "e":
		line = strings.TrimSpace(strings.TrimPrefix(t.opts.Back, "/") + " " + t.foundMessage())
		fallthrough
	default:
		name, rest, _ := strings.Cut(line, " ")
		if name == "set" {
			option, value, _ := strings.Cut(strings.TrimSpace(rest), "=")
			if !slices.Contains(t.opts.Set, option) {
				t.hint = ":set NAME=VALUE; names are " + strings.Join(t.opts.Set, ", ")
				return
			}
			name, line = option, strings.TrimSpace(option+" "+value)
		}
		for _, c := range t.opts.Commands {
			if c.Name == name || "/"+name == t.opts.Back {
				if !t.submit("/"+line, false) && t.pending {
					t.line = &typed
				}
				return
			}
		}
		t.hint = Shown("there is no command :" + name)
	}
}
