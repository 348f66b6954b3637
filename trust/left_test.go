// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package trust_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/antiphon-go/antiphon/trust"
)

func stateOf(text string) trust.State {
	return trust.State{Size: int64(len(text)), Hash: trust.Hash([]byte(text))}
}

// K5: what follows the longest known state was written by others, and so were the parts that
// are known.
func TestStrange(t *testing.T) {
	for name, c := range map[string]struct {
		left trust.Left
		text string
		want []trust.Span
	}{
		"nothing":             {trust.Left{}, "", nil},
		"no record":           {trust.Left{}, "abc", []trust.Span{{From: 0, To: 3}}},
		"all":                 {trust.Left{States: []trust.State{stateOf("abc")}}, "abc", nil},
		"before the change":   {trust.Left{States: []trust.State{stateOf("ab"), stateOf("abcd")}}, "ab", nil},
		"after the change":    {trust.Left{States: []trust.State{stateOf("ab"), stateOf("abcd")}}, "abcd", nil},
		"half of the change":  {trust.Left{States: []trust.State{stateOf("ab"), stateOf("abc"), stateOf("abcde")}}, "abcd", []trust.Span{{From: 3, To: 4}}},
		"added":               {trust.Left{States: []trust.State{stateOf("abc")}}, "abcdef", []trust.Span{{From: 3, To: 6}}},
		"changed":             {trust.Left{States: []trust.State{stateOf("abc")}}, "xbc", []trust.Span{{From: 0, To: 3}}},
		"shorter":             {trust.Left{States: []trust.State{stateOf("abc")}}, "ab", []trust.Span{{From: 0, To: 2}}},
		"known parts":         {trust.Left{States: []trust.State{stateOf("abcdef")}, Others: []trust.Span{{From: 1, To: 2}, {From: 3, To: 4}}}, "abcdefg", []trust.Span{{From: 1, To: 2}, {From: 3, To: 4}, {From: 6, To: 7}}},
		"known parts changed": {trust.Left{States: []trust.State{stateOf("ab"), stateOf("abcdef")}, Others: []trust.Span{{From: 1, To: 5}, {From: 5, To: 6}}}, "abx", []trust.Span{{From: 1, To: 3}}},
		"states in disorder":  {trust.Left{States: []trust.State{stateOf("abc"), stateOf("a"), {Size: -1}}, Others: []trust.Span{{From: -3, To: 1}, {From: 2, To: 1}}}, "abc", []trust.Span{{From: 0, To: 1}}},
	} {
		if got := c.left.Strange(c.text); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
	many := trust.Left{States: []trust.State{stateOf(strings.Repeat("x", 1000))}}
	for i := range int64(200) {
		many.Others = append(many.Others, trust.Span{From: 5 * i, To: 5*i + 1})
	}
	got := many.Strange(strings.Repeat("x", 1000))
	if len(got) > 64 {
		t.Errorf("%d parts", len(got))
	}
	for _, o := range many.Others {
		if !slices.ContainsFunc(got, func(s trust.Span) bool { return s.From <= o.From && o.To <= s.To }) {
			t.Errorf("the part %v is nobody's", o)
		}
	}
}

// K5: a ledger keeps the last record of a transcript for its owner only, and a record that is
// damaged, about another transcript, or that others may write to is an error.
func TestLedger(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "data", "transcripts")
	l := trust.OpenLedger(folder)
	path := filepath.Join(t.TempDir(), "talk.md")
	if left, err := l.Left(path); err != nil || left.Path != "" {
		t.Errorf("%v %v", left, err)
	}
	for _, text := range []string{"a", "ab"} {
		if err := l.Leave(trust.Left{Path: path, States: []trust.State{stateOf(text)}, Others: []trust.Span{{From: 0, To: 1}}}); err != nil {
			t.Fatal(err)
		}
	}
	if left, err := l.Left(path); err != nil || !slices.Equal(left.States, []trust.State{stateOf("ab")}) || len(left.Others) != 1 {
		t.Errorf("%v %v", left, err)
	}
	if err := l.Leave(trust.Left{Path: "talk.md"}); err == nil {
		t.Error("a relative path has a record")
	}
	files, err := filepath.Glob(filepath.Join(folder, "*"))
	if err != nil || len(files) != 1 {
		t.Fatalf("%v %v", files, err)
	}
	if info, err := os.Stat(files[0]); err != nil || info.Mode().Perm() != 0o600 {
		t.Fatal(info.Mode(), err)
	}
	good, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"half": string(good[:len(good)/2]), "empty": "", "of another transcript": strings.Replace(string(good), "talk.md", "tale.md", 1), "huge": strings.Repeat(" ", 2<<20) + string(good),
	} {
		if err := os.WriteFile(files[0], []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if left, err := l.Left(path); err == nil || len(left.States) > 0 || !strings.Contains(err.Error(), files[0]) {
			t.Errorf("%s: %v %v", name, left, err)
		}
	}
	if err := os.WriteFile(files[0], good, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(files[0], 0o666); err != nil {
		t.Fatal(err)
	}
	if left, err := l.Left(path); err == nil || len(left.States) > 0 {
		t.Errorf("others may write to it: %v", left)
	}
}
