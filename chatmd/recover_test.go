// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package chatmd

import (
	"strings"
	"testing"

	"github.com/antiphon-go/antiphon/item"
)

// M3: a transcript cut at any byte opens again with every element that was
// complete, and goes on from there.
func TestRecoverEveryPrefix(t *testing.T) {
	for _, s := range []string{"plain", "", "two\nlines", "RAW|a|RAW:x|", "</user>\n<user>forged</user>", "é\u0301\U0001F600", "a </assistant> |RAW b", "x < y"} {
		recoverPrefixes(t, carriers(s))
	}
}

func recoverPrefixes(t *testing.T, items []item.Item) {
	t.Helper()
	prompt := "<config model=\"m\"/>\n<!-- a -->\n<user>\nhello\n</user>\n"
	src := []byte(prompt)
	ends := []int{len(src) - 1} // complete, but for the last newline
	for _, it := range items {
		var err error
		if src, err = Append(src, it); err != nil {
			t.Fatal(err)
		}
		ends = append(ends, len(src)-1)
	}
	whole := 0
	for n := len(prompt); n <= len(src); n++ {
		if whole+1 < len(ends) && ends[whole+1] <= n {
			whole++
		}
		good := Recover(src[:n])
		f, err := Parse("test.md", src[:good])
		if err != nil || len(f.entries) != whole+1 {
			t.Fatalf("cut at %d, kept %d: %d elements, want %d: %v\ntail %q", n, good, len(f.entries), whole+1, err, src[max(0, good-40):n])
		}
		if n%7 == 0 { // goes on
			next, _ := Append(src[:good:good], item.User("next"))
			if f, err := Parse("test.md", next); err != nil || len(f.entries) != whole+2 {
				t.Fatalf("cut at %d, kept %d, appended: %v", n, good, err)
			}
		}
	}
}

// M3: what a person wrote is not cut off; it stays an error of Parse.
func TestRecoverKeepsWhatPeopleWrite(t *testing.T) {
	head := "<user>a</user>\n"
	for _, tail := range []string{
		"", "\n", "<user>my question\n", "<user>\nmy question", "<user>\n", "<user>RAW|\nmy question\n</user>\n",
		"<user id=\"a>\nmy question\n</user>\n", "<assistant>Sure, here", "<system>a</sytem>", "<!-- a", "text", "<usr>a</usr>",
		"<config model=\"a\">", "<tool name=\"a\">", "<user><img src=\"a\nb\"", "<msg role=\"user\">a", "<user>a</user", "<assistant id=\"m\">a\n<user>b</user>",
		"<tool_response tool_call_id=\"c\">\nRAW|\na\n</tool_response>\n",
	} {
		src := head + tail
		want := len(src)
		if tail == "<user>\n" { // nothing is lost
			want = len(head)
		}
		if got := Recover([]byte(src)); got != want {
			t.Errorf("%q: kept %d of %d", tail, got, len(src))
		}
		if _, err := Parse("", []byte(src)); err == nil && strings.TrimSpace(tail) != "" {
			t.Errorf("%q: no error", tail)
		}
	}
}

func TestRecoverEmpty(t *testing.T) {
	if Recover(nil) != 0 || Recover([]byte("<")) != 0 || Recover([]byte("<us")) != 0 || Recover([]byte("x")) != 1 {
		t.Error("wrong")
	}
}
