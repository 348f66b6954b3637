// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package sqlstore_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/session/sqlstore"
)

// B5, J6: whatever is wrong with a connection string, its password is in no
// error.
func TestNoPasswordInErrors(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := listener.Addr().(*net.TCPAddr).Port
	if err := listener.Close(); err != nil { // nobody listens there now
		t.Fatal(err)
	}
	const secret = "hunter2-s3cr3t"
	for _, dsn := range []string{
		fmt.Sprintf("postgres://me:%s@127.0.0.1:%d/db?sslmode=disable", secret, port),
		fmt.Sprintf("postgresql://me:%s@127.0.0.1:%d/db?connect_timeout=x", secret, port),
		fmt.Sprintf("host=127.0.0.1 port=%d user=me password=%s", port, secret),
		fmt.Sprintf("host=127.0.0.1 port=%d user=me password='%s' dbname=x", port, secret),
		fmt.Sprintf("postgres://127.0.0.1:%d/db?user=me&password=%s", port, secret),
		"postgres://me:" + secret + "@[::1/db",
		"postgres://me:" + secret + "@127.0.0.1:port/db",
		"password=" + secret + " host",
		"postgres//me:" + secret + "@127.0.0.1",
	} {
		s, err := sqlstore.OpenPostgres(t.Context(), dsn, openPostgres, sqlstore.Options{})
		if err == nil {
			_ = s.Close()
			t.Errorf("%s: no error", dsn)
			continue
		}
		for e := err; e != nil; e = errors.Unwrap(e) {
			if text := fmt.Sprintf("%v %+v %#v", e, e, e); strings.Contains(text, secret) {
				t.Errorf("%s: the password is in %s", dsn, text)
			}
		}
		var known *sqlstore.Error
		if !errors.As(err, &known) || known.Hint == "" {
			t.Errorf("%s: %v has no hint", dsn, err)
		}
	}
}

// proxy stands between a store and the server, and loses connections.
type proxy struct {
	net.Listener
	network, server string

	mu    sync.Mutex
	cut   func(fromClient bool, data []byte) (lose bool) // nil loses nothing
	conns map[net.Conn]bool
	wg    sync.WaitGroup
}

// newProxy returns a connection string that leads by way of the proxy.
func newProxy(t *testing.T) (*proxy, string) {
	t.Helper()
	dsn := postgresDSN(t)
	host, port := "", "5432"
	var rest []string
	for _, field := range strings.Fields(dsn) {
		if value, ok := strings.CutPrefix(field, "host="); ok {
			host = value
			continue
		}
		if value, ok := strings.CutPrefix(field, "port="); ok {
			port = value
			continue
		}
		rest = append(rest, field)
	}
	if !filepath.IsAbs(host) {
		t.Skip("ANTIPHON_POSTGRES is not a socket in a folder, as .ci/postgres makes it")
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{Listener: listener, network: "unix", server: filepath.Join(host, ".s.PGSQL."+port), conns: map[net.Conn]bool{}}
	p.wg.Go(p.accept)
	t.Cleanup(func() {
		_ = p.Close()
		p.loseAll()
		p.wg.Wait()
	})
	addr := listener.Addr().(*net.TCPAddr)
	return p, fmt.Sprintf("host=127.0.0.1 port=%d sslmode=disable %s", addr.Port, strings.Join(rest, " "))
}

func (p *proxy) accept() {
	for {
		client, err := p.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial(p.network, p.server)
		if err != nil {
			_ = client.Close()
			continue
		}
		p.mu.Lock()
		p.conns[client], p.conns[server] = true, true
		p.mu.Unlock()
		p.wg.Go(func() { p.pump(client, server, true) })
		p.wg.Go(func() { p.pump(server, client, false) })
	}
}

// pump carries what comes from one to the other, until one of them ends or the
// connection is to be lost.
func (p *proxy) pump(from, to net.Conn, fromClient bool) {
	defer from.Close()
	defer to.Close()
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		if n > 0 {
			p.mu.Lock()
			lose := p.cut != nil && p.cut(fromClient, buf[:n])
			p.mu.Unlock()
			if lose {
				return
			}
			if _, err := to.Write(buf[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

func (p *proxy) setCut(cut func(fromClient bool, data []byte) bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cut = cut
}

func (p *proxy) loseAll() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		_ = c.Close()
	}
	clear(p.conns)
}

// The connection is lost in a COMMIT, before it reached the server or behind
// it: the store finds out what became of it. Nothing is lost and nothing twice.
func TestLostInCommit(t *testing.T) {
	for _, reached := range []bool{false, true} {
		t.Run(fmt.Sprintf("reached %v", reached), func(t *testing.T) {
			p, dsn := newProxy(t)
			s := newPostgres(t, dsn)
			end := int64(0)
			for round := range 5 {
				mustAppend(t, s, "a", end, step(0)...)
				end++
				bodies := []session.Body{session.InputItem{Item: image(9000, byte(round))}, session.RunStarted{}}
				p.loseCommit(t, reached, func() error { return s.Append(t.Context(), "a", end, numbered(end, bodies...)) })
				end += 2
				if n := len(loadAll(t, s, "a")); int64(n) != end {
					t.Fatalf("%d entries, want %d", n, end)
				}
			}
			ctx := t.Context()
			p.loseCommit(t, reached, func() error { return s.Create(ctx, session.Info{ID: "b"}) })
			p.loseCommit(t, reached, func() error { return s.Rename(ctx, "b", "name") })
			p.loseCommit(t, reached, func() error { return s.Archive(ctx, "b", true) })
			p.loseCommit(t, reached, func() error { return s.Fork(ctx, "a", 2, "fork") })
			p.loseCommit(t, reached, func() error { return s.Delete(ctx, "a") })
			p.loseCommit(t, reached, func() error {
				_, err := s.PutBlob(ctx, "fork", []byte("kept"))
				return err
			})
			if i, err := s.Info(ctx, "b"); err != nil || i.Name != "name" || !i.Archived {
				t.Errorf("%+v, %v", i, err)
			}
			if n := len(loadAll(t, s, "fork")); n != 2 {
				t.Errorf("the fork has %d entries", n)
			}
			if _, err := s.Info(ctx, "a"); !errors.Is(err, session.ErrNotFound) {
				t.Errorf("the deleted one: got %v, want ErrNotFound", err)
			}
		})
	}
}

// loseCommit loses the connection in the COMMIT of what do does, or behind it.
func (p *proxy) loseCommit(t *testing.T, behind bool, do func() error) {
	t.Helper()
	committing, lost := false, 0
	p.setCut(func(fromClient bool, data []byte) bool {
		if lost > 0 {
			return false
		}
		if fromClient && bytes.Contains(bytes.ToLower(data), []byte("commit\x00")) {
			committing = true
			if !behind {
				lost++
				return true
			}
		}
		if !fromClient && committing && bytes.Contains(data, []byte("COMMIT")) {
			lost++
			return true
		}
		return false
	})
	defer p.setCut(nil)
	if err := do(); err != nil {
		t.Fatal(err)
	}
	if lost != 1 {
		t.Fatalf("%d connections were lost", lost)
	}
}

// An append to a session under way is one round trip, and the connection that is
// lost before the answer comes, in front of the server or behind it, costs nothing:
// the entries are there once.
func TestLostInAppend(t *testing.T) {
	for _, reached := range []bool{false, true} {
		t.Run(fmt.Sprintf("reached %v", reached), func(t *testing.T) {
			const answer = "the answer is lost"
			p, dsn := newProxy(t)
			s := newPostgres(t, dsn)
			s.Deafen() // what it would send is not counted
			mustAppend(t, s, "a", 0, step(0)...)
			end := int64(len(step(0)))
			add := func(text string) {
				t.Helper()
				mustAppend(t, s, "a", end, session.Noticed{Kind: "test", Text: text})
				end++
			}
			for range 5 {
				add("the connection is there and has the statement")
				trips := 0
				p.setCut(func(fromClient bool, data []byte) bool {
					if !fromClient {
						trips += bytes.Count(data, readyForQuery)
					}
					return false
				})
				add("one round trip")
				p.setCut(nil)
				if trips != 1 {
					t.Errorf("%d round trips", trips)
				}
				sent, lost := false, 0
				p.setCut(func(fromClient bool, data []byte) bool {
					if lost > 0 {
						return false
					}
					sent = sent || fromClient && (bytes.Contains(data, []byte(answer)) || bytes.Contains(data, fmt.Appendf(nil, "%x", answer)))
					if sent && (!reached || !fromClient) {
						lost++
						return true
					}
					return false
				})
				add(answer)
				p.setCut(nil)
				if lost != 1 {
					t.Errorf("%d connections were lost", lost)
				}
			}
			if n := len(loadAll(t, s, "a")); int64(n) != end {
				t.Errorf("%d entries, want %d", n, end)
			}
			if err := s.Append(t.Context(), "a", end-1, numbered(end-1, session.RunStarted{})); !errors.Is(err, session.ErrConflict) {
				t.Errorf("got %v, want ErrConflict", err)
			}
		})
	}
}

// readyForQuery begins the message with which a server ends each of its answers.
var readyForQuery = []byte("Z\x00\x00\x00\x05")

// An append sees a session that was renamed, tagged or deleted meanwhile as a
// transaction does, and keeps the order of sessions.
func TestAppendInOneStatement(t *testing.T) {
	s := newPostgres(t, postgresDSN(t))
	ctx := t.Context()
	for _, id := range []string{"a", "b"} {
		mustAppend(t, s, id, 0, step(0)...)
		if err := s.Label(ctx, id, session.Labels{Tags: []string{"x"}}); err != nil {
			t.Fatal(err)
		}
	}
	end := int64(len(step(0)))
	mustAppend(t, s, "a", end, session.RunStarted{})
	for _, q := range []session.Query{{}, {Tags: []string{"x"}}} {
		var order string
		for i, err := range s.List(ctx, q) {
			if err != nil {
				t.Fatal(err)
			}
			order += i.ID
		}
		if order != "ab" {
			t.Errorf("%+v: the order is %s, want the one that was written to last first", q, order)
		}
	}
	if err := s.Delete(ctx, "a"); err != nil {
		t.Fatal(err)
	}
	if err := s.Append(ctx, "a", end+1, numbered(end+1, session.RunStarted{})); !errors.Is(err, session.ErrConflict) {
		t.Errorf("a deleted session: got %v, want ErrConflict", err)
	}
}

// What comes first to a session, and the creation of the session by another process
// at the same moment, are no conflict: both stay.
func TestFirstBesideCreate(t *testing.T) {
	s := newPostgres(t, postgresDSN(t))
	for name, first := range map[string]func() error{
		"append": func() error { return s.Append(t.Context(), "append", 0, numbered(0, step(0)...)) },
		"blob":   func() error { _, err := s.PutBlob(t.Context(), "blob", []byte("picture")); return err },
	} {
		commit, err := s.CreateSlowly(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan error, 1)
		go func() { done <- first() }()
		for n := 0; n == 0; {
			if n, err = s.Blocked(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if err := cmp.Or(commit(), <-done); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Many more runs than connections: each waits for one, also while what it reads
// comes, and all come to their end.
func TestFewConnections(t *testing.T) {
	dsn := postgresDSN(t)
	for _, bad := range []string{"0", "1", "many"} {
		_, err := sqlstore.OpenPostgres(t.Context(), dsn+unsafe+" antiphon_connections="+bad, openPostgres, fast)
		wantError(t, err, "postgres", "number of connections", "antiphon_connections")
	}
	s := newPostgres(t, dsn+" antiphon_connections=3")
	var runs sync.WaitGroup
	for n := range 40 {
		runs.Go(func() {
			if err := oneOfMany(t.Context(), s, fmt.Sprintf("run-%d", n)); err != nil {
				t.Error(err)
			}
		})
	}
	runs.Wait()
	if most := s.MostConnections(); most != 3 {
		t.Errorf("%d connections are allowed", most)
	}
}

func oneOfMany(ctx context.Context, s *sqlstore.Store, id string) error {
	log, err := session.Open(ctx, s, id)
	if err != nil {
		return err
	}
	unlock, err := log.Lock(ctx)
	if err != nil {
		return err
	}
	for n := range 5 {
		if _, err := log.Append(ctx, step(n)...); err != nil {
			return err
		}
	}
	for _, err := range s.Load(ctx, id, 0) {
		if err == nil {
			_, err = log.Append(ctx, session.Noticed{Kind: "test", Text: "written while it is read"})
		}
		if err != nil {
			return err
		}
	}
	for i, err := range s.List(ctx, session.Query{Prefix: "run-"}) {
		if err == nil {
			_, err = s.Info(ctx, i.ID)
		}
		if err != nil {
			return err
		}
	}
	return unlock()
}

// J11: a server that was killed gives the numbers of transactions that it has
// lost to others. That one of them was committed proves nothing of the first.
func TestNumberGivenTwice(t *testing.T) {
	s := newPostgres(t, postgresDSN(t))
	mustAppend(t, s, "a", 0, step(0)...)
	mustAppend(t, s, "b", 0, step(0)...)
	end := int64(len(step(0)))
	next := numbered(end, step(1)...)
	for _, commit := range []bool{false, true} {
		written, err := s.Outcome(t.Context(), "a", end, next, commit)
		if written != commit || err != nil {
			t.Errorf("an append, committed: %t: the store says %t, %v", commit, written, err)
		}
		written, err = s.Outcome(t.Context(), "", 0, nil, commit)
		if written != commit || err != nil {
			t.Errorf("another write, committed: %t: the store says %t, %v", commit, written, err)
		}
	}
	checkSteps(t, s, "a")
}

// The server is away: one error with a hint, at once or when it is known that
// the outcome is not; and all goes on when it is back.
func TestServerAway(t *testing.T) {
	p, dsn := newProxy(t)
	s, err := sqlstore.OpenPostgres(t.Context(), dsn+unsafe, openPostgres, sqlstore.Options{Wait: 100 * time.Millisecond, Retry: 100 * time.Millisecond, Poll: fast.Poll})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	log, err := session.Open(t.Context(), s, "a")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := log.Append(t.Context(), step(0)...); err != nil {
		t.Fatal(err)
	}
	away := func(bool, []byte) bool { return true }
	p.setCut(away)
	p.loseAll()
	_, err = log.Append(t.Context(), step(1)...)
	wantError(t, err, "127.0.0.1", "lost", "run it again")
	for _, err := range s.Load(t.Context(), "a", 0) {
		wantError(t, err, "127.0.0.1", "lost", "")
	}
	p.setCut(nil)
	if _, err := log.Append(t.Context(), step(1)...); err != nil {
		t.Fatalf("it is back: %v", err)
	}

	// It goes away for good in the middle of a commit.
	committing := false
	p.setCut(func(fromClient bool, data []byte) bool {
		committing = committing || fromClient && bytes.Contains(bytes.ToLower(data), []byte("commit\x00"))
		return committing && !fromClient || committing && !bytes.Contains(bytes.ToLower(data), []byte("commit\x00"))
	})
	_, err = log.Append(t.Context(), step(2)...)
	wantError(t, err, "127.0.0.1", "not known", "run it again")
	p.setCut(nil)
	if log, err = session.Open(t.Context(), s, "a"); err != nil {
		t.Fatal(err)
	}
	checkSteps(t, s, "a")
	if _, err := log.Append(t.Context(), step(len(log.Log()))...); err != nil {
		t.Error(err)
	}
	checkSteps(t, s, "a")
}

// A pooler gives one connection to many clients, one transaction each. A driver that
// prepares statements then finds those of others, and the error says what to write.
func TestPreparedBehindPooler(t *testing.T) {
	if os.Getenv("ANTIPHON_PGBOUNCER") == "" {
		t.Skip("no ANTIPHON_PGBOUNCER: `.ci/postgres -pooled go test ./session/sqlstore` starts a pooler and sets it")
	}
	dsn := postgresDSN(t)
	newPostgres(t, dsn)
	dsn = strings.Replace(dsn, pooled, "", 1) + unsafe
	for range 2 { // the second one finds the statements of the first
		s, err := sqlstore.OpenPostgres(t.Context(), dsn, openPostgres, impatient)
		if err != nil {
			wantError(t, err, "postgres", "a pooler gives one connection to several clients", "default_query_exec_mode=exec")
			return
		}
		defer s.Close()
	}
	t.Error("the second one did not fail: this pooler keeps prepared statements apart")
}

// A parameter of the connection string that a pooler does not know is named.
func TestParameterBehindPooler(t *testing.T) {
	if os.Getenv("ANTIPHON_PGBOUNCER") == "" {
		t.Skip("no ANTIPHON_PGBOUNCER: `.ci/postgres -pooled go test ./session/sqlstore` starts a pooler and sets it")
	}
	_, err := sqlstore.OpenPostgres(t.Context(), postgresDSN(t)+" search_path=public", openPostgres, impatient)
	wantError(t, err, "postgres", "search_path", "ALTER ROLE")
}

// J5: as with files.
func TestNewerServer(t *testing.T) {
	dsn := postgresDSN(t)
	s := newPostgres(t, dsn)
	mustAppend(t, s, "a", 0, session.RunStarted{})
	db, err := openPostgres(dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec("UPDATE antiphon_format SET version = 99"); err != nil {
		t.Fatal(err)
	}
	newest, _ := sqlstore.Formats("postgres")
	_, err = sqlstore.OpenPostgres(t.Context(), dsn, openPostgres, sqlstore.Options{})
	if !errors.Is(err, session.ErrNewer) || !strings.Contains(err.Error(), "format 99") || !strings.Contains(err.Error(), fmt.Sprintf("up to %d", newest)) {
		t.Errorf("got %v, want ErrNewer with both versions", err)
	}
}

// Stores that open an empty database at the same moment make it once.
func TestOpenAtOnce(t *testing.T) {
	places(t, func(t *testing.T, where string) {
		var wg sync.WaitGroup
		for n := range 8 {
			wg.Go(func() {
				s, err := openAny(context.Background(), where)
				if err != nil {
					t.Error(err)
					return
				}
				defer s.Close()
				if err := s.Append(context.Background(), fmt.Sprint(n), 0, numbered(0, step(0)...)); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		n := 0
		for _, err := range openHere(t, where).(session.Catalog).List(t.Context(), session.Query{}) {
			if err != nil {
				t.Fatal(err)
			}
			n++
		}
		if n != 8 {
			t.Errorf("%d sessions, want 8", n)
		}
	})
}

// J11: a server that cannot be reached is told at once, since its address may be
// wrong; one who says for how long to try has it tried for that long.
func TestOpenUnreachable(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: waits for a server that does not answer")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var dialled atomic.Int32
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			c.Close()
			if dialled.Add(1) == 20 {
				stop()
			}
		}
	}()
	dsn := "postgres://u@" + l.Addr().String() + "/x?sslmode=disable"
	if _, err := sqlstore.OpenPostgres(ctx, dsn, openPostgres, sqlstore.Options{}); err == nil || ctx.Err() != nil {
		t.Errorf("without a time: %v, after %d tries", err, dialled.Load())
	}
	if _, err := sqlstore.OpenPostgres(ctx, dsn, openPostgres, sqlstore.Options{Retry: time.Hour}); err == nil || ctx.Err() == nil {
		t.Errorf("with a time: %v, after %d tries", err, dialled.Load())
	}
}

// A session that is created with entries does not wait for a deletion or a sweep, unless it has
// blobs.
func TestCreateBesideDeletion(t *testing.T) {
	dsn := postgresDSN(t)
	s := newPostgres(t, dsn)
	db, err := openPostgres(dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	deletion, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := deletion.ExecContext(t.Context(), "SELECT pg_advisory_xact_lock(x'616e746900000001'::bigint)"); err != nil {
		t.Fatal(err)
	}
	made := make(chan error, 1)
	go func() {
		made <- s.Create(t.Context(), session.Info{ID: "s"}, session.Entry{Seq: 1, Body: session.InputItem{Item: item.User("hello")}})
	}()
	select {
	case err = <-made:
	case <-time.After(2 * time.Minute):
		t.Error("it waits for the deletion")
		defer func() { <-made }() // after the deletion
	}
	if wrong := deletion.Rollback(); err != nil || wrong != nil {
		t.Error(err, wrong)
	}
}
