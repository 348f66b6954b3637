// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package completions_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/antiphon-go/antiphon/agenttest"
	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/completions"
	"github.com/antiphon-go/antiphon/item"
)

// S4: what a stream yields are ordinary values: texts that were kept do not
// change when the stream goes on.
func TestStreamYieldsOrdinaryValues(t *testing.T) {
	words := []string{"Hello", " wonderful", " world", "\n", "of ", "\"streams\"", ".", "\té"}
	for name, pause := range map[string]time.Duration{"flushed": 0, "paced": time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				w.Header().Set("Content-Type", "text/event-stream")
				say := func(chunk string) {
					time.Sleep(pause)
					fmt.Fprintf(w, "data: %s\n\n", chunk)
					w.(http.Flusher).Flush()
				}
				for _, word := range words {
					say(delta(`"content":` + string(item.Quote(word))))
				}
				say(finish("stop"))
				say("[DONE]")
			}))
			defer srv.Close()
			client := &completions.Client{BaseURL: srv.URL, HTTP: srv.Client()}
			text, byType := "", map[api.EventType]string{}
			var said, copies []string
			for ev, err := range client.Stream(t.Context(), hello()) {
				if err != nil {
					t.Fatal(err)
				}
				text += ev.Delta
				byType[ev.Type] += ev.Delta
				for _, s := range []string{string(ev.Type), ev.ItemID, ev.Delta, ev.JSON(), ev.Text("text")} {
					said, copies = append(said, s), append(copies, strings.Clone(s))
				}
			}
			if want := strings.Join(words, ""); text != want || byType[api.EventTextDelta] != want {
				t.Errorf("got %q and %q, want %q", text, byType, want)
			}
			if !slices.Equal(said, copies) {
				t.Errorf("texts of events changed:\n%q\n%q", copies, said)
			}
		})
	}
}

// W6: what is not a chunk is passed over and told, and the reply is whole. A stream
// of nothing else is an error.
func TestNotChunks(t *testing.T) {
	for name, test := range map[string]struct {
		body string
		text string
		want bool // it is whole
	}{
		"a word":       {"event: ping\ndata: ping\n\ndata: " + delta(`"content":"Hello"`) + "\n\ndata: [1]\n\ndata: " + finish("stop") + "\n\ndata: [DONE]\n\n", "Hello", true},
		"nothing else": {strings.Repeat("data: ping\n\n", 3), "", false},
		"without end":  {strings.Repeat("data: ping\n\n", 1000), "", false},
	} {
		srv := agenttest.NewServer(t, agenttest.Raw(http.StatusOK, "text/event-stream", test.body))
		var notes []api.Note
		text := ""
		var failure error
		for ev, err := range client(srv).Stream(api.WithNotes(t.Context(), func(n api.Note) { notes = append(notes, n) }), hello()) {
			text, failure = text+ev.Delta, err
		}
		if text != test.text || (failure == nil) != test.want || len(notes) == 0 || len(notes) > 10 || notes[0].Kind != api.NoteSkipped {
			t.Errorf("%s: %q, %v, notes %+v", name, text, failure, notes)
		}
	}
}
