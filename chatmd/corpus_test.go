// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package chatmd

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/antiphon-go/antiphon/internal/apispec"
	"github.com/antiphon-go/antiphon/item"
)

// recorded calls visit for every item in the named member of the files of a
// folder of the corpus.
func recorded(t *testing.T, folder, member string, visit func(file string, it item.Item)) {
	files, err := filepath.Glob(filepath.Join(apispec.Shared(t, "corpus"), folder, "*.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no files in %s: %v", folder, err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var whole map[string]json.RawMessage
		if json.Unmarshal(data, &whole) != nil {
			continue
		}
		list, err := item.ParseList(string(whole[member]))
		if err != nil {
			continue // an input that is a plain string
		}
		for _, it := range list {
			visit(filepath.Base(file), it)
		}
	}
}

// M1: every recorded output item is written and read back; the usual ones get
// the elements that a person can read.
func TestRecordedOutputItems(t *testing.T) {
	short, total := map[item.Type]int{}, map[item.Type]int{}
	recorded(t, "responses", "output", func(file string, it item.Item) {
		total[it.Type()]++
		if text := roundTrip(t, it); !strings.HasPrefix(text, "<item") {
			short[it.Type()]++
		} else if tags := "message function_call reasoning"; strings.Contains(tags, string(it.Type())) {
			t.Logf("%s: %.300s", file, it.JSON())
		}
	})
	readable, all := 0, 0
	for _, typ := range []item.Type{item.TypeMessage, item.TypeFunctionCall, item.TypeCustomToolCall, item.TypeReasoning} {
		t.Logf("%s: %d of %d in a short element", typ, short[typ], total[typ])
		readable, all = readable+short[typ], all+total[typ]
	}
	if readable*100 < all*95 {
		t.Errorf("%d of %d items are readable, want 95%%", readable, all)
	}
}

// M1: the same for what clients sent as history.
func TestRecordedInputItems(t *testing.T) {
	short, total := map[item.Type]int{}, map[item.Type]int{}
	recorded(t, "requests", "input", func(_ string, it item.Item) {
		if _, ok := it.Member("type"); !ok {
			roundTrip(t, it) // a message without a type is kept as it is
			return
		}
		total[it.Type()]++
		if text := roundTrip(t, it); !strings.HasPrefix(text, "<item") {
			short[it.Type()]++
		}
	})
	for _, typ := range []item.Type{item.TypeMessage, item.TypeFunctionCall, item.TypeFunctionCallOutput, item.TypeReasoning} {
		t.Logf("%s: %d of %d in a short element", typ, short[typ], total[typ])
		if short[typ]*100 < total[typ]*95 {
			t.Errorf("%s: %d of %d are readable, want 95%%", typ, short[typ], total[typ])
		}
	}
}
