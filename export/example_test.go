// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package export_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/export"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
)

// A session as a page for people, as a transcript, and as lines that are read
// back to the same entries. The key is in none of them.
func Example() {
	ctx := context.Background()
	s := session.New()
	_, err := s.Append(ctx, session.InputItem{Item: item.User("My key is sk-0123456789. Is it safe?")}, session.InputItem{Item: item.Assistant("Not *any more*.")})
	if err != nil {
		fmt.Println(err)
		return
	}
	log := export.Log{Info: session.Info{ID: "advice"}, Entries: s.Log(), Hide: endpoint.NewKey("sk-0123456789").Hide}

	var page, lines bytes.Buffer
	if err := export.HTML(&page, log); err != nil {
		fmt.Println(err)
	}
	fmt.Println(strings.Contains(page.String(), "<p>Not <em>any more</em>.</p>"))

	if err := export.ChatMarkdown(os.Stdout, log); err != nil {
		fmt.Println(err)
	}

	if err := export.JSONLines(&lines, log); err != nil {
		fmt.Println(err)
	}
	for line, err := range export.ReadJSONLines(&lines) {
		switch {
		case err != nil:
			fmt.Println(err)
		case line.Session != nil:
			fmt.Println("session", line.Session.ID, "with entries:", line.Session.Entries)
		default:
			fmt.Printf("entry %d: %T\n", line.Entry.Seq, line.Entry.Body)
		}
	}
	// Output:
	// true
	// <user>
	// RAW|
	// My key is [redacted]. Is it safe?
	// |RAW
	// </user>
	// <assistant>
	// RAW|
	// Not *any more*.
	// |RAW
	// </assistant>
	// session advice with entries: 2
	// entry 1: session.InputItem
	// entry 2: session.InputItem
}
