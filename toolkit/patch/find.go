// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package patch

import (
	"slices"
	"strings"
	"unicode"
)

// likeness is how much a line may differ from what a patch says and still be
// the line that is meant. Each level takes all that the one before takes.
type likeness int

const (
	alike      likeness = iota // the same bytes
	alikeStart                 // white space at the end aside
	alikeText                  // white space at both ends aside
	alikeSigns                 // and quotes, dashes and spaces in their plain form
	likenesses
)

// reduce returns what of a line counts at a level.
func (l likeness) reduce(line string) string {
	switch l {
	case alike:
		return line
	case alikeStart:
		return strings.TrimRightFunc(line, unicode.IsSpace)
	case alikeText:
		return strings.TrimSpace(line)
	}
	return strings.TrimSpace(strings.Map(plainSign, strings.ToValidUTF8(line, "\uFFFD")))
}

// plainSign gives typographic signs the form that a keyboard has, which is what
// models write.
func plainSign(r rune) rune {
	switch {
	case r >= '\u2010' && r <= '\u2015', r == '\u2212':
		return '-'
	case r >= '\u2018' && r <= '\u201b':
		return '\''
	case r >= '\u201c' && r <= '\u201f':
		return '"'
	case r == '\u00a0', r >= '\u2002' && r <= '\u200a', r == '\u202f', r == '\u205f', r == '\u3000':
		return ' '
	}
	return r
}

// lineIndex finds runs of lines in a file. Its lines get numbers, equal ones the
// same, once for each level that is asked for.
type lineIndex struct {
	lines []string
	ids   [likenesses][]int
	named [likenesses]map[string]int
}

func (x *lineIndex) level(l likeness) ([]int, map[string]int) {
	if x.named[l] == nil {
		x.named[l] = make(map[string]int)
		x.ids[l] = make([]int, len(x.lines))
		for i, line := range x.lines {
			x.ids[l][i] = number(x.named[l], l.reduce(line))
		}
	}
	return x.ids[l], x.named[l]
}

func number(named map[string]int, line string) int {
	id, ok := named[line]
	if !ok {
		id = len(named)
		named[line] = id
	}
	return id
}

// find returns where in the file the run of lines begins, in order: Knuth,
// Morris and Pratt, so that the time is bounded by the lengths whatever repeats.
func (x *lineIndex) find(l likeness, run []string, from int) []int {
	ids, named := x.level(l)
	want := make([]int, len(run))
	for i, line := range run {
		id, ok := named[l.reduce(line)]
		if !ok {
			return nil
		}
		want[i] = id
	}
	if len(want) == 0 {
		return nil
	}
	fail := borders(want)
	var at []int
	for i, k := from, 0; i < len(ids); i++ {
		for k > 0 && (k == len(want) || want[k] != ids[i]) {
			k = fail[k-1]
		}
		if want[k] == ids[i] {
			k++
		}
		if k == len(want) {
			at = append(at, i-k+1)
		}
	}
	return at
}

// borders returns for each beginning of a run the length of its longest end
// that is a beginning too.
func borders(run []int) []int {
	fail := make([]int, len(run))
	for i, k := 1, 0; i < len(run); i++ {
		for k > 0 && run[k] != run[i] {
			k = fail[k-1]
		}
		if run[k] == run[i] {
			k++
		}
		fail[i] = k
	}
	return fail
}

// anchorAt returns the lines that an anchor can mean, at the first level that
// has any; the last lets it be the beginning of a line.
func (x *lineIndex) anchorAt(anchor string) []int {
	for l := range likenesses {
		if at := x.find(l, []string{anchor}, 0); len(at) > 0 {
			return at
		}
	}
	var at []int
	start := alikeSigns.reduce(anchor)
	for i, line := range x.lines {
		if strings.HasPrefix(alikeSigns.reduce(line), start) {
			at = append(at, i)
		}
	}
	return at
}

// anchors returns the places that a chain of anchors leads to, each found
// after the one before, or the first anchor that leads nowhere.
func (x *lineIndex) anchors(chain []string) (at []int, lost string) {
	for i, anchor := range chain {
		next := x.anchorAt(anchor)
		if i > 0 {
			next = following(at, next, 1)
		}
		if len(next) == 0 {
			return nil, anchor
		}
		at = next
	}
	return at, ""
}

// following returns for each start the first place that is at least gap after
// it, each place once. Both lists are in order.
func following(starts, places []int, gap int) []int {
	var at []int
	for _, s := range starts {
		i, _ := slices.BinarySearch(places, s+gap)
		if i == len(places) {
			break
		}
		if len(at) == 0 || at[len(at)-1] != places[i] {
			at = append(at, places[i])
		}
	}
	return at
}
