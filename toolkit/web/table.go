// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"strconv"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// table writes a table with rows and columns. A table that is used for layout is
// written as plain content.
func (m *markdown) table(n *html.Node) {
	rows, plain := m.rows(n)
	if !plain || m.inline > 0 || m.link {
		m.block(2)
		m.children(n)
		m.block(2)
		return
	}
	columns := 0
	for _, r := range rows {
		columns = max(columns, len(r))
	}
	if c := caption(n); c != nil {
		m.block(2)
		m.children(c)
	}
	m.block(2)
	for i, r := range rows {
		if i == 0 {
			m.row(r, columns)
			m.block(1)
			m.word(strings.Repeat("| --- ", columns) + "|")
		} else {
			m.block(1)
			m.row(r, 0)
		}
		if m.full {
			return
		}
	}
	m.block(2)
}

// row writes a line of cells; nil stands for a column that another cell spans.
func (m *markdown) row(cells []*html.Node, columns int) {
	m.word("|")
	m.inline++
	m.cell = true
	for _, c := range cells {
		m.space = true
		if c != nil {
			m.children(c)
		}
		m.space = true
		m.word("|")
	}
	for i := len(cells); i < columns; i++ {
		m.space = true
		m.word("|")
	}
	m.cell = false
	m.inline--
}

// rows returns the cells of a table, and reports whether Markdown can show it: it
// has at least two rows and columns, and no cell contains anything that needs
// its own lines.
func (m *markdown) rows(table *html.Node) (rows [][]*html.Node, plain bool) {
	columns := 0
	for n := range table.Descendants() {
		if m.stopped() {
			return nil, false
		}
		switch n.DataAtom {
		case atom.Table, atom.Ul, atom.Ol, atom.Dl, atom.Pre, atom.Blockquote, atom.Hr,
			atom.H1, atom.H2, atom.H3, atom.H4, atom.H5, atom.H6:
			return nil, false
		case atom.Tr:
			cells := rowCells(n)
			if len(cells) > maxColumns {
				return nil, false
			}
			if len(cells) > 0 {
				rows = append(rows, cells)
			}
			columns = max(columns, len(cells))
		}
	}
	return rows, len(rows) > 1 && columns > 1
}

// rowCells returns the cells of a row, with nil for the additional columns of a
// cell that spans several.
func rowCells(tr *html.Node) (cells []*html.Node) {
	for c := tr.FirstChild; c != nil && len(cells) <= maxColumns; c = c.NextSibling {
		if c.DataAtom != atom.Td && c.DataAtom != atom.Th || skipped(c) {
			continue
		}
		cells = append(cells, c)
		span, _ := strconv.Atoi(attr(c, "colspan"))
		for range min(span, maxColumns) - 1 {
			cells = append(cells, nil)
		}
	}
	return cells
}

func caption(table *html.Node) *html.Node {
	for c := table.FirstChild; c != nil; c = c.NextSibling {
		if c.DataAtom == atom.Caption {
			return c
		}
	}
	return nil
}
