// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package host_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"

	_ "modernc.org/sqlite"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/host"
	_ "github.com/antiphon-go/antiphon/session/sqlstore"
	"github.com/antiphon-go/antiphon/session/store"
)

// ask serves an agent's file: POST /ask/NAME says the body to it in the session
// NAME, which goes on with each request.
func ask(file string, sessions store.Store) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		h, err := host.Open(r.Context(), host.Config{File: file, Store: sessions, Session: r.PathValue("name")})
		if err != nil {
			log.Print(err) // it may name files of this machine
			http.Error(w, "no such agent or session", http.StatusNotFound)
			return
		}
		defer h.Close()
		res, err := h.Run(r.Context(), string(text))
		switch {
		case err == nil:
			fmt.Fprintln(w, res.Text)
		case errors.Is(err, agent.ErrNothingToSend):
			http.Error(w, err.Error(), http.StatusBadRequest)
		default:
			log.Print(err)
			http.Error(w, "the agent failed", http.StatusBadGateway)
		}
	}
}

// An agent's file in a Go server. Nobody named a model here, so the rehearsal model
// answers; Config.Endpoint and Config.Environment name others.
func Example_server() {
	dir, err := os.MkdirTemp("", "host")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "agent.md")
	if err := os.WriteFile(file, []byte("<config model=\"rehearsal:talk.script\"/>\n<system>Be brief.</system>\n"), 0o600); err != nil {
		log.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "talk.script"), []byte("turn\n  say You said: {{question}}\nround\nturn\n  say And now: {{question}}\n"), 0o600); err != nil {
		log.Fatal(err)
	}
	sessions, err := store.Open(context.Background(), filepath.Join(dir, "sessions.db"), store.Options{Create: true})
	if err != nil {
		log.Fatal(err)
	}
	defer sessions.Close()

	mux := http.NewServeMux()
	mux.Handle("POST /ask/{name}", ask(file, sessions))
	server := httptest.NewServer(mux)
	defer server.Close()

	for _, text := range []string{"", "hello", "goodbye"} {
		resp, err := http.Post(server.URL+"/ask/ann", "text/plain", strings.NewReader(text))
		if err != nil {
			log.Fatal(err)
		}
		answer, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		fmt.Printf("%d %s", resp.StatusCode, answer)
	}
	// Output:
	// 400 nothing to send: the history holds no message that waits for an answer
	// 200 You said: hello
	// 200 And now: goodbye
}
