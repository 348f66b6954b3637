// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package search

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"maps"
	"math/bits"
	"path"
	"slices"
	"strings"
)

// docIndex maps words to the snippets of the Markdown files in a folder. It holds
// the positions of the snippets, not their texts. It is immutable.
type docIndex struct {
	name        string // not stored in the index file
	description string
	root        string // name of the folder's root, or "" for the default
	folder      string // path inside the root
	files       []indexedFile
	snippets    []indexedSnippet // sorted by file
	words       uint64           // total length of all snippets, in words
	dictionary  string           // the words in order, front-coded; see index_file.go
	terms       int              // number of words in the dictionary
	postings    string
}

type indexedFile struct {
	path     string // path inside the folder
	hash     fileHash
	from, to int // range of its snippets
}

// fileHash is the first half of the SHA-256 of a file.
type fileHash [16]byte

type indexedSnippet struct {
	snippet
	file   int
	sum    uint64 // hash of the text
	length uint64 // in words
	norm   uint64 // the square of the length of its vector; see weightOf
}

// A posting says how often a word occurs in a snippet.
type posting struct {
	id    int32 // of the snippet or of the word
	count int32
}

// hashOf returns the hash of a file; sumOf returns that of a snippet's text.
func hashOf(text []byte) (h fileHash) {
	sum := sha256.Sum256(text)
	copy(h[:], sum[:])
	return h
}

func sumOf(text string) uint64 {
	sum := sha256.Sum256([]byte(text))
	return binary.LittleEndian.Uint64(sum[:])
}

// weightOf returns the weight of a word in a snippet's vector: 1 plus the integer
// part of the binary logarithm of its count. The index contains no fractions, so
// it is the same on every machine.
func weightOf(count int32) uint64 { return uint64(bits.Len32(uint32(count))) }

// A word in a heading counts as if it occurred this often in the text.
const (
	innerHeading = 2
	outerHeading = 1
	fileName     = 1
)

// An indexer builds an index, file by file.
type indexer struct {
	ids   map[string]int32 // numbers of the words, in order of appearance
	index *docIndex
	found [][]posting // the words of each snippet

	counts map[int32]int32 // word counts of the current snippet
}

func newIndexer(ix *docIndex) *indexer {
	return &indexer{ids: map[string]int32{}, index: ix, counts: map[int32]int32{}}
}

func (x *indexer) id(word []byte) int32 {
	id, ok := x.ids[string(word)]
	if !ok {
		id = int32(len(x.ids))
		x.ids[string(word)] = id
	}
	return id
}

// read adds a file with the given text.
func (x *indexer) read(name string, hash fileHash, text string) {
	from := len(x.index.snippets)
	for _, s := range splitMarkdown(text) {
		x.count(text[s.start:s.end], 1)
		x.count(strings.TrimSuffix(path.Base(name), path.Ext(name)), fileName)
		for i, h := range s.headings {
			times := int32(outerHeading)
			if i == len(s.headings)-1 {
				times = innerHeading
			}
			x.count(h, times)
		}
		x.add(indexedSnippet{snippet: s, sum: sumOf(text[s.start:s.end])}, x.take())
	}
	x.file(name, hash, from)
}

// reuse adds an unchanged file from another index.
func (x *indexer) reuse(old *contents, file int) {
	f := old.index.files[file]
	from := len(x.index.snippets)
	for i := f.from; i < f.to; i++ {
		list := make([]posting, len(old.found[i]))
		for j, p := range old.found[i] {
			list[j] = posting{x.id([]byte(old.words[p.id])), p.count}
		}
		x.add(old.index.snippets[i], list)
	}
	x.file(f.path, f.hash, from)
}

func (x *indexer) file(name string, hash fileHash, from int) {
	x.index.files = append(x.index.files, indexedFile{name, hash, from, len(x.index.snippets)})
}

func (x *indexer) count(text string, times int32) {
	eachWord(text, func(w []byte) { x.counts[x.id(w)] += times })
}

// take returns the word counts of the current snippet and resets them.
func (x *indexer) take() []posting {
	list := make([]posting, 0, len(x.counts))
	for id, n := range x.counts {
		list = append(list, posting{id, n})
	}
	clear(x.counts)
	return list
}

func (x *indexer) add(s indexedSnippet, list []posting) {
	s.file, s.length, s.norm = len(x.index.files), 0, 0
	for _, p := range list {
		s.length += uint64(p.count)
		s.norm += weightOf(p.count) * weightOf(p.count)
	}
	x.index.words += s.length
	x.index.snippets = append(x.index.snippets, s)
	x.found = append(x.found, list)
}

// finish writes the dictionary and the postings and returns the index.
func (x *indexer) finish() *docIndex {
	lists := x.byWord()
	var d dictionaryWriter
	for _, w := range slices.Sorted(maps.Keys(x.ids)) {
		d.add(w, lists[x.ids[w]])
	}
	x.index.terms, x.index.dictionary, x.index.postings = d.n, string(d.words), string(d.postings)
	return x.index
}

// byWord inverts the lists: from the words of each snippet to the snippets of
// each word.
func (x *indexer) byWord() [][]posting {
	sizes, all := make([]int, len(x.ids)), 0
	for _, list := range x.found {
		all += len(list)
		for _, p := range list {
			sizes[p.id]++
		}
	}
	room := make([]posting, all)
	lists := make([][]posting, len(x.ids))
	for id, n := range sizes {
		lists[id], room = room[:0:n], room[n:]
	}
	for s, list := range x.found {
		for _, p := range list {
			lists[p.id] = append(lists[p.id], posting{int32(s), p.count})
		}
	}
	return lists
}

// contents is an index that was read back in order to build another from it.
type contents struct {
	index *docIndex
	words []string
	found [][]posting // the words of each snippet
}

func (ix *docIndex) contents() (*contents, error) {
	c := &contents{index: ix, found: make([][]posting, len(ix.snippets))}
	err := ix.eachTerm(func(t term) error {
		id := int32(len(c.words))
		c.words = append(c.words, string(t.word))
		return ix.eachPosting(t, func(p posting) {
			c.found[p.id] = append(c.found[p.id], posting{id, p.count})
		})
	})
	return c, err
}

// byPath returns the index of a file.
func (ix *docIndex) byPath(name string) (int, bool) {
	return slices.BinarySearchFunc(ix.files, name, func(f indexedFile, name string) int { return cmp.Compare(f.path, name) })
}
