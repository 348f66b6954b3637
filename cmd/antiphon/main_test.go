// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"flag"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
)

// TestMain makes the program a command of the test scripts, and of the tests
// that need a process of its own.
func TestMain(m *testing.M) {
	// Under the race detector a process waits a second before it exits.
	os.Setenv("GORACE", strings.TrimSpace(os.Getenv("GORACE")+" atexit_sleep_ms=0"))
	testscript.Main(atHome{m}, map[string]func(){"antiphon": theProgram})
}

// theProgram is main, in a process of its own. On some systems, tests can take something away first.
var theProgram = main

// atHome runs the tests with a home folder of their own: the program writes an audit
// log there.
type atHome struct{ *testing.M }

func (m atHome) Run() int {
	likeAnywhere()
	home, err := os.MkdirTemp("", "antiphon-home-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(home)
	for _, name := range []string{"GOCACHE", "GOMODCACHE", "GOPATH"} { // which are in the home folder otherwise
		if out, err := exec.Command("go", "env", name).Output(); err == nil {
			os.Setenv(name, strings.TrimSpace(string(out)))
		}
	}
	os.Setenv("HOME", home)
	os.Setenv("USERPROFILE", home)
	// The tests mostly wait for programs and terminals, so more of them run at once than
	// there are processors, unless -parallel says how many.
	flag.Parse()
	said := false
	flag.Visit(func(f *flag.Flag) { said = said || f.Name == "test.parallel" })
	if !said {
		if err := flag.Set("test.parallel", strconv.Itoa(2*runtime.GOMAXPROCS(0))); err != nil {
			panic(err)
		}
	}
	return m.M.Run()
}

// likeAnywhere takes away what differs between machines: tables and pictures show names of temporary folders, whose
// length counts, and a process that was started with nohup ignores hangups, as its children do then.
func likeAnywhere() {
	if dir, err := os.MkdirTemp("/tmp", "antiphon-"); err == nil && runtime.GOOS == "linux" {
		_ = os.Remove(dir)
		os.Setenv("TMPDIR", "/tmp")
		os.Unsetenv("GOTMPDIR")
	}
	if signal.Ignored(syscall.SIGHUP) {
		signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP) // children do not inherit it
	}
}

// TestScripts runs the program as a person does. The tour is in each script's
// folder; $TESTKEY stands in for a key.
func TestScripts(t *testing.T) {
	dir := filepath.Join("testdata", "script")
	var files []string // if nil, all of dir
	if testing.Short() {
		for _, name := range []string{"tour", "prompt", "nested", "limits"} {
			files = append(files, filepath.Join(dir, name+".txtar"))
		}
		dir = ""
	}
	testscript.Run(t, testscript.Params{
		Dir:                 dir,
		Files:               files,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		UpdateScripts:       *update,
		Setup: func(env *testscript.Env) error {
			env.Setenv("HOME", env.WorkDir)
			env.Setenv("USERPROFILE", env.WorkDir)
			env.Setenv("TESTKEY", testKey)
			env.Setenv("GORACE", os.Getenv("GORACE"))
			return os.CopyFS(filepath.Join(env.WorkDir, "tour"), os.DirFS(tourDir))
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits":     exits,
			"jsonlines": jsonLinesOf,
			"sha256":    sha256Of,
			"edit":      edit,
			"cut":       cut,
			"prefix":    prefix,
		},
	})
}

var update = flag.Bool("update", false, "write what commands print into the scripts that compare it")

var tourDir = filepath.Join("..", "..", "examples", "tour")

// exits CODE COMMAND… runs a command that must end with the code.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	code := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		var exit *exec.ExitError
		if !errors.As(err, &exit) {
			ts.Fatalf("%v", err)
		}
		code = exit.ExitCode()
	}
	if code != want {
		ts.Fatalf("exit code %d, want %d", code, want)
	}
}

// jsonlines FILE [EVENT…] checks that the file's lines are objects that begin
// with the member event, and that the events named are among them.
func jsonLinesOf(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 {
		ts.Fatalf("usage: jsonlines FILE [EVENT...]")
	}
	seen, problem := eventLines(ts.ReadFile(args[0]))
	if problem != "" {
		ts.Fatalf("%s", problem)
	}
	for _, name := range args[1:] {
		if seen[name] == 0 {
			ts.Fatalf("no event %s, only %v", name, seen)
		}
	}
}

// eventLines counts the events of JSON lines.
func eventLines(text string) (seen map[string]int, problem string) {
	seen = map[string]int{}
	for line := range strings.Lines(text) {
		it, err := item.ParseString(strings.TrimSuffix(line, "\n"))
		ev, readErr := agent.ParseEvent([]byte(line))
		if err != nil || readErr != nil || !strings.HasSuffix(line, "}\n") {
			return nil, "no line of an event: " + line
		}
		if value, _ := it.Member("type"); !strings.HasPrefix(line, `{"type":`+string(value)) {
			return nil, "two events in a line: " + line
		}
		switch ev := ev.(type) {
		case agent.Recorded:
			seen[session.Kind(ev.Body)]++
		case agent.Delta:
			seen["delta."+string(ev.Kind)]++
		case agent.Progress:
			seen["progress."+string(ev.Kind)]++
		case agent.SubagentEvent:
			seen["subagent"]++
		}
	}
	return seen, ""
}

// sha256 FILE NAME sets a variable to the hash of a file, in hexadecimal.
func sha256Of(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: sha256 FILE NAME")
	}
	sum := sha256.Sum256([]byte(ts.ReadFile(args[0])))
	ts.Setenv(args[1], hex.EncodeToString(sum[:]))
}

// edit FILE TEXT appends a line to a file, as somebody with an editor does.
func edit(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: edit FILE TEXT")
	}
	name := ts.MkAbs(args[0])
	old, err := os.ReadFile(name)
	ts.Check(err)
	ts.Check(os.WriteFile(name, append(bytes.Clone(old), args[1]+"\n"...), 0o644))
}

// cut FILE N takes the last N bytes from a file.
func cut(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: cut FILE N")
	}
	n, err := strconv.Atoi(args[1])
	ts.Check(err)
	text := ts.ReadFile(args[0])
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(text[:len(text)-n]), 0o644))
}

// prefix A B checks that file B begins with what is in file A, and has more.
func prefix(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: prefix A B")
	}
	a, b := ts.ReadFile(args[0]), ts.ReadFile(args[1])
	if len(b) <= len(a) || b[:len(a)] != a {
		ts.Fatalf("%s does not begin with %s, or has no more", args[1], args[0])
	}
}
