// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"hash/fnv"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"charm.land/glamour/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/internal/sse"
	"github.com/antiphon-go/antiphon/internal/tui"
)

// The screen for which Markdown is rendered. The live part of a terminal is a third of it.
const (
	screenWidth = 100
	screenRows  = 30
)

// markdownRow renders replies as their deltas arrive, and shows them after each.
func markdownRow(name string, replies [][]string) row {
	r := row{
		name: name, unit: "delta", maxAllocs: -1,
		bars: []bar{
			least("a prefix cache over glamour, times ours", func(r result) float64 { return r.of(prefixName) }, 2, 20),
		},
		note: func() string {
			return fmt.Sprintf("After each delta the reply is rendered so that a screen of %d columns can show it, with colours. The other library is glamour, which renders whole texts: blocks that no later text can change are rendered once and kept, as the chat programs on it do, and the rest is rendered anew after each delta. Both show the same words.", screenWidth)
		},
		libs: []lib{
			{"antiphon", rendered(replies, ours)},
			{prefixName, rendered(replies, overGlamour)},
		},
	}
	for _, deltas := range replies {
		r.units += len(deltas)
		for _, d := range deltas {
			r.bytes += len(d)
		}
	}
	return r
}

const prefixName = "glamour with a prefix cache"

// rendered returns work that shows replies one after another. It comes to their words.
func rendered(replies [][]string, show func(deltas []string) (string, error)) func() (int, error) {
	return func() (int, error) {
		h := fnv.New32a()
		for _, deltas := range replies {
			text, err := show(deltas)
			if err != nil {
				return 0, err
			}
			for _, word := range wordsOf(text) {
				_, _ = h.Write([]byte(word + " "))
			}
		}
		return int(h.Sum32()), nil
	}
}

// ours shows a reply as the terminal of antiphon chat does.
func ours(deltas []string) (string, error) {
	s := tui.NewStream(screenWidth-1, screenRows/3, true)
	var transcript []string
	for _, delta := range deltas {
		finished, _ := s.Write(delta)
		transcript = append(transcript, finished...)
	}
	transcript = append(transcript, s.End()...)
	// Glamour does not show the lines around code.
	transcript = slices.DeleteFunc(transcript, func(line string) bool { return strings.HasPrefix(ansi.Strip(line), "```") })
	return strings.Join(transcript, "\n"), nil
}

// overGlamour shows a reply with glamour.
func overGlamour(deltas []string) (shown string, err error) {
	r, err := glamour.NewTermRenderer(glamour.WithStandardStyle("dark"), glamour.WithWordWrap(screenWidth))
	if err != nil {
		return "", err
	}
	p := prefixCache{glamour: r}
	for _, delta := range deltas {
		if shown, err = p.write(delta); err != nil {
			return "", err
		}
	}
	return shown, nil
}

// prefixCache renders a Markdown text while it grows. What stands before a place that no
// later text can change is rendered once.
type prefixCache struct {
	glamour *glamour.TermRenderer
	prefix  string // rendered
	rest    string // the text behind it
	looked  int    // lines of the rest before this place were looked at
	fence   string // the code block at this place, or ""
	blank   bool   // the line before it is blank
	list    bool   // a list may go on
}

// write adds text and returns the whole text as rendered.
func (p *prefixCache) write(text string) (string, error) {
	p.rest += text
	if at := p.safe(); at > 0 {
		done, err := p.glamour.Render(p.rest[:at])
		if err != nil {
			return "", err
		}
		p.prefix += done
		p.rest, p.looked = p.rest[at:], p.looked-at
	}
	end, err := p.glamour.Render(p.rest)
	return p.prefix + end, err
}

var listItem = regexp.MustCompile(`^\s*([-*+]|\d{1,9}[.)])\s`)

// safe returns the last place where a block begins that does not include the text before it,
// or 0. It looks at whole lines only.
func (p *prefixCache) safe() (at int) {
	for {
		end := strings.IndexByte(p.rest[p.looked:], '\n')
		if end < 0 {
			return at
		}
		line := p.rest[p.looked : p.looked+end]
		trimmed := strings.TrimSpace(line)
		switch {
		case p.fence != "":
			if strings.HasPrefix(trimmed, p.fence) && strings.Trim(trimmed, p.fence[:1]) == "" {
				p.fence = ""
			}
		case trimmed == "":
		default:
			goesOn := line[0] == ' ' || line[0] == '\t' || p.list && listItem.MatchString(line)
			if p.blank && !goesOn {
				at = p.looked
			}
			if p.blank && !goesOn || listItem.MatchString(line) {
				p.list = listItem.MatchString(line)
			}
			if marks := len(trimmed) - len(strings.TrimLeft(trimmed, trimmed[:1])); (trimmed[0] == '`' || trimmed[0] == '~') && marks >= 3 {
				p.fence = trimmed[:marks]
			}
		}
		p.blank = trimmed == "" && p.fence == ""
		p.looked += end + 1
	}
}

// wordsOf returns what a person reads: runs of letters and digits.
func wordsOf(shown string) []string {
	return strings.FieldsFunc(ansi.Strip(shown), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
}

// longReply returns the deltas of a reply with headings, lists, code and a table, in pieces of
// the length of a model's tokens.
func longReply(sections int) [][]string {
	var b strings.Builder
	for i := range sections {
		fmt.Fprintf(&b, "## Step %d: the reader\n\n", i+1)
		b.WriteString("The reader keeps **one buffer** for all events, and gives out views of it; a view is valid until the next call. " +
			"That is why `Next` copies nothing, and why a caller who keeps an event has to *clone* it first. " +
			"The [documentation](https://go.dev/doc) says the same of scanners.\n\n")
		b.WriteString("- **Growth**: the buffer doubles, up to the limit.\n- **Reuse**: what was read is moved to the front before it grows,\n  which costs a copy of the unread part.\n" +
			"- **Errors**: an event that is too large ends the stream with `ErrTooLarge`.\n\n")
		b.WriteString("```go\nfunc (r *Reader) Next() (Event, error) {\n\tfor {\n\t\tif i := bytes.IndexByte(r.buf, '\\n'); i >= 0 { // a whole line\n\t\t\treturn r.parse(r.buf[:i])\n\t\t}\n" +
			"\t\tif err := r.fill(); err != nil {\n\t\t\treturn Event{}, fmt.Errorf(\"reading: %w\", err)\n\t\t}\n\t}\n}\n```\n\n")
		fmt.Fprintf(&b, "| case | before | after |\n|---|---|---|\n| short lines | 4%d ns | 21 ns |\n| long lines | 310 ns | 120 ns |\n\n", i)
		b.WriteString("1. Run the tests with the race detector.\n2. Compare the figures above with those of your machine.\n\n")
	}
	var list []string
	for text, n := b.String(), 0; text != ""; n++ {
		size := min(len(text), 2+n*7%6) // ASCII, so any place will do
		list, text = append(list, text[:size]), text[size:]
	}
	return [][]string{list}
}

// recordedReplies returns the deltas of recorded replies in the folder beside the project that
// are Markdown, until there are most of them. Without the folder there are none.
func recordedReplies(most int) (replies [][]string) {
	files, _ := filepath.Glob(filepath.Join("..", "..", "shared", "corpus", "streams", "*.sse"))
	for _, f := range files {
		if most <= 0 {
			break
		}
		b, err := os.ReadFile(f)
		if err != nil || len(b) > 1<<20 {
			continue
		}
		var deltas []string
		rd := sse.NewReader(bytes.NewReader(b), sse.Options{})
		for {
			raw, err := rd.Next()
			if err != nil {
				break
			}
			if ev, err := api.ParseEvent(raw.Data); err == nil && ev.Type == api.EventTextDelta {
				deltas = append(deltas, ev.Delta)
			}
		}
		if text := strings.Join(deltas, ""); len(deltas) >= 100 && (strings.Contains(text, "**") || strings.Contains(text, "```")) {
			replies = append(replies, deltas)
			most -= len(deltas)
		}
	}
	return replies
}
