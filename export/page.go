// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package export

import (
	"bufio"
	"cmp"
	"crypto/sha256"
	_ "embed" // the page's parts
	"encoding/base64"
	"errors"
	"html/template"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/antiphon-go/antiphon/internal/nils"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
)

//go:embed page.html
var pageHTML string

//go:embed page.css
var pageCSS string

//go:embed page.js
var pageJS string

// The templates are parsed when the first page is written, and not at each start of a program.
var templates = sync.OnceValue(func() *template.Template { return template.Must(template.New("page").Parse(pageHTML)) })

// policy allows a page to show its own images and run its own script only: it loads
// nothing and sends nothing, whatever the log contains.
var policy = sync.OnceValue(func() string {
	return "default-src 'none'; img-src data:; style-src " + hashOf(pageCSS) + "; script-src " + hashOf(pageJS) + "; base-uri 'none'; form-action 'none'"
})

func hashOf(s string) string {
	sum := sha256.Sum256([]byte(s))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

// HTML writes a session as one self-contained page: it needs no network and no other
// file, and JavaScript only for its search. Calls are folded together with their
// outputs, reasoning is folded, images are shown, files can be saved, and the runs
// of subagents appear inside the calls that started them.
//
// The log is not trusted: none of it becomes markup or script, invisible characters
// are shown by name, and the page's content security policy allows nothing but its
// own script. The same log gives the same bytes. Stored data that outputs refer to
// can be saved from the page: see [Log.Blob].
//
// Large payloads are held in memory one at a time, and an image that was sent
// repeatedly appears on the page once.
func HTML(w io.Writer, log Log) error {
	if nils.Is(w) {
		return errNoWriter
	}
	out := bufio.NewWriterSize(w, 64<<10)
	p := &printer{out: out, log: log, pictures: map[[32]byte]string{}}
	t := fold(log.Entries, log.Info)
	p.show("head", p.head(t))
	p.talk(t, "e", 2, []string{log.Info.ID})
	p.show("foot", map[string]any{"Script": template.HTML("<script>" + pageJS + "</script>")})
	return errors.Join(p.err, out.Flush())
}

// printer writes a page. After the first error it writes nothing more.
type printer struct {
	out      *bufio.Writer
	log      Log
	err      error
	pictures map[[32]byte]string // ids of the shown pictures, by the hash of their data
	saved    map[string]bool     // ids of stored data that is already on the page
}

func (p *printer) show(name string, data any) {
	if p.err == nil {
		p.err = templates().ExecuteTemplate(p.out, name, data)
	}
}

func (p *printer) hide(s string) string { return p.log.hide(s) }

// line returns s for an attribute or a short text: on one line and without secrets.
func (p *printer) line(s string, n int) string { return plain(shorten(p.hide(s), n)) }

// fact is one line in the head of a page.
type fact struct {
	Name, Value, Detail string
	Date                string // of a time, in machine-readable form
}

// prompt is a link to a person's message.
type prompt struct{ ID, Text string }

func (p *printer) head(t *talk) any {
	info := p.log.Info
	title := p.line(cmp.Or(info.Title, info.Name, info.ID, "Session"), 120)
	var about []fact
	add := func(name, value string) {
		if value != "" && value != title {
			about = append(about, fact{Name: name, Value: value})
		}
	}
	add("Session", p.line(cmp.Or(info.Name, info.ID), 120))
	add("Agent", p.line(info.Path, 200))
	add("Answered by", p.line(strings.Join(t.by, "; "), 400))
	add("Settings", p.line(string(t.made.Settings), 300))
	add("Program", p.line(t.made.Program, 80))
	if info.Parent != "" {
		add(map[bool]string{true: "Started by", false: "Fork of"}[info.Nested], p.line(info.Parent, 120)+" at entry "+number(info.At))
	}
	first, last := t.sums.first, t.sums.last
	if first.IsZero() {
		first, last = info.Created, info.Updated
	}
	addTime := func(name string, at time.Time) {
		if !at.IsZero() {
			about = append(about, fact{Name: name, Value: dayText(at), Date: at.UTC().Format(time.RFC3339)})
		}
	}
	addTime("From", first)
	addTime("To", last)
	add("Took", tookText(last.Sub(first)))
	return map[string]any{
		"Title": title, "Policy": policy(), "Style": template.HTML("<style>" + pageCSS + "</style>"),
		"About": about, "Facts": t.facts(len(p.log.Entries)), "Prompts": p.prompts(t),
	}
}

func dayText(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02 15:04:05 UTC")
}

// facts returns the totals of a log.
func (t *talk) facts(entries int) []fact {
	s := t.sums
	var list []fact
	add := func(name string, n int64, details ...string) {
		if n == 1 {
			name = strings.TrimSuffix(strings.Replace(name, "entries", "entry", 1), "s")
		}
		list = append(list, fact{Name: name, Value: number(n), Detail: joined(details...)})
	}
	some := func(n int64, what string) string {
		if n == 0 {
			return ""
		}
		return number(n) + " " + what
	}
	add("entries", int64(entries))
	inner := some(int64(s.nestedTurns), "more in subagents")
	add("turns", int64(s.turns), some(int64(s.broken), "broken off"), inner)
	add("calls", int64(s.calls), some(int64(s.failed), "failed"), some(int64(s.lost), "of unknown outcome"), some(int64(s.waiting), "waiting"))
	if all := s.input + s.output + s.nestedTokens; all > 0 {
		add("tokens", all, some(s.nestedTokens, "in subagents"))
	}
	if s.input+s.output > 0 {
		add("tokens in", s.input, some(s.cached, "cached"))
		add("tokens out", s.output, some(s.reasoning, "reasoning"))
	}
	if s.cost > 0 {
		list = append(list, fact{Name: "cost", Value: strings.TrimPrefix(costOf(s.cost), "cost ")})
	}
	return list
}

// prompts returns people's messages for the table of contents.
func (p *printer) prompts(t *talk) (list []prompt) {
	for _, r := range t.rows {
		if !r.given || r.item.Role() != item.RoleUser {
			continue
		}
		text := ""
		if m, err := item.As[item.Message](r.item); err == nil {
			text = firstLine(textOf(m.Content))
		}
		list = append(list, prompt{"e" + strconv.FormatInt(r.seq, 10), cmp.Or(p.line(text, 80), "(no text)")})
	}
	return list
}

// textOf returns the texts of a content, without images and files.
func textOf(c item.Content) string {
	if c.IsText() {
		return c.Text
	}
	var texts []string
	for _, part := range c.Parts {
		if s, ok := partText(part); ok {
			texts = append(texts, s)
		}
	}
	return strings.Join(texts, "\n")
}

// partText returns the text of a text part.
func partText(part item.Part) (string, bool) {
	switch part := part.(type) {
	case *item.InputText:
		return part.Text, true
	case *item.OutputText:
		return part.Text, true
	case *item.PlainText:
		return part.Text, true
	case *item.Refusal:
		return part.Refusal, true
	case *item.ReasoningText:
		return part.Text, true
	case *item.SummaryText:
		return part.Text, true
	}
	return "", false
}

// maxNested is the maximum depth of subagents on a page.
const maxNested = 16

// nested shows the conversation of a session that a call started.
func (p *printer) nested(id, prefix string, level int, within []string) {
	view := map[string]any{"ID": p.line(id, 200), "Why": ""}
	entries, why := p.load(id, within)
	if why != "" {
		view["Why"] = why
		p.show("nested-missing", view)
		return
	}
	t := fold(entries, session.Info{})
	view["About"] = joined(plural(int64(t.sums.turns), "turn"), plural(int64(t.sums.calls), "call"), aside(t.sums.input, "tokens in", t.sums.cached, "cached"), number(t.sums.output)+" out")
	p.show("nested-open", view)
	p.talk(t, prefix, min(level+1, 6), append(within[:len(within):len(within)], id))
	p.show("nested-close", nil)
}

// load returns a nested log, or the reason why it is not shown.
func (p *printer) load(id string, within []string) (entries []session.Entry, why string) {
	if slices.Contains(within, id) {
		return nil, "it contains itself"
	}
	if len(within) > maxNested {
		return nil, "runs are nested too deep to be shown"
	}
	if p.log.Nested == nil || p.err != nil {
		return nil, "its log is not part of this page"
	}
	entries, p.err = p.log.nested(id)
	if len(entries) == 0 {
		return nil, "its log no longer exists"
	}
	return entries, ""
}
