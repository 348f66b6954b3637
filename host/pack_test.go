// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package host_test

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/host"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/trust"
)

// J6: a definition goes into a database, so no secret that the program knows is in it.
func TestPackRefusesSecrets(t *testing.T) {
	dir := t.TempDir()
	file := write(t, filepath.Join(dir, "agent.md"), "<system>The key is sk-0123456789-secret.</system>\n")
	cfg := host.Config{File: file, FrontEnd: host.FrontEnd{Program: "test 1"}}
	d, _, err := host.Pack(t.Context(), cfg)
	if err != nil || d.Program != "test 1" {
		t.Errorf("%q, %v", d.Program, err)
	}
	cfg.Environment = host.Environment{"OPENAI_API_KEY": "sk-0123456789-secret"}
	var bad *host.ConfigError
	if _, _, err := host.Pack(t.Context(), cfg); !errors.As(err, &bad) || !strings.Contains(err.Error(), "agent.md contains a secret") || strings.Contains(err.Error(), "sk-") {
		t.Error(err)
	}
}

// The person is asked about a file that is packed to be run, and about no other. K1
func TestPackAsks(t *testing.T) {
	file := write(t, filepath.Join(t.TempDir(), "agent.md"), "<tool name=\"append_to_file\" approval=\"allow\"/>\n<user>Hello</user>\n")
	cfg := host.Config{File: file}
	if _, a, err := host.Pack(t.Context(), cfg); err != nil || len(a.Powers) != 0 {
		t.Errorf("%+v, %v", a, err)
	}
	cfg.Trust = trust.Everything
	if _, a, err := host.Pack(t.Context(), cfg); err != nil || len(a.Powers) != 1 {
		t.Errorf("%+v, %v", a, err)
	}
	no := errors.New("no")
	cfg.Trust = func(context.Context, trust.Claim) (trust.Agreement, error) { return trust.Agreement{}, no }
	if _, _, err := host.Pack(t.Context(), cfg); !errors.Is(err, no) {
		t.Error(err)
	}
}

// D1: a session that has only deliveries has a question.
func TestDeliveriesAlone(t *testing.T) {
	s := opened(t)
	dir := t.TempDir()
	write(t, filepath.Join(dir, "talk.script"), "turn\n  say You said: {{question}}\n")
	file := write(t, filepath.Join(dir, "agent.md"), "<config model=\"rehearsal:talk.script\"/>\n<system>Be brief.</system>\n")
	if err := s.Create(t.Context(), session.Info{ID: "ann-1", Name: "ann", Path: file}); err != nil {
		t.Fatal(err)
	}
	box := s.(session.Inbox)
	said := session.Delivery{Delivered: session.Delivered{Key: "1"}, Bodies: []session.Body{session.InputItem{Item: item.User("hello")}}}
	if _, err := box.Deliver(t.Context(), "ann-1", said); err != nil {
		t.Fatal(err)
	}
	var locked []string
	h, err := host.Open(t.Context(), host.Config{File: file, Store: s, Session: "ann-1", Locked: func(_ context.Context, info session.Info) error {
		locked = append(locked, info.ID)
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	res, err := h.Run(t.Context(), "")
	if err != nil || res.Text != "You said: hello" {
		t.Errorf("%+v, %v", res, err)
	}
	if err := h.Close(); err != nil || len(locked) != 1 {
		t.Errorf("%v, locked %q", err, locked)
	}
}

// A host that is asked to stop before its run ends it before anything is asked, and what
// was said stays for the next run.
func TestStopBeforeTheRun(t *testing.T) {
	s := opened(t)
	file := reader(t, "")
	h, err := host.Open(t.Context(), host.Config{File: file, Store: s, Session: "ann"})
	if err != nil {
		t.Fatal(err)
	}
	h.StopAfterTurn()
	for _, err := range h.Stream(t.Context(), "") {
		if err != nil {
			t.Error(err)
		}
	}
	if res := h.Result(); res == nil || res.Why != agent.StopRequested || res.Turns != 0 {
		t.Errorf("%+v", res)
	}
	if err := h.Close(); err != nil {
		t.Error(err)
	}
	h, err = host.Open(t.Context(), host.Config{File: file, Store: s, Session: "ann"})
	if err != nil {
		t.Fatal(err)
	}
	if res, err := h.Run(t.Context(), ""); err != nil || res.Why != agent.StopEndTurn {
		t.Errorf("%+v, %v", res, err)
	}
	if err := h.Close(); err != nil {
		t.Error(err)
	}
}

// A lock that the caller does not want is given back, and nothing was written.
func TestLockedRefuses(t *testing.T) {
	s := opened(t)
	file := reader(t, "")
	if err := s.Create(t.Context(), session.Info{ID: "ann-1", Name: "ann", Path: file}); err != nil {
		t.Fatal(err)
	}
	no := errors.New("no")
	for range 2 {
		if _, err := host.Open(t.Context(), host.Config{File: file, Store: s, Session: "ann-1", Locked: func(context.Context, session.Info) error { return no }}); !errors.Is(err, no) {
			t.Error(err)
		}
	}
	if list := sessions(t, s); len(list) != 1 || list[0].Entries != 0 {
		t.Errorf("%+v", list)
	}
}
