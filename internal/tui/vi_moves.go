// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package tui

import (
	"strings"
	"unicode"
)

// This file has where the keys of vi go: motions, words, searches and text objects.

// textBegin returns the first place of a line that is not blank.
func textBegin(c *composer, at int) int {
	at = c.lineBegin(min(at, len(c.text)))
	for end := c.lineEnd(at); at < end && (c.text[at] == ' ' || c.text[at] == '\t'); {
		at++
	}
	return at
}

// class returns 0 for a blank, 1 for a character of a word and 2 for others; with big also 1.
func class(c *composer, at int, big bool) int {
	switch one := c.text[at:c.after(at)]; {
	case strings.TrimFunc(one, unicode.IsSpace) == "":
		return 0
	case big || isWord(one) || one == "_":
		return 1
	}
	return 2
}

// target is where a motion goes.
type target struct {
	to        int
	inclusive bool // an operator takes the character there, too
	lines     bool // an operator takes whole lines
}

// outcome says what the keys of a motion are.
type outcome int

const (
	incomplete outcome = iota
	nowhere            // there is no such motion, or no such place
	somewhere
)

// there returns the outcome of a search.
func there(found bool) outcome {
	if found {
		return somewhere
	}
	return nowhere
}

// motion returns where a motion goes.
func (v *vi) motion(c *composer, count int, counted bool, k []string) (target, outcome) {
	name, at := k[0], target{to: c.at}
	switch name {
	case "f", "F", "t", "T":
		if len(k) < 2 {
			return at, incomplete
		}
		v.sought = [2]string{name, k[1]}
		return v.seek(c, count, false, false)
	case ";", ",":
		return v.seek(c, count, name == ",", true)
	case "g":
		if len(k) < 2 {
			return at, incomplete
		}
		return target{to: nthLine(c, count), lines: true}, there(k[1] == "g")
	case "G":
		if !counted {
			return target{to: textBegin(c, len(c.text)), lines: true}, somewhere
		}
		return target{to: nthLine(c, count), lines: true}, somewhere
	case "%":
		to, found := match(c)
		return target{to: to, inclusive: true}, there(found)
	case "j", "k": // of an operator
		return rows(c, count, name == "j")
	case "$":
		for range count - 1 {
			at.to = min(c.lineEnd(at.to)+1, len(c.text))
		}
		at.to = c.lineEnd(at.to)
		return at, somewhere
	}
	step := steps[name]
	if step == nil {
		return at, nowhere
	}
	for range count {
		at.to = step(c, at.to)
	}
	at.inclusive = name == "e" || name == "E"
	return at, somewhere
}

// steps are the motions that a count repeats.
var steps = map[string]func(c *composer, at int) int{
	"h": func(c *composer, at int) int {
		if at > c.lineBegin(at) {
			return c.before(at)
		}
		return at
	},
	"l": func(c *composer, at int) int {
		if at < c.lineEnd(at) {
			return c.after(at)
		}
		return at
	},
	" ": func(c *composer, at int) int { return c.after(at) },
	"w": func(c *composer, at int) int { return nextWord(c, at, false) },
	"W": func(c *composer, at int) int { return nextWord(c, at, true) },
	"b": func(c *composer, at int) int { return wordBegin(c, at, false) },
	"B": func(c *composer, at int) int { return wordBegin(c, at, true) },
	"e": func(c *composer, at int) int { return wordEnd(c, at, false) },
	"E": func(c *composer, at int) int { return wordEnd(c, at, true) },
	"0": func(c *composer, at int) int { return c.lineBegin(at) },
	"^": textBegin,
	"}": func(c *composer, at int) int {
		if i := strings.Index(c.text[at:], "\n\n"); i >= 0 {
			return at + i + 1
		}
		return len(c.text)
	},
	"{": func(c *composer, at int) int {
		if i := strings.LastIndex(c.text[:at], "\n\n"); i >= 0 {
			return i + 1
		}
		return 0
	},
}

// rows goes whole lines down or up.
func rows(c *composer, count int, down bool) (target, outcome) {
	at := target{to: c.at, lines: true}
	for range count {
		switch {
		case down && c.lineEnd(at.to) == len(c.text), !down && c.lineBegin(at.to) == 0:
			return at, nowhere
		case down:
			at.to = c.lineEnd(at.to) + 1
		default:
			at.to = c.lineBegin(at.to) - 1
		}
	}
	return at, somewhere
}

// nthLine returns the place of the text of a line, from 1.
func nthLine(c *composer, n int) int {
	at := 0
	for range n - 1 {
		if c.lineEnd(at) < len(c.text) {
			at = c.lineEnd(at) + 1
		}
	}
	return textBegin(c, at)
}

func nextWord(c *composer, at int, big bool) int {
	if at >= len(c.text) {
		return at
	}
	for was := class(c, at, big); at < len(c.text) && was != 0 && class(c, at, big) == was; {
		at = c.after(at)
	}
	for at < len(c.text) && class(c, at, big) == 0 {
		at = c.after(at)
	}
	return at
}

func wordEnd(c *composer, at int, big bool) int {
	next := c.after(at)
	for next < len(c.text) && class(c, next, big) == 0 {
		next = c.after(next)
	}
	if next >= len(c.text) {
		return max(at, c.before(len(c.text)))
	}
	for at = next; ; at = next {
		if next = c.after(at); next >= len(c.text) || class(c, next, big) != class(c, at, big) {
			return at
		}
	}
}

func wordBegin(c *composer, at int, big bool) int {
	for at > 0 && class(c, c.before(at), big) == 0 {
		at = c.before(at)
	}
	if at == 0 {
		return 0
	}
	for was := class(c, c.before(at), big); at > 0 && class(c, c.before(at), big) == was; {
		at = c.before(at)
	}
	return at
}

// seek goes to the character of the last f F t T, within the line. If it goes again beside a character, the one
// beside the cursor does not count.
func (v *vi) seek(c *composer, count int, reverse, again bool) (target, outcome) {
	kind, want := v.sought[0], v.sought[1]
	if kind == "" {
		return target{to: c.at}, nowhere
	}
	forward := kind == "f" || kind == "t"
	if reverse {
		forward = !forward
	}
	at, begin, end := c.at, c.lineBegin(c.at), c.lineEnd(c.at)
	if again && strings.Contains("tT", kind) {
		if next := c.after(at); forward && next < end && strings.HasPrefix(c.text[next:], want) {
			at = next
		} else if last := c.before(at); !forward && at > begin && strings.HasPrefix(c.text[last:], want) {
			at = last
		}
	}
	for n := 0; n < count; {
		switch {
		case forward && c.after(at) < end && at < end:
			at = c.after(at)
		case !forward && at > begin:
			at = c.before(at)
		default:
			return target{to: c.at}, nowhere
		}
		if strings.HasPrefix(c.text[at:], want) {
			n++
		}
	}
	if kind == "t" || kind == "T" {
		if forward {
			at = c.before(at)
		} else {
			at = c.after(at)
		}
	}
	return target{to: at, inclusive: forward}, somewhere
}

const brackets = "()[]{}"

// match returns the place of the bracket that belongs to the next one in the line.
func match(c *composer) (to int, found bool) {
	at, text := c.at, c.unmarked()
	for end := c.lineEnd(at); at < end && strings.IndexByte(brackets, text[at]) < 0; {
		at = c.after(at)
	}
	if at >= len(text) || strings.IndexByte(brackets, text[at]) < 0 {
		return c.at, false
	}
	return partner(text, at)
}

// partner returns the place of the bracket that belongs to the one at a place.
func partner(text string, at int) (to int, found bool) {
	i := strings.IndexByte(brackets, text[at])
	own, other := brackets[i], brackets[i^1]
	step := 1 - i%2*2
	depth := 0
	for to = at; to >= 0 && to < len(text); to += step {
		switch text[to] {
		case own:
			depth++
		case other:
			if depth--; depth == 0 {
				return to, true
			}
		}
	}
	return at, false
}

// object returns the part of the draft that a text object is, and whether it is whole lines.
func object(c *composer, around bool, name string) (from, to int, lines, ok bool) {
	switch name {
	case "w", "W":
		from, to, ok = wordObject(c, around, name == "W")
		return from, to, false, ok
	case "p":
		from, to = paragraphObject(c, around)
		return from, to, true, true
	case `"`, "'", "`":
		from, to, ok = quotedObject(c, around, name)
		return from, to, false, ok
	}
	name = map[string]string{"b": "(", "B": "{"}[name] + name
	if i := strings.IndexByte(brackets, name[0]); i >= 0 {
		from, to, ok = bracketObject(c, around, brackets[i&^1])
		return from, to, false, ok
	}
	return c.at, c.at, false, false
}

// wordObject returns the word at the cursor, around with the blanks behind it, or else before it.
func wordObject(c *composer, around, big bool) (from, to int, ok bool) {
	at := c.at
	if at >= len(c.text) {
		return at, at, false
	}
	of := class(c, at, big)
	from, to = at, c.after(at)
	for from > c.lineBegin(at) && class(c, c.before(from), big) == of {
		from = c.before(from)
	}
	for to < c.lineEnd(at) && class(c, to, big) == of {
		to = c.after(to)
	}
	if around {
		end := to
		for to < c.lineEnd(at) && class(c, to, big) == 0 {
			to = c.after(to)
		}
		for to == end && from > c.lineBegin(at) && class(c, c.before(from), big) == 0 {
			from = c.before(from)
		}
	}
	return from, to, true
}

// paragraphObject returns the lines up to empty ones, around with one of these.
func paragraphObject(c *composer, around bool) (from, to int) {
	if from = strings.LastIndex(c.text[:c.lineEnd(c.at)], "\n\n"); from < 0 {
		from = 0
	} else {
		from += 2
	}
	if to = strings.Index(c.text[from:], "\n\n"); to < 0 {
		return from, len(c.text)
	}
	if to += from; around {
		to++
	}
	return from, to
}

// quotedObject returns what is in quotes in the line, at the cursor or behind it.
func quotedObject(c *composer, around bool, quote string) (from, to int, ok bool) {
	begin, line := c.lineBegin(c.at), c.text[c.lineBegin(c.at):c.lineEnd(c.at)]
	for next := 0; ; {
		i := strings.Index(line[next:], quote)
		if i < 0 {
			return c.at, c.at, false
		}
		i += next
		j := strings.Index(line[i+1:], quote)
		if j < 0 {
			return c.at, c.at, false
		}
		j += i + 1
		if begin+j < c.at {
			next = j + 1
			continue
		}
		if around {
			return begin + i, begin + j + 1, true
		}
		return begin + i + 1, begin + j, true
	}
}

// bracketObject returns what is in the innermost brackets around the cursor that opens opens.
func bracketObject(c *composer, around bool, opens byte) (from, to int, ok bool) {
	text := c.unmarked()
	for from = min(c.at, len(text)-1); from >= 0; from-- {
		if text[from] != opens {
			continue
		}
		if to, ok = partner(text, from); ok && to >= c.at {
			if around {
				return from, to + 1, true
			}
			return from + 1, to, true
		}
	}
	return c.at, c.at, false
}
