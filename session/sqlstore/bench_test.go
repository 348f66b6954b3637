// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package sqlstore_test

import (
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/session/sqlstore"
)

// outcome is what a step of a run writes.
func outcome(seq int64) []session.Entry {
	text := `{"type":"function_call_output","call_id":"call_%d","output":"` + strings.Repeat("a line of text\\n", 24) + `"}`
	it, err := item.ParseString(fmt.Sprintf(text, seq))
	if err != nil {
		panic(err) // it is written above
	}
	return []session.Entry{{Seq: seq, Body: session.CallOutput{CallID: fmt.Sprintf("call_%d", seq), Item: it}}}
}

// BenchmarkStep compares a durable step of one session, and of 16 that are
// written at once, with a bare commit of the same bytes. Per step, that is: the
// gates are 3 of bare, and a third of one session's.
func BenchmarkStep(b *testing.B) {
	b.Run("bare", func(b *testing.B) {
		db, err := openSQLite("file:" + filepath.Join(b.TempDir(), "bare.db") + "?_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)")
		if err != nil {
			b.Fatal(err)
		}
		defer db.Close()
		db.SetMaxOpenConns(1)
		if _, err := db.Exec("CREATE TABLE t (id INTEGER PRIMARY KEY, data BLOB)"); err != nil {
			b.Fatal(err)
		}
		stmt, err := db.Prepare("INSERT INTO t (data) VALUES (?)")
		if err != nil {
			b.Fatal(err)
		}
		data, err := session.AppendEntry(nil, outcome(1)[0])
		if err != nil {
			b.Fatal(err)
		}
		for b.Loop() {
			if _, err := stmt.Exec(data); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("one", func(b *testing.B) {
		s, _ := newSQLite(b)
		for seq := int64(0); b.Loop(); seq++ {
			if err := s.Append(b.Context(), "a", seq, outcome(seq+1)); err != nil {
				b.Fatal(err)
			}
		}
	})
	for _, writers := range []int{16} {
		b.Run(fmt.Sprintf("%d at once", writers), func(b *testing.B) {
			s, _ := newSQLite(b)
			var wg sync.WaitGroup
			var left atomic.Int64
			left.Store(int64(b.N))
			for w := range writers {
				wg.Go(func() {
					id := fmt.Sprint(w)
					for seq := int64(0); left.Add(-1) >= 0; seq++ {
						if err := s.Append(b.Context(), id, seq, outcome(seq+1)); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			wg.Wait()
		})
	}
}

// longSession writes a session of 10 000 items in 25 000 entries and 200 MB of
// images.
func longSession(tb testing.TB, s *sqlstore.Store) {
	tb.Helper()
	var seq int64
	add := func(bodies ...session.Body) {
		var list []session.Entry
		for _, b := range bodies {
			seq++
			list = append(list, session.Entry{Seq: seq, Body: b})
		}
		if err := s.Append(tb.Context(), "long", seq-int64(len(bodies)), list); err != nil {
			tb.Fatal(err)
		}
	}
	data := make([]byte, 2<<20)
	words := strings.Repeat("words of a model ", 20)
	for turn := range 3334 {
		id := fmt.Sprintf("call_%024d", turn)
		reasoning := item.Must(&item.Message{Role: item.RoleAssistant, Content: item.Content{Text: words}})
		call := item.Must(&item.FunctionCall{CallID: id, Name: "read_file", Arguments: `{"path":"a/b/c.go"}`})
		output := item.Must(&item.FunctionCallOutput{CallID: id, Output: item.Content{Text: words}})
		if turn%33 == 0 && turn < 3300 {
			for i := range data[:8] {
				data[i] = byte(rand.Uint32())
			}
			output = item.Must(&item.FunctionCallOutput{CallID: id, Output: item.Parts(&item.InputImage{ImageURL: "data:image/png;base64," + base64.StdEncoding.EncodeToString(data)})})
		}
		add(session.TurnStarted{Turn: turn}, session.OutputItem{Turn: turn, Item: reasoning})
		add(session.OutputItem{Turn: turn, Item: call},
			session.TurnEnded{Turn: turn, ResponseID: id, Status: "completed", Usage: &api.Usage{InputTokens: 100, OutputTokens: 10, TotalTokens: 110}})
		add(session.Approval{CallID: id, Allowed: true}, session.CallStarted{CallID: id})
		add(session.CallOutput{CallID: id, Item: output})
	}
}

// BenchmarkOpen reads that session: the gates are 150 ms and 30 MB of heap.
func BenchmarkOpen(b *testing.B) {
	s, file := newSQLite(b)
	longSession(b, s)
	if err := s.Close(); err != nil {
		b.Fatal(err)
	}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	var keep *session.Session
	n := 0
	b.ReportAllocs()
	for b.Loop() {
		s, err := sqlstore.OpenSQLite(b.Context(), file, openSQLite, sqlstore.Options{})
		if err != nil {
			b.Fatal(err)
		}
		if keep, err = session.Open(b.Context(), s, "long"); err != nil {
			b.Fatal(err)
		}
		if n++; n == 1 {
			runtime.ReadMemStats(&after)
			b.ReportMetric(float64(after.TotalAlloc-before.TotalAlloc)/1e6, "MB-allocated")
			runtime.GC()
			runtime.ReadMemStats(&after)
			b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/1e6, "MB-live")
		}
		_ = s.Close() // it was only read
	}
	b.ReportMetric(float64(len(keep.Log())), "entries")
}
