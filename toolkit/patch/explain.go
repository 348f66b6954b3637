// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package patch

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/antiphon-go/antiphon/toolkit/internal/wording"
)

const (
	maxShownLines  = 12   // lines of a file in one explanation
	maxCommon      = 200  // a line that occurs more often than this is no evidence
	maxAlign       = 200  // lines compared one by one
	maxDiffering   = 6    // differences listed
	maxShift       = 4    // lines by which a place may be off
	maxShownPlaces = 10   // places listed where a hunk fits
	maxWordLines   = 50e3 // lines searched for similar words
)

// ambiguous explains that the lines of a hunk occur more than once, and where.
func (t *patchText) ambiguous(h *hunk, at []int) string {
	var lines []string
	for _, start := range at[:min(len(at), maxShownPlaces)] {
		lines = append(lines, fmt.Sprint(start+1))
	}
	if len(at) > maxShownPlaces {
		lines = append(lines, "…")
	}
	what := "its lines were"
	if len(h.old()) == 0 {
		what = fmt.Sprintf("its line %s was", wording.Clip("@@ "+h.anchors[len(h.anchors)-1]))
	}
	return fmt.Sprintf("%s found %d times in the file, at line %s, so it is not clear which is meant. Add lines of context, or a line \"@@ \" with the line of the function or section it is in (a second such line goes further in)",
		what, len(at), strings.Join(lines, ", "))
}

// noAnchor explains that a line given after @@ is not in the file, and shows the
// most similar line.
func (t *patchText) noAnchor(anchor string) string {
	text := fmt.Sprintf("the line %s, given after @@, is not in the file", wording.Clip(anchor))
	if len(t.index.lines) == 0 {
		return text + ", which is empty"
	}
	if i := t.wordsLike(anchor); i >= 0 {
		return text + fmt.Sprintf(". The line most like it is %d: %s", i+1, wording.Clip(t.index.lines[i]))
	}
	return text
}

// noPlace explains that the lines of a hunk are not in the file: what was
// expected, the most similar place, and what differs there.
func (t *patchText) noPlace(h *hunk) string {
	if short, ok := h.tight(); ok {
		h = &short
	}
	old := h.old()
	var b strings.Builder
	b.WriteString("these lines were not found in the file")
	if len(t.index.lines) == 0 {
		b.WriteString(", which is empty")
	}
	b.WriteString(":\n")
	for _, line := range old[:min(len(old), maxShownLines)] {
		b.WriteString("    | " + wording.Clipped(line) + "\n")
	}
	if n := len(old) - maxShownLines; n > 0 {
		fmt.Fprintf(&b, "    and %d more\n", n)
	}
	if at := t.index.find(alikeText, h.added(), 0); len(at) > 0 && len(h.added()) > 0 {
		fmt.Fprintf(&b, "The lines that the hunk would leave are at line %d already: was this change made before?", at[0]+1)
		return b.String()
	}
	start, end := t.nearest(old)
	if start == end {
		b.WriteString("Nothing in the file is like them. Read the file and copy the lines exactly")
		return b.String()
	}
	t.showNearest(&b, old, start, end)
	return b.String()
}

func (t *patchText) showNearest(b *strings.Builder, old []string, start, end int) {
	shown := min(end, start+maxShownLines)
	fmt.Fprintf(b, "The place most like them is line %s of the file:\n", lineRange(start, end-start))
	for i := start; i < shown; i++ {
		fmt.Fprintf(b, "%6d | %s\n", i+1, wording.Clipped(t.index.lines[i]))
	}
	if end > shown {
		fmt.Fprintf(b, "       and %d more\n", end-shown)
	}
	b.WriteString("What differs: ")
	b.WriteString(strings.Join(t.differences(old, start, end), "; "))
}

// nearest returns the range of the file that is most similar to a run of lines:
// where most of its lines occur at about the same distances or, failing that,
// around a line that shares words with the longest line of the run. If nothing
// is similar, start equals end.
func (t *patchText) nearest(run []string) (start, end int) {
	votes := t.votes(run)
	best, most := 0, 0
	for at, n := range votes {
		if n > most || n == most && at < best {
			best, most = at, n
		}
	}
	if most == 0 {
		return t.aroundWords(run)
	}
	first, last := best, best
	for at := range votes { // a missing or additional line shifts those after it
		if at > best-maxShift && at < best+maxShift {
			first, last = min(first, at), max(last, at)
		}
	}
	start = min(max(first, 0), len(t.index.lines)-1)
	return start, max(start+1, min(last+len(run), len(t.index.lines)))
}

// votes returns, for each line at which a run could begin, how much of the run
// would then be in its place. Longer lines count for more.
func (t *patchText) votes(run []string) map[int]int {
	ids, named := t.index.level(alikeSigns)
	places := make([][]int, len(named))
	for i, id := range ids {
		if len(places[id]) <= maxCommon {
			places[id] = append(places[id], i)
		}
	}
	votes := make(map[int]int)
	for j, line := range run[:min(len(run), maxAlign)] {
		reduced := alikeSigns.reduce(line)
		if id, ok := named[reduced]; ok && reduced != "" && len(places[id]) <= maxCommon {
			for _, i := range places[id] {
				votes[i-j] += 1 + min(len(reduced), 60)/4
			}
		}
	}
	return votes
}

func (t *patchText) aroundWords(run []string) (start, end int) {
	j, longest := 0, 0
	for i, line := range run {
		if n := len(strings.TrimSpace(line)); n > longest {
			j, longest = i, n
		}
	}
	i := t.wordsLike(run[j])
	if i < 0 {
		return 0, 0
	}
	return max(i-j, 0), min(i-j+len(run), len(t.index.lines))
}

// wordsLike returns the index of the line that shares the most words with the
// given one, or -1 if no line shares enough of them.
func (t *patchText) wordsLike(line string) int {
	words := make(map[string]bool)
	for _, w := range wordsOf(line) {
		words[w] = true
	}
	best, most := -1, 0.0
	for i, have := range t.index.lines[:min(len(t.index.lines), maxWordLines)] {
		if score := shared(words, wordsOf(have)); score > most {
			best, most = i, score
		}
	}
	if most < 0.3 {
		return -1
	}
	return best
}

// shared returns the fraction of all words that occur in both.
func shared(words map[string]bool, have []string) float64 {
	if len(words) == 0 || len(have) == 0 {
		return 0
	}
	seen := make(map[string]bool, len(have))
	both := 0
	for _, w := range have {
		if !seen[w] && words[w] {
			both++
		}
		seen[w] = true
	}
	return 2 * float64(both) / float64(len(words)+len(seen))
}

func wordsOf(line string) []string {
	return strings.FieldsFunc(wording.Clipped(line), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
}

// differences aligns the lines of a hunk with those at a place in the file and
// lists what only one of the two contains.
func (t *patchText) differences(run []string, start, end int) []string {
	run = run[:min(len(run), maxAlign)]
	end = min(end, start+maxAlign)
	have := t.index.lines[start:end]
	var told []string
	say := func(format string, a ...any) { told = append(told, fmt.Sprintf(format, a...)) }
	i, j := 0, 0
	for _, pair := range append(commonLines(have, run), [2]int{len(have), len(run)}) {
		for ; i < pair[0] && j < pair[1]; i, j = i+1, j+1 {
			say("line %d is %s, the patch has %s%s", start+i+1, wording.Clip(have[i]), wording.Clip(run[j]), caseOnly(have[i], run[j]))
		}
		for ; i < pair[0]; i++ {
			say("line %d, %s, is not in the patch", start+i+1, wording.Clip(have[i]))
		}
		for ; j < pair[1]; j++ {
			say("the patch has %s, which is not at line %d", wording.Clip(run[j]), start+i+1)
		}
		i, j = pair[0]+1, pair[1]+1
	}
	if n := len(told) - maxDiffering; n > 0 {
		told = append(told[:maxDiffering], fmt.Sprintf("and %d more", n))
	}
	if len(told) == 0 {
		told = append(told, "the patch goes on behind the lines compared")
	}
	return told
}

func caseOnly(a, b string) string {
	if strings.EqualFold(alikeSigns.reduce(a), alikeSigns.reduce(b)) {
		return " (upper and lower case)"
	}
	return ""
}

// commonLines returns the longest common subsequence of two short lists of lines,
// as pairs of indices.
func commonLines(a, b []string) [][2]int {
	a, b = reduced(a), reduced(b)
	length := make([][]int, len(a)+1)
	for i := range length {
		length[i] = make([]int, len(b)+1)
	}
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			if a[i] == b[j] {
				length[i][j] = length[i+1][j+1] + 1
			} else {
				length[i][j] = max(length[i+1][j], length[i][j+1])
			}
		}
	}
	var pairs [][2]int
	for i, j := 0, 0; i < len(a) && j < len(b); {
		switch {
		case a[i] == b[j]:
			pairs = append(pairs, [2]int{i, j})
			i, j = i+1, j+1
		case length[i+1][j] >= length[i][j+1]:
			i++
		default:
			j++
		}
	}
	return slices.Clip(pairs)
}

func reduced(lines []string) []string {
	out := make([]string, len(lines))
	for i, line := range lines {
		out[i] = alikeSigns.reduce(line)
	}
	return out
}
