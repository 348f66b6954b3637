// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package responses_test

import (
	"context"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/antiphon-go/antiphon/agenttest"
	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/responses"
)

// S3: Create and Stream say the same of a response, whatever its status, its
// error and its output are.
func TestCreateAndStreamAgree(t *testing.T) {
	const message = `{"type":"message","id":"m","role":"assistant","status":"completed","content":[{"type":"output_text","text":"hi","annotations":[]}]}`
	const failure = `{"code":"server_error","message":"boom"}`
	for _, test := range []struct {
		status, failure, output string
		want                    endpoint.Class // "" is success
	}{
		{"completed", "null", message, ""},
		{"completed", "null", "", ""},
		{"completed", failure, message, endpoint.Server},
		{"completed", failure, "", endpoint.Server},
		{"incomplete", "null", message, ""},
		{"incomplete", failure, message, endpoint.Server},
		{"failed", "null", message, endpoint.Server},
		{"failed", failure, "", endpoint.Server},
		{"cancelled", "null", message, endpoint.Canceled},
		{"in_progress", "null", "", endpoint.Truncated},
		{"in_progress", "null", message, ""},
		{"queued", "null", "", endpoint.Truncated},
	} {
		body := fmt.Sprintf(`{"id":"r","object":"response","status":"%s","error":%s,"output":[%s]}`, test.status, test.failure, test.output)
		last := "response.completed"
		if test.status == "incomplete" {
			last = "response.incomplete"
		}
		srv := agenttest.NewServer(t)
		srv.Otherwise(func(_ int, r agenttest.Request) agenttest.Reply {
			if strings.Contains(string(r.Body), `"stream":true`) {
				return agenttest.Events(`{"type":"` + last + `","response":` + body + `}`)
			}
			return agenttest.Raw(http.StatusOK, "application/json", body)
		})
		_, created := srv.Client().Create(t.Context(), hello())
		var streamed error
		for _, err := range srv.Client().Stream(t.Context(), hello()) {
			streamed = err
		}
		if got, want := classOf(created), test.want; got != want {
			t.Errorf("created %s: %v, want %q", body, created, want)
		}
		if got, want := classOf(streamed), test.want; got != want {
			t.Errorf("streamed %s: %v, want %q", body, streamed, want)
		}
	}
}

// noted ranges over a stream that is these events, with what is between them as
// it is, and returns its notes, its text and its error.
func noted(t *testing.T, body string) (notes []api.Note, text string, err error) {
	t.Helper()
	srv := agenttest.NewServer(t)
	srv.Otherwise(func(int, agenttest.Request) agenttest.Reply {
		return agenttest.Raw(http.StatusOK, "text/event-stream", body)
	})
	ctx := api.WithNotes(t.Context(), func(n api.Note) { notes = append(notes, n) })
	for ev, failure := range srv.Client().Stream(ctx, hello()) {
		text, err = text+ev.Delta, failure
	}
	return notes, text, err
}

// reply is a message of deltas with the numbers given, which a done item and the
// last event follow.
func reply(deltas []string, numbers []int, done, final string) string {
	message := func(text string) string {
		return fmt.Sprintf(`{"type":"message","id":"m","role":"assistant","status":"completed","content":[{"type":"output_text","text":%s,"annotations":[]}]}`, item.Quote(text))
	}
	var b strings.Builder
	n := 0
	add := func(format string, args ...any) {
		fmt.Fprintf(&b, "data: "+strings.Replace(format, "{", `{"sequence_number":%d,`, 1)+"\n\n", append([]any{n}, args...)...)
		n++
	}
	add(`{"type":"response.created","response":{"id":"r","status":"in_progress","output":[]}}`)
	add(`{"type":"response.output_item.added","output_index":0,"item":{"type":"message","id":"m","role":"assistant","content":[]}}`)
	add(`{"type":"response.content_part.added","output_index":0,"item_id":"m","content_index":0,"part":{"type":"output_text","text":""}}`)
	for i, d := range deltas {
		if n = i + 3; numbers != nil {
			n = numbers[i]
		}
		add(`{"type":"response.output_text.delta","output_index":0,"item_id":"m","content_index":0,"delta":%s}`, item.Quote(d))
	}
	add(`{"type":"response.output_text.done","output_index":0,"item_id":"m","content_index":0,"text":%s}`, item.Quote(done))
	add(`{"type":"response.output_item.done","output_index":0,"item":%s}`, message(done))
	add(`{"type":"response.completed","response":{"id":"r","status":"completed","output":[%s]}}`, message(final))
	return b.String()
}

// S4: where deltas, done events, the last event and the numbers of events do not
// agree, the caller can learn it.
func TestNotes(t *testing.T) {
	const whole = "Hello world"
	for name, test := range map[string]struct {
		deltas  []string
		numbers []int
		done    string
		final   string
		want    []api.NoteKind
		text    string // of the first
	}{
		"all is well":           {[]string{"Hello", " world"}, nil, whole, whole, nil, ""},
		"no deltas":             {nil, nil, whole, whole, nil, ""},
		"the end is missing":    {[]string{"Hello"}, nil, whole, whole, []api.NoteKind{api.NoteExtends}, "the end of the text came without deltas: 6 bytes"},
		"a delta is missing":    {[]string{"Hello", "rld"}, []int{3, 5}, whole, whole, []api.NoteKind{api.NoteGap, api.NoteDiffers}, "events of the reply are missing: number 3 is followed by 5"},
		"a delta came twice":    {[]string{"Hello", "Hello", " world"}, []int{3, 3, 4}, whole, whole, []api.NoteKind{api.NoteRepeat, api.NoteDiffers}, "events of the reply came again, or out of order: number 3 is followed by 3"},
		"another text":          {[]string{"Hello", " there"}, nil, whole, whole, []api.NoteKind{api.NoteDiffers}, `the final text differs from what was shown: "Hello world", and not "Hello there"`},
		"another text at last":  {[]string{"Hello", " world"}, nil, whole, "Hello you", []api.NoteKind{api.NoteFinalDiffers}, `the last event of the reply has another text than the item, which counts: "Hello you", and not "Hello world"`},
		"a server that repeats": {[]string{"Hello", " world"}, []int{0, 0}, whole, whole, []api.NoteKind{api.NoteRepeat}, "events of the reply came again, or out of order: number 2 is followed by 0"},
	} {
		t.Run(name, func(t *testing.T) {
			notes, _, err := noted(t, reply(test.deltas, test.numbers, test.done, test.final))
			if err != nil {
				t.Fatal(err)
			}
			var kinds []api.NoteKind
			for _, n := range notes {
				kinds = append(kinds, n.Kind)
			}
			if diff := cmp.Diff(test.want, kinds); diff != "" {
				t.Errorf("(-want +got):\n%s\n%+v", diff, notes)
			}
			if len(notes) > 0 && notes[0].Text != test.text {
				t.Errorf("got %q", notes[0].Text)
			}
			for _, n := range notes {
				if n.Kind == api.NoteExtends && n.Rest != " world" {
					t.Errorf("the rest is %q", n.Rest)
				}
			}
		})
	}
}

// W6, S1: what is not an event is passed over and told, and the reply is whole. A
// stream of nothing else is an error.
func TestNotEvents(t *testing.T) {
	whole := reply([]string{"Hello", " world"}, nil, "Hello world", "Hello world")
	for name, odd := range map[string]string{
		"a word": "event: ping\ndata: ping\n\n", "a string": "data: \"ping\"\n\n", "a list": "data: [1,2]\n\n",
		"an object by another name that is cut": "event: ping\ndata: {\"now\":\n\n", "null": "data: null\n\n",
	} {
		before, after, _ := strings.Cut(whole, "data: {\"sequence_number\":4")
		for where, body := range map[string]string{
			"first": odd + whole, "within": before + odd + "data: {\"sequence_number\":4" + after,
		} {
			notes, text, err := noted(t, body)
			if err != nil || text != "Hello world" || len(notes) != 1 || notes[0].Kind != api.NoteSkipped {
				t.Errorf("%s, %s: %q, %v, notes %+v", name, where, text, err, notes)
			}
		}
	}
	for name, body := range map[string]string{
		"a few words": strings.Repeat("data: ping\n\n", 3), "words without end": strings.Repeat("data: ping\n\n", 1000),
		"words behind a beginning": strings.SplitAfter(whole, "\n\n")[0] + strings.Repeat("data: ping\n\n", 1000),
	} {
		notes, _, err := noted(t, body)
		if classOf(err) != endpoint.Protocol || !strings.Contains(err.Error(), "ping") || len(notes) > 10 {
			t.Errorf("%s: %v, %d notes", name, err, len(notes))
		}
	}
	damaged := slices.Insert(strings.SplitAfter(whole, "\n\n"), 4, "data: {\"type\":\"response.output_text.delta\",\n\n")
	if _, _, err := noted(t, strings.Join(damaged, "")); classOf(err) != endpoint.Protocol {
		t.Errorf("an event that is damaged: %v", err)
	}
}

// A stream that was taken up again is one stream: its text is the sum of what all
// connections brought.
func TestNotesOfAStreamInTwo(t *testing.T) {
	events := strings.SplitAfter(reply([]string{"Hello", " world"}, nil, "Hello world", "Hello world"), "\n\n")
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		part := events[:4]
		if r.Method == http.MethodGet {
			part = events[4:]
		}
		_, _ = io.WriteString(w, strings.Join(part, ""))
	}))
	defer srv.Close()
	c := &responses.Client{BaseURL: srv.URL, HTTP: srv.Client(), Profile: openAI(t), Retry: endpoint.Retry{Sleep: func(ctx context.Context, _ time.Duration) error { return ctx.Err() }}}
	var notes []api.Note
	ctx := api.WithNotes(t.Context(), func(n api.Note) { notes = append(notes, n) })
	req := hello()
	req.Background = new(true)
	for name, stream := range map[string]iter.Seq2[api.Event, error]{"whole": c.Stream(ctx, req), "its end": c.Follow(ctx, "r", 3)} {
		text := ""
		for ev, err := range stream {
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			text += ev.Delta
		}
		if len(notes) > 0 || !strings.HasSuffix(text, " world") {
			t.Errorf("%s: %q, %+v", name, text, notes)
		}
	}
}
