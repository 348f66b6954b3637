// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package chatmd

import (
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/antiphon-go/antiphon/item"
)

func seeds(f *testing.F) {
	for _, s := range hostile {
		f.Add(s)
	}
	for _, s := range []string{
		"<config model=\"m\" max_tokens=\"1\"/>\n<tool name=\"read_file\"><read id=\"a\" path=\"b\"/></tool>",
		"<user>a <img src=\"data:image/png;base64,AA==\"/> <file src='https://x'/> <!-- c --> RAW:x|b|RAW:x</user>",
		"<reasoning id=r><summary>a</summary></reasoning><item type=\"x\">{\"type\":\"x\"}</item>",
		"<tool_call tool_call_id=\"c\" function_name=\"f\">RAW|{}|RAW</tool_call><tool_response tool_call_id=c>[{\"type\":\"input_text\",\"text\":\"a\"}]</tool_response>",
		"<msg role=\"assistant\" id='&#65;\\''>b</msg><script>x</script>", "<user><agent src=\"a\"><doc src=\"b\" local></agent></user>",
		"<usr>\n</usr>text</user><assistant id=\"m\" null=\"phase\" annotations='[1]' refusal>a", "\xff<user>\xc3</user>", "<user id=\"a", "RAW|", "<!--",
	} {
		f.Add(s)
	}
}

// M4: no file makes the reader panic or hang, and every problem lies inside the
// file. What is read well can be written and read again.
func FuzzParse(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, src string) {
		file, err := Parse("f", []byte(src))
		var list ErrorList
		if err != nil && !errors.As(err, &list) {
			t.Fatalf("%T", err)
		}
		lines := strings.Split(src, "\n")
		for _, e := range append(list, file.Warnings...) {
			if e.Line < 1 || e.Line > len(lines) || e.Column < 1 || e.Column > utf8.RuneCountInString(lines[e.Line-1])+1 || e.Message == "" {
				t.Errorf("%d:%d: %s lies outside of %q", e.Line, e.Column, e.Message, src)
			}
			if !utf8.ValidString(e.Error()) {
				t.Errorf("message %q", e.Error())
			}
		}
		checkTree(t, src, file.root, err == nil)
		if same := file.Rewrite(func(Element, Attr) (string, bool) { return "", false }); same != src {
			t.Errorf("rewritten %q to %q", src, same)
		}
		if good := Recover([]byte(src)); good < 0 || good > len(src) || good < len(src) && err == nil {
			t.Errorf("recovered %d of %q", good, src)
		}
		items, err := file.Items(t.Context(), nil)
		if err != nil {
			return
		}
		for _, it := range items {
			roundTrip(t, it.Item)
		}
	})
}

// checkTree checks that the nodes of a file cover it without gaps.
func checkTree(t *testing.T, src string, root *node, whole bool) {
	at := 0
	for _, n := range root.nodes {
		if n.start != at && whole || n.end < n.start || n.end > len(src) {
			t.Errorf("node %d..%d after %d in %q", n.start, n.end, at, src)
		}
		at = n.end
	}
	if whole && at != len(src) {
		t.Errorf("nodes end at %d of %q", at, src)
	}
}

// M1 M2: any text in any place.
func FuzzRoundTrip(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, s string) {
		s = strings.ToValidUTF8(s, "\ufffd")
		for _, it := range carriers(s) {
			roundTrip(t, it)
		}
		if it, err := item.ParseString(s); err == nil {
			roundTrip(t, it)
		}
	})
}
