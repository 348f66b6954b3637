// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package item_test

import (
	"crypto/sha256"
	"io"
	"runtime"
	"testing"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/item"
)

// zeros is a source of payloads of zeros, by their hashes: they take no memory.
type zeros map[[32]byte]int64

func (z zeros) OpenPayload(hash [32]byte) (io.ReadCloser, error) {
	return io.NopCloser(io.LimitReader(nothing{}, z[hash])), nil
}

type nothing struct{}

func (nothing) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// heldImage is an item that holds an image of n bytes.
func heldImage(tb testing.TB, h *item.PayloadStore, z zeros, n int64) item.Item {
	sum := sha256.New()
	_, _ = io.Copy(sum, io.LimitReader(nothing{}, n))
	hash := [32]byte(sum.Sum(nil))
	z[hash] = n
	const head = `{"type":"message","role":"user","content":[{"type":"input_image","image_url":"data:image/png;base64,`
	it, err := h.Join(head+`"}]}`, []item.Payload{{At: len(head), Size: n, Hash: hash}})
	if err != nil {
		tb.Fatal(err)
	}
	return it
}

// TestHeldMemory: sending costs little memory, however large the payloads are. // L9 J4
func TestHeldMemory(t *testing.T) {
	z := zeros{}
	h := item.NewHolder(z)
	defer h.Close()
	l := item.NewList(item.User("see"))
	for n := range int64(10) {
		l.Append(heldImage(t, h, z, 10<<20+n))
	}
	r := &api.Request{Model: "m", Input: l}
	buf := make([]byte, 32<<10)
	send := func() int64 {
		body, err := r.Body()
		if err != nil {
			t.Fatal(err)
		}
		rd := body.NewReader()
		defer rd.Close()
		n, err := io.CopyBuffer(struct{ io.Writer }{io.Discard}, rd, buf)
		if err != nil || n != body.Len() || n < 100<<20 {
			t.Fatal(n, err)
		}
		return n
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	n := send()
	runtime.ReadMemStats(&after)
	if used := after.TotalAlloc - before.TotalAlloc; used > 1<<20 {
		t.Errorf("sending %d bytes allocates %d", n, used)
	}
}

// BenchmarkSend sends a history of 10 000 items and 200 MB of images: whole
// ones, those that are held, and as many items without images.
func BenchmarkSend(b *testing.B) {
	src := &blobs{kept: map[[32]byte][]byte{}}
	h := item.NewHolder(src)
	defer h.Close()
	lists := map[string]*item.List{"whole": new(item.List), "held": new(item.List), "without": new(item.List)}
	for i := range 10_000 {
		text := item.User("what do you see in this picture, and how does it differ from the one before?")
		for _, l := range lists {
			l.Append(text)
		}
		if i%50 == 0 {
			it := pictured(1<<20 + i)
			lists["whole"].Append(it)
			lists["held"].Append(hold(b, h, src, it))
		}
	}
	buf := make([]byte, 32<<10)
	for _, name := range []string{"whole", "held", "without"} {
		b.Run(name, func(b *testing.B) {
			r := &api.Request{Model: "m", Input: lists[name]}
			b.ReportAllocs()
			for b.Loop() {
				body, err := r.Body()
				if err != nil {
					b.Fatal(err)
				}
				b.SetBytes(body.Len())
				rd := body.NewReader()
				if _, err := io.CopyBuffer(struct{ io.Writer }{io.Discard}, rd, buf); err != nil {
					b.Fatal(err)
				}
				_ = rd.Close()
			}
		})
	}
}

// BenchmarkAppend adds items to a list, as a turn does.
func BenchmarkAppend(b *testing.B) {
	src := &blobs{kept: map[[32]byte][]byte{}}
	h := item.NewHolder(src)
	defer h.Close()
	it := pictured(1 << 20)
	for name, it := range map[string]item.Item{"text": item.User("what do you see?"), "whole": it, "held": hold(b, h, src, it)} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(it.JSON())))
			l := new(item.List)
			for n := 0; b.Loop(); n++ {
				if n%100 == 0 {
					l = new(item.List)
				}
				l.Append(it)
			}
		})
	}
}

// BenchmarkCut takes an image of 1 MB out of an item, and puts it back.
func BenchmarkCut(b *testing.B) {
	h, src := newHolder(b)
	it := pictured(1 << 20)
	rest, payloads, _ := it.Split(0)
	hold(b, h, src, it)
	b.Run("cut", func(b *testing.B) {
		b.ReportAllocs()
		b.SetBytes(int64(len(it.JSON())))
		for b.Loop() {
			it.Split(0)
		}
	})
	b.Run("join", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_, _ = h.Join(rest, payloads)
		}
	})
}
