// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package export

import (
	"cmp"
	"html/template"
	"strconv"
	"strings"
	"time"

	"github.com/antiphon-go/antiphon/item"
)

// entryView is the common frame of all rows.
type entryView struct {
	ID, Class, Kind string
	Who, Aside      string
	Level           int
	Number          string
	Date, Clock     string
	Badges          []badge
	Problem         bool
	Source          string // the text that the copy button copies, if it differs from the visible text
	Copy            bool   // show the copy button
	Again           bool   // a later row repeats it
}

// talk shows a conversation. The ids of its rows are the prefix followed by the
// number of the entry.
func (p *printer) talk(t *talk, prefix string, level int, within []string) {
	for _, r := range t.rows {
		v := entryView{
			ID: prefix + strconv.FormatInt(r.seq, 10), Number: strconv.FormatInt(r.seq, 10),
			Level: level, Badges: r.notes, Again: r.again,
		}
		if r.seq == 0 {
			v.ID, v.Number = prefix+cmp.Or(r.id, "end"), ""
		}
		if !r.time.IsZero() {
			v.Date, v.Clock = r.time.UTC().Format(time.RFC3339), r.time.UTC().Format("15:04:05")
		}
		if r.mark != nil {
			p.mark(r, v)
			continue
		}
		it, err := r.item.Whole()
		if err != nil {
			p.err = err
			return
		}
		p.row(r, it, v, within)
	}
}

// row shows an item.
func (p *printer) row(r *row, it item.Item, v entryView, within []string) {
	v.Kind = "message"
	for _, b := range r.notes {
		v.Problem = v.Problem || b.Class != ""
	}
	switch {
	case r.note:
		v.Who, v.Class, v.Kind = "Note", "aside", "mark"
		p.message(it, v)
	case r.call != nil:
		p.call(r.call, it, v, within)
	case it.Type() == item.TypeMessage:
		p.message(it, v)
	case it.Type() == item.TypeReasoning:
		v.Who, v.Class, v.Kind = "Reasoning", "aside", "reasoning"
		p.reasoning(it, v)
	case it.IsOutput():
		v.Who, v.Class, v.Kind = "Output", "call", "call"
		p.show("open", v)
		p.output(it)
		p.show("close", v.Copy)
	default:
		v.Who, v.Class, v.Kind = "Item", "call", "call"
		p.hosted(it, v)
	}
}

// roles are the names and classes of the roles.
var roles = map[item.Role][2]string{
	item.RoleUser:      {"User", "user"},
	item.RoleAssistant: {"Assistant", "assistant"},
	item.RoleSystem:    {"System", "system"},
	item.RoleDeveloper: {"Developer", "system"},
}

func (p *printer) message(it item.Item, v entryView) {
	m, err := item.As[item.Message](it)
	if err != nil {
		p.other(it, v)
		return
	}
	if v.Who == "" {
		name, known := roles[m.Role]
		if !known {
			name = [2]string{p.line(string(m.Role), 40), "system"}
		}
		v.Who, v.Class = name[0], name[1]
	}
	if m.Phase == item.PhaseCommentary {
		v.Aside, v.Class = "commentary", v.Class+" commentary"
	}
	if m.Status == item.StatusIncomplete {
		v.Badges = append(v.Badges, badge{"warn", "incomplete"})
	}
	v.Copy, v.Source = true, plain(p.hide(textOf(m.Content)))
	said := m.Role == item.RoleAssistant
	if !said {
		v.Source = "" // same as the visible text
	}
	title, preview := "Instructions", p.line(textOf(m.Content), 100)
	if v.Again {
		title, preview = "Repeated below", ""
	}
	folded := v.Class == "system" || v.Again
	p.show("open", v)
	if folded {
		p.show("fold-open", map[string]any{"Title": title, "Text": preview, "Class": "quiet"})
	}
	p.content(m.Content, said)
	if folded {
		p.show("fold-close", nil)
	}
	p.show("close", v.Copy)
}

// content shows texts, images and files in order. Texts of a model are Markdown;
// others are shown verbatim.
func (p *printer) content(c item.Content, markdown bool) {
	if c.IsText() {
		p.prose(c.Text, markdown)
		return
	}
	for _, part := range c.Parts {
		if s, ok := partText(part); ok {
			if _, refused := part.(*item.Refusal); refused {
				p.show("label", "The model refused:")
			}
			p.prose(s, markdown)
			if said, ok := part.(*item.OutputText); ok {
				p.citations(said)
			}
			continue
		}
		p.part(part)
	}
}

// part shows a part that is not text.
func (p *printer) part(part item.Part) {
	switch part := part.(type) {
	case *item.InputImage:
		p.show("image", p.picture(part.ImageURL, part.FileID, part.Detail))
	case *item.ComputerScreenshot:
		p.show("image", p.picture(part.ImageURL, part.FileID, part.Detail))
	case *item.InputFile:
		p.show("file", p.file(part))
	case *item.UnknownPart:
		p.value("", string(part.Raw))
	}
}

// prose shows a text that people read.
func (p *printer) prose(s string, asMarkdown bool) {
	if s == "" {
		p.show("empty", nil)
		return
	}
	s = p.hide(s)
	if asMarkdown {
		if body, ok := markdown(s, p.hide); ok {
			p.show("markdown", body)
			return
		}
	}
	p.show("text", markup(s))
}

// citations lists the sources of a text.
func (p *printer) citations(part *item.OutputText) {
	list, err := part.Citations()
	if err != nil {
		return
	}
	var links []picture
	for _, c := range list {
		url, title := citation(c)
		if !leadsOut(url) {
			continue
		}
		links = append(links, picture{Link: plain(p.hide(url)), Caption: p.line(title+" "+url, 160)})
	}
	if len(links) > 0 {
		p.show("citations", links)
	}
}

func (p *printer) reasoning(it item.Item, v entryView) {
	r, err := item.As[item.Reasoning](it)
	if err != nil {
		p.other(it, v)
		return
	}
	texts := textOf(item.Parts(append(r.Summary[:len(r.Summary):len(r.Summary)], r.Content...)...))
	title := "Reasoning"
	if r.EncryptedContent != "" {
		title += " (encrypted, " + sizeText(decodedLen(r.EncryptedContent)) + ")"
	}
	if texts == "" {
		v.Who = "Reasoning"
		p.show("open", v)
		p.show("label", strings.TrimPrefix(strings.Replace(title, "Reasoning", "no summary", 1), " "))
		p.show("close", v.Copy)
		return
	}
	p.show("open", v)
	p.show("fold-open", map[string]any{"Title": "", "Text": p.line(strings.Trim(firstLine(texts), "*#_ "), 110), "Class": "quiet"})
	for _, part := range append(r.Summary[:len(r.Summary):len(r.Summary)], r.Content...) {
		if s, ok := partText(part); ok {
			p.prose(s, true)
		} else {
			p.part(part)
		}
	}
	if r.EncryptedContent != "" {
		p.show("label", title)
	}
	p.show("fold-close", nil)
	p.show("close", v.Copy)
}

// mark shows an event between items.
func (p *printer) mark(r *row, v entryView) {
	v.Kind, v.Class = "mark", "mark "+r.mark.kind
	v.Problem = r.mark.kind == "problem"
	p.show("mark-open", map[string]any{"Entry": v, "Title": p.line(r.mark.title, 300), "Text": markup(p.hide(r.mark.text))})
	if len(r.mark.facts) > 0 {
		p.show("fold-open", map[string]any{"Title": "Made with", "Text": "", "Class": "quiet"})
		list := make([]member, 0, len(r.mark.facts))
		for _, f := range r.mark.facts {
			list = append(list, member{Name: p.line(f.Name, 120), Value: markup(p.hide(f.Value))})
		}
		p.show("members", list)
		p.show("fold-close", nil)
	}
	if len(r.mark.items) > 0 {
		p.show("fold-open", map[string]any{"Title": "What is sent instead", "Text": "", "Class": "quiet"})
		for _, it := range r.mark.items {
			p.inPlace(it)
		}
		p.show("fold-close", nil)
	}
	p.show("mark-close", nil)
}

// inPlace shows an item that replaces others.
func (p *printer) inPlace(it item.Item) {
	it, err := it.Whole()
	if err != nil {
		p.err = err
		return
	}
	if m, err := item.As[item.Message](it); err == nil {
		p.content(m.Content, true)
		return
	}
	p.value(string(it.Type()), it.JSON())
}

// other shows an item as JSON.
func (p *printer) other(it item.Item, v entryView) {
	p.show("open", v)
	p.fold(words(string(it.Type())), it)
	p.show("close", v.Copy)
}

func (p *printer) fold(title string, it item.Item) {
	p.show("fold-open", map[string]any{"Title": p.line(title, 80), "Text": "", "Class": "quiet"})
	p.value("", it.JSON())
	p.show("fold-close", nil)
}

// value shows a JSON text.
func (p *printer) value(label, s string) {
	shown, _ := p.json(item.JSON(s))
	p.show("pre", pre{Label: p.line(label, 80), Text: shown})
}

// pre is preformatted text. It includes the text for the copy button.
type pre struct {
	Label string
	Text  template.HTML
	Long  bool
}

// longText is the maximum number of lines of a text outside of a scrolling frame.
const longText = 60

// verbatim shows a text of a tool unchanged, with diffs marked.
func (p *printer) verbatim(label, s string) {
	if s == "" {
		p.show("empty", nil)
		return
	}
	s = p.hide(s)
	p.show("pre", pre{Label: label, Text: template.HTML(code(s)), Long: strings.Count(s, "\n") > longText})
}

// citation returns the web address of an annotation and its title.
func citation(a item.Annotation) (url, title string) {
	if c, ok := a.(*item.URLCitation); ok {
		return c.URL, c.Title
	}
	return "", ""
}
