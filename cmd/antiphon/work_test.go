// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/antiphon-go/antiphon/agenttest"
	"github.com/antiphon-go/antiphon/internal/person"
	"github.com/antiphon-go/antiphon/item"
)

// stalling is an endpoint that answers with replies. An empty one never comes: reached
// gets a value when it is asked for.
func stalling(t *testing.T, replies ...[]item.Item) (url string, reached chan struct{}) {
	reached = make(chan struct{}, len(replies))
	over := make(chan struct{})
	var n atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		i := int(n.Add(1)) - 1
		if i >= len(replies) {
			t.Errorf("request %d is one too many", i)
			return
		}
		if len(replies[i]) == 0 {
			reached <- struct{}{}
			<-over // until then, as a server that has hung
			return
		}
		agenttest.Wrap(http.NotFoundHandler(), func(int, agenttest.Request, agenttest.Reply) agenttest.Reply {
			return agenttest.Completed(replies[i]...)
		}).ServeHTTP(w, r)
	}))
	t.Cleanup(func() {
		close(over)
		server.Close()
	})
	return server.URL, reached
}

// Workers are killed and told to end in the middle of a conversation, and others go
// on: nothing is lost, and no call that finished runs again.
func TestWorkersDie(t *testing.T) {
	workersDie(t, filepath.Join(t.TempDir(), "s.db"))
}

// The same on a real server, where a killed worker leaves a lease behind.
func TestWorkersDieOnPostgres(t *testing.T) { workersDie(t, postgresStore(t)) }

func workersDie(t *testing.T, store string) {
	dir := t.TempDir()
	agents := filepath.Join(dir, "agents")
	t.Chdir(dir)
	if err := os.Mkdir(agents, 0o700); err != nil {
		t.Fatal(err)
	}
	file := write(t, filepath.Join(agents, "agent.md"), "<tool name=\"append_to_file\" approval=\"allow\"/>\n")
	calls := func(id, text string) []item.Item {
		return []item.Item{item.Call(id, "append_to_file", `{"path":"notes.txt","content":"`+text+`\n"}`)}
	}
	url, reached := stalling(t, calls("call_1", "one"), nil, calls("call_2", "two"), nil, calls("call_3", "three"), nil, []item.Item{item.Assistant("Done.")})
	defer program(t, "sessions", "--store", store, "rm", "--force", "talk")
	if o := program(t, "work", "submit", file, "talk", "Count", "--store", store); o.code != 0 {
		t.Fatal(o.err)
	}
	worker := []string{"work", "--store", store, "--agents", agents, "--trust", "--base-url", url, "--model", "m", "--json", "--drain-time", "1ms"}
	for _, end := range []syscall.Signal{syscall.SIGKILL, syscall.SIGTERM, syscall.SIGKILL} {
		p := start(t, nil, worker...)
		select {
		case <-reached:
		case <-time.After(stay):
			p.signal(t, syscall.SIGKILL)
			_, rest := p.wait(t)
			t.Fatalf("the endpoint is not asked\n%s%s", rest, p.err.String())
		}
		p.signal(t, end)
		if code, rest := p.wait(t); code > 0 || end == syscall.SIGTERM && !strings.Contains(rest, "given back") {
			t.Errorf("%v: exit code %d\n%s%s", end, code, rest, p.err.String())
		}
	}
	if o := program(t, append(worker, "--once")...); o.code != 0 || !strings.Contains(o.out, `"state":"done"`) {
		t.Errorf("exit code %d\n%s%s", o.code, o.out, o.err)
	}
	if text := read(t, filepath.Join(dir, "notes.txt")); text != "one\ntwo\nthree\n" {
		t.Errorf("the tool wrote %q", text)
	}
	o := program(t, "sessions", "export", "talk", "--store", store, "--to", "jsonl")
	for part, want := range map[string]int{`"kind":"call_started"`: 3, `"kind":"answered"`: 3, `"text":"Count"`: 1, `"text":"Done."`: 1, `"kind":"delivered"`: 1} {
		if n := strings.Count(o.out, part); n != want {
			t.Errorf("%s: %d times, want %d\n%s", part, n, want, o.out)
		}
	}
}

// An approval that nobody gives in time is neither consent nor a refusal. The time is that of
// the store's clock, and ends at a worker that begins later.
func TestApprovalDeadline(t *testing.T) {
	approvalDeadline(t, filepath.Join(t.TempDir(), "s.db"))
}

// The same on a real server.
func TestApprovalDeadlineOnPostgres(t *testing.T) { approvalDeadline(t, postgresStore(t)) }

func approvalDeadline(t *testing.T, store string) {
	dir := t.TempDir()
	agents := filepath.Join(dir, "agents")
	t.Chdir(dir)
	if err := os.Mkdir(agents, 0o700); err != nil {
		t.Fatal(err)
	}
	file := write(t, filepath.Join(agents, "agent.md"), "<tool name=\"append_to_file\"/>\n")
	srv := agenttest.NewServer(t, agenttest.Completed(item.Call("call_1", "append_to_file", `{"path":"notes.txt","content":"one\n"}`)), agenttest.Completed(item.Assistant("Well.")))
	defer program(t, "sessions", "--store", store, "rm", "--force", "deadline")
	if o := program(t, "work", "submit", file, "deadline", "Count", "--store", store); o.code != 0 {
		t.Fatal(o.err)
	}
	work := func(timeout, says string) {
		t.Helper()
		if o := program(t, "work", "--store", store, "--agents", agents, "--trust", "--base-url", srv.URL, "--model", "m", "--once", "--approval-time", timeout, "--approvers", "ann,ben"); o.code != 0 {
			t.Fatalf("exit code %d\n%s%s", o.code, o.out, o.err)
		}
		if o := program(t, "work", "status", "deadline", "--store", store); !strings.Contains(o.out, says) {
			t.Errorf("%q is not in %s%s", says, o.out, o.err)
		}
	}
	work("1h", "waits for ann's approval of append_to_file until ")
	work("1h", "waits for ann's approval of append_to_file until ") // it is not due
	if n := len(srv.Requests()); n != 1 {
		t.Errorf("%d requests before the time is over", n)
	}
	// Its row is due in an hour: another worker's settings hold from the next look on.
	if o := program(t, "work", "retry", "deadline", "--store", store); o.code != 0 {
		t.Fatal(o.err)
	}
	work("1ns", "done: answered")
	if _, err := os.Stat(filepath.Join(dir, "notes.txt")); err == nil {
		t.Error("the call ran")
	}
	o := program(t, "sessions", "export", "deadline", "--store", store, "--to", "jsonl")
	for part, want := range map[string]int{`"decided":"unanswered"`: 1, `"allowed":true`: 0, `"kind":"call_started"`: 0, `Nobody answered whether this call may run`: 2} {
		if n := strings.Count(o.out, part); n != want {
			t.Errorf("%s: %d times, want %d\n%s", part, n, want, o.out)
		}
	}
}

// J12: what is left for workers names the account of the person, as what is said by sessions
// commands does.
func TestWorkNamesTheAccount(t *testing.T) {
	dir := t.TempDir()
	store, agents := filepath.Join(dir, "s.db"), filepath.Join(dir, "agents")
	if err := os.Mkdir(agents, 0o700); err != nil {
		t.Fatal(err)
	}
	file := write(t, filepath.Join(agents, "agent.md"), "<config model=\"rehearsal:agent.script\"/>\n")
	write(t, filepath.Join(agents, "agent.script"), "turn\n  say Yes.\nagain\nturn\n  say Yes again.\n")
	for _, args := range [][]string{
		{"work", "submit", file, "talk", "Hello"}, {"sessions", "say", "talk", "And more"}, {"work", "schedule", "add", "yearly", "@yearly", file, "Hello"}, {"work", "--agents", agents, "--once"},
	} {
		if o := program(t, append(args, "--store", store)...); o.code != 0 {
			t.Fatal(o.err)
		}
	}
	by := `"by":"` + person.AccountName() + `"`
	if o := program(t, "sessions", "export", "talk", "--store", store, "--to", "jsonl"); strings.Count(o.out, by) != 2 {
		t.Errorf("the log: %s", o.out)
	}
	if o := program(t, "work", "schedule", "list", "--json", "--store", store); !strings.Contains(strings.ReplaceAll(o.out, " ", ""), by) {
		t.Errorf("the schedules: %s", o.out)
	}
}

// A session with a place works there, at a worker that has it, and its commands say what a
// place may be.
func TestWorkPlace(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	for _, folder := range []string{"agents", "repo"} {
		if err := os.Mkdir(folder, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	file := write(t, filepath.Join(dir, "agents", "agent.md"), "<config model=\"rehearsal:agent.script\"/>\n<tool name=\"append_to_file\" approval=\"allow\"/>\n")
	write(t, filepath.Join(dir, "agents", "agent.script"), "turn\n  call append_to_file {\"path\": \"a\", \"content\": \"b\"}\nturn\n  say Done.\n")
	for place, want := range map[string]string{"git:main": "git:URL#REF", "git:https://a:b@example.org/x#main": "no user, password", "volume": "volume:DIR", "none:x": "has no folder", "disk": "host, host:DIR", ":x": "host, host:DIR"} {
		for _, args := range [][]string{{"work", "submit", file, "s"}, {"work", "schedule", "add", "s", "@daily", file}} {
			if o := program(t, append(args, "Hello", "--place", place, "--store", "s.db")...); o.code != exitUsage || !strings.Contains(o.err, want) {
				t.Errorf("%v --place %s: exit code %d\n%s", args, place, o.code, o.err)
			}
		}
	}
	for name, place := range map[string]string{"shared": "volume:repo", "here": "host:repo"} {
		if o := program(t, "work", "submit", file, name, "Hello", "--place", place, "--store", "s.db"); o.code != 0 {
			t.Fatal(o.err)
		}
	}
	work := []string{"work", "--agents", "agents", "--trust", "--store", "s.db", "--once"}
	if o := program(t, append(work, "--host", "elsewhere")...); o.code != 0 {
		t.Fatal(o.err)
	}
	o := program(t, "work", "status", "--store", "s.db")
	wantAll(t, "the status", o.out, "needs a worker with the volume "+filepath.Join(dir, "repo"), "needs a worker on the host ")
	if o := program(t, append(work, "--volumes", "nowhere")...); o.code != exitUsage {
		t.Errorf("exit code %d\n%s", o.code, o.err)
	}
	if o := program(t, append(work, "--volumes", "repo", "--runs", "1")...); o.code != 0 {
		t.Fatal(o.err)
	}
	if text := read(t, filepath.Join(dir, "repo", "a")); text != "bb" {
		t.Errorf("%q", text)
	}
}

// A session whose place is a repository works in a checkout in the usual cache folder, without
// a question about calls that its agent allows, and its patch is printed.
func TestWorkRepository(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip(err)
	}
	dir := t.TempDir()
	t.Chdir(dir)
	for _, folder := range []string{"agents", "repo"} {
		if err := os.Mkdir(folder, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, args := range [][]string{{"init", "--quiet", "--initial-branch=main"}, {"-c", "user.name=A", "-c", "user.email=a@example.org", "commit", "--quiet", "--allow-empty", "-m", "m"}} {
		if out, err := exec.Command("git", append([]string{"-C", "repo"}, args...)...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", args, err, out)
		}
	}
	file := write(t, filepath.Join(dir, "agents", "agent.md"), "<config model=\"rehearsal:agent.script\"/>\n<tool name=\"append_to_file\" approval=\"allow\"/>\n")
	write(t, filepath.Join(dir, "agents", "agent.script"), "turn\n  call append_to_file {\"path\": \"a\", \"content\": \"b\\n\"}\nturn\n  say Done.\n")
	env := []string{"XDG_CACHE_HOME=" + filepath.Join(dir, ".cache")}
	for _, args := range [][]string{
		{"work", "submit", file, "fix", "Hello", "--place", "git:repo#main", "--store", "s.db"},
		{"work", "--agents", "agents", "--trust", "--store", "s.db", "--once", "--repositories", "repo"},
	} {
		if o := programEnv(t, env, args...); o.code != 0 {
			t.Fatalf("%v: %s", args, o.err)
		}
	}
	o := programEnv(t, env, "work", "patch", "fix", "--store", "s.db")
	wantAll(t, "the patch", o.out, "+++ b/a\n", "+b\n")
	wantAll(t, "the message", o.err, filepath.Join(dir, "repo"))
	wantAll(t, "the log", programEnv(t, env, "sessions", "show", "fix", "--store", "s.db").out, "note         the files of "+filepath.Join(dir, "repo")+" at ", ", with changes")
	if found, err := filepath.Glob(filepath.Join(dir, ".cache", "antiphon", "checkouts", "sessions", "fix-*", "files", "a")); err != nil || len(found) != 1 {
		t.Errorf("the checkout is not in the cache folder: %v", err)
	}
}

// The measures of a worker count the queue by tenant, and name no session and no text; only
// this machine can connect unless somebody says so.
func TestWorkMetrics(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	if err := os.Mkdir("agents", 0o700); err != nil {
		t.Fatal(err)
	}
	file := write(t, filepath.Join(dir, "agents", "agent.md"), "<config model=\"rehearsal:agent.script\"/>\n<tool name=\"append_to_file\"/>\n")
	write(t, filepath.Join(dir, "agents", "agent.script"), "turn\n  call append_to_file {\"path\": \"a\", \"content\": \"b\"}\n")
	if o := program(t, "work", "submit", file, "monday", "Hello", "--tenant", "anna", "--store", "s.db"); o.code != 0 {
		t.Fatal(o.err)
	}
	p := start(t, nil, "work", "--agents", "agents", "--store", "s.db", "--json", "--metrics", ":0")
	url := regexp.MustCompile(`"url":"(http://127\.0\.0\.1:\d+)/metrics"`).FindStringSubmatch(p.until(t, "/metrics\""))
	if url == nil {
		t.Fatal("no address of this machine")
	}
	p.until(t, `"state":"waiting"`)
	get := func(path string) string {
		t.Helper()
		res, err := http.Get(url[1] + path)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		text, err := io.ReadAll(res.Body)
		if err != nil || res.StatusCode != http.StatusOK {
			t.Errorf("%s: %s, %v\n%s", path, res.Status, err, text)
		}
		return string(text)
	}
	text := get("/metrics")
	wantAll(t, "the measures", text, `antiphon_work{state="waiting",tenant="anna"} 1`, `antiphon_work{state="ready",tenant="anna"} 0`, "antiphon_work_queue_up 1", "antiphon_work_oldest_ready_seconds 0",
		"antiphon_worker_attempts_total 1", `antiphon_worker_ended_total{outcome="waiting"} 1`, `antiphon_worker_steps_total{kind="turn"} 1`, "antiphon_worker_sessions_held 0", "antiphon_worker_leases_lost_total 0")
	if strings.Contains(text, "monday") || strings.Contains(text, "Hello") {
		t.Errorf("the measures name a session or a text:\n%s", text)
	}
	get("/healthz")
	get("/readyz")
	if o := program(t, "work", "status", "--store", "s.db", "--json"); !strings.Contains(o.out, `"tenants": null`) || strings.Contains(o.out, `"ended"`) { // everybody's
		t.Errorf("%s%s", o.out, o.err)
	}
	p.signal(t, syscall.SIGTERM)
	if code, rest := p.wait(t); code != 0 {
		t.Errorf("exit code %d\n%s", code, rest)
	}
	if o := program(t, "work", "--agents", "agents", "--store", "s.db", "--once", "--metrics", "nowhere"); o.code != exitUsage || !strings.Contains(o.err, "--metrics nowhere: missing port in address; give HOST:PORT") {
		t.Errorf("exit code %d\n%s", o.code, o.err)
	}
}

// D3: a worker takes up a file that has changed while it runs, and one that the operator
// agrees to meanwhile; work goes on with what it began with.
func TestWorkerTakesUpAgents(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: waits for looks at a folder")
	}
	dir := t.TempDir()
	t.Chdir(dir)
	t.Setenv("XDG_DATA_HOME", filepath.Join(dir, "data"))
	if err := os.Mkdir("agents", 0o700); err != nil {
		t.Fatal(err)
	}
	env := []string{"XDG_DATA_HOME=" + filepath.Join(dir, "data")}
	file := write(t, filepath.Join(dir, "agents", "agent.md"), "<config model=\"rehearsal:agent.script\"/>\n<system>One.</system>\n")
	write(t, filepath.Join(dir, "agents", "agent.script"), "turn\n  say Yes.\nagain\nturn\n  say Yes again.\n")
	do := func(args ...string) {
		t.Helper()
		if o := programEnv(t, env, args...); o.code != 0 {
			t.Fatalf("%v: %s", args, o.err)
		}
	}
	submit := func(name string) { t.Helper(); do("work", "submit", file, name, "Hello", "--store", "s.db") }
	p := start(t, nil, "work", "--agents", "agents", "--store", "s.db", "--json")
	p.until(t, "worker started")
	submit("first")
	p.until(t, `"state":"done"`)
	write(t, file, "<config model=\"rehearsal:agent.script\"/>\n<system>Two.</system>\n")
	p.until(t, "agent taken up")
	submit("second")
	p.until(t, `"state":"done"`)
	submit("first") // goes on with the file as it was
	p.until(t, `"state":"done"`)
	write(t, file, "<config model=\"rehearsal:agent.script\"/>\n<system>Three.</system>\n<tool name=\"append_to_file\" approval=\"allow\"/>\n")
	p.until(t, "agent not taken up")
	do("trust", file, "--yes")
	p.until(t, "agent taken up")
	submit("third")
	p.until(t, `"state":"done"`)
	p.signal(t, syscall.SIGTERM)
	if code, rest := p.wait(t); code != 0 {
		t.Errorf("exit code %d\n%s", code, rest)
	}
	o := programEnv(t, env, "work", "list", "--json", "--store", "s.db")
	agents := map[string]bool{}
	for _, m := range regexp.MustCompile(`"agent": "(\w+)"`).FindAllStringSubmatch(o.out, -1) {
		agents[m[1]] = true
	}
	if len(agents) != 3 {
		t.Errorf("%d definitions of 3 sessions\n%s", len(agents), o.out)
	}
}
