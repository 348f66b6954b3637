// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/internal/apispec"
	"github.com/antiphon-go/antiphon/item"
)

// eachFile calls f with every recorded file that matches the pattern. It skips
// the test where the corpus is missing.
func eachFile(t *testing.T, pattern string, f func(t *testing.T, name string, data []byte)) {
	t.Helper()
	dir := apispec.Shared(t, "corpus")
	names, err := filepath.Glob(filepath.Join(dir, filepath.FromSlash(pattern)))
	if err != nil || len(names) == 0 {
		t.Fatalf("no files match %s: %v", pattern, err)
	}
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		f(t, filepath.Base(name), data)
	}
	t.Logf("%s: %d files", pattern, len(names))
}

// tally counts by name for the log of a verbose run.
type tally map[string]int

func (c tally) log(t *testing.T) {
	t.Helper()
	for _, name := range slices.Sorted(func(yield func(string) bool) {
		for k := range c {
			if !yield(k) {
				return
			}
		}
	}) {
		t.Logf("%6d %s", c[name], name)
	}
}

// checkItem proves W8 and W7 for one recorded item: the bytes are kept, and
// decoding loses nothing.
func checkItem(t *testing.T, name string, it item.Item) {
	t.Helper()
	again := parse(t, it.JSON())
	if again != it {
		t.Errorf("%s: parsing changed the item", name)
	}
	v, err := it.Decode()
	if err != nil {
		t.Errorf("%s: %v\n%.300s", name, err, it.JSON())
		return
	}
	out := encode(t, v)
	sameJSON(t, name+": decode and encode changed the item", out.JSON(), typed(it))
	if twice := encode(t, decode(t, out)); twice != out {
		t.Errorf("%s: the second encoding differs:\n%s\n%s", name, out.JSON(), twice.JSON())
	}
}

// typed is the item's JSON with the type member that an easy message leaves out.
func typed(it item.Item) string {
	if _, ok := it.Member("type"); ok || it.Type() != item.TypeMessage {
		return it.JSON()
	}
	return `{"type":"message",` + strings.TrimPrefix(it.JSON(), "{")
}

// W7 W8 W10: every recorded request, and every item in one.
func TestCorpusRequests(t *testing.T) {
	types := tally{}
	for _, folder := range []string{"requests/*.json", "spec_examples/requests/*.json"} {
		eachFile(t, folder, func(t *testing.T, name string, data []byte) {
			req, err := api.ParseRequest(data)
			if err != nil {
				t.Errorf("%s: %v", name, err)
				return
			}
			for _, it := range req.InputItems() {
				types[string(it.Type())]++
				checkItem(t, name, it)
			}
			out, err := req.AppendJSON(nil)
			if err != nil {
				t.Errorf("%s: %v", name, err)
				return
			}
			sameJSON(t, name, string(out), string(data))
		})
	}
	types.log(t)
}

// W7 W8 W9: every recorded response; its output items go into the next request
// as they are.
func TestCorpusResponses(t *testing.T) {
	types := tally{}
	for _, folder := range []string{"responses/*.json", "spec_examples/responses/*.json"} {
		eachFile(t, folder, func(t *testing.T, name string, data []byte) {
			resp, err := api.ParseResponse(data)
			if err != nil {
				t.Errorf("%s: %v", name, err)
				return
			}
			if _, ok := memberOf(t, string(data), "output"); !ok {
				return // an example of another path: a list, a count, a deletion
			}
			for _, it := range resp.Output {
				types[string(it.Type())]++
				checkItem(t, name, it)
				if !strings.Contains(string(data), it.JSON()) {
					t.Errorf("%s: an item's bytes are not those of the file", name)
				}
			}
			next := api.Request{Input: item.NewList(resp.Output...)}
			body, err := next.AppendJSON(nil)
			if want := `{"input":` + jsonOf(resp.Output) + `}`; err != nil || string(body) != want {
				t.Errorf("%s: the next request changed the items: %v", name, err)
			}
			out, err := resp.AppendJSON(nil)
			if err != nil {
				t.Errorf("%s: %v", name, err)
				return
			}
			sameJSON(t, name, string(out), string(data))
		})
	}
	types.log(t)
}
