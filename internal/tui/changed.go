// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package tui

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Span is a part of a text, in bytes. It neither begins nor ends within a character as people
// see it.
type Span struct{ From, To int }

// Changes finds the words that differ between removed and added lines of a diff. Its work is
// bounded for the whole diff, whatever the lines are. The zero value is ready for use.
type Changes struct{ compared int }

const (
	// mostWords is the size of the largest text between the equal ends of two texts that is
	// divided into words, in bytes.
	mostWords = 64 << 10
	// mostPairs is the maximum number of pairs of words that are compared for adjacent lines, and
	// mostCompared that for a diff. What would take more counts as changed.
	mostPairs, mostCompared = 1 << 20, 8 << 20
	// leastKept is the share of a line that must be kept, as its divisor. In a line of which less
	// is kept, no words are marked: its colour says that it is another one.
	leastKept = 4
)

// Between returns the words of removed lines that are gone, and those of the lines added in their
// place that are new: for each line the parts to mark, in order. A line of which nearly all is
// changed has none. The lines have no line ends.
func (c *Changes) Between(removed, added []string) (gone, fresh [][]Span) {
	gone, fresh = make([][]Span, len(removed)), make([][]Span, len(added))
	if len(removed) == 0 || len(added) == 0 {
		return gone, fresh
	}
	a, b := strings.Join(removed, "\n"), strings.Join(added, "\n")
	from, behind := equalEnds(a, b)
	var was, is []Span
	if x, y := a[from:len(a)-behind], b[from:len(b)-behind]; len(x) > mostWords || len(y) > mostWords {
		was, is = []Span{{0, len(x)}}, []Span{{0, len(y)}}
	} else {
		was, is = c.differing(x, y)
	}
	byLine(gone, removed, was, from)
	byLine(fresh, added, is, from)
	return gone, fresh
}

// equalEnds returns how many bytes two texts have in common at their beginning and at their end.
// Both end between words.
func equalEnds(a, b string) (head, tail int) {
	most := min(len(a), len(b))
	for head < most && a[head] == b[head] {
		head++
	}
	for head > 0 && (!between(a, head) || !between(b, head)) {
		head--
	}
	for tail < most-head && a[len(a)-1-tail] == b[len(b)-1-tail] {
		tail++
	}
	for tail > 0 && (!between(a, len(a)-tail) || !between(b, len(b)-tail)) {
		tail--
	}
	return head, tail
}

// between reports whether a place of a text certainly stands between two words. Beside characters
// other than ASCII it does not, because they may belong to one that people see.
func between(s string, at int) bool {
	if at == 0 || at == len(s) {
		return true
	}
	before, after := s[at-1], s[at]
	if before >= utf8.RuneSelf || after >= utf8.RuneSelf {
		return false
	}
	return !(inWord(rune(before)) && inWord(rune(after))) && !(before == ' ' && after == ' ') && !(before == '\r' && after == '\n')
}

func inWord(r rune) bool { return r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) }

// wordsOf divides a text into words, blanks and single characters. Characters of writings without
// blanks between words stand alone.
func wordsOf(s string) (list []string) {
	for at := 0; at < len(s); {
		n, kind := wordPart(s[at:])
		for kind != 0 && at+n < len(s) {
			more, next := wordPart(s[at+n:])
			if next != kind {
				break
			}
			n += more
		}
		list = append(list, s[at:at+n])
		at += n
	}
	return list
}

// wordPart returns the length of the first character, and its kind: w for one that joins others to
// a word, a blank, or 0 for one that stands alone.
func wordPart(s string) (n int, kind byte) {
	n = 1
	if s[0] >= utf8.RuneSelf || len(s) > 1 && s[1] >= utf8.RuneSelf {
		c, _ := cluster(s)
		n = max(1, len(c))
	}
	r, _ := utf8.DecodeRuneInString(s)
	switch {
	case r == ' ':
		return n, ' '
	case inWord(r) && !unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar):
		return n, 'w'
	}
	return n, 0
}

// differing returns the parts of two texts that are not in a longest common sequence of words.
func (c *Changes) differing(a, b string) (was, is []Span) {
	x, y := wordsOf(a), wordsOf(b)
	pairs := (len(x) + 1) * (len(y) + 1)
	if pairs > mostPairs || c.compared+pairs > mostCompared {
		return []Span{{0, len(a)}}, []Span{{0, len(b)}}
	}
	c.compared += pairs
	numbers := map[string]int32{}
	number := func(list []string) []int32 {
		of := make([]int32, len(list))
		for i, w := range list {
			n, known := numbers[w]
			if !known {
				n = int32(len(numbers))
				numbers[w] = n
			}
			of[i] = n
		}
		return of
	}
	p, q := number(x), number(y)
	wide := len(q) + 1
	shared := make([]int32, pairs) // lengths of common sequences of p[i:] and q[j:]
	for i := len(p) - 1; i >= 0; i-- {
		for j := len(q) - 1; j >= 0; j-- {
			if p[i] == q[j] {
				shared[i*wide+j] = shared[(i+1)*wide+j+1] + 1
			} else {
				shared[i*wide+j] = max(shared[(i+1)*wide+j], shared[i*wide+j+1])
			}
		}
	}
	mark := func(list []Span, at int, word string) []Span {
		if n := len(list); n > 0 && list[n-1].To == at {
			list[n-1].To = at + len(word)
			return list
		}
		return append(list, Span{at, at + len(word)})
	}
	atA, atB := 0, 0
	for i, j := 0, 0; i < len(p) || j < len(q); {
		switch {
		case i < len(p) && j < len(q) && p[i] == q[j]:
			atA, atB, i, j = atA+len(x[i]), atB+len(y[j]), i+1, j+1
		case j == len(q) || i < len(p) && shared[(i+1)*wide+j] >= shared[i*wide+j+1]:
			was = mark(was, atA, x[i])
			atA, i = atA+len(x[i]), i+1
		default:
			is = mark(is, atB, y[j])
			atB, j = atB+len(y[j]), j+1
		}
	}
	return was, is
}

// byLine distributes marked parts of joined lines, the first of which begins at the byte from. Marks
// with only blanks between them become one.
func byLine(marks [][]Span, lines []string, parts []Span, from int) {
	begin := -from // of the line
	for n, line := range lines {
		end := begin + len(line)
		for len(parts) > 0 && parts[0].To <= begin {
			parts = parts[1:]
		}
		for _, p := range parts {
			if p.From >= end {
				break
			}
			s := Span{max(p.From, begin) - begin, min(p.To, end) - begin}
			if s.From >= s.To {
				continue
			}
			if last := len(marks[n]) - 1; last >= 0 && strings.Trim(line[marks[n][last].To:s.From], " ") == "" {
				marks[n][last].To = s.To
			} else {
				marks[n] = append(marks[n], s)
			}
		}
		if !keeps(line, marks[n]) {
			marks[n] = nil
		}
		begin = end + 1
	}
}

// keeps reports whether enough of a line is not marked.
func keeps(line string, marks []Span) bool {
	if len(marks) == 0 {
		return true
	}
	visible := func(s string) int { return len(s) - strings.Count(s, " ") }
	all, marked := visible(line), 0
	for _, m := range marks {
		marked += visible(line[m.From:m.To])
	}
	return (all-marked)*leastKept >= all && all > marked
}
