// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package sqlstore_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/session/sqlstore"
)

// damages is how many damaged copies a plain go test reads. ANTIPHON_DAMAGES
// says another number: .ci/run reads 2000.
const damages = 400

// J8: whatever is damaged in a file, reading gives the same conversation or an
// error; never other words, and never a panic.
func TestDamageIsNeverOtherWords(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: damages many stores")
	}
	want := damages
	if text := os.Getenv("ANTIPHON_DAMAGES"); text != "" {
		var err error
		if want, err = strconv.Atoi(text); err != nil {
			t.Fatalf("ANTIPHON_DAMAGES: %v", err)
		}
	}
	file, told := conversation(t)
	whole, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(1, 2))
	counts := map[string]int{}
	copied := filepath.Join(t.TempDir(), "copy.db")
	for n := range want {
		broken, what := damage(r, whole, file)
		if err := os.WriteFile(copied, broken, 0o600); err != nil {
			t.Fatal(err)
		}
		outcome := read(t.Context(), copied, told)
		counts[outcome]++
		if strings.HasPrefix(outcome, "other") {
			t.Errorf("copy %d, %s: %s", n, what, outcome)
			if n < want && t.Failed() && counts[outcome] > 3 {
				break
			}
		}
		for _, rest := range []string{"-wal", "-shm", "-journal"} {
			_ = os.Remove(copied + rest) // most copies have none
		}
	}
	t.Logf("%d copies: %v", want, counts)
	if counts["the same"] == 0 || counts["an error"] < want/20 {
		t.Errorf("%v: the damage is not what the test is about", counts)
	}
}

// damage changes a copy of the file somewhere: a bit, a byte, a sector, the end.
// Half of it is where text is: most of a file is payloads.
func damage(r *rand.Rand, whole []byte, _ string) (broken []byte, what string) {
	broken = bytes.Clone(whole)
	at := r.IntN(len(broken))
	if r.IntN(2) == 0 {
		if i := bytes.Index(broken[at:], []byte(`"text":"`)); i >= 0 {
			at += i + r.IntN(40)
		}
	}
	at = min(at, len(broken)-1)
	switch r.IntN(8) {
	case 0, 1, 2:
		broken[at] ^= 1 << r.IntN(8)
		return broken, fmt.Sprintf("a bit of byte %d", at)
	case 3, 4:
		broken[at] = byte(r.IntN(256))
		return broken, fmt.Sprintf("byte %d", at)
	case 5:
		at &^= 511
		clear(broken[at:min(at+512, len(broken))])
		return broken, fmt.Sprintf("the sector at %d", at)
	case 6:
		from := r.IntN(len(broken)/4096) * 4096
		to := at / 4096 * 4096
		copy(broken[to:to+4096], whole[from:from+4096])
		return broken, fmt.Sprintf("page %d stands for page %d", from/4096+1, to/4096+1)
	}
	return broken[:at], fmt.Sprintf("cut at %d", at)
}

// conversation makes a file with sessions, a fork, a nested session and a
// payload, and returns what is said in each.
func conversation(t *testing.T) (file string, told map[string]string) {
	t.Helper()
	s, file := newSQLite(t)
	ctx := t.Context()
	if err := s.Create(ctx, session.Info{ID: "main", Name: "main", Path: "/p/agent.md"}); err != nil {
		t.Fatal(err)
	}
	fill := func(id string, from, n int64) {
		for i := from; i < from+n; i += 2 {
			mustAppend(t, s, id, i, session.InputItem{Item: item.User(fmt.Sprintf("%s %d: %s", id, i, strings.Repeat("words and ", int(i%23))))}, session.TurnStarted{Turn: int(i)})
		}
	}
	fill("main", 0, 400)
	mustAppend(t, s, "main", 400, session.InputItem{Item: image(20_000, 3)})
	unlock, err := s.Lock(ctx, "main")
	if err != nil {
		t.Fatal(err)
	}
	if err := unlock(); err != nil { // its rows are put together
		t.Fatal(err)
	}
	if err := s.Fork(ctx, "main", 201, "fork"); err != nil {
		t.Fatal(err)
	}
	fill("fork", 201, 60)
	fill("main/1-call", 0, 40)
	for i := range 30 {
		fill(fmt.Sprintf("small-%d", i), 0, 6)
	}
	told = map[string]string{}
	for i, err := range s.List(ctx, session.Query{Nested: true}) {
		if err != nil {
			t.Fatal(err)
		}
		if told[i.ID], err = said(ctx, s, i.ID); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return file, told
}

// said returns the conversation of a session as text, with its payloads.
func said(ctx context.Context, s *sqlstore.Store, id string) (string, error) {
	info, err := s.Info(ctx, id)
	if err != nil {
		return "", err
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s %s %s %s %d\n", info.ID, info.Name, info.Path, info.Title, info.Entries)
	var line []byte
	for e, err := range s.Load(ctx, id, 0) {
		if err != nil {
			return "", err
		}
		if line, err = session.AppendEntry(line[:0], e); err != nil {
			return "", err
		}
		b.Write(line)
	}
	return b.String(), nil
}

// read says what reading all sessions of a file comes to.
func read(ctx context.Context, file string, told map[string]string) (outcome string) {
	defer func() {
		if p := recover(); p != nil {
			outcome = fmt.Sprintf("other: a panic: %v", p)
		}
	}()
	s, err := sqlstore.OpenSQLite(ctx, file, openSQLite, sqlstore.Options{Wait: 1, Retry: -1})
	if err != nil {
		return "an error"
	}
	defer s.Close()
	failed := false
	for id, want := range told {
		got, err := said(ctx, s, id)
		switch {
		case errors.Is(err, session.ErrNotFound):
			return fmt.Sprintf("other: session %q is said not to exist", id)
		case err != nil:
			failed = true
		case got != want:
			return fmt.Sprintf("other words in %q: %.200s", id, difference(got, want))
		}
	}
	if failed {
		return "an error"
	}
	return "the same"
}

// difference is where two texts begin to differ.
func difference(got, want string) string {
	at := 0
	for at < len(got) && at < len(want) && got[at] == want[at] {
		at++
	}
	return fmt.Sprintf("at %d: %.60q, want %.60q", at, got[at:], want[at:])
}

// J8: the error for a changed letter names the session, the entry and the place.
func TestDamageIsNamed(t *testing.T) {
	s, file := newSQLite(t)
	mustAppend(t, s, "talk", 0, session.InputItem{Item: item.User("one")}, session.InputItem{Item: item.User("two")}, session.InputItem{Item: item.User("three")})
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, bytes.ReplaceAll(whole, []byte("two"), []byte("tvo")), 0o600); err != nil {
		t.Fatal(err)
	}
	s = reopen(t, file)
	var read []session.Entry
	var failed error
	for e, err := range s.Load(t.Context(), "talk", 0) {
		if failed = err; err == nil {
			read = append(read, e)
		}
	}
	var d *session.Damage
	if !errors.As(failed, &d) || d.Session != "talk" || d.Entry != 2 || !strings.Contains(d.Place, "antiphon_entries") || len(read) != 1 {
		t.Errorf("%d entries, then %v", len(read), failed)
	}
	wantError(t, failed, file, `session "talk": entry 2`, "sessions verify")
}
