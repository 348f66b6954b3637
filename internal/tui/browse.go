// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package tui

import (
	"slices"
	"strings"
)

// This file is the look into calls: an outline of them, and beside or below it the text of the chosen
// one. It takes the whole screen, in the usual view and in the full screen.

// Node is a row of an outline.
type Node struct {
	// Key identifies the node. Those below it come behind it, with a higher Depth.
	Key   string
	Depth int
	Label string
	// Agent says that it is a subagent: it can be entered, so that only what is below it is shown.
	Agent bool
	// Drop is what Options.Drop calls it; "" if it cannot be taken out. Wait is the key of [Terminal.Wait] for it.
	Drop, Wait string
	// Version changes with the node's text.
	Version int
}

// Outline is what Ctrl+O and Ctrl+G look into, and what the pane beside the full screen shows. Its
// functions must not call methods of the terminal, and may be called at any time.
type Outline struct {
	Nodes func() []Node
	// Last returns the end of Nodes: at least n of them, if there are so many. Nil means no pane.
	Last func(n int) []Node
	Text func(key string) string
}

// browse is the state of the look into calls. Its zero value is one that is not shown.
type browse struct {
	on     bool
	at     string          // the key of the chosen node
	inside []string        // the keys of the nodes that were entered
	folded map[string]bool // nodes whose inner ones are hidden
	top    int             // the first visible row of the text
	room   int             // visible rows of the text

	text nodeText
}

// nodeText is the text of a node, in rows. It is made again when the node or the width changes.
type nodeText struct {
	rows    []string
	key     string // of the node
	version int
	width   int
}

// wideBrowse is from how many columns on the text stands beside the outline.
const wideBrowse = 90

const browseHint = "Up, Down: choose · PgUp, PgDn: scroll · Left, Right: fold · Enter: into a subagent · e: $EDITOR · d: no longer send · Esc: back"

// Browse sets what Ctrl+O and Ctrl+G look into.
func (t *Terminal) Browse(o Outline) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.outline, t.sideText, t.browse.text = o, nodeText{}, nodeText{} // another conversation may have calls with the same ids
}

// look opens the look into calls at the call under the cursor of the transcript or else the last node, or at the
// last subagent.
func (t *Terminal) look(agents bool) {
	if t.outline.Nodes == nil {
		return
	}
	here := ""
	if !agents {
		here = t.callHere()
	}
	for _, n := range slices.Backward(t.outline.Nodes()) {
		if (!agents || n.Agent) && (here == "" || n.Wait == here) {
			t.browse = browse{on: true, at: n.Key, folded: map[string]bool{}}
			t.full.drawn = nil
			return
		}
	}
	t.hint = "there was no call yet"
	if agents {
		t.hint = "there was no subagent yet"
	}
}

// nodes returns the visible nodes, and which of them is chosen: -1 if there is none.
func (t *Terminal) nodes() (list []Node, chosen int) {
	b := &t.browse
	all := t.outline.Nodes()
	if len(b.inside) > 0 {
		all = below(all, b.inside[len(b.inside)-1])
	}
	hidden := -1 // nodes that are deeper than this are hidden
	for _, n := range all {
		if hidden >= 0 && n.Depth > hidden {
			continue
		}
		if hidden = -1; b.folded[n.Key] {
			hidden = n.Depth
		}
		list = append(list, n)
	}
	chosen = slices.IndexFunc(list, func(n Node) bool { return n.Key == b.at })
	if chosen < 0 && len(list) > 0 {
		chosen = len(list) - 1
		b.at = list[chosen].Key
	}
	return list, chosen
}

// below returns a node and those below it.
func below(all []Node, key string) []Node {
	first := slices.IndexFunc(all, func(n Node) bool { return n.Key == key })
	if first < 0 {
		return nil
	}
	last := first + 1
	for last < len(all) && all[last].Depth > all[first].Depth {
		last++
	}
	return all[first:last]
}

// browseKey applies a key to the look into calls.
func (t *Terminal) browseKey(name string) {
	list, chosen := t.nodes()
	if chosen < 0 {
		t.browse = browse{}
		return
	}
	if act := lookActs[name]; act != nil {
		act(t, list, chosen)
	}
}

// What follows is what single keys do: see browseRows. list are the visible nodes, and chosen is an index of it.

// choose chooses a node.
func (t *Terminal) choose(list []Node, to int) {
	if to = min(max(to, 0), len(list)-1); list[to].Key != t.browse.at {
		t.browse.at, t.browse.top = list[to].Key, 0
	}
}

func up(t *Terminal, list []Node, chosen int)   { t.choose(list, chosen-1) }
func down(t *Terminal, list []Node, chosen int) { t.choose(list, chosen+1) }
func endLook(t *Terminal, _ []Node, _ int)      { t.browse = browse{} }

func (t *Terminal) textUp([]Node, int)    { t.browse.top -= max(1, t.browse.room-1) }
func (t *Terminal) textDown([]Node, int)  { t.browse.top += max(1, t.browse.room-1) }
func (t *Terminal) textBegin([]Node, int) { t.browse.top = 0 }
func (t *Terminal) textEnd([]Node, int)   { t.browse.top = len(t.browse.text.rows) }

// foldNode hides what is below a node, or goes to the node above.
func (t *Terminal) foldNode(list []Node, chosen int) {
	if chosen+1 < len(list) && list[chosen+1].Depth > list[chosen].Depth {
		t.browse.folded[t.browse.at] = true
		return
	}
	for up := chosen - 1; up >= 0; up-- {
		if list[up].Depth < list[chosen].Depth {
			t.choose(list, up)
			return
		}
	}
}

func (t *Terminal) unfoldNode([]Node, int) { delete(t.browse.folded, t.browse.at) }

// enterNode enters a subagent.
func (t *Terminal) enterNode(list []Node, chosen int) {
	b := &t.browse
	if delete(b.folded, b.at); list[chosen].Agent && (len(b.inside) == 0 || b.inside[len(b.inside)-1] != b.at) {
		b.inside = append(b.inside, b.at)
	}
}

func (t *Terminal) editNode([]Node, int) {
	if _, err := t.editText(t.outline.Text(t.browse.at), ".txt"); err != nil {
		t.hint = Shown(err.Error())
	}
}

// dropNode takes a call out of what is sent.
func (t *Terminal) dropNode(list []Node, chosen int) {
	switch drop := list[chosen].Drop; {
	case t.opts.Drop == "" || drop == "":
		t.hint = "a call of a subagent is not part of what is sent"
	case t.submit(t.opts.Drop+" "+drop, false):
		t.browse = browse{}
	}
}

// leaveNode leaves a subagent, or else the look into calls.
func (t *Terminal) leaveNode([]Node, int) {
	b := &t.browse
	if n := len(b.inside); n > 0 {
		b.at, b.inside = b.inside[n-1], b.inside[:n-1]
		return
	}
	t.browse = browse{}
}

// browsed returns the rows of the look into calls, and the row of the chosen node.
func (t *Terminal) browsed(width, height int) (rows []string, row int) {
	b := &t.browse
	width = max(4, width-1)
	list, chosen := t.nodes()
	if chosen < 0 {
		return make([]string, height), 0
	}
	hint := browseHint
	switch {
	case t.hint != "":
		hint = t.hint
	case t.asking, t.pending:
		hint = "a question waits for you: Esc goes back to it"
	case len(b.inside) > 0:
		hint = "Esc: out of the subagent · " + browseHint
	}
	room := max(1, height-1)
	if width >= wideBrowse {
		left := min(60, width*2/5)
		names, at := t.outlined(list, chosen, left, room)
		rows, row = t.beside(names, t.browseText(list[chosen], width-left-3, room), left, room), at
	} else {
		most := max(1, min(len(list), room/3))
		names, at := t.outlined(list, chosen, width, most)
		rows, row = names, at
		if len(rows) < room {
			rows = append(rows, t.styled(strings.Repeat("─", width), dim))
		}
		rows = append(rows, t.browseText(list[chosen], width, room-len(rows))...)
		for len(rows) < room {
			rows = append(rows, "")
		}
	}
	if height > 1 {
		rows = append(rows, t.styled(fitted(hint, width), dim))
	}
	return rows, row
}

// beside returns n rows: those on the left, which have at most so many columns, and those on the right.
func (t *Terminal) beside(left, right []string, wide, n int) (rows []string) {
	for i := range n {
		var l, r string
		if i < len(left) {
			l = left[i]
		}
		if i < len(right) {
			r = right[i]
		}
		rows = append(rows, l+strings.Repeat(" ", max(0, wide-columns(l)))+t.styled(" │ ", dim)+r)
	}
	return rows
}

// outlined returns the rows of nodes around the chosen one, which has a mark.
func (t *Terminal) outlined(list []Node, chosen, width, most int) (rows []string, row int) {
	from := min(max(0, chosen-most/2), max(0, len(list)-most))
	for i := from; i < min(len(list), from+most); i++ {
		n := list[i]
		fold := " "
		switch {
		case t.browse.folded[n.Key]:
			fold = "▸"
		case i+1 < len(list) && list[i+1].Depth > n.Depth:
			fold = "▾"
		}
		mark, style := " ", ""
		if i == chosen {
			mark, style, row = "›", bold, len(rows)
		}
		text := fitted(mark+strings.Repeat("  ", n.Depth-list[0].Depth)+fold+" "+Shown(strings.ReplaceAll(n.Label, "\n", " ")), width)
		if style != "" {
			text = t.styled(text, style)
		}
		rows = append(rows, text)
	}
	return rows, row
}

// browseText returns the visible rows of a node's text.
func (t *Terminal) browseText(n Node, width, room int) []string {
	b := &t.browse
	rows := b.text.of(t.outline, n, width)
	b.room = max(0, room)
	b.top = max(0, min(b.top, len(rows)-b.room))
	return rows[b.top:min(len(rows), b.top+b.room)]
}

// of returns the rows of a node's text.
func (x *nodeText) of(o Outline, n Node, width int) []string {
	if x.rows == nil || x.key != n.Key || x.version != n.Version || x.width != width {
		*x = nodeText{key: n.Key, version: n.Version, width: width}
		for line := range strings.SplitSeq(strings.TrimRight(o.Text(n.Key), "\n"), "\n") {
			x.rows = append(x.rows, worded(Shown(line), width)...)
		}
	}
	return x.rows
}
