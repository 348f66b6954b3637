// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/antiphon-go/antiphon/internal/show"
)

// home returns an environment with an empty home, and makes a folder the current one.
func home(t *testing.T, folder string) []string {
	t.Helper()
	t.Chdir(folder)
	t.Setenv("HOME", filepath.Join(t.TempDir(), "home"))
	return []string{"XDG_DATA_HOME=" + filepath.Join(t.TempDir(), "data"), "HOME=" + os.Getenv("HOME")}
}

// TestQuestion: a question needs no file, is kept, and -c goes on with the last one of the
// folder only. U2 U7
func TestQuestion(t *testing.T) {
	one, other := t.TempDir(), t.TempDir()
	env := home(t, one)
	first := programEnv(t, env, "Why is the sky blue?")
	if first.code != exitOK || !strings.Contains(first.out, `You said: "Why is the sky blue?"`) {
		t.Fatalf("%+v", first)
	}
	name := regexp.MustCompile(`new session (why-is-the-sky-blue-[0-9a-f]{4})`).FindStringSubmatch(first.err)
	if name == nil {
		t.Fatalf("which session is it?\n%s", first.err)
	}
	t.Chdir(other)
	none := programEnv(t, env, "-c", "And the sea?")
	if none.code != exitUsage || !strings.Contains(none.err, "no conversation began in this folder yet") {
		t.Errorf("-c in another folder: %+v", none)
	}
	if elsewhere := programEnv(t, env, "Is it cold here?"); elsewhere.code != exitOK {
		t.Errorf("%+v", elsewhere)
	}
	t.Chdir(one)
	again := programEnv(t, env, "-c", "And the sea?")
	if again.code != exitOK || !strings.Contains(again.err, "continues "+name[1]) || !strings.Contains(again.out, `"And the sea?"`) {
		t.Errorf("-c: %+v", again)
	}
	if forgotten := programEnv(t, env, "--forget", "Keep this?"); forgotten.code != exitOK || strings.Contains(forgotten.err, "session") {
		t.Errorf("--forget: %+v", forgotten)
	}
	listed := programEnv(t, env, "sessions", "list")
	if n := strings.Count(listed.out, "assistant.md"); n != 2 || strings.Contains(listed.out, "keep-this") {
		t.Errorf("%d sessions, want 2:\n%s", n, listed.out)
	}
}

// TestUsual: what is a question, and what is a command or a mistake.
func TestUsual(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, "agent file.md", "<user>Hi</user>")
	commands := []string{"run", "ask", "chat", "check", "sessions", "list", "trust"}
	for _, c := range []struct {
		args, want string // separated by |
		piped      bool
	}{
		{args: "", want: "--help"},
		{args: "", piped: true, want: "ask"},
		{args: "Why is it so?", want: "ask|Why is it so?"},
		{args: "why?", want: "ask|why?"},
		{args: "two words", want: "ask|two words"},
		{args: "-m|x|Why is it so?", want: "ask|-m|x|Why is it so?"},
		{args: "-c|More", want: "ask|-c|More"},
		{args: "-m|x|Why?|--api|chat", want: "ask|-m|x|Why?|--api|chat"},
		{args: "-s|run|Why?", want: "ask|-s|run|Why?"},
		{args: "--rehearsal|run|agent.md", want: "--rehearsal|run|agent.md"},
		{args: "hello", want: "hello"},
		{args: "hello", piped: true, want: "ask|hello"},
		{args: "-", piped: true, want: "ask|-"},
		{args: "chekc", piped: true, want: "chekc"},
		{args: "list", piped: true, want: "list"},
		{args: "agent.md", piped: true, want: "agent.md"},
		{args: "agent file.md", piped: true, want: "agent file.md"},
		{args: "run|agent.md", piped: true, want: "run|agent.md"},
		{args: "--store|x|sessions|list", want: "--store|x|sessions|list"},
		{args: "--help", want: "--help"},
		{args: "help|run", want: "run|--help"},
		{args: "--version", want: "version"},
	} {
		var args []string
		if c.args != "" {
			args = strings.Split(c.args, "|")
		}
		if got := usual(args, func() bool { return c.piped }, commands); !slices.Equal(got, strings.Split(c.want, "|")) {
			t.Errorf("%q, piped %v: %q, want %q", c.args, c.piped, got, c.want)
		}
	}
}

// TestTalks proves that flags of chat without a question begin a chat at a terminal.
func TestTalks(t *testing.T) {
	for args, want := range map[string]bool{
		"": true, "-c": true, "--continue": true, "-r": true, "-m|x|-s|Be brief": true, "-f|plan.pdf": true, "--session|-1": true, "--plain": true, "-v|-c": true,
		"-c|And now?": false, "-m|x|Why?": false, "-m": false, "-v": false, "--version": false, "-h": false, "-c|--help": false, "--help": false,
		"-c|-q": false, "-o|x.md": false, "--schema|x.json|-c": false, "chat": false, "run|-c": false, "two words": false,
	} {
		var list []string
		if args != "" {
			list = strings.Split(args, "|")
		}
		if got := talks(list); got != want {
			t.Errorf("%q: %v", args, got)
		}
	}
}

// TestPipedQuestion: piped text goes behind the question. U2
func TestPipedQuestion(t *testing.T) {
	env := home(t, t.TempDir())
	in, pipe, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	if _, err := pipe.WriteString("the sky is green\n"); err != nil {
		t.Fatal(err)
	}
	pipe.Close()
	var out, messages bytes.Buffer
	code := run(t.Context(), []string{"summarize", "--json"}, env, stdio{in, &out, &messages})
	if code != exitOK || !strings.Contains(out.String(), `"summarize\n\nthe sky is green"`) {
		t.Errorf("exit code %d\n%s%s", code, &out, &messages)
	}
}

// TestAttachments: what -f sends, and its errors. U2
func TestAttachments(t *testing.T) {
	png, err := os.ReadFile(filepath.Join("..", "..", "docs", "export-light.png"))
	if err != nil {
		t.Fatal(err)
	}
	env := home(t, t.TempDir())
	write(t, "notes.txt", "buy milk")
	write(t, "empty.txt", "")
	write(t, "picture", string(png))
	write(t, "paper.pdf", "%PDF-1.4 not really")
	write(t, "page.html", "<p>Hi</p>")
	got := programEnv(t, env, "--json", "--forget", "-s", "Be brief.", "-f", "notes.txt", "-f", "picture", "-f", "paper.pdf", "-f", "page.html",
		"-f", "https://example.com/a.png", "-f", "https://example.com/a.PDF?x=1", "What is this?")
	for _, want := range []string{
		`"role":"system"`, `"text":"Be brief."`, `"text":"notes.txt:\n\nbuy milk"`, `"image_url":"data:image/png;base64,`, `"filename":"paper.pdf"`,
		`"text":"page.html:\n\n<p>Hi</p>"`, `"image_url":"https://example.com/a.png"`, `"file_url":"https://example.com/a.PDF?x=1"`, `"text":"What is this?"`,
	} {
		if !strings.Contains(got.out, want) {
			t.Errorf("%s was not sent", want)
		}
	}
	if got.code != exitOK {
		t.Errorf("%+v", got)
	}
	for name, want := range map[string]string{
		"absent.txt":               "no such file",
		".":                        "it is a folder",
		"empty.txt":                "it is empty",
		"http://127.0.0.1:1/x.txt": "127.0.0.1",
	} {
		if no := programEnv(t, env, "--forget", "-f", name, "What?"); no.code != exitUsage || !strings.Contains(no.err, want) || !strings.Contains(no.err, "-f "+name) {
			t.Errorf("-f %s: %+v", name, no)
		}
	}
}

// TestWrongInputs: what is wrong with a flag is said before a session begins, and a name that nobody
// gave has no similar ones.
func TestWrongInputs(t *testing.T) {
	env := home(t, t.TempDir())
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"hello"}, "antiphon: hello is neither a command nor a file; antiphon ask hello asks it as a question; see antiphon --help\n"},
		{[]string{"-f", "absent.txt", "What?"}, "antiphon: -f absent.txt: no such file or directory\n"},
		{[]string{"--rehearsal", "-m", "gpt-5.1", "What?"}, "antiphon: --rehearsal does not go with --base-url or --model\n"},
		{[]string{"--temperature", "9", "What?"}, "antiphon: --temperature is 9, want a number from 0 to 2, such as 0.7\n"},
		{[]string{"--temperature=-0.5", "What?"}, "antiphon: --temperature is -0.5, want a number from 0 to 2, such as 0.7\n"},
		{[]string{"--temperature", "NaN", "What?"}, "antiphon: --temperature is NaN, want a number from 0 to 2, such as 0.7\n"},
		{[]string{"--temperature", "warm", "What?"}, "antiphon: --temperature: \"warm\" is not a number; see antiphon ask --help\n"},
		{[]string{"-o", ".", "What?"}, "antiphon: --out . is a folder; name a file, such as talk.md\n"},
		{[]string{"--schema", "absent.json", "What?"}, "antiphon: --schema absent.json: no such file or directory\n"},
		{[]string{"-a", "absent.md", "What?"}, "antiphon: absent.md: no such file or directory; antiphon init absent.md writes a first agent there\n"},
	} {
		if got := programEnv(t, env, c.args...); got.code != exitUsage || got.err != c.want {
			t.Errorf("%q: exit code %d\n%s\nwant %s", c.args, got.code, got.err, c.want)
		}
	}
	for range 2 {
		if got := programEnv(t, env, "-q", "Is it one?"); got.code != exitOK || strings.Contains(got.err, "there is also") {
			t.Errorf("%+v", got)
		}
	}
}

// TestTuned: the flags about the request are sent.
func TestTuned(t *testing.T) {
	env := home(t, t.TempDir())
	server := write(t, "agent.md", "<user>Hi</user>\n")
	for _, args := range [][]string{{"run", server}, {"ask", "Hi"}} {
		got := programEnv(t, env, append(args, "--json", "--effort", "low", "--temperature", "0.25")...)
		if got.code != exitOK {
			t.Errorf("%v: %+v", args, got)
		}
	}
	if got := programEnv(t, env, "ask", "Hi", "--effort", "hihg"); got.code != exitUsage || !strings.Contains(got.err, `"hihg"`) {
		t.Errorf("%+v", got)
	}
}

// TestChoose: -r lists the conversations of the folder at a terminal, and continues the
// chosen one.
func TestChoose(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: waits for a terminal")
	}
	env := home(t, t.TempDir())
	if got := programEnv(t, env, "-r", "More?"); got.code != exitUsage || !strings.Contains(got.err, "-r asks at a terminal") {
		t.Errorf("without a terminal: %+v", got)
	}
	term := openTerminal(t, t.TempDir(), "antiphon -q 'Is it one?' && antiphon -q 'Is it two?' && antiphon -r 'More?'")
	list := term.until(t, "Which one? (1)")
	one, two := strings.Index(list, "2. "), strings.Index(list, "1. ")
	if one < two || two < 0 || !strings.Contains(list[one:], "is-it-one-") || !strings.Contains(list[two:one], "Is it two?") {
		t.Errorf("the list:\n%s", list)
	}
	term.keys(t, "9", "9", "Enter")
	term.until(t, "\"99\" is not a number from 1 to 2\nWhich one?")
	term.keys(t, "2", "Enter")
	if end := term.until(t, "[exit code 0]"); !strings.Contains(end, "continues is-it-one-") || !strings.Contains(end, `You said: "More?"`) {
		t.Errorf("the end:\n%s", end)
	}
}

// B5: titles in the list of sessions to choose from show no key, and do not steer the terminal.
func TestChoicesAreHidden(t *testing.T) {
	env := append(home(t, t.TempDir()), "OPENAI_API_KEY="+testKey)
	write(t, "agent.md", "<system>Be brief.</system>")
	place := filepath.Join(t.TempDir(), "s.db")
	var shown strings.Builder
	args := []string{"run", "agent.md", "--rehearsal", "--store", place, "--session", "s", "My\x1b[2J key " + testKey}
	if code := run(t.Context(), args, env, stdio{strings.NewReader(""), &shown, &shown}); code != 0 {
		t.Fatal(shown.String())
	}
	shown.Reset()
	c := runCommand{File: "agent.md", runFlags: runFlags{storeFlag: storeFlag{Store: place}}}
	list, err := c.choices(t.Context(), stdio{err: &shown}, environment{"OPENAI_API_KEY": testKey}, 50)
	if err != nil || len(list) != 1 || !strings.Contains(shown.String(), "My") || strings.Contains(shown.String(), "\x1b") {
		t.Errorf("%v %v %q", list, err, shown.String())
	}
	noKey(t, "the list", shown.String())
	for line := range strings.Lines(shown.String()) {
		if n := show.ColumnsOf(strings.TrimSuffix(line, "\n")); n >= 50 {
			t.Errorf("%d columns: %s", n, line)
		}
	}
}

// TestChoicesWait proves that the list of sessions says which of them wait for an approval, and that they do not any more when
// the call was answered.
func TestChoicesWait(t *testing.T) {
	dir := writer(t)
	t.Chdir(dir)
	place := filepath.Join(dir, "s.db")
	c := runCommand{File: "agent.md", runFlags: runFlags{storeFlag: storeFlag{Store: place}}}
	listed := func() string {
		var shown strings.Builder
		if _, err := c.choices(t.Context(), stdio{err: &shown}, environment{}, 80); err != nil {
			t.Error(err)
		}
		return shown.String()
	}
	if o := program(t, "run", "agent.md", "--store", place, "--session", "s", "--pause"); o.code != exitNeedsAllow {
		t.Fatalf("%d %s%s", o.code, o.out, o.err)
	}
	if got := listed(); !strings.Contains(got, "(waits for you)") {
		t.Errorf("the list: %s", got)
	}
	if o := program(t, "run", "agent.md", "--store", place, "--session", "s", "--allow", "append_to_file"); o.code != exitOK {
		t.Fatalf("%d %s%s", o.code, o.out, o.err)
	}
	if got := listed(); strings.Contains(got, "waits") {
		t.Errorf("the list: %s", got)
	}
}

// U7: the error about a file that does not exist names a similar one, and says how to ask a question.
func TestAbsentAgents(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	write(t, "agent.md", "<user>x</user>\n")
	if err := os.MkdirAll(filepath.Join(".antiphon", "agents"), 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(".antiphon", "agents", "review.md"), "<user>x</user>\n")
	env := home(t, dir)
	for name, want := range map[string]string{
		"aegnt.md":                    "did you mean agent.md?",
		"agent":                       "did you mean agent.md?",
		"revieww":                     "did you mean review?",
		"absent.md":                   "antiphon init absent.md writes a first agent there",
		"https://x.example/a.md":      "an agent is a file on this machine: save it first",
		"what is this?":               "antiphon ask 'what is this?' asks it as a question",
		filepath.Join(dir, "agnt.md"): "did you mean " + filepath.Join(dir, "agent.md") + "?",
	} {
		if o := programEnv(t, env, "run", name); o.code != exitUsage || !strings.HasSuffix(o.err, want+"\n") {
			t.Errorf("%s: %d %s", name, o.code, o.err)
		}
	}
}

// U7: flags and commands of other programs, and flags at a wrong place, have a hint; flags that are
// like no other have none.
func TestUnknownFlags(t *testing.T) {
	env := home(t, t.TempDir())
	for args, want := range map[string]string{
		"run a.md --print":                "unknown flag --print; see",
		"run a.md --modle x":              "unknown flag --modle, did you mean --model?",
		"run a.md -p hi":                  "unknown flag -p: the prompt needs no flag",
		"run a.md --yolo":                 "did you mean --allow?",
		"chat -1":                         "-c continues the last session, -r chooses one, and --session -1 names one",
		"chat --resume":                   "did you mean --choose?",
		"serve --port 1":                  "did you mean --listen HOST:PORT?",
		"sessions rename a --name b":      "the new name needs no flag",
		"--max-turns=x run a.md":          "the flags of a command come after its name, as in antiphon run --max-turns",
		"exec hi":                         "did you mean antiphon run?",
		"run a.md --no-such-flag-at-all=": "unknown flag --no-such-flag-at-all; see",
	} {
		if o := programEnv(t, env, strings.Fields(args)...); o.code != exitUsage || !strings.Contains(o.err, want) {
			t.Errorf("%s: %d %s", args, o.code, o.err)
		}
	}
}

// Messages name what a person can write.
func TestPlainAdvice(t *testing.T) {
	env := home(t, t.TempDir())
	agent := write(t, filepath.Join(t.TempDir(), "agent.md"), "<config model=\"rehearsal\"/>\n<user>x</user>\n")
	store := filepath.Join(t.TempDir(), "s.db")
	if o := programEnv(t, env, "run", agent, "--session", "work", "--store", store); o.code != exitOK {
		t.Fatal(o.err)
	}
	for _, c := range []struct{ args, want string }{
		{"run " + agent + " --max-cost 1", "the price of model \"rehearsal\" is unknown; give --price"},
		{"work list --state foo", `--state: "foo" is not one of "ready",`},
		{"sessions fork work --name other --store " + store, "antiphon run " + agent + " --session other"},
		{"work schedule add daily @daily " + agent + " --zone Berlin --store " + store, "a zone has a name such as Europe/Berlin"},
	} {
		if o := programEnv(t, env, strings.Fields(c.args)...); !strings.Contains(o.out+o.err, c.want) {
			t.Errorf("%s: %d %s%s", c.args, o.code, o.out, o.err)
		}
	}
}
