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
	"strings"
	"sync"
	"testing"

	_ "modernc.org/sqlite"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/audit"
	"github.com/antiphon-go/antiphon/host"
	"github.com/antiphon-go/antiphon/internal/attach"
	"github.com/antiphon-go/antiphon/internal/person"
	"github.com/antiphon-go/antiphon/internal/show"
	"github.com/antiphon-go/antiphon/session"
	_ "github.com/antiphon-go/antiphon/session/sqlstore"
	"github.com/antiphon-go/antiphon/session/store"
	"github.com/antiphon-go/antiphon/trust"
)

// scriptedFace is what a person sees, in a test: plain lines, and what became of prompts.
type scriptedFace struct {
	*plainFace
	kept, back []string // prompts that need not be kept as drafts, and that are drafts again
	begun      func(stop func(), steer func(string) error)
	history    []string
	editor     func(text, suffix string) (string, error)
	drafted    string
}

func (f *scriptedFace) sent(text string) { f.kept = append(f.kept, text) }

func (f *scriptedFace) unsent(text string) { f.back = append(f.back, text) }

func (f *scriptedFace) remember(prompts []string, _ string) {
	f.history = append(f.history, prompts...)
}

func (f *scriptedFace) edit(text, suffix string) (string, error) { return f.editor(text, suffix) }

func (f *scriptedFace) put(text string) { f.drafted = text }

func (f *scriptedFace) working(stop func(), steer func(string) error) func() {
	if f.begun != nil {
		f.begun(stop, steer)
	}
	return func() {}
}

// screenText is what a terminal shows, of goroutines side by side.
type screenText struct {
	mu   sync.Mutex
	text strings.Builder
}

func (s *screenText) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(b)
}

func (s *screenText) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

func (s *screenText) Reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.text.Reset()
}

// conversing opens a conversation with an agent whose model plays a script, in a folder that becomes the
// current one. What the person sees goes to the screen.
func conversing(t *testing.T, script string, tools ...string) (d *dialogue, face *scriptedFace, screen *screenText) {
	t.Helper()
	return conversingIn(t, t.TempDir(), script, tools...)
}

// conversingIn is like conversing, with the agent in a folder.
func conversingIn(t *testing.T, dir, script string, tools ...string) (d *dialogue, face *scriptedFace, screen *screenText) {
	t.Helper()
	t.Chdir(dir)
	file := write(t, filepath.Join(dir, "agent.md"), "<config model=\"rehearsal:agent.script\"/>\n<tool name=\"append_to_file\"/>\n<tool name=\"read_file\"/>\n<tool name=\"find_and_replace\"/>\n<tool name=\"read_directory\"/>\n"+strings.Join(tools, "\n"))
	write(t, filepath.Join(dir, "agent.script"), script)
	screen = new(screenText)
	std := Streams{strings.NewReader(""), screen, screen}
	face = &scriptedFace{plainFace: newPlainFace(std)}
	home, data := t.TempDir(), filepath.Join(dir, "data", "antiphon")
	t.Setenv("HOME", home)
	t.Setenv("USERPROFILE", home)
	if err := os.MkdirAll(data, 0o700); err != nil {
		t.Fatal(err)
	}
	env := host.Environment{}
	cfg := Config{Env: env, File: file, Plain: true, Data: data}
	cfg.Host = host.Config{
		File: file, Workspace: dir, Home: home, Session: "work", Place: filepath.Join(data, "sessions.db"),
		Hint: func(string) string { return "Nobody can allow it." },
	}
	cfg.Program = &around{env: env, cfg: cfg.Host}
	d = newDialogue(cfg)
	d.face, d.std, d.who = face, std, person.New(std.In, std.Err)
	if err := d.open(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.close(); err != nil {
			t.Error(err)
		}
		d.undraft()
	})
	return d, face, screen
}

// inputs returns how many messages of the person a session has.
func inputs(s *session.Session) (n int) {
	for e := range s.Entries() {
		if _, ok := e.Body.(session.InputItem); ok {
			n++
		}
	}
	return n
}

// around is the program around a conversation of a test.
type around struct {
	env host.Environment
	cfg host.Config
}

func (p *around) OpenStore(ctx context.Context) (store.Store, error) {
	return store.Open(ctx, p.cfg.Place, store.Options{})
}
func (*around) AuditLog() (*audit.Log, error) { return nil, nil }
func (*around) Hangup(func())                 {}

func (p *around) FrontEnd(w io.Writer, _ bool) host.FrontEnd {
	return host.FrontEnd{Environment: p.env, Program: "test", Notify: p.Notices(w, nil)}
}

func (*around) Notices(w io.Writer, _ show.Waits) func(host.Notice) {
	return func(n host.Notice) { fmt.Fprintln(w, "antiphon: "+show.Unbroken(n.Text)) }
}

// Consent agrees to files that need no trust, and to no others.
func (*around) Consent(_ Streams, _ *person.Person, cfg *host.Config) error {
	cfg.Trust = func(ctx context.Context, c trust.Claim) (trust.Agreement, error) {
		if len(c.Powers) > 0 {
			return trust.Agreement{}, &trust.UntrustedError{Claim: c}
		}
		return trust.Everything(ctx, c)
	}
	return nil
}

func (p *around) Choices(ctx context.Context, w io.Writer, _ int) (list []session.Info, err error) {
	k, err := p.OpenStore(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, k.Close()) }()
	for info, err := range k.List(ctx, session.Query{Path: p.cfg.File}) {
		if err != nil {
			return nil, err
		}
		fmt.Fprintln(w, info.Name+attach.Busy(ctx, k, info))
		list = append(list, info)
	}
	return list, nil
}

func (*around) Model(name string) (model, baseURL string) { return name, "" }

func (p *around) Work(w io.Writer, _ session.Info) (host.Config, error) {
	return host.Config{Workspace: p.cfg.Workspace, FrontEnd: p.FrontEnd(w, true)}, nil
}

func (*around) ShowSent(context.Context, io.Writer, string) error       { return nil }
func (*around) Exports(string) bool                                     { return false }
func (*around) Export(context.Context, io.Writer, string, string) error { return nil }
func (*around) Unopened(err error) error                                { return err }
func (*around) Taken(err error, _ string) error                         { return err }
func (*around) Failed(err error, _ agent.Compaction) (text, next string) {
	return err.Error(), ""
}

// write makes a file in a folder.
func write(t *testing.T, path, text string) string {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// read returns a file's text.
func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// listed returns the names and the contents of the files in a folder.
func listed(t *testing.T, dir string) (list string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		list += e.Name() + ":\n" + read(t, filepath.Join(dir, e.Name()))
	}
	return list
}

// wantAll reports what a text lacks.
func wantAll(t *testing.T, what, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("%s lack(s) %q:\n%.3000s", what, part, text)
		}
	}
}
