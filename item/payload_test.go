// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package item_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"pgregory.net/rapid"

	"github.com/antiphon-go/antiphon/item"
)

// blobs is a source in memory, which counts what is opened.
type blobs struct {
	kept   map[[32]byte][]byte
	opened atomic.Int64
	open   atomic.Int64 // of those, not closed yet
}

// reading is a payload that is open.
type reading struct {
	io.Reader
	b *blobs
}

func (r reading) Close() error {
	r.b.open.Add(-1)
	return nil
}

func (b *blobs) OpenPayload(hash [32]byte) (io.ReadCloser, error) {
	data, ok := b.kept[hash]
	if !ok {
		return nil, os.ErrNotExist
	}
	b.opened.Add(1)
	b.open.Add(1)
	return reading{bytes.NewReader(data), b}, nil
}

// newHolder returns a Holder over a source of its own, until the test ends.
func newHolder(t testing.TB) (*item.PayloadStore, *blobs) {
	src := &blobs{kept: map[[32]byte][]byte{}}
	h := item.NewHolder(src)
	t.Cleanup(func() {
		h.Close()
		if n := src.open.Load(); n != 0 {
			t.Errorf("%d payloads were not closed", n)
		}
	})
	return h, src
}

// hold stores an item and reads it back.
func hold(t testing.TB, h *item.PayloadStore, src *blobs, it item.Item) item.Item {
	t.Helper()
	rest, payloads, payload := it.Split(0)
	for i, c := range payloads {
		b, err := payload(i)
		if err != nil {
			t.Fatal(err)
		}
		if int64(len(b)) != c.Size || sha256.Sum256(b) != c.Hash {
			t.Fatalf("cut %d tells of %d bytes, and there are %d", i, c.Size, len(b))
		}
		src.kept[c.Hash] = b
	}
	held, err := h.Join(rest, payloads)
	if err != nil {
		t.Fatal(err)
	}
	return held
}

// noise is data of n bytes that seed decides.
func noise(n, seed int) []byte {
	b := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8)}).Read(b)
	return b
}

func encoded(n, seed int) string { return base64.StdEncoding.EncodeToString(noise(n, seed)) }

func dataURI(n, seed int) string { return "data:image/png;base64," + encoded(n, seed) }

func mustParse(t testing.TB, s string) item.Item {
	t.Helper()
	it, err := item.ParseString(s)
	if err != nil {
		t.Fatal(err)
	}
	return it
}

// TestCut: what is a payload and what stays text. // J4 W8
func TestCut(t *testing.T) {
	b64 := encoded(300, 1)
	even := encoded(301, 1) // ends in ==
	for _, c := range []struct {
		text     string
		payloads int
	}{
		{`{"type":"message","role":"user","content":[{"type":"input_image","image_url":"data:image/png;base64,` + b64 + `"}]}`, 1},
		{`{"type":"x","image_url":"data:image\/png;base64,` + b64 + `","file_data": "` + even + `"}`, 2},
		{`{"type":"image_generation_call","id":"` + b64 + `","result":"` + b64 + `"}`, 1},
		{`{"type":"x","images":["` + b64 + `" , "DATA:;base64,` + b64 + `"],"n":{"data" : "` + even + `"}}`, 3},
		{`{"type":"x","images":[1,"a\"b","\\"],"data":"` + b64 + `"}`, 1},
		{`{"type":"reasoning","encrypted_content":"` + b64 + `"}`, 0},
		{`{"type":"reasoning","encrypted\u005fcontent":"` + b64 + `"}`, 0},
		{`{"type":"message","role":"user","content":"` + b64 + `"}`, 0},
		{`{"type":"x","call_id":"` + b64 + `","output":"data:image/png;base64,` + b64 + `"}`, 0},
		{`{"type":"x","` + b64 + `":1}`, 0},
		{`{"type":"x","data":"` + b64[:len(b64)-1] + `"}`, 0},              // not padded
		{`{"type":"x","data":"` + even[:len(even)-3] + `B=="}`, 0},         // bits that mean nothing
		{`{"type":"x","data":"` + strings.Repeat("ab-_", 100) + `"}`, 0},   // the other alphabet
		{`{"type":"x","data":"` + b64[:200] + `\n` + b64[200:] + `"}`, 0},  // lines
		{`{"type":"x","data":"` + strings.Repeat(`ab\/+`, 100) + `"}`, 0},  // escapes
		{`{"type":"x","data":"data:a,b;base64,` + b64 + `"}`, 0},           // data behind the first comma
		{`{"type":"x","data":"data:a\u002cb;base64,` + b64 + `"}`, 0},      // the same
		{`{"type":"x","data":"see data:image/png;base64,` + b64 + `"}`, 0}, // words
		{`{"type":"x","data":"` + encoded(100, 1) + `"}`, 0},               // small
		{`{"type":"x","data":"===="}`, 0},
		{`{"type":"x","data":"` + b64 + `="}`, 0},
		{`{"type":"x","data":"` + even + `="}`, 0},
	} {
		h, src := newHolder(t)
		it := mustParse(t, c.text)
		rest, payloads, _ := it.Split(0)
		if len(payloads) != c.payloads {
			t.Errorf("%.80s: %d payloads, want %d", c.text, len(payloads), c.payloads)
		}
		if c.payloads > 0 && strings.Contains(rest, b64[:100]) && c.payloads*300 > len(c.text)-len(rest) {
			t.Errorf("%.80s: the payload is there still", c.text)
		}
		held := hold(t, h, src, it)
		if held.Externalized() != (c.payloads > 0) || held.Type() != it.Type() || held.Size() != len(c.text) {
			t.Errorf("%.80s: held %v, %d bytes of %d", c.text, held.Externalized(), held.Size(), len(c.text))
		}
		whole, err := held.Whole()
		if err != nil || whole != it {
			t.Errorf("%.80s: not the same when whole: %v", c.text, err)
		}
		again, more, _ := held.Split(0)
		if again != rest || fmt.Sprint(more) != fmt.Sprint(payloads) {
			t.Errorf("%.80s: a held item is cut in another way", c.text)
		}
	}
}

// TestHeldErrors: what cannot be resolved is an error, which names the hash.
func TestHeldErrors(t *testing.T) {
	h, src := newHolder(t)
	it := item.Must(&item.FunctionCallOutput{CallID: "c", Output: item.Parts(&item.InputImage{ImageURL: dataURI(1000, 2)})})
	held := hold(t, h, src, it)
	sum := sha256.Sum256(noise(1000, 2))
	check := func(held item.Item, want string) {
		t.Helper()
		_, err := held.Whole()
		var e *item.HeldError
		if !errors.As(err, &e) || e.Size > 0 && !strings.Contains(err.Error(), fmt.Sprintf("%x", sum)) || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
	for want, data := range map[string][]byte{
		"fewer bytes": noise(999, 2), "more bytes": append(noise(1000, 2), 1), "other bytes": noise(1000, 3),
	} {
		src.kept[sum] = data
		check(held, want)
	}
	src.kept[sum] = noise(1000, 2)
	if whole, err := held.Whole(); err != nil || whole != it {
		t.Errorf("after all: %v", err)
	}
	if cut, err := item.ParseString(held.JSON()[:len(held.JSON())-20] + `"}]}`); err == nil {
		check(cut, "was split")
	}
	delete(src.kept, sum)
	check(held, os.ErrNotExist.Error())
	h.Close()
	check(held, "was closed")
	for _, at := range [][]item.Payload{
		{{At: 5, Size: 1}, {At: 4, Size: 1}}, {{At: -1, Size: 1}}, {{At: 1000, Size: 1}}, {{At: 5}}, {{At: 5, Size: 1 << 50}},
	} {
		if _, err := h.Join(`{"type":"x"}`, at); err == nil {
			t.Errorf("%v was joined", at)
		}
	}
}

// FuzzCut: what was cut comes back byte for byte, whatever it was. // J4 W8
func FuzzCut(f *testing.F) {
	f.Add(`{"type":"x","data":"`+encoded(300, 1)+`"}`, 1)
	f.Add(`{"type":"x","a":["data:;base64,`+encoded(3000, 1)+`"],"b":"`+encoded(200, 1)+`"}`, 200)
	f.Add(`{"type":"x","data":"^`+strings.Repeat("A", 26)+strings.Repeat("0", 84)+`"}`, 0)
	h, src := newHolder(f)
	f.Add(hold(f, h, src, mustParse(f, `{"type":"x","data":"`+encoded(300, 1)+`"}`)).JSON()[:60]+`"}`, 0)
	f.Fuzz(func(t *testing.T, s string, least int) {
		it, err := item.ParseString(s)
		if err != nil || it.Externalized() {
			return
		}
		rest, payloads, payload := it.Split(least)
		for i, c := range payloads {
			b, err := payload(i)
			if err != nil || int64(len(b)) != c.Size || sha256.Sum256(b) != c.Hash {
				t.Fatalf("payload %d: %v", i, err)
			}
			src.kept[c.Hash] = b
		}
		held, err := h.Join(rest, payloads)
		if err != nil {
			t.Fatal(err)
		}
		if whole, err := held.Whole(); err != nil || whole != it || held.Type() != it.Type() || held.Size() != len(it.JSON()) {
			t.Fatalf("not the same: %v", err)
		}
	})
}

// TestCutAny: as FuzzCut, over items that have payloads, and what looks like
// them. // J4 W8
func TestCutAny(t *testing.T) {
	h, src := newHolder(t)
	rapid.Check(t, func(t *rapid.T) {
		piece := rapid.OneOf(
			rapid.Custom(func(t *rapid.T) string { return encoded(rapid.IntRange(1, 600).Draw(t, "n"), 7) }),
			rapid.SampledFrom([]string{"data:image/png;base64,", "=", ",", "^", " ", `\"`, `\/`, "é"}),
		)
		name := rapid.SampledFrom([]string{"a", "image_url", "text", "encrypted_content", "x_id"})
		var b strings.Builder
		b.WriteString(`{"type":"x"`)
		for range rapid.IntRange(0, 6).Draw(t, "members") {
			fmt.Fprintf(&b, `,"%s":["%s"],"%s" : "%s"`, name.Draw(t, "name"),
				strings.Join(rapid.SliceOfN(piece, 0, 3).Draw(t, "element"), ""), name.Draw(t, "name"),
				strings.Join(rapid.SliceOfN(piece, 0, 3).Draw(t, "value"), ""))
		}
		it, err := item.ParseString(b.String() + "}")
		if err != nil {
			t.Fatal(err)
		}
		rest, payloads, payload := it.Split(rapid.IntRange(0, 500).Draw(t, "least"))
		for i, c := range payloads {
			src.kept[c.Hash], _ = payload(i)
		}
		held, err := h.Join(rest, payloads)
		if err != nil {
			t.Fatal(err)
		}
		if whole, err := held.Whole(); err != nil || whole != it {
			t.Fatalf("not the same: %v", err)
		}
	})
}
