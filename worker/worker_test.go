// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package worker_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/audit"
	"github.com/antiphon-go/antiphon/host"
	"github.com/antiphon-go/antiphon/internal/memstore"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/session/queue"
	"github.com/antiphon-go/antiphon/trust"
	"github.com/antiphon-go/antiphon/worker"
)

// rig is a store, an agent's file and a worker.
type rig struct {
	*testing.T
	store *memstore.Store
	net   func(what string) // is told of what is about to happen at the store; may be nil
	file  string
	work  *worker.Worker
}

const (
	head   = "<config model=\"rehearsal:talk.script\"/>\n<system>Be brief.</system>\n"
	writes = head + "<tool name=\"append_to_file\"/>\n"
	talk   = "turn\n  say You said: {{question}}\nagain\nturn\n  say And now: {{question}}\n"
	note   = "turn\n  call append_to_file {\"path\":\"notes.txt\",\"content\":\"seen\\n\"}\nturn\n  say Noted.\n"
)

func newRig(t *testing.T, file, script string) *rig {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{T: t, file: filepath.Join(dir, "agent.md")}
	r.store = new(memstore.DB).Open(memstore.Options{Net: func(_ context.Context, what string, do func() error) error {
		if r.net != nil {
			r.net(what)
		}
		return do()
	}})
	r.write(r.file, file)
	r.write(filepath.Join(dir, "talk.script"), script)
	r.work = r.another("a")
	return r
}

// another returns another worker, which has not seen the file.
func (r *rig) another(name string) *worker.Worker {
	state := r.TempDir()
	return &worker.Worker{
		Config: host.Config{Store: r.store, Workspace: r.TempDir(), FrontEnd: host.FrontEnd{Program: "test 1"}},
		Agents: &worker.Agents{Folder: filepath.Join(state, "definitions"), Agreed: trust.Open(filepath.Join(state, "agreed.jsonl"))},
		Name:   name, Backoff: func(int) time.Duration { return 0 },
	}
}

func (r *rig) write(path, text string) {
	r.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		r.Fatal(err)
	}
}

// agree lets a worker run the file as it is now.
func (r *rig) agree(w *worker.Worker) worker.Agent {
	r.Helper()
	cfg := w.Config
	cfg.File, cfg.Trust = r.file, trust.Everything
	a, err := w.Agents.Add(r.Context(), cfg)
	if err != nil {
		r.Fatal(err)
	}
	return a
}

func (r *rig) job(key, text string) worker.Job {
	return worker.Job{Config: host.Config{File: r.file, Session: "ann", Store: r.store, FrontEnd: host.FrontEnd{Program: "test 1"}}, Key: key, Input: []item.Item{item.User(text)}}
}

func (r *rig) submit(j worker.Job) worker.Receipt {
	r.Helper()
	receipt, err := worker.Submit(r.Context(), j)
	if err != nil {
		r.Fatal(err)
	}
	return receipt
}

func (r *rig) once(w *worker.Worker) {
	r.Helper()
	if err := w.Once(r.Context()); err != nil {
		r.Fatal(err)
	}
}

// row returns the work of a session; the zero value if there is none.
func (r *rig) row(id string) queue.Work {
	r.Helper()
	w, err := r.store.Work(r.Context(), id)
	if err != nil && !errors.Is(err, session.ErrNotFound) {
		r.Fatal(err)
	}
	return w
}

// is checks the state of work, and that the reason contains a text.
func (r *rig) is(id string, state queue.State, reason string) queue.Work {
	r.Helper()
	w := r.row(id)
	if w.State != state || !strings.Contains(w.Reason, reason) {
		r.Errorf("%s because %q, want %s because %q", w.State, w.Reason, state, reason)
	}
	return w
}

// asks returns a session, and its only call that waits for an approval.
func (r *rig) asks(id string) (*session.Session, agent.PendingApproval) {
	r.Helper()
	s, err := session.Open(r.Context(), r.store, id)
	if err != nil {
		r.Fatal(err)
	}
	pending, err := agent.PendingApprovals(r.Context(), s)
	if err != nil || len(pending) != 1 {
		r.Fatalf("%+v, %v", pending, err)
	}
	return s, pending[0]
}

// allow allows the call of a session that waits for an approval.
func (r *rig) allow(id string) {
	r.Helper()
	s, call := r.asks(id)
	if err := agent.Decide(r.Context(), s, agent.Decision{CallID: call.CallID, Number: call.Number, Allow: true}); err != nil {
		r.Fatal(err)
	}
	// Nobody held the session, so Decide wrote to the log itself, and the queue does not know.
	r.is(id, queue.Waiting, "")
	for range 2 {
		if goesOn, err := worker.Wake(r.Context(), r.store, id+"/call_1"); err != nil || !goesOn {
			r.Fatal(goesOn, err)
		}
		r.is(id, queue.Ready, "was answered")
	}
}

// said returns the texts of a session's messages after the instructions.
func (r *rig) said(id string) (texts []string) {
	r.Helper()
	s, err := session.Open(r.Context(), r.store, id)
	if err != nil {
		r.Fatal(err)
	}
	for e := range s.Entries() {
		switch b := e.Body.(type) {
		case session.InputItem:
			if !b.Item.Instructs() {
				texts = append(texts, "user: "+textOf(b.Item))
			}
		case session.OutputItem:
			texts = append(texts, string(b.Item.Type())+": "+textOf(b.Item))
		case session.CallOutput:
			texts = append(texts, "output")
		}
	}
	return texts
}

// verdicts returns the verdicts on a session's calls that no rule gave.
func (r *rig) verdicts(id string) (list []session.Approval) {
	r.Helper()
	s, err := session.Open(r.Context(), r.store, id)
	if err != nil {
		r.Fatal(err)
	}
	for e := range s.Entries() {
		if a, ok := e.Body.(session.Approval); ok && a.Decided != session.DeciderRule {
			list = append(list, a)
		}
	}
	return list
}

// noted checks whether the file was written that scripts write.
func (r *rig) noted(want bool) {
	r.Helper()
	_, err := os.Stat(filepath.Join(r.work.Config.Workspace, "notes.txt"))
	if want && err != nil || !want && !errors.Is(err, fs.ErrNotExist) {
		r.Errorf("want notes.txt %v: %v", want, err)
	}
}

// textOf returns the text of a message.
func textOf(it item.Item) string {
	if m, err := item.As[item.Message](it); err == nil {
		return m.Content.Display()
	}
	return ""
}

func (r *rig) saidAre(id string, want ...string) {
	r.Helper()
	if got := r.said(id); strings.Join(got, "|") != strings.Join(want, "|") {
		r.Errorf("said %q, want %q", got, want)
	}
}

// A caller who does not know whether the work arrived repeats it, before and after it is
// done: the input is said once. D1
func TestSubmittedOnce(t *testing.T) {
	r := newRig(t, head, talk)
	r.agree(r.work)
	id := r.submit(r.job("1", "hello")).Session.ID
	if again := r.submit(r.job("1", "hello")); again.Session.ID != id || again.Taken != 0 {
		t.Errorf("%+v", again)
	}
	r.once(r.work)
	r.is(id, queue.Done, "answered")
	if again := r.submit(r.job("1", "hello")); again.Taken == 0 {
		t.Errorf("%+v", again)
	}
	r.once(r.work)
	r.is(id, queue.Done, "nothing was left to do")
	r.saidAre(id, "user: hello", "message: You said: hello")
	if _, err := worker.Submit(t.Context(), r.job("1", "goodbye")); !errors.Is(err, session.ErrKeyUsed) {
		t.Error(err)
	}
	r.submit(r.job("2", "goodbye"))
	r.once(r.work)
	r.saidAre(id, "user: hello", "message: You said: hello", "user: goodbye", "message: And now: goodbye")
	if c := r.work.Counts(); c.Running != 0 || c.Done != 3 || c.Begun != 3 {
		t.Errorf("%+v", c)
	}
}

// D3: work goes on with the definition that it began with, unless the person says
// otherwise.
func TestReleaseWhileWorkWaits(t *testing.T) {
	r := newRig(t, head, talk)
	first := r.agree(r.work)
	receipt := r.submit(r.job("1", "hello"))
	r.write(filepath.Join(filepath.Dir(r.file), "talk.script"), "again\nturn\n  say Released.\n")
	second := r.agree(r.work)
	if first.Hash == second.Hash || receipt.Agent != first.Hash {
		t.Fatalf("%s and %s, work of %s", first.Hash, second.Hash, receipt.Agent)
	}
	r.once(r.work)
	if again := r.submit(r.job("2", "and on")); again.Agent != first.Hash {
		t.Errorf("the second input goes to %s", again.Agent)
	}
	r.once(r.work)
	r.saidAre(receipt.Session.ID, "user: hello", "message: You said: hello", "user: and on", "message: And now: and on")
	j := r.job("3", "now?")
	j.Upgrade = true
	if upgraded := r.submit(j); upgraded.Agent != second.Hash {
		t.Errorf("the upgrade goes to %s", upgraded.Agent)
	}
	r.once(r.work)
	if said := r.said(receipt.Session.ID); said[len(said)-1] != "message: Released." {
		t.Errorf("%q", said)
	}
}

// The compiled tools belong to the definition: a worker of another version does not go on
// with it.
func TestAnotherVersion(t *testing.T) {
	r := newRig(t, head, talk)
	r.agree(r.work)
	id := r.submit(r.job("1", "hello")).Session.ID
	r.work.Config.Program = "test 2"
	r.once(r.work)
	r.is(id, queue.Parked, "needs a worker of the version test 1")
	r.work.Config.Program = "test 1"
	r.once(r.work)
	r.is(id, queue.Done, "answered")
}

// The hash of a definition covers the version of the program. So a worker of another build has
// not agreed to that hash, although it agreed to the same file; what is missing is the version.
func TestAnotherVersionAgreedToTheFile(t *testing.T) {
	r := newRig(t, head, talk)
	id := r.submit(r.job("1", "hello")).Session.ID
	other := r.another("b")
	other.Config.Program = "test 2"
	r.agree(other)
	r.once(other)
	if w := r.is(id, queue.Parked, "needs a worker of the version test 1 with which it began; this one is test 2"); worker.Lacks(w) != worker.LacksVersion {
		t.Errorf("it lacks %q", worker.Lacks(w))
	}
	r.agree(r.work)
	r.once(r.work)
	r.is(id, queue.Done, "answered")
}

// K1, K2: a row in the database alone starts nothing, also not a file without powers. An
// agreement of the operator makes the work go on.
func TestUntrustedWork(t *testing.T) {
	r := newRig(t, head, talk)
	id := r.submit(r.job("1", "hello")).Session.ID
	r.once(r.work)
	if w := r.is(id, queue.Parked, "needs the agreement of a worker's operator to this version of "+r.file); worker.Lacks(w) != worker.LacksAgreement {
		t.Errorf("it lacks %q", worker.Lacks(w))
	}
	r.saidAre(id)
	r.agree(r.work)
	r.once(r.work)
	if w := r.is(id, queue.Done, "answered"); worker.Lacks(w) != "" {
		t.Errorf("it lacks %q", worker.Lacks(w))
	}

	// A file with powers needs an answer, and so does each of its versions.
	r.write(r.file, head+"<tool name=\"append_to_file\" approval=\"allow\"/>\n")
	cfg := r.work.Config
	cfg.File = r.file
	var untrusted *trust.UntrustedError
	if _, err := r.work.Agents.Add(t.Context(), cfg); !errors.As(err, &untrusted) {
		t.Error(err)
	}
	if list, err := r.work.Agents.Hashes(); err != nil || len(list) != 1 {
		t.Errorf("%q, %v", list, err)
	}
}

// An agreement for one time ends with the process, one to be remembered does not.
func TestAgreementForOnce(t *testing.T) {
	r := newRig(t, head+"<tool name=\"append_to_file\" approval=\"allow\"/>\n", note)
	add := func(a *worker.Agents, remember func(context.Context) error) {
		t.Helper()
		cfg := r.work.Config
		cfg.File = r.file
		cfg.Trust = func(_ context.Context, c trust.Claim) (trust.Agreement, error) {
			return trust.Agreement{Powers: c.Powers, Remember: remember}, nil
		}
		if _, err := a.Add(t.Context(), cfg); err != nil {
			t.Fatal(err)
		}
	}
	add(r.work.Agents, nil)
	id := r.submit(r.job("1", "note it")).Session.ID
	first := r.work.Agents
	r.work.Agents = &worker.Agents{Folder: first.Folder, Agreed: first.Agreed}
	r.once(r.work)
	r.is(id, queue.Parked, "needs the agreement")
	add(r.work.Agents, func(context.Context) error { return nil })
	r.work.Agents = &worker.Agents{Folder: first.Folder, Agreed: first.Agreed}
	r.once(r.work)
	r.is(id, queue.Done, "answered")
	r.saidAre(id, "user: note it", "function_call: ", "output", "message: Noted.")
}

// A call that needs an approval waits in the store, without a worker, until somebody
// answers.
func TestApprovalWaits(t *testing.T) {
	r := newRig(t, writes, note)
	r.agree(r.work)
	id := r.submit(r.job("1", "note it")).Session.ID
	r.once(r.work)
	w := r.is(id, queue.Waiting, "an approval of append_to_file")
	if text := worker.Waits(w, time.Now()); text != "waits for an approval of append_to_file" {
		t.Error(text)
	}
	r.once(r.work)
	r.is(id, queue.Waiting, "")
	r.allow(id)
	r.once(r.work)
	r.is(id, queue.Done, "answered")
	if text, err := os.ReadFile(filepath.Join(r.work.Config.Workspace, "notes.txt")); err != nil || string(text) != "seen\n" {
		t.Errorf("%q, %v", text, err)
	}
}

// L4: a run that waits for the result of a polling tool uses no worker; it goes on when the
// time has come or somebody says something, and the model is not asked meanwhile.
func TestPollingToolWaits(t *testing.T) {
	if _, err := exec.LookPath("sh"); err != nil {
		t.Skip(err)
	}
	r := newRig(t, head+"<tool name=\"build\" command=\"sh ./state.sh\" polling=\"1h\"/>\n", "turn\n  call build {}\nturn\n  say Built.\n")
	r.write(filepath.Join(r.work.Config.Workspace, "state.sh"), "test -e built || { echo \"  job 7 runs\"; echo more; exit 75; }; echo ready\n")
	r.agree(r.work)
	id := r.submit(r.job("1", "build it")).Session.ID
	r.once(r.work)
	w := r.is(id, queue.Waiting, "an approval of build")
	if !w.Due.IsZero() {
		t.Errorf("due %v", w.Due)
	}
	r.allow(id)
	for range 5 { // more often than a call may be lost
		r.once(r.work)
		w = r.is(id, queue.Waiting, "the result of build (job 7 runs)")
		if d := time.Until(w.Due); d < 30*time.Minute || d > time.Hour || w.Attempts != 0 {
			t.Errorf("due in %v after %d attempts", d, w.Attempts)
		}
		if text := worker.Waits(w, time.Now()); text != "waits for the result of build (job 7 runs)" {
			t.Error(text)
		}
		if text := worker.Waits(w, w.Due); text != "waits for a worker; before, it waited for the result of build (job 7 runs)" {
			t.Error(text)
		}
		r.once(r.work)
		if err := r.store.Move(t.Context(), w, queue.Ready, "by hand"); err != nil { // nobody took it meanwhile
			t.Fatal(err)
		}
	}
	r.write(filepath.Join(r.work.Config.Workspace, "built"), "")
	r.once(r.work)
	r.is(id, queue.Done, "answered")
	r.saidAre(id, "user: build it", "function_call: ", "output", "message: Built.")
}

// An approval that nobody gives in time is asked of the next person, and after the last one
// the call does not run: it is neither allowed nor refused, and says so. D1
func TestApprovalDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, writes, "turn\n  call append_to_file {\"path\":\"notes.txt\",\"content\":\"seen\\n\"}\nturn\n  say Noted: {{error 1}}\n")
		r.agree(r.work)
		r.work.Config.Limits.MaxTime = time.Minute
		id := r.submit(r.job("1", "note it")).Session.ID
		asked := time.Now()
		r.once(r.work)
		if w := r.is(id, queue.Waiting, "an approval of append_to_file"); !w.Due.IsZero() {
			t.Errorf("until %v", w.Due)
		}
		_, call := r.asks(id)
		r.work.ApprovalTime, r.work.Approvers = time.Hour, []string{"ann", "ben"} // it is a later worker
		for stage, want := range []string{"ann's approval of append_to_file until %s UTC, then asks ben", "ben's approval of append_to_file until %s UTC, then goes on without an answer"} {
			for range 2 {
				r.once(r.work)
				until := asked.Add(time.Duration(stage+1) * time.Hour)
				w := r.is(id, queue.Waiting, "")
				if got, want := worker.Waits(w, time.Now()), "waits for "+fmt.Sprintf(want, until.UTC().Format(time.DateTime)); got != want {
					t.Errorf("got %q, want %q", got, want)
				}
				if !w.Due.Equal(until) || !worker.AwaitsApproval(w) {
					t.Errorf("until %v, want %v", w.Due, until)
				}
			}
			time.Sleep(time.Hour)
		}
		r.once(r.work) // the time of the run is not used up
		r.is(id, queue.Done, "answered")
		if got, want := r.verdicts(id), []session.Approval{{
			CallID: call.CallID, Number: 1, Decided: session.DeciderUnanswered, From: "the worker, after 2h0m0s",
			Reason: "Nobody answered whether this call may run, neither yes nor no. Nothing was done.",
		}}; !reflect.DeepEqual(got, want) {
			t.Errorf("%+v", got)
		}
		r.saidAre(id, "user: note it", "function_call: ", "output", "message: Noted: Nobody answered whether this call may run, neither yes nor no. Nothing was done.")
		r.noted(false)
	})
}

// An answer counts until a worker goes on without one.
func TestLateApproval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, writes, note)
		r.agree(r.work)
		r.work.ApprovalTime = time.Hour
		id := r.submit(r.job("1", "note it")).Session.ID
		r.once(r.work)
		time.Sleep(2 * time.Hour)
		_, call := r.asks(id)
		if _, err := r.store.Deliver(t.Context(), id, session.Delivery{
			Delivered: session.Delivered{Key: "yes", By: "ann"}, Bodies: []session.Body{session.Approval{CallID: call.CallID, Number: 1, Allowed: true}},
		}); err != nil {
			t.Fatal(err)
		}
		r.once(r.work)
		r.is(id, queue.Done, "answered")
		if got := r.verdicts(id); len(got) != 1 || !got[0].Allowed || got[0].By != "ann" {
			t.Errorf("%+v", got)
		}
		r.noted(true)
	})
}

// A call of a subagent has a deadline, too.
func TestApprovalDeadlineOfSubagent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, head+"<tool name=\"helper\" agent=\"helper.md\" local approval=\"allow\" description=\"Helps.\"/>\n", "turn\n  call helper {\"task\":\"note it\"}\nturn\n  say Helped.\n")
		r.write(filepath.Join(filepath.Dir(r.file), "helper.md"), strings.Replace(writes, "talk.script", "helper.script", 1))
		r.write(filepath.Join(filepath.Dir(r.file), "helper.script"), note)
		r.agree(r.work)
		r.work.ApprovalTime = time.Hour
		id := r.submit(r.job("1", "note it")).Session.ID
		r.once(r.work)
		r.is(id, queue.Waiting, "an approval of append_to_file until ")
		_, call := r.asks(id)
		time.Sleep(time.Hour)
		r.once(r.work)
		r.is(id, queue.Done, "")
		if got := r.verdicts(call.Session); call.Session == id || len(got) != 1 || got[0].Allowed || got[0].Decided != session.DeciderUnanswered {
			t.Errorf("%+v", got)
		}
		r.saidAre(id, "user: note it", "function_call: ", "output", "message: Helped.")
		r.noted(false)
	})
}

// Work that waits for an approval and for a polling tool begins when the first of the times
// has come, and that nobody answered says nothing about the other call. L4
func TestApprovalDeadlineBesidePolling(t *testing.T) {
	if _, err := exec.LookPath("sh"); err != nil {
		t.Skip(err)
	}
	r := newRig(t, writes+"<tool name=\"build\" command=\"sh ./state.sh\" polling=\"1h\"/>\n",
		"turn\n  call build {}\n  call append_to_file {\"path\":\"notes.txt\",\"content\":\"seen\\n\"}\nturn\n  say Both.\n")
	r.write(filepath.Join(r.work.Config.Workspace, "state.sh"), "test -e built || { echo job 7 runs; exit 75; }; echo ready\n")
	r.work.Config.Rules = []session.Rule{{Tool: "build", Verdict: session.Allow}}
	r.agree(r.work)
	id := r.submit(r.job("1", "build and note it")).Session.ID
	for _, c := range []struct{ time, from, to time.Duration }{{5 * time.Hour, 30 * time.Minute, time.Hour}, {20 * time.Minute, 0, 20 * time.Minute}} {
		r.work.ApprovalTime = c.time
		r.once(r.work)
		w := r.is(id, queue.Waiting, "an approval of append_to_file until ")
		if d := time.Until(w.Due); d < c.from || d > c.to {
			t.Errorf("after %v: due in %v", c.time, d)
		}
		if err := r.store.Move(t.Context(), w, queue.Ready, "by hand"); err != nil {
			t.Fatal(err)
		}
	}
	r.work.ApprovalTime = 1
	r.once(r.work)
	w := r.is(id, queue.Waiting, "the result of build (job 7 runs)")
	if worker.AwaitsApproval(w) {
		t.Errorf("%+v", w)
	}
	r.write(filepath.Join(r.work.Config.Workspace, "built"), "")
	if err := r.store.Move(t.Context(), w, queue.Ready, "by hand"); err != nil {
		t.Fatal(err)
	}
	r.once(r.work)
	r.is(id, queue.Done, "answered")
	r.saidAre(id, "user: build and note it", "function_call: ", "function_call: ", "output", "output", "message: Both.")
	r.noted(false)
}

// Input that waits for the answer of a run does not make it run again and again while it
// waits for an approval, also if the input arrives meanwhile. A stop does.
func TestQueuedInputWhileAnApprovalWaits(t *testing.T) {
	r := newRig(t, writes, note)
	r.agree(r.work)
	id := r.submit(r.job("1", "note it")).Session.ID
	tell := func(d session.Delivery) {
		t.Helper()
		if _, err := r.store.Deliver(t.Context(), id, d); err != nil {
			t.Fatal(err)
		}
	}
	later := func(key string) session.Delivery {
		return session.Delivery{Delivered: session.Delivered{Key: key, Queued: true}, Bodies: []session.Body{session.InputItem{Item: item.User(key)}}}
	}
	tell(later("2"))
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	runs := 0
	r.work.Log = slog.New(slog.NewTextHandler(&watcher{message: []byte("work begun"), found: func() {
		if runs++; runs > 3 {
			stop()
		}
	}}, nil))
	once := func(most int) {
		t.Helper()
		runs = 0
		if err := r.work.Once(ctx); err != nil || runs > most {
			t.Fatalf("begun %d times: %v", runs, err)
		}
	}
	once(1)
	r.is(id, queue.Waiting, "an approval of append_to_file")
	tell(later("3"))
	once(1)
	r.is(id, queue.Waiting, "an approval of append_to_file")
	tell(session.Delivery{Delivered: session.Delivered{Key: "stop"}, Bodies: []session.Body{session.StopAsked{}}})
	once(3)
	if w := r.row(id); w.State == queue.Waiting {
		t.Errorf("%+v", w)
	}
}

// An answer that was written to the log goes on, although who wrote it died before telling
// the queue.
func TestAnswerThatNobodyTold(t *testing.T) {
	r := newRig(t, writes, note)
	r.agree(r.work)
	id := r.submit(r.job("1", "note it")).Session.ID
	r.once(r.work)
	r.is(id, queue.Waiting, "")
	s, err := session.Open(t.Context(), r.store, id)
	if err != nil {
		t.Fatal(err)
	}
	pending, err := agent.PendingApprovals(t.Context(), s)
	if err != nil || len(pending) != 1 {
		t.Fatalf("%+v, %v", pending, err)
	}
	if err := agent.Decide(t.Context(), s, agent.Decision{CallID: pending[0].CallID, Number: pending[0].Number, Allow: true}); err != nil {
		t.Fatal(err)
	}
	r.once(r.work)
	r.is(id, queue.Done, "answered")
}

// Work that fails again and again is parked with its reason, and does not hold up
// other work.
func TestFailuresArePassedOrParked(t *testing.T) {
	r := newRig(t, "<config model=\"m\"/>\n", "")
	status, asked := http.StatusServiceUnavailable, 0
	endpoint := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked++
		w.Header().Set("X-Should-Retry", "false") // the client's own retries are not the worker's
		http.Error(w, `{"error":{"message":"not today"}}`, status)
	}))
	defer endpoint.Close()
	r.work.Config.Endpoint.BaseURL = endpoint.URL
	r.work.Attempts, r.work.Runs = 3, 1
	r.agree(r.work)
	id := r.submit(r.job("1", "hello")).Session.ID
	r.once(r.work)
	if w := r.is(id, queue.Parked, "it failed 3 times: "); w.Attempts != 3 || asked != 3 || !strings.Contains(w.Reason, "not today") {
		t.Errorf("%+v, asked %d times", w, asked)
	}
	// A request that is wrong stays wrong.
	status = http.StatusBadRequest
	j := r.job("1", "hello")
	j.Config.Session = "bob"
	bad := r.submit(j).Session.ID
	asked = 0
	r.once(r.work)
	r.is(bad, queue.Parked, "not today")
	if asked != 1 {
		t.Errorf("asked %d times", asked)
	}
	if c := r.work.Counts(); c.Retried != 2 || c.Parked != 2 {
		t.Errorf("%+v", c)
	}
	// Input for parked work waits for the operator, too.
	if receipt := r.submit(r.job("2", "please")); receipt.Parked == "" {
		t.Errorf("%+v", receipt)
	}
	m, err := worker.Measure(t.Context(), r.store)
	if err != nil || m.Works[queue.Parked] != 2 || m.Attempts != 4 || m.Age != 0 {
		t.Errorf("%+v, %v", m, err)
	}
}

// Work whose worker dies each time does not begin for ever.
func TestWorkThatKillsWorkers(t *testing.T) {
	r := newRig(t, head, talk)
	r.agree(r.work)
	id := r.submit(r.job("1", "hello")).Session.ID
	for range 5 { // Begin, and no Finish: the session is not held
		w := r.row(id)
		if _, err := r.store.Begin(t.Context(), w, "dead"); err != nil {
			t.Fatal(err)
		}
	}
	r.once(r.work)
	r.is(id, queue.Parked, "its worker died")
	r.saidAre(id)
}

// A worker leaves work that needs other labels, and says so if nobody does it.
func TestLabels(t *testing.T) {
	r := newRig(t, head, talk)
	r.agree(r.work)
	j := r.job("1", "hello")
	j.Needs = []string{"gpu"}
	id := r.submit(j).Session.ID
	r.work.Patience = time.Hour
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if err := r.work.Run(ctx); err != nil {
		t.Fatal(err)
	}
	r.is(id, queue.Ready, "")
	r.once(r.work)
	r.is(id, queue.Parked, "needs a worker with the labels gpu")
	r.work.Labels = []string{"gpu"}
	r.once(r.work)
	r.is(id, queue.Done, "answered")
}

// Work whose worker died, and which no other worker can do, is parked with what is missing.
func TestLostWork(t *testing.T) {
	r := newRig(t, head, talk)
	r.agree(r.work)
	j := r.job("1", "hello")
	j.Needs, j.Place = []string{"gpu"}, &worker.Place{Host: "h1"}
	id := r.submit(j).Session.ID
	if _, err := r.store.Begin(t.Context(), r.row(id), "w1"); err != nil {
		t.Fatal(err)
	}
	unlock, err := r.store.Lock(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	r.once(r.work) // it is held
	r.is(id, queue.Running, "")
	if err := unlock(); err != nil {
		t.Fatal(err)
	}
	other := r.another("b")
	other.Tenants = []string{"ann"}
	r.once(other)
	r.is(id, queue.Running, "")
	r.once(r.work)
	r.is(id, queue.Parked, "needs a worker with the labels gpu on the host h1; it was begun by w1, which died or was cut off")
	r.work.Host, r.work.Labels = "h1", []string{"gpu"}
	r.once(r.work)
	r.is(id, queue.Done, "answered")
}

// A session works in the folder that its work names, at a worker whose operator gave it that
// folder, and stays there. K2
func TestPlace(t *testing.T) {
	r := newRig(t, writes, "again\n"+note)
	r.work.Runs, r.work.Host, r.work.Config.Rules = 1, "h1", []session.Rule{{Tool: "append_to_file", Verdict: session.Allow}}
	r.agree(r.work)
	shared, link := r.TempDir(), filepath.Join(r.work.Config.Workspace, "link")
	folder := filepath.Join(shared, "repo")
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(folder, link); err != nil {
		t.Skip(err)
	}
	n := 0
	submit := func(name string, place *worker.Place) string {
		t.Helper()
		n++
		j := r.job(fmt.Sprint(n), "note it")
		j.Config.Session, j.Place = name, place
		id := r.submit(j).Session.ID
		r.once(r.work)
		return id
	}
	cases := []struct {
		place worker.Place
		want  string
		later string // when the worker has the volume
	}{
		{worker.Place{Host: "h2"}, "on the host h2", "on the host h2"},
		{worker.Place{Host: "h2", Folder: folder}, "on the host h2 with the folder " + folder, "on the host h2"},
		{worker.Place{Host: "h1", Folder: folder}, "with the folder " + folder + ": this worker's operator gave it no such folder", ""},
		{worker.Place{Host: "h1", Folder: link}, "with the folder " + link + ": this worker's operator gave it no such folder", ""},
		{worker.Place{Host: "h1", Folder: folder + "x"}, "with the folder " + folder + "x: this worker has no such folder", "no such folder"},
		{worker.Place{Folder: folder}, "with the volume " + folder + ": this worker's operator gave it no such folder", ""},
		{worker.Place{Folder: r.work.Config.Workspace}, "with the volume " + r.work.Config.Workspace + ": this worker's operator gave it no such folder", "no such folder"},
	}
	var ids []string
	for i, c := range cases {
		ids = append(ids, submit(fmt.Sprint("s", i), &c.place))
		r.is(ids[i], queue.Parked, "needs a worker "+c.want)
	}
	j := r.job("x", "hello")
	j.Place = &worker.Place{Folder: "repo"}
	if _, err := worker.Submit(t.Context(), j); err == nil {
		t.Error("a place that is not a full path")
	}
	r.work.Volumes = []string{filepath.Join(shared, "gone"), shared}
	r.once(r.work)
	for i, c := range cases {
		if c.later == "" {
			r.is(ids[i], queue.Done, "answered")
		} else {
			r.is(ids[i], queue.Parked, c.later)
		}
	}
	noted := func() int {
		t.Helper()
		text, err := os.ReadFile(filepath.Join(folder, "notes.txt"))
		if err != nil {
			t.Error(err)
		}
		return strings.Count(string(text), "\n")
	}
	if got := noted(); got != 3 {
		t.Errorf("noted %d times", got)
	}
	for i, place := range []*worker.Place{{Folder: folder}, nil, {}} {
		r.noted(false)
		r.is(submit("stays", place), queue.Done, "answered")
		if got, want := noted(), min(3+i+1, 5); got != want {
			t.Errorf("noted %d times, want %d", got, want)
		}
	}
	r.noted(true)
}

// hung is a worker whose audit log blocks the start of a tool, so that a run is under way.
func hung(r *rig) (under chan struct{}, release func()) {
	under = make(chan struct{})
	let := make(chan struct{})
	var once sync.Once
	r.work.Config.Audit = func(ctx context.Context, records ...audit.Record) error {
		for _, rec := range records {
			if rec.Kind != audit.KindStarted {
				continue
			}
			once.Do(func() { close(under) })
			select {
			case <-let:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		return nil
	}
	return under, sync.OnceFunc(func() { close(let) })
}

// logged returns a channel that is closed when the worker logs a message.
func (r *rig) logged(message string) chan struct{} {
	done := make(chan struct{})
	r.work.Log = slog.New(slog.NewTextHandler(&watcher{message: []byte(message), found: sync.OnceFunc(func() { close(done) })}, nil))
	return done
}

type watcher struct {
	message []byte
	found   func()
}

func (w *watcher) Write(line []byte) (int, error) {
	if bytes.Contains(line, w.message) {
		w.found()
	}
	return len(line), nil
}

// A worker that loses a session lets go of it, and another goes on.
func TestLostSession(t *testing.T) {
	r := newRig(t, head+"<tool name=\"append_to_file\" approval=\"allow\"/>\n", note)
	r.agree(r.work)
	id := r.submit(r.job("1", "note it")).Session.ID
	under, release := hung(r)
	defer release()
	left := r.logged("work left")
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- r.work.Run(ctx) }()
	<-under
	stop() // it takes nothing else, and the run goes on
	r.store.Lose(id)
	<-left
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if w := r.is(id, queue.Running, ""); w.Attempts != 1 {
		t.Errorf("%+v", w)
	}
	other := r.another("b")
	r.agree(other)
	r.once(other)
	if w := r.is(id, queue.Done, "answered"); w.Worker != "b" {
		t.Errorf("%+v", w)
	}
}

// A worker that stops lets its runs end their turn, gives the rest back, and counts no
// attempt. The next one goes on: no call is lost or repeated.
func TestDrain(t *testing.T) {
	for name, patient := range map[string]bool{"in time": true, "too late": false} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, head+"<tool name=\"append_to_file\" approval=\"allow\"/>\n", note)
			r.agree(r.work)
			id := r.submit(r.job("1", "note it")).Session.ID
			under, release := hung(r)
			if r.work.Drain = time.Hour; !patient {
				r.work.Drain = time.Nanosecond
			}
			stops := r.logged("worker stops")
			ctx, stop := context.WithCancel(t.Context())
			ended := make(chan error)
			go func() { ended <- r.work.Run(ctx) }()
			<-under
			stop()
			if <-stops; patient { // only now do runs end with their turn
				release()
			}
			if err := <-ended; err != nil {
				t.Fatal(err)
			}
			release()
			if w := r.is(id, queue.Ready, "given back"); w.Attempts != 0 {
				t.Errorf("%+v", w)
			}
			r.once(r.work)
			r.is(id, queue.Done, "answered")
			if patient {
				r.saidAre(id, "user: note it", "function_call: ", "output", "message: Noted.")
			}
		})
	}
}

// Work that an operator parks stops, and stays parked. Its log says why.
func TestParkedWhileItRuns(t *testing.T) {
	r := newRig(t, head+"<tool name=\"append_to_file\" approval=\"allow\"/>\n", note)
	r.agree(r.work)
	id := r.submit(r.job("1", "note it")).Session.ID
	under, release := hung(r)
	defer release()
	left := r.logged("work left")
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- r.work.Run(ctx) }()
	<-under
	if err := r.store.Move(t.Context(), r.row(id), queue.Parked, "the operator looks at it"); err != nil {
		t.Fatal(err)
	}
	<-left
	stop()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	r.is(id, queue.Parked, "the operator looks at it")
	var last session.Stopped
	for e, err := range r.store.Load(t.Context(), id, 0) {
		if err != nil {
			t.Fatal(err)
		}
		if b, ok := e.Body.(session.Stopped); ok {
			last = b
		}
	}
	if want := (session.Stopped{Why: string(agent.StopCancelled), Detail: "parked: the operator looks at it"}); last != want {
		t.Errorf("its log says %+v, want %+v", last, want)
	}
}

// A session that somebody has open is left to them.
func TestSessionIsOpenElsewhere(t *testing.T) {
	r := newRig(t, head, talk)
	r.agree(r.work)
	id := r.submit(r.job("1", "hello")).Session.ID
	unlock, err := r.store.Lock(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	r.once(r.work)
	r.is(id, queue.Ready, "")
	if err := unlock(); err != nil {
		t.Fatal(err)
	}
	gone := false
	r.net = func(what string) {
		if what != "list" || gone { // the worker has chosen it, and looks for its session
			return
		}
		gone = true
		if err := r.store.Delete(t.Context(), id); err != nil {
			t.Error(err)
		}
	}
	r.work.Poll = time.Nanosecond
	r.once(r.work)
	if r.net = nil; !gone {
		t.Error("the worker did not look for the session")
	}
	for info, err := range r.store.List(t.Context(), session.Query{}) {
		t.Errorf("a deleted session is made again: %+v, %v", info, err)
	}
}

// What the operator agreed to holds for what the file was, and where its tools act.
func TestPowersOfTheCopy(t *testing.T) {
	const elsewhere = "the operator has not agreed to all that it may do at this worker"
	// A program that somebody put into the workspace is not what the operator agreed to. K6
	r := newRig(t, head+"<tool mcp_server=\"stdio:./server.sh\" start_timeout=\"20s\"/>\n", talk)
	r.agree(r.work)
	id := r.submit(r.job("1", "hello")).Session.ID
	r.write(filepath.Join(r.work.Config.Workspace, "server.sh"), "#!/bin/sh\nexit 4\n")
	r.once(r.work)
	r.is(id, queue.Parked, elsewhere)

	// What the file could read because it lay beside it is a power of the copy, to which
	// nobody agreed.
	r = newRig(t, "", talk)
	r.write(r.file, head+"<tool name=\"read_file\"><read id=\"here\" path=\""+filepath.ToSlash(filepath.Dir(r.file))+"\"/></tool>\n")
	r.agree(r.work)
	id = r.submit(r.job("1", "hello")).Session.ID
	r.once(r.work)
	r.is(id, queue.Parked, elsewhere)
	r.saidAre(id)

	// Writing beside the copy is asked about, although it is allowed: the copy is what later
	// work runs.
	r = newRig(t, head+"<tool name=\"read_file\"><read id=\"here\" path=\"${prompt_dir}\"/></tool>\n<tool name=\"append_to_file\" approval=\"allow\"/>\n", note)
	r.agree(r.work)
	id = r.submit(r.job("1", "note it")).Session.ID
	r.once(r.work)
	r.is(id, queue.Waiting, "an approval of append_to_file")
}

// A session with nothing to go on with is left as it is, also one in a repository, and the work is given up before
// the session is: otherwise work that comes in between would be lost.
func TestOver(t *testing.T) {
	t.Parallel()
	from := newRepo(t, map[string]string{"notes.txt": "first\n"})
	r := newRig(t, head, talk)
	w := r.fetcher("a", from.dir)
	var mu sync.Mutex
	finished, released := 0, 0
	w.Prepare = func(_ context.Context, h *host.Host) (func(agent.Event), error) {
		return nil, fmt.Errorf("%s: %w", h.Session.ID(), worker.ErrOver)
	}
	r.net = func(what string) {
		mu.Lock()
		defer mu.Unlock()
		if strings.HasPrefix(what, "finish ") {
			finished++
		}
		if strings.HasPrefix(what, "release ") {
			if released++; finished < released {
				t.Error("the session was released before its work")
			}
		}
	}
	for _, place := range []*worker.Place{nil, {Repository: from.dir, Reference: "main"}} {
		j := r.job("1", "hello")
		if j.Place = place; place != nil {
			j.Config.Session = "there"
		}
		id := r.submit(j).Session.ID
		r.once(w)
		r.is(id, queue.Done, worker.ErrOver.Error())
		if said := r.said(id); len(said) > 0 {
			t.Errorf("it ran: %q", said)
		}
	}
}

// What is to be read later is not read before its time, also if a worker looks between the steps of Submit, or runs the session.
func TestSubmitLater(t *testing.T) {
	t.Parallel()
	r := newRig(t, head, talk)
	r.agree(r.work)
	id := r.submit(r.job("1", "hello")).Session.ID
	r.once(r.work)
	r.saidAre(id, "user: hello", "message: You said: hello")
	j := r.job("2", "later")
	j.Due = time.Now().Add(time.Hour)
	for _, state := range []queue.State{queue.Done, queue.Ready} {
		r.is(id, state, "")
		looks := 0
		var look func(string)
		look = func(what string) {
			if strings.HasPrefix(what, "enqueue ") || strings.HasPrefix(what, "deliver ") {
				looks++
				r.net = nil
				r.once(r.work)
				r.net = look
			}
		}
		r.net = look
		r.submit(j)
		if r.net = nil; looks != 2 {
			t.Errorf("%d looks", looks)
		}
		r.once(r.work)
		r.saidAre(id, "user: hello", "message: You said: hello")
		if w := r.is(id, queue.Ready, ""); w.Due.IsZero() {
			t.Errorf("%+v", w)
		}
	}

	// A run that is under way would read it at once. Nothing is said then.
	w := r.row(id)
	if err := r.store.Move(t.Context(), w, queue.Ready, ""); err != nil {
		t.Fatal(err)
	}
	if _, err := r.store.Begin(t.Context(), r.row(id), "somebody"); err != nil {
		t.Fatal(err)
	}
	j.Key = "3"
	var wrong *host.ConfigError
	if _, err := worker.Submit(t.Context(), j); !errors.As(err, &wrong) || !strings.Contains(err.Error(), "runs now") {
		t.Errorf("%v", err)
	}
	n := 0
	for d, err := range r.store.Deliveries(t.Context(), id) {
		if n++; err != nil || d.Key != "2" {
			t.Error(d.Key, err)
		}
	}
	if n != 1 {
		t.Errorf("%d deliveries", n)
	}
}

// A submission that fails delays nothing.
func TestSubmitLaterFails(t *testing.T) {
	t.Parallel()
	r := newRig(t, head, talk)
	id := r.submit(r.job("1", "hello")).Session.ID
	j := r.job("1", "something else")
	j.Due = time.Now().Add(time.Hour)
	if _, err := worker.Submit(t.Context(), j); !errors.Is(err, session.ErrKeyUsed) {
		t.Error(err)
	}
	if w := r.is(id, queue.Ready, ""); !w.Due.IsZero() {
		t.Errorf("%+v", w)
	}
}

// It does not delay work that waits for an approval, either: the answer begins it.
func TestSubmitLaterFailsWaiting(t *testing.T) {
	t.Parallel()
	r := newRig(t, writes, "turn\n  call append_to_file {\"path\":\"notes.txt\",\"content\":\"seen\\n\"}\nturn\n  say Noted.\n")
	r.agree(r.work)
	id := r.submit(r.job("1", "note it")).Session.ID
	r.once(r.work)
	r.is(id, queue.Waiting, "an approval of append_to_file")
	j := r.job("1", "something else")
	j.Due = time.Now().Add(time.Hour)
	if _, err := worker.Submit(t.Context(), j); !errors.Is(err, session.ErrKeyUsed) {
		t.Error(err)
	}
	r.once(r.work)
	r.is(id, queue.Waiting, "an approval of append_to_file")
	r.allow(id)
	r.once(r.work)
	r.is(id, queue.Done, "answered")
	r.noted(true)
}
