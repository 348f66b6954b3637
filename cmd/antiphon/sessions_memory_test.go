// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/base64"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"strings"
	"testing"
	"time"

	"github.com/antiphon-go/antiphon/export"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/session/sqlstore"
)

// peakHeap returns the bytes by which the live heap grew at most while do ran: what
// the collector, which runs often, found in use. What waits to be freed does not
// count, since a collector that falls behind on a busy machine leaves more of it.
// Limits lie halfway between what is needed and what keeping everything took.
func peakHeap(t *testing.T, do func()) int64 {
	t.Helper()
	defer debug.SetGCPercent(debug.SetGCPercent(20))
	runtime.GC()
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	heap := func() int64 {
		metrics.Read(sample)
		return int64(sample[0].Value.Uint64())
	}
	before, peak := heap(), int64(0)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		do()
	}()
	for {
		peak = max(peak, heap())
		select {
		case <-ended:
			return peak - before
		default:
			time.Sleep(time.Millisecond)
		}
	}
}

// quietly runs the program without keeping what it prints.
func quietly(t *testing.T, args ...string) {
	t.Helper()
	var told strings.Builder
	if code := run(t.Context(), args, nil, stdio{strings.NewReader(""), io.Discard, &told}); code != 0 {
		t.Errorf("exit code %d\n%s", code, told.String())
	}
}

// J3: what a session is too long for is a person's patience, not the memory: the
// request and the lines are written, and lines are read, piece by piece.
func TestSessionsNeedLittleMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: writes and reads a session of many megabytes")
	}
	const mb = 1 << 20
	dir := t.TempDir()
	place := filepath.Join(dir, "s.db")
	store, err := sqlstore.OpenSQLite(t.Context(), place, opener("sqlite"), sqlstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s, err := session.Open(t.Context(), store, "long")
	if err != nil {
		t.Fatal(err)
	}
	const entries = 30_000
	text := strings.Repeat("words and ", 25)
	for n := 0; n < entries; n += 1000 {
		var bodies []session.Body
		for i := range 500 {
			bodies = append(bodies, session.InputItem{Item: item.User(fmt.Sprint(n+i, text))}, session.RunStarted{})
		}
		if _, err := s.Append(t.Context(), bodies...); err != nil {
			t.Fatal(err)
		}
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	s = nil
	sessions := []string{"sessions", "--store", place}
	check := func(what string, limit int64, args ...string) {
		t.Helper()
		if peak := peakHeap(t, func() { quietly(t, append(sessions, args...)...) }); peak > limit {
			t.Errorf("%s: the heap grew by %d MB, want at most %d", what, peak/mb, limit/mb)
		} else {
			t.Logf("%s: the heap grew by %d KB", what, peak>>10)
		}
	}
	lines := filepath.Join(dir, "long.jsonl")
	check("show --as-sent --json", 80*mb, "show", "long", "--as-sent", "--json")
	check("export", 16*mb, "export", "long", "-o", lines)
	check("import", 16*mb, "import", lines)

	images := filepath.Join(dir, "images.jsonl")
	f, err := os.Create(images)
	if err != nil {
		t.Fatal(err)
	}
	log := export.Log{Info: session.Info{ID: "images"}}
	for n := range 24 {
		data := make([]byte, 2*mb)
		data[n] = 1
		image := `{"type":"message","role":"user","content":[{"type":"input_image","image_url":"data:image/png;base64,` + base64.StdEncoding.EncodeToString(data) + `"}]}`
		log.Entries = append(log.Entries, session.Entry{Seq: int64(n + 1), Body: session.InputItem{Item: itemOf(t, image)}})
	}
	if err := export.JSONLines(f, log); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	log = export.Log{}
	check("import of images", 72*mb, "import", images, "--name", "pictures")
	check("export of images", 72*mb, "export", "pictures", "-o", filepath.Join(dir, "out.jsonl"))
}
