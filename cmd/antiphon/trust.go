// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/antiphon-go/antiphon/agentfile"
	"github.com/antiphon-go/antiphon/audit"
	"github.com/antiphon-go/antiphon/host"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/trust"
)

// trustFlags are the flags of commands that run an agent's file.
type trustFlags struct {
	Trust bool     `help:"Agree, for this time, to all that the file may do; antiphon trust remembers it."`
	Env   []string `placeholder:"NAME@HOST" sep:"," help:"Send the variable NAME, which the file names, to HOST. May be repeated."`
}

// variables parses --env.
func (f *trustFlags) variables() (list []trust.Variable, err error) {
	for _, text := range f.Env {
		v, err := trust.ParseVariable(text)
		if err != nil {
			return nil, usage(fmt.Errorf("--env: %w", err))
		}
		list = append(list, v)
	}
	return list, nil
}

// trustStore returns the store of grants. It is in the user's data folder, and never
// beside a file, which may come from somebody else.
func trustStore(env environment) (*trust.Store, error) {
	sessions, err := dataFile(env)
	if err != nil {
		return nil, usage(errors.New("the home folder, which holds what you agreed to, is not known; set HOME"))
	}
	return trust.Open(filepath.Join(filepath.Dir(sessions), "trust.jsonl")), nil
}

// truster decides whether a file may do what it claims: by what is remembered, by
// --trust, or by asking the person at the terminal.
type truster struct {
	file  string // as typed
	all   bool   // --trust
	quiet bool   // --quiet
	std   stdio
	store *trust.Store
	begun *trust.Store // the transcripts that runs of this user began, without powers
	left  *trust.Ledger
	audit *audit.Log // nil if none is written
	who   *person    // nil if nobody can be asked

	said     answer          // in this run
	saidTo   trust.Powers    // what the answer was about
	decided  session.Decider // who answered
	by       string          // with the name
	seen     strings.Builder // what was shown last
	remember bool            // the file is remembered, and so is a transcript that it begins
	now      func() time.Time
	unsure   sync.Once // whether the transcript is remembered
	unknown  sync.Once // which transcripts are
}

// answer is what a person said about a file.
type answer int

const (
	unsaid answer = iota
	always
	once
	askEach // without the tools that it allows itself
)

// newTruster returns a truster for a file. who may be nil.
func newTruster(file string, flags *trustFlags, std stdio, env environment, who *person) (*truster, error) {
	store, err := trustStore(env)
	if err != nil {
		return nil, err
	}
	log, err := auditLog(env)
	if err != nil {
		return nil, err
	}
	begun := trust.Open(filepath.Join(filepath.Dir(store.Path()), "transcripts.jsonl"))
	return &truster{file: file, all: flags.Trust, std: std, store: store, begun: begun, left: trust.OpenLedger(filepath.Join(filepath.Dir(store.Path()), "transcripts")), audit: log, who: who, now: time.Now}, nil
}

// record writes to the audit log, if there is one.
func (t *truster) record(ctx context.Context, records ...audit.Record) error {
	if t.audit == nil {
		return nil
	}
	return t.audit.Write(ctx, records...)
}

// protected returns the folder of the agreements and sessions, and the audit log.
func (t *truster) protected() []string {
	list := []string{filepath.Dir(t.store.Path())}
	if t.audit != nil {
		list = append(list, t.audit.Path())
	}
	return list
}

// recorded wraps ask so that its answers are in the audit log, for commands without a host,
// which would record them.
func (t *truster) recorded(ask func(context.Context, trust.Claim) (trust.Agreement, error)) func(context.Context, trust.Claim) (trust.Agreement, error) {
	return func(ctx context.Context, c trust.Claim) (trust.Agreement, error) {
		a, err := ask(ctx, c)
		if failed := t.record(ctx, audit.Agreed(c, a, err)); failed != nil && err == nil {
			return trust.Agreement{}, failed
		}
		return a, err
	}
}

// ask implements [agentfile.Options].Consent.
func (t *truster) ask(ctx context.Context, c trust.Claim) (trust.Agreement, error) {
	grant, known, err := t.store.Find(c)
	switch {
	case err != nil:
		return trust.Agreement{}, usage(err)
	case known:
		t.remember = true
		a := grant.Agreement()
		a.Decided, a.By, a.From = session.DeciderPerson, "an earlier answer", "remembered on "+grant.At.UTC().Format(time.DateOnly)
		return a, nil
	case t.all:
		if t.seen.Reset(); !t.quiet || t.audit == nil { // quiet runs have the audit log say it
			t.show(c)
		}
		return trust.Agreement{Powers: c.Powers, Decided: session.DeciderFlag, From: "--trust", Shown: t.seen.String()}, nil
	case t.who == nil:
		return trust.Agreement{}, t.nobody(c)
	case t.said == unsaid || len(c.Powers.Without(t.saidTo)) > 0:
		if err := t.question(ctx, c); err != nil {
			return t.answered(), err
		}
	}
	return t.agreed(c), nil
}

// askToRead is like ask for a command that runs nothing of the file: only what it reads
// and fetches needs trust.
func (t *truster) askToRead(ctx context.Context, c trust.Claim) (trust.Agreement, error) {
	if slices.ContainsFunc(c.Powers, func(p trust.Power) bool {
		return p.Kind == trust.Reads || p.Kind == trust.Changes || p.Kind == trust.Fetches
	}) {
		return t.ask(ctx, c)
	}
	return trust.Everything(ctx, c)
}

// answered says who answered, without what they agreed to.
func (t *truster) answered() trust.Agreement {
	return trust.Agreement{Decided: t.decided, By: t.by, From: atTerminal, Shown: t.seen.String()}
}

// agreed turns the person's answer into an agreement.
func (t *truster) agreed(c trust.Claim) trust.Agreement {
	a := t.answered()
	a.Powers = c.Powers
	switch t.said {
	case always:
		t.remember = true
		a.Remember = func(ctx context.Context) error { return t.store.Add(ctx, trust.GrantOf(c, t.now())) }
	case askEach:
		a.Powers = slices.DeleteFunc(slices.Clone(a.Powers), func(p trust.Power) bool { return p.Kind == trust.Allows })
	}
	return a
}

// began implements [agentfile.Options].Began: a transcript that a remembered file
// begins is remembered too, and that a run of this user began it always is.
func (t *truster) began(c trust.Claim) {
	var err error
	ctx := context.Background()
	if t.remember && len(c.Powers) > 0 {
		err = t.record(ctx, audit.Agreed(c, trust.Agreement{Powers: c.Powers, Decided: session.DeciderPerson, By: "the agreement about the file", From: "--out"}, nil))
		if err == nil {
			err = t.store.Add(ctx, trust.GrantOf(c, t.now()))
		}
	}
	_, gone := t.begun.Remove(ctx, func(g trust.Grant) bool { return g.Path == c.Path })
	c.Powers = nil
	if err = errors.Join(err, gone, t.begun.Add(ctx, trust.GrantOf(c, t.now()))); err != nil {
		fmt.Fprintf(t.std.err, "!! the transcript is not remembered as yours: %s\n", printable(err.Error()))
	}
}

// knows implements [agentfile.Options].Known.
func (t *truster) knows(src trust.Source) (left trust.Left, known bool) {
	for _, store := range []*trust.Store{t.begun, t.store} {
		known, err := store.Knows(src)
		if err != nil {
			t.unknown.Do(func() {
				fmt.Fprintf(t.std.err, "!! it is not known which transcripts are yours, so none is: %s\n", printable(err.Error()))
			})
			return left, false
		}
		if known {
			if left, err = t.left.Left(src.Path); err != nil {
				t.unremembered(err)
			}
			return left, true
		}
	}
	return left, false
}

// leave implements [agentfile.Options].Leave. A record that cannot be written costs a question
// later, and not the run.
func (t *truster) leave(left trust.Left) error {
	if err := t.left.Leave(left); err != nil {
		t.unremembered(err)
	}
	return nil
}

// unremembered says, once, that what runs leave in the transcript is not known.
func (t *truster) unremembered(err error) {
	t.unsure.Do(func() {
		fmt.Fprintf(t.std.err, "!! it is not remembered what runs of yours left in the transcript, so it counts as added by others: %s\n", printable(err.Error()))
	})
}

// name is the name of the file that a claim is about: as typed, unless it is a
// transcript.
func (t *truster) name(c trust.Claim) string {
	if typed, err := filepath.Abs(t.file); err == nil && typed == c.Path {
		return t.file
	}
	here, err := filepath.Abs(".")
	if err != nil {
		return c.Path
	}
	name, err := filepath.Rel(here, c.Path)
	if err != nil || !filepath.IsLocal(name) {
		return c.Path
	}
	return name
}

// nobody is the error if nobody can be asked.
func (t *truster) nobody(c trust.Claim) error {
	file := quoted(t.name(c))
	return usage(fmt.Errorf("%w\n  hint: antiphon trust %s agrees to this until the file changes; --trust agrees once", &trust.UntrustedError{Claim: c}, file))
}

// described returns the powers of a file, and what has changed since the person agreed.
func (t *truster) described(c trust.Claim) (s shown) {
	s.add("?? ", visible(t.name(c))+" is not trusted yet. It", "")
	before, changed, err := t.store.Before(c.Path)
	for _, p := range c.Powers {
		mark := "   "
		if changed && !before.Powers.Has(p) {
			mark = " + "
		}
		s.add(mark, visible(p.String()), "")
	}
	if err == nil && changed {
		for _, p := range before.Powers.Without(c.Powers) {
			s.add(" - ", visible(p.String()), "")
		}
		for _, v := range before.Variables {
			name, host := visible(v.Name), visible(v.Host)
			s.add("   ", fmt.Sprintf("You named %s for the variable %s of that content; --env %s@%s names it again", host, name, name, host), "")
		}
		s.add("   ", fmt.Sprintf("You agreed to another content on %s. Changed: %s", before.At.Local().Format(time.DateOnly), changes(&before, &c)), "")
	}
	if n := len(c.Powers); n > fewPowers { // the worst, which comes first, may have left the screen
		s.add("   ", fmt.Sprintf("These are %d. The worst: it %s", n, shorten(visible(c.Powers[0].String()), 200)), "")
	}
	return s
}

// show prints what is known of a file, with a mark before each row so that no foreign text can look
// like the program's. It returns that, and how many rows of it are hidden: if a person is asked, the
// middle of many is.
func (t *truster) show(c trust.Claim) (s shown, hidden int) {
	s = t.described(c)
	return s, t.display(s)
}

// display prints lines, keeps them as what was seen, and returns how many rows are hidden.
func (t *truster) display(s shown) (hidden int) {
	rows := s.rows(t.columns(), false)
	if t.who != nil {
		rows, hidden = folded(rows)
	}
	for _, row := range rows {
		fmt.Fprintln(t.std.err, row)
	}
	t.seen.Reset()
	for _, l := range s.lines {
		t.seen.WriteString(l.mark + l.text + "\n")
	}
	return hidden
}

// columns returns the width of the terminal. Lines in a file or a pipe are not broken.
func (t *truster) columns() int {
	switch {
	case t.who != nil:
		return t.who.width()
	case terminal(t.std.err):
		return widthOf(t.std.err)
	}
	return math.MaxInt32
}

// reply asks a question about what was shown, and returns the answer. Nobody can agree before all
// was shown: until then, an answer other than no or a call for help shows it.
func (t *truster) reply(ctx context.Context, question string, s shown, hidden *int) (answer string, ok bool, err error) {
	if *hidden > 0 {
		question = strings.Replace(question, "[n]o", fmt.Sprintf("[n]o, [s]how the %s that are hidden", plural(*hidden, "line")), 1)
	}
	fmt.Fprint(t.std.err, "   "+wrapped(question, t.who.width()-4, "   ")+" ")
	line, ok, err := t.who.line(ctx)
	answer = strings.ToLower(line)
	if err != nil || !ok || *hidden == 0 || slices.Contains([]string{"", "n", "no", "?", "h", "help"}, answer) {
		return answer, ok, err
	}
	fmt.Fprintf(t.std.err, "   %s not been shown yet; here are all:\n", have(*hidden))
	for _, row := range s.rows(t.columns(), false) {
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
			list = append(list, visible(filepath.Base(s.Path)))
		}
	}
	for _, s := range before.Sources {
		if !slices.ContainsFunc(c.Sources, func(now trust.Source) bool { return now.Path == s.Path }) {
			list = append(list, visible(filepath.Base(s.Path))+" is gone")
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
	t.who.unasked()
	s, hidden := t.show(c)
	allows := slices.ContainsFunc(c.Powers, func(p trust.Power) bool { return p.Kind == trust.Allows })
	choices := "[y]es, until it changes, [o]nce, [n]o"
	if allows {
		choices = "[y]es, until it changes, [o]nce, yes but [a]sk about each call, [n]o"
	}
	t.seen.WriteString("   run it? " + choices + ":")
	for {
		answer, ok, err := t.reply(ctx, "run it? "+choices+":", s, &hidden)
		if err != nil {
			return err
		}
		if !ok {
			return t.nobody(c)
		}
		t.decided, t.by = session.DeciderPerson, thePerson
		switch answer {
		case "y", "yes":
			t.said, t.saidTo = always, c.Powers
			return nil
		case "o", "once":
			t.said, t.saidTo = once, c.Powers
			return nil
		case "n", "no":
			return usage(fmt.Errorf("%s was not run, because it is not trusted", t.name(c)))
		case "a", "ask":
			if allows {
				t.said, t.saidTo = askEach, c.Powers
				return nil
			}
		case "?", "h", "help":
			t.explain(allows)
		}
	}
}

// trustCommand is antiphon trust.
type trustCommand struct {
	Add    trustAddCommand    `cmd:"" default:"withargs" help:"Show what a file may do, and agree to it. This is the default: antiphon trust FILE."`
	List   trustListCommand   `cmd:"" help:"List the files that you agreed to."`
	Revoke trustRevokeCommand `cmd:"" help:"Take an agreement back."`
}

// Help is shown by antiphon trust --help.
func (trustCommand) Help() string {
	return `An agent's file that only reads its own folder and the workspace, asks your own
endpoint, and asks you before its tools act, runs at once. A file that does more is
asked about first: what it starts, which calls it allows itself, which variables
it sends and where, which other endpoints and folders it uses. You agree to exactly
these bytes of the file and all that it includes; when they change, you are asked again.

Examples:
  antiphon trust agent.md
  antiphon trust agent.md --diff
  antiphon trust talk.md --mine
  antiphon trust agent.md --env MCP_ID@mcp.example --env MCP_SECRET@mcp.example
  antiphon trust list
  antiphon trust revoke agent.md`
}

// trustAddCommand is antiphon trust FILE.
type trustAddCommand struct {
	File string   `arg:"" help:"The agent's file."`
	Env  []string `placeholder:"NAME@HOST" sep:"," help:"Let the file send the variable NAME to HOST. May be repeated."`
	Diff bool     `help:"Only show what has changed since you agreed; agree to nothing."`
	Yes  bool     `short:"y" help:"Do not ask at a terminal."`
	Mine bool     `help:"Count what others added to the transcript FILE as yours, after showing it."`

	variables []trust.Variable // of Env
	// agreed are the claims to remember: more than one if a file that is read from outside
	// brings more powers. A file is agreed to already since then.
	agreed []trust.Claim
	since  time.Time
}

// Run shows the powers of a file and remembers that the person agrees to them. A file with
// mistakes is not remembered: what it may do is not known.
func (c *trustAddCommand) Run(ctx context.Context, std stdio, env environment) (err error) {
	flags := trustFlags{Env: c.Env}
	if c.variables, err = flags.variables(); err != nil {
		return err
	}
	t, err := newTruster(c.File, &flags, std, env, nil)
	if err != nil {
		return err
	}
	if terminal(std.in) && terminal(std.err) && !c.Yes {
		t.who = newPerson(std)
	}
	options, err := fileOptions()
	if err != nil {
		return err
	}
	options.Check, options.Configured, options.Known = true, host.Endpoint{}.Configured(env), t.knows
	if !c.Mine { // which agrees to no power
		options.Consent = func(ctx context.Context, claim trust.Claim) (trust.Agreement, error) {
			return c.agree(ctx, t, claim)
		}
	}
	file, err := agentfile.Load(ctx, c.File, options)
	if errors.Is(err, errOnlyShown) {
		return nil
	}
	if err == nil {
		defer file.Close()
		err = checkScript(file)
	}
	if err != nil {
		return host.LoadError(err)
	}
	if c.Mine {
		return c.adopt(ctx, t, file)
	}
	if lines := added(file); lines != "" {
		fmt.Fprintf(std.err, "   No run of yours wrote %s of it, so calls there are asked about, and decisions there count for nothing; antiphon trust --mine %s shows them\n", lines, quoted(c.File))
	}
	claim := file.Claim()
	for _, v := range c.variables {
		if !slices.ContainsFunc(claim.Powers, func(p trust.Power) bool { return p.Kind == trust.Reveals && p.What == v.Name }) {
			return usage(fmt.Errorf("--env: the file names no variable %s, so it is sent nowhere", visible(v.Name)))
		}
	}
	return c.remember(ctx, t)
}

// remember keeps what was agreed to, after it is recorded.
func (c *trustAddCommand) remember(ctx context.Context, t *truster) error {
	for _, claim := range c.agreed {
		if err := c.record(ctx, t, claim); err != nil {
			return err
		}
		if err := t.store.Add(ctx, trust.GrantOf(claim, t.now(), c.variables...)); err != nil {
			return err
		}
	}
	said := "needs no trust: it reads only its own folder and the workspace, and its tools ask before they act"
	switch {
	case len(c.agreed) > 0:
		said = "is trusted until it changes"
	case !c.since.IsZero():
		said = "is trusted already, since " + when(c.since)
	}
	fmt.Fprintf(t.std.out, "%s %s\n", visible(c.File), said)
	return nil
}

// explain says what each answer allows.
func (t *truster) explain(allows bool) {
	lines := []string{"y: run it, now and later, until it or a file that it includes changes", "o: run it now, and ask again next time"}
	if allows {
		lines = append(lines, "a: run it now, and ask before each call that it allows itself")
	}
	for _, line := range append(lines, "n: do not run it. Nothing has been started, sent or read outside its folder yet.") {
		fmt.Fprintln(t.std.err, "   "+wrapped(line, t.who.width()-4, "      "))
	}
}

// errOnlyShown ends antiphon trust --diff, and errNotAgreed a question without a yes: a script
// that goes on after antiphon trust must not take it for one.
var (
	errOnlyShown = errors.New("the claim was only shown")
	errNotAgreed = errors.New("nothing was agreed to")
)

// agree shows a claim, and asks the person about it at a terminal.
func (c *trustAddCommand) agree(ctx context.Context, t *truster, claim trust.Claim) (trust.Agreement, error) {
	grant, known, err := t.store.Find(claim)
	if err != nil {
		return trust.Agreement{}, usage(err)
	}
	more := slices.DeleteFunc(slices.Clone(c.variables), func(v trust.Variable) bool { return slices.Contains(grant.Variables, v) })
	if known && len(more) == 0 {
		c.since = grant.At
		return grant.Agreement(), nil
	}
	s, hidden := t.show(claim)
	for _, v := range more {
		fmt.Fprintf(io.MultiWriter(t.std.err, &t.seen), "   You name %s for the variable %s\n", visible(v.Host), visible(v.Name))
		if others := otherHosts(claim.Powers, v); len(others) > 0 {
			fmt.Fprintf(io.MultiWriter(t.std.err, &t.seen), "   !! The file sends %s to %s, not to %s, which gets it only if a server there names it for the login\n", visible(v.Name), visible(strings.Join(others, ", ")), visible(v.Host))
		}
	}
	if c.Diff {
		return trust.Agreement{}, errOnlyShown
	}
	if t.who != nil && (known || len(claim.Powers.Without(t.saidTo)) > 0) {
		if err := c.confirm(ctx, t, s, hidden); err != nil {
			return trust.Agreement{}, err
		}
		t.saidTo = claim.Powers
	}
	c.agreed = append(c.agreed, claim)
	return trust.Agreement{Powers: claim.Powers}, nil
}

// otherHosts returns the hosts to which a file sends a variable, or nil if the host that the person
// named is one of them, or none is known.
func otherHosts(powers trust.Powers, v trust.Variable) (hosts []string) {
	for _, p := range powers {
		if p.Kind != trust.Reveals || p.What != v.Name {
			continue
		}
		u, err := url.Parse(p.Where)
		switch {
		case err != nil || u.Host == "":
		case strings.EqualFold(u.Host, v.Host):
			return nil
		case !slices.Contains(hosts, strings.ToLower(u.Host)):
			hosts = append(hosts, strings.ToLower(u.Host))
		}
	}
	return hosts
}

// record writes the agreement to the audit log, before it is remembered.
func (c *trustAddCommand) record(ctx context.Context, t *truster, claim trust.Claim) error {
	a := trust.Agreement{Powers: claim.Powers, Decided: session.DeciderPerson, By: "the caller of the command", From: "antiphon trust", Shown: t.seen.String()}
	if t.who != nil {
		a.By = thePerson
	}
	records := []audit.Record{audit.Agreed(claim, a, nil)}
	for _, v := range c.variables {
		records = append(records, audit.Record{Kind: audit.KindReleased, File: claim.Path, Claim: claim.Hash(), What: v.Name, Where: v.Host, Decided: session.DeciderPerson, By: a.By, From: "--env"})
	}
	return t.record(ctx, records...)
}

// confirm asks for a yes.
func (c *trustAddCommand) confirm(ctx context.Context, t *truster, s shown, hidden int) error {
	t.who.unasked()
	for {
		answer, ok, err := t.reply(ctx, "agree until it changes? [y]es, [n]o:", s, &hidden)
		if err != nil {
			return err
		}
		if !ok {
			return errNotAgreed
		}
		switch answer {
		case "y", "yes":
			return nil
		case "n", "no":
			return errNotAgreed
		case "?", "h", "help":
			fmt.Fprintln(t.std.err, "   y: later runs of the file do all of this without asking, until it or a file that it includes changes\n   n: later runs ask")
		}
	}
}

// trustListCommand is antiphon trust list.
type trustListCommand struct {
	JSON bool `name:"json" help:"Print the agreements as lines of JSON."`
}

// Run lists the agreements.
func (c *trustListCommand) Run(std stdio, env environment) error {
	store, err := trustStore(env)
	if err != nil {
		return err
	}
	agents, err := workerAgents(env)
	if err != nil {
		return err
	}
	n := 0
	for _, kept := range []*trust.Store{store, agents.Agreed} {
		for g, err := range kept.All() {
			if err != nil {
				return usage(err)
			}
			n++
			if err := c.print(std.out, &g, kept == agents.Agreed); err != nil {
				return err
			}
		}
	}
	if n == 0 && !c.JSON {
		fmt.Fprintln(std.err, "antiphon: no file is trusted")
	}
	return nil
}

// print prints one agreement.
func (c *trustListCommand) print(w io.Writer, g *trust.Grant, workers bool) error {
	if !c.JSON {
		return printGrant(w, g, workers)
	}
	line := struct {
		trust.Grant `json:",inline"`
		Workers     bool `json:"workers,omitzero"`
	}{*g, workers}
	return errors.Join(json.MarshalWrite(toJSON(w), line, lineOptions), newline(w))
}

func newline(w io.Writer) error {
	_, err := io.WriteString(w, "\n")
	return err
}

// printGrant prints one agreement for people. If workers is set, it is about what workers
// may run.
func printGrant(w io.Writer, g *trust.Grant, workers bool) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s  %s  (%s)\n", g.Hash[:min(12, len(g.Hash))], visible(g.Path), when(g.At))
	if workers {
		b.WriteString("  workers run it: antiphon work\n")
	}
	for _, p := range g.Powers {
		fmt.Fprintf(&b, "  %s\n", visible(p.String()))
	}
	for _, v := range g.Variables {
		fmt.Fprintf(&b, "  you named %s for the variable %s\n", visible(v.Host), visible(v.Name))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// trustRevokeCommand is antiphon trust revoke.
type trustRevokeCommand struct {
	Which []string `arg:"" name:"file-or-hash" help:"Agents' files, or beginnings of hashes that list prints."`
}

// contentOf returns the hash of a file with all that it includes, or "" if it cannot be
// read. A copy of the file may be what is remembered.
func (t *truster) contentOf(ctx context.Context, path string) (hash string) {
	options, err := fileOptions()
	if err != nil {
		return ""
	}
	options.Check, options.Known = true, t.knows
	file, err := agentfile.Load(ctx, path, options)
	if err != nil {
		return ""
	}
	defer file.Close()
	c := file.Claim()
	return c.Hash()
}

// minHash is the least number of characters of a hash that identify an agreement.
const minHash = 6

// Run removes agreements.
func (c *trustRevokeCommand) Run(ctx context.Context, std stdio, env environment) error {
	t, err := newTruster("", &trustFlags{}, std, env, nil)
	if err != nil {
		return err
	}
	agents, err := workerAgents(env)
	if err != nil {
		return err
	}
	for _, which := range c.Which {
		path, err := filepath.Abs(which)
		if err != nil {
			return err
		}
		removed, err := c.remove(ctx, t, which, path)
		if err != nil {
			return err
		}
		byWorkers, err := agents.Agreed.Remove(ctx, func(g trust.Grant) bool {
			return g.Path == path || len(which) >= minHash && strings.HasPrefix(g.Hash, which)
		})
		if err != nil {
			return err
		}
		if removed = append(removed, byWorkers...); len(removed) > 1 { // one line for each file
			slices.SortStableFunc(removed, func(a, b trust.Grant) int { return strings.Compare(a.Path, b.Path) })
		}
		if len(removed) == 0 {
			return usage(fmt.Errorf("%s is not trusted; antiphon trust list shows what is", visible(which)))
		}
		for i, g := range removed {
			if i == 0 || g.Path != removed[i-1].Path {
				fmt.Fprintf(std.out, "%s is not trusted any more\n", visible(g.Path))
			}
		}
		if err := t.revoked(ctx, removed); err != nil {
			return err
		}
	}
	return nil
}

// remove removes the agreements about a file, whatever its content was, and those about a
// file with the same content elsewhere: an agreement about a content holds for all of them.
func (c *trustRevokeCommand) remove(ctx context.Context, t *truster, which, path string) ([]trust.Grant, error) {
	contents := map[string]bool{}
	if hash := t.contentOf(ctx, path); hash != "" {
		contents[hash] = true
	}
	for g, err := range t.store.All() {
		if err != nil {
			return nil, usage(err)
		}
		if g.Path == path || len(which) >= minHash && strings.HasPrefix(g.Hash, which) {
			contents[g.Hash] = true
		}
	}
	begun, err := t.begun.Remove(ctx, func(g trust.Grant) bool { return g.Path == path }) // it is a stranger's transcript then
	if err != nil {
		return nil, err
	}
	removed, err := t.store.Remove(ctx, func(g trust.Grant) bool { return g.Path == path || contents[g.Hash] })
	return append(begun, removed...), err
}

// revoked records agreements that were taken back. They are removed first: not to
// trust a file needs no record.
func (t *truster) revoked(ctx context.Context, removed []trust.Grant) error {
	var records []audit.Record
	for _, g := range removed {
		records = append(records, audit.Record{Kind: audit.KindRevoked, File: g.Path, Claim: g.Hash, Powers: g.Powers, Decided: session.DeciderPerson, By: "the caller of the command", From: "antiphon trust revoke"})
	}
	return t.record(ctx, records...)
}
