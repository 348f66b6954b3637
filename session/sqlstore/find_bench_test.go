// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package sqlstore_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/session/sqlstore"
)

// manySessions is how many sessions BenchmarkFind has: the gate for a page of
// them is 50 ms.
const manySessions = 100_000

// someWords are words as frequent as they are in texts: word0 is in most, word3000
// in few.
func someWords(r *rand.Rand, n int) string {
	var b strings.Builder
	for range n {
		fmt.Fprintf(&b, "word%d ", int(r.ExpFloat64()*300))
	}
	return b.String()
}

func fill(b *testing.B, s *sqlstore.Store) {
	b.Helper()
	var wg sync.WaitGroup
	const writers = 32
	for w := range writers {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(1, uint64(w)))
			for n := w; n < manySessions; n += writers {
				i := session.Info{ID: fmt.Sprintf("id-%06d", n), Owner: fmt.Sprint("owner", n%1000), Path: fmt.Sprint("/agent", n%50), Name: fmt.Sprint("name", n)}
				if n%10 == 0 {
					i.Tags = []string{"tagged", fmt.Sprint("t", n%100)}
				}
				if err := s.Create(b.Context(), i); err != nil {
					b.Error(err)
					return
				}
				err := s.Append(b.Context(), i.ID, 0, []session.Entry{
					{Seq: 1, Body: session.InputItem{Item: item.User(someWords(r, 30))}},
					{Seq: 2, Body: session.OutputItem{Turn: 1, Item: item.Must(&item.Message{Role: item.RoleAssistant, Content: item.Content{Text: someWords(r, 60)}})}},
				})
				if err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
}

// BenchmarkFind takes a page of 50 out of 100 000 sessions, by a list and by a
// search, and finds one by its name and the beginning of its id.
func BenchmarkFind(b *testing.B) {
	for _, kind := range []string{"sqlite", "postgres"} {
		b.Run(kind, func(b *testing.B) {
			var s *sqlstore.Store
			if kind == "sqlite" {
				s, _ = newSQLite(b)
			} else {
				s = newPostgres(b, postgresDSN(b))
			}
			began := time.Now()
			fill(b, s)
			b.Logf("%d sessions were made in %v", manySessions, time.Since(began).Round(time.Second))
			began = time.Now()
			for _, err := range s.Search(b.Context(), session.Search{Words: "word1", Query: session.Query{Limit: 1}}) {
				if err != nil {
					b.Fatal(err)
				}
			}
			b.Logf("they were indexed in %v", time.Since(began).Round(time.Millisecond))
			benchmarkPages(b, s)
		})
	}
}

func benchmarkPages(b *testing.B, s *sqlstore.Store) {
	for _, q := range []session.Query{
		{}, {Archived: true, Nested: true}, {Owner: "owner7"}, {Path: "/agent7"}, {Path: "/agent7", Owner: "owner7"}, {Tags: []string{"tagged"}},
		{Tags: []string{"t10", "tagged"}}, {Tags: []string{"tagged"}, Owner: "owner10"}, {Name: "name777"}, {Name: "name777", Path: "/agent27"}, {Prefix: "id-0"}, {Name: "none"}, {Prefix: "none"},
	} {
		q.Limit = 50
		b.Run(fmt.Sprintf("list %+v", q), func(b *testing.B) {
			for b.Loop() {
				after := q
				for range 2 { // the first page and the next one
					for i, err := range s.List(b.Context(), after) {
						if err != nil {
							b.Fatal(err)
						}
						after.After = i.Cursor
					}
					if after.After == "" {
						break
					}
				}
			}
		})
	}
	for _, what := range []session.Search{
		{Words: "word0"}, {Words: "word2500"}, {Words: "word1 word2 word300"}, {Words: `"word1 word2"`}, {Words: "nothing"},
		{Words: "word0", Query: session.Query{Owner: "owner7"}}, {Words: "word0", Query: session.Query{Path: "/agent7"}}, {Words: "word0", Query: session.Query{Tags: []string{"t10"}}},
	} {
		what.Limit = 50
		b.Run(fmt.Sprintf("search %q %+v", what.Words, what.Query), func(b *testing.B) {
			n := 0
			for b.Loop() {
				n = 0
				for _, err := range s.Search(b.Context(), what) {
					if err != nil {
						b.Fatal(err)
					}
					n++
				}
			}
			b.ReportMetric(float64(n), "found")
		})
	}
}
