// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

// Package words cuts texts into words to search for. All stores use it, so that
// they find the same: what a database's own parser takes for a word differs from
// database to database, and by its version.
//
// A word is a run of letters and digits, in lower case and without diacritics:
// "Café-Öl" is the words "cafe" and "ol". Where a script writes no spaces between
// words (Chinese, Japanese, Korean, Thai, …) each character is a word.
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

// MaxWord is the length of a word in bytes. What is longer, such as data in
// base64, is cut off, in texts and in queries alike.
const MaxWord = 64

// Word is a word of a text, and where it is: the bytes From to To.
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
			case unicode.Is(unicode.Mn, r) && len(word) > 0: // a diacritic of its own
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

// emit yields a word that has ended, if there is one.
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

// unspaced are the scripts that write no spaces between words, or too few.
var unspaced = []*unicode.RangeTable{unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar}

// alone reports a character that is a word by itself.
func alone(r rune) bool {
	const first = 0x0e00 // of Thai, the first of those scripts
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

// Text returns the words of a text with a space between them.
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

// Query is what a text must have: all phrases, each of which is words that
// follow one another.
type Query [][]string

// maxPhrases bounds what a database has to do for one query.
const maxPhrases = 32

// Parse reads what a person asks for: words, and phrases in double quotes. There
// is no other syntax: what is neither letter nor digit separates, so that
// "foo-bar" is a phrase of two words. It refuses a query without words.
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

// Find looks for the query in a text. It returns where the first one of the
// phrases is first, the bytes from and to.
func (q Query) Find(text string) (from, to int, found bool) {
	var last []Word // as many as the longest phrase has
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

// How many bytes of a text stand before and after what was found.
const (
	before = 40
	behind = 80
)

// Snippet returns what stands around the bytes from and to of a text, in one
// line.
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
