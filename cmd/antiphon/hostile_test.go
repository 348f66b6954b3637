// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"image"
	"image/png"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/antiphon-go/antiphon/agenttest"
	"github.com/antiphon-go/antiphon/item"
)

// stolen is the text of what no hostile file may show or send.
const stolen = "CANARY-5d2e"

// hostileCase is a folder with a hostile file, main.md, and what it wants to reach.
type hostileCase struct {
	path      string
	attempt   string
	seen      string // what the program says of the attempt, or ""
	dir, work string
	mark      string // a file that exists if a program ran
	env       []string
	evil      *atomic.Int64 // requests to the stranger's host
	host      string        // which that is
	loot      *atomic.Int64 // requests to the person's endpoint that have what is outside
	searched  *atomic.Int64 // requests that let it search the web
	links     []string      // links that the file brings
	outside   string        // a folder that no file may change
	before    string        // what is in it, as listed says
}

// newHostile lays out one file of testdata/hostile.
func newHostile(t *testing.T, path string, w world) *hostileCase {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	archive := txtar.Parse(data)
	dir := t.TempDir()
	attempt, seen, _ := strings.Cut(strings.TrimSpace(string(archive.Comment)), "\nSeen: ")
	h := &hostileCase{path: path, attempt: attempt, seen: seen, dir: dir, evil: w.asked, loot: w.loot, searched: w.searched}
	h.work, h.mark = filepath.Join(dir, "work"), filepath.Join(dir, "mark")
	h.env = []string{"OPENAI_API_KEY=" + testKey, "OPENAI_BASE_URL=" + w.endpoint, "MY_ID=" + stolen + "-id", "MY_TOKEN=" + stolen + "-token",
		"HOME=" + w.home, "XDG_DATA_HOME=" + filepath.Join(dir, "data"), "XDG_CACHE_HOME=" + filepath.Join(dir, "cache")}
	outside := filepath.Join(dir, "outside")
	at, err := url.Parse(w.evil)
	if err != nil {
		t.Fatal(err)
	}
	h.host = at.Host
	words := strings.NewReplacer("{{PID}}", strconv.Itoa(os.Getpid()), "{{MARK}}", h.mark, "{{EVIL}}", w.evil, "{{EVIL_HOST}}", at.Host, "{{EVIL_PORT}}", at.Port(), "{{EVIL_AT}}", strings.Replace(w.evil, "http://", "http://api.openai.com@", 1), "{{OUTSIDE}}", outside)
	for _, folder := range []string{h.work, outside} {
		if err := os.Mkdir(folder, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	links := map[string]string{"link": outside, "linked.txt": filepath.Join(outside, "secret.txt")}
	for _, f := range archive.Files {
		text := words.Replace(string(f.Data))
		if f.Name != "links" {
			if err := os.MkdirAll(filepath.Dir(filepath.Join(h.work, f.Name)), 0o700); err != nil {
				t.Fatal(err)
			}
			write(t, filepath.Join(h.work, f.Name), text)
			continue
		}
		for line := range strings.Lines(text) {
			from, to, _ := strings.Cut(strings.TrimSpace(line), " -> ")
			links[from] = filepath.FromSlash(to)
			h.links = append(h.links, filepath.Join(h.work, filepath.FromSlash(from)))
		}
	}
	var picture bytes.Buffer
	if err := png.Encode(&picture, image.NewGray(image.Rect(0, 0, 2, 2))); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(outside, "secret.txt"), stolen+"\n")
	write(t, filepath.Join(outside, "secret.png"), picture.String()+stolen)
	write(t, filepath.Join(outside, "agent.md"), "<config model=\"rehearsal\"/>\n<user>"+stolen+"</user>\n")
	write(t, filepath.Join(outside, "asks.md"), "<config model=\"m\"/>\n<user>"+stolen+"</user>\n")
	write(t, filepath.Join(outside, "play.script"), "turn\n  say "+stolen+"\n")
	write(t, filepath.Join(outside, "empty.txt"), "")
	for from, to := range links {
		from = filepath.Join(h.work, filepath.FromSlash(from))
		if err := errors.Join(os.MkdirAll(filepath.Dir(from), 0o700), os.Symlink(to, from)); err != nil {
			t.Fatal(err)
		}
	}
	h.outside, h.before = outside, listed(t, outside)
	return h
}

// listed returns the names and the contents of the files in a folder.
func listed(t *testing.T, dir string) (list string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		list += e.Name() + ":\n" + read(t, filepath.Join(dir, e.Name()))
	}
	return list
}

// ways are the ways by which a stranger's file gets in, each a list of commands. FILE is
// the hostile file, DIR its folder.
var ways = [][]string{
	{"run FILE"},
	{"run FILE --rehearsal"},
	{"run FILE --json --session s"},
	{"check FILE"},
	{"doctor FILE --offline"},
	{"convert FILE --to request", "convert FILE --to lines", "convert FILE --to chatmd"},
	{"run FILE --out DIR/talk.md", "run DIR/talk.md --in-place", "run FILE more --out DIR/talk.md"},
	{"run FILE --quiet --sandbox full"},
	{"doctor FILE"},
	{"sessions import FILE --name s", "sessions show s --full", "sessions show s --as-sent", "run FILE --session s"},
	{"sessions import FILE --name i --for FILE", "run FILE more --session i", "sessions compact i", "sessions export i --to chatmd --out DIR/exported.md", "run DIR/exported.md more"},
	{"run DIR/inside.md --session h", "sessions compact h --file FILE", "sessions fork h --name forked", "run FILE more --session forked"},
	{"run DIR/as-tool.md"},
	{"run DIR/as-message.md"},
	{"run DIR/as-import.md"},
	{"run DIR/as-deep.md"},
	{"trust --diff FILE"},
	{"fmt FILE", "run FILE more"},
	{"serve FILE --check", "mcp FILE"},
	{"chat FILE", "run DIR/inside.md --schema FILE", "run DIR/inside.md --approve-from FILE", "run DIR/inside.md -f FILE"},
}

func hostileFiles(t *testing.T) []string {
	t.Helper()
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	paths, err := filepath.Glob(filepath.Join(here, "testdata", "hostile", "*.txtar"))
	if err != nil || len(paths) < 175 {
		t.Fatalf("%d hostile files, %v", len(paths), err)
	}
	return paths
}

// world is what hostile files attack.
type world struct {
	home     string        // a folder with secrets
	evil     string        // the address of the stranger's host
	asked    *atomic.Int64 // requests to it, and to another machine of the person
	loot     *atomic.Int64 // requests to the endpoint that have what is outside
	searched *atomic.Int64 // requests that let the endpoint search the web
	outside  []string      // what is outside, as lootTexts says
	endpoint string        // the person's, which fetches what a request makes it fetch
}

func newWorld(t *testing.T) world {
	t.Helper()
	home, asked := t.TempDir(), new(atomic.Int64)
	t.Setenv("HOME", home)
	if err := os.Mkdir(filepath.Join(home, ".ssh"), 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(home, ".ssh", "id_rsa"), stolen+"\n")
	write(t, filepath.Join(home, "notes.txt"), stolen+"\n")
	srv := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	t.Cleanup(srv.Close)
	w := world{home: home, evil: srv.URL, asked: asked, loot: new(atomic.Int64), searched: new(atomic.Int64), outside: lootTexts(t)}
	w.endpoint = w.fetching(t)
	return w
}

// fetching starts the endpoint that the person configured. It fetches whatever address a request has, as servers with images, files and
// MCP servers do, so that what a file makes it fetch arrives at the stranger's host.
func (w world) fetching(t *testing.T) string {
	t.Helper()
	srv := agenttest.NewServer(t)
	srv.Otherwise(func(_ int, r agenttest.Request) agenttest.Reply {
		w.obey(r.Body)
		if w.has(string(r.Body)) {
			w.loot.Add(1)
		}
		return agenttest.Completed(item.Assistant("Hello."))
	})
	return srv.URL + "/v1"
}

// has reports whether a text has something of what is outside.
func (w world) has(text string) bool {
	return slices.ContainsFunc(w.outside, func(loot string) bool { return strings.Contains(text, loot) })
}

// lootTexts are the forms in which a request may have what is outside: the text itself, also in base64, a variable of this process
// and the beginning of the list of users.
func lootTexts(t *testing.T) []string {
	t.Helper()
	list := []string{stolen}
	if own, err := os.ReadFile("/proc/self/environ"); err == nil {
		if first, _, _ := strings.Cut(string(own), "\x00"); len(first) > 8 {
			list = append(list, first)
		}
	}
	for shift := range 3 { // what is before it moves its letters
		code := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("x", shift) + stolen))
		list = append(list, code[4:len(code)-4])
	}
	if users, err := os.ReadFile("/etc/passwd"); err == nil {
		first, _, _ := strings.Cut(string(users), "\n")
		list = append(list, first)
	}
	return list
}

// obey does what the members of a request let an endpoint do, also those that are there twice: it fetches the addresses of the
// stranger, unless their member is for people to read, and notes a search of the web and an address in the person's network.
func (w world) obey(body []byte) {
	d := json.NewDecoder(bytes.NewReader(body))
	var open []json.Delim
	member, isName := "", false
	for {
		token, err := d.Token()
		if err != nil {
			return // a request without a body has no address
		}
		switch token := token.(type) {
		case json.Delim:
			if token == '{' || token == '[' {
				open = append(open, token)
			} else {
				open = open[:len(open)-1]
			}
			isName = len(open) > 0 && open[len(open)-1] == '{'
			continue
		case string:
			if isName {
				member, isName = token, false
				continue
			}
			w.meet(member, strings.TrimSpace(token))
		}
		isName = len(open) > 0 && open[len(open)-1] == '{'
	}
}

// meet does what one text of a request says.
func (w world) meet(member, text string) {
	switch {
	case slices.Contains([]string{"text", "content", "instructions", "input", "arguments", "output", "description"}, member):
	case member == "type" && text == "web_search":
		w.searched.Add(1)
	case strings.HasPrefix(text, "http://169.254.169.254/"):
		w.asked.Add(1)
	case strings.HasPrefix(text, w.evil):
		if resp, err := http.Get(text); err == nil {
			_ = resp.Body.Close()
		}
	}
}

// K1: the attempts of testdata/hostile are real. With all agreements that a person can give
// and nothing that confines its programs, each file does what it wants, so that TestHostileFiles
// would see it; or the program says of it what the file tells in a line "Seen: TEXT", because something else
// than an agreement stops it. If neither is true, the file attempts nothing. A question to the person proves nothing.
func TestHostileFilesAreReal(t *testing.T) {
	world := newWorld(t)
	for _, path := range hostileFiles(t) {
		h := newHostile(t, path, world)
		if strings.Contains(read(t, filepath.Join(h.work, "main.md")), "/proc/self/") && runtime.GOOS != "linux" {
			continue // there is nothing to read
		}
		t.Chdir(h.work) // some of them write there
		works, said := h.agreed(t)
		works = works || world.has(said)
		switch {
		case h.seen != "" && !strings.Contains(said, h.seen):
			t.Errorf("%s: with all agreements the program does not say %q:\n%s", filepath.Base(path), h.seen, said)
		case !works && h.seen == "":
			t.Errorf("%s attempts nothing (%s): with all agreements the program says only\n%s", filepath.Base(path), h.attempt, said)
		}
	}
}

// agreed gives the hostile file all agreements, and reports whether it did what it wants and
// what the program said.
func (h *hostileCase) agreed(t *testing.T) (works bool, said string) {
	t.Helper()
	name := filepath.Base(h.path)
	lines, env := []string{"run FILE --trust --sandbox full --out DIR/talk.md", "run FILE --trust --sandbox full --allow *", "run FILE --trust --sandbox full --allow * --model m"}, h.env
	for _, name := range []string{"MY_ID", "MY_TOKEN", "OPENAI_API_KEY"} {
		for i := range lines {
			lines[i] += " --env " + name + "@" + h.host
		}
	}
	switch {
	case strings.HasPrefix(name, "setting-"): // a git of the person, without the settings that commands get
		for _, folder := range []string{".", "docs/x"} {
			cmd := exec.Command("git", "status")
			cmd.Dir, cmd.Env = filepath.Join(h.work, folder), []string{"PATH=" + os.Getenv("PATH"), "HOME=" + h.work}
			_ = cmd.Run() // it may fail, after the program of the stranger
		}
		return h.marked(), ""
	case strings.HasPrefix(name, "add-"):
		lines = append(h.adds(t), "run DIR/own-talk.md more --in-place --allow * --model m")
	case strings.HasPrefix(name, "named-"):
		lines = append([]string{"run .antiphon/agents/helper.md", "run .antiphon/agents/agent.md", "run helper --model m"}, namedLines...)
		env = append(slices.Clone(env), "OPENAI_BASE_URL=", "XDG_CONFIG_HOME="+h.work) // as if the settings were the person's
	case strings.HasPrefix(name, "write-"):
		lines = continuedLines
	}
	for _, line := range lines {
		if strings.HasPrefix(line, "run ") && !strings.Contains(line, "--trust") {
			line += " --trust --sandbox full"
		}
		before := h.evil.Load() + h.loot.Load() + h.searched.Load()
		o := programEnv(t, env, h.words(line)...)
		talk, _ := os.ReadFile(filepath.Join(h.work, "talk.md"))
		text := o.out + o.err + string(talk)
		said += text
		if h.marked() || h.evil.Load()+h.loot.Load()+h.searched.Load() > before || strings.Contains(text, stolen) || strings.Contains(o.out, "{output}") || listed(t, h.outside) != h.before {
			return true, said
		}
	}
	// A link that is gone had the name of a file that the program makes.
	return slices.ContainsFunc(h.links, func(link string) bool { _, err := os.Lstat(link); return err != nil }), said
}

// K1, K4: a host of testdata/hostile that is written to be misread is refused, or shown as
// what it is and no other: even a person's agreement does not lead to the stranger's host.
func TestHostileHostsAreNotMisread(t *testing.T) {
	paths := hostileFiles(t)
	world := newWorld(t)
	tried := 0
	for _, path := range paths {
		if !strings.HasPrefix(filepath.Base(path), "host-") {
			continue
		}
		tried++
		h := newHostile(t, path, world)
		t.Chdir(h.work)
		h.try(t, "run FILE --trust")
	}
	if tried < 10 {
		t.Errorf("only %d files with hosts", tried)
	}
}

// K2, K3, A5, B5: none of the files of strangers in testdata/hostile starts a program,
// sends anything, shows or changes what is outside its folder, or steers the terminal, whatever
// way it comes in by and whatever command is given it without a person's agreement. A plain
// go test tries a third of the ways with each file, others with the next one, because all
// are more than 4000 commands. ANTIPHON_PAIRS=all tries all, in .ci/run.
func TestHostileFiles(t *testing.T) {
	paths := hostileFiles(t)
	world := newWorld(t)
	for n, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) {
			h := newHostile(t, path, world)
			if !strings.HasPrefix(h.attempt, "Attempt: ") {
				t.Errorf("%s does not say what it attempts", path)
			}
			const inside = "<config model=\"rehearsal\"/>\n"
			write(t, filepath.Join(h.work, "as-tool.md"), inside+"<tool name=\"h\" agent=\"main.md\" local description=\"Helps.\"/>\n<user>x</user>\n")
			write(t, filepath.Join(h.work, "as-message.md"), inside+"<user>x <agent src=\"main.md\" local>go</agent></user>\n")
			write(t, filepath.Join(h.work, "as-import.md"), "<import src=\"main.md\"/>\n<user>x</user>\n")
			write(t, filepath.Join(h.work, "inside.md"), inside+"<user>x</user>\n")
			write(t, filepath.Join(h.work, "as-deep.md"), inside+"<tool name=\"h\" agent=\"as-tool.md\" local description=\"Helps.\"/>\n<user>x</user>\n")
			elsewhere := t.TempDir()
			for i, way := range ways {
				if underRace && i%4 != n%4 || !underRace && i%3 != n%3 && os.Getenv("ANTIPHON_PAIRS") != "all" {
					continue
				}
				t.Chdir([]string{elsewhere, h.work}[(n+i)%2]) // the workspace
				for _, line := range way {
					h.try(t, line)
				}
			}
			if strings.HasPrefix(filepath.Base(path), "add-") {
				t.Chdir(elsewhere)
				for _, line := range h.adds(t) {
					h.try(t, line)
				}
			}
			if strings.HasPrefix(filepath.Base(path), "setting-") {
				t.Chdir(h.work)
				for _, line := range []string{"run FILE --allow run_command", "run FILE --allow run_command --sandbox full"} {
					h.try(t, line)
				}
			}
			if strings.HasPrefix(filepath.Base(path), "named-") {
				t.Chdir(h.work)
				for _, line := range namedLines {
					h.try(t, line)
				}
			}
			if strings.HasPrefix(filepath.Base(path), "write-") {
				t.Chdir(elsewhere)
				for _, line := range continuedLines {
					h.try(t, line)
				}
			}
		})
	}
}

// adds adds the hostile file to a transcript of the person, and returns commands by which they
// go on with it and allow all its tools by rules.
func (h *hostileCase) adds(t *testing.T) (lines []string) {
	t.Helper()
	own, talk := filepath.Join(h.work, "own.md"), filepath.Join(h.work, "own-talk.md")
	write(t, own, "<config model=\"rehearsal:own.script\"/>\n<tool name=\"run_command\"/>\n<tool name=\"shell\"/>\n<user>x</user>\n")
	write(t, filepath.Join(h.work, "own.script"), "turn\n  say Hello.\nturn\n  say Hello.\nturn\n  say Hello.\n")
	if o := programEnv(t, h.env, "run", own, "--out", talk); o.code != 0 {
		t.Fatal(o.err)
	}
	write(t, talk, read(t, talk)+read(t, filepath.Join(h.work, "main.md")))
	return []string{"run DIR/own-talk.md more --allow *", "run DIR/own-talk.md --in-place --allow *", "run DIR/own.md more --out DIR/own-talk.md --allow *"}
}

// namedLines are commands in the stranger's project that name agents without their paths.
var namedLines = []string{"run helper", "run helper more --session s", "run agent", "Hello?", "config", "models", "trust list", "sessions list", "doctor"}

// continuedLines continue the conversation in the hostile file, and one that is in its folder: then
// the program writes beside files of the stranger.
var continuedLines = []string{"run FILE more --in-place", "run FILE more --out DIR/talk.md", "run DIR/talk.md more --in-place --rehearsal", "run FILE more --out DIR/talk.md --keep-agent"}

// words are the arguments of a line.
func (h *hostileCase) words(line string) (args []string) {
	for word := range strings.FieldsSeq(line) {
		word = strings.ReplaceAll(word, "FILE", filepath.Join(h.work, "main.md"))
		args = append(args, strings.ReplaceAll(word, "DIR", h.work))
	}
	return args
}

// marked reports whether a program of the file ran, or a tool wrote what the file wants.
func (h *hostileCase) marked() (marked bool) {
	for _, path := range []string{h.mark, "planted"} {
		if os.Remove(path) == nil {
			marked = true
		}
	}
	return marked
}

// try gives one command to the hostile file.
func (h *hostileCase) try(t *testing.T, line string) {
	t.Helper()
	args, before, loot := h.words(line), h.evil.Load(), h.loot.Load()
	o := programEnv(t, h.env, args...)
	for where, text := range map[string]string{"standard output": o.out, "standard error": o.err} {
		if strings.Contains(text, stolen) {
			t.Errorf("%s: what is outside is on %s:\n%s", line, where, text)
		}
		// What is the file again, in a pipe, is so to the byte.
		copied := args[0] == "fmt" || where == "standard output" && strings.HasSuffix(line, "--to chatmd")
		if strings.ContainsAny(text, "\x1b\x07\u202e\u200b") && !copied {
			t.Errorf("%s: the file steers the terminal by %s: %q", line, where, text)
		}
	}
	if h.loot.Load() > loot {
		t.Errorf("%s: what is outside was sent to the endpoint", line)
	}
	if h.marked() {
		t.Errorf("%s: a program of the file has run (exit code %d)\n%s%s", line, o.code, o.out, o.err)
	}
	if now := listed(t, h.outside); now != h.before {
		t.Errorf("%s: what is outside was changed (exit code %d)\n%s%s\n%s", line, o.code, o.out, o.err, now)
		h.before = now
	}
	if after := h.evil.Load(); after != before {
		t.Errorf("%s: %d requests went to the stranger's host (exit code %d)\n%s%s", line, after-before, o.code, o.out, o.err)
	}
}
