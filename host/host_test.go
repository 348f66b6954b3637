// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package host_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/host"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/session/store"
)

func write(t *testing.T, path, text string) string {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// opened returns a store in a file that the test closes.
func opened(t *testing.T) store.Store {
	t.Helper()
	s, err := store.Open(t.Context(), filepath.Join(t.TempDir(), "s.db"), store.Options{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// sessions are those of a store.
func sessions(t *testing.T, s store.Store) (list []session.Info) {
	t.Helper()
	for info, err := range s.List(t.Context(), session.Query{}) {
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, info)
	}
	return list
}

// notices collects what a host tells.
type notices struct {
	mu   sync.Mutex
	list []host.Notice
}

func (n *notices) add(one host.Notice) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.list = append(n.list, one)
}

func (n *notices) has(kind host.NoticeKind) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.ContainsFunc(n.list, func(one host.Notice) bool { return one.Kind == kind })
}

// reader is an agent that reads a note and may append to files, beside the note.
func reader(t *testing.T, head string) (file string) {
	t.Helper()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "note.txt"), "a note\n")
	return write(t, filepath.Join(dir, "agent.md"), head+"<tool name=\"read_file\"><read id=\"here\" path=\"${prompt_dir}\"/></tool>\n<user>What does note.txt say?</user>\n")
}

// TestServed: a server runs a file over a real socket, each name in a session of
// its own, many at once over one store; what is wrong with a request is its
// client's.
func TestServed(t *testing.T) {
	s := opened(t)
	mux := http.NewServeMux()
	mux.Handle("POST /ask/{name}", ask(reader(t, ""), s))
	server := httptest.NewServer(mux)
	defer server.Close()
	post := func(name, text string) (int, string) {
		resp, err := http.Post(server.URL+"/ask/"+name, "text/plain", strings.NewReader(text))
		if err != nil {
			t.Error(err)
			return 0, ""
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Error(err)
		}
		return resp.StatusCode, string(body)
	}
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() {
			for _, want := range []string{"a note", "nothing new to ask of read_file"} { // it has been read in this session
				if code, body := post(fmt.Sprint("user-", i), "Read note.txt."); code != http.StatusOK || !strings.Contains(body, want) {
					t.Errorf("status %d: %s", code, body)
				}
			}
		})
	}
	all.Wait()
	list := sessions(t, s)
	if len(list) != 4 {
		t.Errorf("%d sessions", len(list))
	}
	for _, info := range list {
		log, err := session.Open(t.Context(), s, info.ID)
		if err != nil {
			t.Fatal(err)
		}
		runs := 0
		for e := range log.Entries() {
			if _, ok := e.Body.(session.RunStarted); ok {
				runs++
			}
		}
		if runs != 2 {
			t.Errorf("%s has %d runs", info.Name, runs)
		}
	}
	if code, body := post("long", strings.Repeat("a", 2<<20)); code != http.StatusBadRequest {
		t.Errorf("a text that is too long: status %d: %s", code, body)
	}
	if code, body := post("-f", "Hello?"); code != http.StatusNotFound || body != "no such agent or session\n" {
		t.Errorf("a bad name: status %d: %s", code, body)
	}
}

// TestNoQuestion: without a question nothing is sent, and a session that was opened
// for it is not kept. U1
func TestNoQuestion(t *testing.T) {
	s := opened(t)
	file := write(t, filepath.Join(t.TempDir(), "agent.md"), "<system>Be brief.</system>\n")
	for _, stream := range []bool{false, true} {
		h, err := host.Open(t.Context(), host.Config{File: file, Store: s, Session: "empty"})
		if err != nil {
			t.Fatal(err)
		}
		if stream {
			for _, err = range h.Stream(t.Context(), "") {
			}
		} else {
			_, err = h.Run(t.Context(), "")
		}
		if !errors.Is(err, agent.ErrNothingToSend) {
			t.Errorf("stream %t: %v", stream, err)
		}
		if err := h.Close(); err != nil {
			t.Error(err)
		}
		if list := sessions(t, s); len(list) > 0 {
			t.Errorf("stream %t: kept %+v", stream, list)
		}
	}
}

// TestZeroConfig: a configuration with nothing but a file takes nothing of the
// process's environment, keeps nothing, and lets nothing run that needs an approval.
// U1
func TestZeroConfig(t *testing.T) {
	t.Setenv("OPENAI_API_KEY", "sk-never-to-be-used")
	t.Setenv("OPENAI_BASE_URL", "http://127.0.0.1:1/v1")
	file := reader(t, "")
	var said notices
	h, err := host.Open(t.Context(), host.Config{File: file, FrontEnd: host.FrontEnd{Notify: said.add}, Rules: []session.Rule{{Verdict: session.Ask, Tool: "read_file"}}})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	before, err := os.ReadDir(filepath.Dir(file))
	if err != nil {
		t.Fatal(err)
	}
	refused := 0
	for ev, err := range h.Stream(t.Context(), "") {
		if err != nil {
			t.Fatal(err)
		}
		if p, ok := ev.(agent.Progress); ok && p.Kind == agent.ProgressUnapproved {
			refused++
		}
	}
	after, err := os.ReadDir(filepath.Dir(file))
	if err != nil {
		t.Fatal(err)
	}
	if refused != 1 || len(after) != len(before) || !said.has(host.NoticeUnconfigured) {
		t.Errorf("%d calls refused, %d files became %d, notices %v", refused, len(before), len(after), said.list)
	}
}

// TestNamedModel: a model that a file names is never replaced by the rehearsal; the
// error says so in the front end's terms, and no store is made. U1
func TestNamedModel(t *testing.T) {
	place := filepath.Join(t.TempDir(), "s.db")
	cfg := host.Config{File: reader(t, "<config model=\"gpt-x\"/>\n"), Session: "s", Place: place}
	cfg.Terms = host.SettingNames{"Endpoint.BaseURL": "the field Address"}
	_, err := host.Open(t.Context(), cfg)
	var config *host.ConfigError
	if !errors.As(err, &config) || !strings.Contains(err.Error(), "give the field Address for another endpoint, or give Endpoint.Rehearsal") {
		t.Errorf("%v", err)
	}
	if _, err := os.Stat(place); err == nil {
		t.Error("a store was made")
	}
}

// TestOneEndpointForSeveralFiles: an endpoint that agents of several files use does not
// replace the rehearsal model that one of them names; a model that is named does. A file
// that names no model has no endpoint then.
func TestOneEndpointForSeveralFiles(t *testing.T) {
	const url = "http://127.0.0.1:1/v1"
	rehearsed, silent := reader(t, "<config model=\"rehearsal\"/>\n"), reader(t, "")
	for _, tt := range []struct {
		file string
		at   host.Endpoint
		want string // "" is the rehearsal model
		none bool
	}{
		{file: rehearsed, at: host.Endpoint{BaseURL: url}, none: true},
		{file: rehearsed, at: host.Endpoint{BaseURL: url, Several: true}},
		{file: rehearsed, at: host.Endpoint{BaseURL: url, Several: true, Model: "m"}, want: url},
		{file: silent, at: host.Endpoint{BaseURL: url, Several: true}, none: true},
	} {
		got, model, err := host.Address(t.Context(), host.Config{File: tt.file, Endpoint: tt.at})
		if got != tt.want || (model == "m") != (got != "") || errors.Is(err, host.ErrNoEndpoint) != tt.none || (err != nil) != tt.none {
			t.Errorf("%s at %+v: %q, %v", filepath.Base(tt.file), tt.at, got, err)
		}
	}
}

// TestOwnToolsNeedTheirAPI: a tool of the Responses API's own is refused before anything
// is sent if the profile speaks another API, named or not. B3
func TestOwnToolsNeedTheirAPI(t *testing.T) {
	table, err := endpoint.LoadProfiles([]byte(`{"profiles":[{"name":"plain","like":"openai","apis":["chat"]}]}`), "profiles.json")
	if err != nil {
		t.Fatal(err)
	}
	file := write(t, filepath.Join(t.TempDir(), "agent.md"), "<tool name=\"apply_patch\" form=\"api\"/>\n<user>Patch it.</user>\n")
	for _, e := range []host.Endpoint{
		{Model: "m", BaseURL: "http://127.0.0.1:1/v1", API: endpoint.APIChat},
		{Model: "m", BaseURL: "http://127.0.0.1:1/v1", Profile: "plain", Table: table},
	} {
		h, err := host.Open(t.Context(), host.Config{File: file, Endpoint: e, Store: opened(t), Session: "s"})
		if err == nil {
			_, err = h.Run(t.Context(), "")
			h.Close()
		}
		var config *host.ConfigError
		if !errors.As(err, &config) || !strings.Contains(err.Error(), "apply_patch is one of the Responses API's own, which Chat Completions does not have") {
			t.Errorf("%q %q: %v", e.API, e.Profile, err)
		}
	}
}

// TestAnsweredLater: a call waits, and another host goes on with the answer, as
// after a restart. L7
func TestAnsweredLater(t *testing.T) {
	s, file := opened(t), reader(t, "")
	cfg := host.Config{File: file, Store: s, Session: "work", Pause: true, Rules: []session.Rule{{Verdict: session.Ask, Tool: "read_file"}}}
	run := func() *agent.Result {
		t.Helper()
		h, err := host.Open(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := h.Close(); err != nil {
				t.Error(err)
			}
		}()
		res, err := h.Run(t.Context(), "")
		if err != nil {
			t.Fatal(err)
		}
		return res
	}
	if res := run(); res.Why != agent.StopApprovalPending || len(res.Pending) != 1 {
		t.Fatalf("%s, %d calls wait", res.Why, len(res.Pending))
	}
	answers, err := host.ReadAnswers(write(t, filepath.Join(t.TempDir(), "a.jsonl"), `{"tool":"read_*","allow":true}`), "answers")
	if err != nil {
		t.Fatal(err)
	}
	cfg.Answers = answers
	if res := run(); res.Why != agent.StopEndTurn || !strings.Contains(res.Text, "a note") {
		t.Errorf("%s: %s", res.Why, res.Text)
	}
}

// TestRepeatedPrompt: a prompt that is repeated after a failure is in the session once, also with
// a picture, which the store keeps apart, and what is new beside it is not lost. J1, U2
func TestRepeatedPrompt(t *testing.T) {
	refuses := httptest.NewServer(http.NotFoundHandler())
	defer refuses.Close()
	s := opened(t)
	picture, err := item.UserParts(&item.InputText{Text: "see?"}, &item.InputImage{ImageURL: "data:image/png;base64," + strings.Repeat("iVBORw0K", 8<<10)})
	if err != nil {
		t.Fatal(err)
	}
	system := item.System("Answer in French.")
	for _, said := range [][]item.Item{{picture}, {system, picture}, {system, picture}} {
		h, err := host.Open(t.Context(), host.Config{File: reader(t, ""), Store: s, Session: "work", Endpoint: host.Endpoint{BaseURL: refuses.URL, Model: "m"}})
		if err != nil {
			t.Fatal(err)
		}
		for _, err := range h.Say(t.Context(), said...) {
			_ = err // the server refuses it
		}
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	}
	log, err := session.Open(t.Context(), s, sessions(t, s)[0].ID)
	if err != nil {
		t.Fatal(err)
	}
	pictures, systems := 0, 0
	for e := range log.Entries() {
		if given, ok := e.Body.(session.InputItem); ok {
			if given.Item.Externalized() {
				pictures++
			}
			if given.Item == system {
				systems++
			}
		}
	}
	if pictures != 1 || systems != 1 {
		t.Errorf("the log has the picture %d times, and the instruction %d times", pictures, systems)
	}
}

// TestSessionThatIsSpokenTo: what somebody says to a session whose run does not begin is kept, and the next run
// takes it. D1
func TestSessionThatIsSpokenTo(t *testing.T) {
	s, told := opened(t), new(notices)
	cfg := host.Config{File: reader(t, ""), Store: s, Session: "work", FrontEnd: host.FrontEnd{Notify: told.add}}
	h, err := host.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	words := session.Delivery{Delivered: session.Delivered{Key: "k"}, Bodies: []session.Body{session.InputItem{Item: item.User("Do not deploy.")}}}
	if _, err := s.(session.Inbox).Deliver(t.Context(), h.Info.ID, words); err != nil {
		t.Fatal(err)
	}
	if err := h.Close(); err != nil || !told.has(host.NoticeKept) {
		t.Errorf("error %v, and a notice: %v", err, told.has(host.NoticeKept))
	}
	if h, err = host.Open(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	if res, err := h.Run(t.Context(), ""); err != nil || h.Fresh() {
		t.Errorf("%v, %v", res, err)
	}
	found := false
	for e := range h.Session.Entries() {
		given, ok := e.Body.(session.InputItem)
		found = found || ok && given.Item == item.User("Do not deploy.")
	}
	if err := h.Close(); err != nil || !found {
		t.Errorf("the words are in the session: %v; error %v", found, err)
	}
}

// TestSessionThatDidNotBegin: a session is not made where it is not permitted, and
// one of a run that never began goes with its host; a host has its session for
// itself.
func TestSessionThatDidNotBegin(t *testing.T) {
	s := opened(t)
	cfg := host.Config{File: reader(t, ""), Store: s, Session: "work"}
	cfg.Permit = func(found session.Info) error {
		if found.ID == "" {
			return errors.New("not yours")
		}
		return nil
	}
	if _, err := host.Open(t.Context(), cfg); err == nil || err.Error() != "not yours" {
		t.Errorf("%v", err)
	}
	cfg.Permit = nil
	h, err := host.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := host.Open(t.Context(), cfg); !errors.Is(err, session.ErrBusy) {
		t.Errorf("a second host: %v", err)
	}
	if list := sessions(t, s); len(list) != 1 || !h.Fresh() {
		t.Errorf("%d sessions, fresh: %v", len(list), h.Fresh())
	}
	if err := errors.Join(h.Close(), h.Close()); err != nil {
		t.Error(err)
	}
	if list := sessions(t, s); len(list) != 0 {
		t.Errorf("%d sessions are left", len(list))
	}
}

// killed is a store of a process that dies before it appends.
type killed struct{ store.Store }

func (killed) Append(context.Context, string, int64, []session.Entry) error {
	return errors.New("killed")
}

// TestForkIsOneWrite: a fork never has an approval that its parent may still use, however its process ends. K5 F3
func TestForkIsOneWrite(t *testing.T) {
	s := opened(t)
	log, err := session.Open(t.Context(), s, "work")
	if err == nil {
		_, err = log.Append(t.Context(), session.InputItem{Item: item.User("go")}, session.RunStarted{}, session.TurnStarted{Turn: 1},
			session.OutputItem{Turn: 1, Item: item.Call("c", "pay", "{}")}, session.TurnEnded{Turn: 1, Status: item.StatusCompleted},
			session.ApprovalAsked{CallID: "c", Number: 1, Tool: "pay", Arguments: "{}"}, session.Approval{CallID: "c", Number: 1, Allowed: true})
	}
	if err != nil {
		t.Fatal(err)
	}
	made, err := host.Fork(t.Context(), killed{s}, session.Info{ID: "work"}, int64(len(log.Log())), "copy")
	if err != nil || len(made.Dropped) != 1 {
		t.Fatalf("%v, %v", made, err)
	}
	fork, err := session.Open(t.Context(), s, made.ID)
	if err != nil {
		t.Fatal(err)
	}
	var view session.View
	for e := range fork.Entries() {
		view.Apply(e)
	}
	if open := view.Open(); len(open) != 1 || open[0].Verdict != nil {
		t.Errorf("open: %v", open)
	}
}

// spoilt is a store with a row that cannot be read, which a list tells behind all others.
type spoilt struct{ store.Store }

func (s spoilt) List(ctx context.Context, q session.Query) iter.Seq2[session.Info, error] {
	return func(yield func(session.Info, error) bool) {
		for info, err := range s.Store.List(ctx, q) {
			if !yield(info, err) {
				return
			}
		}
		if q.Limit != 1 && q.Name == "" {
			yield(session.Info{}, &session.Damage{Place: "a row", Problem: "it is damaged"})
		}
	}
}

// TestDamagedRow: a session that cannot be read keeps no other from being begun or forked. J8
func TestDamagedRow(t *testing.T) {
	s := opened(t)
	h, err := host.Open(t.Context(), host.Config{File: reader(t, ""), Store: spoilt{s}, Session: "work", FrontEnd: host.FrontEnd{Notify: new(notices).add}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.Run(t.Context(), ""); err != nil {
		t.Error(err)
	}
	info := h.Info
	if err := h.Close(); err != nil {
		t.Error(err)
	}
	if made, err := host.Fork(t.Context(), spoilt{s}, info, 1, ""); err != nil || made.Name != "work-2" {
		t.Errorf("%v, %v", made, err)
	}
}

// While Opened asks a person about a store, nobody is told that the store is waited for.
func TestOpenedIsNotWaitedFor(t *testing.T) {
	var waits []host.NoticeKind
	refused := errors.New("it is somebody else's")
	cfg := host.Config{
		File: reader(t, ""), Session: "s", Place: filepath.Join(t.TempDir(), "s.db"), Endpoint: host.Endpoint{Rehearsal: true},
		FrontEnd: host.FrontEnd{Notify: func(n host.Notice) { waits = append(waits, n.Kind) }},
	}
	cfg.Opened = func(context.Context, store.Store) error {
		if n := len(waits); n < 2 || waits[n-2] != host.NoticeWaiting || waits[n-1] != host.NoticeReady {
			t.Error(waits)
		}
		return refused
	}
	if _, err := host.Open(t.Context(), cfg); !errors.Is(err, refused) {
		t.Error(err)
	}
}
