// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package main

import (
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// Thousands of sockets that send nothing, or a part of a head, do
// not keep others from being served: there are more than there may be, so those that waited longest are
// closed, and a stream that was open before goes on. There are
// ANTIPHON_IDLE_SOCKETS, or as many as files may be open. The list of models says what an
// agent does. V5
func TestServeIdleSockets(t *testing.T) {
	sockets := 2000
	if testing.Short() {
		sockets = 500
	}
	if text := os.Getenv("ANTIPHON_IDLE_SOCKETS"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil {
			t.Fatal(err)
		}
		sockets = n
	}
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	if most := int(min(limit.Cur, 1<<20)) - 500; most < sockets {
		t.Logf("%d files may be open here", limit.Cur)
		sockets = most
	}
	s := servedAgent(t, "--max-connections", strconv.Itoa(sockets/2))
	if status, body := s.send(http.MethodGet, "models", ""); status != http.StatusOK || !strings.Contains(body, `"description":"Waits for the test."`) {
		t.Errorf("%d %s", status, body)
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.base+"/responses", strings.NewReader(`{"model":"it","input":"x","stream":true}`))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	stream, err := new(http.Transport).RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Body.Close()
	end := s.running()
	at := strings.TrimSuffix(strings.TrimPrefix(s.base, "http://"), "/v1")
	var first net.Conn
	for i := range sockets {
		conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", at)
		if err != nil {
			t.Fatalf("socket %d: %v", i, err)
		}
		defer conn.Close()
		if first == nil {
			first = conn
		}
		if i%2 == 1 {
			_, _ = io.WriteString(conn, "POST /v1/responses HTTP/1.1\r\nHost: localh") // the server may have closed it
		}
		if i%(sockets/10) == 0 {
			http.DefaultClient.CloseIdleConnections()
			if status, body := s.send(http.MethodGet, "models/it", ""); status != http.StatusOK {
				t.Errorf("after %d sockets: %d %s", i, status, body)
			}
		}
	}
	if _, err := first.Read(make([]byte, 1)); err == nil {
		t.Error("the socket that waited longest got an answer")
	}
	end.Close()
	if text, err := io.ReadAll(stream.Body); err != nil || !strings.Contains(string(text), "response.completed") {
		t.Errorf("the stream broke off: %v %.200s", err, text)
	}
	s.process.signal(t, syscall.SIGTERM)
	if code, out := s.process.wait(t); code != 0 {
		t.Errorf("exit code %d: %s", code, out)
	}
}
