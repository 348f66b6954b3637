// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package patch

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/antiphon-go/antiphon/internal/lazyregexp"
	"github.com/antiphon-go/antiphon/toolkit/internal/wording"
)

// Limits on one patch.
const (
	// MaxPatchBytes is the largest size of a patch, in bytes.
	MaxPatchBytes = 4 << 20
	maxPatchFiles = 500
	maxPatchHunks = 5000
)

// An Error describes a part of a patch that cannot be applied. A model reads its
// text and corrects the patch.
type Error struct {
	// Path is the file as the patch names it, or "" for the patch as a whole.
	Path string
	// Hunk is the number of the hunk in the file, from 1, or 0 for the file as a
	// whole.
	Hunk int
	// Line is the line of the patch, from 1, or 0 if unknown.
	Line int
	// Problem says what is wrong: what was expected and what was found.
	Problem string
}

func (e *Error) Error() string {
	var at []string
	if e.Path != "" {
		at = append(at, wording.Quoted(e.Path))
	}
	if e.Hunk > 0 {
		at = append(at, fmt.Sprintf("hunk %d", e.Hunk))
	}
	where := strings.Join(at, ", ")
	if e.Line > 0 && where != "" {
		where += fmt.Sprintf(" (line %d of the patch)", e.Line)
	} else if e.Line > 0 {
		where = fmt.Sprintf("line %d of the patch", e.Line)
	}
	if where == "" {
		return e.Problem
	}
	return where + ": " + e.Problem
}

type patchOp int

const (
	patchAdd patchOp = iota
	patchUpdate
	patchDelete
)

// filePatch is what a patch does to one file.
type filePatch struct {
	op      patchOp
	path    string
	moveTo  string
	line    int    // of the header in the patch
	content string // of an added file
	hunks   []hunk
}

// A hunk is one change to a file: lines that exist, in order, some of which are
// removed, and lines that are inserted between them.
type hunk struct {
	number  int // in its file, from 1
	line    int // in the patch
	anchors []string
	counted bool // it has the header of a unified diff
	at      int  // the line number in it, or 0
	edits   []edit
	atEnd   bool
}

// An edit is one line of a hunk: kept ' ', removed '-' or added '+'.
type edit struct {
	kind  byte
	text  string
	loose bool // an empty line, which may only be layout of the patch
	noEnd bool // the file ends here without a newline
}

// old returns the lines that the file must contain.
func (h *hunk) old() []string {
	var lines []string
	for _, e := range h.edits {
		if e.kind != '+' {
			lines = append(lines, e.text)
		}
	}
	return lines
}

// added returns the lines that are there after the hunk is applied.
func (h *hunk) added() []string {
	var lines []string
	for _, e := range h.edits {
		if e.kind != '-' {
			lines = append(lines, e.text)
		}
	}
	return lines
}

// tight returns the hunk without the empty lines at its end, and reports whether
// it had any.
func (h *hunk) tight() (hunk, bool) {
	n := len(h.edits)
	for n > 0 && h.edits[n-1].loose {
		n--
	}
	short := *h
	short.edits = h.edits[:n]
	return short, n > 0 && n < len(h.edits)
}

const (
	markBegin  = "*** Begin Patch"
	markEnd    = "*** End Patch"
	markAdd    = "*** Add File:"
	markUpdate = "*** Update File:"
	markDelete = "*** Delete File:"
	markMove   = "*** Move to:"
	markEOF    = "*** End of File"
)

// A patchParser reads the lines of a patch in one pass.
type patchParser struct {
	lines []string
	next  int
	hunks int
}

// parsePatch parses a patch with its "*** Begin Patch" envelope.
func parsePatch(text string) ([]filePatch, error) {
	p, err := newPatchParser(text)
	if err != nil {
		return nil, err
	}
	if err := p.open(); err != nil {
		return nil, err
	}
	var files []filePatch
	for {
		p.skipBlank()
		if p.done() {
			return nil, p.problem(p.next, "the patch has no line %q, so its end may be missing; send it again, whole", markEnd)
		}
		if p.trimmed() == markEnd {
			break
		}
		file, err := p.file()
		if err != nil {
			return nil, err
		}
		if files = append(files, file); len(files) > maxPatchFiles {
			return nil, p.problem(p.next, "the patch has more than %d files; send it in parts", maxPatchFiles)
		}
	}
	p.next++
	if p.skipBlank(); !p.done() {
		return nil, p.problem(p.next+1, "there is text after %q: %s", markEnd, wording.Clip(p.lines[p.next]))
	}
	if len(files) == 0 {
		return nil, &Error{Problem: "the patch has no files; it needs at least one line " + sectionMarks}
	}
	return files, nil
}

const sectionMarks = `"*** Add File: PATH", "*** Update File: PATH" or "*** Delete File: PATH"`

// parseDiff parses the diff of an operation that names its file separately: the
// hunks of an update, or the lines of a new file.
func parseDiff(op patchOp, path, diff string) (filePatch, error) {
	file := filePatch{op: op, path: path}
	if op == patchDelete {
		return file, nil
	}
	if strings.HasPrefix(strings.TrimSpace(diff), markBegin) {
		return unwrapDiff(file, diff)
	}
	p, err := newPatchParser(diff)
	if err != nil {
		return file, err
	}
	if op == patchAdd {
		err = p.addition(&file)
	} else {
		err = p.update(&file)
	}
	if err == nil && !p.done() && p.trimmed() != markEnd {
		err = p.fileProblem(&file, p.next+1, "a diff of one file cannot have the line %s", wording.Clip(p.lines[p.next]))
	}
	return file, err
}

// unwrapDiff parses a diff that came in the envelope of a patch.
func unwrapDiff(file filePatch, diff string) (filePatch, error) {
	files, err := parsePatch(diff)
	if err != nil {
		return file, err
	}
	if len(files) != 1 || files[0].op != file.op || files[0].path != file.path || files[0].moveTo != "" {
		return file, &Error{Path: file.path, Problem: "the diff holds a patch of its own that does something else; send the lines of this file only"}
	}
	return files[0], nil
}

func newPatchParser(text string) (*patchParser, error) {
	if len(text) > MaxPatchBytes {
		return nil, &Error{Problem: fmt.Sprintf("the patch has %d bytes; the limit is %d. Send it in parts", len(text), MaxPatchBytes)}
	}
	lines := strings.Split(text, "\n")
	if last := len(lines) - 1; lines[last] == "" {
		lines = lines[:last]
	}
	return &patchParser{lines: withoutCR(lines)}, nil
}

// withoutCR removes the carriage returns from a patch in which every line ends
// with one, because they come from the transport. In any other patch they belong
// to the file.
func withoutCR(lines []string) []string {
	for i, line := range lines {
		if !strings.HasSuffix(line, "\r") && i < len(lines)-1 {
			return lines
		}
	}
	for i := range lines {
		lines[i] = strings.TrimSuffix(lines[i], "\r")
	}
	return lines
}

// heredoc matches a line that passes a patch to a shell command.
var heredoc = lazyregexp.New(`^(?:[\w./-]+\s+)?<<-?\s*(['"]?)(\w+)(['"]?)$`)

// open skips the first line. It also removes the wrapper that some models put
// around a patch: a here-document or a code fence.
func (p *patchParser) open() error {
	p.skipBlank()
	if p.done() {
		return &Error{Problem: "the patch is empty; it begins with the line " + strconv.Quote(markBegin)}
	}
	if first := p.trimmed(); first != markBegin {
		if end, wrapped := wrapper(first); wrapped {
			p.dropLast(end)
			p.next++
			p.skipBlank()
		}
	}
	if p.done() || p.trimmed() != markBegin {
		return p.problem(min(p.next+1, len(p.lines)), "a patch begins with the line %q and ends with the line %q; this one begins with %s", markBegin, markEnd, wording.Clip(p.lines[min(p.next, len(p.lines)-1)]))
	}
	p.next++
	return nil
}

func wrapper(line string) (end string, wrapped bool) {
	if m := heredoc.FindStringSubmatch(line); m != nil && m[1] == m[3] {
		return m[2], true
	}
	return "```", strings.HasPrefix(line, "```")
}

// dropLast removes the last line if it equals text.
func (p *patchParser) dropLast(text string) {
	n := len(p.lines)
	for n > p.next+1 && strings.TrimSpace(p.lines[n-1]) == "" {
		n--
	}
	if n > p.next+1 && strings.TrimSpace(p.lines[n-1]) == text {
		p.lines = p.lines[:n-1]
	}
}

// file parses one section with its header.
func (p *patchParser) file() (filePatch, error) {
	file := filePatch{line: p.next + 1}
	header := p.trimmed()
	var ok bool
	for op, mark := range []string{patchAdd: markAdd, patchUpdate: markUpdate, patchDelete: markDelete} {
		var path string
		if path, ok = strings.CutPrefix(header, mark); ok {
			file.op, file.path = patchOp(op), strings.TrimSpace(path)
			break
		}
	}
	if !ok {
		return file, p.problem(p.next+1, "%s is not the beginning of a file; want %s", wording.Clip(header), sectionMarks)
	}
	if file.path == "" {
		return file, p.problem(p.next+1, "the line names no file")
	}
	p.next++
	var err error
	switch file.op {
	case patchAdd:
		err = p.addition(&file)
	case patchUpdate:
		if to, ok := strings.CutPrefix(p.peekTrimmed(), markMove); ok {
			if file.moveTo = strings.TrimSpace(to); file.moveTo == "" {
				return file, p.fileProblem(&file, p.next+1, "the line names no file to move to")
			}
			p.next++
		}
		err = p.update(&file)
	}
	return file, err
}

// addition parses the lines of a new file.
func (p *patchParser) addition(file *filePatch) error {
	var b strings.Builder
	noEnd := false
	for ; !p.done(); p.next++ {
		line := p.lines[p.next]
		text, ok := strings.CutPrefix(line, "+")
		switch {
		case ok:
			noEnd = false
			b.WriteString(text)
			b.WriteByte('\n')
		case isNoEnd(line):
			noEnd = true
		case p.atSection():
			file.content = cutEnd(b.String(), noEnd)
			return nil
		case strings.TrimSpace(line) == "":
			// A blank line is layout; a blank line of the file has its "+".
		default:
			return p.fileProblem(file, p.next+1, `every line of a new file begins with "+"; this one is %s`, wording.Clip(line))
		}
	}
	file.content = cutEnd(b.String(), noEnd)
	return nil
}

func cutEnd(s string, noEnd bool) string {
	if noEnd {
		return strings.TrimSuffix(s, "\n")
	}
	return s
}

// isNoEnd recognizes the line by which a unified diff says that a file does not
// end with a newline.
func isNoEnd(line string) bool {
	return strings.HasPrefix(line, `\`) && strings.EqualFold(strings.TrimSpace(line[1:]), "No newline at end of file")
}

// update parses the hunks of a file.
func (p *patchParser) update(file *filePatch) error {
	for {
		p.skipBlank()
		if p.done() || p.atSection() {
			break
		}
		h := hunk{number: len(file.hunks) + 1, line: p.next + 1}
		if err := p.hunk(file, &h); err != nil {
			return err
		}
		file.hunks = append(file.hunks, h)
		if p.hunks++; p.hunks > maxPatchHunks {
			return p.problem(p.next, "the patch has more than %d hunks; send it in parts", maxPatchHunks)
		}
	}
	if len(file.hunks) == 0 && file.moveTo == "" {
		return p.fileProblem(file, file.line, "the update has no hunks; a hunk begins with a line @@")
	}
	return nil
}

// hunk parses one hunk: its @@ lines, its edits, and the end-of-file mark.
func (p *patchParser) hunk(file *filePatch, h *hunk) error {
	for !p.done() {
		header, ok := strings.CutPrefix(p.lines[p.next], "@@")
		if !ok {
			break
		}
		h.anchor(header)
		p.next++
	}
	for ; !p.done(); p.next++ {
		line := p.lines[p.next]
		if strings.HasPrefix(line, "@@") || p.atSection() {
			break
		}
		if strings.TrimRight(line, " \t") == markEOF {
			h.atEnd = true
			p.next++
			break
		}
		if isNoEnd(line) && len(h.edits) > 0 {
			h.edits[len(h.edits)-1].noEnd = true
			continue
		}
		e, ok := parseEdit(line)
		if !ok {
			return p.hunkProblem(file, h, p.next+1, `every line of a hunk begins with " " (kept), "-" (removed) or "+" (added); this one is %s`, wording.Clip(line))
		}
		h.edits = append(h.edits, e)
	}
	if len(h.edits) == 0 {
		return p.hunkProblem(file, h, h.line, "the hunk has no lines")
	}
	return nil
}

func parseEdit(line string) (edit, bool) {
	if line == "" {
		return edit{kind: ' ', loose: true}, true
	}
	switch line[0] {
	case ' ', '-', '+':
		return edit{kind: line[0], text: line[1:]}, true
	}
	return edit{}, false
}

// unifiedHeader matches what follows the @@ in a unified diff.
var unifiedHeader = lazyregexp.New(`^-(\d{1,9})(?:,\d+)? \+\d+(?:,\d+)? @@`)

// anchor records what follows @@: nothing, a line of the file to go to, or the
// line numbers of a unified diff. The first of these numbers can decide between
// two places.
func (h *hunk) anchor(header string) {
	header = strings.TrimPrefix(header, " ")
	if m := unifiedHeader.FindStringSubmatch(header); m != nil {
		h.at, _ = strconv.Atoi(m[1])
		h.counted = true
		return
	}
	header = strings.TrimSuffix(header, " @@")
	if strings.TrimSpace(header) != "" {
		h.anchors = append(h.anchors, header)
	}
}

func (p *patchParser) done() bool      { return p.next >= len(p.lines) }
func (p *patchParser) trimmed() string { return strings.TrimSpace(p.lines[p.next]) }

func (p *patchParser) peekTrimmed() string {
	if p.done() {
		return ""
	}
	return p.trimmed()
}

func (p *patchParser) skipBlank() {
	for !p.done() && p.trimmed() == "" {
		p.next++
	}
}

// atSection reports whether a section begins here or the patch ends. A line of
// a file cannot be mistaken for that, because it has one more character in front.
func (p *patchParser) atSection() bool {
	line := strings.TrimRight(p.lines[p.next], " \t")
	return strings.HasPrefix(line, "***") && line != markEOF
}

func (p *patchParser) problem(line int, format string, a ...any) error {
	return &Error{Line: line, Problem: fmt.Sprintf(format, a...)}
}

func (p *patchParser) fileProblem(file *filePatch, line int, format string, a ...any) error {
	return &Error{Path: file.path, Line: line, Problem: fmt.Sprintf(format, a...)}
}

func (p *patchParser) hunkProblem(file *filePatch, h *hunk, line int, format string, a ...any) error {
	return &Error{Path: file.path, Hunk: h.number, Line: line, Problem: fmt.Sprintf(format, a...)}
}
