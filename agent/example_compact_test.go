// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"context"
	"fmt"
	"log"
	"strings"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
)

// A compaction changes what is sent, not what is kept: Restore takes it back.
func ExampleRestore() {
	ctx := context.Background()
	s := session.New()
	for _, text := range []string{"Call me Ishmael. ", "Some years ago. ", "Never mind how long. "} {
		_, err := s.Append(ctx, session.InputItem{Item: item.User("Go on.")}, session.InputItem{Item: item.Assistant(strings.Repeat(text, 200))})
		if err != nil {
			log.Fatal(err)
		}
	}
	a := &agent.Agent{
		Model:      &memory{replies: []any{[]item.Item{item.Assistant("A sailor tells how he came to sea.")}}},
		Compaction: agent.Compaction{Auto: true, Keep: 1000}, // by a summary
	}
	done, err := a.Compact(ctx, s)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("items replaced:", len(done.Replaced), "shorter:", done.After < done.Before)
	fmt.Println("in the log:", len(session.Explain(s.Entries()).Log), "sent:", len(session.Explain(s.Entries()).Request))

	if _, err := agent.Restore(ctx, s, done.Entry); err != nil {
		log.Fatal(err)
	}
	fmt.Println("sent again:", len(session.Explain(s.Entries()).Request))
	// Output:
	// items replaced: 2 shorter: true
	// in the log: 7 sent: 5
	// sent again: 6
}
