// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package sessions_test

import (
	"compress/gzip"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/server/sessions"
	"github.com/antiphon-go/antiphon/session"
)

// cutting is an address through which connections to another one break after so many bytes
// of answers, one limit for each connection; later ones do not break.
func cutting(t *testing.T, to string, limits []int64) (address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	var mu sync.Mutex
	open := map[net.Conn]bool{}
	keep := func(c net.Conn) {
		mu.Lock()
		defer mu.Unlock()
		open[c] = true
	}
	all.Go(func() {
		for n := 0; ; n++ {
			in, err := l.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", to)
			if err != nil {
				in.Close()
				return
			}
			keep(in)
			keep(out)
			limit := int64(1 << 40)
			if n < len(limits) {
				limit = limits[n]
			}
			all.Go(func() { _, _ = io.Copy(out, in) })
			all.Go(func() {
				_, _ = io.Copy(in, io.LimitReader(out, limit))
				in.Close()
				out.Close()
			})
		}
	})
	t.Cleanup(func() {
		l.Close()
		mu.Lock()
		for c := range open {
			c.Close()
		}
		mu.Unlock()
		all.Wait()
	})
	return l.Addr().String()
}

// A connection that breaks anywhere loses no entry and doubles none, while the session goes
// on; the client is told that it broke, and that it is back. V2
func TestCutConnection(t *testing.T) {
	w := serving(t, nil)
	if err := w.in.Create(t.Context(), session.Info{ID: "s", Owner: shop}); err != nil {
		t.Fatal(err)
	}
	log, err := session.Open(t.Context(), w.in, "s")
	if err != nil {
		t.Fatal(err)
	}
	const n = 60
	say := func(i int) {
		if _, err := log.Append(t.Context(), session.InputItem{Item: item.User(fmt.Sprint("message ", i, strings.Repeat(" and more", i)))}); err != nil {
			t.Error(err)
		}
	}
	for i := range n / 2 {
		say(i)
	}
	limits := []int64{0, 10, 300}
	for at := int64(700); at < 9000; at += 777 {
		limits = append(limits, at)
	}
	c := w.as("reader")
	transport := new(http.Transport)
	defer transport.CloseIdleConnections()
	c.Transport, c.URL = transport, "http://"+cutting(t, strings.TrimPrefix(w.base, "http://"), limits)
	var told []bool
	var mu sync.Mutex
	c.Lost = func(err error) {
		mu.Lock()
		defer mu.Unlock()
		told = append(told, err != nil)
	}
	var writing sync.WaitGroup
	defer writing.Wait()
	var got []session.Entry
	for ev, err := range c.Watch(t.Context(), "s", "s", 0) {
		if err != nil {
			t.Fatal(err)
		}
		if ev.Entry == nil {
			continue
		}
		if got = append(got, *ev.Entry); len(got) == 3 {
			writing.Go(func() {
				for i := n / 2; i < n; i++ {
					say(i)
				}
			})
		}
		if len(got) == n {
			break
		}
	}
	writing.Wait()
	if want := lines(t, w.log("s")); !slices.Equal(lines(t, got), want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(lines(t, got), "\n"), strings.Join(want, "\n"))
	}
	mu.Lock()
	defer mu.Unlock()
	if len(told) < 2 || !told[0] || told[len(told)-1] {
		t.Error("told:", told)
	}
	for i, gone := range told {
		if gone != (i%2 == 0) {
			t.Error("told twice:", told)
		}
	}
}

// The key goes to no other server, wherever this one points; what answers otherwise is not
// asked again; and nothing is sent without encryption. K4
func TestClientKeepsKey(t *testing.T) {
	var reached bool
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached = true }))
	defer other.Close()
	for _, status := range []int{301, 302, 303, 307, 308} {
		pointing := httptest.NewServer(http.RedirectHandler(other.URL+"/x", status))
		c := &sessions.Client{URL: pointing.URL, Key: "secret", Transport: pointing.Client().Transport}
		_, err := c.Get(t.Context(), "s")
		if err == nil || !strings.Contains(err.Error(), other.URL) || strings.Contains(err.Error(), "secret") {
			t.Error(status, err)
		}
		for _, err := range c.Watch(t.Context(), "s", "s", 0) {
			if err == nil || !strings.Contains(err.Error(), other.URL) {
				t.Error(status, err)
			}
		}
		if _, err := c.Say(t.Context(), "s", "x", false); err == nil {
			t.Error(status, "said")
		}
		pointing.Close()
	}
	if reached {
		t.Error("the other server was asked")
	}
	page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>") }))
	defer page.Close()
	c := &sessions.Client{URL: page.URL, Transport: page.Client().Transport}
	if _, err := c.Get(t.Context(), "s"); err == nil || !strings.Contains(err.Error(), "not a server with sessions") {
		t.Error(err)
	}
	for _, address := range []string{"", "x", "ftp://x", "http://example.com", "https://u:p@example.com", "https://example.com?key=x", "http://127.0.0.1.example.com"} {
		c := &sessions.Client{URL: address, Key: "secret", Transport: http.NewFileTransport(http.Dir(t.TempDir()))}
		if _, err := c.Get(t.Context(), "s"); err == nil || sessions.CheckURL(address) == nil {
			t.Errorf("%q: %v", address, err)
		}
	}
}

// The client takes no packed answers, which could become a thousand times as large as what is sent,
// and reads none that comes unasked.
func TestNoPackedAnswers(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if got := r.Header.Get("Accept-Encoding"); got != "identity" {
			t.Errorf("it asks for %q", got)
		}
		w.Header().Set("Content-Encoding", "gzip")
		w.Header().Set("Content-Type", "application/json")
		z := gzip.NewWriter(w)
		_, _ = z.Write([]byte(`{"id":"a"}`))
		_ = z.Close()
	}))
	defer srv.Close()
	if got, err := (&sessions.Client{URL: srv.URL}).Get(t.Context(), "a"); err == nil {
		t.Errorf("it was read: %+v", got)
	}
}
