// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package show

import (
	"slices"
	"strconv"
	"strings"

	"github.com/antiphon-go/antiphon/internal/jsonx"
	"github.com/antiphon-go/antiphon/internal/lazyregexp"
	"github.com/antiphon-go/antiphon/internal/tui"
	"github.com/antiphon-go/antiphon/item"
)

// This file shows changes of files to a person: patches, diffs, and edits.

// kind is what a line of a text is to a diff.
type kind byte

const (
	kindText    kind = 0
	kindHead    kind = 'h' // of a file, or of the patch
	kindPlace   kind = '@'
	kindSame    kind = ' '
	kindRemoved kind = '-'
	kindAdded   kind = '+'
)

// colours of the lines of diffs.
var kindColours = map[kind]string{kindHead: bold, kindPlace: Dim, kindRemoved: Red, kindAdded: Green}

const patchStart, patchEnd = "*** Begin Patch", "*** End Patch"

var hunkHead = lazyregexp.New(`^@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@`)

// kindsOf returns what each line of a text is: lines of patches and unified diffs, wherever they
// begin, and others. Within a hunk it counts lines as the hunk's head says, so that a removed line
// that begins with -- is not taken for the head of a file. With patch, the lines are those of one
// file of a patch, unless they are a unified diff.
func kindsOf(lines []string, patch bool) []kind {
	kinds := make([]kind, len(lines))
	patch = patch && !slices.ContainsFunc(lines, hunkHead.MatchString)
	removed, added := 0, 0
	for i, line := range lines {
		first := kind(0)
		if line != "" {
			first = kind(line[0])
		}
		body := first == kindRemoved || first == kindAdded || first == kindSame
		if first == 0 || line == "\r" { // an empty line of context whose leading space was removed
			first, body = kindSame, true
		}
		switch {
		case patch && strings.HasPrefix(line, "*** "):
			kinds[i], patch = kindHead, !strings.HasPrefix(line, patchEnd)
		case patch && first == kindPlace:
			kinds[i] = kindPlace
		case patch && body:
			kinds[i] = first
		case patch:
		case (removed > 0 || added > 0) && body:
			kinds[i] = first
			if first != kindAdded {
				removed--
			}
			if first != kindRemoved {
				added--
			}
		case (removed > 0 || added > 0) && first == '\\':
		case strings.HasPrefix(line, patchStart):
			kinds[i], patch = kindHead, true
		case strings.HasPrefix(line, "--- "), strings.HasPrefix(line, "+++ "), strings.HasPrefix(line, "diff --git "):
			kinds[i], removed, added = kindHead, 0, 0
		default:
			removed, added = 0, 0
			if m := hunkHead.FindStringSubmatch(line); m != nil {
				kinds[i], removed, added = kindPlace, linesIn(m[1]), linesIn(m[2])
			}
		}
	}
	return kinds
}

// linesIn reads the number of lines of a hunk, which is 1 if it is left out.
func linesIn(s string) int {
	if n, err := strconv.Atoi(s); err == nil {
		return n
	}
	return 1
}

// diffLines returns the lines of a text behind a mark. Lines of diffs have their colour, and
// changed words are marked. For patch see [kindsOf].
func diffLines(text, mark string, patch bool) []Line {
	var lines []string
	for line := range strings.Lines(text) {
		lines = append(lines, strings.TrimSuffix(line, "\n"))
	}
	return markedLines(lines, kindsOf(lines, patch), mark)
}

// markedLines marks the words that differ between removed lines and the added lines behind them.
func markedLines(lines []string, kinds []kind, mark string) []Line {
	list := make([]Line, len(lines))
	for i, line := range lines {
		list[i] = Line{Mark: mark, Text: Visible(line), colour: kindColours[kinds[i]]}
	}
	var changes tui.Changes
	for begin := 0; begin < len(list); {
		middle := begin
		for middle < len(list) && kinds[middle] == kindRemoved {
			middle++
		}
		end := middle
		for end < len(list) && kinds[end] == kindAdded {
			end++
		}
		if middle > begin && end > middle {
			gone, fresh := changes.Between(signless(list[begin:middle]), signless(list[middle:end]))
			for i, words := range append(gone, fresh...) {
				for _, w := range words {
					list[begin+i].words = append(list[begin+i].words, tui.Span{From: w.From + 1, To: w.To + 1})
				}
			}
		}
		begin = max(end, begin+1)
	}
	return list
}

// signless returns texts without the sign in front.
func signless(lines []Line) (texts []string) {
	for _, l := range lines {
		texts = append(texts, l.Text[1:])
	}
	return texts
}

// replacement is a text, and the one that replaces it.
type replacement struct{ find, replace string }

// memberDiff is the member of an operation of apply_patch that has the hunks of its file.
const memberDiff = "diff"

// editOf returns the edit that arguments describe, with these names of members: two texts named
// find and replace, each once.
func editOf(args item.Item, names []string) (e replacement, ok bool) {
	for _, m := range []struct {
		name string
		to   *string
	}{{"find", &e.find}, {"replace", &e.replace}} {
		times := 0
		for _, name := range names {
			if name == m.name {
				times++
			}
		}
		value, _ := args.Member(m.name)
		text, isText := value.Unquote()
		if times != 1 || !isText {
			return replacement{}, false
		}
		*m.to = text
	}
	return e, true
}

// lines returns an edit as a diff.
func (e replacement) lines(mark string) []Line {
	split := func(s string) []string {
		if s == "" {
			return nil
		}
		return strings.Split(strings.TrimSuffix(s, "\n"), "\n")
	}
	var lines []string
	var kinds []kind
	for _, l := range compareLines(split(e.find), split(e.replace)) {
		lines, kinds = append(lines, string(l.op)+l.text), append(kinds, kind(l.op))
	}
	return markedLines(lines, kinds, mark)
}

// membersOf returns the names of the members of arguments, also of those that are there twice.
func membersOf(args item.Item) (names []string) {
	jsonx.EachMember(args.JSON(), func(literal, _ string) { names = append(names, jsonx.Unquote(literal)) })
	return names
}

// changeOf returns the change of files that arguments of a call describe: an edit, or the patch
// that they are or contain. It returns nil if there is none.
func changeOf(arguments string) []Line {
	const mark = "   | "
	if strings.HasPrefix(arguments, patchStart) {
		return diffLines(arguments, mark, false)
	}
	args, err := item.Parse([]byte(arguments))
	if err != nil {
		return nil
	}
	names := membersOf(args)
	if e, ok := editOf(args, names); ok {
		return e.lines(mark)
	}
	for _, name := range names {
		value, _ := args.Member(name)
		if text, isText := value.Unquote(); isText && (name == memberDiff || strings.HasPrefix(text, patchStart)) {
			return diffLines(text, mark, name == memberDiff)
		}
	}
	return nil
}

// writtenTo returns the lines that a call adds to a file, as a diff, if its arguments are a path and a content and no more.
func writtenTo(arguments string) []Line {
	args, err := item.Parse([]byte(arguments))
	if err != nil {
		return nil
	}
	names := membersOf(args)
	slices.Sort(names)
	content, _ := args.Member("content")
	text, isText := content.Unquote()
	if !isText || !slices.Equal(names, []string{"content", "path"}) {
		return nil
	}
	return replacement{replace: text}.lines("   | ")
}

// painted returns a part of a line in its colour, with the marked words in reverse.
func painted(text, colour string, words []tui.Span, from, to int) string {
	if colour == "" || from == to {
		return text[from:to]
	}
	var b strings.Builder
	b.WriteString("\x1b[" + colour + "m")
	at := from
	for _, w := range words {
		begin, end := max(w.From, at), min(w.To, to)
		if begin >= end {
			continue
		}
		b.WriteString(text[at:begin] + "\x1b[7m" + text[begin:end] + "\x1b[27m")
		at = end
	}
	b.WriteString(text[at:to] + "\x1b[0m")
	return b.String()
}

// caretsBelow returns carets that stand below the marked words of a part of a line, or "".
func caretsBelow(text string, words []tui.Span, from, to int) string {
	var b strings.Builder
	blanks := 0
	for i, r := range text[from:to] {
		for len(words) > 0 && words[0].To <= from+i {
			words = words[1:]
		}
		n := columnsOfRune(r)
		if len(words) == 0 || from+i < words[0].From {
			blanks += n
			continue
		}
		b.WriteString(strings.Repeat(" ", blanks) + strings.Repeat("^", n))
		blanks = 0
	}
	return b.String()
}
