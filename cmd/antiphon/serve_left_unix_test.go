// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/antiphon-go/antiphon/agenttest"
	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/internal/apispec"
	"github.com/antiphon-go/antiphon/item"
)

// leftServer is a gateway in a process of its own.
type leftServer struct {
	t      *testing.T
	dir    string
	store  string
	up     *agenttest.Server
	spec   *apispec.Spec
	client *http.Client
	cmd    *exec.Cmd
}

func (l *leftServer) start() {
	l.t.Helper()
	cmd := exec.Command("antiphon", "serve", "--upstream", l.up.URL, "--listen", "unix:"+filepath.Join(l.dir, "sock"), "--store", l.store, "--drain-time", "1s")
	var said bytes.Buffer
	cmd.Dir, cmd.Stderr = l.dir, &said
	cmd.Env = append(os.Environ(), "OPENAI_API_KEY="+testKey, "OPENAI_BASE_URL=", "OPENAI_MODEL=")
	if err := cmd.Start(); err != nil {
		l.t.Fatal(err)
	}
	l.cmd = cmd
	l.t.Cleanup(func() { // it has ended, or the test has failed
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if l.t.Failed() {
			l.t.Logf("the server printed\n%s", said.String())
		}
	})
}

func (l *leftServer) kill() {
	l.t.Helper()
	if err := l.cmd.Process.Kill(); err != nil {
		l.t.Fatal(err)
	}
	_ = l.cmd.Wait() // it was killed
}

// ask sends a request, again while the server starts.
func (l *leftServer) ask(method, path, body string) *http.Response {
	l.t.Helper()
	for {
		r, err := http.NewRequestWithContext(l.t.Context(), method, "http://localhost/v1/"+path, strings.NewReader(body))
		if err != nil {
			l.t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		resp, err := l.client.Do(r)
		if err == nil {
			return resp
		}
		select {
		case <-l.t.Context().Done():
			l.t.Fatal(err)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// text returns the body of an answer that must succeed.
func (l *leftServer) text(method, path, body string) string {
	l.t.Helper()
	resp := l.ask(method, path, body)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		l.t.Fatalf("%s %s: %s %s %v", method, path, resp.Status, text, err)
	}
	return string(text)
}

// read reads events of a stream until there are n of them, or until it ends.
func (l *leftServer) read(resp *http.Response, n int) (list []api.Event) {
	l.t.Helper()
	if resp.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(resp.Body)
		l.t.Fatalf("%s %s", resp.Status, text)
	}
	late := time.AfterFunc(stay, func() { resp.Body.Close() }) // a stream that stands still ends, and the caller sees what is missing
	defer late.Stop()
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, 1<<20)
	for len(list) < n && lines.Scan() {
		data, ok := bytes.CutPrefix(lines.Bytes(), []byte("data: "))
		if !ok {
			continue
		}
		l.spec.Check(l.t, "ResponseStreamEvent", data)
		ev, err := api.ParseEvent(bytes.Clone(data))
		if err != nil {
			l.t.Fatal(err)
		}
		list = append(list, ev)
	}
	return list
}

// finished returns the items whose end is among events.
func finished(events []api.Event) (list []item.Item) {
	for _, ev := range events {
		if ev.Type == api.EventItemDone {
			if it, err := ev.Item(); err == nil {
				list = append(list, it)
			}
		}
	}
	return list
}

// left returns a response that the server before left, which must be incomplete with these items.
func (l *leftServer) left(id string, want []item.Item) *api.Response {
	l.t.Helper()
	text := l.text(http.MethodGet, "responses/"+id, "")
	l.spec.Check(l.t, "Response", []byte(text))
	if again := l.text(http.MethodGet, "responses/"+id, ""); again != text {
		l.t.Errorf("first\n%s\nthen\n%s", text, again)
	}
	r, err := api.ParseResponse([]byte(text))
	if err != nil {
		l.t.Fatal(err)
	}
	if r.Status != item.StatusIncomplete || r.Error == nil || r.Error.Code != "server_error" || !strings.Contains(text, `"incomplete_details":null`) {
		l.t.Errorf("%s", text)
	}
	complete := slices.DeleteFunc(slices.Clone(r.Output), func(it item.Item) bool { return it.Status() == item.StatusIncomplete })
	if !slices.Equal(complete, want) || len(r.Output) > len(want)+1 {
		l.t.Errorf("%s\nwant %v", text, want)
	}
	return r
}

// A gateway that is killed at any place of a stream leaves an incomplete response with the items
// that were complete. A stream goes on to its end, and nothing comes twice. The response can be
// continued. J1 V2
func TestGatewayLeft(t *testing.T) { killAtPlaces(t, "") }

// The same on the server of .ci/postgres.
func TestGatewayLeftOnPostgres(t *testing.T) {
	host := regexp.MustCompile(`host=(/\S+)`).FindStringSubmatch(os.Getenv("ANTIPHON_POSTGRES"))
	if host == nil {
		t.Skip("no ANTIPHON_POSTGRES: `.ci/postgres go test ./cmd/antiphon` starts a server and sets it")
	}
	killAtPlaces(t, "postgres://antiphon@/postgres?antiphon_unsafe=fsync&host="+host[1])
}

// leftBy starts a gateway whose upstream stalls after so many events, if they are not 0.
func leftBy(t *testing.T, place string) (l *leftServer, stall *atomic.Int64) {
	t.Helper()
	dir, err := os.MkdirTemp("", "left-") // a socket's path must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) }) // it is a temporary folder
	if place == "" {
		place = filepath.Join(dir, "s.db")
	}
	answer := agenttest.Completed(
		item.Must(&item.Reasoning{ID: "rs_1", Summary: []item.Part{&item.SummaryText{Text: "I think so."}}}),
		item.Must(&item.Message{ID: "msg_1", Role: item.RoleAssistant, Status: item.StatusCompleted, Content: item.Parts(&item.OutputText{Text: "One two.", Annotations: "[]", Logprobs: "[]"})}),
		item.Must(&item.Message{ID: "msg_2", Role: item.RoleAssistant, Status: item.StatusCompleted, Content: item.Parts(&item.OutputText{Text: "Three four.", Annotations: "[]", Logprobs: "[]"})}),
	)
	never := make(chan struct{})
	stall = new(atomic.Int64)
	up := agenttest.NewServer(t)
	t.Cleanup(func() { close(never) })
	up.Otherwise(func(_ int, r agenttest.Request) agenttest.Reply {
		if strings.Contains(string(r.Body), "go on") {
			return agenttest.Completed(item.Assistant("Well."))
		}
		if n := int(stall.Load()); n > 0 {
			return answer.StallAfter(n, never)
		}
		return answer
	})
	transport := &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", filepath.Join(dir, "sock"))
	}}
	l = &leftServer{t: t, dir: dir, store: place, up: up, spec: apispec.Load(t), client: &http.Client{Transport: transport}}
	l.start()
	l.text(http.MethodPost, "responses", `{"model":"m","input":"go on"}`) // the server is there
	return l, stall
}

func killAtPlaces(t *testing.T, place string) {
	t.Helper()
	l, stall := leftBy(t, place)
	up := l.up
	all := len(l.read(l.ask(http.MethodPost, "responses", `{"model":"m","input":"all","stream":true}`), 1000))
	step := 3
	if testing.Short() {
		step = 9
	}
	for n := 2; n < all; n += step {
		t.Logf("killed after %d of %d events", n, all)
		stall.Store(int64(n))
		front := l.ask(http.MethodPost, "responses", `{"model":"m","input":"front","stream":true}`)
		seen := l.read(front, n)
		back := l.ask(http.MethodPost, "responses", `{"model":"m","input":"back","stream":true,"background":true}`)
		told := l.read(back, n+1) // one more says that it is queued
		l.kill()
		front.Body.Close()
		back.Body.Close()
		l.start()
		if len(seen) != n || len(told) != n+1 {
			t.Fatalf("%d and %d events", len(seen), len(told))
		}
		id := func(events []api.Event) string {
			r, err := events[0].Response()
			if err != nil {
				t.Fatal(err)
			}
			return r.ID
		}
		r := l.left(id(seen), finished(seen))
		if len(r.Output) != len(finished(seen)) {
			t.Errorf("%v", r.Output)
		}
		resumed := l.ask(http.MethodGet, fmt.Sprintf("responses/%s?stream=true&starting_after=%d", id(told), len(told)-1), "")
		whole := append(told, l.read(resumed, 1000)...)
		resumed.Body.Close()
		l.sum(whole, l.left(id(told), finished(told)))
		for _, events := range [][]api.Event{seen, whole} {
			next := l.text(http.MethodPost, "responses", `{"model":"m","input":"go on","previous_response_id":"`+id(events)+`"}`)
			sent := string(up.Requests()[len(up.Requests())-1].Body)
			for _, words := range []string{"One two.", "Three four."} {
				want := 0
				for _, it := range finished(events) {
					want += strings.Count(it.JSON(), words)
				}
				if n := strings.Count(sent, words); n != want || strings.Contains(next, words) {
					t.Errorf("%q is sent %d times, want %d: %s", words, n, want, sent)
				}
			}
		}
	}
	l.interrupt()
}

// A gateway that is told to end leaves responses that are incomplete, with the items that were
// complete, and says so to clients that are there. J1
func TestGatewayDrained(t *testing.T) {
	l, stall := leftBy(t, "")
	all := len(l.read(l.ask(http.MethodPost, "responses", `{"model":"m","input":"all","stream":true}`), 1000))
	step := 5
	if testing.Short() {
		step = 15
	}
	for n := 2; n < all; n += step {
		t.Logf("ended after %d of %d events", n, all)
		stall.Store(int64(n))
		var streams []*http.Response
		var seen [][]api.Event
		begin := func(more int, body string) {
			streams = append(streams, l.ask(http.MethodPost, "responses", body))
			seen = append(seen, l.read(streams[len(streams)-1], n+more))
		}
		begin(0, `{"model":"m","input":"front","stream":true}`)
		begin(1, `{"model":"m","input":"back","stream":true,"background":true}`) // one more says that it is queued
		id := func(events []api.Event) string {
			r, err := events[0].Response()
			if err != nil {
				t.Fatal(err)
			}
			return r.ID
		}
		streams = append(streams, l.ask(http.MethodGet, fmt.Sprintf("responses/%s?stream=true&starting_after=1", id(seen[1])), ""))
		seen = append(seen, slices.Concat(seen[1][:2], l.read(streams[2], n-1)))
		var ended sync.WaitGroup
		for i := range streams {
			ended.Go(func() { seen[i] = append(seen[i], l.read(streams[i], 1000)...) })
		}
		l.interrupt()
		ended.Wait()
		l.start()
		for i, events := range seen {
			streams[i].Body.Close()
			whole := slices.DeleteFunc(finished(events), func(it item.Item) bool { return it.Status() == item.StatusIncomplete })
			l.sum(events, l.left(id(events), whole))
		}
	}
	l.interrupt()
}

// interrupt tells the server to end, and waits.
func (l *leftServer) interrupt() {
	l.t.Helper()
	if err := l.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		l.t.Error(err)
	}
	if err := l.cmd.Wait(); err != nil {
		l.t.Error(err)
	}
}

// sum compares a stream with the response.
func (l *leftServer) sum(events []api.Event, want *api.Response) {
	l.t.Helper()
	var sum api.Accumulator
	for i, ev := range events {
		if ev.SequenceNumber != int64(i) {
			l.t.Errorf("event %d has the number %d", i, ev.SequenceNumber)
		}
		if _, err := sum.Add(ev); err != nil {
			l.t.Error(err)
		}
	}
	r, over := sum.Response()
	if last := events[len(events)-1]; !over || last.Type != api.EventIncomplete {
		l.t.Fatalf("the stream ends with %s", last.JSON())
	}
	a, err := r.AppendJSON(nil)
	b, wrong := want.AppendJSON(nil)
	if err != nil || wrong != nil || !bytes.Equal(a, b) {
		l.t.Errorf("the events are\n%s\nand the response is\n%s\n%v %v", a, b, err, wrong)
	}
}

// What a killed server was doing counts in the usage, once, by what it had reserved: no other server goes on with it.
func TestGatewayKilledUsage(t *testing.T) {
	t.Setenv("XDG_DATA_HOME", t.TempDir())
	l, stall := leftBy(t, "")
	stall.Store(2)
	resp := l.ask(http.MethodPost, "responses", `{"model":"stalls","input":"Tell me everything.","max_output_tokens":500,"stream":true}`)
	l.read(resp, 2)
	resp.Body.Close()
	again := l.ask(http.MethodPost, "responses", `{"model":"stalls","input":"And again.","max_output_tokens":500,"stream":true}`)
	l.read(again, 2)
	l.kill()
	again.Body.Close()
	l.start()
	l.text(http.MethodPost, "responses", `{"model":"m","input":"go on"}`) // the server is there
	for range 2 {
		out, err := exec.Command("antiphon", "usage", "--by", "agent", "--json").Output()
		var sums []spent
		if err == nil {
			err = json.Unmarshal(out, &sums)
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range sums {
			if want := map[string]int64{"m": 2, "stalls": 2}[s.Of]; s.Responses != want || s.Of == "stalls" && (s.InputTokens == 0 || s.Tokens < 500) {
				t.Errorf("%+v, want %d", s, want)
			}
		}
		if len(sums) != 2 {
			t.Errorf("%s", out)
		}
	}
}
