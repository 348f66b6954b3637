// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package responses_test

import (
	"context"
	"fmt"
	"io"
	"iter"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/responses"
)

// words are a reply whose deltas differ in length, with escapes among them.
var words = []string{"Hello", " wonderful", " world", "\n", "of ", "\"streams\"", ".", " And", " more", "\té"}

// spoken is a streamed reply of two messages that take turns.
func spoken() []string {
	list := []string{`{"type":"response.created","sequence_number":0,"response":{"id":"resp_1","status":"in_progress","output":[]}}`}
	n := 0
	add := func(format string, args ...any) {
		n++
		list = append(list, strings.Replace(fmt.Sprintf(format, args...), "{", fmt.Sprintf(`{"sequence_number":%d,`, n), 1))
	}
	for i := range 2 {
		add(`{"type":"response.output_item.added","output_index":%d,"item":{"type":"message","id":"msg_%d","role":"assistant","status":"in_progress","content":[]}}`, i, i)
	}
	for _, w := range words {
		for i := range 2 {
			add(`{"type":"response.output_text.delta","item_id":"msg_%d","output_index":%d,"content_index":0,"delta":%s}`, i, i, item.Quote(w))
		}
	}
	var items []string
	for i := range 2 {
		it := fmt.Sprintf(`{"type":"message","id":"msg_%d","role":"assistant","status":"completed","content":[{"type":"output_text","text":%s,"annotations":[]}]}`, i, item.Quote(strings.Join(words, "")))
		add(`{"type":"response.output_item.done","output_index":%d,"item":%s}`, i, it)
		items = append(items, it)
	}
	add(`{"type":"response.completed","response":{"id":"resp_1","status":"completed","output":[%s]}}`, strings.Join(items, ","))
	return list
}

// oneByOne sends each event by itself: as fast as it can, or with a pause before
// it. Over a socket if it is asked to.
func oneByOne(pause time.Duration) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Upgrade") != "" {
			conn, err := websocket.Accept(w, r, nil)
			if err != nil {
				return
			}
			defer conn.CloseNow()
			ctx := context.Background()
			_, _, err = conn.Read(ctx)
			for _, ev := range spoken() {
				if time.Sleep(pause); err == nil {
					err = conn.Write(ctx, websocket.MessageText, []byte(ev))
				}
			}
			_, _, _ = conn.Read(ctx)
			return
		}
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		for _, ev := range spoken() {
			time.Sleep(pause)
			fmt.Fprintf(w, "data: %s\n\n", ev)
			w.(http.Flusher).Flush()
		}
	}
}

// S4: what a stream yields are ordinary values. A program may add deltas to a
// text, keep them in lists and maps and send them to another goroutine; and so
// with everything else that an event has.
func TestStreamYieldsOrdinaryValues(t *testing.T) {
	for name, pause := range map[string]time.Duration{"flushed": 0, "paced": time.Millisecond} {
		srv := httptest.NewServer(oneByOne(pause))
		t.Cleanup(srv.Close)
		client := &responses.Client{BaseURL: srv.URL, HTTP: srv.Client(), Profile: openAI(t)}
		chain := func(over responses.Transport) iter.Seq2[api.Event, error] {
			th := &responses.Chain{Client: client, Transport: over}
			t.Cleanup(func() { _ = th.Close() })
			return th.Stream(t.Context(), hello())
		}
		background := hello()
		background.Background = new(true)
		for what, stream := range map[string]iter.Seq2[api.Event, error]{
			"client": client.Stream(t.Context(), hello()), "background": client.Stream(t.Context(), background), "follow": client.Follow(t.Context(), "resp_1", -1),
			"chain over HTTP": chain(responses.HTTP), "chain over a socket": chain(responses.WebSocket),
		} {
			t.Run(what+" "+name, func(t *testing.T) { ordinary(t, stream) })
		}
	}
}

func ordinary(t *testing.T, stream iter.Seq2[api.Event, error]) {
	texts, types := map[string]string{}, map[api.EventType]int{}
	var parts, said, copies []string
	var text, sent strings.Builder
	channel, received := make(chan string, 1000), make(chan bool)
	go func() {
		for s := range channel {
			sent.WriteString(s)
		}
		close(received)
	}()
	for ev, err := range stream {
		if err != nil {
			t.Fatal(err)
		}
		texts[ev.ItemID] += ev.Delta
		types[ev.Type]++
		parts = append(parts, ev.Delta)
		channel <- ev.Delta
		text.WriteString(ev.Delta) // a copy at once
		all := []string{string(ev.Type), ev.ItemID, ev.Delta, ev.JSON(), ev.Text("delta")}
		if it, err := ev.Item(); err == nil {
			all = append(all, it.JSON(), it.ID())
		}
		if r, err := ev.Response(); err == nil {
			all = append(all, r.ID, r.Status, fmt.Sprint(asTexts(r.Output)))
		}
		for _, s := range all {
			said, copies = append(said, s), append(copies, strings.Clone(s))
		}
	}
	close(channel)
	<-received
	whole := strings.Join(words, "")
	want := map[string]string{"msg_0": whole, "msg_1": whole, "": ""}
	if !maps.Equal(texts, want) {
		t.Errorf("by item: %q, want %q", texts, want)
	}
	if got := strings.Join(parts, ""); got != text.String() || sent.String() != text.String() {
		t.Errorf("kept %q, sent %q, want %q", got, sent.String(), text.String())
	}
	if n := types[api.EventTextDelta]; n != 2*len(words) || len(types) != 5 {
		t.Errorf("types: %v", types)
	}
	if !slices.Equal(said, copies) {
		t.Errorf("texts of events changed:\n%q\n%q", copies, said)
	}
}
