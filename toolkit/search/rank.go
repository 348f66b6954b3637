// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package search

import (
	"bytes"
	"cmp"
	"math"
	"math/bits"
	"slices"
	"unicode/utf8"
)

// maxQueryWords limits the different words of a query.
const maxQueryWords = 64

const (
	bm25Rise   = 1.2  // k1: how soon repetitions of a word add nothing
	bm25Length = 0.75 // b: how much the length of a snippet matters

	// likeLength is the smallest ratio of lengths of two similar words.
	likeLength = 0.6
	// The smallest similarity of a word to a word of the query, if the files
	// contain the latter and if they do not.
	likeKnown   = 0.60
	likeUnknown = 0.50
	maxLike     = 24 // similar words per word of the query

	// fusion is the usual constant of reciprocal rank fusion.
	fusion = 60
)

// A hit is a snippet that matches a query. Its score is at most 1.
type hit struct {
	index   *docIndex
	snippet int
	score   float64
}

// rank finds the snippets that match a query, best first. It treats all indexes
// as one. It ranks the snippets twice: by the words of the query (BM25), and by
// word vectors in which words with similar letters point in similar directions
// (soft cosine over letter pairs and triples, with lnc weights). The score is
// the sum of the reciprocal ranks.
func rank(indexes []*docIndex, query string) ([]hit, error) {
	r := ranker{indexes: indexes}
	for _, ix := range indexes {
		r.offsets = append(r.offsets, r.snippets)
		r.snippets += len(ix.snippets)
		r.words += ix.words
	}
	r.ask(query)
	if err := r.look(); err != nil {
		return nil, err
	}
	byWords, byLetters := make([]float64, r.snippets), make([]float64, r.snippets)
	for _, w := range r.query {
		if err := r.score(w, byWords, byLetters); err != nil {
			return nil, err
		}
	}
	r.normalise(byLetters)
	return r.fuse(byWords, byLetters), nil
}

type ranker struct {
	indexes  []*docIndex
	offsets  []int // number of each index's first snippet among all
	snippets int
	words    uint64
	query    []*queryWord
	grams    gramTable
}

// A queryWord is a word of the query with the similar words of the files.
type queryWord struct {
	word  string
	grams int // 0 if only the word itself is searched for
	like  map[string]*likeWord
}

type likeWord struct {
	word   string
	like   float64 // 1 is the word itself
	count  int     // number of snippets that contain it
	places []indexedTerm
}

type indexedTerm struct {
	index int
	term  term
}

// queryWords returns the different words of a query. Very common words are used
// only if there are no others.
func queryWords(query string) []string {
	var words, common []string
	eachWord(query, func(w []byte) {
		if s := string(w); commonWords[s] {
			common = append(common, s)
		} else if !slices.Contains(words, s) && len(words) < maxQueryWords {
			words = append(words, s)
		}
	})
	if len(words) == 0 {
		slices.Sort(common)
		common = slices.Compact(common)
		words = common[:min(len(common), maxQueryWords)]
	}
	return words
}

func (r *ranker) ask(query string) {
	for i, w := range queryWords(query) {
		q := &queryWord{word: w, like: map[string]*likeWord{}}
		if utf8.RuneCountInString(w) > 3 && !bytes.ContainsAny([]byte(w), "0123456789") {
			eachGram([]byte(w), func(g uint32) { r.grams[g] |= 1 << i; q.grams++ })
		}
		r.query = append(r.query, q)
	}
}

// look searches the dictionaries for the words of the query and similar words.
func (r *ranker) look() error {
	exact := map[string]*queryWord{}
	for _, q := range r.query {
		exact[q.word] = q
	}
	for i, ix := range r.indexes {
		err := ix.eachTerm(func(t term) error {
			if q := exact[string(t.word)]; q != nil {
				q.found(i, t, 1)
			}
			r.compare(i, t)
			return nil
		})
		if err != nil {
			return err
		}
	}
	for _, q := range r.query {
		q.choose()
	}
	return nil
}

// compare adds a word to each word of the query that it resembles.
func (r *ranker) compare(index int, t term) {
	var common [maxQueryWords]uint16
	var touched uint64
	grams := 0
	eachGram(t.word, func(g uint32) {
		grams++
		for m := r.grams[g]; m != 0; m &= m - 1 {
			common[bits.TrailingZeros64(m)]++
		}
		touched |= r.grams[g]
	})
	for ; touched != 0; touched &= touched - 1 {
		i := bits.TrailingZeros64(touched)
		q := r.query[i]
		n, short, long := float64(common[i]), float64(min(grams, q.grams)), float64(max(grams, q.grams))
		if like := min(n, short) / math.Sqrt(short*long); short >= likeLength*long && like >= likeUnknown && string(t.word) != q.word {
			q.found(index, t, like)
		}
	}
}

func (q *queryWord) found(index int, t term, like float64) {
	w := q.like[string(t.word)]
	if w == nil {
		w = &likeWord{word: string(t.word), like: like}
		q.like[w.word] = w
	}
	w.count += t.count
	w.places = append(w.places, indexedTerm{index, t})
}

// choose keeps the words that are most similar to the query's.
func (q *queryWord) choose() {
	least := likeUnknown
	if q.like[q.word] != nil {
		least = likeKnown
	}
	var list []*likeWord
	for _, w := range q.like {
		if w.like >= least {
			list = append(list, w)
		}
	}
	slices.SortFunc(list, func(a, b *likeWord) int {
		return cmp.Or(cmp.Compare(b.like, a.like), cmp.Compare(a.word, b.word))
	})
	clear(q.like)
	for _, w := range list[:min(len(list), maxLike)] {
		q.like[w.word] = w
	}
}

// rarity returns the inverse document frequency of a word, as defined by BM25.
func (r *ranker) rarity(count int) float64 {
	return math.Log(1 + (float64(r.snippets-count)+0.5)/(float64(count)+0.5))
}

// score adds the contribution of one word of the query to each snippet.
func (r *ranker) score(q *queryWord, byWords, byLetters []float64) error {
	most := math.Inf(1) // no similar word is worth more than the word itself
	if w := q.like[q.word]; w != nil {
		most = r.rarity(w.count)
		if err := r.scoreWords(w, byWords); err != nil {
			return err
		}
	}
	best := map[int]float64{}
	for _, w := range q.like {
		worth := w.like * w.like * min(most, r.rarity(w.count))
		err := r.each(w, func(snippet int, _ *indexedSnippet, count int32) {
			best[snippet] = max(best[snippet], worth*float64(weightOf(count)))
		})
		if err != nil {
			return err
		}
	}
	for snippet, b := range best {
		byLetters[snippet] += b
	}
	return nil
}

func (r *ranker) scoreWords(w *likeWord, scores []float64) error {
	usual := float64(r.words) / float64(r.snippets)
	rarity := r.rarity(w.count)
	return r.each(w, func(snippet int, s *indexedSnippet, count int32) {
		n := float64(count)
		scores[snippet] += rarity * n * (bm25Rise + 1) / (n + bm25Rise*(1-bm25Length+bm25Length*float64(s.length)/usual))
	})
}

// each visits the snippets that contain a word.
func (r *ranker) each(w *likeWord, visit func(snippet int, s *indexedSnippet, count int32)) error {
	for _, p := range w.places {
		ix := r.indexes[p.index]
		err := ix.eachPosting(p.term, func(at posting) {
			visit(r.offsets[p.index]+int(at.id), &ix.snippets[at.id], at.count)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (r *ranker) normalise(scores []float64) {
	for i, ix := range r.indexes {
		for j := range ix.snippets {
			scores[r.offsets[i]+j] /= math.Sqrt(float64(max(ix.snippets[j].norm, 1)))
		}
	}
}

// fuse adds the reciprocal ranks.
func (r *ranker) fuse(lists ...[]float64) []hit {
	hits := make([]hit, r.snippets)
	for i, ix := range r.indexes {
		for j := range ix.snippets {
			hits[r.offsets[i]+j] = hit{index: ix, snippet: j}
		}
	}
	for _, scores := range lists {
		var order []int
		for i, s := range scores {
			if s > 0 {
				order = append(order, i)
			}
		}
		slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(scores[b], scores[a]) })
		for rank, i := range order {
			hits[i].score += (fusion + 1) / float64(fusion+1+rank) / float64(len(lists))
		}
	}
	hits = slices.DeleteFunc(hits, func(h hit) bool { return h.score == 0 })
	slices.SortStableFunc(hits, func(a, b hit) int { return cmp.Compare(b.score, a.score) })
	return hits
}

// gramTable maps a letter pair or triple to the set of query words that contain it.
type gramTable [1 << gramBits]uint64

const gramBits = 13

// eachGram calls visit with the hash of each pair and triple of letters of a
// word. The two ends of the word count as letters.
func eachGram(word []byte, visit func(gram uint32)) {
	var a, b rune = 0, 1
	for i := 0; i <= len(word); {
		c, n := rune(2), 1
		if i < len(word) {
			if c = rune(word[i]); c >= utf8.RuneSelf {
				c, n = utf8.DecodeRune(word[i:])
			}
		}
		visit(gramHash(0, b, c))
		if a != 0 {
			visit(gramHash(a, b, c))
		}
		a, b = b, c
		i += n
	}
}

func gramHash(a, b, c rune) uint32 {
	h := uint32(a)*0x9E3779B1 ^ uint32(b)*0x85EBCA77 ^ uint32(c)*0xC2B2AE3D
	h ^= h >> 15
	h *= 0x2C1B3C6D
	return h >> (32 - gramBits)
}
