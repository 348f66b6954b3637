// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/antiphon-go/antiphon/item"
)

// echo answers with the body that it got, and how it was told the length.
func echo(w http.ResponseWriter, r *http.Request) {
	if len(r.TransferEncoding) > 0 {
		http.Error(w, "no length", http.StatusLengthRequired)
		return
	}
	text, err := io.ReadAll(r.Body)
	if err != nil || int64(len(text)) != r.ContentLength {
		http.Error(w, "another length", http.StatusBadRequest)
		return
	}
	_, _ = w.Write(text)
}

func post(ctx context.Context, url string, b item.Body) (string, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, nil)
	if err != nil {
		return "", err
	}
	attach(r, b)
	resp, err := sharedHTTP().Do(r)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if resp.StatusCode != http.StatusOK {
		err = errors.New(resp.Status + ": " + string(text))
	}
	return string(text), err
}

// L9: over a plain connection a body arrives as it is, whatever its pieces, with
// its length, and so do the next ones on the same connection.
func TestBodyStraight(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(echo))
	defer server.Close()
	defer sharedHTTP().CloseIdleConnections()
	rapid.Check(t, func(rt *rapid.T) {
		texts := []string{"{"}
		for range rapid.IntRange(1, 5).Draw(rt, "pieces") {
			texts = append(texts, strings.Repeat(rapid.StringN(1, 8, -1).Draw(rt, "text"), rapid.SampledFrom([]int{0, 1, 100, 3000, 70_000}).Draw(rt, "times")))
		}
		got, err := post(t.Context(), server.URL, item.TextBody(texts...))
		if want := strings.Join(texts, ""); err != nil || got != want {
			rt.Fatalf("%d bytes of %d: %v", len(got), len(want), err)
		}
	})
}

// A body of which something was read, or of another length, is not taken as a
// whole.
func TestBodyTaken(t *testing.T) {
	all := item.TextBody("abc", "def")
	if _, ok := newBody(all).take(5); ok {
		t.Error("taken for another length")
	}
	begun := newBody(all)
	if _, err := io.ReadFull(begun, make([]byte, 2)); err != nil {
		t.Fatal(err)
	}
	if _, ok := begun.take(6); ok {
		t.Error("taken though it was begun")
	}
	b := newBody(all)
	if buffers, ok := b.take(6); !ok || len(buffers) != 2 {
		t.Errorf("not taken: %q", buffers)
	}
	if rest, err := io.ReadAll(b); err != nil || len(rest) > 0 {
		t.Errorf("there is left %q, %v", rest, err)
	}
}

// S8: a server that does not read what it is sent holds nobody up, and what is
// sent next is whole.
func TestBodyGivenUp(t *testing.T) {
	var silent sync.WaitGroup
	began, end := make(chan bool), make(chan bool)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/silent":
			silent.Add(1)
			defer silent.Done()
			began <- true
			<-end
		case "/early":
			http.Error(w, "no", http.StatusBadRequest)
		default:
			echo(w, r)
		}
	}))
	defer server.Close()
	defer sharedHTTP().CloseIdleConnections()
	long := strings.Repeat("history ", 8<<20)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-began; cancel() }()
	if _, err := post(ctx, server.URL+"/silent", item.TextBody("a", long)); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	close(end)
	silent.Wait()
	if _, err := post(t.Context(), server.URL+"/early", item.TextBody("a", long)); err == nil {
		t.Error("no error")
	}
	if got, err := post(t.Context(), server.URL, item.TextBody("a", long[:100_000], "b")); err != nil || got != "a"+long[:100_000]+"b" {
		t.Errorf("%d bytes, %v", len(got), err)
	}
}
