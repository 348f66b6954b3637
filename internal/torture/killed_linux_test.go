// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package torture

import (
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/session/sqlstore"
)

// cluster is a Postgres server of the test's own, which it kills.
type cluster struct {
	bin, dir string
	as       *syscall.SysProcAttr
	server   *exec.Cmd
}

// newCluster makes one. The programs are where .ci/postgres says.
func newCluster(t *testing.T) *cluster {
	t.Helper()
	c := newFolder(t)
	c.do(t, "initdb", "-D", c.data(), "-U", "antiphon", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync")
	c.start(t)
	return c
}

// standby makes another server that follows this one.
func (c *cluster) standby(t *testing.T) *cluster {
	t.Helper()
	s := newFolder(t)
	s.do(t, "pg_basebackup", "-D", s.data(), "-h", c.dir, "-U", "antiphon", "-R", "--no-sync", "-c", "fast")
	s.start(t)
	return s
}

// newFolder makes the folder of a server, which ends with the test.
func newFolder(t *testing.T) *cluster {
	t.Helper()
	c := &cluster{bin: os.Getenv("ANTIPHON_POSTGRES_BIN")}
	if c.bin == "" {
		t.Skip("wants the programs of Postgres: ANTIPHON_POSTGRES_BIN, which .ci/postgres sets: skipped")
	}
	var err error
	if c.dir, err = os.MkdirTemp("", "antiphon-cluster-"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.kill(t)
		if err := os.RemoveAll(c.dir); err != nil {
			t.Error(err)
		}
	})
	if os.Getuid() == 0 { // Postgres refuses to run as root
		c.as = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		if err := os.Chown(c.dir, 65534, 65534); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

// do runs a program of Postgres.
func (c *cluster) do(t *testing.T, program string, args ...string) {
	t.Helper()
	if out, err := c.command(program, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v: %s", program, err, out)
	}
}

// sql performs statements, one after the other.
func (c *cluster) sql(t *testing.T, statements ...string) {
	t.Helper()
	for _, statement := range statements {
		c.do(t, "psql", "-h", c.dir, "-U", "antiphon", "-d", "postgres", "-q", "-c", statement)
	}
}

func (c *cluster) data() string { return filepath.Join(c.dir, "data") }
func (c *cluster) dsn() string {
	return "host=" + c.dir + " user=antiphon dbname=postgres antiphon_unsafe=fsync"
}

func (c *cluster) command(program string, args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(c.bin, program), args...)
	cmd.Dir, cmd.SysProcAttr, cmd.Env = c.dir, c.as, append(os.Environ(), "HOME="+c.dir)
	return cmd
}

// start starts the server, also after it was killed, and waits until it answers.
// It writes its log late by itself, so that a commit that does not wait is lost.
func (c *cluster) start(t *testing.T) {
	t.Helper()
	for range 100 {
		if c.server == nil {
			c.server = c.command("postgres", "-D", c.data(), "-k", c.dir, "-c", "listen_addresses=", "-c", "fsync=off", "-c", "wal_writer_delay=10000", "-c", "max_connections=50")
			if err := c.server.Start(); err != nil {
				t.Fatal(err)
			}
		}
		for range 50 {
			if c.command("pg_isready", "-q", "-h", c.dir, "-U", "antiphon", "-d", "postgres").Run() == nil {
				return
			}
			if stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", c.server.Process.Pid)); err != nil || strings.Contains(string(stat), ") Z ") {
				_ = c.server.Wait() // the memory of the one that was killed was still in use
				c.server = nil
				break
			}
			time.Sleep(50 * time.Millisecond)
		}
		if c.server == nil {
			time.Sleep(50 * time.Millisecond)
		}
	}
	t.Fatal("the server does not start")
}

// kill kills the server with all its processes.
func (c *cluster) kill(t *testing.T) {
	if c.server == nil {
		return
	}
	pid := c.server.Process.Pid
	_ = syscall.Kill(pid, syscall.SIGSTOP) // so that it starts no others
	children, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	if err != nil {
		t.Error(err)
	}
	for _, child := range strings.Fields(string(children)) {
		if n, err := strconv.Atoi(child); err == nil {
			_ = syscall.Kill(n, syscall.SIGKILL)
		}
	}
	_ = syscall.Kill(pid, syscall.SIGKILL)
	_ = c.server.Wait() // it was killed
	c.server = nil
}

// J10 J11: a server whose database, role and settings say synchronous_commit=off
// is killed again and again. What was announced is there, once, and those who
// write go on by themselves.
func TestServerKilledOnPostgres(t *testing.T) {
	c := newCluster(t)
	admin, err := sql.Open("pgx", "host="+c.dir+" user=antiphon dbname=postgres")
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close()
	for _, statement := range []string{"ALTER DATABASE postgres SET synchronous_commit = off", "ALTER ROLE antiphon SET synchronous_commit = off"} {
		if _, err := admin.Exec(statement); err != nil {
			t.Fatal(err)
		}
	}
	_ = admin.Close()
	s, err := sqlstore.OpenPostgres(t.Context(), c.dsn(), func(dsn string) (*sql.DB, error) { return sql.Open("pgx", dsn) }, sqlstore.Options{Retry: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	const writers, rounds = 4, 6
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var wg sync.WaitGroup
	announced := make([][]session.Entry, writers)
	for w := range writers {
		wg.Go(func() {
			log, err := session.Open(context.WithoutCancel(ctx), s, fmt.Sprint("s", w))
			for err == nil && ctx.Err() == nil {
				_, err = log.Append(context.WithoutCancel(ctx), session.InputItem{Item: item.User(fmt.Sprintf("writer %d, entry %d", w, len(log.Log())+1))})
			}
			if err != nil {
				t.Error(err)
			}
			announced[w] = log.Log()
		})
	}
	for range rounds {
		time.Sleep(time.Duration(100+rand.IntN(200)) * time.Millisecond)
		c.kill(t)
		c.start(t)
	}
	stop()
	wg.Wait()
	c.kill(t) // what was announced last is not in the server's memory only
	c.start(t)
	total := 0
	for w, want := range announced {
		again, err := session.Open(t.Context(), s, fmt.Sprint("s", w))
		if err != nil {
			t.Fatal(err)
		}
		if got := again.Log(); len(got) != len(want) {
			t.Errorf("writer %d: %d entries are there, %d were announced", w, len(got), len(want))
		}
		total += len(want)
	}
	t.Logf("%d entries were announced in %d kills", total, rounds+1)
	if total < rounds {
		t.Error("that is too little to prove anything")
	}
}
