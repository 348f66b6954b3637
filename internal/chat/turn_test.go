// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/internal/attach"
	"github.com/antiphon-go/antiphon/internal/person"
	"github.com/antiphon-go/antiphon/internal/show"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/session/queue"
	"github.com/antiphon-go/antiphon/tool"
)

// TestUnsentComesBack proves that a prompt is kept as a draft until the session has it, and is the draft
// again if the turn did not begin, because of a file that it names or because the person stopped it. J1
func TestUnsentComesBack(t *testing.T) {
	d, face, screen := conversing(t, "turn\n  say Yes.\n")
	write(t, "empty.txt", "")
	before := inputs(d.host.Session)
	outside := write(t, filepath.Join(t.TempDir(), "x.txt"), "x")
	for _, text := range []string{"see @empty.txt", "see @" + outside} {
		if strings.Contains(text, outside) { // which is asked about
			face.begun = func(stop func(), _ func(string) error) { stop() }
		}
		if err := d.turn(t.Context(), text); err != nil {
			t.Fatal(err)
		}
		if inputs(d.host.Session) != before || len(face.kept) > 0 || !slices.Equal(face.back, []string{text}) {
			t.Errorf("%s: kept %q, back %q:\n%s", text, face.kept, face.back, screen)
		}
		face.back, face.begun = nil, nil
	}
	if err := d.turn(t.Context(), "hello"); err != nil {
		t.Fatal(err)
	}
	if inputs(d.host.Session) != before+1 || !slices.Equal(face.kept, []string{"hello"}) || len(face.back) > 0 {
		t.Errorf("kept %q, back %q:\n%s", face.kept, face.back, screen)
	}
}

// readerFunc is a reader.
type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(b []byte) (int, error) { return f(b) }

// TestLostWithQuestion proves that a question that is open when the terminal is gone waits for somebody
// at the worker, if the work is left to workers: the call is not refused. D1
func TestLostWithQuestion(t *testing.T) {
	d, _, screen := conversing(t, "turn\n  call append_to_file {\"path\": \"new.txt\", \"content\": \"one\\n\"}\nturn\n  say Yes.\n")
	d.env["ANTIPHON_HANGUP"] = "detach"
	ctx, lost := d.whenLost(t.Context())
	d.who = person.New(readerFunc(func([]byte) (int, error) {
		go lost()
		return 0, io.EOF
	}), screen)
	if err := d.turn(ctx, "go"); err != nil {
		t.Fatal(err)
	}
	pending, err := agent.PendingApprovals(t.Context(), d.host.Session)
	if err != nil || len(pending) != 1 || !d.detached.Load() {
		t.Errorf("%d calls wait, left to workers: %v, %v:\n%s", len(pending), d.detached.Load(), err, screen)
	}
}

// TestLostWithModelQuestion proves that a question of the model that is open when the terminal is gone is not refused,
// whatever the settings say about the work: the run ends, nobody else takes it, and the question is asked again when the
// session is opened again. D1
func TestLostWithModelQuestion(t *testing.T) {
	for _, hangup := range []string{"", "detach"} {
		t.Run(hangup, func(t *testing.T) {
			d, _, screen := conversing(t, "turn\n  call ask_user {\"question\": \"Which colour?\"}\nturn\n  say You want {{output \"ask_user\" 1}}.\n", `<tool name="ask_user"/>`)
			d.env["ANTIPHON_HANGUP"] = hangup
			ctx, lost := d.whenLost(t.Context())
			d.who = person.New(readerFunc(func([]byte) (int, error) {
				lost()
				return 0, io.EOF
			}), screen)
			d.who.Lost = d.gone
			if err := d.turn(ctx, "go"); err != nil {
				t.Fatal(err)
			}
			if _, err := d.next(ctx); !errors.Is(err, io.EOF) || ctx.Err() != nil || d.detached.Load() || strings.Contains(screen.String(), "You want") {
				t.Fatalf("%v, %v, left to workers %v:\n%s", err, ctx.Err(), d.detached.Load(), screen)
			}
			if err := d.close(); err != nil {
				t.Fatal(err)
			}
			var list strings.Builder
			if _, err := d.conf.Program.Choices(t.Context(), &list, 200); err != nil || !strings.Contains(list.String(), "(waits for you)") {
				t.Errorf("%v, the list of sessions: %s", err, list.String())
			}
			d.gone, d.who = nil, person.New(strings.NewReader("blue\n"), screen)
			if err := d.begin(t.Context()); err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(screen.String(), "You want blue.") || strings.Count(screen.String(), "?? Which colour?") != 2 {
				t.Errorf("it was not asked again:\n%s", screen)
			}
		})
	}
}

// TestLostBesideSubagent proves that work of another subagent ends when the terminal is gone while a question of the
// model is open, and that the question is asked again. D1
func TestLostBesideSubagent(t *testing.T) {
	const script = "turn\n  call asks {\"task\": \"ask\"}\n  call works {\"task\": \"work\"}\nturn\n  say The answer is {{output \"asks\" 1}}.\n"
	dir := t.TempDir()
	file := func(name, text string) { write(t, filepath.Join(dir, name), text) }
	file("asks.script", "turn\n  call ask_user {\"question\": \"Which colour?\"}\nturn\n  say {{output \"ask_user\" 1}}\n")
	file("works.script", "turn\n  pause 10m\n  say Done.\n")
	file("asks.md", "<config model=\"rehearsal:asks.script\"/>\n<tool name=\"ask_user\"/>\n")
	file("works.md", "<config model=\"rehearsal:works.script\"/>\n")
	d, _, screen := conversingIn(t, dir, script, `<tool name="asks" agent="asks.md" local description="Asks."/>`, `<tool name="works" agent="works.md" local description="Works."/>`)
	ctx, lost := d.whenLost(t.Context())
	d.who = person.New(readerFunc(func([]byte) (int, error) {
		lost()
		return 0, io.EOF
	}), screen)
	d.who.Lost = d.gone
	if err := d.turn(ctx, "go"); err != nil || ctx.Err() != nil {
		t.Fatalf("%v, %v:\n%s", err, ctx.Err(), screen)
	}
	if err := d.close(); err != nil {
		t.Fatal(err)
	}
	d.gone, d.waiting, d.who = nil, openQuestions{}, person.New(strings.NewReader("blue\n"), screen)
	if err := d.begin(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(screen.String(), "The answer is blue.") || strings.Count(screen.String(), "?? Which colour?") != 2 {
		t.Errorf("it was not asked again:\n%s", screen)
	}
	if !strings.Contains(screen.String(), "stopped (the terminal is gone)") {
		t.Errorf("the other subagent was not stopped:\n%s", screen)
	}
}

// TestLostBeforeSubagent proves that a subagent that begins when the terminal is gone is stopped when its run has begun, and
// not before, when there is nothing to stop.
func TestLostBeforeSubagent(t *testing.T) {
	var o openQuestions
	stopped := make(chan string, 2)
	for _, one := range []string{"s/1", "s/2"} {
		o.kept("s", session.CallStarted{CallID: one, Session: one})
	}
	o.kept("s/1", session.RunStarted{})
	o.asked(1)
	if !o.lost(func(one string) { stopped <- one }, func() {}) {
		t.Fatal("no question is open")
	}
	o.kept("s/1", session.Paused{CallID: "q", Reason: attach.PersonsAnswer})
	if _, there := o.owners["s/2"]; !there {
		t.Error("it is forgotten before it begins")
	}
	o.kept("s/2", session.RunStarted{})
	if one := <-stopped; one != "s/2" {
		t.Errorf("%s is stopped", one)
	}
}

// TestLostWithBoth proves that a call that waits for an approval beside a question of the model, as calls of two
// subagents do, stays open with it when the terminal is gone: nobody has refused it. D1
func TestLostWithBoth(t *testing.T) {
	d, _, _ := conversing(t, "turn\n  say Yes.\n")
	ctx, lost := d.whenLost(t.Context())
	d.who.Lost = d.gone
	d.waiting.asked(1)
	lost()
	got, err := d.approve(ctx, agent.ApprovalRequest{Call: tool.Call{ID: "call_1", Name: "append_to_file", Arguments: "{}"}})
	if err != nil || !got.Later {
		t.Errorf("%+v, %v", got, err)
	}
}

// TestQueuedAndStopped proves that what waits for the answer of a run that somebody stops is answered next, but not if an
// operator stops the run with antiphon work park.
func TestQueuedAndStopped(t *testing.T) {
	for from, want := range map[string]int{"chat": 2, "esc": 2, queue.FromPark: 1} {
		t.Run(from, func(t *testing.T) {
			d, face, screen := conversing(t, "again\nturn\n  say Yes.\n")
			face.begun = func(stop func(), _ func(string) error) {
				face.begun = nil
				said := []session.Delivery{
					{Delivered: session.Delivered{Key: "1", By: "anna", From: "chat", Queued: true}, Bodies: []session.Body{session.InputItem{Item: item.User("two")}}},
					{Delivered: session.Delivered{Key: "2", By: "anna", From: from}, Bodies: []session.Body{session.StopAsked{}}},
				}
				if from == "esc" {
					said = said[:1]
					defer stop()
				}
				for _, one := range said {
					if _, err := d.host.Session.Deliver(t.Context(), one); err != nil {
						t.Error(err)
					}
				}
			}
			if err := d.turn(t.Context(), "one"); err != nil {
				t.Fatal(err)
			}
			if got := inputs(d.host.Session); got != want {
				t.Errorf("%d messages are taken, want %d:\n%s", got, want, screen)
			}
		})
	}
}

// TestFailureOnce proves that why a turn failed is shown once.
func TestFailureOnce(t *testing.T) {
	d, _, screen := conversing(t, "turn\n  say {{output \"nothing\"}}\n")
	if err := d.turn(t.Context(), "one"); err != nil {
		t.Fatal(err)
	}
	if got := strings.Count(screen.String(), "400 Bad Request"); got != 1 {
		t.Errorf("it is shown %d times:\n%s", got, screen)
	}
}

// TestFailureOfTurnBefore proves that why a turn failed is shown before what was said next, when a conversation is shown again, and not
// again below it while it is held.
func TestFailureOfTurnBefore(t *testing.T) {
	d, _, screen := conversing(t, "turn\n  say {{output \"nothing\"}}\n\nround\nturn\n  say Yes.\n")
	for _, text := range []string{"one", "two"} {
		if err := d.turn(t.Context(), text); err != nil {
			t.Fatal(err)
		}
	}
	if strings.Contains(screen.String(), "!! turn ") {
		t.Errorf("it is shown again:\n%s", screen)
	}
	screen.Reset()
	d.recall(d.host.Session.Entries(), 0)
	failed, next := strings.Index(screen.String(), "!! turn 1: failed"), strings.Index(screen.String(), "two")
	if failed < 0 || next < failed {
		t.Errorf("it is shown again as\n%s", screen)
	}
}

// TestStoppedIsNotAskedAgain proves that a message whose answer a person stopped, at this terminal or elsewhere, is not asked again
// because the conversation is opened, and that one whose run ended with the program is.
func TestStoppedIsNotAskedAgain(t *testing.T) {
	for _, by := range []string{"esc", "elsewhere", "program"} {
		t.Run(by, func(t *testing.T) {
			d, face, screen := conversing(t, "again\nturn\n  pause 50ms\n  say Yes.\n")
			ctx, end := context.WithCancel(t.Context())
			defer end()
			face.begun = func(stop func(), _ func(string) error) {
				switch face.begun = nil; by {
				case "esc":
					stop()
				case "program":
					end()
				default:
					if _, err := d.host.Session.Deliver(t.Context(), session.Delivery{Delivered: session.Delivered{Key: "1", By: "anna", From: "chat"}, Bodies: []session.Body{session.StopAsked{}}}); err != nil {
						t.Error(err)
					}
				}
			}
			if err := d.turn(ctx, "one"); err != nil && by != "program" {
				t.Fatal(err)
			}
			if err := d.close(); err != nil {
				t.Fatal(err)
			}
			screen.Reset()
			if err := d.begin(t.Context()); err != nil {
				t.Fatal(err)
			}
			stopped, asked := strings.Contains(screen.String(), "because it was stopped"), strings.Contains(screen.String(), "Yes.")
			if want := by != "program"; stopped != want || asked == want {
				t.Errorf("it shows\n%s", screen)
			}
			if err := d.turn(t.Context(), "go on"); err != nil || !strings.Contains(screen.String(), "Yes.") {
				t.Errorf("then: %v\n%s", err, screen)
			}
			if stoppedByPerson(d.host.Session.Entries()) {
				t.Error("it still counts as stopped")
			}
		})
	}
}

// TestStoppedWithItsRun proves that a run which the person stopped says so itself, before the notice that follows: a crash at any moment
// since then leaves a session whose message is not asked again.
func TestStoppedWithItsRun(t *testing.T) {
	d, face, _ := conversing(t, "again\nturn\n  pause 10m\n  say Yes.\n")
	face.begun = func(stop func(), _ func(string) error) { // once the run has begun
		store, id := d.host.Store, d.info.ID
		go func() {
			for info, err := store.Info(t.Context(), id); err == nil && info.Entries < 2; info, err = store.Info(t.Context(), id) {
				time.Sleep(time.Millisecond)
			}
			stop()
		}()
	}
	if err := d.turn(t.Context(), "one"); err != nil {
		t.Fatal(err)
	}
	var said []session.Entry
	ended := false
	for e := range d.host.Session.Entries() {
		said = append(said, e)
		if b, ok := e.Body.(session.StopAsked); ok {
			ended = b.Why == string(agent.StopCancelled)
		}
		if ended && !stoppedByPerson(slices.Values(said)) {
			t.Errorf("after entry %d, %T, it is asked again", e.Seq, e.Body)
		}
	}
	if !ended {
		t.Error("the run was not stopped")
	}
}

// TestMisfit proves that a question says that the call will not run because its arguments do not fit, and that going back does not list
// such a call among what cannot be taken back.
func TestMisfit(t *testing.T) {
	d, _, screen := conversing(t, "turn\n  call find_and_replace {\"path\": \"a.txt\"}\n\nturn\n  say Yes.\n")
	d.who = person.New(strings.NewReader("y\n"), screen)
	if err := d.turn(t.Context(), "one"); err != nil {
		t.Fatal(err)
	}
	if got := screen.String(); !strings.Contains(got, `its arguments do not fit, so that nothing will run: `) {
		t.Errorf("the question is\n%s", got)
	}
	found, err := d.after(t.Context(), 0)
	if err != nil || len(found.lost) > 0 {
		t.Errorf("%q, %v", found.lost, err)
	}
}

// TestKeysInPlainMode proves that where nothing is redrawn, no keys are listed that do nothing there.
func TestKeysInPlainMode(t *testing.T) {
	d, _, screen := conversing(t, "turn\n  say Yes.\n")
	d.conf.Plain = true
	d.keys()
	if got := screen.String(); strings.Contains(got, "Esc") || strings.Contains(got, "Ctrl-R") || !strings.Contains(got, "  Ctrl-C                 stops the work, and leaves") {
		t.Errorf("%s", got)
	}
}

// TestKeysFit proves that the lists of /keys and /help break between words.
func TestKeysFit(t *testing.T) {
	d, _, screen := conversing(t, "turn\n  say Yes.\n")
	d.env["ANTIPHON_KEYS"] = "vi"
	d.keys()
	d.help()
	for line := range strings.Lines(screen.String()) {
		line = strings.TrimRight(line, "\n")
		if n := show.ColumnsOf(line); n >= d.face.width() {
			t.Errorf("%d columns: %s", n, line)
		}
	}
}

// TestWhyWithoutUsage proves that requests about whose use the endpoint says nothing are not taken for none.
func TestWhyWithoutUsage(t *testing.T) {
	d, _, screen := conversing(t, "turn\n  say Yes.\n")
	if err := d.turn(t.Context(), "hello"); err != nil {
		t.Fatal(err)
	}
	for i := range 2 {
		if _, err := d.host.Session.Append(t.Context(), session.TurnStarted{Turn: i + 2}, session.TurnEnded{Turn: i + 2, Status: "completed"}); err != nil {
			t.Fatal(err)
		}
	}
	if err := d.why(); err != nil || !strings.Contains(screen.String(), "about 2 more requests the endpoint said nothing") {
		t.Errorf("%v: %s", err, screen)
	}
}

// TestWaitingCallGoesOn proves that a conversation that ended with a question about a call does not say that its message
// is asked again: the question is.
func TestWaitingCallGoesOn(t *testing.T) {
	d, _, screen := conversing(t, "turn\n  call append_to_file {\"path\": \"a.txt\", \"text\": \"x\"}\nturn\n  say Done.\n")
	next := ""
	d.who = person.New(readerFunc(func(b []byte) (int, error) {
		if next != "" {
			return 0, io.EOF
		}
		next = d.whatNext(t.Context()) // while the call waits
		return copy(b, "y\n"), nil
	}), screen)
	if err := d.turn(t.Context(), "go"); err != nil {
		t.Fatal(err)
	}
	if next != "and the work on it goes on" || d.whatNext(t.Context()) != "so it is asked again" {
		t.Errorf("%q, and then %q", next, d.whatNext(t.Context()))
	}
}

// TestDropSaid proves that /context drop takes a message of the person by its first line, also if that is a number, and
// nothing if several begin with it.
func TestDropSaid(t *testing.T) {
	d, _, screen := conversing(t, "again\nturn\n  say Yes.\n")
	for _, text := range []string{"2", "hello\nyou", "twice", "twice"} {
		if err := d.turn(t.Context(), text); err != nil {
			t.Fatal(err)
		}
	}
	for _, which := range []string{"› 2", "hello"} {
		if err := d.context(t.Context(), "drop "+which); err != nil {
			t.Errorf("%s: %v\n%s", which, err, screen)
		}
	}
	for which, want := range map[string]string{"twice": "several", "nothing": "first line", "›": "first line", "› 1": "first line"} {
		if err := d.context(t.Context(), "drop "+which); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", which, err)
		}
	}
	var sent []string
	for _, one := range session.Explain(d.host.Session.Entries()).Request {
		if m, err := item.As[item.Message](one.Item); err == nil && one.Item.Role() == item.RoleUser {
			sent = append(sent, m.Content.Display())
		}
	}
	if !slices.Equal(sent, []string{"twice", "twice"}) {
		t.Errorf("it is sent that the person said %q", sent)
	}
}

// TestTypedOf proves that the text that a person typed is kept apart from the files that went with it, and that the files of -f go with
// a message that is sent again.
func TestTypedOf(t *testing.T) {
	code, notes := &item.InputText{Text: "app.py:\n\n@decorator\ndef f(): pass"}, &item.InputText{Text: "notes.txt:\n\nwords"}
	picture := &item.InputImage{ImageURL: "data:image/png;base64,AA=="}
	say := func(text string) item.Part { return &item.InputText{Text: text} }
	for _, c := range []struct {
		parts []item.Part
		want  string
		sent  int
	}{
		{[]item.Part{code, say("explain")}, "explain", 1},
		{[]item.Part{code, notes, say("explain @nobody")}, "explain @nobody", 2},
		{[]item.Part{picture, say("explain")}, "explain", 1},
		{[]item.Part{say("see @notes.txt"), notes}, "see @notes.txt", 0},
		{[]item.Part{say("see:\n\n@docs/notes.txt"), notes, code}, "see:\n\n@docs/notes.txt", 1},
		{[]item.Part{say("see:\n\n@a.png"), picture}, "see:\n\n@a.png", 0},
	} {
		if text, sent := typedOf(item.Parts(c.parts...)); text != c.want || len(sent) != c.sent {
			t.Errorf("typed %q, want %q, with %d files of -f, want %d", text, c.want, len(sent), c.sent)
		}
	}
	d, _, screen := conversing(t, "turn\n  say Yes.\n")
	d.conf.Parts = []item.Part{code}
	if err := d.turn(t.Context(), "explain"); err != nil || d.conf.Parts != nil {
		t.Fatal(err, d.conf.Parts)
	}
	if err := d.command(t.Context(), "/undo"); err != nil || len(d.conf.Parts) != 1 {
		t.Errorf("%v: %d files go with the next message:\n%s", err, len(d.conf.Parts), screen)
	}
}

// TestFileOutsideAtOnce proves that what is said to the work never asks, also if a file took another's place since it
// was looked at. K2
func TestFileOutsideAtOnce(t *testing.T) {
	d, _, screen := conversing(t, "turn\n  say Yes.\n")
	outside := write(t, filepath.Join(t.TempDir(), "x.txt"), "x")
	said, err := d.message(t.Context(), "see @"+outside, false, nil)
	if err == nil || len(said) > 0 || strings.Contains(screen.String(), "send ") {
		t.Errorf("%v:\n%s", err, screen)
	}
}

// TestUnknownCommands proves that commands of other programs, and mistyped ones, are answered with
// what does the same here.
func TestUnknownCommands(t *testing.T) {
	d, _, screen := conversing(t, "turn\n  say Yes.\n")
	for command, want := range map[string]string{
		"/new":    "there is no command /new; leave with Ctrl-D and start antiphon chat again: each start without -c, -r and --session is a new conversation",
		"/resume": "there is no command /resume; leave with Ctrl-D, and antiphon chat -r lists the conversations",
		"/status": "there is no command /status; /cost says what the conversation used",
		"/modle":  "there is no command /modle, did you mean /model?",
		"/cots":   "there is no command /cots, did you mean /cost?; /help lists them. To send a text that begins with /",
		"/xyz":    "there is no command /xyz; /help lists them.",
	} {
		screen.Reset()
		if err := d.command(t.Context(), command); err != nil || !strings.Contains(screen.String(), want) {
			t.Errorf("%s: %v\n%s", command, err, screen)
		}
	}
	// Usage without a price names what a person can still do.
	if err := d.turn(t.Context(), "hello"); err != nil {
		t.Fatal(err)
	}
	screen.Reset()
	if err := d.command(t.Context(), "/cost"); err != nil || !strings.Contains(screen.String(), "; prices in the settings (antiphon config) say what tokens cost, and so does --price at the start") {
		t.Errorf("%v\n%s", err, screen)
	}
}

// TestSteer proves that what is said to work that is under way has the files that it names, and that
// commands, shell lines and files that are asked about wait. K2
func TestSteer(t *testing.T) {
	d, face, screen := conversing(t, "turn\n  say Yes.\nagain\nturn\n  say Again.\n")
	write(t, "notes.txt", "three words here")
	outside := write(t, filepath.Join(t.TempDir(), "x.txt"), "x")
	waits := map[string]string{}
	face.begun = func(_ func(), steer func(string) error) {
		face.begun = nil
		for _, text := range []string{"/cost", "!ls", "see @" + outside, "see @notes.txt"} {
			if err := steer(text); err != nil {
				waits[text] = err.Error()
			}
		}
	}
	if err := d.turn(t.Context(), "hello"); err != nil {
		t.Fatal(err)
	}
	if len(waits) != 3 || waits["see @notes.txt"] != "" {
		t.Errorf("it says %q:\n%s", waits, screen)
	}
	sent := ""
	for e := range d.host.Session.Entries() {
		if b, ok := e.Body.(session.InputItem); ok {
			sent += b.Item.JSON()
		}
	}
	if !strings.Contains(sent, "three words here") || strings.Contains(sent, "/cost") || strings.Contains(sent, "!ls") {
		t.Errorf("sent: %s", sent)
	}
}

// TestRowsOfParallelCalls proves that the row of a call's end says what it worked on if another call
// went on beside it, and only the tool if none did.
func TestRowsOfParallelCalls(t *testing.T) {
	d, _, screen := conversing(t, "turn\n  call read_file {\"path\": \"a.txt\"}\nturn\n  call read_file {\"path\": \"b.txt\"}\n  call read_file {\"path\": \"c.txt\"}\nturn\n  say Done.\n")
	for _, name := range []string{"a.txt", "b.txt", "c.txt"} {
		write(t, name, name)
	}
	if err := d.turn(t.Context(), "go"); err != nil {
		t.Fatal(err)
	}
	wantAll(t, "the rows", screen.String(), "<- read_file b.txt ", "<- read_file c.txt ")
	if strings.Contains(screen.String(), "<- read_file a.txt") {
		t.Errorf("the rows:\n%s", screen)
	}
}

// TestShownAsNumbers proves that control characters of others are shown as numbers: no terminal obeys
// them, and nobody overlooks them.
func TestShownAsNumbers(t *testing.T) {
	const text = "a\x1b[2Jb\r\nc\u0085d\te"
	for got, want := range map[string]string{
		show.Printable(text):     "a<U+001B>[2Jb\nc<U+0085>d\te",
		show.Shorten(text, 50):   "a<U+001B>[2Jb c d e",
		show.Unbroken(text):      "a<U+001B>[2Jb c<U+0085>d e",
		show.Shorten("\x07", 50): "<U+0007>",
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	d, _, screen := conversing(t, "turn\n  say Yes.\nagain\nturn\n  say Again.\n")
	for range 2 {
		if err := d.turn(t.Context(), "hello"); err != nil {
			t.Fatal(err)
		}
		model := session.Setup{Model: "m\x1b[2J", Endpoint: "https://e.example"}
		if _, err := d.host.Session.Append(t.Context(), session.TurnStarted{Setup: &model}, session.TurnEnded{Usage: &api.Usage{InputTokens: 1}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := d.why(); err != nil || strings.Contains(screen.String(), "\x1b") {
		t.Errorf("%v: %q", err, screen)
	}
}

// TestFirstPrompt proves that instructions and files of the flags go with the first prompt, and only
// with it, and that effort and temperature are those of the flags. P5
func TestFirstPrompt(t *testing.T) {
	d, _, _ := conversing(t, "again\nturn\n  say Yes.\n")
	cold := 0.25
	d.conf.System, d.conf.Temperature, d.effort = "Be brief.", &cold, "low"
	d.conf.Parts = []item.Part{&item.InputText{Text: "notes.txt:\n\nthree words here"}}
	for _, text := range []string{"one", "two"} {
		if err := d.turn(t.Context(), text); err != nil {
			t.Fatal(err)
		}
	}
	a, err := d.host.Agent(t.Context())
	if err != nil || a.Request.Temperature == nil || *a.Request.Temperature != cold || a.Request.Reasoning == nil || a.Request.Reasoning.Effort != "low" {
		t.Errorf("%v: the request is %+v", err, a.Request)
	}
	var said []string
	for e := range d.host.Session.Entries() {
		if b, ok := e.Body.(session.InputItem); ok {
			said = append(said, b.Item.JSON())
		}
	}
	if n := len(said); n < 3 || !strings.Contains(said[n-3], "Be brief.") || !strings.Contains(said[n-2], "three words here") || !strings.Contains(said[n-2], "one") || strings.Contains(said[n-1], "here") {
		t.Errorf("said %q", said)
	}
	if got := lastAsked(d.host.Session); got != "two" {
		t.Errorf("the last prompt is %q", got)
	}
}

// TestFirstQuestionOfFile proves that instructions and files of the flags go with the question of the agent's file. P5
func TestFirstQuestionOfFile(t *testing.T) {
	d, _, screen := conversing(t, "turn\n  say Yes.\n")
	d.conf.System, d.conf.Parts = "Be brief.", []item.Part{&item.InputText{Text: "notes.txt:\n\nthree words here"}}
	if err := d.turn(t.Context(), ""); err != nil {
		t.Fatal(err)
	}
	said := ""
	for e := range d.host.Session.Entries() {
		if b, ok := e.Body.(session.InputItem); ok {
			said += b.Item.JSON()
		}
	}
	if !strings.Contains(said, "Be brief.") || !strings.Contains(said, "three words here") || d.conf.Parts != nil || d.conf.System != "" {
		t.Errorf("said %s:\n%s", said, screen)
	}
}

// TestRedrawRemembersOnce proves that what is shown again is not twice in the history of prompts.
func TestRedrawRemembersOnce(t *testing.T) {
	d, face, _ := conversing(t, "again\nturn\n  say Yes.\n")
	if err := d.turn(t.Context(), "one"); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if err := d.command(t.Context(), "/redraw"); err != nil {
			t.Fatal(err)
		}
	}
	if len(face.history) > 0 { // beside "one", which the terminal has since it was typed
		t.Errorf("the history has also %q", face.history)
	}
}

// TestAnsweredLater proves that a prompt that was sent again after a failure leaves the draft once it is answered. J1
func TestAnsweredLater(t *testing.T) {
	d, face, screen := conversing(t, "turn\n  say Yes.\n")
	if _, err := d.host.Session.Append(t.Context(), session.InputItem{Item: item.User("hello")}); err != nil {
		t.Fatal(err)
	}
	if err := d.turn(t.Context(), "hello"); err != nil {
		t.Fatal(err)
	}
	if inputs(d.host.Session) != 1 || !slices.Equal(face.kept, []string{"hello"}) || len(face.back) > 0 {
		t.Errorf("kept %q, back %q:\n%s", face.kept, face.back, screen)
	}
}

// TestRedrawShowsCalls proves that /redraw shows what happened as it was shown when it did: rows of calls,
// the ends of their outputs, changes, shell lines and what they printed. What continues a session shows the
// last calls alone.
func TestRedrawShowsCalls(t *testing.T) {
	var script strings.Builder
	script.WriteString("turn\n  call read_file {\"path\": \"a.txt\"}\n  call find_and_replace {\"path\": \"a.txt\", \"find\": \"first\", \"replace\": \"added\"}\nturn\n  say Done.\nagain\nturn\n")
	for range mostRecalledCalls + 3 {
		script.WriteString("  call read_file {\"path\": \"a.txt\"}\n")
	}
	script.WriteString("turn\n  say **All** read.\n")
	d, _, screen := conversing(t, script.String())
	write(t, "a.txt", "first\nlast line of it\n")
	d.who = person.New(strings.NewReader("y\n"), screen)
	d.ran = []string{ranHead + "ls\nfile-1\x1b[2J\nfile-2"}
	for _, text := range []string{"go", "read"} {
		if err := d.turn(t.Context(), text); err != nil {
			t.Fatal(err)
		}
	}
	rows := []string{"> ! ls", "  file-1<U+001B>[2J\n  file-2", "> go", "-> read_file a.txt", "<- read_file ", "   | last line of it", "<- find_and_replace ", "added", "Done.", "> read", "**All** read."}
	screen.Reset()
	if err := d.command(t.Context(), "/redraw"); err != nil {
		t.Fatal(err)
	}
	wantAll(t, "/redraw", screen.String(), rows...)
	at := 0
	for _, row := range []string{"> ! ls", "> go", "-> read_file", "Done.", "> read", "**All** read."} {
		next := strings.Index(screen.String()[at:], row)
		if next < 0 {
			t.Fatalf("%q is not behind those before:\n%s", row, screen)
		}
		at += next
	}
	if n := strings.Count(screen.String(), "-> read_file"); n != mostRecalledCalls+4 {
		t.Errorf("%d calls are shown:\n%s", n, screen)
	}
	screen.Reset()
	d.recall(d.host.Session.Entries(), mostRecalled)
	if n := strings.Count(screen.String(), "-> read_file"); n != mostRecalledCalls || !strings.Contains(screen.String(), "the first 5 calls of these are not shown") {
		t.Errorf("%d calls are shown of a session that continues:\n%s", n, screen)
	}
}

// TestFolderIsTree proves that what a folder has is shown as a tree, from its beginning.
func TestFolderIsTree(t *testing.T) {
	d, _, screen := conversing(t, "turn\n  call read_directory {\"path\": \"many\"}\nturn\n  say Done.\n")
	if err := os.MkdirAll("many", 0o700); err != nil {
		t.Fatal(err)
	}
	const listed = 12 // entries of a folder
	for n := range listed + 2 {
		write(t, filepath.Join("many", fmt.Sprintf("f%02d", n)), "x")
	}
	if err := d.turn(t.Context(), "go"); err != nil {
		t.Fatal(err)
	}
	wantAll(t, "the rows", screen.String(), "   ├ f00 (1 byte)\n   ├ f01", "   └ … 2 more, which --show-output shows")
	if strings.Contains(screen.String(), fmt.Sprintf("f%02d", listed)) {
		t.Errorf("all is shown:\n%s", screen)
	}
}

// TestEditReply proves that a reply is opened in the editor, and that what the person makes of it becomes
// the draft, also if it is a code block alone.
func TestEditReply(t *testing.T) {
	d, face, _ := conversing(t, "turn\n  say\n    Do this:\n\n    ```\n    run\n    ```\n")
	if err := d.turn(t.Context(), "go"); err != nil {
		t.Fatal(err)
	}
	for which, want := range map[string]string{"": "Do this:\n\n```\nrun\n```", "code": "run"} {
		for _, becomes := range []string{want, "changed"} {
			face.editor = func(text, _ string) (string, error) {
				if text != want {
					t.Errorf("/edit %s: the editor has %q", which, text)
				}
				return becomes, nil
			}
			face.drafted = ""
			if err := d.edit(which); err != nil {
				t.Error(err)
			}
			if changed := becomes != want; changed != (face.drafted == "changed") {
				t.Errorf("/edit %s: the draft is %q", which, face.drafted)
			}
		}
	}
	if err := d.edit("7"); err == nil {
		t.Error("there is no such reply")
	}
}
