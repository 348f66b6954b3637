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
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/audit"
	"github.com/antiphon-go/antiphon/host"
	"github.com/antiphon-go/antiphon/internal/attach"
	"github.com/antiphon-go/antiphon/internal/filelock"
	"github.com/antiphon-go/antiphon/internal/person"
	"github.com/antiphon-go/antiphon/internal/show"
	"github.com/antiphon-go/antiphon/internal/tui"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/session/store"
	"github.com/antiphon-go/antiphon/tool"
	"github.com/antiphon-go/antiphon/trust"
)

// Config says what a conversation is about, and at which terminal it is held.
type Config struct {
	// Host is the agent, its endpoint, the session and its store, as for a run. Who is asked, and what is told, is set here.
	Host    host.Config
	Program Program
	Env     host.Environment

	In, Out *os.File  // the terminal
	Err     io.Writer // for what is said when the terminal is given back

	Plain      bool // no colours and no changing lines
	ShowOutput bool // the whole outputs of tools

	Found  session.Info // the session that another process runs, if that is to be shown
	Choose bool         // the person chooses the session from a list

	System      string      // sent with the first prompt, as are Parts
	Parts       []item.Part //
	Effort      string
	Temperature *float64

	File       string   // the agent, as the person named it: "" for the usual one
	StoreFlags string   // the flags that name the store, for commands that are suggested
	Models     []string // the names of models in the settings
	Data       string   // the folder of drafts and pasted pictures; "" means that they are not kept
}

// Program is what a conversation leaves to the program around it: places, hints about the command line, and other commands.
type Program interface {
	// OpenStore opens the store for sessions that another process runs, and AuditLog the log for answers about their calls, or
	// nil if there is none.
	OpenStore(ctx context.Context) (store.Store, error)
	AuditLog() (*audit.Log, error)
	// Hangup sets what is called instead of ending the program when the terminal is gone. Nil ends the program again.
	Hangup(lost func())

	FrontEnd(w io.Writer, quiet bool) host.FrontEnd
	// Notices prints notices, and shows below the transcript what is waited for.
	Notices(w io.Writer, below show.Waits) func(host.Notice)
	// Consent sets who decides about what the file may do.
	Consent(std Streams, who *person.Person, cfg *host.Config) error
	// Choices prints the sessions from which the person chooses.
	Choices(ctx context.Context, w io.Writer, columns int) ([]session.Info, error)
	// Model returns what a name of the settings stands for, and other names as they are.
	Model(name string) (model, baseURL string)
	// Work returns the configuration of work on a session, or an error if workers cannot go on with it.
	Work(w io.Writer, info session.Info) (host.Config, error)

	// ShowSent prints what the next request of a session holds.
	ShowSent(ctx context.Context, w io.Writer, id string) error
	// Exports reports whether a session can be written to a file of such a name, and Export writes it.
	Exports(path string) bool
	Export(ctx context.Context, w io.Writer, id, path string) error

	// Unopened adds hints to the error of a session that was not opened, and Taken to that about a name that another session may have.
	Unopened(err error) error
	Taken(err error, name string) error
	// Failed returns what is said about a turn that failed, and what the person can do next, or "".
	Failed(err error, by agent.Compaction) (text, next string)
}

// Streams are where a conversation reads and writes.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
}

// usage marks an error as one of the person's input.
func usage(err error) error { return &host.ConfigError{Err: err} }

// quoted returns a name in shell syntax.
func quoted(name string) string { return trust.CommandLine(name) }

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
	conf   Config
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
	cfg.Variables, cfg.Began, cfg.Known, cfg.Made, cfg.Audit, cfg.Protected = by.Variables, by.Began, by.Known, by.Made, by.Audit, by.Protected
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
	fmt.Fprintln(t.std.Err, "!! "+show.Printable(t.env.Hide(err.Error())))
	t.cfg = before
	return t.open(ctx, false)
}

// draft returns the file that keeps what is written and not sent: beside the default place
// of sessions, readable only by the user. Before anything was said it belongs to the agent's
// file, because the session is not kept. No other terminal has the same file, until undraft.
func (t *dialogue) draft() string {
	if t.conf.Data == "" {
		return ""
	}
	name := t.info.ID
	if t.host != nil && t.host.Fresh() {
		name = "new-" + session.Fingerprint(t.info.Path)
	}
	path, claimed := t.drafts[name]
	if !claimed {
		if t.drafts == nil {
			sweepLocks(filepath.Join(t.conf.Data, "draft-locks"))
		}
		path = t.claim(filepath.Join(t.conf.Data, "drafts"), name)
		if t.drafts == nil {
			t.drafts = map[string]string{}
		}
		t.drafts[name] = path
	}
	return path
}

// mostDrafts is the number of terminals that keep a draft for one session.
const mostDrafts = 16

// claim takes a file for the draft that no other terminal has taken: one that a terminal has left
// behind, or else a new one. It returns "" if there are too many.
func (t *dialogue) claim(dir, name string) string {
	var all, left []string
	for n := 1; n <= mostDrafts; n++ {
		path := filepath.Join(dir, name)
		if n > 1 {
			path += fmt.Sprintf("-%d", n)
		}
		all = append(all, path)
		for _, file := range []string{path, path + ".ran"} {
			if _, err := os.Lstat(file); err == nil {
				left = append(left, path)
			}
		}
	}
	for _, path := range append(left, all...) {
		lock, err := filelock.TakeWithin(context.Background(), filepath.Join(filepath.Dir(dir), "draft-locks", filepath.Base(path)), 0)
		if busy := new(filelock.BusyError); errors.As(err, &busy) {
			continue
		}
		if err == nil { // otherwise there are no locks here
			t.draftLocks = append(t.draftLocks, lock)
		}
		return path
	}
	return ""
}

// sweepLocks removes locks of drafts that chats which were killed have left behind, and that nobody has: those that
// are older than a day, so that no chat that begins now finds its own taken for an instant.
func sweepLocks(dir string) {
	entries, _ := os.ReadDir(dir) // if there is no folder, there are no locks in it
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || !info.Mode().IsRegular() || time.Since(info.ModTime()) < 24*time.Hour {
			continue
		}
		if lock, err := filelock.TakeWithin(context.Background(), filepath.Join(dir, e.Name()), 0); err == nil {
			_ = lock.Release() // which removes it
		}
	}
}

// undraft lets other terminals have the files of the drafts.
func (t *dialogue) undraft() {
	for _, lock := range t.draftLocks {
		_ = lock.Release() // the system does it, too, at the end of the process
	}
	t.drafts, t.draftLocks = nil, nil
}

// typedText returns what a person typed of a message, without the files that went with it.
func typedText(c item.Content) string {
	text, _ := typedOf(c)
	return text
}

// typedOf returns what a person typed of a message, and what the flag -f sent with it. Files that a prompt names
// behind @ follow the text, and then so do those of -f; otherwise they stand before it. Of pictures behind the text,
// nothing tells which are of -f.
func typedOf(c item.Content) (text string, sent []item.Part) {
	var texts []string
	for _, part := range c.Parts {
		if t, ok := part.(*item.InputText); ok {
			texts = append(texts, t.Text)
		}
	}
	if len(texts) == 0 || len(c.Parts) == 1 {
		return c.Display(), nil
	}
	named := func(name string) bool {
		return slices.ContainsFunc(strings.Fields(texts[0]), func(word string) bool {
			word, at := strings.CutPrefix(word, "@")
			return at && filepath.Base(word) == name
		})
	}
	last, ends := c.Parts[len(c.Parts)-1].(*item.InputText)
	begins := strings.Contains(texts[0], "@") && fileIn(texts[0]) == "" || len(texts) > 1 && fileIn(texts[1]) != "" && named(fileIn(texts[1]))
	if _, text := c.Parts[0].(*item.InputText); ends && !(begins && text) {
		return last.Text, c.Parts[:len(c.Parts)-1]
	}
	for _, part := range c.Parts {
		if t, ok := part.(*item.InputText); ok && fileIn(t.Text) != "" && t.Text != texts[0] && !named(fileIn(t.Text)) {
			sent = append(sent, part)
		}
	}
	return texts[0], sent
}

// fileIn returns the name that a part of a message with a file begins with, or "" if it is none.
func fileIn(text string) string {
	name, _, ok := strings.Cut(text, ":\n\n")
	if !ok || strings.Contains(name, "\n") {
		return ""
	}
	return name
}

// lastAsked returns what the person said last.
func lastAsked(s *session.Session) (text string) {
	for e := range s.Entries() {
		if b, ok := e.Body.(session.InputItem); ok && !b.Own && b.Item.Type() == item.TypeMessage && b.Item.Role() == item.RoleUser {
			if m, err := item.As[item.Message](b.Item); err == nil {
				text = typedText(m.Content)
			}
		}
	}
	return text
}

// commands of a chat, for completion and help.
var commands = []tui.Command{
	{Name: "allow", Arguments: "[[allow|ask|deny] TOOL | reset]", Help: "show the rules about tools, or change one until you leave"},
	{Name: "as-sent", Help: "show what the next request holds, and why"},
	{Name: "back", Arguments: "[TEXT]", Help: "choose an earlier message to go back to, as Esc twice does"},
	{Name: "branches", Help: "list the sessions of this file, with what they were forked from"},
	{Name: "collapse", Arguments: "[on|off]", Help: "send a marker instead of what a later call read again"},
	{Name: "compact", Arguments: "[TOKENS]", Help: "send a summary instead of the older part; TOKENS of the newest stay"},
	{Name: "context", Arguments: "[drop ENTRY]", Help: "show what fills the model's window, or take something out of it"},
	{Name: "copy", Arguments: "[N|code]", Help: "copy the last reply, the one N before it, or its last code block"},
	{Name: "cost", Help: "show what this conversation used"},
	{Name: "detach", Help: "while the agent works: leave it to workers, and leave"},
	{Name: "edit", Arguments: "[N|code]", Help: "open the last reply, the one N before it, or its last code block in $EDITOR; what you change becomes the draft"},
	{Name: "effort", Arguments: "[LEVEL]", Help: "how much the model reasons: none, minimal, low, medium, high, xhigh or max; without LEVEL as the file says"},
	{Name: "export", Arguments: "FILE", Help: "write the conversation to FILE: .md, .html or .jsonl"},
	{Name: "fork", Arguments: "[NAME]", Help: "go on in a copy; this conversation stays as it is"},
	{Name: "fullscreen", Help: "use the whole screen, with scrolling, or go back; also Ctrl-X Ctrl-F"},
	{Name: "help", Help: "show the commands"},
	{Name: "keys", Help: "show the keys"},
	{Name: "mode", Arguments: "[ask|edits|plan]", Help: "what is asked about, as Shift-Tab chooses: as the rules say, no edits in the workspace, or nothing but reading runs"},
	{Name: "model", Arguments: "NAME", Help: "ask another model from now on"},
	{Name: "plan", Help: "the same as /mode plan"},
	{Name: "quit", Help: "leave; the conversation is kept"},
	{Name: "redo", Help: "do again what /undo took back"},
	{Name: "redraw", Help: "show the whole conversation again, as the width is now"},
	{Name: "retry", Help: "ask the last message again, in a fork"},
	{Name: "save", Arguments: "[NAME]", Help: "give the session a name; it is kept in any case"},
	{Name: "steer", Arguments: "TEXT", Help: "say something to the work that is under way"},
	{Name: "theme", Arguments: "dark|light|contrast|none", Help: "change the colours; ANTIPHON_THEME, or theme in the settings, keeps one"},
	{Name: "title", Arguments: "[TEXT]", Help: "give the conversation a title for lists; without TEXT, the model is asked for one"},
	{Name: "tools", Help: "list the tools: where each comes from, and what is asked"},
	{Name: "undo", Arguments: "[N]", Help: "go back before your last message, or the Nth from the end: the conversation, the files, or both"},
	{Name: "why", Help: "show what broke the prompt cache"},
}
