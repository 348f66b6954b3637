// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agents_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
)

// What clients see of a session is found in one pass over its log: for twice as many responses
// that is twice the work, not four times. L9
func TestLongHistory(t *testing.T) {
	w := serving(t, reader, "turn\n  call read_file {\"path\": \"note.txt\"}\nturn\n  say It says: {{output \"read_file\" 1}}\n", nil)
	write(t, w.dir, "note.txt", "Rain.")
	first := w.create(`{"model":"it","input":"What does it say?"}`)
	name := strings.Split(first.ID, "_")[1]
	s, err := session.Open(t.Context(), w.b.Store, "api-"+name)
	if err != nil {
		t.Fatal(err)
	}
	one := s.Log()[slices.IndexFunc(s.Log(), isNote):]
	one = slices.Clone(one[:slices.IndexFunc(one[1:], isNote)+2])
	last, responses := first.ID, 1
	grow := func(to int) { // by copies of the first response
		for ; responses < to; responses++ {
			last = fmt.Sprintf("resp_%s_%d", name, len(s.Log())+1)
			var bodies []session.Body
			for _, e := range one {
				body := e.Body
				if n, ok := body.(session.Note); ok {
					it, err := item.ParseString(strings.ReplaceAll(n.Item.JSON(), first.ID, last))
					if err != nil {
						t.Fatal(err)
					}
					body = session.Note{Item: it}
				}
				bodies = append(bodies, body)
			}
			if _, err := s.Append(t.Context(), bodies...); err != nil {
				t.Fatal(err)
			}
		}
	}
	work := func() float64 {
		return testing.AllocsPerRun(1, func() {
			items, err := w.b.Items(t.Context(), last)
			if err != nil || len(items) != 3*responses-2 {
				t.Fatalf("%d items of %d responses, %v", len(items), responses, err)
			}
			rec, err := w.b.Get(t.Context(), last)
			if err != nil {
				t.Fatal(err)
			}
			items = append(append(items, rec.Response.Output...), item.User("Sure?"))
			if in, n, err := w.b.Recall(t.Context(), "it", items); in != last || n != len(items)-1 || err != nil {
				t.Fatalf("%q, %d, %v", in, n, err)
			}
		})
	}
	grow(40)
	few := work()
	grow(80)
	if many := work(); many > 2.6*few {
		t.Errorf("%.0f allocations for twice as many responses, which took %.0f", many, few)
	}
}

func isNote(e session.Entry) bool {
	_, ok := e.Body.(session.Note)
	return ok
}
