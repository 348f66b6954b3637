// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package responses_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"github.com/antiphon-go/antiphon/agenttest"
	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/internal/apispec"
	"github.com/antiphon-go/antiphon/item"
)

// corpusDir is the folder of the recordings.
func corpusDir(t *testing.T) string {
	t.Helper()
	return apispec.Shared(t, "corpus")
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
		ev, err := api.ParseEvent([]byte(text))
		if err != nil {
			return events, endpoint.Protocol
		}
		switch ev.Type {
		case api.EventCompleted, api.EventIncomplete:
			return events, ""
		case api.EventFailed:
			a, _ := ev.Err()
			return events, endpoint.FromAPI(a.Code, a.Type, "", "").Class
		}
	}
	return events, class
}

// S1 S2 S3 S4 S5 S9: every recorded stream, in the pieces in which it once came.
func TestCorpusStreams(t *testing.T) {
	dir := corpusDir(t)
	sizes := chunkSizes(t, dir)
	files, _ := filepath.Glob(filepath.Join(dir, "streams*", "*.sse"))
	srv := agenttest.NewServer(t)
	c := srv.Client()
	ends := map[endpoint.Class]int{}
	pieces := pieceCounts{}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		name, _ := filepath.Rel(dir, file)
		answer := agenttest.Raw(200, "text/event-stream", string(raw))
		srv.Add(pieces.cut(answer, len(raw), 5<<10, sizes[filepath.ToSlash(name)]))
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
	t.Logf("%d streams, pieces: %v; ends by class: %v", len(files), pieces, ends)
}

// pieceCounts counts in what pieces bodies were sent.
type pieceCounts map[string]int

// cut sends an answer in the pieces that were recorded, and otherwise in ones
// drawn by its size; small ones are sent byte by byte.
func (c pieceCounts) cut(a agenttest.Reply, size, small int, recorded []int) agenttest.Reply {
	switch {
	case len(recorded) > 0:
		c["recorded"]++
		return a.InPieces(recorded...)
	case size <= small:
		c["bytes"]++
		return a.ByteByByte()
	}
	c["random"]++
	rnd := rand.New(rand.NewPCG(uint64(size), 4))
	var sizes []int
	for left := size; left > 0; left -= sizes[len(sizes)-1] {
		sizes = append(sizes, 1+rnd.IntN(1+size/20))
	}
	return a.InPieces(sizes...)
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

// interaction is one recorded exchange.
type interaction struct {
	Method   string      `json:"method"`
	Endpoint string      `json:"endpoint"`
	Path     string      `json:"url_path"`
	Status   int         `json:"status"`
	Header   [][2]string `json:"headers"`
	Response string      `json:"response"`
}

// interactions are the recorded exchanges that created a response.
func interactions(t *testing.T, dir string) (list []interaction) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(dir, "interactions.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(raw) {
		var one interaction
		if err := json.Unmarshal(line, &one); err != nil {
			t.Fatal(err)
		}
		if one.Endpoint == "responses.create" { // the rest is in TestCorpusOther…
			list = append(list, one)
		}
	}
	return list
}

// header is the value of a recorded header.
func (x *interaction) header(name string) string {
	for _, h := range x.Header {
		if strings.EqualFold(h[0], name) {
			return h[1]
		}
	}
	return ""
}

// load returns the recorded body, and the answer that serves it as it was
// served: status, headers, compression, pieces.
func (x *interaction) load(t *testing.T, dir string, sizes []int, pieces pieceCounts) (agenttest.Reply, []byte) {
	t.Helper()
	body, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(x.Response)))
	if err != nil {
		t.Fatal(err)
	}
	if strings.HasSuffix(x.Response, ".http") {
		resp, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(body)), nil)
		if err != nil {
			t.Fatal(err)
		}
		body, _ = io.ReadAll(resp.Body)
		resp.Body.Close()
	}
	a := agenttest.Raw(x.Status, x.header("Content-Type"), string(body))
	for _, h := range x.Header {
		switch strings.ToLower(h[0]) {
		case "content-encoding":
			a = a.Gzip() // whatever it was
		case "content-type", "transfer-encoding", "content-length", "date":
		default:
			a = a.WithHeader(h[0], h[1])
		}
	}
	return pieces.cut(a, len(body), 500, sizes), body
}

// S1 S2 S3 S4 S5 E2 E7: every recorded exchange, at its path, with its status and
// headers, in its pieces, streamed and whole.
func TestCorpusInteractions(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: replays all recorded interactions")
	}
	dir := corpusDir(t)
	sizes := chunkSizes(t, dir)
	pieces := pieceCounts{}
	counts := map[string]int{}
	srv := agenttest.NewServer(t)
	root := strings.TrimSuffix(srv.URL, "/v1")
	seen := map[string]bool{}
	for _, x := range interactions(t, dir) {
		if key := fmt.Sprint(x.Path, x.Response, x.Status); seen[key] {
			counts["the same again"]++
			continue
		} else {
			seen[key] = true
		}
		answer, body := x.load(t, dir, sizes[x.Response], pieces)
		c := srv.Client()
		path, query, _ := strings.Cut(x.Path, "?")
		c.BaseURL = root + strings.TrimSuffix(path, "/responses")
		if path == "/responses" { // a base URL that is a host alone means /v1 there
			path = "/v1/responses"
		}
		if query != "" {
			c.BaseURL += "?" + query
		}
		kind := strings.Split(x.Response, "/")[0]
		counts[kind]++
		before := len(srv.Requests())
		srv.Add(answer)
		switch {
		case kind == "errors":
			x.checkError(t, drain(t, c, hello()).err, body)
		case strings.HasPrefix(kind, "streams"):
			x.checkStream(t, drain(t, c, hello()), body)
		default:
			resp, err := c.Create(t.Context(), hello())
			x.checkWhole(t, resp, err, body)
			srv.Add(answer)
			d := drain(t, c, hello())
			if resp != nil && (resp.Status == item.StatusQueued || resp.Status == item.StatusInProgress) {
				wantClass(t, d.err, endpoint.Truncated) // no stream of a reply that is not there yet
				counts["not ended"]++
			} else {
				x.checkWhole(t, d.resp, d.err, body)
			}
		}
		reqs := srv.Requests()[before:]
		if len(reqs) == 0 || reqs[0].Method != x.Method || reqs[0].Path != path || reqs[0].Query != query {
			t.Errorf("%s: %d requests, %s", x.Response, len(reqs), x.Path)
		}
	}
	t.Logf("exchanges: %v, pieces: %v", counts, pieces)
}

func (x *interaction) checkStream(t *testing.T, d drained, body []byte) {
	want, class := wantedEvents(string(body))
	var got []string
	for _, ev := range d.events {
		got = append(got, ev.JSON())
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s: events (-want +got):\n%.1000s", x.Response, diff)
	}
	switch {
	case class != "":
		wantClass(t, d.err, class)
	case d.err != nil || !d.whole:
		t.Errorf("%s: whole %v, %v", x.Response, d.whole, d.err)
	}
}

// checkWhole compares a response with what a plain decoder reads.
func (x *interaction) checkWhole(t *testing.T, resp *api.Response, err error, body []byte) {
	var want struct {
		ID     string           `json:"id"`
		Status string           `json:"status"`
		Output []jsontext.Value `json:"output"`
		Error  *struct {
			Code string `json:"code"`
		} `json:"error"`
		Usage *struct {
			Input  int64 `json:"input_tokens"`
			Output int64 `json:"output_tokens"`
			Total  int64 `json:"total_tokens"`
		} `json:"usage"`
	}
	if err := json.Unmarshal(body, &want, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)); err != nil {
		t.Fatalf("%s: %v", x.Response, err)
	}
	if failed := want.Error != nil || want.Status == "failed" || want.Status == "cancelled"; failed != (err != nil) {
		t.Errorf("%s: status %s: %v", x.Response, want.Status, err)
		return
	}
	if resp == nil || err != nil {
		return
	}
	var output []string
	for _, v := range want.Output {
		output = append(output, string(v))
	}
	var got []string
	for _, it := range resp.Output {
		got = append(got, it.JSON())
	}
	if d := cmp.Diff(output, got); d != "" || resp.ID != want.ID || resp.Status != want.Status {
		t.Errorf("%s: id %q, status %q (-want +got):\n%.1000s", x.Response, resp.ID, resp.Status, d)
	}
	if u := resp.Usage; want.Usage != nil && (u == nil || u.InputTokens != want.Usage.Input || u.OutputTokens != want.Usage.Output || u.TotalTokens != want.Usage.Total) {
		t.Errorf("%s: usage %+v, want %+v", x.Response, u, want.Usage)
	}
}

// checkError holds for an answer that is not a success: typed, with the server's
// own words, and of a class that its status allows.
func (x *interaction) checkError(t *testing.T, err error, body []byte) {
	var e *endpoint.Error
	if !errors.As(err, &e) {
		t.Errorf("%s: %s", x.Response, describe(err))
		return
	}
	var said struct {
		Error struct {
			Message string `json:"message"`
		} `json:"error"`
	}
	_ = json.Unmarshal(body, &said) // not all are of this form
	if e.Status != x.Status || e.Message == "" && e.Body == "" || !strings.Contains(e.Message, said.Error.Message) {
		t.Errorf("%s: %+v", x.Response, e)
	}
	if id := x.header("X-Request-Id"); id != "" && e.RequestID != id {
		t.Errorf("%s: request id %q, want %q", x.Response, e.RequestID, id)
	}
	allowed := map[int][]endpoint.Class{
		400: {endpoint.BadRequest, endpoint.ContextOverflow, endpoint.PreviousResponse, endpoint.EncryptedContent, endpoint.Policy, endpoint.NotFound, endpoint.Quota},
		401: {endpoint.Auth},
	}[x.Status]
	if !slices.Contains(allowed, e.Class) || e.SafeToRetry() {
		t.Errorf("%s: class %s of status %d", x.Response, e.Class, x.Status)
	}
}
