// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package search

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// indexOf makes an index of texts by path, building on an old one if there is
// one.
func indexOf(old *contents, docs map[string]string) *docIndex {
	x := newIndexer(&docIndex{description: "of a test", folder: "docs"})
	for _, name := range slices.Sorted(maps.Keys(docs)) {
		hash := hashOf([]byte(docs[name]))
		if old != nil {
			if i, ok := old.index.byPath(name); ok && old.index.files[i].hash == hash {
				x.reuse(old, i)
				continue
			}
		}
		x.read(name, hash, docs[name])
	}
	return x.finish()
}

func reread(t interface{ Fatal(...any) }, ix *docIndex) *docIndex {
	again, err := decodeIndex(string(ix.encode()))
	if err != nil {
		t.Fatal(err)
	}
	return again
}

func drawDocs(rt *rapid.T, label string) map[string]string {
	return rapid.MapOfN(rapid.SampledFrom([]string{"a.md", "b/c.md", "b/d.md", "e.md", "ü.md"}),
		rapid.Custom(func(rt *rapid.T) string {
			lines := rapid.SliceOfN(rapid.SampledFrom([]string{"# Roots", "## Links and files", "the root of the files", "a link leads out", "", "```", "code code", "größer 東京都 toolCalls", "links, linked, linking"}), 0, 30).Draw(rt, "lines")
			return strings.Join(lines, "\n")
		}), 0, 5).Draw(rt, label)
}

// An index is the same, byte for byte, whether it was made from nothing or from
// the one before, and reads back as it was written.
func TestIndexAgainProperty(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		before, after := drawDocs(rt, "before"), drawDocs(rt, "after")
		for name, text := range before {
			if rapid.Bool().Draw(rt, "kept") {
				after[name] = text
			}
		}
		old, err := reread(rt, indexOf(nil, before)).contents()
		if err != nil {
			rt.Fatal(err)
		}
		fresh, again := indexOf(nil, after), indexOf(old, after)
		if !bytes.Equal(fresh.encode(), again.encode()) {
			rt.Fatal("an index that was built on another is different")
		}
		read := reread(rt, fresh)
		if d := cmp.Diff(fresh, read, cmp.AllowUnexported(docIndex{}, indexedFile{}, indexedSnippet{}, snippet{}), cmp.Transformer("empty", func(s []string) string { return strings.Join(s, "\n") }),
			cmp.Transformer("list", func(s []indexedFile) string { return fmt.Sprint(s) }), cmp.Transformer("snippets", func(s []indexedSnippet) string { return fmt.Sprint(s) })); d != "" {
			rt.Fatal(d)
		}
	})
}

// plainRank is rank without an index: it looks at every word of every snippet.
func plainRank(docs map[string]string, query string) (byWords, byLetters []float64) {
	var snippets []map[string]int
	holds := map[string]int{} // how many snippets have a word
	words := 0.0
	for _, name := range slices.Sorted(maps.Keys(docs)) {
		for _, s := range splitMarkdown(docs[name]) {
			counts := map[string]int{}
			add := func(text string) { eachWord(text, func(w []byte) { counts[string(w)]++; words++ }) }
			add(docs[name][s.start:s.end])
			add(strings.TrimSuffix(name[strings.LastIndex(name, "/")+1:], ".md"))
			for _, h := range s.headings {
				add(h)
			}
			if n := len(s.headings); n > 0 {
				add(s.headings[n-1])
			}
			for w := range counts {
				holds[w]++
			}
			snippets = append(snippets, counts)
		}
	}
	all := float64(len(snippets))
	rarity := func(w string) float64 {
		return math.Log(1 + (all-float64(holds[w])+0.5)/(float64(holds[w])+0.5))
	}
	for _, counts := range snippets {
		length, norm, bm25, cosine := 0.0, 0.0, 0.0, 0.0
		for _, n := range counts {
			length += float64(n)
			norm += math.Pow(1+math.Floor(math.Log2(float64(n))), 2)
		}
		for _, q := range queryWords(query) {
			n, known, best := float64(counts[q]), holds[q] > 0, 0.0
			if n > 0 {
				bm25 += rarity(q) * n * 2.2 / (n + 1.2*(0.25+0.75*length/(words/all)))
			}
			for w, n := range counts {
				like := plainLike(q, w)
				if like < 0.5 || known && like < 0.6 {
					continue
				}
				worth := rarity(w)
				if known {
					worth = min(worth, rarity(q))
				}
				best = max(best, like*like*worth*(1+math.Floor(math.Log2(float64(n)))))
			}
			cosine += best
		}
		byWords = append(byWords, bm25)
		byLetters = append(byLetters, cosine/math.Sqrt(max(norm, 1)))
	}
	return byWords, byLetters
}

func plainLike(q, w string) float64 {
	if q == w {
		return 1
	}
	if len([]rune(q)) <= 3 || strings.ContainsAny(q, "0123456789") {
		return 0
	}
	grams := func(s string) (list []string) {
		r := []rune("^" + s + "$")
		for i := range r {
			if i >= 1 {
				list = append(list, string(r[i-1:i+1]))
			}
			if i >= 2 {
				list = append(list, string(r[i-2:i+1]))
			}
		}
		return list
	}
	a, b := grams(q), grams(w)
	if float64(min(len(a), len(b))) < 0.6*float64(max(len(a), len(b))) {
		return 0
	}
	common := 0
	for _, g := range b {
		if slices.Contains(a, g) {
			common++
		}
	}
	return float64(min(common, len(a), len(b))) / math.Sqrt(float64(len(a)*len(b)))
}

// Ranking by the index is ranking by looking at everything.
func TestRankAgainstPlain(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		docs := drawDocs(rt, "docs")
		query := strings.Join(rapid.SliceOfN(rapid.SampledFrom([]string{"root", "files", "filse", "links", "linkage", "toolCalls", "東京", "coding", "the", "größe", "rooted"}), 1, 4).Draw(rt, "query"), " ")
		ix := reread(rt, indexOf(nil, docs))
		got, err := rank([]*docIndex{ix}, query)
		if err != nil {
			rt.Fatal(err)
		}
		want := map[int]float64{}
		for _, scores := range [][]float64{first(plainRank(docs, query)), second(plainRank(docs, query))} {
			for i, s := range scores {
				if s == 0 {
					continue
				}
				better := 0
				for j, other := range scores {
					if near := math.Abs(other-s) < 1e-9; other > s && !near || near && j < i {
						better++
					}
				}
				want[i] += 61 / float64(61+better) / 2
			}
		}
		if len(got) != len(want) {
			rt.Fatalf("%d hits, want %d", len(got), len(want))
		}
		for _, h := range got {
			if math.Abs(h.score-want[h.snippet]) > 0.02 { // equal scores may change places
				rt.Fatalf("%q: snippet %d has %v, want %v", query, h.snippet, h.score, want[h.snippet])
			}
		}
	})
}

func first(a, _ []float64) []float64  { return a }
func second(_, b []float64) []float64 { return b }

// Every cut and every changed byte of an index is noticed.
func TestDamagedIndex(t *testing.T) {
	data := string(indexOf(nil, map[string]string{"a.md": "# Roots\n\nfiles", "b.md": "links and files and files"}).encode())
	for i := range len(data) {
		if _, err := decodeIndex(data[:i]); err == nil {
			t.Errorf("cut at %d: no error", i)
		}
		b := []byte(data)
		b[i] ^= 1 << (i % 8)
		if _, err := decodeIndex(string(b)); err == nil {
			t.Errorf("byte %d changed: no error", i)
		}
	}
	newer := strings.Replace(data, "index 1\n", "index 2\n", 1)
	if _, err := decodeIndex(newer); !errors.Is(err, errNewerIndex) {
		t.Errorf("newer: %v", err)
	}
}

// An index with a right checksum and anything at all in it is read or refused.
func FuzzIndexFile(f *testing.F) {
	for _, docs := range []map[string]string{{}, {"a.md": "# Roots\n\nfiles files"}, {"a.md": "x", "b/c.md": "# A\n\nb\n## C\n\nd"}} {
		data := indexOf(nil, docs).encode()
		f.Add(data[:len(data)-4])
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		data = binary.LittleEndian.AppendUint32(bytes.Clone(data), crc32.Checksum(data, castagnoli))
		ix, err := decodeIndex(string(data))
		if err != nil {
			return
		}
		c, err := ix.contents()
		if _, rankErr := rank([]*docIndex{ix}, "files of roots"); err == nil && rankErr != nil {
			t.Fatal(rankErr)
		}
		if err != nil {
			return
		}
		x := newIndexer(&docIndex{folder: "."})
		for i := range c.index.files {
			x.reuse(c, i)
		}
		reread(t, x.finish())
	})
}

// corpus makes files of words that are distributed as those of a language are.
func corpus(files, bytes int) map[string]string {
	rnd := rand.New(rand.NewPCG(1, 2))
	var vocabulary []string
	for len(vocabulary) < 60_000 {
		w := ""
		for range 1 + rnd.IntN(4) {
			w += string("bcdfghklmnprstvw"[rnd.IntN(16)]) + string("aeiou"[rnd.IntN(5)]) + []string{"", "", "n", "r", "st"}[rnd.IntN(5)]
		}
		vocabulary = append(vocabulary, w)
	}
	zipf := rand.NewZipf(rnd, 1.1, 3, uint64(len(vocabulary)-1))
	docs := map[string]string{}
	for i := range files {
		var b strings.Builder
		for b.Len() < bytes/files {
			fmt.Fprintf(&b, "%s %s %s\n\n", []string{"#", "##", "###"}[rnd.IntN(3)], vocabulary[zipf.Uint64()], vocabulary[zipf.Uint64()])
			for range 40 + rnd.IntN(300) {
				b.WriteString(vocabulary[zipf.Uint64()])
				b.WriteString([]string{" ", " ", " ", " ", ", ", ".\n"}[rnd.IntN(6)])
			}
			b.WriteString("\n\n")
		}
		docs[fmt.Sprintf("part%d/file%d.md", i%20, i)] = b.String()
	}
	return docs
}

func BenchmarkRank(b *testing.B) {
	data := string(indexOf(nil, corpus(2000, 10<<20)).encode())
	for b.Loop() {
		ix, err := decodeIndex(data)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := rank([]*docIndex{ix}, "bano korena stinoba wufu how do the gadorast"); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(len(data)), "index-bytes")
}
