// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package shell

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/antiphon-go/antiphon/sandbox"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/tool"
	"github.com/antiphon-go/antiphon/tool/output"
	"github.com/antiphon-go/antiphon/toolkit/internal/files"
	"github.com/antiphon-go/antiphon/toolkit/internal/kittest"
)

// playground is a workspace with traps, a folder outside of it and a home. What a
// command must not do is visible: a trap leaves a file, and what must not be read has
// a mark in it.
type playground struct {
	t       *testing.T
	base    string // holds work, outside and home
	command *Command
	set     *tool.Set
	clean   string
	damage  func() string // harm of the last command that is not in the files; may be nil
}

// outsideMark is in all files that a command must not read.
const outsideMark = "CANARY-OUTSIDE"

func newPlayground(t *testing.T, options Options) *playground {
	t.Helper()
	p := &playground{t: t, base: filepath.Join(realDir(t), "base")}
	for name, text := range map[string]string{
		"work/f": "hello\nzeta\nalpha\n", "work/g": "hello\n", "work/sub/f2": "hello\n", "work/args": "--output=PWNED\n",
		"work/Makefile": "all:\n\t@echo made\nother:\n\t@touch PWNED\n", "work/go.mod": "module x\n\ngo 1.21\n", "work/x.go": "package x\n",
		"work/touch.sh": "#!/bin/sh\ntouch PWNED\n", "outside/secret": outsideMark + "\nhello\n", "outside/list": "f\x00", "outside/evil.mk": "all:\n\ttouch PWNED\n",
		"home/secret": outsideMark + "\nhello\n", "home/.gitconfig": "[user]\n\tname = a\n\temail = a@b.c\n[init]\n\tdefaultBranch = main\n",
	} {
		path := filepath.Join(p.base, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, target := range map[string]string{"link": "../outside/secret", "dirlink": "../outside"} {
		if err := os.Symlink(target, filepath.Join(p.work(), name)); err != nil {
			t.Fatal(err)
		}
	}
	roots, err := files.Open(files.Root{Path: p.work()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = roots.Close() })
	options.Env = append(options.Env, "HOME="+filepath.Join(p.base, "home"), "GOCACHE="+filepath.Join(t.TempDir(), "go"), "GOFLAGS=", "GOTOOLCHAIN=local")
	options.Timeout = time.Minute
	// Harm must be possible, to be seen, and without a sandbox there is time for more pairs.
	options.Sandbox = sandbox.Full
	if p.command, err = RunCommand("run_command", roots, options); err != nil {
		t.Fatal(err)
	}
	if p.set, err = tool.NewSet(p.command); err != nil {
		t.Fatal(err)
	}
	return p
}

func (p *playground) work() string { return filepath.Join(p.base, "work") }

// git runs git in a folder of the workspace without the settings of the tool.
func (p *playground) git(folder string, words ...string) {
	p.t.Helper()
	cmd := exec.Command("git", words...)
	cmd.Dir = filepath.Join(p.work(), folder)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + filepath.Join(p.base, "home")}
	if out, err := cmd.CombinedOutput(); err != nil {
		p.t.Fatalf("git %q: %v %s", words, err, out)
	}
}

// repositories makes the workspace a repository with two commits and a change, and
// puts two hostile ones into it: a folder that is a repository itself, as a clone may
// hold it, and one with a configuration of its own, as an archive may hold it.
func (p *playground) repositories() {
	p.t.Helper()
	p.git(".", "init", "-q", "--template=")
	p.git(".", "add", "f", "g", "sub")
	p.git(".", "commit", "-qm", "one")
	p.git(".", "commit", "-qm", "two", "--allow-empty")
	p.write("work/f", "hello\nchanged\n")
	p.git(".", "init", "-q", "--bare", "--template=", "bare")
	p.write("work/bare/config", "[core]\n\trepositoryformatversion = 0\n\tbare = false\n\tworktree = .\n\tfsmonitor = \"touch PWNED; false\"\n")
	p.git(".", "init", "-q", "--template=", "archive")
	p.write("work/archive/file", "hello\n")
	p.git("archive", "add", "file")
	p.git("archive", "commit", "-qm", "one")
	p.write("work/archive/file", "hallo\n")
	p.write("work/archive/.gitattributes", "* filter=x diff=x\n")
	p.write("work/archive/.git/config", "[core]\n\trepositoryformatversion = 0\n\tfsmonitor = \"touch PWNED; false\"\n[filter \"x\"]\n\tclean = touch PWNED; cat\n[diff \"x\"]\n\ttextconv = touch PWNED; cat\n[diff]\n\texternal = touch PWNED; true\n")
	p.write("work/archive/.git/hooks/post-index-change", "#!/bin/sh\ntouch PWNED\n")
}

func (p *playground) write(name, text string) {
	p.t.Helper()
	path := filepath.Join(p.base, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		p.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
		p.t.Fatal(err)
	}
}

// state describes all files of the playground.
func (p *playground) state() string {
	p.t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(p.base, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if strings.HasSuffix(path, "home/.kube/cache") { // what kubectl remembers of each server
			return filepath.SkipDir
		}
		fmt.Fprintf(&b, "%s %v", path, e.Type())
		if e.Type().IsRegular() {
			info, err := e.Info()
			if err != nil {
				return err
			}
			fmt.Fprintf(&b, " %d %d", info.Size(), info.ModTime().UnixNano())
		}
		b.WriteByte('\n')
		return nil
	})
	if err != nil {
		p.t.Fatal(err)
	}
	return b.String()
}

// changed returns the first line by which the files differ from what they were before.
func (p *playground) changed(before string) string {
	now := strings.Split(p.state(), "\n")
	for _, line := range now {
		if !strings.Contains(before, line+"\n") {
			return line
		}
	}
	return "something away"
}

// keep remembers the playground as it is now, for restore.
func (p *playground) keep() {
	p.clean = filepath.Join(p.t.TempDir(), "clean")
	if out, err := exec.Command("cp", "-a", p.base, p.clean).CombinedOutput(); err != nil {
		p.t.Fatalf("%v %s", err, out)
	}
}

func (p *playground) restore() {
	p.t.Helper()
	for _, dir := range []string{p.base, p.work()} {
		entries, err := os.ReadDir(dir)
		if err != nil {
			p.t.Fatal(err)
		}
		for _, e := range entries {
			path := filepath.Join(dir, e.Name())
			if path == p.work() { // it stays: it is open
				continue
			}
			if err := os.RemoveAll(path); err != nil {
				p.t.Fatal(err)
			}
		}
	}
	if out, err := exec.Command("cp", "-a", p.clean+"/.", p.base).CombinedOutput(); err != nil {
		p.t.Fatalf("%v %s", err, out)
	}
}

func asCall(t *testing.T, directory string, words ...string) tool.Call {
	t.Helper()
	args := kittest.Args{"command": words}
	if directory != "" {
		args["directory"] = directory
	}
	return tool.Call{Name: "run_command", Arguments: kittest.JSON(t, args)}
}

// agreed returns the rules that are left behind by an answer about a command.
func (p *playground) agreed(line ...string) []session.Rule {
	return p.command.Suggest(asCall(p.t, "", line...))
}

// does runs a command and returns what it did that nobody may do unasked, or "".
func (p *playground) does(before string, call tool.Call) (harm, text string) {
	p.t.Helper()
	o := p.set.Invoke(p.t.Context(), call, output.Policy{})
	text = o.Content.Display() + o.Error
	switch {
	case strings.Contains(text, outsideMark):
		return "reads outside", text
	case before != p.state():
		return "writes " + p.changed(before), text
	case p.damage != nil:
		return p.damage(), text
	}
	return "", text
}

// additions are put behind a command that was agreed to, and behind its verb. Each
// is dangerous to some program, and most mean nothing to the others.
var additions = []string{
	"--output=PWNED", "--outpu=PWNED", "--output|PWNED", "-o|PWNED", "-oPWNED", "-O|PWNED", "-Otouch PWNED;", "--open-files-in-pager=touch PWNED;",
	"--ext-diff", "--textconv", "--upload-pack=touch PWNED;", "-c|core.fsmonitor=touch PWNED", "-c|alias.x=!touch PWNED", "--exec=touch PWNED", "-x|touch PWNED",
	"--config=alias.x=!touch PWNED", "--config|evil", "--eval=all:;touch PWNED", "--eva=all:;touch PWNED", "-E|all:;touch PWNED", "-exec|touch|PWNED|;", "-delete", "-fprint|PWNED", "-fls|PWNED", "-ok|touch|PWNED|;",
	"-toolexec=./touch.sh", "-vettool=./touch.sh", "-exec=./touch.sh", "-f|../outside/secret", "--file=../outside/secret", "-f../outside/evil.mk", "--files0-from=../outside/secret", "-files0-from|../outside/secret",
	"-S|1|--compress-program=./touch.sh", "--compress-prog=./touch.sh", "-T|.", "-e|1e touch PWNED", "-e|w PWNED", "1e touch PWNED", "-i", "-i.bak|s/hello/x/", "--in-place", "-s|e", "--checkpoint=1|--checkpoint-action=exec=touch PWNED",
	"../outside/secret", "link", "./link", "dirlink/secret", "dirlink/../outside/secret", "sub/../../outside/secret", "nowhere/../../outside/secret", "~/secret", "@args", "--no-index|/dev/null|../outside/secret", "-r|dirlink/", "-R|.", "-RL|.", "-L|.", "-rL|.", "-follow",
	"--exclude-from=../outside/secret", "--from-file=../outside/secret", "-X|../outside/secret", "--contents=../outside/secret", "other", "-w", "PWNED", "--pre=./touch.sh", "--dereference-recursive|hello|.", "--unknown", "-C|../outside", "--work-tree=..", "--format=%G?", "--show-signature",
}

// agreedTo are commands that a person says yes to. The second group runs what the
// project holds; the third has no verb in the table, so exactly these words are covered.
var agreedTo = []string{
	"git|status", "git|log", "git|show", "git|diff", "git|grep|hello", "git|blame|f", "git|ls-files", "git|cat-file|-p|HEAD", "git|branch", "git|rev-parse|HEAD", "ls", "cat|f", "head|f", "tail|-n|1|f", "wc|f", "grep|hello|f", "rg|hello", "find|.",
	"sort|f", "uniq|f", "diff|f|g", "cmp|f|g", "comm|f|g", "cut|-c1|f", "tr|a|b", "sed|-n|1p|f", "stat|f", "du|.", "file|f", "od|f", "sha256sum|f", "realpath|f", "echo|x", "date", "nl|f", "tac|f", "paste|f",
	"make|all",
	"tar|tf|x.tar", "python3|-c|print(1)", "perl|-e|1", "awk|1|f", "tee|f", "touch|f", "cp|f|g", "dd|if=f", "vim|f", "sqlite3|db", "git|fetch", "git|clone|.|x", "git|archive|HEAD", "git|config|user.name", "git|rebase|HEAD", "curl|http://127.0.0.1:1/", "rm|-rf|build", "env|cat|f",
}

// demonstrated are those of them whose pairs are also run if they are asked about, so
// that it is seen what the answer would have let pass. It has no program that can
// change the machine: date -s sets its clock.
var demonstrated = []string{"git|grep|hello", "git|log", "git|diff", "sort|f", "sed|-n|1p|f", "find|.", "make|all", "uniq|f", "cat|f"}

// harmless are words behind a command that is agreed to, for which nobody is asked
// again. Asking too often teaches people to say yes.
var harmless = map[string][]string{
	"git|status": {"-s", "--short|--branch", "--porcelain=v2", "sub"}, "git|log": {"--oneline|-5", "-n|3|--stat", "--format=%h %s", "-p|--|f", "HEAD~1..HEAD", "-Shello", "--since=yesterday|--author=a"},
	"git|show": {"HEAD", "HEAD:f", "--name-only|HEAD~1"}, "git|diff": {"--cached", "HEAD~1", "--stat|HEAD", "--|f"}, "git|grep|hello": {"-n|-i|hello|--|f"}, "git|branch": {"-a", "--show-current"},
	"ls": {"-la", "-R|sub", "sub", "--color=never|-1"}, "cat|f": {"g", "-n|sub/f2"}, "head|f": {"-5|g", "-n|2|g", "-c3|g"}, "tail|-n|1|f": {"g"}, "wc|f": {"-l|g"}, "grep|hello|f": {"-rn|zeta|.", "-e|zeta|-e|/etc|f", "-A|2|--include=*.go|x|sub", "-E|a+|g"},
	"find|.": {"-name|*.go", "-type|f|-mtime|-1|-size|-10k", "(|-name|a|-o|-name|b|)|-prune"}, "sort|f": {"-u|g", "-k2,2|-n|f", "-t,|-k|1"}, "diff|f|g": {"-u"}, "sed|-n|1p|f": {"-n|1,20p|g", "-n|$p|f"}, "make|all": {"-j4|all", "-k|all"},
}

// counts are those of pairs: how many there were, how many of them were asked about, and
// how many did harm when they were run.
type counts struct{ pairs, asked, harmful int }

// pairs checks that the answer about the command first covers the command, and of first
// with each addition nothing that does harm. With demonstrate, what is asked about runs
// too, so that it is seen what the answer would have let pass.
func (p *playground) pairs(n *counts, before, first string, additions []string, demonstrate bool) {
	p.t.Helper()
	words := strings.Split(first, "|")
	if _, err := exec.LookPath(words[0]); err != nil {
		p.t.Logf("%s is not installed: its pairs are left out", words[0])
		return
	}
	rules := p.agreed(words...)
	if got, why := p.command.Approval(asCall(p.t, "", words...), rules); len(rules) != 1 || got != Allowed {
		p.t.Errorf("%q: the answer %v covers not even the command itself: %q (%s)", words, rules, got, why)
		return
	}
	known := rules[0].Prefix[len(rules[0].Prefix)-1] == session.KnownOptions
	verb := 1
	if known {
		verb = min(len(words), len(rules[0].Prefix)-1)
	}
	seconds := [][]string{}
	for _, addition := range additions {
		more := strings.Split(addition, "|")
		seconds = append(seconds, slices.Concat(words, more), slices.Concat(words[:verb], more, words[verb:]))
	}
	for i, second := range seconds {
		alternate := i%4 == 0 || i%4 == 3 // each addition in one of its two places
		if testing.Short() && i%4 > 0 || !alternate && os.Getenv("ANTIPHON_PAIRS") != "all" {
			continue
		}
		n.pairs++
		call := asCall(p.t, "", second...)
		got, _ := p.command.Approval(call, rules)
		if got != Allowed {
			n.asked++
			if !alternate || !demonstrate || testing.Short() {
				continue
			}
		}
		harm, text := p.does(before, call)
		if harm != "" {
			n.harmful++
			p.restore()
		}
		if got == Allowed && harm != "" {
			p.t.Errorf("yes to %q, then %q runs unasked and %s: %.200s", words, second, harm, text)
		}
		if got == Allowed && !known {
			p.t.Errorf("yes to %q covers %q", words, second)
		}
	}
}

// A6: of more than 500 pairs of a command that a person said yes to and another
// one, none runs unasked and does something that nobody agreed to. The programs of
// this machine tell what a command does. A plain go test tries half of the pairs, and
// .ci/run all of them, by ANTIPHON_PAIRS=all.
func TestRememberedPairs(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed, and many of the pairs are about it")
	}
	p := newPlayground(t, Options{})
	p.repositories()
	p.keep()
	before := p.state()
	var n counts
	for _, first := range agreedTo {
		p.pairs(&n, before, first, additions, slices.Contains(demonstrated, first))
	}
	t.Logf("%d pairs: %d asked about; %d of those that were run are harmful", n.pairs, n.asked, n.harmful)
	if n.pairs < 500 || !testing.Short() && n.harmful < 30 {
		t.Errorf("%d pairs, of which %d are harmful: too few to show anything", n.pairs, n.harmful)
	}
}

// A6: an answer about a verb that is known covers other harmless uses of it.
func TestRememberedHarmless(t *testing.T) {
	p := newPlayground(t, Options{})
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	p.repositories()
	before := p.state()
	for first, list := range harmless {
		words := strings.Split(first, "|")
		if _, err := exec.LookPath(words[0]); err != nil {
			t.Logf("%s is not installed", words[0])
			continue
		}
		rules := p.agreed(words...)
		for _, more := range list {
			verb := slices.Index(rules[0].Prefix, session.KnownOptions)
			second := slices.Concat(words[:min(verb, len(words))], strings.Split(more, "|"))
			if words[0] == "make" {
				second = slices.Concat(words[:1], strings.Split(more, "|"))
			}
			if got, why := p.command.Approval(asCall(t, "", second...), rules); got != Allowed {
				t.Errorf("yes to %q, then %q: %q (%s)", words, second, got, why)
			}
			if harm, text := p.does(before, asCall(t, "", second...)); harm != "" {
				t.Errorf("%q %s: %s", second, harm, text)
			}
		}
	}
}

// A6: a repository within the workspace runs nothing by its configuration, and one
// that has more than git init writes is asked about.
func TestRememberedRepository(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	p := newPlayground(t, Options{})
	p.repositories()
	before := p.state()
	for _, verb := range []string{"status", "diff", "log", "show"} {
		rules := p.agreed("git", verb)
		if harm, text := p.does(before, asCall(t, "bare", "git", verb)); harm != "" { // that the trap works, TestGitSettings shows
			t.Errorf("git %s in a folder that is a repository %s: %s", verb, harm, text)
		}
		if got, _ := p.command.Approval(asCall(t, "archive", "git", verb), rules); got == Allowed {
			t.Errorf("git %s in a repository with filters and hooks passes", verb)
		}
		if got, _ := p.command.Approval(asCall(t, "sub", "git", verb), rules); got != Allowed {
			t.Errorf("git %s in a folder of the repository: %q", verb, got)
		}
	}
	for name, text := range map[string]string{
		"work/.git/hooks/post-index-change": "x", "work/.gitmodules": "", "work/.git/config.worktree": "", "work/.git/objects/info/alternates": "x",
	} {
		p.write(name, text)
		if got, _ := p.command.Approval(asCall(t, "", "git", "status"), p.agreed("git", "log")); got == Allowed || repositoryProblem(p.work(), []string{p.work()}) == "" {
			t.Errorf("with %s: %q", name, got)
		}
		if err := os.Remove(filepath.Join(p.base, name)); err != nil {
			t.Fatal(err)
		}
	}
	if why := repositoryProblem(p.work(), []string{p.work()}); why != "" {
		t.Error(why)
	}
	// git skips what is no repository, and uses the one above.
	for name, files := range map[string][]string{
		"nothing but a configuration": {"config|[core]\n\tbare = false\n"},
		"no refs":                     {"config|", "HEAD|ref: refs/heads/main\n", "objects/x|"},
		"no HEAD":                     {"config|", "objects/x|", "refs/x|"},
		"a HEAD that is none":         {"config|", "HEAD|nothing\n", "objects/x|", "refs/x|"},
	} {
		for _, file := range files {
			path, text, _ := strings.Cut(file, "|")
			p.write("work/inner/.git/"+path, text)
		}
		if repositoryProblem(filepath.Join(p.work(), "inner"), []string{p.work()}) == "" {
			t.Errorf("a false repository with %s is taken for one", name)
		}
		if err := os.RemoveAll(filepath.Join(p.work(), "inner")); err != nil {
			t.Fatal(err)
		}
	}
	for _, text := range []string{"[include]\n\tpath = x\n", "[core] fsmonitor = x\n", "[core]\n\tfsmonitor = x\n", "[alias]\n\tx = !y\n", "[remote \"x\"]\n\tuploadpack = y\n", "[core]\n\tpager = x\n", "[core]\n\tname = a\\\n\tfsmonitor = x\n", "[filter \"x\"]\n\tclean = y\n"} {
		p.write("work/.git/config", text)
		if repositoryProblem(p.work(), []string{p.work()}) == "" {
			t.Errorf("no problem: %q", text)
		}
	}
}

// A6: the index of a repository that holds another one may lie in two files.
func TestSplitIndex(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	dir := t.TempDir()
	git := func(args ...string) {
		t.Helper()
		cmd := exec.Command("git", append([]string{"-C", dir, "-c", "user.name=a", "-c", "user.email=a@b"}, args...)...)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %q: %v\n%s", args, err, out)
		}
	}
	git("init", "-q")
	if err := os.WriteFile(filepath.Join(dir, "a"), []byte("a"), 0o600); err != nil {
		t.Fatal(err)
	}
	git("add", ".")
	git("commit", "-q", "-m", "one")
	if why := repositoryProblem(dir, []string{dir}); why != "" {
		t.Fatal(why)
	}
	git("init", "-q", "inner")
	git("-C", "inner", "commit", "-q", "--allow-empty", "-m", "one")
	git("add", "inner")
	if repositoryProblem(dir, []string{dir}) == "" {
		t.Error("no problem with a repository inside")
	}
	git("update-index", "--split-index")
	if repositoryProblem(dir, []string{dir}) == "" {
		t.Error("no problem with a repository inside and a split index")
	}
}

// A6: by what a folder holds, git starts no program, without a question: the same
// commands without the settings do.
func TestGitSettings(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	p := newPlayground(t, Options{Env: []string{"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=user.name", "GIT_CONFIG_VALUE_0=mine"}})
	p.repositories()
	for _, trap := range []struct{ directory, config, hook, line string }{
		{"bare", "", "", "git|status"},
		{"archive", "[core]\n\trepositoryformatversion = 0\n\tfsmonitor = \"touch PWNED; false\"\n", "", "git|status"},
		{"archive", "[core]\n\trepositoryformatversion = 0\n[diff]\n\texternal = touch PWNED; true\n", "", "git|diff"},
		{"archive", "[core]\n\trepositoryformatversion = 0\n\teditor = touch PWNED; true\n", "", "git|commit|--allow-empty"},
		{"archive", "[core]\n\trepositoryformatversion = 0\n[protocol \"ext\"]\n\tallow = always\n", "", "git|ls-remote|ext::touch PWNED"},
		{"archive", "[core]\n\trepositoryformatversion = 0\n", "post-index-change", "git|status"},
	} {
		if trap.config != "" {
			p.write("work/archive/.git/config", trap.config)
			if err := os.RemoveAll(filepath.Join(p.work(), "archive", ".git", "hooks")); err != nil {
				t.Fatal(err)
			}
		}
		if trap.hook != "" {
			p.write("work/archive/.git/hooks/"+trap.hook, "#!/bin/sh\ntouch PWNED\n")
			p.write("work/archive/.gitattributes", "")
			p.write("work/archive/file", "hello\n") // as it is in the index, but for its time
		}
		words := strings.Split(trap.line, "|")
		canary := filepath.Join(p.work(), trap.directory, "PWNED")
		dated := time.Unix(1e9, 0) // so that the index is out of date
		_ = os.Chtimes(filepath.Join(p.work(), trap.directory, "file"), dated, dated)
		p.set.Invoke(t.Context(), asCall(t, trap.directory, words...), output.Policy{})
		if _, err := os.Stat(canary); err == nil {
			t.Errorf("%+v: the program ran", trap)
		}
		plain := exec.Command(words[0], words[1:]...)
		plain.Dir = filepath.Join(p.work(), trap.directory)
		plain.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + filepath.Join(p.base, "home")}
		now := time.Unix(1e9+1, 0)
		_ = os.Chtimes(filepath.Join(p.work(), trap.directory, "file"), now, now)
		_ = plain.Run() // it may fail, after the trap
		if err := os.Remove(canary); err != nil {
			t.Errorf("%+v: without the settings nothing runs either, so this shows nothing", trap)
		}
	}
	if text := p.set.Invoke(t.Context(), asCall(t, "", "git", "config", "user.name"), output.Policy{}).Content.Display(); !strings.Contains(text, "mine") {
		t.Errorf("the settings of the environment are lost: %s", text)
	}
}

// A6: a rule from before that is a prefix covers its words alone. In another folder
// the same words are another command.
func TestRememberedPrefix(t *testing.T) {
	p := newPlayground(t, Options{})
	rule := []session.Rule{{Verdict: session.Allow, Tool: "run_command", Member: memberOf(sandbox.Full()), Prefix: []string{"make", "all"}}}
	for words, want := range map[string]session.Verdict{"make|all": Allowed, "make|all|-k": Unruled, "make": Unruled, "env|make|all": Unruled} {
		if got, _ := p.command.Approval(asCall(t, "", strings.Split(words, "|")...), rule); got != want {
			t.Errorf("%s: %q, want %q", words, got, want)
		}
	}
	if got, _ := p.command.Approval(asCall(t, "sub", "make", "all"), rule); got != Unruled {
		t.Errorf("in another folder: %q", got)
	}
	if rules := p.agreed("touch", "x", session.KnownOptions); rules != nil {
		t.Errorf("%v", rules)
	}
	if rules := p.agreed("./touch.sh", "x"); len(rules) != 1 || !slices.Equal(rules[0].Prefix, []string{"./touch.sh", "x"}) {
		t.Errorf("%v", rules)
	}
}

// A6: an answer about a command line covers this line, and one about a verb in it
// covers no line that sets variables, goes elsewhere or writes to a file.
func TestRememberedScript(t *testing.T) {
	p := newPlayground(t, Options{Shell: true})
	line := func(text string) tool.Call {
		return tool.Call{Name: "run_command", Arguments: kittest.JSON(t, kittest.Args{"command": text})}
	}
	for said, pairs := range map[string]map[string]session.Verdict{
		"cat f": {"cat g": Allowed, "cat g | cat": Allowed, "cat <<E\nx\nE": Allowed, "cat $x": Unruled, "cat *": Unruled, "cat ~/secret": Unruled, "cat f > PWNED": Unruled,
			"cd dirlink && cat secret": Unruled, "cd sub && cat f2": Unruled, "LD_PRELOAD=x cat f": Unruled, "cat \"$(cat g)\"": Unruled, "echo x; cat f": Allowed, "cat f; touch x": Unruled},
		"cat f | wc -l":             {"cat f | wc -l": Allowed, "wc -l f": Unruled, "cat f": Unruled, "cat f | wc -l ": Unruled},
		"python3 - <<E\nprint()\nE": {"python3 - <<E\nprint()\nE": Allowed, "python3 - <<E\nother()\nE": Unruled, "python3 -": Unruled},
	} {
		rules := p.command.Suggest(line(said))
		if len(rules) != 1 {
			t.Errorf("%s: %v", said, rules)
		}
		for text, want := range pairs {
			if got, why := p.command.Approval(line(text), rules); got != want {
				t.Errorf("yes to %s, then %s: %q (%s), want %q", said, text, got, why, want)
			}
		}
	}
}
