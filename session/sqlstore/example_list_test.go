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

	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/session/sqlstore"
)

// A page of one user's sessions, and a search in them.
func ExampleStore_List() {
	if err := listOwn(context.Background()); err != nil {
		log.Fatal(err)
	}
	// Output:
	// ann-2: What is the weather?
	// ann-1: Where is the invoice?
	// ann-1, entry 1: Where is the invoice?
}

func listOwn(ctx context.Context) error {
	dir, err := os.MkdirTemp("", "sessions")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	store, err := sqlstore.OpenSQLite(ctx, filepath.Join(dir, "chats.db"), func(dsn string) (*sql.DB, error) { return sql.Open("sqlite", dsn) }, sqlstore.Options{})
	if err != nil {
		return err
	}
	defer store.Close()
	for _, chat := range [][3]string{{"ann-1", "ann", "Where is the invoice?"}, {"bob-1", "bob", "An invoice of Bob's."}, {"ann-2", "ann", "What is the weather?"}} {
		if err := store.Create(ctx, session.Info{ID: chat[0], Owner: chat[1]}); err != nil {
			return err
		}
		s, err := session.Open(ctx, store, chat[0])
		if err != nil {
			return err
		}
		if _, err := s.Append(ctx, session.InputItem{Item: item.User(chat[2])}); err != nil {
			return err
		}
	}

	var page []session.Info
	user, cursor := "ann", ""
	q := session.Query{Owner: user, Limit: 20, After: cursor} // user is not "": that is everybody
	for info, err := range store.List(ctx, q) {
		if err != nil {
			return err
		}
		page = append(page, info)
		cursor = info.Cursor
	}
	for _, info := range page {
		fmt.Printf("%s: %s\n", info.ID, info.Title)
	}
	q.After = cursor
	for info, err := range store.List(ctx, q) {
		if err != nil {
			return err
		}
		fmt.Printf("on the next page: %s\n", info.ID)
	}
	for found, err := range store.Search(ctx, session.Search{Words: "invoice", Query: session.Query{Owner: user}}) {
		if err != nil {
			return err
		}
		fmt.Printf("%s, entry %d: %s\n", found.Session.ID, found.Entry, found.Snippet)
	}
	return nil
}
