// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package responses_test

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"

	"github.com/antiphon-go/antiphon/agenttest"
	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/item"
)

// corpusDir is the shared recordings, which lie beside the checkout.
func corpusDir(t *testing.T) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for ; dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		c := filepath.Join(dir, "shared", "corpus")
		if _, err := os.Stat(c); err == nil {
			return c
		}
	}
	t.Skip("no recordings: ../shared/corpus is not beside the checkout")
	return ""
}

// chunkSizes are the network reads that clients really saw, by file.
func chunkSizes(t *testing.T, dir string) map[string][]int {
	t.Helper()
	f, err := os.Open(filepath.Join(dir, "stream_chunks.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	sizes := map[string][]int{}
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var one struct {
			Path   string `json:"path"`
			Chunks []int  `json:"chunk_bytes"`
		}
		if err := json.Unmarshal(lines.Bytes(), &one); err != nil {
			t.Fatal(err)
		}
		sizes[one.Path] = one.Chunks
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return sizes
}

var dataLine = regexp.MustCompile(`(?m)^data: ?(\{.*)$`)

// wantedEvents are the data lines of a recording up to its last event, and how
// the recording ends.
func wantedEvents(raw string) (events []string, class endpoint.Class) {
	class = endpoint.Truncated
	for _, m := range dataLine.FindAllStringSubmatch(raw, -1) {
		text := strings.TrimSpace(m[1])
		events = append(events, text)
		ev, err := item.ParseEvent([]byte(text))
		if err != nil {
			return events, endpoint.Protocol
		}
		switch ev.Type {
		case item.EventCompleted, item.EventIncomplete:
			return events, ""
		case item.EventFailed:
			a, _ := ev.Err()
			return events, endpoint.FromAPI(a.Code, a.Type, "", "").Class
		}
	}
	return events, class
}

// S1-S5, S9: every recorded stream, in the pieces in which it once came.
func TestCorpusStreams(t *testing.T) {
	dir := corpusDir(t)
	sizes := chunkSizes(t, dir)
	files, _ := filepath.Glob(filepath.Join(dir, "streams*", "*.sse"))
	srv := agenttest.NewServer(t)
	c := srv.Client()
	ends := map[endpoint.Class]int{}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		name, _ := filepath.Rel(dir, file)
		pieces := sizes[filepath.ToSlash(name)]
		srv.Add(agenttest.Raw(200, "text/event-stream", string(raw)).InPieces(pieces...))
		d := drain(t, c, hello())
		want, class := wantedEvents(string(raw))
		var got []string
		for _, ev := range d.events {
			got = append(got, ev.JSON())
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: events (-want +got):\n%.2000s", name, diff)
		}
		ends[class]++
		if class != "" {
			wantClass(t, d.err, class)
		} else if d.err != nil || !d.whole || d.resp.ID == "" {
			t.Errorf("%s: whole %v, response %q, %v", name, d.whole, d.resp.ID, d.err)
		}
		if !strings.HasPrefix(name, "streams_rewrapped") {
			checkDeltas(t, d.events)
		}
	}
	t.Logf("%d streams, %d in recorded pieces; ends by class: %v", len(files), len(sizes), ends)
}

// E2, E7: every recorded error, over a socket.
func TestCorpusErrors(t *testing.T) {
	files, _ := filepath.Glob(filepath.Join(corpusDir(t), "errors", "*.http"))
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(raw)), nil)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if resp.StatusCode == 0 {
			resp.StatusCode = http.StatusBadRequest // the recorder lost it
		}
		srv := agenttest.NewServer(t, agenttest.Raw(resp.StatusCode, resp.Header.Get("Content-Type"), string(body)))
		d := drain(t, srv.Client(), hello())
		want := endpoint.FromResponse(resp, body)
		e := wantClass(t, d.err, want.Class)
		if e.Message != want.Message || e.Code != want.Code || len(srv.Requests()) != 1 {
			t.Errorf("%s: %v, %d requests", filepath.Base(file), e, len(srv.Requests()))
		}
	}
	t.Logf("%d errors", len(files))
}
