// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package chatmd

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/antiphon-go/antiphon/item"
)

// shelf keeps payloads under numbers.
type shelf map[string]string

func (s shelf) put(payload string) (string, error) {
	src := fmt.Sprintf(".chatmd/a \"b\" & <c>/%d.json", len(s)+1)
	s[src] = payload
	return src, nil
}

func (s shelf) Resolve(_ context.Context, ref Ref) ([]byte, string, error) {
	data, ok := s[ref.Src]
	if !ok || !ref.Local || !ref.Payload {
		return nil, "", errors.New("asked for " + ref.Src)
	}
	return []byte(data), "", nil
}

// M8: payloads in files read back to equal items, whatever they hold, and names
// of files come from the keeper alone.
func TestPayloads(t *testing.T) {
	for _, s := range hostile {
		for _, it := range carriers(s) {
			kept := shelf{}
			w := Writer{Put: kept.put}
			first, err := w.Append(nil, it)
			if err != nil {
				t.Fatal(err)
			}
			back := readFrom(t, kept, string(first))
			if len(back) != 1 || !sameJSON(back[0].JSON(), it.JSON()) {
				t.Fatalf("%s\nread back as %v\nwant %s", first, back, it.JSON())
			}
			outside := it.IsCall() || it.IsOutput()
			if !outside && len(kept) > 0 || len(kept) > 1 {
				t.Errorf("%d payloads of %s", len(kept), it.JSON())
			}
			again := shelf{}
			w = Writer{Put: again.put}
			second, err := w.Append(nil, back[0])
			if err != nil || string(second) != string(first) || fmt.Sprint(again) != fmt.Sprint(kept) {
				t.Errorf("%v: second write\n%s\nfirst\n%s", err, second, first)
			}
		}
	}
}

// M8: short payloads stay where people read them; a keeper that fails leaves the
// text as it was.
func TestPayloadLimit(t *testing.T) {
	it := item.Must(&item.FunctionCallOutput{CallID: "c", Output: item.Text("12345")})
	kept := shelf{}
	w := Writer{Put: kept.put, Inline: 5}
	out, err := w.Append([]byte("before\n"), it)
	if err != nil || len(kept) != 0 || !strings.Contains(string(out), "\n12345\n") {
		t.Errorf("%v: %s", err, out)
	}
	w.Inline = 4
	out, err = w.Append([]byte("before\n"), it)
	want := "before\n<tool_response tool_call_id=\"c\" output=\"text\">\n<doc src='.chatmd/a \"b\" &amp; &lt;c&gt;/1.json' local sha256=\"5994471abb01112afcc18159f6cc74b4f511b99806da59b3caf5a9c173cacfc5\"/>\n</tool_response>\n"
	if err != nil || string(out) != want {
		t.Errorf("%v: %s", err, out)
	}
	failed := errors.New("the disk is full")
	w.Put = func(string) (string, error) { return "", failed }
	if out, err = w.Append([]byte("before\n"), it); !errors.Is(err, failed) || string(out) != "before\n" {
		t.Errorf("%v: %s", err, out)
	}
}

func readFrom(t testing.TB, r Resolver, text string) (list []item.Item) {
	t.Helper()
	f, err := Parse("t.md", []byte(text))
	if err != nil {
		t.Fatalf("%v\nin\n%s", err, text)
	}
	located, err := f.Items(t.Context(), r)
	if err != nil {
		t.Fatalf("%v\nin\n%s", err, text)
	}
	for _, l := range located {
		list = append(list, l.Item)
	}
	return list
}

// M1 M2 M8: ten thousand transcripts, half of them with payloads in files, read
// back to equal items, and their second write has the same bytes.
func TestTenThousandTranscripts(t *testing.T) {
	n := 10_000
	if testing.Short() {
		n = 500
	}
	transcripts := rapid.SliceOfN(anyItem(), 1, 3)
	for seed := range n {
		items := transcripts.Example(seed)
		first, kept := writeAll(t, items, seed%2 == 0)
		back := readFrom(t, kept, first)
		if len(back) != len(items) {
			t.Fatalf("seed %d: %d items, want %d, in\n%s", seed, len(back), len(items), first)
		}
		for i := range items {
			if !sameJSON(back[i].JSON(), items[i].JSON()) {
				t.Fatalf("seed %d: got\n%s\nwant\n%s\nin\n%s", seed, back[i].JSON(), items[i].JSON(), first)
			}
		}
		if second, again := writeAll(t, back, seed%2 == 0); second != first || fmt.Sprint(again) != fmt.Sprint(kept) {
			t.Fatalf("seed %d: second write\n%s\nfirst\n%s", seed, second, first)
		}
		if f, _ := Parse("t.md", []byte(first)); f.Rewrite(func(Element, Attr) (string, bool) { return "", false }) != first {
			t.Fatalf("seed %d: read and written again is another text", seed)
		}
	}
}

func writeAll(t testing.TB, items []item.Item, outside bool) (string, shelf) {
	t.Helper()
	kept := shelf{}
	var w Writer
	if outside {
		w = Writer{Put: kept.put, Inline: 3}
	}
	var text []byte
	for _, it := range items {
		var err error
		if text, err = w.Append(text, it); err != nil {
			t.Fatal(err)
		}
	}
	return string(text), kept
}

// M3: a transcript with payloads in files, cut anywhere, opens with what was
// complete.
func TestRecoverPayloads(t *testing.T) {
	text, kept := writeAll(t, append(carriers("some text"), carriers("|RAW</tool_response>")...), true)
	whole := strings.Split(text, "</tool_response>\n")
	for n := range len(text) {
		good := Recover([]byte(text[:n]))
		f, err := Parse("t.md", []byte(text[:good]))
		if err != nil {
			t.Fatalf("cut at %d, kept %d: %v", n, good, err)
		}
		if n%11 == 0 {
			if _, err := f.Items(t.Context(), kept); err != nil {
				t.Fatal(err)
			}
		}
	}
	if len(whole) < 3 {
		t.Error("no responses")
	}
}
