// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/agent/plan"
	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/host"
	"github.com/antiphon-go/antiphon/internal/person"
	"github.com/antiphon-go/antiphon/internal/show"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/tool"
	"github.com/antiphon-go/antiphon/toolkit"
)

// This file holds the commands of a chat that tell about its tools, its rules and what is
// sent.

// equipped returns the agent and its tools. The first time it starts the servers of the file,
// and Esc ends that.
func (t *dialogue) equipped(ctx context.Context) (*agent.Agent, *tool.Set, error) {
	work, stop := context.WithCancel(ctx)
	defer stop()
	defer t.face.working(stop, nil)()
	a, err := t.host.Agent(work)
	if err != nil {
		return nil, nil, err
	}
	set, err := a.ToolSet(work)
	if err == nil {
		names := set.Names()
		t.toolNames.Store(&names)
	}
	return a, set, err
}

// tools lists the tools: where each comes from, and what happens when it is called.
func (t *dialogue) tools(ctx context.Context) error {
	a, set, err := t.equipped(ctx)
	if err != nil {
		return err
	}
	if set.Len() == 0 && len(a.Request.Tools) == 0 {
		fmt.Fprintln(t.std.Err, "  there are no tools")
		return nil
	}
	w := tabwriter.NewWriter(t.std.Err, 0, 4, 2, ' ', 0)
	for name, one := range set.All() {
		fmt.Fprintln(w, t.toolLine(a, name, one))
	}
	for _, one := range a.Request.Tools {
		fmt.Fprintf(w, "  %s\tat the endpoint\truns there, and is not asked about\n", show.Visible(one.ToolType()))
	}
	return w.Flush()
}

// toolLine describes a tool in columns.
func (t *dialogue) toolLine(a *agent.Agent, name string, one tool.Tool) string {
	about := tool.AnnotationsOf(one)
	from := "the file"
	switch _, builtin := toolkit.Lookup(name); {
	case about.Origin.Of != "":
		from = about.Origin.Of
	case about.Subagent:
		from = "an agent"
	case builtin || name == tool.ReadOutputName:
		from = "built in"
	}
	p := plan.Policy{Allow: a.Policy.Allow, Ask: a.Policy.Ask, Deny: a.Policy.Deny, Rules: a.Policy.Rules}
	j := p.Judge(plan.Question{Tool: name, Declared: session.Verdict(about.Approval), ReadOnly: about.ReadOnly}, nil)
	verdict := map[session.Verdict]string{session.Allow: "runs", session.Ask: "asks", session.Deny: "is refused"}[j.Verdict]
	if j.Ruled {
		verdict += fmt.Sprintf(" (%s: %s)", j.From, j.Rule)
	} else if about.ReadOnly {
		verdict += " (it only reads)"
	}
	var except []string
	for _, r := range t.answered() {
		if matched, err := path.Match(r.Tool, name); err == nil && matched && j.Verdict == session.Ask {
			except = append(except, covered(r))
		}
	}
	if except != nil {
		verdict += ", but your answers allow " + strings.Join(except, "; ")
	}
	return fmt.Sprintf("  %s\t%s\t%s", show.Visible(name), show.Shorten(show.Visible(from), 60), show.Visible(verdict))
}

// covered says in words which calls a remembered rule allows.
func covered(r session.Rule) string {
	if r.Arguments == "" && len(r.Prefix) == 0 && r.Under == "" {
		return "all its calls"
	}
	return person.Covers(r)
}

// answered returns the rules that answers to questions have added.
func (t *dialogue) answered() (rules []session.Rule) {
	for e := range t.host.Session.Entries() {
		if b, ok := e.Body.(session.Approval); ok && b.Remember != nil {
			r := *b.Remember
			r.From = fmt.Sprintf("your answer, entry %d", e.Seq)
			rules = append(rules, r)
		}
	}
	return rules
}

// byAllow is where the rules of /allow come from.
const byAllow = "/allow"

// allow shows the rules, or changes one for this person in this conversation.
func (t *dialogue) allow(ctx context.Context, rest string) error {
	words := strings.Fields(rest)
	verdict := session.Allow
	switch {
	case len(words) == 0:
		return t.rules(ctx)
	case len(words) == 1 && words[0] == "reset":
		return t.rule(ctx, func(session.Rule) bool { return true })
	case len(words) == 2 && slices.Contains([]session.Verdict{session.Allow, session.Ask, session.Deny}, session.Verdict(words[0])):
		verdict, words = session.Verdict(words[0]), words[1:]
	case len(words) > 1:
		return errors.New("/allow TOOL lets its calls run, /allow ask TOOL and /allow deny TOOL do not, /allow reset takes back what you said so; without anything the rules are shown")
	}
	name := words[0]
	if err := plan.CheckPatterns(name); err != nil {
		return err
	}
	_, set, err := t.equipped(ctx)
	if err != nil {
		return err
	}
	matches := func(one string) bool {
		ok, err := path.Match(name, one)
		return ok && err == nil
	}
	if !slices.ContainsFunc(set.Names(), matches) {
		return fmt.Errorf("there is no tool %s; /tools lists them", name)
	}
	if verdict != session.Allow { // an answer before must not be stronger
		t.who.Unlike(func(r session.Rule) bool { return matches(r.Tool) })
	}
	if err := t.rule(ctx, func(r session.Rule) bool { return r.Tool == name }, session.Rule{Verdict: verdict, Tool: name, From: byAllow}); err != nil {
		return err
	}
	a, set, err := t.equipped(ctx)
	if err != nil {
		return err
	}
	w := tabwriter.NewWriter(t.std.Err, 0, 4, 2, ' ', 0)
	for one, of := range set.All() {
		if matches(one) {
			fmt.Fprintln(w, t.toolLine(a, one, of))
		}
	}
	return w.Flush()
}

// rule removes rules of /allow, and adds others.
func (t *dialogue) rule(ctx context.Context, remove func(session.Rule) bool, add ...session.Rule) error {
	return t.reopen(ctx, func(cfg *host.Config) {
		cfg.Rules = append(slices.DeleteFunc(slices.Clone(cfg.Rules), func(r session.Rule) bool { return r.From == byAllow && remove(r) }), add...)
	})
}

// rules shows all rules.
func (t *dialogue) rules(ctx context.Context) error {
	a, set, err := t.equipped(ctx)
	if err != nil {
		return err
	}
	var all []session.Rule
	for name, one := range set.All() {
		if v := tool.AnnotationsOf(one).Approval; v != "" {
			all = append(all, session.Rule{Verdict: session.Verdict(v), Tool: name, From: "the tool's declaration"})
		}
	}
	all = append(append(all, a.Policy.Rules...), t.answered()...)
	for _, r := range all {
		fmt.Fprintf(t.std.Err, "  %s (%s)\n", show.Visible(r.String()), show.Visible(cmp.Or(r.From, "the file")))
	}
	fmt.Fprintln(t.std.Err, "  what no rule covers runs if it only reads, and is asked about otherwise; deny is stronger than ask, and ask than allow")
	return nil
}

// breaks says in words what broke the prompt cache.
var breaks = map[string]string{
	session.ByQuarantine:       "the endpoint refused it, so something else is sent in its place",
	session.ByDroppedReasoning: "the endpoint could not read the reasoning, so it is not sent any more",
	session.ByCompaction:       "the history was made shorter",
	session.ByRestoring:        "the history that was made shorter is sent again",
	session.ByCollapsing:       "a later call read the same again, so a marker is sent in its place",
	session.ByRepetition:       "a later reply said it again from the beginning",
	session.ByWithdrawal:       "it was withdrawn",
	plan.ByTools:               "the tools changed, which stand before everything else",
	plan.ByInstructions:        "the instructions changed, which stand before everything else",
	plan.ByModel:               "another model or endpoint was asked",
}

// why says what broke the prompt cache.
func (t *dialogue) why() error {
	if err := t.kept(); err != nil {
		return err
	}
	var state plan.State
	var setup session.Setup
	before, asked, broke, silent := "", 0, 0, 0
	last := "  there was one request whose use is known, and nothing to compare it with"
	for e := range t.host.Session.Entries() {
		state.Apply(e)
		setup.Apply(e.Body)
		b, ok := e.Body.(session.TurnEnded)
		if ok && b.Usage == nil && b.Class == "" {
			silent++
		}
		if !ok || b.Usage == nil {
			continue
		}
		now := show.Visible(show.Asking(&setup))
		moved := before != "" && now != before
		before = now
		asked++
		c := state.Cache()
		if c == nil || asked < 2 {
			continue
		}
		if t.tooled[e.Seq] {
			c.Broken = &plan.CacheBreak{Index: -1, Why: plan.ByTools}
		}
		if moved {
			fmt.Fprintf(t.std.Err, "  entry %d: another model or endpoint was asked: %s\n", e.Seq, now)
		} else if c.Broken != nil {
			fmt.Fprintf(t.std.Err, "  entry %d: broken %s\n", e.Seq, brokenBy(c.Broken))
		}
		if moved || c.Broken != nil {
			broke++
		}
		last = fmt.Sprintf("  the last request: %s of its history is as in the one before; the endpoint read %d of %d input tokens from its cache",
			share(c.Stable, c.Input), c.Cached, b.Usage.InputTokens)
		if c.Broken == nil && !moved && c.Cached == 0 && c.Expected > 0 {
			last += ": it keeps no cache of prompts this short, or for this long, or does not say so"
		}
	}
	if broke == 0 && asked > 1 {
		fmt.Fprintf(t.std.Err, "  nothing broke the prompt cache: each of %s begins with all of the one before\n", show.Plural(asked, "request"))
	}
	switch {
	case asked == 0 && silent > 0:
		last = "  the endpoint does not say what it used, so nothing is known about its prompt cache"
	case asked == 0:
		last = "  no request was answered yet"
	case silent > 0:
		last += fmt.Sprintf("; about %s the endpoint said nothing", show.Plural(silent, "more request"))
	}
	fmt.Fprintln(t.std.Err, last)
	return nil
}

// brokenBy says where a prompt cache was broken, and by what.
func brokenBy(b *plan.CacheBreak) string {
	where := "from the beginning"
	if b.Seq > 0 {
		where = fmt.Sprintf("at entry %d", b.Seq)
	}
	return where + ": " + cmp.Or(breaks[b.Why], show.Visible(b.Why))
}

// share returns a part of a whole in percent.
func share(part, whole int) string {
	if whole == 0 {
		return "0%"
	}
	return fmt.Sprintf("%d%%", 100*part/whole)
}

// context shows what fills the model's window, or takes an item out of what is sent.
func (t *dialogue) context(ctx context.Context, rest string) error {
	if err := t.kept(); err != nil {
		return err
	}
	if number, drop := strings.CutPrefix(rest, "drop "); drop {
		return t.drop(ctx, strings.TrimSpace(number))
	} else if rest != "" {
		return errors.New("/context drop ENTRY takes the item of an entry out of what is sent; without anything it shows what fills the window")
	}
	a, set, err := t.equipped(ctx)
	if err != nil {
		return err
	}
	items, sums := t.sizes(a.Request.Model)
	sums["instructions"] += plan.EstimateText(a.Request.Instructions)
	if text, err := (&api.Request{Tools: append(set.Definitions(), a.Request.Tools...)}).AppendJSON(nil); err == nil && set.Len() > 0 {
		sums["definitions of tools"] = plan.EstimateText(string(text))
	}
	total := 0
	for _, n := range sums {
		total += n
	}
	line := fmt.Sprintf("  about %s tokens", tokensIn(int64(total)))
	if t.window > 0 {
		line += fmt.Sprintf(", %d%% of the window of %s", int64(total)*100/t.window, tokensIn(t.window))
	}
	if t.size > 0 {
		line += fmt.Sprintf("; the endpoint counted %d with the last reply", t.size)
	}
	fmt.Fprintln(t.std.Err, line)
	kinds := slices.SortedFunc(maps.Keys(sums), func(a, b string) int { return cmp.Or(cmp.Compare(sums[b], sums[a]), cmp.Compare(a, b)) })
	for _, kind := range kinds {
		if sums[kind] > 0 {
			fmt.Fprintf(t.std.Err, "  %4s %6s  %s\n", share(sums[kind], total), tokensIn(int64(sums[kind])), show.Visible(kind))
		}
	}
	slices.SortStableFunc(items, func(a, b sizedItem) int { return cmp.Compare(b.tokens, a.tokens) })
	fmt.Fprintln(t.std.Err, "  the largest; /context drop ENTRY takes one out, /compact sends a summary of what is old, /collapse leaves out what was read again:")
	const most = 5
	for _, one := range items[:min(most, len(items))] {
		fmt.Fprintf(t.std.Err, "  %4s %6s  %s\n", share(one.tokens, total), tokensIn(int64(one.tokens)), show.Visible(one.what))
	}
	return nil
}

// sizedItem is an item of the next request, in words.
type sizedItem struct {
	what   string
	tokens int
}

// sizes estimates the items of the next request, and the sums of each kind.
func (t *dialogue) sizes(model string) (items []sizedItem, sums map[string]int) {
	sums = map[string]int{}
	called := map[string]string{}
	for _, one := range session.Explain(t.host.Session.Entries()).Request {
		it := one.Item
		if it.IsCall() {
			called[it.CallID()] = it.Name()
		}
		kind, tokens := contextKind(it, called), plan.Estimate(model, it)
		sums[kind] += tokens
		items = append(items, sizedItem{fmt.Sprintf("entry %d, %s: %s", one.Seq, kind, show.Shorten(t.env.Hide(show.InWords(it)), 60)), tokens})
	}
	return items, sums
}

// contextKind says what an item of a request is, for sums. called has the names of the tools
// of calls.
func contextKind(it item.Item, called map[string]string) string {
	switch {
	case it.Type() == item.TypeMessage && it.Instructs():
		return "instructions"
	case it.Type() == item.TypeMessage && it.Role() == item.RoleAssistant:
		return "replies"
	case it.Type() == item.TypeMessage:
		return "what you said"
	case it.IsCall():
		return "calls of " + cmp.Or(it.Name(), string(it.Type()))
	case called[it.CallID()] != "":
		return "outputs of " + called[it.CallID()]
	}
	return strings.ReplaceAll(string(it.Type()), "_", " ")
}

// drop takes the item of an entry, or what the person said, by its first line, out of what is sent. The log keeps it.
func (t *dialogue) drop(ctx context.Context, which string) error {
	seq, err := strconv.ParseInt(which, 10, 64)
	if err != nil {
		list, line := t.said(), strings.TrimSpace(strings.TrimPrefix(which, "›")) // which may stand before a number
		switch numbers := numbersOf(list, line); {
		case line == "" || len(numbers) == 0:
			return errors.New("/context drop takes the number of an entry, as /context shows it, or the first line of what you said")
		case len(numbers) > 1:
			return errors.New("several messages begin with this line; /as-sent shows their numbers")
		default:
			seq = list[len(list)-numbers[0]].seq
		}
	}
	sent := slices.ContainsFunc(session.Explain(t.host.Session.Entries()).Request, func(one session.SentItem) bool { return one.Seq == seq })
	if !sent {
		return fmt.Errorf("entry %d is not an item that is sent; /context shows the largest of those that are, /as-sent all", seq)
	}
	if _, err := t.host.Session.Append(ctx, session.ItemsWithdrawn{Seqs: []int64{seq}, Reason: "The user took it out of the conversation.", By: person.Name}); err != nil {
		return err
	}
	fmt.Fprintf(t.std.Err, "antiphon: entry %d is not sent any more; the log keeps it\n", seq)
	return nil
}

// collapse turns the markers for what was read again on and off.
func (t *dialogue) collapse(rest string) error {
	switch rest {
	case "", "on":
		t.collapses = true
		fmt.Fprintln(t.std.Err, "antiphon: from now on a marker stands for the output of a call whose content a later call has read again; /collapse off ends it")
	case "off":
		t.collapses = false
		fmt.Fprintln(t.std.Err, "antiphon: outputs are sent from now on also if they are read again")
	default:
		return errors.New("/collapse takes on or off")
	}
	return nil
}

// save gives the session a name.
func (t *dialogue) save(ctx context.Context, name string) error {
	if err := t.kept(); err != nil {
		return err
	}
	if name == "" {
		fmt.Fprintf(t.std.Err, "antiphon: all that was said is kept in the session %s; %s continues it. /save NAME gives it another name\n", show.Printable(cmp.Or(t.info.Name, t.info.ID)), t.comeBack())
		return nil
	}
	if err := host.CheckName(name); err != nil {
		return err
	}
	if err := t.host.Store.Rename(ctx, t.info.ID, name); err != nil {
		return t.conf.Program.Taken(err, name)
	}
	t.info.Name = name
	t.tell()
	fmt.Fprintf(t.std.Err, "antiphon: the session is called %s now\n", show.Printable(name))
	return nil
}
