// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package responses_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/responses"
)

// runServer makes one response in the background. Its connections break where
// cut says: after that many bytes of the body of stream n, never if negative.
type runServer struct {
	*responses.Client
	events []string
	cut    func(n int) int
	from   func(after int64) int // the index of the event that a stream begins with; nil: as asked
	look   func(n int, r *http.Request) (status int, body string)

	mu      sync.Mutex
	streams []string // methods
	queries []url.Values
	looks   int
	waits   []time.Duration
}

func newRunServer(t testing.TB, events []string) *runServer {
	s := &runServer{events: events}
	srv := httptest.NewServer(s)
	t.Cleanup(func() { srv.Client().CloseIdleConnections(); srv.Close() })
	s.Client = &responses.Client{
		BaseURL: srv.URL, HTTP: srv.Client(),
		Retry: endpoint.Retry{Max: 1000, MaxWait: time.Hour * 1000, Sleep: func(ctx context.Context, d time.Duration) error {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.waits = append(s.waits, d)
			return ctx.Err()
		}},
	}
	return s
}

func (s *runServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	s.mu.Lock()
	s.queries = append(s.queries, query)
	n, look := len(s.streams), s.looks
	streamed := r.Method == http.MethodPost || query.Get("stream") == "true"
	if streamed {
		s.streams = append(s.streams, r.Method)
	} else {
		s.looks++
	}
	s.mu.Unlock()
	if s.look != nil {
		if status, body := s.look(look, r); status != 0 {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(status)
			fmt.Fprint(w, body)
			return
		}
	}
	if !streamed {
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	after, err := strconv.ParseInt(query.Get("starting_after"), 10, 64)
	if err != nil {
		after = -1
	}
	begin := int(after) + 1
	if s.from != nil {
		begin = s.from(after)
	}
	w.Header().Set("Content-Type", "text/event-stream")
	body := framed(s.events[min(begin, len(s.events)):])
	if s.cut != nil {
		if at := s.cut(n); at >= 0 && at < len(body) {
			fmt.Fprint(w, body[:at])
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}
	}
	fmt.Fprint(w, body)
}

func framed(events []string) string {
	var b strings.Builder
	for _, ev := range events {
		b.WriteString("data: " + ev + "\n\n")
	}
	return b.String()
}

// got is what a sequence of events gave.
type got struct {
	events []string
	items  []string // ids, as they are whole
	resp   *api.Response
	err    error
}

func hear(t testing.TB, seq iter.Seq2[api.Event, error]) (g got) {
	t.Helper()
	var acc api.Accumulator
	for ev, err := range seq {
		if g.err != nil {
			t.Errorf("yielded %v, %v after %v", ev.Type, err, g.err)
		}
		if err != nil {
			g.err = err
			continue
		}
		g.events = append(g.events, strings.Clone(ev.JSON()))
		items, err := acc.Add(ev)
		if err != nil {
			t.Errorf("%s: %v", ev.JSON(), err)
		}
		for _, it := range items {
			g.items = append(g.items, it.ID())
		}
	}
	g.resp, _ = acc.Response()
	return g
}

const (
	firstItem  = `{"type":"reasoning","id":"rs_1","summary":[]}`
	secondItem = `{"type":"message","id":"msg_1","role":"assistant","status":"completed","content":[{"type":"output_text","text":"ab","annotations":[]}]}`
)

// wholeRun is the response as it is stored.
func wholeRun(status string, more string) string {
	return `{"id":"resp_1","object":"response","status":"` + status + `","background":true,"output":[` + firstItem + `,` + secondItem + `]` + more + `}`
}

// aRun is the events of a response, numbered from 0.
func aRun() []string {
	head := func(status string) string {
		return `"response":{"id":"resp_1","object":"response","status":"` + status + `","output":[]}`
	}
	return sequenced(
		`{"type":"response.created",`+head("queued"),
		`{"type":"response.queued",`+head("queued"),
		`{"type":"response.in_progress",`+head("in_progress"),
		`{"type":"response.output_item.added","output_index":0,"item":`+firstItem,
		`{"type":"response.output_item.done","output_index":0,"item":`+firstItem,
		`{"type":"response.output_item.added","output_index":1,"item":{"type":"message","id":"msg_1","role":"assistant","status":"in_progress","content":[]}`,
		`{"type":"response.output_text.delta","item_id":"msg_1","output_index":1,"content_index":0,"delta":"a"`,
		`{"type":"response.output_text.delta","item_id":"msg_1","output_index":1,"content_index":0,"delta":"b"`,
		`{"type":"response.output_item.done","output_index":1,"item":`+secondItem,
		`{"type":"response.completed","response":`+wholeRun("completed", ""),
	)
}

func sequenced(events ...string) []string {
	for i := range events {
		events[i] += `,"sequence_number":` + strconv.Itoa(i) + `}`
	}
	return events
}

func inBackground() *api.Request {
	yes := true
	r := hello()
	r.Background, r.Include = &yes, []string{api.IncludeEncryptedReasoning}
	return r
}

// ways are how the events of a background response are heard.
func (s *runServer) ways(ctx context.Context) map[string]iter.Seq2[api.Event, error] {
	return map[string]iter.Seq2[api.Event, error]{
		"follow": s.Follow(ctx, "resp_1", -1),
		"stream": s.Stream(ctx, inBackground()),
	}
}

// E4: wherever the connection breaks, and wherever the server begins again, the
// events are those of the uncut stream, once each and in order; and the request
// is sent again only while no event had come.
func TestReattachProperty(t *testing.T) {
	events := aRun()
	size := len(framed(events))
	first := len(framed(events[:1]))
	rapid.Check(t, func(rt *rapid.T) {
		cuts := rapid.SliceOfN(rapid.IntRange(0, size), 0, 12).Draw(rt, "cuts")
		overlap := rapid.IntRange(0, len(events)).Draw(rt, "overlap")
		for _, way := range []string{"follow", "stream"} {
			s := newRunServer(t, events)
			s.cut = func(n int) int {
				if n < len(cuts) {
					return cuts[n]
				}
				return -1
			}
			s.from = func(after int64) int { return max(int(after)+1-overlap, 0) }
			g := hear(t, s.ways(t.Context())[way])
			if diff := cmp.Diff(events, g.events); diff != "" || g.err != nil {
				rt.Fatalf("%s: %v\n(-want +got):\n%s", way, g.err, diff)
			}
			for i, method := range s.streams {
				if i > 0 && method == http.MethodPost && cuts[i-1] >= first {
					rt.Fatalf("sent again after output: %v, cuts %v", s.streams, cuts)
				}
			}
		}
	})
}

// The same with recorded streams of background responses, and of all others
// whose events are numbered.
func TestReattachCorpus(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: replays all recorded streams")
	}
	files, _ := filepath.Glob(filepath.Join(corpusDir(t), "streams", "*.sse"))
	background, followed, reattached := 0, 0, 0
	for i, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		events, class := wantedEvents(string(raw))
		if class != "" || !countsUp(events) || len(raw) > 1<<19 {
			continue
		}
		if strings.Contains(string(raw), `"background":true`) {
			background++
		}
		followed++
		s := newRunServer(t, events)
		size := len(framed(events))
		s.cut = func(n int) int {
			if n >= 4 {
				return -1
			}
			return (size*(n+1)/9 + i*7919) % size
		}
		g := hear(t, s.Stream(t.Context(), inBackground()))
		if diff := cmp.Diff(events, g.events); diff != "" || g.err != nil {
			t.Errorf("%s: %v\n(-want +got):\n%.2000s", filepath.Base(file), g.err, diff)
		}
		reattached += len(s.streams) - 1
	}
	t.Logf("%d streams, %d of them of background responses; taken up again %d times", followed, background, reattached)
	if background == 0 {
		t.Error("no stream of a background response")
	}
}

// countsUp reports events that are numbered from 0.
func countsUp(events []string) bool {
	for i, text := range events {
		ev, err := api.ParseEvent([]byte(text))
		if err != nil || ev.SequenceNumber != int64(i) {
			return false
		}
	}
	return len(events) > 0
}

// What is asked for is what has not come, with what the request asked for.
func TestFollowQueries(t *testing.T) {
	events := aRun()
	s := newRunServer(t, events)
	s.cut = func(n int) int { return pick(n == 0, len(framed(events[:4])), -1) }
	no := false
	req := inBackground()
	req.StreamOptions = &api.StreamOptions{IncludeObfuscation: &no}
	if g := hear(t, s.Stream(t.Context(), req)); g.err != nil || len(g.events) != len(events) {
		t.Fatalf("%d events, %v", len(g.events), g.err)
	}
	want := []url.Values{{}, {"stream": {"true"}, "starting_after": {"3"}, "include[]": {api.IncludeEncryptedReasoning}, "include_obfuscation": {"false"}}}
	if diff := cmp.Diff(want, s.queries); diff != "" {
		t.Errorf("queries (-want +got):\n%s", diff)
	}
	for after, query := range map[int64]url.Values{
		-9: {"stream": {"true"}},
		-1: {"stream": {"true"}},
		0:  {"stream": {"true"}, "starting_after": {"0"}},
		5:  {"stream": {"true"}, "starting_after": {"5"}},
	} {
		s := newRunServer(t, events)
		g := hear(t, s.Follow(t.Context(), "resp_1", after))
		if diff := cmp.Diff(events[max(after, -1)+1:], g.events); diff != "" || g.err != nil || !cmp.Equal(s.queries, []url.Values{query}) {
			t.Errorf("after %d: %v, asked %v\n%s", after, g.err, s.queries, diff)
		}
	}
}

// E1: each new connection draws on the budget, that of the context where there
// is one; when it is spent, what came is not lost.
func TestReattachBudget(t *testing.T) {
	events := aRun()
	for name, ask := range map[string]func(ctx context.Context, s *runServer) iter.Seq2[api.Event, error]{
		"follow": func(ctx context.Context, s *runServer) iter.Seq2[api.Event, error] {
			return s.Follow(ctx, "resp_1", -1)
		},
		"stream": func(ctx context.Context, s *runServer) iter.Seq2[api.Event, error] {
			return s.Stream(ctx, inBackground())
		},
	} {
		for _, shared := range []bool{false, true} {
			s := newRunServer(t, events)
			s.cut = func(n int) int { return pick(n == 0, len(framed(events[:6])), 1) }
			s.Retry.Max = 2
			ctx, spent := t.Context(), 0
			if shared {
				retry := s.Retry
				retry.Max = 3
				b := retry.Budget()
				ctx = endpoint.WithBudget(ctx, b)
				b.Next(&endpoint.Error{Class: endpoint.Server})
				b.Next(&endpoint.Error{Class: endpoint.Server})
				spent = 1
			}
			var told []error
			s.OnRetry = func(err error, _ time.Duration, _ int) { told = append(told, err) }
			g := hear(t, ask(ctx, s))
			e := wantClass(t, g.err, endpoint.Truncated)
			presentable(t, g.err)
			var partial *responses.PartialError
			if !errors.As(g.err, &partial) || len(partial.Items) != 1 || !e.Sent || !strings.Contains(e.Hint, "resp_1 may still be running") {
				t.Errorf("%s: %+v", name, g.err)
			}
			if len(s.streams) != 3-spent || len(told) != 2-spent || !slices.Equal(g.events, events[:6]) {
				t.Errorf("%s: streams %v, told %v, %d events", name, s.streams, told, len(g.events))
			}
		}
	}
	s := newRunServer(t, events)
	s.cut = func(int) int { return len(framed(events[:6])) }
	s.Retry.Max = -1
	wantClass(t, hear(t, s.Stream(t.Context(), inBackground())).err, endpoint.Truncated)
	if len(s.streams) != 1 {
		t.Errorf("without retries: %v", s.streams)
	}
}

// E4: a response that is not of the background is not taken up.
func TestNoReattachInForeground(t *testing.T) {
	events := aRun()
	s := newRunServer(t, events)
	s.cut = func(int) int { return len(framed(events[:6])) }
	g := hear(t, s.Stream(t.Context(), hello()))
	wantClass(t, g.err, endpoint.Truncated)
	if len(s.streams) != 1 || s.looks != 0 {
		t.Errorf("streams %v, looks %d", s.streams, s.looks)
	}
}

// Nor is one for which the endpoint is not asked to, or that it does not name.
func TestNoReattachWithoutMeans(t *testing.T) {
	events := aRun()
	omits := endpoint.Careful.Clone()
	omits.Omit = []string{"background"}
	for name, prepare := range map[string]func(*runServer){
		"omitted by the profile": func(s *runServer) { s.Profile = &omits },
		"no id": func(s *runServer) {
			for i := range s.events {
				s.events[i] = strings.Replace(s.events[i], `"id":"resp_1",`, "", 1)
			}
		},
	} {
		s := newRunServer(t, slices.Clone(events))
		prepare(s)
		s.cut = func(int) int { return len(framed(s.events[:6])) }
		g := hear(t, s.Stream(t.Context(), inBackground()))
		wantClass(t, g.err, endpoint.Truncated)
		if len(s.streams) != 1 || s.looks != 0 {
			t.Errorf("%s: streams %v, looks %d", name, s.streams, s.looks)
		}
	}
}

// A sign of life needs no number, and one that has it is not heard twice.
func TestReattachSignsOfLife(t *testing.T) {
	events := aRun()
	for _, alive := range []string{`{"type":"keepalive"}`, `{"type":"keepalive","sequence_number":3}`} {
		with := slices.Insert(slices.Clone(events), 3, alive)
		numbers := strings.Contains(alive, "sequence_number")
		for i := 4; i < len(with) && numbers; i++ {
			with[i] = strings.Replace(with[i], `"sequence_number":`+strconv.Itoa(i-1), `"sequence_number":`+strconv.Itoa(i), 1)
		}
		s := newRunServer(t, with)
		s.from = func(after int64) int { return int(after) + 1 + pick(numbers || after < 3, 0, 1) }
		s.cut = func(n int) int { return pick(n == 0, len(framed(with[:6])), -1) }
		g := hear(t, s.Stream(t.Context(), inBackground()))
		if diff := cmp.Diff(with, g.events); diff != "" || g.err != nil || len(s.streams) != 2 {
			t.Errorf("%s: streams %v, %v\n(-want +got):\n%s", alive, s.streams, g.err, diff)
		}
	}
}

// A response that reached its end meanwhile ends well: what was not told comes
// as done, then the last event.
func TestFollowWithoutStream(t *testing.T) {
	events := aRun()
	done := func(n, i int, it string) string {
		return fmt.Sprintf(`{"type":"response.output_item.done","sequence_number":%d,"output_index":%d,"item":%s}`, n, i, it)
	}
	end := func(n int, status, more string) string {
		return fmt.Sprintf(`{"type":"response.%s","sequence_number":%d,"response":%s}`, status, n, wholeRun(status, more))
	}
	failed := `,"error":{"code":"server_error","message":"oh"}`
	for name, tt := range map[string]struct {
		before int // events that come before the connection breaks
		answer string
		want   []string
		class  endpoint.Class
	}{
		"nothing told":         {1, wholeRun("completed", ""), []string{done(1, 0, firstItem), done(2, 1, secondItem), end(3, "completed", "")}, ""},
		"one item told":        {7, wholeRun("completed", ""), []string{done(7, 1, secondItem), end(8, "completed", "")}, ""},
		"all items told":       {9, wholeRun("completed", ""), []string{end(9, "completed", "")}, ""},
		"incomplete":           {7, wholeRun("incomplete", ""), []string{done(7, 1, secondItem), end(8, "incomplete", "")}, ""},
		"failed":               {7, wholeRun("failed", failed), []string{done(7, 1, secondItem), end(8, "failed", failed)}, endpoint.Server},
		"cancelled":            {7, wholeRun("cancelled", ""), []string{done(7, 1, secondItem), end(8, "cancelled", "")}, endpoint.Canceled},
		"an id that changed":   {7, strings.ReplaceAll(wholeRun("completed", ""), "rs_1", "rs_9"), []string{done(7, 1, secondItem), strings.ReplaceAll(end(8, "completed", ""), "rs_1", "rs_9")}, ""},
		"status of a new kind": {7, wholeRun("expired", ""), []string{done(7, 1, secondItem), end(8, "expired", "")}, endpoint.Truncated},
	} {
		for how, look := range map[string]func(n int, r *http.Request) (int, string){
			"JSON in place of a stream": func(n int, r *http.Request) (int, string) {
				if r.Method == http.MethodGet {
					return 200, tt.answer
				}
				return 0, ""
			},
			"pending at first": func(n int, r *http.Request) (int, string) {
				switch {
				case r.Method != http.MethodGet:
					return 0, ""
				case n < 3:
					return 200, `{"id":"resp_1","object":"response","status":"in_progress","output":[]}`
				}
				return 200, tt.answer
			},
			"too old for a stream": func(n int, r *http.Request) (int, string) {
				switch {
				case r.Method != http.MethodGet:
					return 0, ""
				case r.URL.Query().Get("stream") != "":
					return 400, `{"error":{"message":"This response can no longer be streamed.","type":"invalid_request_error"}}`
				}
				return 200, tt.answer
			},
			"a stream with nothing in it": func(n int, r *http.Request) (int, string) {
				switch {
				case r.Method != http.MethodGet:
					return 0, ""
				case r.URL.Query().Get("stream") != "":
					return 200, ""
				}
				return 200, tt.answer
			},
		} {
			s := newRunServer(t, events)
			s.Retry.Max = 1
			s.cut = func(n int) int { return len(framed(events[:tt.before])) }
			s.look = look
			g := hear(t, s.Stream(t.Context(), inBackground()))
			if diff := cmp.Diff(append(slices.Clone(events[:tt.before]), tt.want...), g.events); diff != "" {
				t.Errorf("%s, %s: %v\n(-want +got):\n%s", name, how, g.err, diff)
			}
			if tt.class != "" {
				wantClass(t, g.err, tt.class)
			} else if g.err != nil || g.resp.ID != "resp_1" {
				t.Errorf("%s, %s: %v, %v", name, how, g.resp, g.err)
			}
			if len(s.streams) > 2 && tt.class != endpoint.Truncated {
				t.Errorf("%s, %s: streams %v", name, how, s.streams)
			}
		}
	}
}

// A stream that ends with nothing in it, while the response is made, is asked
// for again, as long as that takes.
func TestFollowEmptyStreams(t *testing.T) {
	events := aRun()
	s := newRunServer(t, events)
	s.Retry.Max = 1
	s.cut = func(n int) int { return pick(n == 0, len(framed(events[:6])), -1) }
	s.look = func(looks int, r *http.Request) (int, string) {
		switch {
		case r.Method == http.MethodPost:
		case r.URL.Query().Get("stream") == "":
			return 200, `{"id":"resp_1","object":"response","status":"in_progress","output":[]}`
		case looks < 5:
			return 200, ""
		}
		return 0, ""
	}
	g := hear(t, s.Stream(t.Context(), inBackground()))
	if diff := cmp.Diff(events, g.events); diff != "" || g.err != nil || s.looks != 5 || len(s.streams) != 7 {
		t.Errorf("%d looks, streams %v, %v\n(-want +got):\n%s", s.looks, s.streams, g.err, diff)
	}
}

// An endpoint that does not stream at all is waited for.
func TestBackgroundWithoutStreams(t *testing.T) {
	s := newRunServer(t, nil)
	s.Retry.Max = -1
	s.look = func(n int, r *http.Request) (int, string) {
		if n < 2 || r.Method == http.MethodPost {
			return 200, `{"id":"resp_1","object":"response","status":"queued","output":[]}`
		}
		return 200, wholeRun("completed", "")
	}
	for way, seq := range s.ways(t.Context()) {
		s.looks = 0
		if g := hear(t, seq); g.err != nil || g.resp.Text() != "ab" || len(g.events) != 3 {
			t.Errorf("%s: %v, %v", way, g.events, g.err)
		}
	}
}

// Events without numbers cannot be asked for: the rest comes whole.
func TestReattachWithoutNumbers(t *testing.T) {
	for name, renumber := range map[string]string{"no numbers": "", "all the same": `,"sequence_number":0`} {
		var events []string
		for i, ev := range aRun() {
			events = append(events, strings.Replace(ev, `,"sequence_number":`+strconv.Itoa(i), renumber, 1))
		}
		s := newRunServer(t, events)
		s.cut = func(n int) int { return len(framed(events[:7])) }
		s.look = func(n int, r *http.Request) (int, string) {
			if r.URL.Query().Get("stream") == "" && r.Method == http.MethodGet {
				return 200, wholeRun("completed", "")
			}
			return 0, ""
		}
		for way, seq := range s.ways(t.Context()) {
			g := hear(t, seq)
			if g.err != nil || len(g.events) != 9 || g.resp.Text() != "ab" || !slices.Equal(g.events[:7], events[:7]) {
				t.Errorf("%s, %s: %v, %v", name, way, g.events, g.err)
			}
		}
	}
}

// The last event is told in any case: without it nobody could tell an end from
// a half.
func TestFollowBehindTheEnd(t *testing.T) {
	events := aRun()
	for _, after := range []int64{7, 8, 9, 99} {
		s := newRunServer(t, events)
		s.from = func(int64) int { return 0 }
		g := hear(t, s.Follow(t.Context(), "resp_1", after))
		if diff := cmp.Diff(events[min(after+1, 9):], g.events); diff != "" || g.err != nil || len(s.streams) != 1 {
			t.Errorf("after %d: %v, %v\n%s", after, s.streams, g.err, diff)
		}
	}
}

// A server that counts anew on each connection loses no item.
func TestReattachCountedAnew(t *testing.T) {
	events := aRun()
	for n := 3; n < len(events); n++ {
		s := newRunServer(t, events)
		s.look = func(_ int, r *http.Request) (int, string) {
			if r.Method == http.MethodPost {
				return 0, ""
			}
			var again []string
			for i, ev := range events[n:] {
				again = append(again, strings.Replace(ev, `"sequence_number":`+strconv.Itoa(n+i), `"sequence_number":`+strconv.Itoa(i), 1))
			}
			return 200, framed(again)
		}
		s.cut = func(int) int { return len(framed(events[:n])) }
		g := hear(t, s.Stream(t.Context(), inBackground()))
		slices.Sort(g.items)
		if g.err != nil || !slices.Equal(g.items, []string{"msg_1", "rs_1"}) {
			t.Errorf("cut at %d: items %v, %v\n%s", n, g.items, g.err, strings.Join(g.events, "\n"))
		}
	}
}

// A failure that the stream tells is the end, and not followed further.
func TestFollowFailure(t *testing.T) {
	for name, last := range map[string]string{
		"failed": `{"type":"response.failed","response":` + wholeRun("failed", `,"error":{"code":"server_error","message":"oh"}`),
		"error":  `{"type":"error","code":"server_error","message":"oh"`,
	} {
		events := sequenced(append([]string{`{"type":"response.created","response":{"id":"resp_1","status":"queued"}`}, last)...)
		for _, after := range []int64{-1, 0} {
			s := newRunServer(t, events)
			g := hear(t, s.Follow(t.Context(), "resp_1", after))
			wantClass(t, g.err, endpoint.Server)
			if len(s.streams) != 1 || !slices.Equal(g.events, events[after+1:]) {
				t.Errorf("%s after %d: %v, %v", name, after, s.streams, g)
			}
		}
	}
}

// A stream that cannot be taken up ends with what happened to it first.
func TestReattachRefused(t *testing.T) {
	events := aRun()
	for name, tt := range map[string]struct {
		status int
		body   string
	}{
		"no such path":     {404, "not found"},
		"no such response": {404, notFound},
		"forbidden":        {403, `{"error":{"message":"no","code":"permission_denied"}}`},
		"400 in any way":   {400, `{"error":{"message":"no","type":"invalid_request_error"}}`},
	} {
		s := newRunServer(t, events)
		s.cut = func(n int) int { return len(framed(events[:6])) }
		s.look = func(_ int, r *http.Request) (int, string) {
			return pick(r.Method == http.MethodGet, tt.status, 0), tt.body
		}
		g := hear(t, s.Stream(t.Context(), inBackground()))
		e := wantClass(t, g.err, endpoint.Truncated)
		presentable(t, g.err)
		if !strings.Contains(e.Hint, "cannot be followed: GET ") || !slices.Equal(g.events, events[:6]) || len(s.streams) != 2 {
			t.Errorf("%s: streams %v, %v", name, s.streams, g.err)
		}
		// Follow says it as it is.
		s.cut = nil
		g = hear(t, s.Follow(t.Context(), "resp_1", -1))
		var e2 *endpoint.Error
		if !errors.As(g.err, &e2) || e2.Status != tt.status || len(g.events) != 0 {
			t.Errorf("%s: %v", name, g.err)
		}
	}
}

// A connection that is silent is taken up again too.
func TestReattachAfterSilence(t *testing.T) {
	events := aRun()
	var posts, gets int
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		if r.Method == http.MethodGet {
			gets++
			fmt.Fprint(w, framed(events[6:]))
			return
		}
		posts++
		fmt.Fprint(w, framed(events[:6]))
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}))
	defer srv.Close()
	defer srv.Client().CloseIdleConnections()
	c := &responses.Client{BaseURL: srv.URL, HTTP: srv.Client(), IdleTimeout: time.Second, Retry: endpoint.Retry{Base: time.Millisecond}}
	if g := hear(t, c.Stream(t.Context(), inBackground())); g.err != nil || !slices.Equal(g.events, events) || posts != 1 || gets != 1 {
		t.Errorf("%d posts, %d gets, %v, %v", posts, gets, g.err, g.events)
	}
	c.Retry.Max = -1
	wantClass(t, hear(t, c.Stream(t.Context(), inBackground())).err, endpoint.Idle)
}

// S8: breaking off, and the end of the context, end it all.
func TestFollowCancel(t *testing.T) {
	events := aRun()
	for n := range len(events) {
		s := newRunServer(t, events)
		s.cut = func(i int) int { return pick(i == 0, len(framed(events[:5])), -1) }
		seen := 0
		for _, err := range s.Stream(t.Context(), inBackground()) {
			if err != nil {
				t.Fatal(err)
			}
			if seen++; seen > n {
				break
			}
		}
		if want := pick(n < 5, 1, 2); len(s.streams) != want {
			t.Errorf("broken off at %d: %v", n, s.streams)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	s := newRunServer(t, events)
	s.look = func(n int, _ *http.Request) (int, string) {
		if n == 2 {
			cancel()
		}
		return 200, `{"id":"resp_1","object":"response","status":"queued","output":[]}`
	}
	for way, seq := range s.ways(ctx) {
		e := wantClass(t, hear(t, seq).err, endpoint.Canceled)
		if !errors.Is(e, context.Canceled) {
			t.Errorf("%s: %v", way, e)
		}
	}
}

// What the profile says is not there is not tried.
func TestFollowByProfile(t *testing.T) {
	events := aRun()
	p := endpoint.Careful.Clone()
	p.Stored = endpoint.No
	s := newRunServer(t, events)
	s.cut = func(int) int { return len(framed(events[:6])) }
	s.Profile = &p
	g := hear(t, s.Follow(t.Context(), "resp_1", -1))
	if !errors.Is(g.err, errors.ErrUnsupported) || len(s.streams) != 0 {
		t.Errorf("%v, %v", g.err, s.streams)
	}
	e := wantClass(t, hear(t, s.Stream(t.Context(), inBackground())).err, endpoint.Truncated)
	if len(s.streams) != 1 || !strings.Contains(e.Hint, "has no /responses/") {
		t.Errorf("%v, %v", s.streams, e)
	}
}

// Wait looks in growing intervals until there is an end.
func TestWait(t *testing.T) {
	for status, class := range map[string]endpoint.Class{
		"completed": "", "incomplete": "", "expired": "", "failed": endpoint.Server, "cancelled": endpoint.Canceled,
	} {
		s := newRunServer(t, nil)
		s.look = func(n int, r *http.Request) (int, string) {
			switch {
			case n == 3:
				return 503, `{}` // draws on the budget, not on the patience
			case n < 8:
				return 200, `{"id":"resp_1","object":"response","status":"` + pick(n%2 == 0, "queued", "in_progress") + `","output":[]}`
			}
			return 200, wholeRun(status, "")
		}
		s.Retry.Rand = func() float64 { return 0 }
		r, err := s.Wait(t.Context(), "resp_1", "x")
		if r == nil || r.Status != status {
			t.Fatalf("%s: %v, %v", status, r, err)
		}
		if class != "" {
			wantClass(t, err, class)
		} else if err != nil {
			t.Errorf("%s: %v", status, err)
		}
		var waits []string
		for _, d := range s.waits {
			waits = append(waits, d.String())
		}
		if got := strings.Join(waits, " "); got != "500ms 1s 2s 500ms 4s 8s 8s 8s" {
			t.Errorf("%s: waited %s", status, got)
		}
		if q := s.queries[8].Encode(); q != "include%5B%5D=x" || s.looks != 9 {
			t.Errorf("%s: %d looks, query %s", status, s.looks, q)
		}
	}
}

func TestWaitCancel(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	s := newRunServer(t, nil)
	s.look = func(int, *http.Request) (int, string) {
		return 200, `{"id":"resp_1","object":"response","status":"queued"}`
	}
	s.Retry.Sleep = func(ctx context.Context, _ time.Duration) error { cancel(); return ctx.Err() }
	_, err := s.Wait(ctx, "resp_1")
	if e := wantClass(t, err, endpoint.Canceled); !errors.Is(e, context.Canceled) || s.looks != 1 {
		t.Errorf("%d looks, %v", s.looks, e)
	}
}
