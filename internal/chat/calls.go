// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/internal/show"
	"github.com/antiphon-go/antiphon/internal/tui"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/tool"
)

// This file is what Ctrl-O and Ctrl-G look into: the calls of the conversation, with those of its
// subagents below them.

// outline holds the calls in their order, as a tree. Its methods are safe for concurrent use.
type outline struct {
	hide  func(string) string
	inner func(id string) ([]session.Entry, error) // reads the log of a subagent

	mu    sync.Mutex
	fresh []ofLog                // entries that were not looked at: a long conversation opens at once
	logs  map[string]*heardCalls // by session; "" is the conversation itself
	reads sync.WaitGroup         // logs of subagents that are being read
}

// ofLog is an entry of a session.
type ofLog struct {
	of string
	e  session.Entry
}

// heardCalls are the calls of a log.
type heardCalls struct {
	known agent.KnownCalls
	list  []*seenCall
	by    map[string]*seenCall
	talk  []string    // what was said to and by a subagent
	turns int         // changes
	live  []*seenCall // those that run
	read  bool        // the log was looked for in the store
	// While the log is read, new entries wait: they stand behind what is there.
	reading bool
	waiting []session.Entry
}

// seenCall is a call, and what is known of it.
type seenCall struct {
	id, tool, arguments string
	entry               int64  // of the call in the log
	agent               string // the session of the subagent that it started, or ""
	edited              bool
	asked               string // why it was asked about
	verdicts            []string
	began               time.Time
	took                time.Duration
	output              string    // of a call that runs
	item                item.Item // of one that has run
	state               string
	changes             int
}

func newOutline(hide func(string) string, inner func(id string) ([]session.Entry, error)) *outline {
	return &outline{hide: hide, inner: inner, logs: map[string]*heardCalls{}}
}

// add takes the next entry of a session.
func (o *outline) add(of string, e session.Entry) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.fresh = append(o.fresh, ofLog{of, e})
}

// look looks at the entries that are new.
func (o *outline) look() {
	for _, f := range o.fresh {
		if l := o.log(f.of); l.reading {
			l.waiting = append(l.waiting, f.e)
		} else {
			l.add(f.of != "", f.e)
		}
	}
	o.fresh = nil
}

// nested takes what happens in a subagent.
func (o *outline) nested(ev agent.SubagentEvent) {
	r, ok := ev.Event.(agent.Recorded)
	if !ok {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.log(ev.Session).read = true
	o.fresh = append(o.fresh, ofLog{ev.Session, r.Entry})
}

func (o *outline) log(of string) *heardCalls {
	l := o.logs[of]
	if l == nil {
		l = &heardCalls{by: map[string]*seenCall{}}
		o.logs[of] = l
	}
	return l
}

// add takes the next entry. Of a subagent it keeps what was said, too.
func (l *heardCalls) add(talks bool, e session.Entry) {
	known := l.known.Add(e)
	l.turns++
	switch b := e.Body.(type) {
	case session.InputItem:
		if talks {
			l.say("> ", b.Item)
		}
		return
	case session.OutputItem:
		if talks {
			l.say("", b.Item)
		}
	}
	if known == nil {
		return
	}
	id := fmt.Sprintf("%s#%d", known.CallID, known.Number) // an endpoint may use an id twice
	c := l.by[id]
	if c == nil {
		c = &seenCall{id: id, tool: known.Tool, state: "…", entry: e.Seq}
		l.by[c.id] = c
		l.list = append(l.list, c)
		l.talk = append(l.talk, "-> "+c.tool)
	}
	c.tool, c.arguments, c.edited = known.Tool, known.Arguments, known.Edited
	c.changes++
	if known.Session != "" {
		c.agent = known.Session
	}
	switch b := e.Body.(type) {
	case session.ApprovalAsked:
		c.state = "waits for an answer"
		c.asked = b.Reason
	case session.Approval:
		c.verdicts = append(c.verdicts, show.VerdictOf(b))
		c.state = "…"
		if !b.Allowed {
			c.state = "refused"
		}
	case session.CallStarted:
		c.began, c.state = e.Time, "runs"
		l.live = append(l.live, c)
	case session.Paused:
		c.state = "paused"
	case session.CallOutput:
		c.output, c.item, l.live = "", b.Item, slices.DeleteFunc(l.live, func(one *seenCall) bool { return one == c })
		if c.state = "done"; b.Failed {
			c.state = "failed"
		}
		if !known.Ran {
			c.state = "refused"
		}
		if !c.began.IsZero() && e.Time.After(c.began) {
			c.took = e.Time.Sub(c.began)
		}
	}
}

// mostLive is how many bytes are kept of the output of a call that runs.
const mostLive = 64 << 10

// printed takes what a call of the conversation prints while it runs.
func (o *outline) printed(id, text string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.look()
	for _, c := range o.log("").live {
		if strings.HasPrefix(c.id, id+"#") {
			c.output += text
			if more := len(c.output) - mostLive; more > 0 {
				c.output = "…" + strings.ToValidUTF8(c.output[more:], "")
			}
			c.changes++
		}
	}
}

// say notes a message of a subagent.
func (l *heardCalls) say(mark string, it item.Item) {
	if it.Type() != item.TypeMessage || it.Instructs() {
		return
	}
	l.talk = append(l.talk, mark+strings.ReplaceAll(show.InWords(it), "\n", "\n"+mark))
}

// nodeKey is the key of a call's node.
func nodeKey(of, id string) string { return of + "\x00" + id }

// nodes returns the tree.
func (o *outline) nodes() []tui.Node {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.look()
	return o.under("", 0, map[string]bool{})
}

// last returns the end of the tree: at least n nodes, unless there are fewer. What is before them costs
// nothing.
func (o *outline) last(n int) (list []tui.Node) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.look()
	main := o.log("")
	shown := map[string]bool{"": true}
	for i := len(main.list) - 1; i >= 0 && len(list) < n; i-- {
		list = append(o.node("", main.list[i], 0, shown), list...)
	}
	return list
}

// under returns the nodes of a session's calls. Shown are the sessions whose calls are in the tree: an
// imported session may name one subagent many times, or itself.
func (o *outline) under(of string, depth int, shown map[string]bool) (list []tui.Node) {
	l := o.logs[of]
	if l == nil || shown[of] {
		return nil
	}
	shown[of] = true
	for _, c := range l.list {
		list = append(list, o.node(of, c, depth, shown)...)
	}
	return list
}

// node returns the node of a call, and those below it.
func (o *outline) node(of string, c *seenCall, depth int, shown map[string]bool) []tui.Node {
	label := c.tool
	if about := show.AboutCall(c.arguments, o.hide); about != "" {
		label += " " + about
	}
	label += ", " + c.state
	if c.took > 0 {
		label += ", " + show.Duration(c.took)
	}
	n := tui.Node{Key: nodeKey(of, c.id), Depth: depth, Label: show.Shorten(o.hide(label), 300), Agent: c.agent != "", Version: c.changes}
	if n.Wait = show.CallKey(c.id[:strings.LastIndexByte(c.id, '#')]); of == "" {
		n.Drop = strconv.FormatInt(c.entry, 10)
	}
	if inner := o.logs[c.agent]; c.agent != "" && inner != nil {
		n.Version += inner.turns
	}
	list := []tui.Node{n}
	if c.agent != "" {
		list = append(list, o.under(c.agent, depth+1, shown)...)
	}
	return list
}

// text returns what is known of a call: its arguments, why it ran, and its output; of a subagent also
// what was said.
func (o *outline) text(key string) string {
	of, id, _ := strings.Cut(key, "\x00")
	o.mu.Lock()
	defer o.mu.Unlock()
	o.look()
	c := o.log(of).by[id]
	if c == nil {
		return ""
	}
	var b strings.Builder
	s := show.Asked(tool.Call{ID: c.id, Name: c.tool, Arguments: c.arguments}, nil, "")
	fmt.Fprintln(&b, s.Title)
	for _, row := range s.Rows(1<<20, show.Underlined) {
		fmt.Fprintln(&b, row)
	}
	if c.edited {
		fmt.Fprintln(&b, "   with other arguments than the model's")
	}
	if c.asked != "" {
		fmt.Fprintln(&b, "asked because "+c.asked)
	}
	for _, v := range c.verdicts {
		fmt.Fprintln(&b, v)
	}
	state := c.state
	if c.took > 0 {
		state += " after " + show.Duration(c.took)
	}
	fmt.Fprintln(&b, state)
	if c.agent != "" {
		fmt.Fprintf(&b, "\nthe subagent %s:\n", c.agent)
		inner := o.innerOf(c.agent)
		if inner.reading {
			fmt.Fprintln(&b, "\nits log is being read")
		}
		for _, said := range inner.talk {
			fmt.Fprintln(&b, "\n"+said)
		}
	}
	output := c.output
	if c.item.Type() != "" {
		output = show.InWords(c.item)
	}
	if output != "" {
		fmt.Fprintln(&b, "\n"+output)
	}
	return o.hide(b.String())
}

// innerOf returns the calls of a subagent. If they were not seen, its log is read beside: this is
// called while the screen is drawn, and a store may be slow.
func (o *outline) innerOf(id string) *heardCalls {
	l := o.log(id)
	if l.read {
		return l
	}
	l.read, l.reading = true, true
	o.reads.Go(func() {
		entries, err := o.inner(id)
		o.mu.Lock()
		defer o.mu.Unlock()
		l.came(entries, err)
	})
	return l
}

// came takes the log that was read, and then what happened meanwhile.
func (l *heardCalls) came(entries []session.Entry, err error) {
	l.reading = false
	l.turns++
	if err != nil {
		l.talk = append(l.talk, "its log cannot be read: "+err.Error())
	}
	last := int64(0)
	for _, e := range slices.Concat(entries, l.waiting) {
		if e.Seq > last { // an entry may be in both
			l.add(true, e)
			last = e.Seq
		}
	}
	l.waiting = nil
}

// innerLog reads the log of a subagent.
func (t *dialogue) innerLog(id string) ([]session.Entry, error) {
	here := t.here.Load()
	if here == nil {
		return nil, errors.New("the session is not open")
	}
	s, err := session.Open(context.Background(), here.store, id)
	if err != nil {
		return nil, err
	}
	return s.Log(), nil
}
