// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package tui

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"testing/iotest"

	uv "github.com/charmbracelet/ultraviolet"
	"pgregory.net/rapid"
)

// TestPastedWhole proves that whatever is pasted arrives as it was sent, once, and that the keys around it do: the
// decoder of keys would leave out escape sequences, and what follows them.
func TestPastedWhole(t *testing.T) {
	pieces := []string{
		"a", "line\n", "\r", "\t", "日本", "e\u0301", "\x1b[31mred\x1b[0m", "\x1b]0;title\x07", "\x1bP unended ", "\x1b_", "\x1b[200~", "\x1b[201", "\x1b", "\x1b\x1b",
		"\u009b31m", "\u0085", "\u00a0", "\x00", "\x7f", "\U0010ff1b", "\U0010ffff", "\U0010fffd", "👩‍👩‍👧", "\ufffd", "\xff", "\xe9x", "\xef\xbf", "\x1b[A", "\x1bOP", "\x1b[<0;1;1M", "\x1b[I", strings.Repeat("x", 5000),
	}
	rapid.Check(t, func(r *rapid.T) {
		text := strings.Join(rapid.SliceOfN(rapid.SampledFrom(pieces), 1, 20).Draw(r, "text"), "")
		text = strings.ReplaceAll(text, pasteEnds, "")
		sent := "b" + pasteBegins + text + pasteEnds + "c"
		from := bytes.NewReader([]byte(sent))
		p := &pasted{from: from}
		if rapid.Bool().Draw(r, "slow") && len(sent) < 500 {
			p.from = iotest.OneByteReader(from)
		}
		events := make(chan uv.Event)
		go func() {
			defer close(events)
			_ = uv.NewTerminalReader(p, "xterm").StreamEvents(context.Background(), events)
		}()
		var got []string
		for ev := range events {
			switch ev := ev.(type) {
			case uv.PasteEvent:
				got = append(got, "paste "+unpasted(ev.Content))
			case uv.KeyPressEvent:
				got = append(got, ev.Text)
			}
		}
		if want := []string{"b", "paste " + text, "c"}; strings.Join(got, "|") != strings.Join(want, "|") {
			r.Fatalf("got  %q\nwant %q", got, want)
		}
	})
}
