// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package patch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A patchText is a text file as a patch sees it: lines without their line ends.
// What no hunk touches is written back byte for byte.
type patchText struct {
	bom   bool
	index lineIndex
	ends  []string // "\n", "\r\n", or "" for a last line without one
}

const byteOrderMark = "\ufeff"

func splitText(content string) *patchText {
	t := new(patchText)
	content, t.bom = strings.CutPrefix(content, byteOrderMark)
	for line := range strings.Lines(content) {
		text := strings.TrimSuffix(line, "\n")
		if text != line {
			text = strings.TrimSuffix(text, "\r")
		}
		t.index.lines = append(t.index.lines, text)
		t.ends = append(t.ends, line[len(text):])
	}
	return t
}

// placed is a hunk and its place: before the line start, where it replaces count
// lines.
type placed struct {
	hunk
	start, count int
	like         likeness
}

func (p placed) stop() int { return p.start + p.count }

// apply returns the content after the hunks, and a remark for each hunk that fits
// only approximately. The error joins an [*Error] for each hunk that does not fit.
func (t *patchText) apply(ctx context.Context, path string, hunks []hunk) (content string, remarks []string, err error) {
	var done []placed
	var errs []error
	from := 0
	for i := range hunks {
		if err := ctx.Err(); err != nil {
			return "", nil, err
		}
		p, problem := t.place(&hunks[i], from, done)
		if problem != "" {
			errs = append(errs, &Error{Path: path, Hunk: hunks[i].number, Line: hunks[i].line, Problem: problem})
			continue
		}
		if p.like > alike {
			remarks = append(remarks, fmt.Sprintf("hunk %d is at line %d, which has other %s than the patch", p.number, p.start+1, differs[p.like]))
		}
		done = append(done, p)
		from = max(from, p.stop())
	}
	if err := errors.Join(errs...); err != nil {
		return "", nil, err
	}
	slices.SortStableFunc(done, func(a, b placed) int { return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(a.count, b.count)) })
	return t.build(done), remarks, nil
}

var differs = [likenesses]string{alikeStart: "white space at the ends of lines", alikeText: "white space", alikeSigns: "quotes, dashes or spaces"}

// place finds where a hunk belongs: after the hunks before it or, if it fits
// nowhere there, in one other place. If more than one place fits, it selects
// none, because a change in the wrong place is worse than an error.
func (t *patchText) place(h *hunk, from int, done []placed) (placed, string) {
	if strings.ContainsRune(strings.Join(h.added(), "\n"), utf8.RuneError) && !t.valid() {
		return placed{}, "the file holds bytes that are not UTF-8, which are shown as U+FFFD; a line with U+FFFD would overwrite them. Leave such lines out of the patch"
	}
	if short, ok := h.tight(); ok && len(short.old()) == 0 {
		h = &short
	}
	if len(h.old()) == 0 {
		return t.insertion(h, from, done)
	}
	starts, lost := t.index.anchors(h.anchors)
	if lost != "" {
		return placed{}, t.noAnchor(lost)
	}
	for _, from := range slices.Compact([]int{from, 0}) {
		p, problem := t.fit(h, starts, from)
		if short, ok := h.tight(); problem == notFound && ok {
			p, problem = t.fit(&short, starts, from)
		}
		if problem == "" {
			problem = overlap(p, done)
		}
		if problem != notFound {
			return p, problem
		}
	}
	return placed{}, t.noPlace(h)
}

// notFound stands for the long explanation, which is computed only when it is
// needed.
const notFound = "not found"

// fit looks for the lines of a hunk, one level of likeness after the other.
func (t *patchText) fit(h *hunk, starts []int, from int) (placed, string) {
	old := h.old()
	for l := range likenesses {
		at := t.index.find(l, old, from)
		if h.atEnd && slices.Contains(at, len(t.index.lines)-len(old)) {
			at = []int{len(t.index.lines) - len(old)}
		} else if len(h.anchors) > 0 {
			at = following(starts, at, 0)
		}
		if h.at > 0 && len(at) > 1 && slices.Contains(at, h.at-1) {
			at = []int{h.at - 1}
		}
		switch len(at) {
		case 0:
		case 1:
			return placed{hunk: *h, start: at[0], count: len(old), like: l}, ""
		default:
			return placed{}, t.ambiguous(h, at)
		}
	}
	return placed{}, notFound
}

// insertion places a hunk that only adds lines: after its anchor or, without
// one, at the end of the file. Models count lines badly, so a line number of another
// place is no place.
func (t *patchText) insertion(h *hunk, from int, done []placed) (placed, string) {
	p := placed{hunk: *h, start: len(t.index.lines)}
	switch {
	case len(h.anchors) == 0 && !h.atEnd && h.counted && h.at != p.start:
		return p, `it only adds lines, and a line number alone does not say where: add a line of the file that stays before or after them, or a line "@@ " with the line that they follow`
	case len(h.anchors) == 0 || h.atEnd:
		return p, ""
	}
	starts, lost := t.index.anchors(h.anchors)
	if lost != "" {
		return p, t.noAnchor(lost)
	}
	if later := slices.DeleteFunc(slices.Clone(starts), func(s int) bool { return s+1 < from }); len(later) > 0 {
		starts = later
	}
	if len(starts) > 1 {
		return p, t.ambiguous(h, starts)
	}
	p.start = starts[0] + 1
	return p, overlap(p, done)
}

// overlap returns a problem if a hunk changes lines of an earlier one.
func overlap(p placed, done []placed) string {
	for _, d := range done {
		if p.start < d.stop() && d.start < p.stop() || p.count == 0 && p.start > d.start && p.start < d.stop() {
			return fmt.Sprintf("it overlaps hunk %d: that one covers the lines %s of the file, this one %s. Make one hunk of the two", d.number, lineRange(d.start, d.count), lineRange(p.start, p.count))
		}
	}
	return ""
}

func lineRange(start, count int) string {
	if count <= 1 {
		return fmt.Sprint(start + 1)
	}
	return fmt.Sprintf("%d to %d", start+1, start+count)
}

func (t *patchText) valid() bool {
	return !slices.ContainsFunc(t.index.lines, func(line string) bool { return !utf8.ValidString(line) })
}

// build assembles the new content. Kept lines are taken from the file, whatever
// white space the hunk has in them. A new line gets the line end of its
// neighbor. If the file did not end with a newline, the new one does not
// either, unless the patch says otherwise.
func (t *patchText) build(hunks []placed) string {
	w := textWriter{text: t, room: len(t.ends) > 0 && t.ends[len(t.ends)-1] == ""}
	if t.bom {
		w.b.WriteString(byteOrderMark)
	}
	next := 0
	for _, h := range hunks {
		for ; next < h.start; next++ {
			w.keep(next)
		}
		for _, e := range h.edits {
			if e.noEnd {
				w.said = true
			}
			switch {
			case e.kind == '+':
				w.add(e, next)
			case next < h.stop():
				if e.kind == ' ' {
					w.keep(next)
				}
				next++
			}
		}
	}
	for ; next < len(t.ends); next++ {
		w.keep(next)
	}
	return w.finish()
}

// A textWriter writes lines. It holds back the end of each line until the next
// one comes, because only the last line may lack it.
type textWriter struct {
	text    *patchText
	b       strings.Builder
	pending string // the end of the last line
	lines   int
	added   bool // the last line is new
	noEnd   bool // and the patch says that it has no end
	said    bool // the patch says of some line that it has no end
	room    bool // the file had no end at its last line
}

func (w *textWriter) line(text, end string) {
	w.b.WriteString(w.pending)
	w.b.WriteString(text)
	w.pending = end
	w.lines++
}

func (w *textWriter) keep(i int) {
	end := w.text.ends[i]
	if end == "" {
		end = w.text.endBefore(i)
		w.line(w.text.index.lines[i], end)
		w.added, w.noEnd = false, true
		return
	}
	w.line(w.text.index.lines[i], end)
	w.added, w.noEnd = false, false
}

func (w *textWriter) add(e edit, next int) {
	end := w.text.endBefore(next)
	text := e.text
	if end == "\r\n" {
		text = strings.TrimSuffix(text, "\r")
	}
	if w.lines == 0 && w.text.bom {
		text = strings.TrimPrefix(text, byteOrderMark)
	}
	w.line(text, end)
	w.added, w.noEnd = true, e.noEnd
}

func (w *textWriter) finish() string {
	if w.lines > 0 && !(w.noEnd || w.added && w.room && !w.said) {
		w.b.WriteString(w.pending)
	}
	return w.b.String()
}

// endBefore returns the line end to use before line i: that of the line above
// or, if it has none, of the first line.
func (t *patchText) endBefore(i int) string {
	for _, at := range []int{i - 1, 0} {
		if at >= 0 && at < len(t.ends) && t.ends[at] != "" {
			return t.ends[at]
		}
	}
	return "\n"
}

// likeness is how far a line may differ from the one in a patch and still match.
// Each level accepts everything that the one before it accepts.
type likeness int

const (
	alike      likeness = iota // the same bytes
	alikeStart                 // white space at the end aside
	alikeText                  // white space at both ends aside
	alikeSigns                 // and quotes, dashes and spaces in their plain form
	likenesses
)

// reduce returns the part of a line that is compared at this level.
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

// plainSign replaces typographic characters with those on a keyboard, because
// models write the latter.
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

// A lineIndex finds runs of lines in a file. For each level that is used it
// numbers the lines, and equal lines get the same number.
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

// find returns, in order, where in the file a run of lines begins. It uses the
// algorithm of Knuth, Morris and Pratt, so the time is linear even if lines
// repeat.
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

// borders returns, for each prefix of a run, the length of its longest proper
// suffix that is also a prefix.
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
// finds any. At the last level the anchor may also be the beginning of a line.
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
