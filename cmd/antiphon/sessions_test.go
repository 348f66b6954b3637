// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"image"
	"image/png"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/antiphon-go/antiphon/agentfile"
	"github.com/antiphon-go/antiphon/agenttest"
	"github.com/antiphon-go/antiphon/internal/person"
	"github.com/antiphon-go/antiphon/internal/show"
	"github.com/antiphon-go/antiphon/item"
)

// keeping makes an agent whose first reply is a call and whose second is as
// given, and returns the flags of a run that keeps its session.
func keeping(t *testing.T, answers ...agenttest.Reply) (agent string, flags []string, srv *agenttest.Server) {
	agent = reader(t)
	first := agenttest.Completed(item.Assistant("I look."), item.Call("call_1", "read_file", readNote))
	srv = agenttest.NewServer(t, append([]agenttest.Reply{first}, answers...)...)
	store := filepath.Join(filepath.Dir(agent), "sessions.db")
	t.Setenv("ANTIPHON_STORE", store) // for processes
	return agent, []string{"run", agent, "--session", "work", "--store", store, "--base-url", srv.URL}, srv
}

// J1 J2: while one process writes to a session, another is told so and may
// read; when the first one is killed, the next goes on with all that was
// complete.
func TestSessionIsOneWritersAtATime(t *testing.T) {
	_, flags, srv := keeping(t, agenttest.Completed(item.Assistant("It says: a note, and more.")).StallAfter(3, nil))
	p := start(t, strings.NewReader(""), flags...)
	p.until(t, "I look.\n")

	o := program(t, flags...)
	if o.code != exitFailed || !strings.Contains(o.err, "is writing to the session") || len(o.messages()) != 1 {
		t.Errorf("a second run: exit code %d\n%s", o.code, o.err)
	}
	if o := program(t, "sessions", "--store", flags[5], "show", "work"); o.code != 0 || !strings.Contains(o.out, "I look.") {
		t.Errorf("reading meanwhile: exit code %d\n%s%s", o.code, o.out, o.err)
	}
	if o := program(t, "sessions", "--store", flags[5], "rm", "--force", "work"); o.code != exitFailed ||
		!strings.Contains(o.err, " is in use: ") || !strings.Contains(o.err, "hint: end that process or wait for it, and delete again; antiphon sessions archive work-") || strings.Contains(o.err, "fork") {
		t.Errorf("deleting meanwhile: exit code %d\n%s%s", o.code, o.out, o.err)
	}
	// What was deleted before it is said.
	for _, name := range []string{"one", "two"} {
		if o := program(t, "run", flags[1], "--session", name, "--store", flags[5], "--rehearsal", "Hello?"); o.code != 0 {
			t.Fatal(o.err)
		}
	}
	if o := program(t, "sessions", "--store", flags[5], "rm", "--force", "one", "work", "two"); o.code != exitFailed || !strings.Contains(o.err, "antiphon: deleted 1 of 3, then: work-") {
		t.Errorf("deleting several meanwhile: exit code %d\n%s%s", o.code, o.out, o.err)
	}
	if o := program(t, "sessions", "--store", flags[5], "rm", "--force", "--json", "two", "work"); o.code != exitFailed || !strings.Contains(o.out, `"name": "two"`) {
		t.Errorf("deleting several meanwhile, as JSON: exit code %d\n%s%s", o.code, o.out, o.err)
	}
	if o := program(t, "sessions", "--store", flags[5], "rm", "--force", "work", "work"); !strings.HasPrefix(o.err, "antiphon: work-") {
		t.Errorf("the same twice is one: %s", o.err)
	}

	p.signal(t, os.Kill)
	p.wait(t)
	srv.Add(agenttest.Completed(item.Assistant("It says: a note.")))
	o = program(t, flags...)
	if o.code != 0 || o.out != "It says: a note.\n" {
		t.Fatalf("the next run: exit code %d\n%s%s", o.code, o.out, o.err)
	}
	last := srv.Requests()[len(srv.Requests())-1]
	validRequest(t, last)
	if n := strings.Count(string(last.Body), "a note"); n != 1 {
		t.Errorf("the output is in the next request %d times:\n%s", n, last.Body)
	}
}

// J1 P2: a run that is killed while a tool is under way leaves a call of unknown
// outcome, and the tool is not run again.
func TestSessionKilledInATool(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("needs signals and a shell, which Windows has not: skipped")
	}
	dir := t.TempDir()
	write(t, filepath.Join(dir, "act.sh"), "echo acted >> \"$1\"\nsleep 30\n")
	ledger := filepath.Join(dir, "ledger")
	agent := write(t, filepath.Join(dir, "agent.md"), `<config model="test-model"/>
<tool name="act" command="sh `+filepath.Join(dir, "act.sh")+` `+ledger+`" description="Acts." approval="allow"/>
<user>Act.</user>
`)
	srv := agenttest.NewServer(t, agenttest.Completed(item.Call("call_1", "act", `{"arguments":[]}`)))
	flags := []string{"run", agent, "--trust", "--session", "work", "--store", filepath.Join(dir, "s.db"), "--base-url", srv.URL, "--json", "--allow", "act", "--sandbox", "full"}
	p := start(t, strings.NewReader(""), flags...)
	p.until(t, `"call_started"`)
	for read(t, ledger) == "" {
		runtime.Gosched()
	}
	p.signal(t, os.Kill)
	p.wait(t)

	srv.Add(agenttest.Completed(item.Assistant("Then I ask.")))
	o := program(t, flags...)
	if o.code != 0 {
		t.Fatalf("the next run: exit code %d\n%s%s", o.code, o.out, o.err)
	}
	last := srv.Requests()[len(srv.Requests())-1]
	validRequest(t, last)
	if !strings.Contains(string(last.Body), "Whether it took effect is not known") {
		t.Errorf("the model is not told:\n%s", last.Body)
	}
	if got := read(t, ledger); got != "acted\n" {
		t.Errorf("the tool acted again: %q", got)
	}
}

// J7: beside a session, --out is an export, which later runs write anew; any
// other file stays as it is.
func TestSessionOutIsAnExport(t *testing.T) {
	agent, flags, srv := keeping(t, agenttest.Completed(item.Assistant("It says: a note.")))
	out := filepath.Join(filepath.Dir(agent), "talk.md")
	write(t, out, "mine\n")
	if o := program(t, append(flags, "--out", out)...); o.code != exitUsage || read(t, out) != "mine\n" || len(srv.Requests()) > 0 {
		t.Fatalf("over a file that is not an export: exit code %d\n%s", o.code, o.err)
	}
	if o := program(t, append(flags, "--out", out, "--force")...); o.code != 0 {
		t.Fatalf("with --force: exit code %d\n%s", o.code, o.err)
	}
	first := read(t, out)
	srv.Add(agenttest.Completed(item.Assistant("Yes.")))
	if o := program(t, append(flags, "--out", out, "Sure?")...); o.code != 0 {
		t.Fatalf("the next run: exit code %d\n%s", o.code, o.err)
	}
	second := read(t, out)
	if !strings.HasPrefix(second, first) || !strings.Contains(second, "Sure?") {
		t.Errorf("the second export does not go on where the first one ended:\n%s", second)
	}
	if o := program(t, "check", out); o.code != 0 {
		t.Errorf("the export is not an agent's file: %s", o.err)
	}
}

// TestExportBesideASessionOverwritesNothing proves that the export of a run takes the
// place of nothing but an export: not of a file that came while the run was under
// way, not of an export that somebody went on with, and not while another run
// writes to the file. J2 J3
func TestExportBesideASessionOverwritesNothing(t *testing.T) {
	agent, flags, srv := keeping(t)
	out := filepath.Join(filepath.Dir(agent), "talk.md")
	flags = append(flags, "--out", out)

	release := make(chan struct{})
	srv.Add(agenttest.Completed(item.Assistant("Yes.")).Stall(release))
	p := start(t, strings.NewReader(""), flags...)
	p.until(t, "I look.\n")
	write(t, out, "mine\n")
	close(release)
	if code, _ := p.wait(t); code == 0 || read(t, out) != "mine\n" {
		t.Errorf("a file that came meanwhile: exit code %d\n%s", code, read(t, out))
	}

	srv.Add(agenttest.Completed(item.Assistant("No.")))
	if o := program(t, append(flags, "--force", "Sure?")...); o.code != 0 {
		t.Fatalf("with --force: exit code %d\n%s", o.code, o.err)
	}
	srv.Add(agenttest.Completed(item.Assistant("Another way.")))
	if o := program(t, "run", agent, "--out", out, "--base-url", srv.URL, "Another?"); o.code != 0 {
		t.Fatalf("the export as a transcript: exit code %d\n%s", o.code, o.err)
	}
	other := read(t, out)
	srv.Add(agenttest.Completed(item.Assistant("As before.")))
	if o := program(t, append(flags, "Again?")...); o.code == 0 || !strings.Contains(o.err, "--force") || read(t, out) != other {
		t.Errorf("an export that somebody went on with: exit code %d\n%s", o.code, o.err)
	}
	if o := program(t, "sessions", "--store", flags[5], "show", "work"); !strings.Contains(o.out, "As before.") {
		t.Errorf("the session lacks what the export lacks:\n%s", o.out)
	}

	f, _, err := agentfile.OpenTranscript(t.Context(), agent, out, agentfile.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	srv.Add(agenttest.Completed(item.Assistant("As ever.")))
	if o := program(t, append(flags, "--force", "And now?")...); o.code == 0 || !strings.Contains(o.err, "is writing to the session") || read(t, out) != other {
		t.Errorf("an export that another run writes to: exit code %d\n%s", o.code, o.err)
	}
}

// J3 W8 K5: what is exported as lines and imported is the same session, byte for
// byte, but for its id and for a last entry, which says that it was imported.
func TestSessionGoesAndComesBack(t *testing.T) {
	agent, flags, _ := keeping(t, agenttest.Completed(item.Assistant("It says: a note.")))
	if o := program(t, flags...); o.code != 0 {
		t.Fatal(o.err)
	}
	dir := filepath.Dir(agent)
	lines := func(session, file string) string {
		t.Helper()
		file = filepath.Join(dir, file)
		if o := program(t, "sessions", "--store", flags[5], "export", session, "-o", file); o.code != 0 {
			t.Fatal(o.err)
		}
		_, entries, _ := strings.Cut(read(t, file), "\n")
		entries, _, _ = strings.Cut(entries, `{"end":`)
		return regexp.MustCompile(`"time":"[^"]*",?`).ReplaceAllString(entries, "")
	}
	before := lines("work", "a.jsonl")
	if o := program(t, "sessions", "--store", flags[5], "import", filepath.Join(dir, "a.jsonl"), "--for", agent); o.code != exitUsage {
		t.Errorf("under a name that is taken: exit code %d\n%s", o.code, o.err)
	}
	if o := program(t, "sessions", "--store", flags[5], "import", filepath.Join(dir, "a.jsonl"), "--name", "back", "--for", agent); o.code != 0 {
		t.Fatal(o.err)
	}
	after, rest, _ := strings.Cut(lines("back", "b.jsonl"), `{"seq":15,`)
	if after != before || !strings.HasPrefix(rest, `"kind":"noticed","notice":"imported",`) || strings.Count(rest, "\n") != 1 {
		t.Errorf("it came back as\n%s%s\nnot\n%s", after, rest, before)
	}

	// A file that was cut short leaves nothing behind.
	text := read(t, filepath.Join(dir, "a.jsonl"))
	write(t, filepath.Join(dir, "cut.jsonl"), text[:len(text)*2/3])
	if o := program(t, "sessions", "--store", flags[5], "import", filepath.Join(dir, "cut.jsonl"), "--name", "cut"); o.code != exitUsage {
		t.Errorf("a file that was cut short: exit code %d\n%s", o.code, o.err)
	}
	if o := program(t, "sessions", "--store", flags[5], "list"); strings.Contains(o.out, "cut") {
		t.Errorf("something of it stayed:\n%s", o.out)
	}
}

// J6: no key is in the database, nor in what leaves it, even if a model said it.
func TestSessionHoldsNoKey(t *testing.T) {
	const key = "sk-another-key-0123456789"
	env := []string{"OPENAI_API_KEY=" + key}
	agent, flags, _ := keeping(t, agenttest.Completed(item.Assistant("I know nothing of it.")))
	if o := programEnv(t, env, flags...); o.code != 0 {
		t.Fatal(o.err)
	}
	dir := filepath.Dir(agent)
	for _, name := range []string{"sessions.db", "sessions.db-wal"} {
		if strings.Contains(read(t, filepath.Join(dir, name)), key) {
			t.Errorf("the key is in %s", name)
		}
	}
	if o := programEnv(t, env, append(flags[:6:6], "Is "+key+" a key?", "--rehearsal")...); o.code != 0 {
		t.Fatal(o.err)
	}
	for _, form := range []string{"html", "jsonl", "chatmd"} {
		out := filepath.Join(dir, "work."+form)
		if o := programEnv(t, env, "sessions", "--store", flags[5], "export", "work", "--to", form, "-o", out); o.code != 0 {
			t.Fatal(o.err)
		}
		if text := read(t, out); strings.Contains(text, key) || !strings.Contains(text, "a key?") {
			t.Errorf("%s holds the key, or not what was said", out)
		}
	}
}

// TestKeysThatAModelRepeats: what a model says stays as it said it, on standard output
// and in the log. What is told about it on standard error has no key. J6
func TestKeysThatAModelRepeats(t *testing.T) {
	const key = "sk-another-key-0123456789"
	dir := t.TempDir()
	srv := agenttest.NewServer(t,
		agenttest.Completed(item.Call("c1", "nope_"+key, `{"path":"`+key+`"}`), item.Call("c2", "read_file", `{"path":"`+strings.Repeat("a/", 35)+key+`"}`), item.Call("c3", "read_file", `{"path":"`+strings.Repeat("a/", 45)+key+`"}`)),
		agenttest.Completed(item.Assistant("It is "+key+".")))
	agent := write(t, filepath.Join(dir, "agent.md"), "<tool name=\"read_file\"/>\n<user>Say it.</user>\n")
	out := filepath.Join(dir, "talk.md")
	o := programEnv(t, []string{"OPENAI_API_KEY=" + key}, "run", agent, "--model", "m", "--base-url", srv.URL, "--out", out)
	if o.code != exitOK || o.out != "It is "+key+".\n" || !strings.Contains(read(t, out), "It is "+key+".") {
		t.Errorf("exit code %d, output %q\n%s", o.code, o.out, o.err)
	}
	if strings.Contains(o.err, "sk-") || !strings.Contains(o.err, "-> read_file") {
		t.Errorf("standard error:\n%s", o.err)
	}
}

// C4 E5: a session whose history becomes too long for its model is made shorter
// by itself, once each time, and goes on; nothing of it is lost.
func TestSessionCompactsByItself(t *testing.T) {
	dir := t.TempDir()
	store := filepath.Join(dir, "s.db")
	write(t, filepath.Join(dir, "talk.script"), "window 1500\nagain\nturn\n  say Very well.\n")
	agent := write(t, filepath.Join(dir, "agent.md"), `<config model="rehearsal:talk.script" auto_compact/>
<system>Keep this word for word.</system>
`)
	for n := range 4 {
		o := program(t, "run", agent, "--session", "work", "--store", store, strings.Repeat("A long story, part "+string(rune('1'+n))+". ", 90))
		if o.code != 0 {
			t.Fatalf("run %d: exit code %d\n%s%s", n+1, o.code, o.out, o.err)
		}
	}
	o := program(t, "sessions", "--store", store, "show", "work", "--as-sent", "--json")
	if !strings.Contains(o.out, `"in_force"`) || !strings.Contains(o.out, "Keep this word for word.") {
		t.Errorf("no compaction is in force:\n%.3000s", o.out)
	}
	if o := program(t, "sessions", "--store", store, "show", "work", "--full"); strings.Count(o.out, "part 1.") < 90 {
		t.Error("the log has lost what was said first")
	}
	if o := program(t, "sessions", "--store", store, "compact", "work", "--restore"); o.code != 0 {
		t.Errorf("restoring: %s", o.err)
	}
	if o := program(t, "sessions", "--store", store, "compact", "work", "--by", "dropping"); o.code != 0 || !strings.Contains(o.out, "by dropping") {
		t.Errorf("dropping, which asks no model: %s%s", o.out, o.err)
	}
}

// J7: a session that began with an image is known again: its payload is in a
// blob, and the file's is not.
func TestSessionBeginsWithAnImage(t *testing.T) {
	dir := t.TempDir()
	store := filepath.Join(dir, "s.db")
	write(t, filepath.Join(dir, "a.png"), noise(t, 1))
	agent := write(t, filepath.Join(dir, "agent.md"), `<config model="rehearsal"/>
<user>What is this? <img src="a.png" local/></user>
`)
	for range 2 {
		if o := program(t, "run", agent, "--session", "work", "--store", store, "--rehearsal", "Well?"); o.code != 0 || strings.Contains(o.err, "have changed since") {
			t.Fatalf("exit code %d\n%s", o.code, o.err)
		}
	}
	write(t, filepath.Join(dir, "a.png"), noise(t, 2))
	if o := program(t, "run", agent, "--session", "work", "--store", store, "--rehearsal", "And now?"); !strings.Contains(o.err, "have changed since") {
		t.Errorf("another image is not told of:\n%s", o.err)
	}
}

// noise is an image that is large enough to be a blob.
func noise(t *testing.T, seed uint64) string {
	t.Helper()
	m := image.NewRGBA(image.Rect(0, 0, 64, 64))
	random := rand.New(rand.NewPCG(seed, 0))
	for i := range m.Pix {
		m.Pix[i] = byte(random.Uint32())
	}
	var b strings.Builder
	if err := png.Encode(&b, m); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// C2 P2: what --as-sent shows is the next request, also after a crash in a tool:
// its input to the byte, and its tools.
func TestSessionAsSentIsWhatIsSent(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("needs signals and a shell, which Windows has not: skipped")
	}
	dir := t.TempDir()
	write(t, filepath.Join(dir, "act.sh"), "echo acted\nsleep 30\n")
	agent := write(t, filepath.Join(dir, "agent.md"), `<config model="test-model" temperature="0.5"/>
<tool name="act" command="sh `+filepath.Join(dir, "act.sh")+`" description="Acts." approval="allow"/>
<tool name="helper" agent="inner.md" local description="Helps."/>
<user>Act.</user>
`)
	write(t, filepath.Join(dir, "inner.md"), "<config model=\"test-model\"/>\n<system>Help.</system>\n")
	store := filepath.Join(dir, "s.db")
	srv := agenttest.NewServer(t, agenttest.Completed(item.Assistant("é <b> \u2028"), item.Call("call_1", "act", `{"arguments":[]}`)))
	flags := []string{"run", agent, "--trust", "--session", "work", "--store", store, "--base-url", srv.URL, "--json", "--allow", "act", "--sandbox", "full"}
	p := start(t, strings.NewReader(""), flags...)
	p.until(t, `"call_started"`)
	p.signal(t, os.Kill)
	p.wait(t)
	o := program(t, "sessions", "--store", store, "show", "work", "--as-sent", "--json")
	if o.code != 0 || !strings.Contains(o.out, "Whether it took effect is not known") {
		t.Fatalf("exit code %d\n%s%s", o.code, o.out, o.err)
	}
	srv.Add(agenttest.Completed(item.Assistant("Then I ask.")))
	if o := program(t, flags...); o.code != 0 {
		t.Fatal(o.err)
	}
	var shown struct {
		Body map[string]jsontext.Value `json:"body"`
	}
	var sent map[string]jsontext.Value
	if err := errors.Join(json.Unmarshal([]byte(o.out), &shown), json.Unmarshal(srv.Requests()[1].Body, &sent)); err != nil {
		t.Fatal(err)
	}
	delete(sent, "stream") // how it travels is the client's
	if len(sent) != len(shown.Body) {
		t.Errorf("sent has %d members, shown %d", len(sent), len(shown.Body))
	}
	for name, value := range sent {
		got := shown.Body[name]
		if err := got.Compact(); err != nil || string(got) != string(value) {
			t.Errorf("%s is shown as\n%s\nand sent as\n%s", name, got, value)
		}
	}
}

// J3: nothing that a model says steers the terminal of who looks at it later,
// and a key of the environment is hidden wherever a session is shown.
func TestSessionShownSafely(t *testing.T) {
	const key = "sk-another-key-0123456789"
	dir := t.TempDir()
	store := filepath.Join(dir, "s.db")
	agent := write(t, filepath.Join(dir, "agent.md"), "<config model=\"m\"/>\n<user>Go, "+key+".</user>\n")
	odd, err := item.ParseString(`{"type":"odd\u001b[2J","id":"x_1"}`)
	if err != nil {
		t.Fatal(err)
	}
	srv := agenttest.NewServer(t, agenttest.Completed(item.Assistant("\x1b[31mred\u202e "+key), odd))
	env := []string{"OPENAI_API_KEY=" + key}
	programEnv(t, env, "run", agent, "--session", "work", "--store", store, "--base-url", srv.URL)
	for _, args := range [][]string{{"list"}, {"show", "work"}, {"show", "work", "--full"}, {"show", "work", "--as-sent"}, {"info", "work"}} {
		for _, form := range []string{"", "--json"} {
			if form != "" {
				args = append(args, form)
			}
			o := programEnv(t, env, append([]string{"sessions", "--store", store}, args...)...)
			if o.code != 0 || strings.ContainsAny(o.out, "\x1b") || strings.Contains(o.out, key) {
				t.Errorf("%s: exit code %d\n%q\n%s", args, o.code, o.out, o.err)
			}
		}
	}
}

// J3: each question gets the answer that was given to it.
func TestDeletingAsksOneByOne(t *testing.T) {
	who := person.New(strings.NewReader("y\n\nYES\nsure\n"), io.Discard)
	for i, want := range []bool{true, false, true, false, false} {
		if got, err := who.Agrees(t.Context(), "Delete it?"); got != want || err != nil {
			t.Errorf("question %d: %v, %v", i+1, got, err)
		}
	}
}

// postgresStore returns the place of a store on the server of .ci/postgres, which tests
// share.
func postgresStore(t *testing.T) string {
	t.Helper()
	host := regexp.MustCompile(`host=(/\S+)`).FindStringSubmatch(os.Getenv("ANTIPHON_POSTGRES"))
	if host == nil {
		t.Skip("no ANTIPHON_POSTGRES: `.ci/postgres go test ./cmd/antiphon` starts a server and sets it")
	}
	return "postgres://antiphon@/postgres?antiphon_unsafe=fsync&host=" + host[1]
}

// J3: a session in Postgres, from its first run to its removal.
func TestSessionOnPostgres(t *testing.T) {
	store := postgresStore(t)
	agent := reader(t)
	srv := agenttest.NewServer(t, agenttest.Completed(item.Assistant("One.")), agenttest.Completed(item.Assistant("Two.")))
	defer program(t, "sessions", "--store", store, "rm", "--force", "on-postgres")
	for _, want := range []string{"One.\n", "Two.\n"} {
		if o := program(t, "run", agent, "--session", "on-postgres", "--store", store, "--base-url", srv.URL, "Go on after "+want); o.out != want {
			t.Fatalf("exit code %d\n%s%s", o.code, o.out, o.err)
		}
	}
	for _, args := range [][]string{{"list"}, {"show", "on-postgres"}, {"info", "on-postgres"}, {"fork", "on-postgres", "--name", "fork-on-postgres"}, {"rm", "-f", "fork-on-postgres"}, {"gc"}} {
		if o := program(t, append([]string{"sessions", "--store", store}, args...)...); o.code != 0 || o.out == "" {
			t.Errorf("sessions %s: exit code %d\n%s", strings.Join(args, " "), o.code, o.err)
		}
	}
	if o := program(t, "sessions", "--store", "postgres://antiphon:"+testKey+"@/nowhere?host=/nonexistent", "list"); o.code == 0 {
		t.Error("a server that is not there")
	}
}

// J8: sessions verify finds a changed letter and exits with 1; sessions salvage
// saves the rest.
func TestVerifyAndSalvage(t *testing.T) {
	agent := reader(t)
	srv := agenttest.NewServer(t, agenttest.Completed(item.Assistant("An answer to keep.")), agenttest.Completed(item.Assistant("Another answer.")))
	store := filepath.Join(t.TempDir(), "s.db")
	if o := program(t, "run", agent, "--session", "work", "--store", store, "--base-url", srv.URL, "A question."); o.code != 0 {
		t.Fatal(o.err)
	}
	if o := program(t, "sessions", "--store", store, "verify", "work"); o.code != 0 || !strings.Contains(o.out, "no damage was found") {
		t.Fatalf("exit code %d\n%s%s", o.code, o.out, o.err)
	}
	for _, args := range [][]string{{"tag", "work", "+bug"}, {"rename", "work", "--title", "A title"}} {
		if o := program(t, append([]string{"sessions", "--store", store}, args...)...); o.code != 0 {
			t.Fatal(o.err)
		}
	}
	o := program(t, "sessions", "--store", store, "salvage", "work", "--as", "copy")
	if o.code != 0 || !strings.Contains(o.err, "nothing is damaged") || !strings.Contains(o.out, "--session copy --store "+quoted(store)+" goes on with it") {
		t.Errorf("salvaging what is whole: exit code %d\n%s%s", o.code, o.out, o.err)
	}
	if o := program(t, "sessions", "--store", store, "info", "copy"); !strings.Contains(o.out, "A title") || !strings.Contains(o.out, "#bug") {
		t.Errorf("the copy has another title and other tags:\n%s", o.out)
	}
	if o := program(t, "sessions", "--store", store, "show", "copy", "--full"); strings.Contains(o.out, "the damaged session") {
		t.Errorf("a whole session is called damaged:\n%s", o.out)
	}
	if o := program(t, "sessions", "--store", store, "salvage", "work", "--as", "copy"); o.code != exitUsage || !strings.Contains(o.err, "another") {
		t.Errorf("salvaging under a name that is taken: exit code %d\n%s%s", o.code, o.out, o.err)
	}
	if o := program(t, "sessions", "--store", store, "list"); strings.Count(o.out, "copy-") != 1 {
		t.Errorf("a copy that could not be named stays:\n%s", o.out)
	}
	if o := program(t, "sessions", "--store", store, "rm", "copy", "--force"); o.code != 0 {
		t.Error(o.err)
	}
	data, err := os.ReadFile(store)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(store, bytes.ReplaceAll(data, []byte("to keep"), []byte("to kewp")), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"verify"}, {"verify", "work"}, {"--json", "verify"}, {"export", "work", "--to", "jsonl"}} {
		o := program(t, append([]string{"sessions", "--store", store}, args...)...)
		if all := o.out + o.err; o.code != 1 || strings.Contains(all, "kewp") || !strings.Contains(all, "work-") || !strings.Contains(all, "antiphon_entries") {
			t.Errorf("%s: exit code %d\n%s", args, o.code, all)
		}
	}
	if o := program(t, "sessions", "--store", store, "salvage", "work", "--as", "saved"); o.code != 0 || !strings.Contains(o.err, "!! ") {
		t.Errorf("exit code %d\n%s%s", o.code, o.out, o.err)
	}
	if o := program(t, "run", agent, "--session", "saved", "--store", store, "--base-url", srv.URL, "Another."); o.code == 0 || !strings.Contains(o.err, "--accept-gaps") {
		t.Errorf("a run goes on though an entry is lost: exit code %d\n%s%s", o.code, o.out, o.err)
	}
	if o := program(t, "sessions", "--store", store, "salvage", "work", "--as", "accepted", "--accept-gaps"); o.code != 0 {
		t.Errorf("exit code %d\n%s%s", o.code, o.out, o.err)
	}
	if o := program(t, "run", agent, "--session", "accepted", "--store", store, "--base-url", srv.URL, "Another."); o.code != 0 {
		t.Errorf("exit code %d\n%s%s", o.code, o.out, o.err)
	}
	if o := program(t, "sessions", "--store", store, "show", "saved", "--full"); o.code != 0 || !strings.Contains(o.out, "A question.") || !strings.Contains(o.out, "was lost") {
		t.Errorf("exit code %d\n%s%s", o.code, o.out, o.err)
	}
}

// J10: doctor --store says what the store does for what it has committed.
func TestDoctorLooksAtStores(t *testing.T) {
	store := filepath.Join(t.TempDir(), "s.db")
	if o := program(t, "doctor", "--store", store); o.code != exitUsage {
		t.Errorf("a store that is not there: exit code %d", o.code)
	}
	agent := reader(t)
	srv := agenttest.NewServer(t, agenttest.Completed(item.Assistant("Yes.")))
	if o := program(t, "run", agent, "--session", "work", "--store", store, "--base-url", srv.URL, "A question."); o.code != 0 {
		t.Fatal(o.err)
	}
	o := program(t, "doctor", "--store", store)
	for _, want := range []string{store, "format", "encrypted  no", "journal_mode", "wal", "synchronous", "FULL", "file system"} {
		if !strings.Contains(o.out, want) {
			t.Errorf("%q is missing:\n%s%s", want, o.out, o.err)
		}
	}
	if o := program(t, "doctor", "--json", "--store", store); !strings.Contains(o.out, `"journal_mode"`) {
		t.Errorf("as JSON:\n%s", o.out)
	}
	if o := program(t, "doctor", "--store-key", "env"); o.code != exitUsage || !strings.Contains(o.err, "--store PLACE") {
		t.Errorf("a key without a store: exit code %d\n%s", o.code, o.err)
	}
}

// J14: doctor --store and the list say that a store is encrypted, and what to do
// without its key.
func TestEncryptedStoreIsTold(t *testing.T) {
	dir := t.TempDir()
	store, key := filepath.Join(dir, "s.db"), "file:"+filepath.Join(dir, "key")
	agent := write(t, filepath.Join(dir, "agent.md"), "<config model=\"rehearsal\"/>\n<user>A question.</user>\n")
	for _, args := range [][]string{{"sessions", "key", key}, {"sessions", "key", key + "2"}, {"run", agent, "--session", "work", "--store", store, "--store-key", key}} {
		if o := program(t, args...); o.code != 0 {
			t.Fatal(o.err)
		}
	}
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"doctor", "--store", store}, 0, "encrypted  yes; without its key the sessions cannot be read: --store-key WHERE, or $ANTIPHON_STORE_KEY"},
		{[]string{"doctor", "--store", store, "--store-key", key}, 0, "encrypted  yes, and the key (" + key + ") opens it"},
		{[]string{"doctor", "--store", store, "--store-key", key + "2"}, exitUsage, "the key is not the one that the store was made with"},
		{[]string{"sessions", "list", "--store", store}, 0, "  (encrypted)\n"},
		{[]string{"sessions", "list", "--store", store}, 0, "antiphon: the store is encrypted; to see titles and texts, give its key: --store-key WHERE, or $ANTIPHON_STORE_KEY\n"},
		{[]string{"sessions", "list", "--store", store, "--store-key", key}, 0, "  A question.\n"},
	} {
		o := program(t, c.args...)
		if all := o.out + o.err; o.code != c.code || !strings.Contains(all, c.want) {
			t.Errorf("%v: exit code %d\n%s", c.args, o.code, all)
		}
		if slices.Contains(c.args, key) && strings.Contains(o.out+o.err, "(encrypted)") {
			t.Errorf("%v: with the key\n%s", c.args, o.out)
		}
	}
}

// J11: a store that is deleted under a run is noticed before the run ends, and
// what was said is saved elsewhere, in nested sessions too.
func TestStoreDeletedUnderARun(t *testing.T) {
	temporary := t.TempDir()
	t.Setenv("TMPDIR", temporary)
	dir := t.TempDir()
	write(t, filepath.Join(dir, "inner.md"), "<config model=\"m\"/>\n<system>Inner.</system>\n")
	agent := write(t, filepath.Join(dir, "agent.md"), "<config model=\"m\"/>\n<tool name=\"inner\" agent=\"inner.md\" local description=\"Asks another.\"/>\n")
	folder := t.TempDir()
	store := filepath.Join(folder, "s.db")
	var removed error
	srv := agenttest.NewServer(t, agenttest.Completed(item.Call("c", "inner", `{"task":"x"}`)),
		agenttest.Completed(item.Assistant("Said inside.")), agenttest.Completed(item.Assistant("Nobody finds this.")))
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost && len(srv.Requests()) == 2 {
			removed = os.RemoveAll(folder)
		}
		url, _ := url.Parse(srv.URL)
		httputil.NewSingleHostReverseProxy(url).ServeHTTP(w, r)
	}))
	defer front.Close()
	o := program(t, "run", agent, "--session", "work", "--store", store, "--base-url", front.URL, "A question to keep.")
	if removed != nil {
		t.Skip(removed) // Windows keeps files that are open
	}
	if o.code == 0 || strings.Count(o.err, "was deleted while it was in use") != 1 || !strings.Contains(o.err, "is saved in") {
		t.Fatalf("exit code %d\n%s%s", o.code, o.out, o.err)
	}
	files, _ := filepath.Glob(filepath.Join(temporary, "work-*.jsonl"))
	if len(files) != 1 {
		t.Fatalf("saved: %q", files)
	}
	wantAll(t, "what was saved", read(t, files[0]), "A question to keep.", "Said inside.")
	again := filepath.Join(t.TempDir(), "again.db")
	if o := program(t, "sessions", "--store", again, "import", files[0]); o.code != 0 {
		t.Errorf("import: %s", o.err)
	}
}

// U7: a run with a session says whether it is new or goes on, and which others may
// have been meant.
func TestSessionSaysWhetherItIsNew(t *testing.T) {
	dir := t.TempDir()
	agent := write(t, filepath.Join(dir, "agent.md"), "<user>Hello.</user>\n")
	store := filepath.Join(dir, "s.db")
	run := func(file, name string, more ...string) string {
		t.Helper()
		o := program(t, append([]string{"run", file, "--session", name, "--store", store, "--rehearsal"}, more...)...)
		if o.code != 0 {
			t.Fatalf("exit code %d: %s", o.code, o.err)
		}
		return o.err
	}
	first := run(agent, "weather")
	wantAll(t, "the first run", first, "antiphon: new session weather\n")
	if strings.Contains(first, "there is also") || strings.Contains(first, "continues") {
		t.Errorf("the first run knows of others: %s", first)
	}
	second := run(agent, "weather", "And again.")
	wantAll(t, "the second run", second, "antiphon: continues weather, ", " entries, last ")
	if strings.Contains(second, "new session") {
		t.Errorf("the second run calls it new: %s", second)
	}
	for _, slip := range []string{"wether", "Weather", "waether"} {
		wantAll(t, "a run with a slip", run(agent, slip), "antiphon: new session "+slip+"\n", "there is also weather of this file", "--session weather continues it")
	}
	if far := run(agent, "invoices"); strings.Contains(far, "there is also") {
		t.Errorf("a name of its own brings others up: %s", far)
	}
	moved := filepath.Join(dir, "moved.md")
	if err := os.Rename(agent, moved); err != nil {
		t.Fatal(err)
	}
	wantAll(t, "the file that was moved", run(moved, "weather"), "antiphon: new session weather\n", "there is also weather of "+agent, "antiphon sessions rename", "--for "+quoted(moved))
	if quiet := run(moved, "weather", "Quietly.", "--quiet"); strings.Contains(quiet, "continues") {
		t.Errorf("--quiet: %s", quiet)
	}
}

// J3: calls of the API's own kinds are shown by what they ask for, and their outputs
// by what was put out.
func TestShownCallsOfTheAPI(t *testing.T) {
	exit := func(code int) *item.ShellOutcome { return item.ShellExit(code) }
	for _, c := range []struct {
		it   item.Value
		want string
	}{
		{&item.ShellCall{CallID: "c", Action: &item.ShellAction{Commands: []string{"echo a", "false"}}}, "shell echo a\nfalse"},
		{&item.ShellCallOutput{CallID: "c", Output: []item.ShellOutput{{Stdout: "a\n", Outcome: exit(0)}, {Stderr: "no", Outcome: exit(3)}, {Outcome: item.ShellTimeout()}}}, "a\nno\n(exit code 3)\n(timeout)\n"},
		{&item.LocalShellCall{ID: "l", CallID: "c", Status: item.StatusCompleted, Action: &item.LocalShellAction{Command: []string{"sh", "-c", "ls"}}}, "local_shell sh -c ls"},
		{&item.LocalShellCallOutput{ID: "c", Output: "b"}, "b"},
		{&item.ApplyPatchCall{CallID: "c", Status: item.StatusCompleted, Operation: &item.PatchOperation{Type: "delete_file", Path: "x.go"}}, "apply_patch delete_file x.go"},
		{&item.ApplyPatchCallOutput{CallID: "c", Status: item.StatusCompleted, Output: "Deleted."}, "Deleted."},
	} {
		if got := show.InWords(item.Must(c.it)); got != c.want {
			t.Errorf("%T: %q, want %q", c.it, got, c.want)
		}
	}
}

// J7: a fork that leaves out the question of the file continues without a notice; if the file
// gives other instructions now, a notice says so.
func TestForkBeginsBeforeTheQuestion(t *testing.T) {
	dir := t.TempDir()
	store := filepath.Join(dir, "s.db")
	agent := write(t, filepath.Join(dir, "agent.md"), "<config model=\"rehearsal\"/>\n<system>Be kind.</system>\n<user>First.</user>\n")
	run := func(session, say string) outcome {
		return program(t, "run", agent, "--session", session, "--store", store, say)
	}
	if o := run("work", "Second."); o.code != 0 {
		t.Fatal(o.err)
	}
	if o := program(t, "sessions", "fork", "work", "--store", store, "--at", "1", "--name", "other"); o.code != 0 {
		t.Fatal(o.err)
	}
	for _, say := range []string{"Something else.", "More."} {
		if o := run("other", say); o.code != 0 || strings.Contains(o.err, "have changed since") {
			t.Errorf("exit code %d\n%s", o.code, o.err)
		}
	}
	write(t, agent, "<config model=\"rehearsal\"/>\n<system>Be short.</system>\n<user>First.</user>\n")
	if o := run("other", "And now?"); !strings.Contains(o.err, "have changed since") {
		t.Errorf("other instructions are not told of:\n%s", o.err)
	}
}
