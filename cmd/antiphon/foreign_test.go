// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
)

// steering is a text that takes over a terminal: it sets the clipboard, clears the screen, colours by a
// character of eight bits, overwrites its line, reorders, and hides a letter.
const steering = "a\x1b]52;c;eA==\x07\x1b[2J\x7f\u009b31m\rX\u202eb\u2066c\U000e0041d"

// Whoever shows what a stranger wrote: a terminal shows the characters that steer and obeys none, a pipe
// gets each byte.
func TestForeignTextAtATerminal(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "a.md"), "<config   model=\"rehearsal\"/>\n<user>\n"+steering+"\n</user>\n")
	text, err := json.Marshal(steering)
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "a.json"), `[{"role":"user","content":`+string(text)+`}]`)
	run := "HOME=. ANTIPHON_AUDIT=off antiphon "
	if o := programEnv(t, nil, "run", filepath.Join(dir, "a.md"), "--rehearsal", "--session", "s", "--store", filepath.Join(dir, "s.db")); o.code != 0 {
		t.Fatalf("%d %s", o.code, o.err)
	}
	const inText = "a<U+001B>]52;c;eA==<U+0007><U+001B>[2J<U+007F><U+009B>31m<U+000D>X<U+202E>b<U+2066>c<U+E0041>d"
	const inJSON = `a\u001b]52;c;eA==\u0007\u001b[2J\u007f\u009b31m\rX\u202eb\u2066c\udb40\udc41d`
	write(t, filepath.Join(dir, "b.script"), `turn
  say {{"a\u009b31m\u202eb"}}
`)
	for i, c := range []struct {
		args, want string
		piped      string // what a pipe gets
	}{
		{"fmt - < a.md", inText, steering},
		{"fmt -d a.md", inText, steering},
		{"convert a.md --to chatmd", inText, steering},
		{"convert a.json --to chatmd", inText, steering},
		{"convert a.md --to items", inJSON, "\u009b"},
		{"convert a.json --to lines", inJSON, "\u009b"},
		{"convert a.json --to request", inJSON, "\u009b"},
		{"sessions export s --store s.db --to chatmd", inText, steering},
		{"sessions export s --store s.db --to jsonl", inJSON, "\u009b"},
		{"sessions export s --store s.db --to html", "U&#43;202E", "U&#43;202E"},
		{"sessions show s --store s.db --json", inJSON, "\u009b"},
		{"run a.md --model rehearsal:b.script --json", `a\u009b31m\u202eb`, "a\u009b31m\u202eb"},
	} {
		t.Run(c.args, func(t *testing.T) {
			t.Parallel()
			raw := openTerminal(t, dir, run+c.args).written(t)
			for _, bad := range []string{"\x1b", "\x07", "\x7f", "\u009b", "\u202e", "\u2066", "\U000e0041", "\rX"} {
				if strings.Contains(raw, bad) {
					t.Errorf("the terminal gets %q:\n%q", bad, raw)
				}
			}
			if !strings.Contains(strings.NewReplacer("\r", "", "\n", "").Replace(raw), c.want) {
				t.Errorf("the terminal does not show %q:\n%q", c.want, raw)
			}
			piped := fmt.Sprintf("piped.%d", i)
			openTerminal(t, dir, run+c.args+" | cat > "+piped).written(t)
			if piped = read(t, filepath.Join(dir, piped)); !strings.Contains(piped, c.piped) || strings.Contains(piped, "<U+") {
				t.Errorf("a pipe does not get %q:\n%q", c.piped, piped)
			}
		})
	}
}

// JSON for a terminal has the same values, wherever writes are cut.
func TestJSONAtATerminal(t *testing.T) {
	var text bytes.Buffer
	if err := json.MarshalWrite(&text, map[string]string{"é": steering + "é\U0001f600"}); err != nil {
		t.Fatal(err)
	}
	for size := 1; size < 9; size++ {
		var out bytes.Buffer
		e := &escaping{out: &out}
		for rest := text.Bytes(); len(rest) > 0; {
			n, err := e.Write(rest[:min(size, len(rest))])
			if err != nil {
				t.Fatal(err)
			}
			rest = rest[n:]
		}
		var back map[string]string
		if err := json.Unmarshal(out.Bytes(), &back); err != nil || back["é"] != steering+"é\U0001f600" || strings.ContainsFunc(out.String(), steers) {
			t.Errorf("%q became %q: %v", text.String(), out.String(), err)
		}
	}
}
