// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package search

import (
	"bytes"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxWord is the longest word that is indexed, in runes. A longer one is probably
// data.
const maxWord = 48

// eachWord calls yield for the words of a text: in lower case, without accents
// and English endings. An identifier (parallelToolCalls, tool_choice) yields its
// parts and then the whole. In a script without spaces between words, every two
// neighboring characters form a word. The slice is valid until yield returns.
func eachWord(text string, yield func(word []byte)) {
	t := tokenizer{yield: yield}
	for i := 0; i < len(text); {
		r, n := rune(text[i]), 1
		if r >= utf8.RuneSelf {
			r, n = utf8.DecodeRuneInString(text[i:])
		}
		t.add(r)
		i += n
	}
	t.flush()
}

type tokenizer struct {
	yield  func([]byte)
	word   []rune
	packed rune // the previous rune, in a script without spaces
	skip   bool // skipping the rest of a word after an apostrophe: 's, 't, 'll
	skips  int
	buf    []byte
}

func (t *tokenizer) add(r rune) {
	switch {
	case r >= 0x300 && unicode.Is(unicode.Mn, r):
		return
	case hasNoSpaces(r):
		t.flushWord()
		if t.packed != 0 {
			t.emit([]rune{t.packed, r})
		}
		t.packed = r
		return
	case unicode.IsLetter(r) || unicode.IsDigit(r) || r == '_':
		if t.skip && t.skips < 2 {
			t.skips++
			return
		}
		t.packed, t.skip = 0, false
		if len(t.word) <= maxWord {
			t.word = append(t.word, r)
		}
	case (r == '\'' || r == '’') && len(t.word) > 0:
		t.flush()
		t.skip, t.skips = true, 0
	default:
		t.flush()
	}
}

func hasNoSpaces(r rune) bool {
	return r >= 0x0E00 && unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai)
}

func (t *tokenizer) flush() {
	t.flushWord()
	t.packed, t.skip = 0, false
}

// flushWord ends a word and emits its parts.
func (t *tokenizer) flushWord() {
	word := t.word
	t.word = word[:0]
	if len(word) == 0 || len(word) > maxWord {
		return
	}
	from, parts := 0, 0
	for i := 1; i <= len(word); i++ {
		if i < len(word) && !splits(word, i) {
			continue
		}
		if from > 0 || i < len(word) {
			parts += t.emit(word[from:i])
		}
		from = i
	}
	if parts != 1 {
		t.emit(word)
	}
}

// splits reports whether a part of an identifier begins at word[i].
func splits(word []rune, i int) bool {
	if word[i-1] == '_' || word[i] == '_' {
		return true
	}
	if !unicode.IsUpper(word[i]) {
		return false
	}
	return !unicode.IsUpper(word[i-1]) || i+1 < len(word) && unicode.IsLower(word[i+1])
}

// emit yields one word and returns 1, or returns 0 if nothing is left of the word.
func (t *tokenizer) emit(word []rune) int {
	t.buf = t.buf[:0]
	for _, r := range word {
		if r == '_' {
			continue
		}
		if r = unicode.ToLower(r); r < utf8.RuneSelf {
			t.buf = append(t.buf, byte(r))
		} else {
			t.buf = appendPlain(t.buf, r)
		}
	}
	if len(t.buf) == 0 {
		return 0
	}
	t.yield(stem(t.buf))
	return 1
}

// plainLatin maps letters to their form without accents.
var plainLatin = func() map[rune]string {
	m := map[rune]string{'ß': "ss", 'æ': "ae", 'œ': "oe", 'þ': "th", 'ø': "o", 'ł': "l", 'đ': "d", 'ı': "i"}
	for plain, letters := range map[string]string{
		"a": "àáâãäåāăą", "c": "çćĉċč", "d": "ď", "e": "èéêëēĕėęě", "g": "ĝğġģ", "h": "ĥħ", "i": "ìíîïĩīĭį",
		"j": "ĵ", "k": "ķ", "l": "ĺļľ", "n": "ñńņň", "o": "òóôõöōŏő", "r": "ŕŗř", "s": "śŝşšș", "t": "ţťŧț",
		"u": "ùúûüũūŭůűų", "w": "ŵ", "y": "ýÿŷ", "z": "źżž",
	} {
		for _, r := range letters {
			m[r] = plain
		}
	}
	return m
}()

func appendPlain(b []byte, r rune) []byte {
	if plain, ok := plainLatin[r]; ok {
		return append(b, plain...)
	}
	return utf8.AppendRune(b, r)
}

// stem removes English endings from a word of plain letters, in place. Words with
// the same meaning must give equal results; the result need not be a word.
func stem(w []byte) []byte {
	for _, c := range w {
		if c < 'a' || c > 'z' {
			return w
		}
	}
	w = singular(w)
	for _, e := range endings {
		if rest, ok := bytes.CutSuffix(w, []byte(e.end)); ok && len(rest) >= e.least && hasVowel(rest) {
			w = append(rest, e.plus...)
			if e.verb {
				w = undouble(w)
			}
			break
		}
	}
	if n := len(w); n >= 3 && w[n-1] == 'e' && w[n-2] != 'e' && hasVowel(w[:n-1]) {
		w = w[:n-1]
	}
	return w
}

// endings are tried in this order. The first one that leaves enough of the word is
// removed.
var endings = []struct {
	end, plus string
	least     int
	verb      bool // a consonant before it may be doubled
}{
	{"ization", "iz", 3, false}, {"isation", "iz", 3, false}, {"ising", "iz", 4, false}, {"ised", "iz", 4, false}, {"ise", "iz", 4, false},
	{"ation", "", 4, false}, {"ment", "", 4, false}, {"ness", "", 4, false}, {"able", "", 4, false}, {"ible", "", 4, false},
	{"ingly", "", 4, false}, {"ally", "al", 4, false}, {"ly", "", 4, false}, {"eed", "eed", 1, false},
	{"ing", "", 2, true}, {"ied", "y", 2, false}, {"ed", "", 2, true}, {"ion", "", 5, false}, {"er", "", 4, true}, {"or", "", 5, true},
}

// singular removes the s of a plural or a verb.
func singular(w []byte) []byte {
	n := len(w)
	if n < 4 || w[n-1] != 's' {
		return w
	}
	switch s := string(w[n-3:]); {
	case s == "ies":
		return append(w[:n-3], 'y')
	case s[1] == 's' || s[1] == 'u' || s[1] == 'i':
		return w
	case s == "ses" && w[n-4] == 's', s == "xes", s == "hes" && (w[n-4] == 's' || w[n-4] == 'c'), s == "zes" && w[n-4] == 'z':
		return w[:n-2]
	}
	return w[:n-1]
}

func hasVowel(w []byte) bool { return bytes.ContainsAny(w, "aeiouy") }

// undouble changes runn to run, but keeps call, pass and buzz.
func undouble(w []byte) []byte {
	n := len(w)
	if n >= 4 && w[n-1] == w[n-2] && !strings.ContainsRune("lszaeiou", rune(w[n-1])) {
		return w[:n-1]
	}
	return w
}

// commonWords are words that say nothing about the topic of a query.
var commonWords = func() map[string]bool {
	m := map[string]bool{}
	eachWord(`a about all also an and any are as at be been being but by can could did do does doing for from get
had has have how i if in into is it its just me my no not of on or our should so some such than that the their them then there
these they this those to too us use used using was we were what when where which while who whom why will with would you your`,
		func(w []byte) { m[string(w)] = true })
	return m
}()
