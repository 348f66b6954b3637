// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package sqlstore_test

import (
	"bufio"
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/session/sqlstore"
)

// TestMain is the children of the tests, too: they write to a store until they
// are killed.
func TestMain(m *testing.M) {
	if what := os.Getenv("ANTIPHON_TEST_CHILD"); what != "" {
		if err := child(what, os.Getenv("ANTIPHON_TEST_STORE")); err != nil {
			fmt.Println("error:", err)
			os.Exit(1)
		}
		return
	}
	goleak.VerifyTestMain(m)
}

func openAny(ctx context.Context, where string) (*sqlstore.Store, error) {
	if strings.HasPrefix(where, "host=") {
		return sqlstore.OpenPostgres(ctx, where+unsafe, openPostgres, fast)
	}
	return sqlstore.OpenSQLite(ctx, where, openSQLite, fast)
}

// child does what its parent wants and says each step when it is done.
func child(what, where string) error {
	ctx := context.Background()
	if what == "limited" {
		if err := limitFiles(300_000); err != nil {
			return err
		}
	}
	s, err := openAny(ctx, where)
	if err != nil {
		return err
	}
	defer s.Close()
	if what == "backup" {
		fmt.Println("begins")
		_, err := s.Backup(ctx, where+".backup")
		return err
	}
	log, err := session.Open(ctx, s, "a")
	if err != nil {
		return err
	}
	if _, err := log.Lock(ctx); err != nil {
		return err
	}
	fmt.Println("locked")
	if what == "hold" {
		_, err := bufio.NewReader(os.Stdin).ReadString('\n')
		return err
	}
	for {
		e, err := log.Append(ctx, step(len(log.Log()))...)
		if err != nil {
			return err
		}
		fmt.Println(e[len(e)-1].Seq)
	}
}

// process is a child that is running.
type process struct {
	*exec.Cmd
	lines *bufio.Scanner
}

func start(t *testing.T, what, where string) *process {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "ANTIPHON_TEST_CHILD="+what, "ANTIPHON_TEST_STORE="+where)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p := &process{cmd, bufio.NewScanner(out)}
	t.Cleanup(func() {
		_ = in.Close()
		p.kill()
	})
	return p
}

// line returns the next thing that the child says.
func (p *process) line(t *testing.T) string {
	t.Helper()
	if !p.lines.Scan() {
		t.Fatalf("the child has ended: %v", p.lines.Err())
	}
	return p.lines.Text()
}

// kill ends the child as a crash does, and returns what else it said.
func (p *process) kill() (rest []string) {
	if p.ProcessState != nil {
		return nil
	}
	_ = p.Process.Kill() // it may have ended by itself
	for p.lines.Scan() {
		rest = append(rest, p.lines.Text())
	}
	_ = p.Wait() // it was killed
	return rest
}

// spy is a driver around another that tells of each statement before it runs.
type spy struct {
	driver.Connector
	before func(query string) error

	mu  sync.Mutex
	all []string
}

// open is an Opener by way of the spy.
func (s *spy) open(dsn string) (*sql.DB, error) {
	db, err := openSQLite(dsn)
	if err != nil {
		return nil, err
	}
	defer db.Close()
	s.Connector = connector{db.Driver(), dsn}
	return sql.OpenDB(s), nil
}

type connector struct {
	driver driver.Driver
	dsn    string
}

func (c connector) Connect(context.Context) (driver.Conn, error) { return c.driver.Open(c.dsn) }
func (c connector) Driver() driver.Driver                        { return c.driver }

func (s *spy) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := s.Connector.Connect(ctx)
	return &spyConn{conn, s}, err
}

func (s *spy) see(query string) error {
	s.mu.Lock()
	s.all = append(s.all, query)
	before := s.before
	s.mu.Unlock()
	if before != nil {
		return before(query)
	}
	return nil
}

func (s *spy) watch(before func(query string) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.before, s.all = before, nil
}

func (s *spy) count(query string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(slices.DeleteFunc(slices.Clone(s.all), func(q string) bool { return q != query }))
}

type spyConn struct {
	driver.Conn
	spy *spy
}

func (c *spyConn) PrepareContext(ctx context.Context, query string) (driver.Stmt, error) {
	stmt, err := c.Conn.(driver.ConnPrepareContext).PrepareContext(ctx, query)
	if err != nil {
		return nil, err
	}
	return &spyStmt{stmt, query, c.spy}, nil
}

type spyStmt struct {
	driver.Stmt
	query string
	spy   *spy
}

func (s *spyStmt) ExecContext(ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
	if err := s.spy.see(s.query); err != nil {
		return nil, err
	}
	return s.Stmt.(driver.StmtExecContext).ExecContext(ctx, args)
}

func (s *spyStmt) QueryContext(ctx context.Context, args []driver.NamedValue) (driver.Rows, error) {
	if err := s.spy.see(s.query); err != nil {
		return nil, err
	}
	return s.Stmt.(driver.StmtQueryContext).QueryContext(ctx, args)
}

var errSpy = errors.New("the disk failed")
