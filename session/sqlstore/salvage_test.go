// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package sqlstore_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/session/sqlstore"
)

// J8: an undamaged store verifies, on either database.
func TestVerifyFindsNothing(t *testing.T) {
	places(t, func(t *testing.T, where string) {
		s := openHere(t, where).(*sqlstore.Store)
		populate(t, s)
		for d, err := range s.Verify(t.Context()) {
			t.Errorf("%v, %v", d, err)
		}
		for d, err := range s.Verify(t.Context(), "fork") {
			t.Errorf("%v, %v", d, err)
		}
		for _, err := range s.Verify(t.Context(), "nobody") {
			if !errors.Is(err, session.ErrNotFound) {
				t.Errorf("got %v, want ErrNotFound", err)
			}
		}
	})
}

// J8: a damaged entry, payload or row is found and named; the rest is saved, each
// entry under its number, and where one is lost the copy says so.
func TestSalvage(t *testing.T) {
	s, file := newSQLite(t)
	ctx := t.Context()
	for i := range int64(300) {
		mustAppend(t, s, "talk", i, session.InputItem{Item: item.User(fmt.Sprintf("number %d", i+1))})
	}
	mustAppend(t, s, "talk", 300, session.InputItem{Item: image(9000, 1)}, session.CallStarted{CallID: "c", Session: "talk/1-c"})
	mustAppend(t, s, "talk/1-c", 0, session.InputItem{Item: item.User("inside")})
	unlock, err := s.Lock(ctx, "talk")
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(unlock(), s.Close()); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	broken := bytes.ReplaceAll(whole, []byte("number 17\""), []byte("number 71\""))
	broken = bytes.ReplaceAll(broken, []byte("number 42\"}]}}\n"), []byte("number 42\"}]}} "))
	pixels := bytes.Repeat([]byte("\x01pixels"), 20)
	if at := bytes.Index(broken, pixels); at > 0 {
		broken[at] ^= 1
	}
	if err := os.WriteFile(file, broken, 0o600); err != nil {
		t.Fatal(err)
	}
	s = reopen(t, file)
	var found []string
	for d, err := range s.Verify(ctx) {
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, fmt.Sprintf("%s %d", d.Session, d.Entry))
	}
	for _, want := range []string{"talk 17", "talk 0"} {
		if !strings.Contains(strings.Join(found, "|")+"|", want+"|") {
			t.Errorf("verify found %q, want %q", found, want)
		}
	}
	done, err := s.Salvage(ctx, "talk", "saved")
	if err != nil {
		t.Fatal(err)
	}
	got := loadAll(t, s, "saved")
	lost := 0
	for i, e := range got[:300] {
		given, ok := e.Body.(session.InputItem)
		switch {
		case !ok:
			lost++
			if n, ok := e.Body.(session.Noticed); !ok || n.Kind != session.NoticeEntryLost || !strings.Contains(n.Text, fmt.Sprintf("entry %d was lost", i+1)) {
				t.Errorf("entry %d is %+v", i+1, e.Body)
			}
		case !strings.Contains(given.Item.JSON(), fmt.Sprintf("number %d\"", i+1)):
			t.Errorf("entry %d has other words: %s", i+1, given.Item.JSON())
		}
	}
	if n, ok := got[16].Body.(session.Noticed); !ok || !strings.Contains(n.Text, "number 71") {
		t.Errorf("what is left of entry 17 is not quoted: %+v", got[16].Body)
	}
	if _, ok := got[300].Body.(session.Noticed); !ok {
		t.Error("an entry whose payload is damaged passes for whole")
	}
	if b, ok := got[301].Body.(session.CallStarted); !ok || b.Session != "saved/1-c" {
		t.Errorf("the nested session is not named as its copy: %+v", got[301].Body)
	}
	if e := loadAll(t, s, "saved/1-c"); len(e) != 2 || session.Kind(e[1].Body) != "noticed" {
		t.Errorf("the nested session is %+v", e)
	}
	if n, ok := got[len(got)-1].Body.(session.Noticed); len(got) != 303 || !ok || n.Kind != session.NoticeSalvaged {
		t.Errorf("the copy does not end with what it is a copy of: %+v", got[len(got)-1].Body)
	}
	if n, ok := got[300].Body.(session.Noticed); !ok || n.Kind != session.NoticePayloadLost {
		t.Errorf("an entry of which a payload is lost is %+v", got[300].Body)
	}
	if len(done.Gaps) != 1 || done.Gaps[0] != "saved" {
		t.Errorf("the sessions with gaps are %q", done.Gaps)
	}
	if lost == 0 || lost > 3 || len(done.Damage) == 0 || done.Entries < 299 {
		t.Errorf("%d are lost, %d saved, damage %v", lost, done.Entries, done.Damage)
	}
	for d, err := range s.Verify(ctx, "saved") {
		t.Errorf("the copy: %v, %v", d, err)
	}
}

// J8 D1: input that waits for a damaged session waits for the copy, too; a damaged delivery is named, and an answer about a
// call is used once.
func TestSalvageWhatWaits(t *testing.T) {
	s, file := newSQLite(t)
	mustAppend(t, s, "talk", 0, session.InputItem{Item: item.User("hi")})
	said := func(text string) session.Body { return session.InputItem{Item: item.User(text)} }
	for key, bodies := range map[string][]session.Body{
		"whole": {session.StopAsked{}, said("do not deploy")}, "damaged": {said("on friday")}, "yes": {session.Approval{CallID: "c", Number: 1, Allowed: true}},
	} {
		if _, err := s.Deliver(t.Context(), "talk", session.Delivery{Delivered: session.Delivered{Key: key}, Bodies: bodies}); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, bytes.ReplaceAll(whole, []byte("on friday"), []byte("on sunday")), 0o600); err != nil {
		t.Fatal(err)
	}
	s = reopen(t, file)
	done, err := s.Salvage(t.Context(), "talk", "saved")
	if err != nil || len(done.Damage) != 1 || !strings.Contains(done.Damage[0].Place, "antiphon_inbox") {
		t.Fatalf("damage %v, %v", done.Damage, err)
	}
	var waiting []session.Delivery
	for d, err := range s.Deliveries(t.Context(), "saved") {
		if err != nil {
			t.Fatal(err)
		}
		waiting = append(waiting, d)
	}
	if len(waiting) != 1 || waiting[0].Key != "whole" || len(waiting[0].Bodies) != 1 || waiting[0].Bodies[0] != said("do not deploy") {
		t.Errorf("for the copy wait %v", waiting)
	}
	log := loadAll(t, s, "saved")
	if n, ok := log[len(log)-1].Body.(session.Noticed); !ok || !strings.Contains(n.Text, "; 1 messages wait") || !strings.Contains(n.Text, "; 1 answers") {
		t.Errorf("the copy ends with %v", log[len(log)-1])
	}
}

// J8 J13: what was kept of an output beside the log stays with the copy when the
// damaged session is deleted.
func TestSalvageKeepsWhatOutputsName(t *testing.T) {
	places(t, func(t *testing.T, where string) {
		s := openHere(t, where).(*sqlstore.Store)
		ctx := t.Context()
		mustAppend(t, s, "talk", 0, session.InputItem{Item: item.User("one")})
		first, err := s.PutBlob(ctx, "talk", bytes.Repeat([]byte("long "), 2000))
		if err != nil {
			t.Fatal(err)
		}
		mustAppend(t, s, "talk", 1, session.InputItem{Item: item.User("two")})
		if err := s.Fork(ctx, "talk", 2, "fork"); err != nil {
			t.Fatal(err)
		}
		second, err := s.PutBlob(ctx, "fork", bytes.Repeat([]byte("longer "), 2000))
		if err != nil {
			t.Fatal(err)
		}
		mustAppend(t, s, "fork", 2, session.InputItem{Item: item.User("three")})
		if _, err := s.Salvage(ctx, "fork", "saved"); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(s.Delete(ctx, "fork"), s.Delete(ctx, "talk")); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Sweep(ctx, false); err != nil {
			t.Fatal(err)
		}
		for _, hash := range []session.Hash{first, second} {
			b, _, err := s.OpenBlob(ctx, hash)
			if err != nil {
				t.Errorf("%x: %v", hash[:8], err)
				continue
			}
			if err := b.Close(); err != nil {
				t.Error(err)
			}
		}
	})
}

// J8: whatever is damaged, salvaging saves no other words, and does not panic.
// What reading finds damaged, verifying finds, too.
func TestSalvageOfAnything(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: salvages many damaged stores")
	}
	file, told := conversation(t)
	whole, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(3, 4))
	saved := 0
	copied := filepath.Join(t.TempDir(), "copy.db")
	lines := map[string]bool{}
	for _, text := range told {
		for _, line := range strings.SplitAfter(strings.ReplaceAll(text, "}{", "}\n{"), "\n") {
			lines[strings.TrimSuffix(line, "\n")] = true
		}
	}
	for n := range 150 {
		broken, what := damage(r, whole, file)
		if err := os.WriteFile(copied, broken, 0o600); err != nil {
			t.Fatal(err)
		}
		if s, err := sqlstore.OpenSQLite(t.Context(), copied, openSQLite, sqlstore.Options{Wait: 1, Retry: -1}); err == nil {
			damaged := read(t.Context(), copied, told) != "the same"
			found := false
			for range s.Verify(t.Context()) {
				found = true
			}
			if damaged && !found {
				t.Errorf("copy %d, %s: reading fails, and verifying finds nothing", n, what)
			}
			if _, err := s.Salvage(t.Context(), "main", "saved"); err == nil {
				for e, err := range s.Load(t.Context(), "saved", 0) {
					if err != nil {
						break // the file is damaged where the copy is now, too
					}
					if _, lost := e.Body.(session.Noticed); lost {
						continue
					}
					line, err := session.AppendEntry(nil, e)
					if err != nil || !lines[string(line)] {
						t.Errorf("copy %d, %s: entry %d was saved with other words: %.200s, %v", n, what, e.Seq, line, err)
						break
					}
					saved++
				}
			}
			_ = s.Close() // it is damaged
		}
		for _, rest := range []string{"-wal", "-shm", "-journal"} {
			_ = os.Remove(copied + rest) // most copies have none
		}
	}
	if saved < 10_000 {
		t.Errorf("only %d entries were saved", saved)
	}
}

// K2: who watches a session is not shown another one that has got its id.
func TestWatchReadsOneSession(t *testing.T) {
	s, _ := newSQLite(t)
	mustAppend(t, s, "a", 0, session.InputItem{Item: item.User("one")})
	n := 0
	for e, err := range s.Watch(t.Context(), "a", 0) {
		if n++; n > 1 || err != nil {
			t.Fatalf("entry %d of another session: %+v, %v", n, e, err)
		}
		if err := s.Delete(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
		mustAppend(t, s, "a", 0, session.InputItem{Item: item.User("another")}, session.InputItem{Item: item.User("more")})
	}
	if n != 1 {
		t.Error("the watch showed nothing")
	}
}

// K2: the same if the session is replaced while Watch reads its log.
func TestLoadReadsOneLog(t *testing.T) {
	s, _ := newSQLite(t)
	mustAppend(t, s, "a", 0, session.InputItem{Item: item.User("one")})
	log, err := s.LogNumber(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	if n, replaced := s.LoadLog(t.Context(), "a", log); n != 1 || replaced {
		t.Errorf("%d entries, replaced: %v", n, replaced)
	}
	if err := s.Delete(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	mustAppend(t, s, "a", 0, session.InputItem{Item: item.User("another")})
	if n, replaced := s.LoadLog(t.Context(), "a", log); n != 0 || !replaced {
		t.Errorf("of another session %d entries, replaced: %v", n, replaced)
	}
}
