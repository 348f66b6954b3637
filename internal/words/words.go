// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

// Package words splits texts into words for searching. All stores use it so that
// they find the same: databases and their versions differ in what their parsers
// treat as a word.
//
// A word is a run of letters and digits, in lower case and without diacritics:
// "Café-Öl" has the words "cafe" and "ol". In scripts without spaces between words
// (Chinese, Japanese, Korean, Thai, …) each character is a word.
package words

import (
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// MaxWord is the maximum length of a word in bytes. Longer words, such as base64
// data, are cut in texts and in queries.
const MaxWord = 64

// Word is a word of a text, and its place: the bytes From to To.
type Word struct {
	Text     string
	From, To int
}

// Of yields the words of a text in order.
func Of(text string) iter.Seq[Word] {
	return func(yield func(Word) bool) {
		var word []byte
		begin := 0
		for i, r := range text {
			switch {
			case unicode.Is(unicode.Mn, r) && len(word) > 0: // a combining diacritic
				continue
			case alone(r):
				if !emit(&word, begin, i, yield) {
					return
				}
				end := i + utf8.RuneLen(r)
				if !yield(Word{string(fold(nil, r)), i, end}) {
					return
				}
			case isWord(r):
				if len(word) == 0 {
					begin = i
				}
				word = fold(word, r)
			case !emit(&word, begin, i, yield):
				return
			}
		}
		emit(&word, begin, len(text), yield)
	}
}

// emit yields the word that has ended, if there is one.
func emit(word *[]byte, from, to int, yield func(Word) bool) bool {
	if len(*word) == 0 {
		return true
	}
	w := *word
	if len(w) > MaxWord {
		end := MaxWord
		for !utf8.RuneStart(w[end]) {
			end--
		}
		w = w[:end]
	}
	*word = (*word)[:0]
	return yield(Word{string(w), from, to})
}

func isWord(r rune) bool {
	if r < utf8.RuneSelf {
		return '0' <= r && r <= '9' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z'
	}
	return r != utf8.RuneError && (unicode.IsLetter(r) || unicode.IsNumber(r) || unicode.Is(unicode.Mc, r))
}

// unspaced are the scripts without spaces, or with too few spaces, between words.
var unspaced = []*unicode.RangeTable{unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar}

// alone reports whether a character is a word of its own.
func alone(r rune) bool {
	const first = 0x0e00 // Thai, the first of those scripts
	return r >= first && unicode.IsLetter(r) && unicode.In(r, unspaced...)
}

// fold appends a character of a word, in lower case and without diacritics.
func fold(word []byte, r rune) []byte {
	if r < utf8.RuneSelf {
		if 'A' <= r && r <= 'Z' {
			r += 'a' - 'A'
		}
		return append(word, byte(r))
	}
	var in [utf8.UTFMax]byte
	var out [64]byte
	for _, part := range string(norm.NFKD.Append(out[:0], in[:utf8.EncodeRune(in[:], r)]...)) {
		if isWord(part) {
			word = utf8.AppendRune(word, unicode.ToLower(part))
		}
	}
	return word
}

// Text returns the words of a text, separated by spaces.
func Text(text string) string {
	var b strings.Builder
	for w := range Of(text) {
		if b.Len() > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(w.Text)
	}
	return b.String()
}

// Query is a list of phrases that a text must all contain. A phrase is a list of
// consecutive words.
type Query [][]string

// maxPhrases limits the work of a database for one query.
const maxPhrases = 32

// Parse parses a person's query: words, and phrases in double quotes. There is no
// other syntax: all characters other than letters and digits separate words, so
// "foo-bar" is a phrase of two words. A query without words is an error.
func Parse(text string) (Query, error) {
	var q Query
	for i, part := range strings.Split(text, `"`) {
		list := []string{part} // a phrase
		if i%2 == 0 {
			list = strings.Fields(part)
		}
		for _, one := range list {
			var phrase []string
			for w := range Of(one) {
				phrase = append(phrase, w.Text)
			}
			if len(phrase) > 0 {
				q = append(q, phrase)
			}
		}
	}
	switch {
	case len(q) == 0:
		if strings.TrimSpace(text) == "" {
			return nil, errors.New("no words were given")
		}
		return nil, fmt.Errorf("there are no words in %#q: it has no letters and no digits", text)
	case len(q) > maxPhrases:
		return nil, fmt.Errorf("%d words and phrases to search for: give at most %d", len(q), maxPhrases)
	}
	return q, nil
}

// Find searches for the query in a text. It returns the place of the first phrase:
// the bytes from and to.
func (q Query) Find(text string) (from, to int, found bool) {
	var last []Word // as many as in the longest phrase
	longest, missing := 0, len(q)
	for _, phrase := range q {
		longest = max(longest, len(phrase))
	}
	there := make([]bool, len(q))
	for w := range Of(text) {
		if last = append(last, w); len(last) > longest {
			last = slices.Delete(last, 0, 1)
		}
		for i, phrase := range q {
			if there[i] || !ends(last, phrase) {
				continue
			}
			if missing == len(q) {
				from, to = last[len(last)-len(phrase)].From, w.To
			}
			there[i] = true
			if missing--; missing == 0 {
				return from, to, true
			}
		}
	}
	return 0, 0, false
}

// ends reports whether words end with a phrase.
func ends(words []Word, phrase []string) bool {
	if len(words) < len(phrase) {
		return false
	}
	for i, w := range words[len(words)-len(phrase):] {
		if w.Text != phrase[i] {
			return false
		}
	}
	return true
}

// The number of bytes of a text before and after the found place.
const (
	before = 40
	behind = 80
)

// Snippet returns the text around the bytes from and to, on one line.
func Snippet(text string, from, to int) string {
	begin, end := max(from-before, 0), min(max(to, from)+behind, len(text))
	for begin > 0 && !utf8.RuneStart(text[begin]) {
		begin--
	}
	for end < len(text) && !utf8.RuneStart(text[end]) {
		end++
	}
	line := strings.Join(strings.FieldsFunc(text[begin:end], func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }), " ")
	if begin > 0 {
		line = "…" + line
	}
	if end < len(text) {
		line += "…"
	}
	return line
}
