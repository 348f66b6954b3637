// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package shell

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/antiphon-go/antiphon/session"
)

// enoughShells is how many shells the comparison needs to mean something: they
// are of different families, and /bin/sh may be any of them.
const enoughShells = 4

// realShell is one shell to run scripts with. Its first argument is what it is
// called, which some shells go by.
type realShell struct {
	name, path string
	argv       []string
}

// realShells returns the shells of this machine that may be somebody's /bin/sh.
func realShells() (found []realShell) {
	for _, s := range []struct {
		program string
		argv    []string
	}{
		{"dash", []string{"dash"}},
		{"bash", []string{"bash"}},
		{"bash", []string{"bash", "--posix"}},
		{"bash", []string{"sh"}},
		{"busybox", []string{"busybox", "ash"}},
		{"busybox", []string{"sh"}},
		{"mksh", []string{"mksh"}},
		{"mksh", []string{"sh"}},
		{"ksh93", []string{"ksh93"}},
		{"posh", []string{"posh"}},
		{"posh", []string{"sh"}},
		{"yash", []string{"yash"}},
		{"yash", []string{"sh"}},
		{"zsh", []string{"zsh", "--emulate", "sh"}},
		{"zsh", []string{"sh"}},
	} {
		if path, err := exec.LookPath(s.program); err == nil {
			name := strings.Join(s.argv, " ")
			if s.argv[0] != s.program {
				name = s.program + " as " + name
			}
			found = append(found, realShell{name, path, s.argv})
		}
	}
	return found
}

// families counts programs, not the ways to call them.
func families(shells []realShell) int {
	var paths []string
	for _, s := range shells {
		paths = append(paths, s.path)
	}
	slices.Sort(paths)
	return len(slices.Compact(paths))
}

// arena is where scripts run: an empty folder, and a PATH of programs that only
// write down how they were called.
type arena struct {
	bin, work, log string
	shells         []realShell
}

// recorders are the names of programs that write down their arguments. Those in
// the second half fail.
var recorders = []string{"p1", "p2", "p3", "ls", "p4", "p5"}

func newArena(t testing.TB) *arena {
	t.Helper()
	a := &arena{shells: realShells()}
	if n := families(a.shells); n < enoughShells {
		t.Skipf("%d shells are installed, the comparison needs %d of: dash, bash, busybox, mksh, ksh93, posh, yash, zsh", n, enoughShells)
	}
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	a.bin, a.work, a.log = filepath.Join(dir, "bin"), filepath.Join(dir, "a", "b", "c", "d", "work"), filepath.Join(dir, "log")
	for i, name := range recorders {
		text := fmt.Sprintf("#!/bin/sh\ns=%s\nfor a; do s=$s\x1f$a; done\nprintf '%%s\\036' \"$s\" >>%s\nexit %d\n", name, a.log, i/4)
		writeFile(t, filepath.Join(a.bin, name), text, 0o755)
	}
	for _, name := range []string{"env", "xargs", "find", "timeout", "nice", "nohup", "sh", "bash", "dash"} {
		if real, err := exec.LookPath(name); err == nil {
			if err := os.Symlink(real, filepath.Join(a.bin, name)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if real, err := exec.LookPath("busybox"); err == nil {
		if err := os.Symlink(real, filepath.Join(a.bin, "ash")); err != nil { // A8: the ash that most have
			t.Fatal(err)
		}
	}
	writeFile(t, a.log, "", 0o666)
	if err := os.MkdirAll(a.work, 0o755); err != nil {
		t.Fatal(err)
	}
	if os.Getuid() == 0 {
		os.Chown(a.work, nobody, nobody)
		os.Chmod(a.log, 0o666)
		os.Chmod(dir, 0o755)
		os.Chmod(filepath.Dir(dir), 0o755) // t's own folder, which is closed to others
	}
	return a
}

// nobody runs the scripts where the tests run as root, so that a script that no
// generator meant to write cannot do more than anybody can.
const nobody = 65534

func writeFile(t testing.TB, path, text string, mode os.FileMode) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
}

// run returns how programs were called by a script in one shell.
func (a *arena) run(t testing.TB, s realShell, script, locale string) (calls [][]string) {
	t.Helper()
	if err := os.WriteFile(a.log, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	cmd := &exec.Cmd{
		Path: s.path, Args: slices.Concat(s.argv, []string{"-c", script}), Dir: a.work,
		Env:   []string{"PATH=" + a.bin, "HOME=" + a.work, "LC_ALL=" + locale},
		Stdin: null, Stdout: null, Stderr: null, // files, so that nobody waits for what is left in the background
		SysProcAttr: &syscall.SysProcAttr{Setsid: true},
	}
	if os.Getuid() == 0 {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: nobody, Gid: nobody}
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	late := time.AfterFunc(5*time.Second, func() { syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) })
	cmd.Wait()
	late.Stop()
	if strings.ContainsRune(script, '&') {
		time.Sleep(20 * time.Millisecond) // what is in the background may come late; then it is not seen, which is not a failure
	}
	syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	data, err := os.ReadFile(a.log)
	if err != nil {
		t.Fatal(err)
	}
	for call := range strings.SplitSeq(string(data), "\x1e") {
		if call != "" {
			calls = append(calls, strings.Split(call, "\x1f"))
		}
	}
	return calls
}

// sees reports whether a command that was run is one that was read.
func sees(read []simple, argv []string) bool {
	return slices.ContainsFunc(read, func(c simple) bool { return len(c.words) > 0 && matches(c.words, c.open, argv) })
}

func matches(words []word, open bool, argv []string) bool {
	if len(words) == 0 {
		return open || len(argv) == 0
	}
	w := words[0]
	if w.unknown && (w.many || strings.Contains(w.text, "{}")) {
		for n := range len(argv) + 1 {
			if matches(words[1:], open, argv[n:]) {
				return true
			}
		}
		return false
	}
	return len(argv) > 0 && (w.unknown || baseName(w.text) == argv[0] || w.text == argv[0]) && matches(words[1:], open, argv[1:])
}

// compare runs a script that the policy believes to understand, in all shells,
// and returns what ran otherwise than it was read.
func (a *arena) compare(t testing.TB, script, locale string) (wrong []string, ran bool) {
	t.Helper()
	q := inquireScript(script)
	if len(q.unclear) > 0 || forbidden(script) {
		return nil, false
	}
	by := map[string][]string{} // what ran, and in which shells
	for _, s := range a.shells {
		for _, argv := range a.run(t, s, script, locale) {
			if !sees(q.commands, argv) {
				call := fmt.Sprintf("%q", argv)
				by[call] = append(by[call], s.name)
			}
		}
	}
	for _, call := range slices.Sorted(maps.Keys(by)) {
		wrong = append(wrong, fmt.Sprintf("%s ran in %s", call, strings.Join(by[call], ", ")))
	}
	return wrong, true
}

// forbidden keeps scripts out that could reach beyond the arena.
func forbidden(script string) bool {
	if strings.ContainsAny(strings.ReplaceAll(script, "/dev/null", ""), "/\x00") || strings.Contains(script, "..") && !strings.Contains(script, "{a..c}") {
		return true
	}
	return slices.ContainsFunc([]string{"kill", "~r", "~n", "OLDPWD", "ulimit", "suspend", "logout"}, func(s string) bool { return strings.Contains(script, s) })
}

// A8: no shell runs a command that the policy did not see,
// with other arguments than it saw, unless it said that it cannot tell. The
// first scripts are always the same; ANTIPHON_SHELL_FUZZ is for how long to go on
// with others.
func TestCommandAgainstShells(t *testing.T) {
	a := newArena(t)
	for _, script := range slices.Concat(misread, computed) {
		if wrong, _ := a.compare(t, script, "C.UTF-8"); len(wrong) > 0 {
			t.Errorf("%q:\n\t%s", script, strings.Join(wrong, "\n\t"))
		}
	}
	count := 400
	if testing.Short() {
		count = 100
	}
	scripts := make(chan uint64)
	go func() {
		defer close(scripts)
		for seed := range uint64(count) {
			scripts <- seed
		}
		more, _ := time.ParseDuration(os.Getenv("ANTIPHON_SHELL_FUZZ"))
		for end := time.Now().Add(more); more > 0 && time.Now().Before(end); {
			scripts <- rand.Uint64()
		}
	}()
	ran, all := 0, 0
	var mu sync.Mutex
	var workers sync.WaitGroup
	for range 2 {
		a := newArena(t)
		workers.Go(func() {
			for seed := range scripts {
				script, locale := generated(seed)
				wrong, did := a.compare(t, script, locale)
				mu.Lock()
				all++
				if did {
					ran++
				}
				mu.Unlock()
				if len(wrong) > 0 {
					t.Errorf("seed %d: %q:\n\t%s", seed, script, strings.Join(wrong, "\n\t"))
				}
			}
		})
	}
	workers.Wait()
	t.Logf("%d of %d scripts were run by %d shells", ran, all, len(a.shells))
}

func generated(seed uint64) (script, locale string) {
	g := &scriptMaker{rand.New(rand.NewPCG(seed, 1))}
	return g.script(), []string{"C", "C.UTF-8"}[seed%2]
}

// FuzzCommandAgainstShells is the same property for the fuzzer, which learns
// from the parser's coverage.
func FuzzCommandAgainstShells(f *testing.F) {
	for _, script := range misread {
		f.Add(script)
	}
	for seed := range uint64(20) {
		script, _ := generated(seed)
		f.Add(script)
	}
	a := newArena(f)
	f.Fuzz(func(t *testing.T, script string) {
		if len(script) > 300 {
			return
		}
		if wrong, _ := a.compare(t, script, "C.UTF-8"); len(wrong) > 0 {
			t.Errorf("%q:\n\t%s", script, strings.Join(wrong, "\n\t"))
		}
	})
}

// misread are scripts that the parser of the policy reads otherwise than some
// shell: each was found by this test or by hand.
var misread = []string{
	"ls a # list it \\\np1 b",
	"p5 #\\ #\\\np3 a=b",
	"ls a \\\r\np1 b",
	"ls a\r\np1 b",
	"ls a\\\x00\np1",
	"ls a \\\n#b\\\np1",
	"ls a <<E\nb \\\nE\np1\nE",
	"ls a <<é\né\np1 b\né",
	"ls \\\\\\\np1",
	"ls a \\",  // a backslash at the end is kept by some and dropped by others
	"ls >&-p1", // bash closes the stream, and p1 is an argument, or the program
	">&-p1 ls a",
	"ls 2>&-p1",
	"p2 a<&-p1",
	"ls 12<&0",               // dash takes the number for an argument
	"LANGé=a p1",             // an assignment to ksh93 and yash, a program to the others
	"ls a\u3000p1",           // yash takes any blank of Unicode for one
	"exec -a ls p1 b",        // busybox runs ls
	"ls a\u00a0b; ls \u0085", // blanks of some locales
	"ls a\vb",
	"ls \xff",
	"p2 3>&-p$x p1",
	"ls a=b >&! p1 b", // zsh has more operators, here and below
	"ls >!a p1",
	"p2 [[ a && p1 b",
	"p1 $(p2 #) a$(p5||\np1 b)", // posh ends the first substitution in its comment
	"p1 $(p2 # it's\n) $(p3 'b)')",
	"a: p1 b", // a label and a program to ksh93
	"if a.b: p1 b; then p2; fi",
	"a: b: X=1 p1",
	"p2 $${ >f; }p1 a\"}\"",
	"cat <<E\n${x:-'$(p1)'}\nE", // quotes do not quote there
	"ls \"${x:-'$(p1)'}\"",
	"ls \"${x:-${y:-'$(p1)'}}\"",
	"ls a \\\n\\\np1 b",   // ksh93 begins a command at the second
	"ls a &!p1",           // zsh takes &! for an operator
	"( ls 'a'# ; p1 b\n)", // the parser takes the rest of the line for a comment, here and below
	"echo \"$(ls $x# ; p1 b\n)\"",
	"ls; (ls \"$x\"# ; p1 b\n)",
	"case a in a) ls ${x}# ; p1 b\n;; esac",
	"x=$(ls; y='a'#; p1 b\n)",
	"cat <<E\n$(ls 'a'# ; p1 b\n)\nE",
	"sh +c 'p1 b'", // +c is -c to most shells, and says that a file follows to the others
	"ls; bash -e +xc 'p1 b'",
	"sh 'p1 b'", // ksh93 runs the name of a file that is not there
	"dash -e 'p1;p2'",
	"ls >&'$(p1)'", // bash expands the name of the file twice
	"ls 1>& \\`p1\\`",
	"ls >&'<(p1)'",
	"x='$(p1)'; { ls; } >&\"$x\"",
}

// computed are scripts that set a variable whose value some shell computes, and
// so runs.
var computed = []string{
	"COLUMNS='a[$(p1)]' ls",
	"LINES='a[$(p1)]'; ls",
	"readonly LINES='a[$(p1)]'; ls",
	"for COLUMNS in 'a[$(p1)]'; do ls; done",
	"USER_ID='a[$(p1)]' ls",
	"PGRP='a[$(p1)]'; ls",
}

// A8: a variable is not set to what a shell would run.
func TestCommandComputed(t *testing.T) {
	_, in := policyKit(t)
	p := Policy{Allow: []Rule{{"*"}}, Deny: ruleSet(t, "rm")}
	for _, script := range computed {
		if got, reason := p.judge(inquireScript(script), in); got != Asked {
			t.Errorf("%q: %q (%s)", script, got, reason)
		}
	}
	for _, script := range []string{"COLUMNS=80 ls", "LINES=24; ls", "COLUMNS= ls", "env COLUMNS=80 ls", "COLUMNS=$? ls"} {
		if got, reason := p.judge(inquireScript(script), in); got != Allowed {
			t.Errorf("%q: %q (%s)", script, got, reason)
		}
	}
}

// A8: what may be read in two ways is never allowed by a rule, is refused under
// rules that forbid, and asked about under those that want that.
func TestCommandMisread(t *testing.T) {
	_, in := policyKit(t)
	everything := []Rule{{"*"}}
	for _, script := range misread {
		for _, c := range []struct {
			p    Policy
			want session.Verdict
		}{
			{Policy{Allow: everything}, Unruled},
			{Policy{Allow: everything, Ask: ruleSet(t, "git push")}, Asked},
			{Policy{Allow: everything, Deny: ruleSet(t, "rm")}, Denied},
		} {
			for _, q := range []*inquiry{inquireScript(script), inquireArgv([]string{"bash", "-c", script}), inquireScript("sh -c " + quotedAs("\"", script))} {
				if got, reason := c.p.judge(q, in); got != c.want {
					t.Errorf("%q: %q (%s), want %q", script, got, reason, c.want)
				}
			}
		}
	}
	for _, script := range []string{"ls a \\\n  b", "ls 'a # b' # c", "( ls '#1' \"#$x\" ${x#a} $# a#b # c\n)", "ls # c\nls #d\n#e", "ls \"$(ls '#a' # b\n)\"", "for x in a; do # c\n ls # d\ndone # e", "ls é 日本 'ä ß'", "ls 2>&1 >&2 2>&-", "ls a\\\\ b", "ls \\\n-l \\\na && cat b"} {
		if got, reason := (Policy{Allow: everything, Deny: ruleSet(t, "rm")}).judge(inquireScript(script), in); got != Allowed {
			t.Errorf("%q: %q (%s)", script, got, reason)
		}
	}
}

// scriptMaker writes scripts that are mostly right, in the corners of the
// language.
type scriptMaker struct{ *rand.Rand }

func (g *scriptMaker) of(texts ...string) string { return texts[g.IntN(len(texts))] }

func (g *scriptMaker) script() string {
	s := g.list(3)
	for range g.IntN(4) - 1 {
		s = g.mutated(s)
	}
	return s
}

func (g *scriptMaker) mutated(s string) string {
	if s == "" {
		return s
	}
	at := g.IntN(len(s) + 1)
	switch g.IntN(4) {
	case 0: // take something out
		end := min(len(s), at+1+g.IntN(3))
		return s[:at] + s[end:]
	case 1: // twice
		end := min(len(s), at+1+g.IntN(8))
		return s[:end] + s[at:]
	}
	return s[:at] + scriptPieces[g.IntN(len(scriptPieces))] + s[at:]
}

// scriptPieces are put into scripts at random places.
var scriptPieces = strings.Split("\\\x00\\\n\x00\\\\\n\x00\n\x00\r\x00\r\n\x00\\\r\n\x00#\x00 #\x00 # x\n\x00 # x \\\n\x00;\x00&\x00|\x00&&\x00||\x00;;\x00;&\x00|&\x00&>\x00&>>\x00>&\x00<&\x00<>\x00>|\x00<<<\x00<<E\x00\nE\n\x00<<-'E'\n\x00<(\x00>(\x00(\x00)\x00{\x00}\x00{ \x00; }\x00((\x00))\x00[[\x00]]\x00[\x00]\x00'\x00\"\x00`\x00$\x00$'\x00$\"\x00$(\x00${\x00$((\x00$[\x00\\'\x00\\\"\x00!\x00! \x00^\x00=\x00~\x00*\x00?\x00@(\x00+(\x00!(\x00,\x00%\x00:\x00-\x00 -- \x00\t\x00\v\x00\f\x00\b\x00\x1b\x00\x7f\x00\u00a0\x00\u0085\x00\u2028\x00\u3000\x00\u200b\x00\ufeff\x00é\x00à\x00\xa0\x00\x80\x00\xff\x00ä ß\x00 if \x00 then \x00 fi \x00 do \x00 done \x00 in \x00 esac \x00 time \x00 coproc \x00 function \x00 select \x00 repeat 1 \x00 exec \x00 command \x00 builtin \x00 nocorrect \x00 foreach \x00 p1 b\x00p2\x00 x=\x001\x000\x002>\x00{x}>\x00$x\x00$#\x00$?\x00$$\x00${x#\x00${x:-\x00\\c\x00\\$\x00", "\x00")

// list writes commands one after the other.
func (g *scriptMaker) list(depth int) string {
	var b strings.Builder
	n := 1 + g.IntN(3)
	for i := range n {
		b.WriteString(g.command(depth))
		if i < n-1 || g.IntN(4) == 0 {
			b.WriteString(g.between())
		}
	}
	return b.String()
}

func (g *scriptMaker) between() string {
	if g.IntN(3) > 0 {
		return g.of("; ", "\n", " && ", " || ", " | ", " & ")
	}
	return g.of("\n\n", "\n ", " ;\n", "\t\n", "&", ";", "|", "&&", "&&\n", "||\n", "|\n", " |& ", " # x\n", "# x\n", ";# 'x\n", " #\\\n", " # x \\\\\n", " \\\n", "\\\n", " \\\n\\\n", "\r\n", " &\\\n& ", " |\\\n| ", " \\\n;", "\n# x\n", "\n#x\\\n")
}

// gap stands between words.
func (g *scriptMaker) gap() string {
	if g.IntN(12) > 0 {
		return " "
	}
	return g.of("  ", "\t", " \\\n", "\\\n ", " \\\n ", "\\\n", "\\\n\\\n ", " \t ", " \\\n\t")
}

func (g *scriptMaker) command(depth int) string {
	if depth == 0 || g.IntN(3) > 0 {
		return g.simple(depth)
	}
	in := func() string { return g.list(depth - 1) }
	switch g.IntN(26) {
	case 0:
		return "( " + in() + " )"
	case 1:
		return "{ " + in() + g.of("; }", "\n}", ";}", " ; } ")
	case 2:
		return "if " + in() + g.of("; then ", "\nthen ", ";then\n") + in() + g.of("; fi", "\nfi", g.of("; else ", "\nelse ", "; elif p4; then ")+in()+"; fi")
	case 3:
		return g.of("while p4 && ", "until p1 || ") + g.simple(0) + "; do " + in() + "; done"
	case 4:
		return "for x in " + g.words(depth) + g.of("; do ", "\ndo ", "\n do\n") + in() + "; done"
	case 5:
		return g.of("for x; do ", "for x\ndo ", "for x in; do ", "for x do ") + in() + "; done"
	case 6:
		return "case " + g.word(depth) + g.of(" in ", "\nin\n") + g.of("a) ", "(a) ", "a|b) ", "*) ", "'a') ", "[a]) ", "in) ", "esac) ", "#) ", "\\\n*) ", "(esac) ") + in() + g.of(";;", "\n;;", "", ";", ";;\n*) p2;;", ";; # x\n", ";& *) p2;;", ";;& *) p3;;") + g.of(" esac", "\nesac")
	case 7:
		return g.of("! ", "! ! ", "!\n", "time ", "time -p ", "time ! ", "! time ", "!\t", "!\\\n ") + g.command(depth-1)
	case 8:
		return g.of("f() { ", "f () { ", "function f { ", "function f() { ", "f()\n{ ", "p1() { ", "f() ( ") + in() + g.of("; }", "; }; f", "\n}\nf a", "; )")
	case 9:
		return "[[ " + g.word(depth) + g.of(" ]]", " == a ]]", " && -n b ]]", " =~ # ]]", " < b ]]", " =~ (a|b) ]]")
	case 10:
		return g.of("((", "(( ", "let ") + g.of("1", "x", "1+1", "1 #", "x=1") + g.of("))", " ))", "")
	case 11:
		return g.of("coproc ", "coproc X ", "coproc { ") + g.simple(0) + g.of("", "; }")
	case 12:
		return g.of("repeat 1 ", "repeat 2 do ", "foreach x (a b) ", "nocorrect ", "noglob ", "select x in a; do ", "namespace x { ", "always ", "- ", "function ", "end ", "if (p1) ", "while (p4) ", "for x (a) ", "for ((;;)) ", "{ p1 } always ", "if [[ a ]] ", "in ", "typeset ", "integer ") + g.simple(0) + g.of("", "; done", "; end", "; }", "; fi")
	case 13, 14, 15:
		return g.heredoc(depth)
	case 16:
		return g.of("sh -c ", "dash -c ", "bash -c ", "sh -ec ", "bash --posix -c ") + quotedAs(g.of("'", "\""), g.list(depth-1)) + g.of("", " a", " a b")
	case 17:
		return g.of("find . -maxdepth 0 -exec ", "find . -maxdepth 0 -ok ", "find . -maxdepth 0 -execdir ") + g.simple(0) + g.of(" \\;", " ';'", " {} +", " {} \\;")
	case 18:
		return "echo " + g.words(depth) + " | xargs " + g.of("", "-n 1 ", "-0 ") + g.simple(0)
	case 19:
		return g.of("export ", "readonly ", "local ", "export -p ", "typeset ", "declare ", "unset ") + g.of("x=", "y=", "x", "x=a ", "-- x=") + g.word(depth)
	case 20:
		return "{ " + in() + g.of("; } ", "; }", "\n}") + g.of("| p1", ">f", "2>&1", "&& p1", "; p2", "# x", "p1")
	case 21:
		return g.of("alias p1=p2\n", "alias p1='p2 ' p2=p3\n", "set -- a b; ", "set -e; ", "set -- p2 a\n", "shift; ", "x=a\n", "x='a b'; ", "x=p2; ", "set -u\n", "IFS=1; ", "y='*'; ") + g.simple(depth)
	case 22:
		return "echo " + g.words(depth) + g.of(" | sh", " | while read -r x; do p1 $x; done", " | read x; p1 \"$x\"")
	case 23:
		return "eval " + quotedAs(g.of("'", "\""), g.list(depth-1))
	case 24:
		return g.simple(0) + g.of(" ;; ", " ;& ", " |& ", " &! ", " &| ", " &&! ", " |! ", " & & ", ";|", " <> ") + g.simple(0)
	}
	return "trap " + quotedAs("'", g.simple(0)) + " EXIT"
}

func quotedAs(quote, text string) string {
	if quote == "'" {
		return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "$", `\$`, "`", "\\`").Replace(text) + `"`
}

func (g *scriptMaker) simple(depth int) string {
	var b strings.Builder
	for range g.IntN(5) - 3 {
		b.WriteString(g.of("x=", "y=", "LANG=", "A=", "x+=", "x[0]=", "IFS=") + g.of("", "a", g.word(depth)) + g.gap())
	}
	if g.IntN(10) == 0 {
		b.WriteString(g.redirect(depth) + g.gap())
	}
	for range g.IntN(8) - 6 {
		b.WriteString(g.of("command ", "exec ", "env ", "env -- ", "nice ", "nice -n 1 ", "timeout 5 ", "nohup ", "builtin ", "command -p ", "command -- ", "exec -a x ", "\\command ", "env x=1 ", "env -u x ", "time ", "\\time ", "eval ", "- ", "noglob "))
	}
	switch g.IntN(30) {
	case 0:
		b.WriteString(g.of("echo", ":", "true", "false", "printf", "test", "[", "read", "cd", "pwd", "wait", "set", "return", "break", "exit", "type", "umask", "print", "whence", "alias", "hash", "jobs", "times", "let", "source", ".", "unset", "getopts", "shift", "local", "readonly", "bg", "fg", "fc", "disown", "enable", "which", "where", "limit", "sched", "stat", "array", "dirs", "popd", "suspend", "newgrp", "login", "stop", "r", "history", "functions", "autoload", "typeset", "vared", "zparseopts", "float", "enum", "compound", "nameref", "cat", "sleep", "realpath", "rename", "mknod", "chdir", "help", "setopt", "unsetopt", "rehash", "unhash", "trap", "exec", "bind", "complete", "compgen", "mapfile", "shopt", "caller", "coproc", "log", "poll", "sysread", "zle"))
	case 1:
		b.WriteString(g.word(depth))
	default:
		b.WriteString(g.name())
	}
	for range g.IntN(4) {
		b.WriteString(g.gap() + g.word(depth))
	}
	if g.IntN(6) == 0 {
		b.WriteString(g.of(" ", "") + g.redirect(depth))
	}
	return b.String()
}

func (g *scriptMaker) name() string {
	if g.IntN(8) > 0 {
		return recorders[g.IntN(len(recorders))]
	}
	return g.of(`p\1`, `\p1`, `'p1'`, `"p1"`, `p"1"`, `p''1`, "p\\\n1", "p1\\\n", `p$'1'`, `$'p1'`, `$"p1"`, "{p1,p2}", "=p1", "p[1]", "p?", "p1#", "#p1", "p{1,2}", "p1,", "p1=", "%p1", "+p1", "^p1", "!p1", "{p1", "}p1", "p1}", "p1!", "p1:", "~p1", "p1~", "-p1", "$p1", "${p1}", "p1\\", "@p1", "p1\u00a0a", "\ufeffp1")
}

func (g *scriptMaker) words(depth int) string {
	var words []string
	for range 1 + g.IntN(3) {
		words = append(words, g.word(depth))
	}
	return strings.Join(words, " ")
}

func (g *scriptMaker) word(depth int) string {
	if g.IntN(2) == 0 {
		return g.of("a", "b", "-x", "--", "1", "a=b", "x")
	}
	if depth > 0 && g.IntN(3) == 0 {
		in := g.list(depth - 1)
		return g.of("$("+in+")", `"$(`+in+`)"`, "$( "+in+"\n)", "`"+in+"`", "<("+in+")", "${x:-$("+in+")}", `"${x:-$(`+in+`)}"`, "$(("+in+"))", "${ "+in+"; }", "${x:+$("+in+")}", "$(\n"+in+" # x\n)", "a$("+in+")b", "=("+in+")", ">("+in+")", "${|"+in+"; }")
	}
	if g.IntN(8) == 0 {
		return g.word(0) + g.of("", "", "#") + g.word(0)
	}
	return g.of("a#b", "#", "\\#", "'#'", `"#"`, "a'#b", "$#", "${#x}", "${x#a}", "${x##a}", "${#}", "$x#", "'a b'", `"a b"`, `a\ b`, `"a\"b"`, `'a\'`, `"a\\"`, `a\\`, `"a'b"`, `'a"b'`, "'a\nb'", "\"a\nb\"", "\"a\\\nb\"", "'a\\\nb'", "a\\\nb", "\\\na", `"\a"`, `\a`, "\"\\`\"", `"\$x"`, `\$x`, `"a\!b"`, `"!"`, "!a", "!!", "^a^b", `$'a'`, `$'\''`, `$'a\'b'`, `$'\x41'`, `$'\n'`, `"$'a'"`, `"'$x'"`, `$"a"`, `"$"`, "$", "$ ", "a$", "$x", "${x}", `"$x"`, "${x:-a b}", `${x:-"a b"}`, `"${x:-'a b'}"`, `"${x:-'$(p1)'}"`, `"${x#'$(p1)'}"`, `"${x:-\'$(p1)}"`, `"${x:-"$(p1)"}"`, `"${x:-${y:-'$(p1)'}}"`, "${x:-'$(p1)'}", `"$(p1 '$(p2)')"`, `"${x:-$'$(p1)'}"`, `"${x:-\"$(p1)\"}"`, `"a'$(p1)'b"`, `"${x:-a'}b'}"`, `${x:-"'$(p1)'"}`, `${x:-'a}b'}`, `"${x:-a}b"`, `"${x:-"a}b"}"`, `${x:-a\}b}`, `${x%\}}`, `"${x#'}'}"`, `"${x%"}"}"`, `${x:-}`, `${x:=a}`, `${x:?}`, `${x:+a}`, "${x:1}", "${x//a/b}", "${!x}", "${x@Q}", "${x^}", "${x[1]}", "$x[1]", `"$@"`, "$@", "$*", "$1", "$10", "${10}", "$-", "$$", "$?", "$!", "$0", "$_", "*", "?", "[a]", "[!a]", "[", "]", "[[", "]]", "~", "~x", "~+", "a~", "a=~", "{a,b}", "{a..c}", "{a", "a}", "{}", "{", "}", "{ }", "a,b", "@(a|b)", "!(a)", "+(a)", "?(a)", "*(a)", "a(b)", "()", "(a)", "a()", "$((1+1))", "$((1))", "$[1]", "$((x))", "$(( (1) ))", "$(())", "1>f", "2>&1", "a>f", "{x}>f", "if", "then", "do", "done", "fi", "in", "esac", "time", "function", "select", "case", "!", "&", "é", "à", "Ǆ", "a\u00a0b", "a\u3000p1", "日本", "🙂", "%1", "%%", "+x", "@", ":", "=", "=p1", "==", "-", "a\tb", "a;b", "a&b", "a|b", ";", "<", ">", "<a", "a\\", `\\\`, "\\\\\n", "`a\\`", "`echo \\`p1\\``", "`echo \\\\`", "\"`echo \\\"a\\\"`\"", `"$(echo "a")"`, `"$(echo 'a"b')"`, "$(case a in a) p1;; esac)", "$(case a in (a) p1;; esac)", "$(# )\n)", "$(p1 # )\n)", "$(p1 #)", "$(p1\\\n)", "$\\\n(p1)", "$\\\nx", "${x\\\n}", "$(cat <<E\na)\nE\n)", "$((p1) )", "$( (p1))", "$((p1); p2)")
}

func (g *scriptMaker) redirect(depth int) string {
	return g.of("", "", "2", "1", "3", "{x}", "a", "12") + g.of(">f", ">>f", "<f", ">/dev/null", "2>&1", ">&2", ">|f", "<>f", "&>f", ">&f", "&>>f", "<&-", ">&-", "<&0", "<<<a", "<<<$x", "< <(p1)", "> >(p2)", "<<<\"$(p1)\"", ">\\\nf", ">$x", "<&p", ">&-p1", ">!f", ">&!f", "<#a", "<~(x)", "2>& 1", "&> f", "& >f", ">& f", ">f&", "<f\\\n", ">'f'", ">f#")
}

func (g *scriptMaker) heredoc(depth int) string {
	mark := g.of("E", "E", "E", "EOF", "E1", "'E'", `"E"`, `\E`, `E\ F`, "E'F'", "$E", `"E F"`, "", "-E", "E\\\nF", "`E`", "$(E)", "{E", "E#", "#E", "'E\nF'", "''", "é")
	end := strings.NewReplacer("'", "", `"`, "", `\`, "", "\n", "").Replace(mark)
	var body strings.Builder
	for range g.IntN(4) {
		body.WriteString(g.of("a", "$x", "$(p1 a)", "`p1 a`", `\$(p1)`, "E ", " E", "\tE", "E\r", "p1", "a\\", "\\", "a\\\\", "'", "\"", "$((1))", "${x:-$(p2)}", `"$(p1)"`, `\`+"`p1\\`", "#", "# \\", "$", "${", "$(", "`", "E\\", "\\E", "<<E", "$(cat <<E\nb\nE\n)", "(", ")", "a\\\nE", "$\\\n(p1)", "${x:-'$(p1)'}", "${x:-\"$(p1)\"}", "${x:-\\\"$(p1)}", "$'a'", "\\'$(p1)'", end+"x", end+";") + "\n")
	}
	op := g.of("<<", "<<", "<<", "<<-", "<< ", "<<\\\n", "<<-\t", "0<<", "3<<", "<<<", "<<#")
	tail := g.of("", "", "", "; p2", " && p2", " | p2", " # x", " # x \\", " \\", " &", ")", " >f", " <<F")
	after := g.of("", "\n", "\np3 b", "\np3 b\n"+end, "\n\n", " ", " \np3\n"+end, "\r\np3", ")", ";p3", "\\\np3", "\\\n")
	lead := ""
	if strings.HasPrefix(op, "<<-") {
		lead = g.of("", "\t", "\t\t", " ")
	}
	return g.of("cat ", "p1 ", "", "p1 a", "cat", "p1 b ") + op + mark + tail + "\n" + body.String() + lead + end + after
}

// The generator is the same on every machine, so that a seed names a script.
func TestScriptMakerSeeds(t *testing.T) {
	a, _ := generated(7)
	b, _ := generated(7)
	if a != b {
		t.Errorf("%s and %s", strconv.Quote(a), strconv.Quote(b))
	}
}
