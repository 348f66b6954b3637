// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package shell

import (
	"errors"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/antiphon-go/antiphon/session"
)

func ruleSet(t *testing.T, texts ...string) (rules []Rule) {
	t.Helper()
	for _, text := range texts {
		r, err := ParseRule(text)
		if err != nil {
			t.Fatal(err)
		}
		rules = append(rules, r)
	}
	return rules
}

// policyKit has a PATH of its own, with programs that are never run.
func policyKit(t *testing.T) (Policy, *programs) {
	t.Helper()
	bin, work := realDir(t), realDir(t)
	for _, name := range []string{"git", "go", "ls", "cat", "rm", "env", "timeout", "xargs", "find", "sh", "bash", "sudo", "nice", "curl", "npm", "grep", "busybox", "strace", "time", "stdbuf"} {
		writeProgram(t, filepath.Join(bin, name))
	}
	for _, name := range []string{"git", "build.sh", "env", "sub/build.sh"} {
		writeProgram(t, filepath.Join(work, name))
	}
	for link, target := range map[string]string{filepath.Join(work, "innocent"): filepath.Join(bin, "rm"), filepath.Join(bin, "mine"): filepath.Join(work, "git")} {
		if err := os.Symlink(target, link); err != nil {
			t.Fatal(err)
		}
	}
	p := Policy{
		Allow: ruleSet(t, "git status", "git log", "go test", "ls", "cat", "find", "xargs", "grep", "./build.sh", "npm run test:*", "mine", "git"),
		Ask:   ruleSet(t, "git push", "npm publish"),
		Deny:  ruleSet(t, "rm", "git push --force", "git reset --hard", "curl", "find -delete", "git clean -fd", "npm run build:*:*od*:*", "npm run b*d:p*od*"),
	}
	return p, &programs{dir: work, dirs: []string{bin}, writable: []string{work}}
}

// realDir is a temporary directory by a name without links.
func realDir(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func writeProgram(t *testing.T, path string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("#!"+path), 0o755); err != nil {
		t.Fatal(err)
	}
}

// A2: the policy is about the programs that run, not about how the text begins.
func TestCommandPolicyArgv(t *testing.T) {
	p, in := policyKit(t)
	bin := in.dirs[0]
	for _, c := range []struct {
		argv string // separated by bars
		want session.Verdict
	}{
		{"git|status", Allowed},
		{"git|status|--short", Allowed},
		{"ls", Allowed},
		{"npm|run|test:unit", Allowed},
		{"npm|run|build", Asked},
		{"npm|run", Asked},
		{"go|build", Asked},
		{"unknown", Asked},
		{"rm|-rf|x", Denied},
		{bin + "/rm|x", Denied},
		{"./rm", Denied}, // by its name, though it is none
		{"./innocent|x", Denied},
		{"./git|status", Asked},
		{in.dir + "/git|status", Asked},
		{bin + "/git|status", Allowed},
		{"mine", Asked}, // what it links to can be written
		{"./build.sh|all", Allowed},
		{in.dir + "/build.sh", Allowed},
		{"./sub/build.sh", Asked},
		{"git|push", Asked},
		{"git|-C|x|push", Asked},
		{"git|push|--force", Denied},
		{"git|push|origin|--force-with-lease", Asked},
		{"git|-c|a=b|push|x|--force", Denied},
		{"git|reset|--har", Denied},
		// Wrappers.
		{"env|rm|-rf|x", Denied},
		{"env|git|status", Allowed},
		{"env|LANG=C|git|status", Allowed},
		{"env|LD_PRELOAD=x|git|status", Asked},
		{"env|PATH=.|git|status", Asked},
		{"env|-i|git|status", Asked},
		{"env|-S|rm x", Asked},
		{"env|--split-string=rm x", Asked},
		{"env|-u|X|--|rm", Denied},
		{"env", Asked},
		{"./env|git|status", Asked},
		{"nice|-n|5|rm|x", Denied},
		{"nice|-10|git|status", Allowed},
		{"timeout|5|rm", Denied},
		{"timeout|-k|1|--signal=KILL|5|git|status", Allowed},
		{"timeout|--unheard|5|git|status", Asked},
		{"nohup|env|timeout|5|rm", Denied}, // nohup is not installed; it is looked through all the same
		{"sudo|rm", Denied},
		{"RM|x", Denied}, // the same file, for some systems
		{"ENV|Rm|x", Denied},
		{"ENV|git|status", Asked},
		{"sudo|-u|me|git|status", Asked}, // sudo itself is not allowed
		{"sudo|-s", Asked},
		{"busybox|rm|x", Denied},
		{"stdbuf|-oL|git|status", Allowed},
		{"time|-p|git|status", Allowed},
		{"time|-o|f|git|status", Asked},
		{"strace|git|status", Asked},
		{"xargs|rm", Denied},
		{"xargs|-0|-n|1|grep|x", Allowed},
		{"xargs|git", Asked},          // push may follow
		{"xargs|git|status", Asked},   // likewise
		{"xargs|-I|{}|grep|x", Asked}, // not read
		{"xargs|env", Asked},
		{"xargs", Allowed}, // echo
		{"find|.|-name|*.go", Allowed},
		{"find|.|-delete", Denied},
		{"find|.|-fprint|x", Asked},
		{"find|.|-exec|rm|{}|;", Denied},
		{"find|.|-exec|grep|x|{}|+", Allowed},
		{"find|.|-exec|{}|;", Asked},
		{"find|.|-exec|grep|x", Asked},
		{"find|.|-execdir|./build.sh|;", Asked},
		{"env|-|git|status", Asked},
		{"env|--unset|X|--|rm", Denied},
		{strings.Repeat("nice|", 12) + "ls", Asked}, // too deep to follow
		{"git|clean|-d|-f", Denied},                 // letters, in any order
		{"npm|run|build:prod:x", Denied},
		{"npm|run|build:x:dev", Asked},
		// Shells.
		{"bash|--norc|-c|rm x", Denied},
		{"bash|-c|--|rm x", Denied},
		{"sh|-c|-", Asked},
		{"bash|-o|unheard|-c|ls", Asked},
		{"sh|-c|git status && ls", Allowed},
		{"sh|-c|git status; rm x", Denied},
		{"bash|-lc|git status | cat", Allowed},
		{"bash|-euo|pipefail|-c|ls", Allowed},
		{"bash|-c", Asked},
		{"bash|--rcfile|x|-c|ls", Asked},
		{"sh|x.sh", Asked},
		{"sh", Asked}, // it reads its input
		{"zsh|-c|ls", Asked},
		{"env|sh|-c|sh -c 'sh -c \"rm x\"'", Denied},
		{"find|.|-exec|sh|-c|rm \"$1\"|_|{}|;", Denied},
	} {
		got, reason := p.judge(inquireArgv(strings.Split(c.argv, "|")), in)
		if got != c.want {
			t.Errorf("%s: %q (%s), want %q", c.argv, got, reason, c.want)
		}
		if got != Unruled && reason == "" {
			t.Errorf("%s: no reason", c.argv)
		}
	}
	if d, _ := p.judge(inquireArgv(nil), in); d != Unruled {
		t.Errorf("nothing: %q", d)
	}
}

// A2: a command line is read as a shell reads it; what is not understood is
// asked about.
func TestCommandPolicyScript(t *testing.T) {
	p, in := policyKit(t)
	for _, c := range []struct {
		script string
		want   session.Verdict
	}{
		{"git status", Allowed},
		{"git status --short && ls -l | grep x", Allowed},
		{"ls 2>&1 >/dev/null", Allowed},
		{"if [ -f x ]; then ls; else cat y; fi", Allowed},
		{"for f in a b; do cat \"$f\"; done", Allowed},
		{"x=1; cat $x", Allowed},
		{"cat \"$(git log)\"", Allowed},
		{"cat ${x:-y} ${x%.go}", Allowed},
		{"cat <<EOF\nrm\nEOF", Allowed},
		{"cat <<'END OF-IT_2'\nrm\nEND OF-IT_2", Allowed},
		{"cd sub && ls", Allowed},
		{"set -euo pipefail; ls", Allowed},
		{"LANG=C ls", Allowed},
		{"(ls; cat x) & wait", Allowed},
		{"case $x in a) ls;; *) cat y;; esac", Allowed},
		{"! ls", Allowed},
		{"command -v git && ls", Allowed},
		{"exec ls", Allowed},
		{"echo hi; printf '%s' x; ls", Allowed},
		{"'git' \"status\"", Allowed},
		{"echo hi", Unruled}, // nothing that a rule is about
		{"", Unruled},
		{"# only a remark", Unruled},
		{"ls {fd}>x", Asked}, // no POSIX shell
		{"bash -c 'ls {fd}>x'", Asked},
		{"read -r line; ls", Allowed},
		{"read PATH; ls", Asked},
		{"read -p x y; ls", Asked},
		{"set -eo pipefail -- a b; ls", Allowed},
		{"set -a; ls", Asked},
		{"set -o allexport; ls", Asked},
		{"set x; ls", Unruled},
		{"set; ls", Unruled},
		{"printf -v PATH x; ls", Asked},
		{"command -p git status", Allowed},
		{"cat \"a\\\nb\" a\\\nb", Allowed},
		{"cat \\$x \"\\$x\" \"\\y\"", Allowed},
		{"cat $\"x\"", Allowed},
		{"bash -c 'cat @(a|b)'", Allowed},
		{"wc -l x", Asked},
		{"ls > file", Asked},
		{"ls >> file", Asked},
		{"ls > $x", Asked},
		{"cat <> file", Asked},
		{"cat < /dev/tcp/h/80", Asked},
		{"PATH=.:$PATH; ls", Asked},
		{"export PATH=.; ls", Asked},
		{"GIT_SSH_COMMAND=x git status", Asked},
		{"cd sub && ./build.sh", Asked},
		{"cd / && ls", Unruled},
		{"cd .. && ls", Unruled},
		{"for PATH in .; do ls; done", Asked},
		{"./build.sh", Allowed},
		// Denied, however it is written.
		{"rm x", Denied},
		{"r\\m x", Denied},
		{"'r'm x", Denied},
		{"r\"m\" x", Denied},
		{"\\rm x", Denied},
		{"ls; rm x", Denied},
		{"ls | rm", Denied},
		{"ls & rm x", Denied},
		{"(rm x)", Denied},
		{"{ rm x; }", Denied},
		{"cat $(rm x)", Denied},
		{"cat `rm x`", Denied},
		{"cat <(rm x)", Denied},
		{"cat \"${x:-$(rm x)}\"", Denied},
		{"cat <<EOF\n$(rm x)\nEOF", Denied},
		{"x=$(rm y)", Denied},
		{"echo $((1 + $(rm x)))", Denied},
		{"[[ -n $(rm x) ]]", Denied},
		{"if rm x; then ls; fi", Denied},
		{"while rm x; do ls; done", Denied},
		{"for f in $(rm x); do ls; done", Denied},
		{"case $(rm x) in a) ;; esac", Denied},
		{"f() { rm x; }; f", Denied},
		{"eval rm x", Denied},
		{"eval 'rm x'", Denied},
		{"command rm x", Denied},
		{"command command eval rm x", Denied},
		{"exec rm x", Denied},
		{"builtin eval rm x", Denied},
		{"env rm x", Denied},
		{"LANG=C rm x", Denied},
		{"time rm x", Denied},
		{"! rm x", Denied},
		{"sh -c 'rm x'", Denied},
		{"sh +c 'rm x'", Denied},
		{"ls | xargs --max-lines rm x", Denied},
		{"ls | xargs --max-lines=1 rm x", Denied},
		{"sh 'rm x'", Denied},
		{"ls 2>$(rm x)", Denied},
		{"ls >&'$(rm x)'", Denied},
		{"'rm x'wait >&'a[$(rm)]' ls", Denied},
		{"export x=$(rm y)", Denied},
		{"ls &>/dev/null; git push --force", Denied},
		{"git push $x", Asked},
		{"git $x", Asked}, // it may be push
		// Not to be told.
		{"$x", Asked},
		{"$(echo rm) x", Asked},
		{"r$x y", Asked},
		{"{rm,x}", Asked},
		{"{r,}m x", Asked},
		{"/bin/r? x", Asked},
		{"~/x", Asked},
		{"$'rm' x", Asked},
		{"eval $x", Asked},
		{". ./x", Asked},
		{"source x", Asked},
		{"trap x EXIT", Asked},
		{"alias ls=x", Asked},
		{"f() { ls; }; f", Asked},
		{"ls `cat x`", Asked},
		{"echo $((x))", Asked},
		{"(( x ))", Asked},
		{"let x", Asked},
		{"[[ $x -eq 1 ]]", Asked},
		{"test -v $x", Asked},
		{"echo ${x[1]}", Asked},
		{"echo ${!x}", Asked},
		{"echo ${x@P}", Asked},
		{"echo ${x:1:2}", Asked},
		{"declare -i x", Asked},
		{"cat x | sh", Asked},
		{"ls |", Asked},
		{"ls 'x", Asked},
		{"select x in a; do ls; done", Asked},
		{"coproc ls", Asked},
		{"echo " + strings.Repeat("x", maxScript), Asked},
		{strings.Repeat("sh -c ", 20) + "rm", Asked},
		{strings.Repeat("command ", 20) + "rm", Asked},
		{"command -x rm", Asked},
		{"exec -a ls rm x", Denied},
		{"ls |& rm", Denied},
	} {
		got, reason := p.judge(inquireScript(c.script), in)
		if got != c.want {
			t.Errorf("%.60s: %q (%s), want %q", c.script, got, reason, c.want)
		}
	}
}

// Without rules that forbid, what cannot be told is no opinion: the agent's
// own rule holds.
func TestCommandPolicyNoRules(t *testing.T) {
	_, in := policyKit(t)
	p := Policy{Allow: ruleSet(t, "ls")}
	for script, want := range map[string]session.Verdict{"ls": Allowed, "$x": Unruled, "rm x": Unruled} {
		if got, _ := p.judge(inquireScript(script), in); got != want {
			t.Errorf("%s: %q, want %q", script, got, want)
		}
	}
	if _, err := ParseRule("  "); err == nil {
		t.Error("an empty rule was taken")
	}
}

// indexed are command lines in which a shell may run %s, as it looks for a name
// or a number.
var indexed = []string{
	"wait -p 'a[$(%s)]'", "true & wait -n -p 'a[$(%s)]'", "true & wait -n -p'a[$(%s)]'", "x='-pa[$(%s)]'; true & wait -n $x", "x='-pa[$(%s)]'; true & wait -n \"$x\"",
	"printf -v 'a[$(%s)]' x", "printf -v'a[$(%s)]' x", "x='-va[$(%s)]'; printf $x y", "x='-va[$(%s)]'; printf \"$x\" y", "command printf -v 'a[$(%s)]' x", "builtin printf -v 'a[$(%s)]' x",
	"command -- printf -v 'a[$(%s)]' x", "time printf -v 'a[$(%s)]' x", "time -- printf -v 'a[$(%s)]' x", "time -- %s", "jobs -x %s", "builtin jobs -x %s",
	"a[0]=; test -v 'a[$(%s)]'", "[ -v 'a[$(%s)]' ]", "[ ! -v 'a[$(%s)]' ]", "[ -R 'a[$(%s)]' ]", "x=-v; [ $x 'a[$(%s)]' ]", "x=-v; [ \"$x\" 'a[$(%s)]' ]", "x='-v a[$(%s)]'; [ -n y -o $x ]", "x='a[$(%s)]'; [ -v \"$x\" ]",
	"x='a[$(%s)]'; [ \"$x\" -eq 1 ]", "x='a[$(%s)]'; [ x -eq 1 ]", "printf %%d 'a[$(%s)]'", "printf %%n 'a[$(%s)]'", "printf '%%*s' 'a[$(%s)]' x",
	"echo 1 | read 'a[$(%s)]'", "read -r 'a[$(%s)]' <<< 1", "read -a 'a[$(%s)]' <<< 1", "x='a[$(%s)]'; read \"$x\" <<< 1", "read -r OPTIND <<< 'a[$(%s)]'",
	"unset 'a[$(%s)]'", "command unset 'a[$(%s)]'", "export 'a[$(%s)]=1'", "\\export 'a[$(%s)]=1'", "command export 'a[$(%s)]=1'", "x='a[$(%s)]=1'; export $x", "readonly 'a[$(%s)]=1'", "\\readonly 'a[$(%s)]=1'",
	"declare 'a[$(%s)]=1'", "\\declare 'a[$(%s)]=1'", "typeset 'a[$(%s)]=1'", "declare -i x='a[$(%s)]'", "command local 'a[$(%s)]=1'", "let 'a[$(%s)]'", "\\let 'a[$(%s)]'",
	"mapfile 'a[$(%s)]' <<< 1", "mapfile -C '%s;' -c 1 a <<< 1", "readarray -C '%s;' -c 1 a <<< 1", "getopts x 'a[$(%s)]' -x", "eval '%s'", "trap '%s' EXIT", "source <(echo %s)", "compgen -C '%s'",
	"x='a[$(%s)]'; echo $((x))", "echo $((a[$(%s)]))", "echo $[a[$(%s)]]", "x='a[$(%s)]'; echo $((a[x]))", "echo ${a[$(%s)]}", "x='a[$(%s)]'; echo ${a[x]}", "x='a[$(%s)]'; echo ${x:x}", "echo ${#a[$(%s)]}", "x='a[$(%s)]'; echo ${!x}", "x='$(%s)'; echo ${x@P}",
	"cat <<E\n$((a[$(%s)]))\nE", "cat <<E\n${a[$(%s)]}\nE", "(( a[$(%s)] ))", "x='a[$(%s)]'; (( x ))", "x='a[$(%s)]'; [[ x -eq 1 ]]", "[[ -v a[$(%s)] ]]", "x='a[$(%s)]'; [[ -v $x ]]", "x='a[$(%s)]'; for ((x; 0;)); do :; done",
	"a[$(%s)]=1", "x='a[$(%s)]'; a[x]=1", "a=([$(%s)]=1)", "a+=([$(%s)]=1)", "true {a[$(%s)]}>/dev/null", "exec {a[$(%s)]}>/dev/null",
	"RANDOM='a[$(%s)]'", "OPTIND='a[$(%s)]'", "HISTCMD='a[$(%s)]'", "export RANDOM='a[$(%s)]'", "SECONDS='a[$(%s)]'", "PS4='$(%s)'; set -x; :", "PS4='$(%s)' sh -xc :", "BASH_ENV='$(%s)' bash -c :", "env PS4='$(%s)' sh -xc :",
	"env 'BASH_FUNC_ls%%%%=() { %s; }' bash -c ls", "env a.b=1 %s", "env -- a-b=1 %s", "env -- A=1 %s", "env -- -a=1 %s", "shift 'a[$(%s)]'", "exit 'a[$(%s)]'", "set -A 'a[$(%s)]' x", "echo @($(%s)|b)",
}

// A2: what a shell computes is not allowed by a rule, and with a rule that
// denies it is not run unasked. The shells themselves tell which of these are
// dangerous.
func TestCommandPolicyIndexed(t *testing.T) {
	bin, work := realDir(t), realDir(t)
	in := &programs{dir: work, dirs: []string{bin, "/usr/bin", "/bin"}, writable: []string{work}}
	for _, name := range []string{"rm", "ls"} {
		log := filepath.Join(work, name)
		if err := os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\necho >"+log+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	one := Policy{Allow: ruleSet(t, "ls", "echo", "cat")}
	most := Policy{Allow: ruleSet(t, "*"), Deny: ruleSet(t, "rm")}
	shell, _ := exec.LookPath("bash")
	ran := 0
	for _, form := range indexed {
		script := strings.ReplaceAll(strings.ReplaceAll(form, "%s", "rm x"), "%%", "%")
		for _, line := range [][]string{{"bash", "-c", script + "; ls"}, {"bash", "-c", script}, {"sh", "-c", script + "\nls"}, {"bash", "-c", "ls; " + script}} {
			if got, reason := one.judge(inquireArgv(line), in); got == Allowed {
				t.Errorf("%q: %s", line, reason)
			}
			if got, reason := most.judge(inquireArgv(line), in); got != Asked && got != Denied {
				t.Errorf("%q: %q (%s)", line, got, reason)
			}
		}
		if shell == "" {
			continue
		}
		if err := bare(t, shell, script, work, "PATH="+bin+":/usr/bin:/bin"); err != nil {
			t.Fatal(err)
		}
		if os.Remove(filepath.Join(work, "rm")) == nil {
			ran++
		}
	}
	if shell != "" && ran < len(indexed)/2 {
		t.Errorf("only %d of %d ran the program", ran, len(indexed))
	}
	t.Logf("%d of %d ran the program in %q", ran, len(indexed), shell)
}

// What is plainly a name, a number or a text is looked through as before.
func TestCommandPolicyPlain(t *testing.T) {
	_, in := policyKit(t)
	p := Policy{Allow: ruleSet(t, "ls"), Deny: ruleSet(t, "rm")}
	for _, script := range []string{
		"ls & wait", "ls & wait $!", "wait 1; ls", "ls; exit 1", "ls || exit $?", "printf '%s\\n' \"$x\" $y; ls", "printf '%5.2s%%' x; ls", "printf -- '-%s' x; ls", "printf %d 12; ls", "printf '%d' $?; ls",
		"[ -n \"$x\" ] && ls", "[ \"$x\" = y ] && ls", "[ $# -eq 0 ] || ls", "test -f \"$x\" && ls", "[ -f a -a -d b ] && ls", "[ 1 -lt 2 ] && ls", "read x y; ls", "read -r line; ls", "set -e; ls", "cd sub && ls", "echo \"$x\" $y; ls",
	} {
		if got, reason := p.judge(inquireScript(script), in); got != Allowed {
			t.Errorf("%s: %q (%s)", script, got, reason)
		}
	}
}

// A2, as a property: whatever stands around it, a denied program is never
// allowed.
func TestCommandPolicyProperty(t *testing.T) {
	p, in := policyKit(t)
	around := rapid.SampledFrom([]string{"%s", "ls; %s", "%s | cat", "env %s", "timeout 5 %s", "nice %s", "( %s )", "if ls; then %s; fi", "cat \"$(%s)\"", "x=1 %s", "command %s", "! %s", "find . -exec %s {} \\;", "%s &", "for i in a; do %s; done", "sh -c '%s'", "eval %s", "f() { %s; }; f", "cat <(%s)", "%s 2>/dev/null"})
	rapid.Check(t, func(rt *rapid.T) {
		script := rapid.SampledFrom([]string{"rm x", "r''m -rf x", "git push --force", "curl x", "$x", "{rm,x}"}).Draw(rt, "inner")
		depth := rapid.IntRange(0, 4).Draw(rt, "depth")
		for range depth {
			form := around.Draw(rt, "around")
			if strings.Contains(form, "'") && strings.Contains(script, "'") {
				continue
			}
			script = strings.ReplaceAll(form, "%s", script)
		}
		// Deeper ones may be no commands at all: timeout 5 if ls.
		if got, reason := p.judge(inquireScript(script), in); got == Allowed || got == Unruled && depth < 2 {
			rt.Fatalf("%s: %q (%s)", script, got, reason)
		}
	})
}

// shellPieces are put together at random to command lines, most of them
// nonsense.
var shellPieces = []string{
	"ls", "ls", "ls", "git status", "rm", "r", "m", " ", " ", " ", " ", ";", "&&", "||", "|", "&", "\n", "(", ")", "{ ", ";}", "!", "'", "\"", "$(", ")", "`", "\\", "#",
	"x=", "x=rm", "$x", "${x", "${x:-", "}", ":=", "$((", "))", "[[ ", " ]]", "[ ", " ]", "<<E\n", "\nE\n", "<<<", "<(", "2>&1", ">", "<", "/dev/null", "*", "?", "~", "{ls,rm}", "$'", "rm'", "$\"",
	"if ", "; then ", "; fi", "for i in ", "; do ", "; done", "case a in a) ", ";; esac", "time ", "coproc ", "function f { ", "f() { ", "f", "select i in ",
	"env ", "command ", "exec ", "builtin ", "eval ", "trap ", " EXIT", "alias ls=rm;", "sh -c ", "bash -c ", "xargs ", "find . -maxdepth 0 -exec ", "{}", " \\;", " +", " -exec ", "timeout 5 ", "nice -n 1 ", "nohup ",
	"echo ", "printf ", "-v ", "test ", "export ", "unset ", "set -e;", "cd sub;", "PATH=.", "IFS=", "LANG=C ", " -- ", "-S ", "-c ", "wait ", "-n ", "-p ", "'a[$(rm)]' ", "a[", "]", "read ", "jobs -x ", "RANDOM=", "PS4='$(rm)';set -x;", "OPTIND=", "printf -v ", "x='a[$(rm)]';", "-eq ", "{a[$(rm)]}>", "@(", "$?", "\"$x\"", "'ls'", "'rm x'", "\"ls\"", "ls;rm", "./ls",
}

// A2: the oracle is the shell itself. What the policy allows, or has no opinion
// about, is run with a PATH of programs that only write down their names: what
// is allowed runs no other than the allowed, and nothing runs a denied one.
func TestCommandPolicyAgainstShells(t *testing.T) {
	bin, work := realDir(t), realDir(t)
	log := filepath.Join(t.TempDir(), "log")
	for name, at := range map[string]string{"ls": bin, "git": bin, "rm": bin, "./ls": work, "sub/ls": work} {
		writeProgram(t, filepath.Join(at, name))
		script := "#!/bin/sh\necho " + name + " >>" + log + "\n"
		if err := os.WriteFile(filepath.Join(at, name), []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	var shells []string
	for _, name := range []string{"sh", "bash", "dash", "env", "xargs", "find", "timeout", "nice", "nohup"} {
		real, err := exec.LookPath(name)
		if err != nil {
			continue
		}
		if err := os.Symlink(real, filepath.Join(bin, name)); err != nil {
			t.Fatal(err)
		}
		if slices.Contains(posixShells, name) {
			shells = append(shells, real)
		}
	}
	in := &programs{dir: work, dirs: []string{bin}, writable: []string{work}}
	p := Policy{Allow: []Rule{{"ls"}, {"git", "status"}, {"find"}, {"xargs"}}, Deny: []Rule{{"rm"}}}
	seed := uint64(time.Now().UnixNano())
	random := rand.New(rand.NewPCG(seed, 1))
	ran := 0
	for range 60_000 {
		var script string
		for range 1 + random.IntN(9) {
			script += shellPieces[random.IntN(len(shellPieces))]
		}
		d, _ := p.judge(inquireScript(script), in)
		if d != Allowed && (d != Unruled || random.IntN(20) > 0) || !strings.ContainsAny(script, "$`'\"\\(){}<&|;=\n") {
			continue
		}
		if ran++; ran > 150 {
			break
		}
		for _, shell := range shells {
			os.WriteFile(log, nil, 0o600)
			if err := bare(t, shell, script, work, "PATH="+bin); err != nil {
				t.Fatal(err)
			}
			got, _ := os.ReadFile(log)
			for _, name := range strings.Fields(string(got)) {
				if name == "rm" || d == Allowed && name != "ls" && name != "git" {
					t.Errorf("seed %d: %s -c %q ran %s", seed, shell, script, name)
				}
			}
		}
	}
	t.Logf("seed %d: %d command lines were run by %v", seed, ran, shells)
}

// posixShells are the shells that a tool may be given as /bin/sh.
var posixShells = []string{"sh", "bash", "dash", "ash"}

// started are command lines by which programs start another one, as security
// reports collected them. The words TOUCH stand for a command that makes a file.
var started = []string{
	"perl|-e|system('TOUCH')", "perl|-e|exec qw(TOUCH)", "python3|-c|import os; os.system('TOUCH')", "python3|-c|import subprocess; subprocess.run('TOUCH'.split())", "node|-e|require('child_process').execSync('TOUCH')", "ruby|-e|system('TOUCH')", "php|-r|system('TOUCH');", "lua|-e|os.execute('TOUCH')",
	"awk|BEGIN{system(\"TOUCH\")}", "mawk|BEGIN{system(\"TOUCH\")}", "gawk|BEGIN{system(\"TOUCH\")}", "sed|1e TOUCH|f", "sed|-n|1e TOUCH|f", "sed|-e|1e TOUCH|f", "sed|s/.*/TOUCH/e|f", "sed|--expression=1e TOUCH|f", "sed|-n|1p|f|-e|1e TOUCH", "sed|--expr=1e TOUCH|f", "sed|-f|e.sed|f",
	"tar|cf|/dev/null|--checkpoint=1|--checkpoint-action=exec=TOUCH|f", "tar|cf|/dev/null|-I|sh touchme.sh|f", "tar|xf|x.tar|--to-command=TOUCH", "tar|cf|/dev/null|--use-compress-program=sh touchme.sh|f", "tar|tf|x.tar|--checkpoint=1|--checkpoint-action=exec=TOUCH", "tar|--rsh-command=./touchme.sh|-cf|h:x|f",
	"git|-c|alias.x=!TOUCH|x", "git|-c|core.fsmonitor=TOUCH|status", "git|-c|core.pager=TOUCH|-p|log", "git|--config-env=alias.x=A|x", "git|grep|-OTOUCH;|hello", "git|grep|--open-files-in-pager=TOUCH;|hello", "git|ls-remote|--upload-pack=TOUCH;|.", "git|clone|--upload-pack=TOUCH;|.|c", "git|fetch|--upload-pack=TOUCH;|.", "git|rebase|-x|TOUCH|--root", "git|rebase|--exec=TOUCH|HEAD~1", "git|submodule|foreach|TOUCH", "git|bisect|run|TOUCH", "git|difftool|-y|-x|TOUCH|HEAD~1", "git|config|alias.x|!TOUCH", "git|-C|.|-c|alias.x=!TOUCH|x", "git|x", "git|archive|--remote=.|--exec=TOUCH;|HEAD",
	"make", "make|all", "make|-f|evil.mk", "make|--eval=all:;TOUCH|all", "make|SHELL=./touchme.sh|all", "make|-n", "make|--file=evil.mk", "make|--makefile|evil.mk", "make|--ev=all:;TOUCH",
	"vim|-es|-c|:!TOUCH|-c|q!", "ex|-c|:!TOUCH|-c|q!", "view|-es|-c|:!TOUCH|-c|q!", "vi|-es|-c|:!TOUCH|-c|q!", "vimdiff|-es|-c|:!TOUCH|-c|qa!", "rvim|-es|-c|py3 import os; os.system('TOUCH')|-c|q!", "ed|f", "emacs|--batch|--eval|(shell-command \"TOUCH\")", "nano|f", "less|f", "more|f", "man|-P|TOUCH|ls", "man|ls",
	"split|--filter=TOUCH|f", "split|-l1|--filter|TOUCH|f", "sort|--compress-program=./touchme.sh|-S|1|f", "sort|-S1|--compress-prog=./touchme.sh|f", "zip|-q|-T|-TT|TOUCH #|z.zip|f", "sqlite3|db|.shell TOUCH", "sqlite3|db|-cmd|.shell TOUCH", "psql|-c|\\! TOUCH", "mysql|-e|\\! TOUCH", "scp|-S|./touchme.sh|f|h:f", "sftp|-S|./touchme.sh|h", "ssh|-o|ProxyCommand=TOUCH|h", "rsync|-e|sh touchme.sh|f|h:f", "rsync|--rsh=./touchme.sh|f|h:f", "nc|-c|TOUCH|localhost|1", "socat|EXEC:TOUCH|-", "curl|-o|f2|file:///etc/hostname", "wget|--use-askpass=./touchme.sh|http://127.0.0.1:1/",
	"sh|touchme.sh", "./touchme.sh", "bash|touchme.sh", "dash|touchme.sh", "bash|--rcfile|touchme.sh|-i", "bash|-i|touchme.sh", "rbash|touchme.sh", "busybox|sh|touchme.sh", "busybox|TOUCH", "busybox|ash|-c|TOUCH", "busybox|awk|BEGIN{system(\"TOUCH\")}", "zsh|touchme.sh", "yash|touchme.sh", "ksh93|touchme.sh", "lksh|touchme.sh", "mksh|touchme.sh", "posh|touchme.sh", "tmux|-L|x|-f|/dev/null|new-session|-d|TOUCH", "screen|-dm|TOUCH",
	"setpriv|TOUCH", "setarch|-R|TOUCH", "setarch|x86_64|TOUCH", "linux64|TOUCH", "linux32|TOUCH", "i386|TOUCH", "x86_64|TOUCH", "capsh|--|-c|TOUCH", "ssh-agent|TOUCH", "gpg-agent|--daemon|TOUCH", "sg|root|-c|TOUCH", "newgrp|root", "/lib64/ld-linux-x86-64.so.2|/usr/bin/touch|PWNED", "/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2|/usr/bin/touch|PWNED", "debconf|TOUCH", "run-parts|.", "start-stop-daemon|--start|--exec|/usr/bin/touch|--|PWNED", "dpkg-architecture|-c|TOUCH", "faketime|now|TOUCH", "runcon|-t|x|TOUCH", "chroot|/|TOUCH", "unshare|TOUCH", "nsenter|TOUCH", "prlimit|TOUCH", "taskset|1|TOUCH", "chrt|-o|0|TOUCH", "ionice|TOUCH", "nice|TOUCH", "nohup|TOUCH", "stdbuf|-oL|TOUCH", "timeout|5|TOUCH", "env|TOUCH", "env|-S|TOUCH", "setsid|TOUCH", "setsid|-w|TOUCH", "flock|f|TOUCH", "script|-c|TOUCH|/dev/null", "watch|-n1|TOUCH", "xargs|-a|f|TOUCH", "xargs|-I{}|TOUCH", "find|.|-maxdepth|0|-exec|TOUCH|;", "find|.|-maxdepth|0|-ok|TOUCH|;", "find|.|-maxdepth|0|-execdir|TOUCH|;", "parallel|TOUCH|:::|1", "su|-c|TOUCH", "runuser|-u|root|TOUCH", "sudo|TOUCH", "doas|TOUCH", "strace|TOUCH", "ltrace|TOUCH", "gdb|-batch|-ex|!TOUCH", "valgrind|TOUCH", "perf|stat|TOUCH", "time|TOUCH", "at|now", "batch", "crontab|f", "systemd-run|TOUCH", "dbus-run-session|TOUCH", "fakeroot|TOUCH", "proot|TOUCH", "bwrap|--dev-bind|/|/|TOUCH", "firejail|TOUCH", "expect|-c|exec TOUCH", "tclsh|t.tcl", "wish|t.tcl",
	"go|run|./t.go", "go|test|./...", "go|generate|./...", "go|vet|-vettool=./touchme.sh|./...", "go|build|-toolexec=./touchme.sh|./...", "go|test|-exec=./touchme.sh|./...", "cargo|run", "cargo|test", "cargo|build|--config|x", "npm|exec|-c|TOUCH", "npm|run|x", "npm|test", "npx|-c|TOUCH", "npm|x|-c|TOUCH", "pip|install|.", "pip3|install|.", "python3|touchme.py", "ipython|-c|!TOUCH", "pytest", "cmake|-E|env|TOUCH", "cmake|-P|t.cmake", "ninja", "scons", "gcc|-wrapper|./touchme.sh|-c|t.c", "cc|-wrapper|./touchme.sh|-c|t.c", "gcc|-B.|t.c", "g++|-wrapper|./touchme.sh|t.c", "ld|-plugin|x", "m4|-D|x=syscmd(TOUCH)|f", "bc|f", "dc|-e|!TOUCH", "jq|-n|env", "xmllint|f", "gs|f", "convert|f|f2", "ffmpeg|-i|f|f2", "docker|run|x|TOUCH", "kubectl|exec|x|--|TOUCH", "ansible|all|-a|TOUCH", "openssl|engine|-t|./x.so", "gpg|--edit-key|x", "patch|-e|f", "diff|--to-file=x|f", "install|-s|--strip-program=./touchme.sh|f|f2", "dpkg|--pre-invoke=TOUCH|-l", "apt-get|-o|APT::Update::Pre-Invoke::=TOUCH|update", "apt|-o|APT::Update::Pre-Invoke::=TOUCH|update", "dpkg-query|-W", "logrotate|f", "ip|netns|exec|x|TOUCH", "tcpdump|-z|./touchme.sh", "tee|PWNED", "touch|PWNED", "cp|f|PWNED", "mv|f2|PWNED", "ln|-s|f|PWNED", "ln|f|PWNED", "dd|if=f|of=PWNED", "install|f|PWNED", "truncate|-s|0|PWNED", "mkdir|PWNED", "mkfifo|PWNED", "mknod|PWNED|p", "rsync|f|PWNED", "sort|-o|PWNED|f", "uniq|f|PWNED", "xxd|f|PWNED", "base64|-w0|f", "shuf|-o|PWNED|f", "csplit|-f|PWNED|f|1", "split|f|PWNED", "gzip|-k|f", "unzip|x.zip", "cpio|-o", "ar|r|PWNED|f", "diff|--output=PWNED|f|f2", "patch|-o|PWNED|f", "iconv|-o|PWNED|f", "tree|-o|PWNED", "file|-C|-m|f", "script|PWNED|-c|true", "git|log|--output=PWNED", "git|init|PWNED", "git|worktree|add|PWNED", "sqlite3|PWNED|create table t(x)", "perl|-e|open F,'>PWNED'", "python3|-c|open('PWNED','w')", "awk|BEGIN{print > \"PWNED\"}", "sed|-n|w PWNED|f", "sed|--posix|w PWNED|f", "find|.|-maxdepth|0|-fprint|PWNED", "logger|-s|x", "ssh-keygen|-f|PWNED|-N|", "openssl|rand|-out|PWNED|1", "gcc|-o|PWNED|t.c", "mktemp|PWNED.XXX", "vim|-es|-c|w PWNED|-c|q!|f",
	"env|perl|-e|system('TOUCH')", "timeout|5|python3|-c|open('PWNED','w')", "nice|awk|BEGIN{system(\"TOUCH\")}", "sh|-c|perl -e 'system(q(TOUCH))'", "bash|-c|./touchme.sh", "sh|-c|. ./touchme.sh", "sh|-c|make all", "sh|-c|sh touchme.sh; ls", "find|.|-maxdepth|0|-exec|sh|touchme.sh|;", "xargs|-a|f|sh|touchme.sh", "env|-|./touchme.sh",
	"busybox|env|./touchme.sh", "stdbuf|-o0|./touchme.sh", "nohup|./touchme.sh", "setsid|./touchme.sh", "time|./touchme.sh", "timeout|5|./touchme.sh", "flock|f|./touchme.sh", "env|LD_PRELOAD=./x.so|ls", "env|PATH=.|touchme.sh", "env|GIT_EXTERNAL_DIFF=./touchme.sh|git|diff", "env|GIT_CONFIG_COUNT=0|git|status", "env|GIT_PAGER=./touchme.sh|git|-p|log", "sh|-c|echo x > PWNED", "sh|-c|PATH=.; touchme.sh",
}

// demonstrators are the programs of those lines that the test runs, so that it is
// seen that they start another one. It has none that can change the machine or
// connect to others.
var demonstrators = []string{
	"perl", "python3", "node", "awk", "mawk", "gawk", "sed", "tar", "git", "make", "vim", "ex", "view", "split", "sort", "sqlite3", "sh", "./touchme.sh", "bash", "dash", "rbash", "busybox", "setpriv", "setarch", "linux64", "x86_64", "debconf", "prlimit", "taskset", "nice", "nohup",
	"stdbuf", "timeout", "env", "setsid", "flock", "xargs", "find", "time", "cmake", "gcc", "m4", "tee", "touch", "cp", "ln", "dd", "install", "truncate", "mkdir", "mkfifo", "uniq", "shuf", "/lib64/ld-linux-x86-64.so.2", "/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2", "zip", "dc", "expect",
}

// A7: with a rule that denies, no command that starts another program or writes a
// file passes without a question. The programs of this machine tell which do.
func TestDenyAgainstPrograms(t *testing.T) {
	p := newPlayground(t, Options{Policy: Policy{Deny: ruleSet(t, "touch", "rm")}})
	for name, text := range map[string]string{
		"touchme.sh": "#!/bin/sh\ntouch PWNED\n", "evil.mk": "all:\n\ttouch PWNED\n", "Makefile": "all:\n\ttouch PWNED\n", "e.sed": "1e touch PWNED\n", "touchme.py": "open('PWNED','w')\n", "t.c": "int main(){}\n", "t.cmake": "execute_process(COMMAND touch PWNED)\n",
	} {
		p.write("work/"+name, text)
	}
	if _, err := exec.LookPath("git"); err == nil {
		p.repositories()
	}
	p.keep()
	permissive, err := RunCommand("run_command", p.command.files, Options{Env: []string{"HOME=" + filepath.Join(p.base, "home")}, Timeout: 10 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	canary := filepath.Join(p.work(), "PWNED")
	ran, silent := 0, 0
	for _, line := range started {
		words := strings.Split(line, "|")
		for i, w := range words {
			words[i] = strings.ReplaceAll(w, "TOUCH", "touch PWNED")
		}
		if words[len(words)-1] == "touch PWNED" && !slices.Contains([]string{"-c", "-e", "-S", "-x", "--eval", "-a", "foreach", "run", "--tree-filter", "-P"}, words[len(words)-2]) {
			words = append(words[:len(words)-1], "touch", "PWNED")
		}
		got, _ := p.command.Approval(asCall(t, "", words...), nil)
		if got == Unruled || got == Allowed {
			silent++
		}
		if testing.Short() && got != Unruled || !slices.Contains(demonstrators, words[0]) && got != Unruled {
			continue
		}
		if _, err := permissive.Run(t.Context(), asCall(t, "", words...)); err != nil {
			continue // it is not installed
		}
		if _, err := os.Lstat(canary); err == nil {
			ran++
			if got == Unruled || got == Allowed {
				t.Errorf("%q makes a file, and has the verdict %q", words, got)
			}
			p.restore()
		}
	}
	t.Logf("%d command lines: %d without a verdict, %d made the file when they were run", len(started), silent, ran)
	if !testing.Short() && ran < 30 {
		t.Errorf("only %d made the file, which shows little", ran)
	}
	for _, line := range []string{"ls", "git|status", "git|log|--oneline", "grep|-r|x|.", "cat|f", "find|.|-name|x", "sed|-n|1,5p|f", "wc|-l|f", "env|ls"} {
		if got, why := p.command.Approval(asCall(t, "", strings.Split(line, "|")...), nil); got != Unruled {
			t.Errorf("%s is asked about: %q (%s)", line, got, why)
		}
	}
}

// A7: a rule that allows a program by its name, or an answer, takes the place of the
// question. A rule for all programs does not: nobody thought of this one.
func TestDenyAndAllow(t *testing.T) {
	_, in := policyKit(t)
	deny := ruleSet(t, "rm")
	for _, c := range []struct {
		allow, argv string
		want        session.Verdict
	}{
		{"go test", "go|test|./...", Allowed}, {"go test", "go|build", Asked}, {"./build.sh", "./build.sh|x", Allowed}, {"*", "ls", Allowed}, {"ls", "cat|x", Unruled}, {"ls", "cat|--unknown|x", Asked}, {"ls", "npm|run|x", Asked},
	} {
		p := Policy{Allow: ruleSet(t, c.allow), Deny: deny}
		if got, why := p.judge(inquireArgv(strings.Split(c.argv, "|")), in); got != c.want {
			t.Errorf("allow %s, then %s: %q (%s), want %q", c.allow, c.argv, got, why, c.want)
		}
	}
}

// No text makes the reading of command lines panic or allow what is denied.
func FuzzCommandPolicy(f *testing.F) {
	f.Add("git status && rm x")
	f.Add("x='a[$(rm)]'; echo $((x))")
	f.Add("cat <<EOF\n`rm`\nEOF")
	p := Policy{Allow: []Rule{{"ls"}, {"git"}}, Deny: []Rule{{"rm"}}}
	f.Fuzz(func(t *testing.T, script string) {
		in := &programs{dir: "/", dirs: []string{"/bin"}}
		p.judge(inquireScript(script), in)
		if got, _ := p.judge(inquireScript("rm\n"+script), in); got == Allowed {
			t.Errorf("%q", script)
		}
		p.judge(inquireArgv(strings.Fields(script)), in)
	})
}

// A7 A8: each shell is read by all grammars that it may have, and one that is not
// known is asked about, under whatever name a distribution has it.
func TestShellsByTheirNames(t *testing.T) {
	_, in := policyKit(t)
	policy := Policy{Allow: []Rule{{"ls"}}, Deny: []Rule{{"p1"}}}
	for _, name := range []string{"sh", "dash", "ash"} {
		if v, why := policy.judge(inquireArgv([]string{name, "-c", `ls $'\'' ; p1 #'`}), in); v != Asked && v != Denied {
			t.Errorf("%s: %s", name, why)
		}
	}
	for _, name := range []string{"yash", "posh", "lksh", "rbash", "mksh-static", "ksh93", "ksh2020", "rksh93", "zsh5", "zsh-static", "bash-static", "bash5.2", "sash", "oksh", "fish", "csh", "bsd-csh", "tcsh", "rc", "es"} {
		if v, why := policy.judge(inquireArgv([]string{name, "-c", "p1"}), in); v != Asked && v != Denied || why == "" {
			t.Errorf("%s: %v %s", name, v, why)
		}
		if v, _ := (Policy{Allow: []Rule{{name}}, Deny: []Rule{{"p1"}}}).judge(inquireArgv([]string{name, "-c", "p1"}), in); v != Asked && v != Denied {
			t.Errorf("%s is allowed by its name, whatever it runs", name)
		}
	}
}

// bare runs a script without a sandbox, which would only take time: the test is about
// what the shell reads. The script's own failure is not an error.
func bare(t *testing.T, shell, script, dir string, env ...string) error {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), shell, "-c", script)
	cmd.Dir, cmd.Env = dir, env
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.WaitDelay = time.Minute
	err := cmd.Run()
	if cmd.Process != nil {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	}
	if _, failed := errors.AsType[*exec.ExitError](err); failed {
		return nil
	}
	return err
}
