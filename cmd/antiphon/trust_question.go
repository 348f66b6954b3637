// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/antiphon-go/antiphon/internal/person"
	"github.com/antiphon-go/antiphon/internal/show"
	"github.com/antiphon-go/antiphon/sandbox"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/trust"
)

// This file holds the question about a file, and what is shown before it.

// described returns the powers of a file, and what has changed since the person agreed.
func (t *truster) described(c trust.Claim) (s show.Shown) {
	if len(t.saidTo.Sources) > 0 && t.unchanged(&c) {
		return t.describedMore(c)
	}
	s.Add("?? ", show.Visible(t.name(c))+" is not trusted yet. It", "")
	before, changed, err := t.before(&c)
	for _, p := range c.Powers {
		mark := "   "
		if changed && !before.Powers.Has(p) {
			mark = " + "
		}
		s.Add(mark, show.Visible(p.String()), "")
	}
	if err == nil && changed {
		for _, p := range before.Powers.Without(c.Powers) {
			s.Add(" - ", show.Visible(p.String()), "")
		}
		for _, v := range before.Variables {
			name, host := show.Visible(v.Name), show.Visible(v.Host)
			s.Add("   ", fmt.Sprintf("You named %s for the variable %s of that content; --env %s@%s names it again", host, name, name, host), "")
		}
		s.Add("   ", fmt.Sprintf("You agreed to another content on %s. Changed: %s", before.At.Local().Format(time.DateOnly), changes(&before, &c)), "")
	}
	if within := t.within(c); within != "" {
		s.Add("   ", within, "")
	}
	if n := len(c.Powers); n > fewPowers { // the worst, which comes first, may have left the screen
		s.Add("   ", fmt.Sprintf("These are %d. The worst: it %s", n, show.Shorten(show.Visible(c.Powers[0].String()), 200)), "")
	}
	return s
}

// describedMore returns the powers of a file after a yes in this run: with what may be read since then,
// the file does other things.
func (t *truster) describedMore(c trust.Claim) (s show.Shown) {
	s.Add("?? ", "With what may be read after your yes, the lines with + are new. "+show.Visible(t.name(c)), "")
	for _, p := range c.Powers {
		mark := "   "
		if !t.saidTo.Powers.Has(p) {
			mark = " + "
		}
		s.Add(mark, show.Visible(p.String()), "")
	}
	for _, p := range t.saidTo.Powers.Without(c.Powers) {
		s.Add(" - ", show.Visible(p.String()), "")
	}
	if within := t.within(c); within != "" {
		s.Add("   ", within, "")
	}
	return s
}

// before returns what the person agreed to last about the file. That may be several agreements to the
// same texts: one for each time that more of them could be read. The one with the claim's powers counts.
func (t *truster) before(c *trust.Claim) (g trust.Grant, ok bool, err error) {
	last, ok, err := t.store.Before(c.Path)
	if err != nil || !ok {
		return last, ok, err
	}
	g = last
	for other, err := range t.store.All() {
		if err != nil {
			return last, false, err
		}
		differs := func(s trust.Source) bool { return !slices.Contains(last.Sources, s) }
		same := len(other.Powers.Without(c.Powers))+len(c.Powers.Without(other.Powers)) == 0
		if other.Path == c.Path && same && !slices.ContainsFunc(other.Sources, differs) {
			g = other
		}
	}
	return g, true, nil
}

// within says what confines the programs that a file starts, or "" if it starts none or its powers
// say so.
func (t *truster) within(c trust.Claim) string {
	has := func(kind trust.Kind) bool {
		return slices.ContainsFunc(c.Powers, func(p trust.Power) bool { return p.Kind == kind })
	}
	switch {
	case !has(trust.Starts):
		return ""
	case t.sandbox == sandbox.NameFull:
		return "What it starts has all your permissions, because you said --sandbox " + sandbox.NameFull
	case !sandbox.Available().Confines():
		return "What it starts has all your permissions, because this system has no sandbox"
	case t.sandbox != "":
		return "What it starts runs in a sandbox with the profile " + show.Visible(t.sandbox)
	case has(trust.Unconfines):
		return ""
	}
	return "The programs that it starts run in a sandbox: they may use the network, and change files only in the folder named with them and a temporary one"
}

// profileFlag returns the profile that --sandbox and --hosts give to all programs, or "".
func profileFlag(profile string, hosts []string) string {
	if profile == "" && len(hosts) > 0 {
		return sandbox.NameHosts
	}
	return profile
}

// show prints what is known of a file, with a mark before each row so that no foreign text can look
// like the program's. It returns that, and how many rows of it are hidden: if a person is asked, the
// middle of many is.
func (t *truster) show(c trust.Claim) (s show.Shown, hidden int) {
	s = t.described(c)
	return s, t.display(s)
}

// display prints lines, keeps them as what was seen, and returns how many rows are hidden.
func (t *truster) display(s show.Shown) (hidden int) {
	rows := s.Rows(t.columns(), show.Unmarked)
	if t.who != nil {
		rows, hidden = show.Folded(rows)
	}
	for _, row := range rows {
		fmt.Fprintln(t.std.err, row)
	}
	t.seen.Reset()
	for _, l := range s.Lines {
		t.seen.WriteString(l.Mark + l.Text + "\n")
	}
	return hidden
}

// columns returns the width of the terminal. Lines in a file or a pipe are not broken.
func (t *truster) columns() int {
	switch {
	case t.who != nil:
		return t.who.Width()
	case show.IsTerminal(t.std.err):
		return show.WidthOf(t.std.err)
	}
	return math.MaxInt32
}

// reply asks a question about what was shown, and returns the answer. Nobody can agree before all
// was shown: until then, an answer other than no or a call for help shows it.
func (t *truster) reply(ctx context.Context, question string, s show.Shown, hidden *int) (answer string, ok bool, err error) {
	if *hidden > 0 {
		fmt.Fprintln(t.std.err, "   s: show the "+show.Plural(*hidden, "line")+" that are hidden")
	}
	fmt.Fprint(t.std.err, "   "+show.Wrap(question, t.who.Width()-4, "   ")+" ")
	line, ok, err := t.who.Line(ctx)
	answer = strings.ToLower(line)
	if err != nil || !ok || *hidden == 0 || slices.Contains([]string{"", "n", "no", "?", "h", "help"}, answer) {
		return answer, ok, err
	}
	fmt.Fprintf(t.std.err, "   %s not been shown yet; here are all:\n", person.Have(*hidden))
	for _, row := range s.Rows(t.columns(), show.Unmarked) {
		fmt.Fprintln(t.std.err, row)
	}
	*hidden = 0
	return "", true, nil
}

// fewPowers is how many powers stay on a small screen together with the question.
const fewPowers = 12

// changes names the files that have changed since an agreement, and says whether the
// powers have.
func changes(before *trust.Grant, c *trust.Claim) string {
	var list []string
	for _, s := range c.Sources {
		if !slices.Contains(before.Sources, s) {
			list = append(list, show.Visible(filepath.Base(s.Path)))
		}
	}
	for _, s := range before.Sources {
		if !slices.ContainsFunc(c.Sources, func(now trust.Source) bool { return now.Path == s.Path }) {
			list = append(list, show.Visible(filepath.Base(s.Path))+" is gone")
		}
	}
	if len(c.Powers.Without(before.Powers))+len(before.Powers.Without(c.Powers)) == 0 {
		list = append(list, "no power")
	}
	if len(list) == 0 {
		return "what it may do"
	}
	return strings.Join(list, ", ")
}

// question asks the person at the terminal.
func (t *truster) question(ctx context.Context, c trust.Claim) error {
	done, err := t.who.Alone(ctx)
	if err != nil {
		return err
	}
	defer done()
	t.who.Unasked()
	s, hidden := t.show(c)
	allows := slices.ContainsFunc(c.Powers, func(p trust.Power) bool { return p.Kind == trust.Allows })
	choices := fileAnswers(allows)
	t.seen.WriteString(choices.Text(person.RunIt))
	t.who.Explain(choices)
	for {
		answer, ok, err := t.reply(ctx, strings.TrimSpace(choices.Question(person.RunIt)), s, &hidden)
		if err != nil {
			return err
		}
		if !ok {
			return t.nobody(c)
		}
		t.decided, t.by = session.DeciderPerson, person.Name
		switch answer {
		case "y", "yes":
			t.said, t.saidTo = always, c
			return nil
		case "o", "once":
			t.said, t.saidTo = once, c
			return nil
		case "n", "no":
			return usage(fmt.Errorf("%s was not run, because it is not trusted", t.name(c)))
		case "c", "call":
			if allows {
				t.said, t.saidTo = askEach, c
				return nil
			}
			t.who.Explain(choices)
		case "":
		default:
			t.who.Explain(choices)
		}
	}
}

// fileAnswers returns the answers to the question about a file. A letter that the question about
// a call has too means the same there: a, which allows all calls of a tool, must not be an
// answer here.
func fileAnswers(allows bool) person.Answers {
	list := person.Answers{
		{Letter: "y", Does: "run it, now and later, until it or a file that it includes changes"},
		{Letter: "o", Does: "run it now, and ask again next time"},
	}
	if allows {
		list = append(list, person.Choice{Letter: "c", Does: "run it now, ask before each call that it allows itself, and ask again next time"})
	}
	return append(list, person.Choice{Letter: "n", Does: "do not run it. Nothing has been started, sent or read outside its folder yet."})
}
