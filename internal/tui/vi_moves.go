// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package tui

import (
	"strings"
	"unicode"
)

// This file has where the keys of vi go: motions, words, searches and text objects.

// first returns the first place of a line that is not blank.
func (v *vi) first(c *composer, at int) int {
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

// motion returns where a motion goes, whether an operator takes the character there, and whether it
// takes whole lines. ok is nil if the keys are not complete, and false if there is no such place.
func (v *vi) motion(c *composer, count int, counted bool, k []string) (to int, inclusive, lines bool, ok *bool) {
	yes, no := true, false
	to = c.at
	name := k[0]
	switch name {
	case "f", "F", "t", "T", ";", ",":
		if strings.Contains("fFtT", name) {
			if len(k) < 2 {
				return to, false, false, nil
			}
			v.sought = [2]string{name, k[1]}
		}
		to, inclusive, found := v.seek(c, count, name == ",", name == "," || name == ";")
		if !found {
			return to, false, false, &no
		}
		return to, inclusive, false, &yes
	case "g":
		if len(k) < 2 {
			return to, false, false, nil
		}
		if k[1] != "g" {
			return to, false, false, &no
		}
		return v.line(c, count), false, true, &yes
	case "G":
		if !counted {
			return v.first(c, len(c.text)), false, true, &yes
		}
		return v.line(c, count), false, true, &yes
	case "%":
		to, found := v.match(c)
		if !found {
			return to, false, false, &no
		}
		return to, true, false, &yes
	case "j", "k": // of an operator
		for range count {
			if name == "j" && c.lineEnd(to) == len(c.text) || name == "k" && c.lineBegin(to) == 0 {
				return to, false, true, &no
			}
			if name == "j" {
				to = c.lineEnd(to) + 1
			} else {
				to = c.lineBegin(to) - 1
			}
		}
		return to, false, true, &yes
	case "$":
		for range count - 1 {
			to = min(c.lineEnd(to)+1, len(c.text))
		}
		return c.lineEnd(to), false, false, &yes
	}
	step := map[string]func() int{
		"h": func() int {
			if to > c.lineBegin(to) {
				return c.before(to)
			}
			return to
		},
		"l": func() int {
			if to < c.lineEnd(to) {
				return c.after(to)
			}
			return to
		},
		" ": func() int { return c.after(to) },
		"w": func() int { return nextWord(c, to, false) }, "W": func() int { return nextWord(c, to, true) },
		"b": func() int { return wordBegin(c, to, false) }, "B": func() int { return wordBegin(c, to, true) },
		"e": func() int { return wordEnd(c, to, false) }, "E": func() int { return wordEnd(c, to, true) },
		"0": func() int { return c.lineBegin(to) },
		"^": func() int { return v.first(c, to) },
		"}": func() int {
			if i := strings.Index(c.text[to:], "\n\n"); i >= 0 {
				return to + i + 1
			}
			return len(c.text)
		},
		"{": func() int {
			if i := strings.LastIndex(c.text[:to], "\n\n"); i >= 0 {
				return i + 1
			}
			return 0
		},
	}[name]
	if step == nil {
		return to, false, false, &no
	}
	for range count {
		to = step()
	}
	return to, name == "e" || name == "E", false, &yes
}

// line returns the beginning of a line, from 1.
func (v *vi) line(c *composer, n int) int {
	at := 0
	for range n - 1 {
		if c.lineEnd(at) < len(c.text) {
			at = c.lineEnd(at) + 1
		}
	}
	return v.first(c, at)
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
func (v *vi) seek(c *composer, count int, reverse, again bool) (to int, inclusive, found bool) {
	kind, want := v.sought[0], v.sought[1]
	if kind == "" {
		return c.at, false, false
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
			return c.at, false, false
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
	return at, forward, true
}

const brackets = "()[]{}"

// match returns the place of the bracket that belongs to the next one in the line.
func (v *vi) match(c *composer) (to int, found bool) {
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

// object returns the part of the draft that a text object is.
func (v *vi) object(c *composer, around bool, name string) (from, to int, lines, ok bool) {
	at := c.at
	switch name {
	case "w", "W":
		if at >= len(c.text) {
			return at, at, false, false
		}
		big := name == "W"
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
		return from, to, false, true
	case "p":
		if from = strings.LastIndex(c.text[:c.lineEnd(at)], "\n\n"); from < 0 {
			from = 0
		} else {
			from += 2
		}
		if to = strings.Index(c.text[from:], "\n\n"); to < 0 {
			to = len(c.text)
		} else if to += from; around {
			to++
		}
		return from, to, true, true
	case `"`, "'", "`":
		begin, line := c.lineBegin(at), c.text[c.lineBegin(at):c.lineEnd(at)]
		for first := 0; ; {
			i := strings.Index(line[first:], name)
			if i < 0 {
				return at, at, false, false
			}
			i += first
			j := strings.Index(line[i+1:], name)
			if j < 0 {
				return at, at, false, false
			}
			j += i + 1
			if begin+j >= at {
				if around {
					return begin + i, begin + j + 1, false, true
				}
				return begin + i + 1, begin + j, false, true
			}
			first = j + 1
		}
	}
	name = map[string]string{"b": "(", "B": "{"}[name] + name
	i := strings.IndexAny(name[:1], brackets)
	if i < 0 {
		return at, at, false, false
	}
	opens := brackets[strings.IndexByte(brackets, name[0])&^1]
	text := c.unmarked()
	for from = min(at, len(text)-1); from >= 0; from-- {
		if text[from] != opens {
			continue
		}
		if to, ok = partner(text, from); ok && to >= at {
			if around {
				return from, to + 1, false, true
			}
			return from + 1, to, false, true
		}
	}
	return at, at, false, false
}
