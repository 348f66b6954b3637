// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package session_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"strings"
	"time"

	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
)

// A session that is opened again has all that was recorded, also by another process.
func ExampleOpen() {
	ctx := context.Background()
	store := new(session.Memory)
	s, err := session.Open(ctx, store, "ann")
	if err != nil {
		log.Fatal(err)
	}
	if _, err := s.Append(ctx, session.InputItem{Item: item.User("Hello?")}); err != nil {
		log.Fatal(err)
	}
	again, err := session.Open(ctx, store, "ann")
	if err != nil {
		log.Fatal(err)
	}
	for e := range again.Entries() {
		fmt.Println(e.Seq, session.Kind(e.Body))
	}
	// Output:
	// 1 given
}

// Only one writer at a time holds a session. The others learn at once that it is busy.
func ExampleSession_Lock() {
	ctx := context.Background()
	store := new(session.Memory)
	one, err := session.Open(ctx, store, "ann")
	if err != nil {
		log.Fatal(err)
	}
	two, err := session.Open(ctx, store, "ann")
	if err != nil {
		log.Fatal(err)
	}
	unlock, err := one.Lock(ctx)
	if err != nil {
		log.Fatal(err)
	}
	_, err = two.Lock(ctx)
	fmt.Println(errors.Is(err, session.ErrBusy))
	if err := unlock(); err != nil {
		log.Fatal(err)
	}
	_, err = two.Lock(ctx)
	fmt.Println(err)
	// Output:
	// true
	// <nil>
}

// Two programs append without a lock: the second one learns that the session has
// moved on, and nothing is overwritten.
func ExampleSession_Append_conflict() {
	ctx := context.Background()
	store := new(session.Memory)
	one, err := session.Open(ctx, store, "ann")
	if err != nil {
		log.Fatal(err)
	}
	two, err := session.Open(ctx, store, "ann")
	if err != nil {
		log.Fatal(err)
	}
	if _, err := one.Append(ctx, session.InputItem{Item: item.User("First.")}); err != nil {
		log.Fatal(err)
	}
	_, err = two.Append(ctx, session.InputItem{Item: item.User("Second.")})
	fmt.Println(errors.Is(err, session.ErrConflict))
	if err := two.Refresh(ctx); err != nil {
		log.Fatal(err)
	}
	entries, err := two.Append(ctx, session.InputItem{Item: item.User("Second.")})
	fmt.Println(len(entries), entries[0].Seq, err)
	// Output:
	// true
	// 1 2 <nil>
}

// The JSON of an entry is one line, and an entry is read back from it.
func ExampleAppendEntry() {
	e := session.Entry{
		Seq:  1,
		Time: time.Date(2026, 5, 17, 12, 0, 0, 0, time.UTC),
		Body: session.InputItem{Item: item.User("Hello?")},
	}
	line, err := session.AppendEntry(nil, e)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(string(line))
	back, err := session.ParseEntry(line)
	fmt.Println(back.Seq, session.Kind(back.Body), err)
	// Output:
	// {"seq":1,"time":"2026-05-17T12:00:00Z","kind":"given","item":{"type":"message","content":[{"type":"input_text","text":"Hello?"}],"role":"user"}}
	// 1 given <nil>
}

// A view is the fold of a log: the items of the next request, and the calls that have
// no output yet.
func ExampleView() {
	ctx := context.Background()
	s := session.New()
	_, err := s.Append(ctx,
		session.InputItem{Item: item.User("What time is it?")},
		session.OutputItem{Turn: 1, Item: item.Call("call_1", "clock", `{}`)},
	)
	if err != nil {
		log.Fatal(err)
	}
	var v session.View
	for e := range s.Entries() {
		v.Apply(e)
	}
	fmt.Println(v.Items().Len(), "item to send")
	for _, call := range v.Open() {
		fmt.Println("open:", call.CallID)
	}
	// Output:
	// 1 item to send
	// open: call_1
}

// A note stays in the log, for people and tools, and is never sent to a model.
func ExampleNote() {
	ctx := context.Background()
	s := session.New()
	_, err := s.Append(ctx,
		session.InputItem{Item: item.User("Hello?")},
		session.Note{Item: item.User("Seen by support.")},
	)
	if err != nil {
		log.Fatal(err)
	}
	var v session.View
	for e := range s.Entries() {
		v.Apply(e)
	}
	fmt.Println(len(s.Log()), "entries,", v.Items().Len(), "item to send")
	// Output:
	// 2 entries, 1 item to send
}

// A catalog finds the sessions of one user by their labels.
func ExampleCatalog_Label() {
	ctx := context.Background()
	var catalog session.Catalog = new(session.Memory)
	for _, id := range []string{"s1", "s2"} {
		if err := catalog.Create(ctx, session.Info{ID: id, Owner: "ann"}); err != nil {
			log.Fatal(err)
		}
	}
	title := "The printer"
	if err := catalog.Label(ctx, "s2", session.Labels{Title: &title, Tags: []string{"bug", "customer=4711"}}); err != nil {
		log.Fatal(err)
	}
	for info, err := range catalog.List(ctx, session.Query{Owner: "ann", Tags: []string{"bug"}}) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(info.ID, info.Title, info.Tags)
	}
	// Output:
	// s2 The printer [bug customer=4711]
}

// A search finds what was said, in any session of the store.
func ExampleSearcher() {
	ctx := context.Background()
	store := new(session.Memory)
	for id, text := range map[string]string{"boats": "When does the ferry to Askøy leave?", "books": "Where is Emma?"} {
		if err := store.Create(ctx, session.Info{ID: id}); err != nil {
			log.Fatal(err)
		}
		s, err := session.Open(ctx, store, id)
		if err != nil {
			log.Fatal(err)
		}
		if _, err := s.Append(ctx, session.InputItem{Item: item.User(text)}); err != nil {
			log.Fatal(err)
		}
	}
	var searcher session.Searcher = store
	for found, err := range searcher.Search(ctx, session.Search{Words: "ferry leave"}) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(found.Session.ID, found.Entry, found.By, found.Snippet)
	}
	// Output:
	// boats 1 user When does the ferry to Askøy leave?
}

// A page of a long list: the next page begins after the cursor of the last session.
func ExampleQuery_after() {
	ctx := context.Background()
	store := new(session.Memory)
	for _, id := range []string{"a1", "a2", "a3", "b1"} {
		if err := store.Create(ctx, session.Info{ID: id}); err != nil {
			log.Fatal(err)
		}
	}
	q := session.Query{Prefix: "a", Limit: 2}
	for range 2 {
		var page []string
		for info, err := range store.List(ctx, q) {
			if err != nil {
				log.Fatal(err)
			}
			page, q.After = append(page, info.ID), info.Cursor
		}
		fmt.Println(strings.Join(page, " "))
	}
	// Output:
	// a1 a2
	// a3
}

// Large payloads are stored once, by their hash, beside the log.
func ExampleBlobs() {
	ctx := context.Background()
	store := new(session.Memory)
	if err := store.Create(ctx, session.Info{ID: "s"}); err != nil {
		log.Fatal(err)
	}
	var blobs session.Blobs = store
	one, err := blobs.PutBlob(ctx, "s", []byte("a picture"))
	if err != nil {
		log.Fatal(err)
	}
	two, err := blobs.PutBlob(ctx, "s", []byte("a picture"))
	if err != nil {
		log.Fatal(err)
	}
	b, size, err := blobs.OpenBlob(ctx, one)
	if err != nil {
		log.Fatal(err)
	}
	defer b.Close()
	fmt.Println(one == two, size)
	// Output:
	// true 9
}
