// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package toolkit

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/antiphon-go/antiphon/tool"
	"github.com/antiphon-go/antiphon/toolkit/internal/files"
)

//go:embed find_and_replace.md
var findAndReplaceText string

// findAndReplaceInput are the arguments of find_and_replace.
type findAndReplaceInput struct {
	Path    string `json:"path" jsonschema:"the file, relative to a root, or name:path for a named root"`
	Find    string `json:"find" jsonschema:"the text to find, exactly as it is in the file, white space included"`
	Replace string `json:"replace" jsonschema:"the text to put in its place; may be empty"`
	All     bool   `json:"all,omitzero" jsonschema:"replace every occurrence; without it the text must occur exactly once"`
}

func newFindAndReplace(name string, f *files.Files) (tool.Tool, error) {
	t, err := tool.New(name, f.Describe(findAndReplaceText), fileTools{f}.findAndReplace, tool.Exclusive())
	if err != nil {
		return nil, err
	}
	return f.Guard(t, files.PathOf, files.None), nil
}

// findAndReplace replaces a text in a file. It changes nothing if the text does not
// occur, or is ambiguous, because the model may mean another place.
func (f fileTools) findAndReplace(ctx context.Context, in findAndReplaceInput) (string, error) {
	switch in.Find {
	case "":
		return "", errors.New("find is empty; to add text at the end of a file use append_to_file")
	case in.Replace:
		return "", errors.New("find and replace are equal; there is nothing to change")
	}
	p, release, err := f.Pin(ctx, in.Path, "edit", true)
	if err != nil {
		return "", err
	}
	defer func() { _ = release() }()
	var done string
	err = f.Edit(p, false, func(old []byte, _ bool) ([]byte, error) {
		// Edit may have waited for another write.
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if err := p.RefuseBinary(old, int64(len(old))); err != nil {
			return nil, err
		}
		find, replace := lineEnds(old, in.Find, in.Replace)
		at, count := occurrences(old, find)
		if err := in.judge(p, old, at, count); err != nil {
			return nil, err
		}
		n := bytes.Count(old, find) // fewer if occurrences overlap
		// Before the content is made: it could need more memory than the machine has.
		if size := int64(len(old)) + int64(n)*int64(len(replace)-len(find)); size > files.MaxEditBytes {
			return nil, files.TooLarge(p, size)
		}
		done = replaced(p, n, lineAt(old, at[0]))
		return bytes.ReplaceAll(old, find, replace), nil
	})
	if err != nil {
		return "", err
	}
	return done, nil
}

// replaced returns the output for n replacements, the first of them in the given
// line.
func replaced(p files.Place, n, line int) string {
	if n == 1 {
		return fmt.Sprintf("Replaced 1 occurrence in %s, at line %d.", p, line)
	}
	return fmt.Sprintf("Replaced %d occurrences in %s.", n, p)
}

// lineEnds adapts the texts to a file with CRLF line ends, because models always
// write LF.
func lineEnds(content []byte, find, replace string) ([]byte, []byte) {
	crlf := bytes.Count(content, []byte("\r\n"))
	if crlf > 0 && crlf == bytes.Count(content, []byte("\n")) {
		find, replace = toCRLF(find), toCRLF(replace)
	}
	return []byte(find), []byte(replace)
}

func toCRLF(s string) string {
	return strings.ReplaceAll(strings.ReplaceAll(s, "\r\n", "\n"), "\n", "\r\n")
}

// maxPlaces is the maximum number of occurrences in an error text.
const maxPlaces = 10

// occurrences counts find, and returns the places of the first ones. Two of these may
// overlap, because then it is not clear which is meant. Later ones that overlap are not
// counted: with a long text in a repetitive file that would take hours.
func occurrences(content, find []byte) (at []int, count int) {
	from := 0
	for len(at) < maxPlaces {
		i := bytes.Index(content[from:], find)
		if i < 0 {
			return at, len(at)
		}
		at = append(at, from+i)
		from += i + 1
	}
	return at, len(at) + bytes.Count(content[from:], find)
}

// lineAt returns the number of the line that contains an offset.
func lineAt(content []byte, offset int) int { return 1 + bytes.Count(content[:offset], []byte("\n")) }

// judge returns an error if a text that occurs at the given places cannot be
// replaced.
func (in findAndReplaceInput) judge(p files.Place, content []byte, at []int, count int) error {
	if count == 0 {
		return fmt.Errorf("the text was found 0 times in %s%s; nothing was changed. Read the file and copy the text exactly", p, hint(content, in.Find))
	}
	if count == 1 || in.All {
		return nil
	}
	var lines []string
	for _, offset := range at {
		lines = append(lines, fmt.Sprint(lineAt(content, offset)))
	}
	lines = slices.Compact(lines)
	if count > len(at) {
		lines = append(lines, "…")
	}
	return fmt.Errorf("the text was found %d times in %s (at line %s), so it is not clear which is meant; nothing was changed. Make find longer until it occurs once, or set all to true",
		count, p, strings.Join(lines, ", "))
}

// hint returns a possible reason why a text was not found.
func hint(content []byte, find string) string {
	if strings.ContainsRune(find, utf8.RuneError) && !utf8.Valid(content) {
		return " (the file holds bytes that are not UTF-8; they are shown as U+FFFD and cannot be found by it)"
	}
	line := strings.TrimSpace(find)
	line, _, _ = strings.Cut(line, "\n")
	if line = strings.TrimSpace(line); len(line) < 3 {
		return ""
	}
	if i := bytes.Index(content, []byte(line)); i >= 0 {
		return fmt.Sprintf(" (its first line, white space aside, is at line %d)", lineAt(content, i))
	}
	if i := bytes.Index(bytes.ToLower(content), []byte(strings.ToLower(line))); i >= 0 {
		return fmt.Sprintf(" (its first line occurs with other upper and lower case, near line %d)", lineAt(bytes.ToLower(content), i))
	}
	return ""
}
