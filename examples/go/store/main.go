// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

// The program keeps conversations in a store of its own: a folder with a file for each
// session. An append is one line, so that a crash leaves all of it or nothing. Start it
// twice with
//
//	go run ./examples/go/store
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"path/filepath"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/rehearsal"
	"github.com/antiphon-go/antiphon/responses"
	"github.com/antiphon-go/antiphon/session"
)

func main() {
	log.SetFlags(0)
	dir := filepath.Join(os.TempDir(), "antiphon-example")
	if err := errors.Join(os.MkdirAll(dir, 0o700), run(context.Background(), &Folder{dir: dir}, os.Stdout)); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, store session.Store, out io.Writer) error {
	url, stop, err := new(rehearsal.Server).Start()
	if err != nil {
		return err
	}
	defer stop()
	a := &agent.Agent{Model: &responses.Client{BaseURL: url}, Request: api.Request{Model: "rehearsal"}}
	s, err := session.Open(ctx, store, "talk") // goes on where the last run of the program ended
	if err != nil {
		return err
	}
	res, err := a.Run(ctx, s, item.User("Hello."))
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "%s; the session has %d entries\n", res.Why, len(s.Log()))
	return err
}
