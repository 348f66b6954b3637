// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package main

import (
	"encoding/json"
	"net/http"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/antiphon-go/antiphon/internal/person"
	"github.com/antiphon-go/antiphon/item"
)

// One command stops a run at a terminal and one at a server, whatever selects them. Each says
// who stopped it, and neither begins again.
func TestParkReachesEveryHolder(t *testing.T) {
	for _, by := range []string{"all", "agent", "tenant", "endpoint"} {
		t.Run(by, func(t *testing.T) { parkReaches(t, by) })
	}
}

func parkReaches(t *testing.T, by string) {
	dir := t.TempDir()
	file, store := write(t, filepath.Join(dir, "it.md"), "<system>Be brief.</system>\n"), filepath.Join(dir, "s.db")
	url, reached := stalling(t, nil, nil, nil) // another request would be one too many
	flags := []string{"--store", store, "--owner", "anna", "--base-url", url, "--model", "m"}
	s := &served{t: t, dir: dir}
	s.process = startAs(t, nil, "sh", append([]string{"-c", `exec antiphon "$@" 2>&1`, "sh", "serve", file, "--listen", "127.0.0.1:0"}, flags...)...)
	t.Cleanup(func() { // before the folder is removed
		_ = s.process.cmd.Process.Signal(syscall.SIGTERM) // it may have ended
		_ = s.process.cmd.Wait()
	})
	s.process.until(t, "serving at") // before, it names the endpoint
	s.base = listening.FindString(s.process.until(t, "/v1/responses"))
	kept := make(chan string, 1)
	go func() {
		r, err := http.Post(s.base+"/responses", "application/json", strings.NewReader(`{"model":"it","input":"x"}`))
		if err != nil {
			kept <- err.Error()
			return
		}
		defer r.Body.Close()
		var made struct {
			Status string
			Error  struct{ Message string }
		}
		err = json.NewDecoder(r.Body).Decode(&made)
		kept <- strings.TrimSpace(made.Status + " " + made.Error.Message)
		if err != nil {
			t.Error(err)
		}
	}()
	<-reached
	background := s.response(http.MethodPost, "responses", `{"model":"it","input":"x","background":true}`)
	<-reached
	terminal := start(t, nil, append([]string{"run", file, "Go", "--session", "talk"}, flags...)...)
	<-reached

	selection := map[string][]string{"all": {"--all"}, "agent": {"--agent", file}, "tenant": {"--tenant", "anna"}, "endpoint": {"--endpoint", url}}[by]
	o := program(t, append([]string{"work", "park", "--store", store, "--reason", "too dear"}, selection...)...)
	if o.code != 0 || strings.Count(o.err, "runs at a terminal or a server") != 3 {
		t.Errorf("exit code %d\n%s%s", o.code, o.out, o.err)
	}
	if code, out := terminal.wait(t); code != exitLimit || !strings.Contains(terminal.err.String(), "stopped by "+person.AccountName()+" with antiphon work park: too dear") {
		t.Errorf("exit code %d\n%s%s", code, out, terminal.err.String())
	}
	const said = "incomplete The agent stopped before its answer: an operator stopped it."
	if got := <-kept; got != said {
		t.Errorf("the response ended so: %q", got)
	}
	for background.Status == item.StatusQueued || background.Status == item.StatusInProgress {
		background = s.response(http.MethodGet, "responses/"+background.ID, "")
	}
	if got := background.Status + " " + background.Error.Message; got != said {
		t.Errorf("the background response ended so: %q", got)
	}
	if o := program(t, append([]string{"work", "park", "--store", store}, selection...)...); strings.Contains(o.err, "runs at a terminal or a server") {
		t.Errorf("something runs again:\n%s", o.err)
	}
}
