// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

// The program is a chat backend for many users: each has conversations of their own,
// and an answer is streamed as server-sent events. A page that must lose nothing when
// it connects again is in examples/chat. Start it with
//
//	go run ./examples/go/chat
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/rehearsal"
	"github.com/antiphon-go/antiphon/responses"
	"github.com/antiphon-go/antiphon/session"
)

// Chat serves conversations. Users maps their tokens to names.
type Chat struct {
	Agent *agent.Agent
	Store session.Catalog
	Users map[string]string
}

// ServeHTTP answers GET /, the titles of the user's conversations, and POST /{name},
// whose body is what the user says there.
func (c *Chat) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	user, known := c.Users[r.Header.Get("Authorization")]
	if !known {
		http.Error(w, "say who you are: Authorization: Bearer TOKEN", http.StatusUnauthorized)
		return
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, r *http.Request) {
		for info, err := range c.Store.List(r.Context(), session.Query{Owner: user, Limit: 50}) {
			if err != nil {
				http.Error(w, err.Error(), http.StatusInternalServerError)
				return
			}
			fmt.Fprintf(w, "%s: %s\n", info.Name, info.Title)
		}
	})
	mux.HandleFunc("POST /{name}", func(w http.ResponseWriter, r *http.Request) {
		text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
		if err == nil {
			err = c.say(r.Context(), w, user, r.PathValue("name"), string(text))
		}
		if err != nil { // in a stream that has begun, the error is its last line
			http.Error(w, err.Error(), http.StatusBadRequest)
		}
	})
	mux.ServeHTTP(w, r)
}

// say runs the agent in a conversation of the user and streams its events.
func (c *Chat) say(ctx context.Context, w http.ResponseWriter, user, name, text string) error {
	// The user's name is part of the id, so that no name leads to another's session.
	id := fmt.Sprintf("%q %q", user, name)
	err := c.Store.Create(ctx, session.Info{ID: id, Name: name, Owner: user})
	if err != nil && !errors.Is(err, session.ErrExists) {
		return err
	}
	s, err := session.Open(ctx, c.Store, id)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "text/event-stream")
	out := http.NewResponseController(w)
	// The run goes on if the user closes the page: ctx ends then, and with it only the stream.
	for ev, err := range c.Agent.Stream(context.WithoutCancel(ctx), s, item.User(text)) {
		if err != nil {
			return err
		}
		line, err := agent.AppendEvent(nil, ev)
		if err != nil {
			return err
		}
		fmt.Fprintf(w, "data: %s\n\n", line)
		_ = out.Flush() // if nobody reads on, the log still gets the answer
	}
	return nil
}

func main() {
	log.SetFlags(0)
	url, stop, err := (&rehearsal.Server{}).Start()
	if err != nil {
		log.Fatal(err)
	}
	defer stop()
	chat := &Chat{
		Agent: &agent.Agent{Model: &responses.Client{BaseURL: url}, Request: api.Request{Model: "rehearsal"}},
		Store: new(session.Memory), // or session/sqlstore, which survives a restart
		Users: map[string]string{"Bearer a-secret-of-ann": "ann", "Bearer a-secret-of-bob": "bob"},
	}
	const at = "127.0.0.1:8099"
	fmt.Printf("curl -N -H 'Authorization: Bearer a-secret-of-ann' -d 'Hello.' http://%s/first\n", at)
	fmt.Printf("curl -H 'Authorization: Bearer a-secret-of-ann' http://%s/\n", at)
	log.Fatal(http.ListenAndServe(at, http.NewCrossOriginProtection().Handler(chat)))
}
