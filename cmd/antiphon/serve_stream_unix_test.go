// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/internal/apispec"
	"github.com/antiphon-go/antiphon/item"
)

// follow reads events of a stream until enough says so, and returns them. The stream may
// break off.
func (s *served) follow(method, path, body string, enough func(api.Event) bool) (events []api.Event) {
	s.t.Helper()
	ctx, gone := context.WithCancel(s.t.Context())
	defer gone()
	r, err := http.NewRequestWithContext(ctx, method, s.base+"/"+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil // the server was killed
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		s.t.Fatalf("%s: %s", path, resp.Status)
	}
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		data, ok := bytes.CutPrefix(lines.Bytes(), []byte("data: "))
		if !ok {
			continue
		}
		apispec.Load(s.t).Check(s.t, "ResponseStreamEvent", data)
		ev, err := api.ParseEvent(bytes.Clone(data))
		if err != nil {
			s.t.Fatal(err)
		}
		if events = append(events, ev); enough(ev) {
			return events
		}
	}
	return events
}

// A stream of a background response can be taken up after kills of its server, and at
// another server: the events have the same numbers, none twice and none missing, and their
// sum is the response. V2
func TestServeStreamKilled(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 1))
	s := &served{t: t, dir: t.TempDir()}
	write(t, filepath.Join(s.dir, "it.md"), "<config model=\"rehearsal:it.script\"/>\n<tool name=\"look\" command=\"echo seen\" description=\"Looks.\" approval=\"allow\"/>\n")
	words := strings.Repeat("one two three four five six seven eight ", 4)
	write(t, filepath.Join(s.dir, "it.script"), "pace 3ms\nturn\n  reason "+words+"\n  say "+words+"\n  call look {}\n  call look {\"again\": true}\nturn\n  say "+words+"\n  call look {}\nturn\n  say "+words+"\n")
	s.start()
	kills := 4
	if testing.Short() {
		kills = 2
	}
	first := func(api.Event) bool { return true }
	all := s.follow(http.MethodPost, "responses", `{"model":"it","input":"x","background":true,"stream":true}`, first)
	if len(all) != 1 {
		t.Fatal(all)
	}
	about, err := all[0].Response()
	if err != nil {
		t.Fatal(err)
	}
	path := "responses/" + about.ID
	for i := 0; !all[len(all)-1].Terminal(); i++ {
		other := s
		if i < kills {
			other = &served{t: t, dir: s.dir}
			other.start()
		}
		n := random.IntN(60)
		got := other.follow(http.MethodGet, fmt.Sprintf("%s?stream=true&starting_after=%d", path, len(all)-1), "", func(api.Event) bool {
			n--
			return n < 0 && i < kills
		})
		all = append(all, got...)
		if i < kills {
			s.process.signal(t, syscall.SIGKILL)
			_, _ = s.process.wait(t)
			s = other
		}
	}
	var sum api.Accumulator
	for i, ev := range all {
		if ev.SequenceNumber != int64(i) {
			t.Fatalf("event %d has the number %d", i, ev.SequenceNumber)
		}
		if _, err := sum.Add(ev); err != nil {
			t.Error(err)
		}
	}
	r, whole := sum.Response()
	if !whole || r.Status != item.StatusCompleted {
		t.Fatalf("%v, %+v", whole, r)
	}
	made, err := r.AppendJSON(nil)
	if err != nil {
		t.Fatal(err)
	}
	read, err := s.final(about.ID).AppendJSON(nil)
	if err != nil || string(made) != string(read) {
		t.Errorf("the events say\n%s\nthe response is\n%s", made, read)
	}
	broken := 0
	for _, it := range r.Output {
		if it.Status() == item.StatusIncomplete {
			broken++
		}
	}
	t.Logf("%d events, %d items, %d broken off", len(all), len(r.Output), broken)
	again := s.follow(http.MethodGet, path+"?stream=true", "", func(api.Event) bool { return false })
	if len(again) != len(all) {
		t.Fatalf("%d events, then %d", len(all), len(again))
	}
	for i := range again {
		if again[i].JSON() != all[i].JSON() {
			t.Errorf("event %d was\n%s\nand is\n%s", i, all[i].JSON(), again[i].JSON())
		}
	}
	if status, body := s.send(http.MethodGet, fmt.Sprintf("%s?stream=true&starting_after=%d", path, len(all)), ""); status != http.StatusBadRequest || !strings.Contains(body, "starting_after") {
		t.Errorf("%d %s", status, body)
	}
	s.process.signal(t, syscall.SIGTERM)
	if code, out := s.process.wait(t); code != 0 {
		t.Errorf("exit code %d: %s", code, out)
	}
}
