// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package rehearsal

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/server"
)

// A say without text is an empty line between two others, and nothing where
// there is no other.
func TestEmptySay(t *testing.T) {
	script := parse(t, `
turn
  say
  say One.
  say
  pause 1ms
  say
    {{if false}}nothing{{end}}
  say Two.
  say
`)
	got := create(t, start(t, &Server{Script: script}), request(nil, item.User("Hello"))).Text()
	if want := "One.\n\nTwo."; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// Facts come from what was received, and from nothing else.
func TestFacts(t *testing.T) {
	script := parse(t, `
again
turn
  say
    {{model}} {{tools}} {{instructions | json}}
    user {{user | json}} question {{question | json}}
    output {{output 1 | json}} {{output "look" | json}} {{output "read_file" -1 | json}} {{output -1 | shorten 12}}
    lines {{output 1 | lines}} {{output 1 | first_line}} {{output 1 | line 2}} {{output 1 | line_with "w"}}
    failed {{failed 1}} {{failed "read_file" 2}} {{error "read_file" 2 | json}} {{failed "plan" 1}}
    image {{with image "look" 1}}{{.MediaType}} {{.Size}} {{.SHA256}}{{end}}
    user_image {{(user_image 1).Size}} {{(user_image -1).Size}} {{user_image 2}}
    custom {{output "patch"}}
`)
	first, err := item.UserParts(&item.InputText{Text: "Before"}, &item.InputImage{ImageURL: png("12345")}, &item.InputText{Text: "after"})
	if err != nil {
		t.Fatal(err)
	}
	second, err := item.UserParts(&item.InputText{Text: "The document.\n"}, &item.InputImage{ImageURL: png("")}, &item.InputText{Text: "And?\n\n"})
	if err != nil {
		t.Fatal(err)
	}
	req := request([]string{"read_file", "look"}, item.System("Be brief."), first,
		item.Call("c1", "read_file", ""), item.Call("c2", "look", ""), item.Call("c3", "read_file", ""), item.Call("c5", "plan", ""),
		textOutput("c1", "one\r\ntwo\n"),
		outputOf(t, "c2", &item.InputText{Text: "Look:"}, &item.InputImage{ImageURL: png("abc"), Detail: item.DetailAuto}),
		failed("c3", "read_file", "no such file\n status:\n\nmore"), textOutput("c5", "status:\nerror of a kind"),
		item.Must(&item.CustomToolCall{CallID: "c4", Name: "patch", Input: "x"}),
		item.Must(&item.CustomToolCallOutput{CallID: "c4", Output: item.Text("patched it in two places")}),
		item.Assistant("So."), second)
	req.Instructions = "Obey."
	got := create(t, start(t, &Server{Script: script}), req).Text()
	want := `rehearsal [read_file look] "Obey.\n\nBe brief."
user "The document.\n\nAnd?\n\n" question "And?"
output "one\r\ntwo\n" "Look:\n<image src=\"image/png, 11 bytes, sha256:2cb922ecae93d405\" detail=\"auto\"/>" "status:\nerror\n\ntoolName:\nread_file\n\nerror:\nno such file\n status:\n\nmore\n\noutput:\nso far" patched it…
lines 2 one two two
failed false true "no such file\n status:\n\nmore" false
image image/png 11 2cb922ecae93d405c9b9631a154ff097e354a411d5444196a182a0ffcbe63071
user_image 13 8 image/png, 8 bytes, SHA-256 4c4b6a3be1314ab86138bef4314dde022e600960d8689a2c8f8631802d20dab6
custom patched it in two places`
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// The place in the script is read off the history.
func TestPosition(t *testing.T) {
	user, call := item.User("x"), func(id string) item.Item { return item.Call(id, "f", "") }
	out := func(id string) item.Item { return textOutput(id, "ok") }
	said, cut := item.Assistant("a"), raw(t, `{"type":"message","role":"assistant","status":"incomplete","content":[]}`)
	aside := raw(t, `{"type":"message","role":"assistant","status":"completed","phase":"commentary","content":[]}`)
	thought := raw(t, `{"type":"reasoning","id":"rs_1","summary":[]}`)
	list := func(items ...item.Item) []item.Item { return items }
	tests := []struct {
		name  string
		items []item.Item
		want  position
	}{
		{"first", list(item.System("s"), user), position{0, 0, 0}},
		{"several user messages", list(user, user), position{0, 0, 0}},
		{"after a call", list(user, thought, said, call("1"), out("1")), position{0, 1, 1}},
		{"parallel calls are one turn", list(user, call("1"), call("2"), out("1"), out("2")), position{0, 1, 1}},
		{"two turns", list(user, call("1"), out("1"), thought, call("2"), out("2")), position{0, 2, 2}},
		{"instructions between", list(user, call("1"), out("1"), item.Developer("d"), call("2"), out("2")), position{0, 2, 2}},
		{"second message", list(user, call("1"), out("1"), said, user), position{1, 0, 2}},
		{"third message", list(user, said, user, call("1"), out("1"), said, user), position{2, 0, 3}},
		{"message while running", list(user, call("1"), out("1"), user), position{1, 0, 1}},
		{"cut off, again", list(user, call("1"), out("1"), cut), position{0, 1, 1}},
		{"cut off after a thought", list(user, thought, cut), position{0, 0, 0}},
		{"cut off in a thought", list(user, thought), position{0, 0, 0}},
		{"cut off between text and call", list(user, thought, aside), position{0, 0, 0}},
		{"text and call", list(user, aside, call("1"), out("1")), position{0, 1, 1}},
		{"cut off, then a message", list(user, cut, user), position{1, 0, 0}},
		{"cut off before a call", list(user, cut, call("1"), out("1")), position{0, 1, 1}},
		{"asked without a message", list(user, said), position{0, 1, 1}},
	}
	for _, test := range tests {
		f, err := factsOf(request(nil), test.items)
		if err != nil {
			t.Fatal(err)
		}
		if f.at != test.want {
			t.Errorf("%s: %+v, want %+v", test.name, f.at, test.want)
		}
	}
}

// One conversation over two servers goes on as over one; what the script has
// no turn for is answered all the same.
func TestRounds(t *testing.T) {
	src := "turn\n  call f\nturn\n  say one\nround\nturn\n  say two\nround\nturn\n  call f\n"
	script := parse(t, src)
	history := item.NewList(item.User("a"))
	ask := func(want string) {
		t.Helper()
		r := create(t, start(t, &Server{Script: script}), &api.Request{Model: "m", Input: history})
		if got := calls(r) + r.Text(); !strings.Contains(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
		history.Append(r.Output...)
		for _, it := range r.Output {
			if it.IsCall() {
				history.Append(textOutput(it.CallID(), "done"))
			}
		}
	}
	ask("f {}\n")
	ask("one")
	history.Append(item.User("b"))
	ask("two")
	history.Append(item.User("c"))
	ask("f {}\n")
	ask("- `f` with `{}` returned 1 line, 4 bytes: \"done\"") // the round is over
	history.Append(item.User("d"))
	ask("No tools were declared.")
}

// Equal requests get equal answers, and no id stands twice in a conversation.
func TestDeterministic(t *testing.T) {
	script := parse(t, everything)
	a := encodeResponse(t, create(t, start(t, &Server{Script: script}), everythingRequest()))
	b := encodeResponse(t, create(t, start(t, &Server{Script: script}), everythingRequest()))
	if a != b {
		t.Errorf("two answers:\n%s\n%s", a, b)
	}
	script = parse(t, "turn\n  call f\nagain\nturn\n  call f\nturn\n  say x\n")
	url := start(t, &Server{Script: script})
	history, seen := item.NewList(item.User("a")), map[string]bool{}
	for range 20 {
		r := create(t, url, &api.Request{Model: "m", Input: history})
		for _, it := range r.Output {
			for _, id := range []string{it.ID(), it.CallID()} {
				if id != "" && seen[id] {
					t.Errorf("id %s is given twice", id)
				}
				seen[id] = true
			}
		}
		history.Append(r.Output...)
		history.Append(textOutput(r.Output[0].CallID(), "same"), item.User("a"))
	}
}

// S9: usage is an estimate of what went in and out; what an earlier request
// began with counts as cached (I12 shows in it).
func TestUsage(t *testing.T) {
	url := start(t, &Server{Script: parse(t, "turn\n  reason 12345678\n  call f {\"a\":123}\nturn\n  say Done now.\n")})
	big, err := item.UserParts(&item.InputText{Text: "12345"}, &item.InputImage{ImageURL: png(strings.Repeat("x", 1<<16))})
	if err != nil {
		t.Fatal(err)
	}
	req := &api.Request{Model: "m", Instructions: "abcd", Input: item.NewList(big)}
	first := create(t, url, req)
	usage(t, first, 1+2+85, 0, 2+3, 2)
	req.Input.Append(first.Output...)
	req.Input.Append(textOutput(first.Output[1].CallID(), "123456789"))
	second := create(t, url, req)
	usage(t, second, 88+2+3+3, 88, 3, 0)
	usage(t, create(t, url, req), 96, 96, 3, 0) // a repetition
	req.Instructions = "efgh"
	usage(t, create(t, url, req), 96, 0, 3, 0)
}

func usage(t *testing.T, r *api.Response, in, cached, out, reasoning int64) {
	t.Helper()
	u := r.Usage
	got := []int64{u.InputTokens, u.Cached(), u.OutputTokens, u.Reasoning(), u.TotalTokens}
	if d := cmp.Diff([]int64{in, cached, out, reasoning, in + out}, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func TestPrefixesAreBounded(t *testing.T) {
	var p prefixes
	for i := range 3 * maxPrefixes {
		p.take(&server.Request{Request: &api.Request{Model: fmt.Sprint(i)}, Items: []item.Item{item.User("x")}})
	}
	if len(p.seen) != maxPrefixes || len(p.ring) != maxPrefixes {
		t.Errorf("%d and %d remembered", len(p.seen), len(p.ring))
	}
}

// Pace and pauses wait between the events; a whole response takes as long.
func TestPace(t *testing.T) {
	script := parse(t, "pace 10ms\nturn\n  pause 1s\n  say one two\n  pause 200ms\n  say three\n  pause 3s\n")
	tests := []struct {
		name   string
		pace   time.Duration
		stream bool
		want   time.Duration
	}{
		{"the script's", 0, true, 4240 * time.Millisecond}, // four pieces: one, two, a newline, three
		{"whole", 0, false, 4240 * time.Millisecond},
		{"the server's", time.Second, true, 8200 * time.Millisecond},
		{"none", -1, true, 4200 * time.Millisecond},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := &Server{Script: script, Pace: test.pace}
				begin := time.Now()
				w := httptest.NewRecorder()
				body := encode(t, request(nil, item.User("x")), test.stream)
				server.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "POST", "/v1/responses", bytes.NewReader(body)))
				if took := time.Since(begin); took != test.want || w.Code != http.StatusOK {
					t.Errorf("%d after %v, want %v", w.Code, took, test.want)
				}
			})
		})
	}
}

// S8: a client that goes away in the middle of text ends the request, and what
// was sent before the pause is there in full.
func TestCancel(t *testing.T) {
	server := &Server{Script: parse(t, "turn\n  say before\n  pause 10m\n  say after\n")}
	url := start(t, server)
	for _, stream := range []bool{true, false} {
		ctx, cancel := context.WithCancel(t.Context())
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/responses",
			bytes.NewReader(encode(t, request(nil, item.User("x")), stream)))
		if err != nil {
			t.Fatal(err)
		}
		if !stream {
			context.AfterFunc(t.Context(), cancel)
			go cancel()
			if _, err := http.DefaultClient.Do(req); err == nil {
				t.Error("no error after the cancel")
			}
			continue
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		var got strings.Builder
		buf := make([]byte, 1024)
		for !strings.Contains(got.String(), `"delta":"before"`) {
			n, err := resp.Body.Read(buf)
			got.Write(buf[:n])
			if err != nil {
				t.Fatal(err)
			}
		}
		cancel()
		_, _ = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
	}
}

// Stop ends requests that run, waits for them, and may be called again.
func TestStop(t *testing.T) {
	server := &Server{Script: parse(t, "turn\n  say before\n  pause 10m\n")}
	url, stop, err := server.Start()
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(url, "http://127.0.0.1:") || !strings.HasSuffix(url, "/v1") {
		t.Errorf("base URL %s", url)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/responses",
		bytes.NewReader(encode(t, request(nil, item.User("x")), true)))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	stop()
	stop()
	got, _ := io.ReadAll(resp.Body) // ends with an error or without
	resp.Body.Close()
	if strings.Contains(string(got), "response.completed") {
		t.Errorf("the response was completed:\n%s", got)
	}
	if _, err := http.DefaultClient.Do(req.Clone(t.Context())); err == nil {
		t.Error("the server still answers")
	}
}

// B5 J6: a key that is sent turns up nowhere.
func TestKeyIsIgnored(t *testing.T) {
	var logged bytes.Buffer
	log.SetOutput(&logged)
	defer log.SetOutput(os.Stderr)
	url := start(t, &Server{})
	for _, body := range []string{`{"model":"m","input":"x"}`, `{`} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/responses", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer sk-secret")
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		var all strings.Builder
		if err := resp.Write(&all); err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if strings.Contains(all.String()+logged.String(), "sk-secret") {
			t.Errorf("the key came back:\n%s\n%s", all.String(), logged.String())
		}
	}
}

func TestNow(t *testing.T) {
	now := time.Unix(1_800_000_000, 5)
	r := create(t, start(t, &Server{Now: func() time.Time { return now }}), request(nil, item.User("x")))
	if r.CreatedAt == nil || *r.CreatedAt != 1_800_000_000 {
		t.Errorf("created_at %v", r.CreatedAt)
	}
}

func TestParseModel(t *testing.T) {
	tests := []struct {
		model, script string
		ok            bool
	}{
		{"rehearsal", "", true},
		{"rehearsal:tour.script", "tour.script", true},
		{`rehearsal:C:\a b.script`, `C:\a b.script`, true},
		{"rehearsal:", "", true},
		{"rehearsals", "", false},
		{"gpt-5", "", false},
		{"", "", false},
	}
	for _, test := range tests {
		if script, ok := ParseModel(test.model); ok != test.ok || ok && script != test.script {
			t.Errorf("%q: %q %v", test.model, script, ok)
		}
	}
}

func TestLoad(t *testing.T) {
	dir := t.TempDir()
	if _, err := Load(filepath.Join(dir, "none.script")); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "none.script") {
		t.Errorf("missing file: %v", err)
	}
	if _, err := Load(dir); err == nil {
		t.Error("a directory was read")
	}
	path := filepath.Join(dir, "a.script")
	if err := os.WriteFile(path, []byte("turn\n  shout\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(path); err == nil || !strings.HasPrefix(err.Error(), path+":2:3: ") {
		t.Errorf("bad file: %v", err)
	}
}
