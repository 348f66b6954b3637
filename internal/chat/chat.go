// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/host"
	"github.com/antiphon-go/antiphon/internal/attach"
	"github.com/antiphon-go/antiphon/internal/filelock"
	"github.com/antiphon-go/antiphon/internal/person"
	"github.com/antiphon-go/antiphon/internal/show"
	"github.com/antiphon-go/antiphon/internal/tui"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/session/store"
	"github.com/antiphon-go/antiphon/tool"
	"github.com/antiphon-go/antiphon/trust"
)

// Hold holds the conversation, until the person leaves.
func Hold(ctx context.Context, cfg Config) (err error) {
	t := newDialogue(cfg)
	if ctx, err = t.sit(ctx); err != nil {
		return err
	}
	err = t.guarded(func() error { return t.hold(ctx) })
	cfg.Program.Hangup(nil) // from now on, a hangup ends the program
	err = errors.Join(err, t.close(), t.face.close())
	t.undraft()
	switch {
	case t.detached.Load():
		fmt.Fprintf(cfg.Err, "antiphon: workers go on with the session %s (antiphon work status says how); antiphon chat --attach %s%s shows it\n", show.Printable(t.name()), quoted(t.name()), cfg.StoreFlags)
	case t.left:
		fmt.Fprintf(cfg.Err, "antiphon: left %s, which runs on; antiphon chat --attach %s%s returns\n", show.Printable(t.name()), quoted(t.name()), cfg.StoreFlags)
	case t.spoke:
		fmt.Fprintf(cfg.Err, "antiphon: the conversation is kept in the session %s; %s continues it\n", show.Printable(cmp.Or(t.info.Name, t.info.ID)), t.comeBack())
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return err
}

func newDialogue(cfg Config) *dialogue {
	return &dialogue{
		conf: cfg, env: cfg.Env, cfg: cfg.Host, effort: cfg.Effort, found: cfg.Found, tooled: map[int64]bool{},
		colour: !cfg.Plain && cfg.Env["NO_COLOR"] == "",
	}
}

// guarded holds a conversation. If that panics, the terminal is given back before the program says so.
func (t *dialogue) guarded(hold func() error) error {
	ended := false
	defer func() {
		if !ended {
			_ = t.face.close()
		}
	}()
	err := hold()
	ended = true
	return err
}

// sit takes the terminal. The context also ends when the terminal is gone, if that is to
// stop the work.
func (t *dialogue) sit(ctx context.Context) (_ context.Context, err error) {
	if t.conf.Plain {
		t.face = newPlainFace(Streams{t.conf.In, t.conf.Out, t.conf.Err})
	} else {
		var lost func()
		ctx, lost = t.whenLost(ctx)
		if t.face, err = newLiveFace(t.conf.In, t.conf.Out, t.env, t.colour, lost); err != nil {
			return ctx, err
		}
		if err := t.face.theme(cmp.Or(t.env["ANTIPHON_THEME"], tui.Themes[0])); err != nil {
			return ctx, errors.Join(usage(fmt.Errorf("ANTIPHON_THEME: %w", err)), t.face.close())
		}
	}
	t.std = Streams{t.face.lines(), t.face.text(), t.face.notes()}
	t.who = person.New(t.std.In, t.std.Err)
	t.who.Edits, t.who.Lost = t.face.edit, t.gone
	t.face.pasting(t.pasted)
	t.who.Types, t.who.Look, t.who.Columns, t.who.Asks = true, show.LookOf(t.colour, t.conf.Plain), t.face.width, t.face.asking
	return ctx, nil
}

// TimedName returns a name for a new session, which tells when it began.
func TimedName() string {
	return time.Now().Format("2006-01-02-1504-") + strings.ToLower(rand.Text()[:4])
}

// dialogue is a conversation at the terminal.
type dialogue struct {
	conf   Config // as it was given; what is sent once is removed then
	env    host.Environment
	cfg    host.Config // as it is now
	face   face
	colour bool

	std        Streams
	who        *person.Person
	host       *host.Host
	info       session.Info
	effort     string        // that the person chose, or ""
	fileEffort *string       // that the file has; nil means not known yet
	trust      *host.Config  // its fields about trust, when they are known
	claims     []trust.Claim // that the person agreed to
	spoke      bool          // the session is kept
	print      *show.Printer
	used       *agent.Account
	size       int64        // tokens of the last request and reply
	window     int64        // of the model's context, as the endpoint reported it
	answers    *answerer    // who would be asked, or nil if the last turn tells
	found      session.Info // the session, before it is open
	others     bool         // what somebody else said comes next
	held       []string     // prompts that were typed while the session ran elsewhere
	here       atomic.Pointer[openSession]
	older      map[string]bool   // keys of deliveries that were there when the session was opened
	tried      map[string]bool   // keys of deliveries for which a turn was begun
	began      int64             // the entry that began the last run
	recalled   int64             // the last entry that was shown before the session was open
	remembered int64             // the last entry whose message is in the history of prompts
	moved      string            // why the session goes on elsewhere, or ""
	halted     bool              // an operator asked the last run to stop
	told       string            // why the last run ended early, if that was shown
	untitled   bool              // the conversation began here, and nobody has given it a title
	replied    bool              // the last turn ended with an answer
	foresight  *foresight        // a request for what the person may say next, or nil
	taken      string            // why it was taken from workers, or ""
	detached   atomic.Bool       // it was left to workers
	gone       chan struct{}     // closed when the terminal is gone; nil if nobody notices that
	leaves     chan struct{}     // closed when it is known what becomes of the work without a terminal
	waiting    openQuestions     // of the model
	left       bool              // the person has left a session that runs elsewhere
	ran        []string          // what says which shell lines the person ran, for the next message
	ranAt      string            // the file that keeps them, or ""
	drafts     map[string]string // files of drafts, by what they belong to
	draftLocks []*filelock.Lock  // of those files
	toolNames  atomic.Pointer[[]string]
	named      atomic.Pointer[[]string] // subagents and other sessions
	learns     func()                   // ends the search for their names
	calls      *outline
	pictures   sync.Map  // pasted ones that may be sent, by their paths
	today      *daySpent // nil until something has a price
	undone     *undone   // by the last /undo, for /redo; nil once more was said
	mayLeave   agreed    // files outside of the current folder, and sessions, that may be sent

	collapses bool           // the person wants markers for what was read again
	ended     int64          // the entry of the last turn's end
	tooled    map[int64]bool // entries of ends of turns whose tools were not those of the turn before
}

// leavesElsewhere are words that end other programs.
var leavesElsewhere = map[string]bool{"exit": true, "quit": true, ":q": true, ":q!": true, ":wq": true, ":x": true}

// hold opens the session and holds the conversation.
func (t *dialogue) hold(ctx context.Context) error {
	if err := t.begin(ctx); err != nil {
		return err
	}
	for {
		t.entitleOnce(ctx)
		t.foresee(ctx)
		text, err := t.next(ctx)
		t.foreseen(ctx)
		switch {
		case err != nil:
			return err
		case t.moved != "":
		case strings.HasPrefix(text, "!"):
			t.face.sent(text)
			t.shellLine(ctx, text)
		case strings.HasPrefix(text, "/"):
			t.face.sent(text)
			err = t.command(ctx, text)
		case leavesElsewhere[text]:
			t.face.sent(text)
			fmt.Fprintln(t.std.Err, "!! Ctrl-D or /quit leaves; to send the word to the model, put a blank before it")
		default:
			err = t.turn(ctx, text)
		}
		if err != nil {
			return err
		}
		if t.moved != "" || t.detached.Load() {
			if err := t.goneElsewhere(ctx); err != nil {
				return err
			}
		}
	}
}

// begin opens the session, as soon as nobody else runs it, and answers what has no answer.
func (t *dialogue) begin(ctx context.Context) error {
	opening, opened := t.untilLeft(ctx)
	defer func() { opened() }()
	err := t.choose(opening)
	busy := ""
	visits := err == nil && t.found.ID != "" // by --attach
	for err == nil {
		if visits {
			opened()
			if err := t.visit(ctx, t.found, busy, false); err != nil {
				return err
			}
			opening, opened = t.untilLeft(ctx)
		}
		err = t.open(opening, true)
		if visits = errors.Is(err, session.ErrBusy) && t.found.ID != ""; !visits {
			break
		}
		busy, err = attach.HolderOf(err), nil
	}
	if err != nil && opening.Err() != nil && ctx.Err() == nil {
		return io.EOF
	}
	if none := new(host.NoLastError); errors.As(err, &none) {
		return errNoneYet
	}
	if err != nil {
		return t.conf.Program.Unopened(err)
	}
	opened()
	t.recall(t.host.Session.Entries(), mostRecalled)
	t.recalled = 0
	if err := t.goOn(ctx); err != nil {
		return err
	}
	if t.moved != "" || t.detached.Load() {
		return t.goneElsewhere(ctx)
	}
	return nil
}

// goOn asks what has no answer yet, unless a person has stopped it.
func (t *dialogue) goOn(ctx context.Context) error {
	switch {
	case !host.AsksSomething(t.host.Session) || !host.Unanswered(t.host.Session):
		return nil
	case t.host.Fresh():
		t.face.said(lastAsked(t.host.Session))
	case stoppedByPerson(t.host.Session.Entries()):
		fmt.Fprintln(t.std.Err, "antiphon: the last message has no answer, because it was stopped. Say how to go on, or ask it again with /retry")
		return nil
	default:
		fmt.Fprintln(t.std.Err, "antiphon: the last message has no answer yet, "+t.whatNext(ctx))
	}
	return t.turn(ctx, "")
}

// whatNext says what a run does with a message that has no answer: if a call waits for an approval, that is asked, and not
// the model.
func (t *dialogue) whatNext(ctx context.Context) string {
	if asked, err := agent.PendingApprovals(ctx, t.host.Session); err == nil && len(asked) > 0 {
		return "and the work on it goes on"
	}
	return "so it is asked again"
}

// errHalted is why a run is cancelled that the person at the terminal stops. The run writes it with its end, so that no crash parts
// the two; a notice follows. A run that ends with the program has neither.
var errHalted = errors.New(session.DetailStoppedByPerson)

// stoppedByPerson reports whether somebody has stopped the last run, and nothing was said since.
func stoppedByPerson(entries iter.Seq[session.Entry]) (stopped bool) {
	asked := false
	for e := range entries {
		switch b := e.Body.(type) {
		case session.RunStarted:
			stopped, asked = false, false
		case session.InputItem:
			stopped = stopped && b.Own
		case session.StopAsked:
			asked = !b.AfterTurn && b.Why == string(agent.StopRequested)
			stopped = stopped || b.Why == string(agent.StopCancelled) && b.Detail == session.DetailStoppedByPerson
		case session.Stopped:
			stopped = stopped || asked && b.Why == string(agent.StopRequested)
		case session.Noticed:
			stopped = stopped || b.Kind == session.NoticeStoppedByPerson
		}
	}
	return stopped
}

// errNoneYet is the error of a conversation that should continue another one.
var errNoneYet = usage(errors.New("there is no conversation to continue yet; antiphon chat begins one"))

// choose sets the session to continue.
func (t *dialogue) choose(ctx context.Context) (err error) {
	if !t.conf.Choose {
		return nil
	}
	list, err := t.conf.Program.Choices(ctx, t.std.Err, t.face.width())
	if err != nil {
		return err
	}
	if len(list) == 0 {
		return errNoneYet
	}
	for {
		fmt.Fprint(t.std.Err, "which one? its number: ")
		line, ok, err := t.who.Line(ctx)
		if err != nil {
			return err
		}
		if !ok {
			return io.EOF
		}
		n := 0
		if _, err := fmt.Sscan(line, &n); err == nil && n >= 1 && n <= len(list) {
			t.cfg.Session, t.conf.Choose = list[n-1].ID, false
			return nil
		}
		fmt.Fprintf(t.std.Err, "   it is a number from 1 to %d\n", len(list))
	}
}

// open opens the agent's file and the session. If the conversation begins, the end of a long
// session is shown at once.
func (t *dialogue) open(ctx context.Context, begins bool) error {
	cfg := t.cfg
	cfg.FrontEnd = t.conf.Program.FrontEnd(t.std.Err, false)
	told := t.conf.Program.Notices(t.std.Err, t.face)
	cfg.Notify = func(n host.Notice) {
		if n.Kind == host.NoticeNew {
			n.Text += "; /help lists the commands, Ctrl-D leaves"
		}
		told(n)
	}
	cfg.Asker, cfg.Approver = t, t.approve
	if begins {
		cfg.Opening = t.opening
		defer t.face.Done(restOf)
	}
	permit := cfg.Permit
	cfg.Permit = func(info session.Info) error {
		if t.found = info; permit != nil {
			return permit(info)
		}
		return nil
	}
	hide := t.env.Hider()
	cfg.Live = func(call tool.Call, _ bool, text []byte) {
		t.face.Last(show.CallKey(call.ID), hide(string(text)))
		t.calls.printed(call.ID, string(text))
	}
	if err := t.trusted(&cfg); err != nil {
		return err
	}
	h, err := host.Open(ctx, cfg)
	if err != nil {
		return err
	}
	t.host, t.info, t.fileEffort = h, h.Info, nil
	t.here.Store(&openSession{h.Store, h.Info})
	t.began, t.older, t.tried = 0, map[string]bool{}, map[string]bool{}
	for d, err := range h.Session.Deliveries(ctx) { // requests to let it go that were for others
		if err == nil {
			t.older[d.Key] = true
		}
	}
	t.spoke, t.untitled, t.replied = !h.Fresh(), h.Fresh(), false
	t.learns = t.learn(ctx, h)
	t.face.complete(t.values)
	t.cfg.Session, t.cfg.Last, t.cfg.Tags = h.Info.ID, false, nil
	t.printer(h.Session.Entries())
	t.answers = whoAnswers(h, &cfg)
	t.tell()
	return nil
}

// openSession is the session that is open, for other goroutines.
type openSession struct {
	store store.Store
	info  session.Info
}

// close closes the session, if it is open.
func (t *dialogue) close() error {
	h := t.host
	if h == nil {
		return nil
	}
	t.host = nil
	t.learns()
	t.here.Store(nil)
	var err error
	if t.taken != "" && !host.Unanswered(h.Session) {
		err = attach.AnsweredHere(context.Background(), h.Store, h.Session.ID(), t.taken)
		t.taken = ""
	}
	return errors.Join(err, h.Close())
}

// newPrinter returns what shows entries.
func (t *dialogue) newPrinter() *show.Printer {
	p := show.NewPrinter(t.std.Out, t.std.Err, t.env)
	p.Waits, p.Whole, p.Watched, p.Plain, p.Colour = t.face, t.conf.ShowOutput, true, true, t.colour
	p.Look, p.Folds = t.who.Look, !t.conf.ShowOutput
	_, p.Shows = t.face.(*liveFace)
	return p
}

// printer makes what shows entries, and counts those that are there.
func (t *dialogue) printer(entries iter.Seq[session.Entry]) {
	t.print = t.newPrinter()
	t.print.Picture = func(name, uri string) { t.picture(context.Background(), name, uri) } // also of what runs elsewhere
	t.calls = newOutline(t.env.Hider(), t.innerLog)
	t.face.browse(tui.Outline{Nodes: t.calls.nodes, Last: t.calls.last, Text: t.calls.text})
	t.used, t.size, t.window = new(agent.Account), 0, 0
	for e := range entries {
		t.print.Calls.Add(e)
		t.print.Setup.Apply(e.Body)
		t.count(e)
	}
}

// trusted sets who decides about what the file may do. What the person said holds for the whole
// conversation, also when it is opened again, until the file changes. K6
func (t *dialogue) trusted(cfg *host.Config) error {
	if t.trust == nil {
		if err := t.askAnew(); err != nil {
			return err
		}
	}
	by, earlier := t.trust, slices.Clone(t.claims)
	cfg.Variables, cfg.Began, cfg.Known, cfg.Made, cfg.Audit, cfg.Protected, cfg.Opened = by.Variables, by.Began, by.Known, by.Made, by.Audit, by.Protected, by.Opened
	cfg.Trust = func(ctx context.Context, c trust.Claim) (trust.Agreement, error) {
		if len(earlier) > 0 && !slices.ContainsFunc(earlier, func(e trust.Claim) bool { return e.Covers(&c) }) {
			earlier = nil
			if err := t.askAnew(); err != nil {
				return trust.Agreement{}, err
			}
		}
		a, err := t.trust.Trust(ctx, c)
		if err == nil {
			t.claims = append(t.claims, c)
		}
		return a, err
	}
	return nil
}

// askAnew forgets what the person said about the file in this conversation.
func (t *dialogue) askAnew() error {
	cfg := t.cfg
	if err := t.conf.Program.Consent(t.std, t.who, &cfg); err != nil {
		return err
	}
	t.trust, t.claims = &cfg, nil
	return nil
}

// count adds an entry to what the conversation used.
func (t *dialogue) count(e session.Entry) {
	t.used.Add(e)
	t.calls.add("", e)
	if b, ok := e.Body.(session.TurnEnded); ok {
		t.window, t.answers = cmp.Or(b.Window, t.window), nil
		if b.Usage != nil {
			t.size = b.Usage.InputTokens + b.Usage.OutputTokens
		}
	}
}

// reopen opens the session again, after the configuration or the session has changed.
func (t *dialogue) reopen(ctx context.Context, change func(*host.Config)) error {
	before := t.cfg
	name := t.info.Name
	if t.host.Fresh() { // it is deleted when it is closed
		t.cfg.Session, t.cfg.Tags = name, t.conf.Host.Tags
	}
	if err := t.close(); err != nil {
		return err
	}
	change(&t.cfg)
	err := t.open(ctx, false)
	if err == nil {
		t.face.remember(nil, t.draft())
		t.keepRan()
		return nil
	}
	t.warn(err)
	t.cfg = before
	return t.open(ctx, false)
}
