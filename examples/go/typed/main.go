// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

// The program gets an answer as a Go value. The type determines the schema for the
// model, the answer is checked against the schema and by the type's own method, and
// an answer that does not fit is sent back. Start it with
//
//	go run ./examples/go/typed
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"
	"time"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/rehearsal"
	"github.com/antiphon-go/antiphon/responses"
	"github.com/antiphon-go/antiphon/session"
)

// Invoice is the answer. Its tags become the schema.
type Invoice struct {
	Vendor string  `json:"vendor" minLength:"1"`
	Total  float64 `json:"total" minimum:"0" jsonschema:"in euros, with tax"`
	Due    string  `json:"due" format:"date" jsonschema:"year, month and day"`
}

// Check checks what a schema cannot express. [agent.RunAs] calls it.
func (i Invoice) Check() error {
	due, err := time.Parse(time.DateOnly, i.Due)
	if err == nil && due.Year() < 2000 {
		err = fmt.Errorf("due is in the year %d; the invoice is a recent one", due.Year())
	}
	return err
}

// script is the script of the mock model: the total in the first answer is a text,
// and the second answer fits.
const script = `
turn
  say {"vendor": "Harbour Tea", "total": "41,50", "due": "2026-12-01"}
round
turn
  say {"vendor": "Harbour Tea", "total": 41.5, "due": "2026-12-01"}
`

func main() {
	log.SetFlags(0)
	if err := run(context.Background(), script, os.Stdout); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, script string, out io.Writer) error {
	play, err := rehearsal.Parse("typed.script", []byte(script))
	if err != nil {
		return err
	}
	url, stop, err := (&rehearsal.Server{Script: play}).Start()
	if err != nil {
		return err
	}
	defer stop()
	a := &agent.Agent{
		Model:   &responses.Client{BaseURL: url}, // another BaseURL and a Key select any other model
		Request: api.Request{Model: "rehearsal", Instructions: "You read invoices."},
		Answer:  &agent.Answer{Repairs: 1}, // the default is 2
	}
	s := session.New()
	invoice, err := agent.RunAs[Invoice](ctx, a, s, item.User("Harbour Tea wants 41,50 € by the first of December 2026."))
	if err != nil {
		return err
	}
	for e := range s.Entries() {
		by, text := session.SearchText(e.Body)
		if text != "" {
			fmt.Fprintf(out, "%s: %s\n", by, text)
		}
	}
	_, err = fmt.Fprintf(out, "%+v\n", invoice.Value)
	return err
}
