// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package tui

import (
	"flag"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the tables of keys in docs/terminal.md")

// keysTold returns the names of the keys that a row of a table tells about: Ctrl-A E is ctrl+a and ctrl+e, Ctrl-X Ctrl-E is
// ctrl+x ctrl+e.
func keysTold(t *testing.T, keys string) (names []string) {
	for part := range strings.SplitSeq(keys, ", ") {
		if strings.Contains(part, "wheel") || strings.Contains(part, "at the beginning") {
			continue
		}
		held, code := "", strings.Contains(part, "`")
		for i, word := range strings.Fields(strings.Trim(part, "`")) {
			name := strings.NewReplacer("pgdn", "pgdown").Replace(strings.ToLower(strings.ReplaceAll(word, "-", "+")))
			switch mod := strings.LastIndexByte(name, '+'); {
			case mod > 0 && i > 0:
				name = names[len(names)-1] + " " + name
				names = names[:len(names)-1]
			case mod > 0:
				held = name[:mod+1]
			case code && len(word) == 1:
				name = word
			default:
				name = held + name
			}
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		t.Logf("%s names no keys", keys)
	}
	return names
}

// TestKeyTable proves that no key is undocumented: each row names exactly the keys that it has, and no key is in two rows
// for the same.
func TestKeyTable(t *testing.T) {
	seen := map[string]string{}
	check := func(keys string, has []string) {
		want := keysTold(t, keys)
		for _, name := range has {
			if name != "shift+g" && !slices.Contains(want, name) { // which is G
				t.Errorf("%s does not tell of %s", keys, name)
			}
			if seen[name] != "" {
				t.Errorf("%s is in two rows: %s, %s", name, seen[name], keys)
			}
			seen[name] = keys
		}
		for _, name := range want {
			if !slices.Contains(has, name) {
				t.Errorf("%s tells of %s, which does nothing", keys, name)
			}
		}
	}
	for _, r := range keyRows {
		has := slices.Collect(maps.Keys(r.on))
		for name := range r.draft {
			if r.on[name] == nil {
				has = append(has, name)
			}
		}
		check(r.Keys, has)
	}
	clear(seen)
	for _, r := range browseRows {
		check(r.Keys, slices.Collect(maps.Keys(r.on)))
	}
}

// TestViTable proves that the table of vi's keys has each character that does something to the draft in normal mode, or
// waits for more.
func TestViTable(t *testing.T) {
	told := ""
	for _, r := range viRows {
		for i, part := range strings.Split(r.Keys+" "+r.Does+" "+r.More, "`") {
			if i%2 == 1 { // code
				told += part
			}
		}
	}
	for ch := byte('!'); ch <= '~'; ch++ {
		did := false
		for _, full := range []bool{false, true} {
			b := newBench(t, 80, 24, false)
			b.t.opts.Vi, b.t.full.on = true, full
			if !full {
				viTyped(b, "one (two) three<esc>4h")
			} else {
				viTyped(b, "<esc>")
			}
			before := b.t.vi
			text, at := b.t.compose.text, b.t.compose.at
			b.press(string(ch), string(ch))
			did = did || b.t.compose.text != text || b.t.compose.at != at || b.t.vi.mode != before.mode || len(b.t.vi.keys) > 0 || b.t.line != nil || b.t.find.on || b.t.hint != "" || b.t.full.selects
		}
		if digit := ch >= '1' && ch <= '9'; did && !digit && !strings.Contains(told, string(ch)) {
			t.Errorf("%c does something, and no row of vi's keys has it", ch)
		}
	}
}

// TestKeysInDocs proves that the tables of keys in docs/terminal.md are those of the program. With -update it writes them.
func TestKeysInDocs(t *testing.T) {
	const path = "../../docs/terminal.md"
	was, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	doc := string(was)
	var rows []Key
	for _, r := range keyRows {
		rows = append(rows, r.Key)
	}
	doc = withTable(t, doc, "## Keys\n", rows)
	rows = nil
	for _, r := range browseRows {
		rows = append(rows, r.Key)
	}
	doc = withTable(t, doc, "## Calls and subagents\n", rows)
	doc = withTable(t, doc, "## Keys of vi\n", viRows)
	switch {
	case doc == string(was):
	case *update:
		if err := os.WriteFile(path, []byte(doc), 0o644); err != nil {
			t.Fatal(err)
		}
	default:
		t.Error("docs/terminal.md has other tables of keys: go test ./internal/tui -run TestKeysInDocs -update")
	}
}

// withTable returns a document in which the first table below a heading has these rows.
func withTable(t *testing.T, doc, heading string, rows []Key) string {
	before, after, ok := strings.Cut(doc, heading)
	if !ok {
		t.Fatalf("there is no %q", heading)
	}
	prose, table, _ := strings.Cut(after, "\n|")
	_, rest, _ := strings.Cut(table, "\n\n")
	lines := []string{"| key | does |", "|---|---|"}
	for _, r := range rows {
		does := r.Does
		if r.More != "" {
			does += ". " + r.More
		}
		lines = append(lines, "| "+r.Keys+" | "+does+" |")
	}
	return before + heading + prose + "\n" + strings.Join(lines, "\n") + "\n\n" + rest
}

// TestBindNothing proves that a binding to a key that does nothing is refused: it would be a key that is lost.
func TestBindNothing(t *testing.T) {
	if _, err := ParseBindings("f2=ctrl+q"); err == nil || !strings.Contains(err.Error(), "ctrl+q does nothing") {
		t.Errorf("%v", err)
	}
	for _, r := range keyRows {
		for _, name := range keysTold(t, r.Keys) {
			if _, err := ParseBindings("f2=" + name); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}
