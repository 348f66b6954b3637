// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/antiphon-go/antiphon/agentfile"
	"github.com/antiphon-go/antiphon/audit"
	"github.com/antiphon-go/antiphon/host"
	"github.com/antiphon-go/antiphon/internal/person"
	"github.com/antiphon-go/antiphon/internal/show"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/trust"
)

// This file holds antiphon trust --mine: what somebody else may have written into a transcript
// counts as if runs of this user had written it.

// added says which lines of a transcript no run of this user wrote, or returns "".
func added(file *agentfile.File) string {
	parts, _ := file.Added()
	var list []string
	for _, p := range parts {
		first, last := linesOf(file.Doc.Source(), p)
		if first == last {
			list = append(list, fmt.Sprintf("line %d", first))
		} else {
			list = append(list, fmt.Sprintf("lines %d to %d", first, last))
		}
	}
	return strings.Join(list, ", ")
}

// linesOf returns the numbers of the first and last line of a part of a text.
func linesOf(text string, p trust.Span) (first, last int) {
	part := strings.Trim(text[p.From:p.To], "\n")
	first = 1 + strings.Count(text[:int(p.From)+strings.Index(text[p.From:p.To], part)], "\n")
	return first, first + strings.Count(part, "\n")
}

// adopt asks whether what others added to the transcript is the person's, and remembers a yes.
func (c *trustAddCommand) adopt(ctx context.Context, t *truster, file *agentfile.File) error {
	lines := added(file)
	if _, begins := file.Added(); begins.Path == "" {
		return usage(fmt.Errorf("--mine: no run has written to %s, so there is nothing in it that could be yours", c.File))
	}
	if lines == "" {
		fmt.Fprintf(t.std.out, "%s counts as yours already, all of it\n", show.Visible(c.File))
		return nil
	}
	var s show.Shown
	s.Add("?? ", fmt.Sprintf("No run of yours wrote this part of %s: %s", show.Visible(c.File), lines), "")
	parts, _ := file.Added()
	for _, p := range parts {
		first, _ := linesOf(file.Doc.Source(), p)
		s.Add("   ", fmt.Sprintf("from line %d:", first), "")
		s.Text(strings.Trim(file.Doc.Source()[p.From:p.To], "\n") + "\n")
	}
	for _, what := range []string{
		"If it is yours, it counts like what your runs wrote, and no later run says that it was added:",
		"- A call in it that has not run starts when a rule, --allow or the file allows the tool, without a question.",
		"- What it says of the conversation holds: which agent goes on, what guards agreed to, what may be run again.",
	} {
		s.Add("   ", what, "")
	}
	hidden := t.display(s)
	if c.Diff {
		return nil
	}
	switch {
	case c.Yes:
	case t.who == nil:
		return errNobodyMine
	default:
		if err := t.confirmMine(ctx, s, hidden, "   y: it counts as yours from now on\n   n: it stays apart: calls in it are asked about, and what it decides counts for nothing"); err != nil {
			return err
		}
	}
	if err := c.takeOver(ctx, t, file); err != nil {
		return err
	}
	fmt.Fprintf(t.std.out, "%s counts as yours\n", show.Visible(c.File))
	return nil
}

// errNobodyMine means that without a terminal only --yes says that something is the person's.
var errNobodyMine = usage(errors.New("--mine: nobody can be asked here\n  hint: read what is shown above; --mine --yes says that it is yours"))

// confirmMine asks whether what was shown is the person's. help explains the answers.
func (t *truster) confirmMine(ctx context.Context, s show.Shown, hidden int, help string) error {
	const question = "did you write or check this? [y]es, it is mine, [n]o:"
	t.seen.WriteString("   " + question)
	t.who.Unasked()
	for {
		answer, ok, err := t.reply(ctx, question, s, &hidden)
		if err != nil {
			return err
		}
		switch {
		case !ok, answer == "n", answer == "no":
			return errNotAgreed
		case answer == "y", answer == "yes":
			return nil
		case answer == "?", answer == "h", answer == "help":
			fmt.Fprintln(t.std.err, help)
		}
	}
}

// takeOver records that all of the transcript is the person's, unless it has changed since it was
// shown.
func (c *trustAddCommand) takeOver(ctx context.Context, t *truster, file *agentfile.File) (err error) {
	release, err := agentfile.Hold(c.File)
	if err != nil {
		return host.LoadError(err)
	}
	defer func() { err = cmp.Or(err, release()) }()
	text := []byte(file.Doc.Source())
	if now, err := os.ReadFile(c.File); err != nil || !bytes.Equal(now, text) {
		return usage(fmt.Errorf("%s has changed since it was shown, so nothing was agreed to", show.Visible(c.File)))
	}
	_, begins := file.Added()
	claim := trust.Claim{Path: begins.Path, Sources: []trust.Source{begins}}
	by := "the caller of the command"
	if t.who != nil {
		by = person.Name
	}
	a := trust.Agreement{Decided: session.DeciderPerson, By: by, From: "antiphon trust --mine", Shown: t.seen.String()}
	if err := t.record(ctx, audit.Agreed(claim, a, nil)); err != nil {
		return err
	}
	left := trust.Left{Path: begins.Path, States: []trust.State{{Size: int64(len(text)), Hash: trust.Hash(text)}}}
	if err := t.left.Leave(left); err != nil {
		return err
	}
	return t.begun.Add(ctx, trust.GrantOf(claim, t.now()))
}
