// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/antiphon-go/antiphon/rehearsal"
)

// examples says what a person must see who runs the commands of a README that
// need no model.
var examples = map[string][]string{
	"tour": {"image/png, 3541 bytes", "byte for byte the picture in your message"},
	"review": {
		"`average` now fails for an empty list",
		"`return total(prices) // len(prices)`",
		"# A basket that was left behind has no prices at all.",
		"I read 11 and 12 lines; the folder has 2 files.",
		"The history could not be had: the command failed with exit code 128",
	},
	"describe": {
		"harbour.png: Seen from the pier, shortly before midnight",
		"| harbour.png | image/png | 1124 | fb2cf23dc1712f05f64f85bf8a8f6a403fb934804b399046ae7be947c836cf9e |",
		"| bars.png | image/png | 299 | c01ed44860a900ee487935a1322e2c88bdf633c7f111654cb58b874f81cb34eb |",
	},
	"research": {
		`"It loses four minutes in every week of winter, and none in summer." (clock.txt, line 4 of 5)`,
		`"14 January: took half a cup of salt`,
		"(letters.txt, one of 3 files that I know of)",
		"4. no: no note says that the hands were bent by gulls.",
		"6 of 6 turns are used, subagents included",
	},
	"fix": {
		"Format(9) = VIIII, want IX",
		"nothing was changed, in no file: roman.go, hunk 1",
		"ok  \texample.org/roman",
		"The call was refused: run_command needs an approval",
	},
	"mcp": {
		`Northgate: {"harbour":"Northgate","height":2.3,"time":"14:39"}`,
		`there is no harbour "Atlantis": there are Northgate and Saltholm`,
		"an image of type image/png, ",
		"The flood gate of Saltholm is closed.",
		"The gate is open: The call was refused: close_gate needs an approval",
	},
	"approvals": {
		"Add: The call was refused: append_to_file needs an approval",
		"--allow append_to_file,find_and_replace,run_command lets them run",
		"The list had 2 lines and has 3 now.",
		"The plumber has not come yet.",
		`the arguments of this call were changed before it ran, to: {"command": ["go", "env", "GOVERSION"]} go1.`,
	},
}

// TestExamples runs the commands of the examples' READMEs as they stand there,
// each with its exit code, and looks for what they promise. Those for a real
// model are run against a stand-in that calls no tool: that proves the command
// and the files. Nothing in examples is changed by it.
func TestExamples(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: runs all examples")
	}
	scripts, err := filepath.Glob(filepath.Join(examplesDir, "*", "*.script"))
	folders := map[string]bool{} // of agents; programs have a script inside
	for _, script := range scripts {
		folders[filepath.Dir(script)] = true
	}
	if err != nil || len(folders) != len(examples) {
		t.Errorf("%d examples are agents, %d are listed here: %v", len(folders), len(examples), err)
	}
	for name, promised := range examples {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sh := newShell(t, name)
			for _, c := range sh.commands(t) {
				if c.asks {
					continue
				}
				sh.warned.Reset()
				if strings.HasPrefix(c.line, goRun+"trust ") { // the reader answers y, and here nobody does
					c.line += " --yes"
				}
				switch out, code := sh.run(t, c.line); {
				case code != c.code:
					t.Errorf("%s\nexit code %d, want %d\n%s", c.line, code, c.code, out)
				case !c.real:
					sh.seen.WriteString(out)
				case strings.Contains(out, "the rehearsal model answers"):
					t.Errorf("%s\nis not answered by a real model:\n%s", c.line, out)
				}
				if s := unexpected(sh.warned.String(), c.code); s != "" {
					t.Errorf("%s\nwarns: %s", c.line, s)
				}
			}
			for _, text := range promised {
				if !strings.Contains(sh.seen.String(), text) {
					t.Errorf("nowhere: %q\n%s", text, sh.seen.String())
				}
			}
			sameTree(t, filepath.Join(examplesDir, name), filepath.Join(sh.dir, "examples", name))
		})
	}
}

// TestExamplesHaveNoWarnings: a file that is shown to newcomers has nothing for
// check to warn of.
func TestExamplesHaveNoWarnings(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(examplesDir, "*", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, path := range files {
		if filepath.Base(path) == "README.md" || !strings.Contains(read(t, path), "<system>") {
			continue
		}
		n++
		o := program(t, "check", path)
		warned := slices.ContainsFunc(strings.Split(strings.TrimSpace(o.out), "\n"), func(line string) bool { return line != "" && !strings.HasSuffix(line, "[power]") })
		if o.code != exitOK || warned {
			t.Errorf("%s: exit code %d\n%s%s", path, o.code, o.out, o.err)
		}
	}
	if n < len(examples) {
		t.Errorf("%d agents were checked, of %d examples", n, len(examples))
	}
}

// TestExampleAtTerminal runs the tour of approvals as a person who answers. A4
func TestExampleAtTerminal(t *testing.T) {
	t.Parallel()
	sh := newShell(t, "approvals")
	for _, c := range sh.commands(t) {
		if !c.asks {
			continue
		}
		sh.run(t, "cp -r examples/approvals "+sh.tmp+"/approvals")
		term := openTerminal(t, sh.dir, strings.Replace(c.line, goRun, "antiphon ", 1))
		for _, q := range []struct{ until, keys string }{
			{"?? append_to_file", "y"},
			{"?? find_and_replace", "n not yet"},
			{"?? run_command", "e"},
			{"in place of these:", `{"command": ["go", "env", "GOVERSION"]}`},
		} {
			term.until(t, q.until)
			term.keys(t, q.keys, "Enter")
		}
		screen := term.until(t, "[exit code ")
		for _, text := range []string{"has 3 now", "Take off: The call was refused by the person in charge: not yet.", `"GOVERSION"]} go1.`, "[exit code 0]"} {
			if !strings.Contains(screen, text) {
				t.Errorf("no %q on the screen:\n%s", text, screen)
			}
		}
		return
	}
	t.Error("no command of the README asks")
}

var examplesDir = filepath.Join("..", "..", "examples")

// goRun is how READMEs call the program.
const goRun = "go run ./cmd/antiphon "

// shell runs the commands of one README in a copy of the examples, with a
// folder of its own for /tmp.
type shell struct {
	name, dir, tmp string
	bin            string // what the commands find before all else
	standIn        string // where the real models are
	seen           strings.Builder
	warned         bytes.Buffer // what was on standard error
}

func newShell(t *testing.T, name string) *shell {
	t.Helper()
	goCommand, err := exec.LookPath("go")
	if err != nil {
		t.Skip("needs the go command: not there, so this test is skipped")
	}
	if _, err := exec.LookPath("sh"); err != nil {
		t.Skip("needs a POSIX shell: not there, so this test is skipped")
	}
	// What servers and commands get of the environment does not hold these.
	for _, v := range []string{"GOPATH", "GOMODCACHE", "GOROOT"} {
		if name == "mcp" && os.Getenv(v) != "" {
			t.Skipf("the server of the example is built without %s, which is set: the test is skipped", v)
		}
	}
	sh := &shell{name: name, dir: t.TempDir(), tmp: t.TempDir(), bin: t.TempDir()}
	if err := os.CopyFS(filepath.Join(sh.dir, "examples"), os.DirFS(examplesDir)); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{"go.mod", "go.sum"} {
		write(t, filepath.Join(sh.dir, file), read(t, filepath.Join("..", "..", file)))
	}
	// The program is the one under test; git has the example's change, and no
	// history.
	sh.program(t, "go", `[ "$1 $2" != "run ./cmd/antiphon" ] && exec `+goCommand+` "$@"; shift 2; exec antiphon "$@"`)
	sh.program(t, "git", `[ "$1" = diff ] && exec cat examples/`+name+`/change.diff; exit 128`)
	base, stop, err := new(rehearsal.Server).Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	sh.standIn = base
	return sh
}

// program puts a program in the way of another.
func (sh *shell) program(t *testing.T, name, script string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(sh.bin, name), []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
}

// command is a line of a README.
type command struct {
	line string
	code int  // the exit code that the README says
	real bool // it is for a real model
	asks bool // it is for a person at a terminal
}

var exitCode = regexp.MustCompile(`# exit code (\d+)$`)

// commands returns the lines of the README that are for a shell: a command a
// line.
func (sh *shell) commands(t *testing.T) (list []command) {
	t.Helper()
	open, ours := false, false
	for line := range strings.Lines(read(t, filepath.Join(examplesDir, sh.name, "README.md"))) {
		line = strings.TrimSpace(line)
		if fence, ok := strings.CutPrefix(line, "```"); ok {
			open = !open
			ours = open && (fence == "" || fence == "sh")
			continue
		}
		if !ours || line == "" {
			continue
		}
		c := command{
			line: strings.ReplaceAll(line, "/tmp/", sh.tmp+"/"),
			real: strings.Contains(line, " --model ") || strings.Contains(line, " --base-url "),
		}
		c.line, c.asks = strings.CutSuffix(c.line, "# asks you")
		if m := exitCode.FindStringSubmatch(line); m != nil {
			c.code, _ = strconv.Atoi(m[1])
		}
		list = append(list, c)
	}
	if len(list) == 0 {
		t.Fatal("the README has no command")
	}
	return list
}

// run runs a command line and returns what it printed and its exit code.
func (sh *shell) run(t *testing.T, line string) (out string, code int) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "sh", "-c", strings.ReplaceAll(localEndpoint.ReplaceAllLiteralString(line, sh.standIn), "sk-…", testKey))
	cmd.Dir = sh.dir
	cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool {
		return strings.HasPrefix(v, "OPENAI_") || strings.HasPrefix(v, "ANTIPHON_") || strings.HasPrefix(v, "PATH=")
	})
	cmd.Env = append(cmd.Env, "PATH="+sh.bin+string(filepath.ListSeparator)+os.Getenv("PATH"))
	if strings.Contains(line, "OPENAI_API_KEY=") {
		cmd.Env = append(cmd.Env, "OPENAI_BASE_URL="+sh.standIn)
	}
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &sh.warned
	err := cmd.Run()
	text := said.String() + sh.warned.String() // not as they came, which might take a line apart
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatalf("%s: %v\n%s", line, err, text)
	}
	return text, cmd.ProcessState.ExitCode()
}

// unexpected returns what the program says on standard error beside who answers,
// a server that is still being built, and what the run does. The last line of a
// run that does not end well is expected.
func unexpected(text string, code int) string {
	var list []string
	lines := strings.Split(strings.TrimSpace(text), "\n")
	for i, line := range lines {
		known := strings.Contains(line, " answers (") || strings.Contains(line, "is still being started") || code != 0 && i == len(lines)-1
		if strings.HasPrefix(line, "antiphon: ") && !known || strings.HasSuffix(line, "[warning]") {
			list = append(list, line)
		}
	}
	return strings.Join(list, "\n")
}

var localEndpoint = regexp.MustCompile(`http://localhost:\d+/v1`)

// sameTree proves that two folders hold the same files.
func sameTree(t *testing.T, want, got string) {
	t.Helper()
	if a, b := tree(t, want), tree(t, got); a != b {
		t.Errorf("the example was changed:\n%s\nwas\n%s", b, a)
	}
}

func tree(t *testing.T, dir string) string {
	t.Helper()
	var all strings.Builder
	err := fs.WalkDir(os.DirFS(dir), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(filepath.Join(dir, path))
		fmt.Fprintf(&all, "%s %q\n", path, text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all.String()
}
