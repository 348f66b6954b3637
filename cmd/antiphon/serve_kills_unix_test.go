// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/rehearsal"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/session/store"
	"github.com/antiphon-go/antiphon/session/storetest"
)

// The store of these tests is an SQLite file whose writes are reported for the auditor. At
// one of them, its process kills itself.
func init() {
	store.Register(store.Driver{Scheme: "audited", Open: openAudited})
}

// steppedStore is what storetest.StepStore returns for a store of package sqlstore.
type steppedStore interface {
	session.Catalog
	session.SubsessionStore
	session.Locker
	session.Forker
	session.Watcher
	session.Inbox
	session.Blobs
}

type audited struct {
	steppedStore
	in store.Store
}

func (a *audited) Place() string { return a.in.Place() }
func (a *audited) Close() error  { return a.in.Close() }

// openAudited opens audited://N/FILE. Its process kills itself at the Nth step, if N is not 0.
func openAudited(ctx context.Context, place string, o store.Options) (store.Store, error) {
	number, file, _ := strings.Cut(strings.TrimPrefix(place, "audited://"), "/")
	left, err := strconv.ParseInt(number, 10, 64)
	if err != nil {
		return nil, err
	}
	in, err := store.Open(ctx, "/"+file, o)
	if err != nil {
		return nil, err
	}
	reports, err := os.OpenFile(fmt.Sprintf("/%s.reports.%d", file, os.Getpid()), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, errors.Join(err, in.Close())
	}
	var steps atomic.Int64
	die := func(storetest.Step) error {
		if left > 0 && steps.Add(1) == left {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
		return nil
	}
	stepped, ok := storetest.StepStore(in, storetest.Both(storetest.Reporter(reports), die)).(steppedStore)
	if !ok {
		return nil, errors.Join(errors.New("the store lacks an interface"), in.Close())
	}
	return &audited{stepped, in}, nil
}

// killedServer is antiphon serve, which is killed again and again, and what its clients have seen.
type killedServer struct {
	t      *testing.T
	ctx    context.Context
	dir    string
	model  string // the base URL of the gateway's upstream
	client *http.Client
	over   chan struct{} // closed when no more kills come
	read   atomic.Int64  // the lines that clients have read

	mu   sync.Mutex
	seen map[string]string // responses that clients saw the end of, by id
	ids  map[string]bool   // all ids that clients saw
	said map[string]bool   // what was said to the agents
}

func (k *killedServer) file() string    { return filepath.Join(k.dir, "s.db") }
func (k *killedServer) printed() string { return filepath.Join(k.dir, "printed") }
func (k *killedServer) socket() string  { return filepath.Join(k.dir, "sock") }

// start starts the server, which kills itself at a step if die is not 0. ended gets what
// became of it.
func (k *killedServer) start(die int) (p *os.Process, ended chan error) {
	out, err := os.OpenFile(k.printed(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		k.t.Fatal(err)
	}
	defer out.Close()
	cmd := exec.Command("antiphon", "serve", filepath.Join(k.dir, "agents"), "--upstream", "m="+k.model, "--listen", "unix:"+k.socket(),
		"--store", fmt.Sprintf("audited://%d%s", die, k.file()), "--trust", "--drain-time", "1s")
	cmd.Dir, cmd.Stdout, cmd.Stderr = k.dir, out, out
	cmd.Env = append(os.Environ(), "OPENAI_API_KEY="+testKey, "OPENAI_BASE_URL=", "OPENAI_MODEL=")
	if err := cmd.Start(); err != nil {
		k.t.Fatal(err)
	}
	ended = make(chan error, 1)
	go func() {
		if err := cmd.Wait(); err != nil {
			ended <- err
		}
		close(ended)
	}()
	return cmd.Process, ended
}

// lives lets the server live and die, and returns one that lives on.
func (k *killedServer) lives(random *rand.Rand, kills int) (*os.Process, chan error) {
	defer close(k.over)
	for range kills {
		die := 0
		if random.IntN(4) > 0 {
			die = 1 + random.IntN(400)
		}
		p, ended := k.start(die)
		var err error
		for lines := k.read.Load() + int64(random.IntN(600)); err == nil; {
			select {
			case err = <-ended:
			case <-k.ctx.Done():
				_ = p.Kill() // it may have ended
				err = <-ended
			case <-time.After(5 * time.Millisecond):
				if die == 0 && k.read.Load() >= lines {
					_ = p.Kill()
					err = <-ended
				}
			}
		}
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.Exited() {
			k.t.Errorf("the server was not killed: %v", err)
		}
	}
	return k.start(0)
}

// do sends a request again and again until a server answers. The body of the answer may break off.
func (k *killedServer) do(method, path, key, body string) (*http.Response, error) {
	for {
		r, err := http.NewRequestWithContext(k.ctx, method, "http://localhost/v1/"+path, strings.NewReader(body))
		if err != nil {
			return nil, err
		}
		r.Header.Set("Content-Type", "application/json")
		if key != "" {
			r.Header.Set("Idempotency-Key", key)
		}
		resp, err := k.client.Do(r)
		if err == nil && resp.StatusCode == http.StatusConflict {
			_, _ = io.Copy(io.Discard, resp.Body)
			resp.Body.Close() // the conversation is locked
			err = errors.New("locked")
		}
		if err == nil {
			return resp, nil
		}
		select {
		case <-k.ctx.Done():
			return nil, err
		case <-time.After(10 * time.Millisecond): // a server that is gone tells nobody that the next is there
		}
	}
}

// get sends a request until it is answered whole.
func (k *killedServer) get(method, path, key, body string) (int, string, error) {
	for {
		resp, err := k.do(method, path, key, body)
		if err != nil {
			return 0, "", err
		}
		text, broke := io.ReadAll(resp.Body)
		resp.Body.Close()
		k.read.Add(1)
		if broke == nil {
			return resp.StatusCode, string(text), nil
		}
	}
}

// saw notes what a client has seen of a response.
func (k *killedServer) saw(r *api.Response) error {
	text, err := r.AppendJSON(nil)
	if err != nil {
		return err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.ids[r.ID] = true
	if r.Status == item.StatusQueued || r.Status == item.StatusInProgress {
		return nil
	}
	if before, ok := k.seen[r.ID]; ok && before != string(text) {
		return fmt.Errorf("a response has changed: it was\n%s\nand is\n%s", before, text)
	}
	k.seen[r.ID] = string(text)
	return nil
}

// events reads the events of a stream as long as they come.
func (k *killedServer) events(resp *http.Response) (events []api.Event, err error) {
	defer resp.Body.Close()
	for lines := bufio.NewReader(resp.Body); ; {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return events, nil // a line may have broken off
		}
		data, ok := bytes.CutPrefix(line, []byte("data: "))
		if !ok {
			continue
		}
		k.read.Add(1)
		ev, err := api.ParseEvent(bytes.TrimSpace(data))
		if err != nil {
			return events, err
		}
		events = append(events, ev)
		if r, err := ev.Response(); err == nil && r != nil {
			if err := k.saw(r); err != nil {
				return events, err
			}
		}
	}
}

// killedClient is a client of such a server, which asks the same again until it has the answer.
type killedClient struct {
	*killedServer
	name   string
	random *rand.Rand
	turns  int
	past   []killedTurn
	talk   string // the conversation, or ""
}

type killedTurn struct{ id, said string }

// run talks until no more kills come, and then for one more turn.
func (c *killedClient) run(kind string) error {
	for last := false; !last; {
		select {
		case <-c.over:
			last = true
		default:
		}
		if err := c.turn(kind); err != nil {
			return fmt.Errorf("%s %s: %w", kind, c.name, err)
		}
	}
	return c.check(kind)
}

// turn sends a request and reads its response to the end.
func (c *killedClient) turn(kind string) error {
	c.turns++
	said := fmt.Sprintf("%s-%d", c.name, c.turns)
	body := map[string]any{"model": "it", "input": said}
	if kind == "upstream" {
		body["model"] = "m"
	} else {
		c.mu.Lock()
		c.said[said] = true
		c.mu.Unlock()
	}
	switch {
	case kind == "conversation" && c.talk == "":
		_, text, err := c.get(http.MethodPost, "conversations", "", "{}")
		var made struct{ ID string }
		if err != nil || json.Unmarshal([]byte(text), &made) != nil || made.ID == "" {
			return fmt.Errorf("%s %w", text, err)
		}
		c.talk = made.ID
		fallthrough
	case kind == "conversation":
		body["conversation"] = c.talk
	case len(c.past) > 0:
		if c.random.IntN(5) == 0 { // a fork
			c.past = c.past[:1+c.random.IntN(len(c.past))]
		}
		body["previous_response_id"] = c.past[len(c.past)-1].id
	}
	stream, background := c.random.IntN(2) == 0, c.random.IntN(2) == 0
	body["stream"], body["background"] = stream, background
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	var r *api.Response
	if stream {
		r, err = c.streamed(said, string(text), background)
	} else {
		r, err = c.whole(said, string(text))
	}
	if err != nil {
		return err
	}
	if r.Status == item.StatusCompleted || r.Status == item.StatusIncomplete {
		c.past = append(c.past, killedTurn{r.ID, said})
	} else {
		return fmt.Errorf("%s is %s: %+v", r.ID, r.Status, r.Error)
	}
	return nil
}

// whole asks for a response, and waits until it has ended.
func (c *killedClient) whole(key, body string) (*api.Response, error) {
	status, text, err := c.get(http.MethodPost, "responses", key, body)
	for {
		if err != nil || status != http.StatusOK {
			return nil, fmt.Errorf("%d %s %w", status, text, err)
		}
		r, err := api.ParseResponse([]byte(text))
		if err == nil {
			err = c.saw(r)
		}
		if err != nil || r.Status != item.StatusQueued && r.Status != item.StatusInProgress {
			return r, err
		}
		select {
		case <-c.ctx.Done():
			return nil, fmt.Errorf("%s does not end", r.ID)
		case <-time.After(20 * time.Millisecond):
		}
		if status, text, err = c.get(http.MethodGet, "responses/"+r.ID, "", ""); err != nil {
			return nil, err
		}
	}
}

// streamed asks for a response, and reads its events. Those of a background response are
// taken up where they broke off; otherwise the request is sent again.
func (c *killedClient) streamed(key, body string, background bool) (*api.Response, error) {
	var all []api.Event
	resume := ""
	for {
		var resp *http.Response
		var err error
		if resume != "" {
			resp, err = c.do(http.MethodGet, fmt.Sprintf("responses/%s?stream=true&starting_after=%d", resume, len(all)-1), "", "")
		} else {
			resp, err = c.do(http.MethodPost, "responses", key, body)
		}
		if err != nil {
			return nil, err
		}
		if resp.StatusCode != http.StatusOK {
			text, _ := io.ReadAll(resp.Body)
			resp.Body.Close()
			return nil, fmt.Errorf("%s: %s %s", resume, resp.Status, text)
		}
		if resume == "" {
			all = nil
		}
		events, err := c.events(resp)
		if err != nil {
			return nil, err
		}
		if all = append(all, events...); len(all) == 0 {
			continue
		}
		var sum api.Accumulator
		for i, ev := range all {
			if ev.SequenceNumber != int64(i) {
				return nil, fmt.Errorf("event %d has the number %d", i, ev.SequenceNumber)
			}
			if _, err := sum.Add(ev); err != nil {
				return nil, err
			}
		}
		if all[len(all)-1].Terminal() {
			r, _ := sum.Response()
			return r, c.saw(r)
		}
		if r, err := all[0].Response(); err != nil {
			return nil, err
		} else if background {
			resume = r.ID
		}
	}
}

// check compares what the server says about the last response with what was said.
func (c *killedClient) check(kind string) error {
	if len(c.past) == 0 {
		return errors.New("nothing was answered")
	}
	last := c.past[len(c.past)-1]
	var said []string
	for after := ""; ; {
		_, text, err := c.get(http.MethodGet, "responses/"+last.id+"/input_items?order=asc&limit=100"+after, "", "")
		var list struct {
			Data []struct {
				Role    string
				Content []struct{ Text string }
			}
			Last string `json:"last_id"`
			More bool   `json:"has_more"`
		}
		if err != nil || json.Unmarshal([]byte(text), &list) != nil {
			return fmt.Errorf("%s %w", text, err)
		}
		for _, it := range list.Data {
			if it.Role == "user" {
				said = append(said, it.Content[0].Text)
			}
		}
		if !list.More {
			break
		}
		after = "&after=" + list.Last
	}
	var want []string
	for _, turn := range c.past {
		want = append(want, turn.said)
	}
	if !slices.Equal(said, want) {
		return fmt.Errorf("the server says that was said\n%q\nwant\n%q", said, want)
	}
	return nil
}

// A server is killed again and again, at any write and at any time, while clients create
// responses, continue them, fork them, send requests again and take streams up. None stays
// in progress, what a client saw the end of is there byte for byte, nothing was said or done
// twice, and the auditor finds all that the servers wrote, once.
// ANTIPHON_SERVE_KILLS is the number of kills. J1 V2 V4
func TestServeKillsUnderLoad(t *testing.T) {
	kills := 5
	if testing.Short() {
		kills = 2
	}
	if text := os.Getenv("ANTIPHON_SERVE_KILLS"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil {
			t.Fatal(err)
		}
		kills = n
	}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 16))
	upstream := &rehearsal.Server{Pace: time.Millisecond}
	model, stop, err := upstream.Start()
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	dir, err := os.MkdirTemp("", "kills-") // a socket's path must be short
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute*time.Duration(1+kills/8))
	k := &killedServer{t: t, ctx: ctx, dir: dir, model: model, over: make(chan struct{}), seen: map[string]string{}, ids: map[string]bool{}, said: map[string]bool{}}
	for _, name := range []string{"agents", "done"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	write(t, filepath.Join(dir, "agents", "it.md"), "<config model=\"rehearsal:it.script\"/>\n<tool name=\"append_to_file\" approval=\"allow\"/>\n")
	write(t, filepath.Join(dir, "agents", "it.script"), "pace 1ms\nturn\n  say I note it down now.\n  call append_to_file {\"path\": {{printf \"done/%s\" question | json}}, \"content\": \"once\\n\"}\nturn\n  say That was {{question}}, and it is done.\nagain\n"+
		"turn\n  say I note it down again.\n  call append_to_file {\"path\": {{printf \"done/%s\" question | json}}, \"content\": \"once\\n\"}\nturn\n  say That was {{question}}, and it is done too.\n")
	transport := &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", k.socket())
	}}
	k.client = &http.Client{Transport: transport}

	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	for n, kind := range []string{"", "", "", "conversation", "upstream"} {
		c := &killedClient{killedServer: k, name: fmt.Sprintf("c%d", n), random: rand.New(rand.NewPCG(seed, uint64(n)))}
		wg.Go(func() {
			if err := c.run(kind); err != nil {
				t.Error(err)
			}
		})
	}
	p, ended := k.lives(random, kills)
	wg.Wait()
	k.judge()
	if err := p.Signal(syscall.SIGTERM); err != nil {
		t.Error(err)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
	k.audit()
	if t.Failed() {
		t.Logf("the servers printed\n%s", read(t, k.printed()))
	}
}

// judge reads all responses that there are, while a server runs.
func (k *killedServer) judge() {
	t := k.t
	in, err := store.Open(t.Context(), k.file(), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	for info, err := range in.List(t.Context(), session.Query{}) {
		if err != nil {
			t.Fatal(err)
		}
		for e, err := range in.Load(t.Context(), info.ID, 0) {
			if err != nil {
				t.Fatal(err)
			}
			if id := begunIn(e); id != "" {
				k.ids[id] = true
			}
		}
	}
	for id := range k.ids {
		c := &killedClient{killedServer: k}
		r, err := c.wait(id)
		if err != nil {
			t.Error(err)
		} else if text, _ := r.AppendJSON(nil); k.seen[id] != "" && k.seen[id] != string(text) {
			t.Errorf("a client saw\n%s\nand now it is\n%s", k.seen[id], text)
		}
	}
	t.Logf("%d responses; clients saw the end of %d; %d requests to agents", len(k.ids), len(k.seen), len(k.said))
}

// begunIn returns the id of the response that an entry begins, or "".
func begunIn(e session.Entry) (id string) {
	b, ok := e.Body.(session.Note)
	if !ok || b.Item.Type() != "antiphon:response" {
		return ""
	}
	if it, err := b.Item.Whole(); err == nil {
		v, _ := it.Member("response_id")
		_ = json.Unmarshal([]byte(v), &id)
	}
	return id
}

// wait waits until a response has ended.
func (c *killedClient) wait(id string) (*api.Response, error) {
	for {
		status, text, err := c.get(http.MethodGet, "responses/"+id, "", "")
		if err != nil || status != http.StatusOK {
			return nil, fmt.Errorf("%s: %d %s %w", id, status, text, err)
		}
		r, err := api.ParseResponse([]byte(text))
		if err != nil || r.Status != item.StatusQueued && r.Status != item.StatusInProgress {
			return r, err
		}
		select {
		case <-c.ctx.Done():
			return nil, fmt.Errorf("%s does not end", id)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// audit compares the store with what the servers reported, and with what was said and done.
func (k *killedServer) audit() {
	t := k.t
	if o := program(t, "sessions", "verify", "--store", k.file()); o.code != 0 {
		t.Errorf("sessions verify: %d %s%s", o.code, o.out, o.err)
	}
	in, err := store.Open(t.Context(), k.file(), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	var auditor storetest.Auditor
	files, err := filepath.Glob(k.file() + ".reports.*")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		f, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(auditor.Hear(f, nil), f.Close()); err != nil {
			t.Error(err)
		}
	}
	times := map[string]int{} // how often something was said
	counts, err := auditor.Check(t.Context(), in, func(id string, log []session.Entry) error {
		own := false
		for _, e := range log {
			if begun := begunIn(e); begun != "" { // in a fork, not what is of the session that was forked
				own = strings.HasPrefix(begun, "resp_"+strings.TrimPrefix(id, "api-")+"_")
			}
			if b, ok := e.Body.(session.InputItem); ok && own && b.Item.Role() == item.RoleUser {
				m, err := item.As[item.Message](b.Item)
				if err != nil {
					return err
				}
				times[m.Content.Display()]++
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	for said := range k.said {
		if times[said] != 1 {
			t.Errorf("%s is in the logs %d times", said, times[said])
		}
	}
	t.Logf("%d processes, %+v", len(files), counts)
	done, err := filepath.Glob(filepath.Join(k.dir, "done", "c*"))
	if err != nil || len(done) == 0 {
		t.Errorf("nothing was done: %v", err)
	}
	for _, name := range done {
		if text := read(t, name); text != "once\n" {
			t.Errorf("%s: %q", name, text)
		}
	}
}
