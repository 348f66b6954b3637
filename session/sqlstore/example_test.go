// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package sqlstore_test

import (
	"context"
	"database/sql"
	"fmt"
	"log"
	"os"
	"path/filepath"

	_ "modernc.org/sqlite"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/rehearsal"
	"github.com/antiphon-go/antiphon/responses"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/session/sqlstore"
)

// A conversation in a file of SQLite's goes on in another process: here each say
// opens the file anew.
func Example() {
	script, err := rehearsal.Parse("talk.script", []byte(`
turn
  say Hello, {{question}}.
round
turn
  say That is the second thing you say here: {{question}}
`))
	if err != nil {
		log.Fatal(err)
	}
	url, stop, err := (&rehearsal.Server{Script: script}).Start()
	if err != nil {
		log.Fatal(err)
	}
	defer stop()
	dir, err := os.MkdirTemp("", "sessions")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)

	file := filepath.Join(dir, "sessions.db")
	a := &agent.Agent{Model: &responses.Client{BaseURL: url}, Request: api.Request{Model: "rehearsal"}}
	for _, text := range []string{"Ada", "Who am I?"} {
		if err := say(context.Background(), a, file, text); err != nil {
			log.Fatal(err)
		}
	}
	// Output:
	// Hello, Ada.
	// That is the second thing you say here: Who am I?
}

func say(ctx context.Context, a *agent.Agent, file, text string) error {
	store, err := sqlstore.OpenSQLite(ctx, file, func(dsn string) (*sql.DB, error) {
		return sql.Open("sqlite", dsn) // with _ "modernc.org/sqlite"
	}, sqlstore.Options{})
	if err != nil {
		return err
	}
	defer store.Close()
	s, err := session.Open(ctx, store, "support/4711")
	if err != nil {
		return err
	}
	res, err := a.Run(ctx, s, item.User(text)) // locks the session while it runs
	if err != nil {
		return err
	}
	fmt.Println(res.Text)
	return nil
}

// A fork goes its own way from an entry of another session. Nothing is copied.
func ExampleStore_Fork() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "sessions")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	store, err := sqlstore.OpenSQLite(ctx, filepath.Join(dir, "sessions.db"), func(dsn string) (*sql.DB, error) {
		return sql.Open("sqlite", dsn)
	}, sqlstore.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()

	s, err := session.Open(ctx, store, "recipe")
	if err != nil {
		log.Fatal(err)
	}
	if _, err := s.Append(ctx, session.InputItem{Item: item.User("Soup?")}, session.InputItem{Item: item.Assistant("Leek.")}); err != nil {
		log.Fatal(err)
	}
	if _, err := s.Fork(ctx, 1, "another"); err != nil { // without the answer
		log.Fatal(err)
	}
	for info, err := range store.List(ctx, session.Query{}) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(info.ID, info.Entries, info.Parent, info.At)
	}
	// Unordered output:
	// recipe 2  0
	// another 1 recipe 1
}
