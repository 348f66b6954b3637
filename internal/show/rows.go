// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package show

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/antiphon-go/antiphon/host"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
)

// This file prints logs, with one row per entry.

// NewLogPrinter returns a printer for a log.
func NewLogPrinter(out, err io.Writer, env host.Environment, full bool) *Printer {
	return &Printer{
		Options: Options{Out: out, Err: err, Waits: (*Screen)(nil), Hide: env.Hider(), Colour: coloursOn(out, env)},
		rows:    true, full: full, unshown: map[string]int{},
	}
}

// Row prints a row of a log: the entry's number, a word for its kind, and its text.
func (p *Printer) Row(seq int64, colour, what, text string) {
	if !p.rows || p.writeErr != nil {
		return
	}
	p.lines++
	text = p.Hide(text)
	if p.full {
		text = strings.ReplaceAll(strings.TrimRight(Printable(text), "\n"), "\n", "\n"+strings.Repeat(" ", 21))
	} else {
		text = Shorten(text, 110)
	}
	what = fmt.Sprintf("%-12s", Shorten(what, 30))
	if p.Colour && colour != "" {
		what = "\x1b[" + colour + "m" + what + "\x1b[0m"
	}
	_, p.writeErr = fmt.Fprintf(p.Out, "%6d  %s %s\n", seq, what, text)
}

// receivedRow prints an item of the model. If a reply continues one that broke off
// and repeats its text, only the rest is printed.
func (p *Printer) receivedRow(seq int64, b session.OutputItem) {
	mark := ""
	if b.Partial {
		mark = "(broke off) "
	}
	if b.Item.Type() != item.TypeMessage {
		p.itemRow(seq, b.Item, mark)
		return
	}
	text := InWords(b.Item)
	p.last = spokenEntry{seq, text}
	if before := p.parts; before.seq != 0 {
		p.parts = spokenEntry{}
		mark += fmt.Sprintf("(continues entry %d) ", before.seq)
		if rest, again := behind(text, before.text); again {
			text = "… " + rest
		}
	}
	p.Row(seq, bold, string(b.Item.Role()), mark+text)
}

func (p *Printer) itemRow(seq int64, it item.Item, mark string) {
	colour, what := Dim, string(it.Type())
	switch {
	case it.Type() == item.TypeMessage:
		colour, what = bold, string(it.Role())
	case it.Type() == item.TypeReasoning:
	case it.IsCall():
		colour, what = Yellow, "call"
	case it.IsOutput():
		colour, what = Green, "output"
	}
	if p.rows {
		p.Row(seq, colour, what, mark+InWords(it))
	}
}

func (p *Printer) setupRow(seq int64, changed bool) {
	if changed && p.rows {
		p.Row(seq, Dim, "setup", setupInWords(&p.Setup, p.full))
	}
}

// UnshownEntries lists the kinds of entries without a row, to explain gaps in the
// numbers.
func (p *Printer) UnshownEntries() {
	n := 0
	var kinds []string
	for _, kind := range slices.Sorted(maps.Keys(p.unshown)) {
		n += p.unshown[kind]
		kinds = append(kinds, fmt.Sprintf("%d %s", p.unshown[kind], strings.ReplaceAll(kind, "_", " ")))
	}
	if n > 0 {
		are := "are"
		if n == 1 {
			are = "is"
		}
		fmt.Fprintf(p.Err, "antiphon: %s that only a run needs %s not shown (%s); --all shows all\n", Plural(n, "entry"), are, strings.Join(kinds, ", "))
	}
}
