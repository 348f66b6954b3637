// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package item_test

import (
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
	"pgregory.net/rapid"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/item"
)

// W11: what is not JSON is refused with the offset.
func TestSyntaxErrors(t *testing.T) {
	for _, test := range []struct {
		in      string
		offset  int
		problem string
	}{
		{"", 0, "unexpected end"},
		{" \n", 2, "unexpected end"},
		{`{"a":1`, 6, "unexpected end"},
		{`{"a"`, 4, "unexpected end"},
		{`{"a":`, 5, "unexpected end"},
		{`{"a" 1}`, 5, "expected ':'"},
		{`{"a":1,}`, 7, "expected a member name"},
		{`{a:1}`, 1, "expected a member name"},
		{`{"a":1 "b":2}`, 7, "expected ',' or '}'"},
		{`[1 2]`, 3, "expected ',' or ']'"},
		{`[1,]`, 3, "unexpected character ']'"},
		{`[`, 1, "unexpected end"},
		{`{} {}`, 3, "text after the value"},
		{`'a'`, 0, `unexpected character '\''`},
		{`tru`, 3, "unexpected end"},
		{`trux`, 3, "expected true"},
		{`nul1`, 3, "expected null"},
		{`+1`, 0, "unexpected character '+'"},
		{`01`, 1, "text after the value"},
		{`-`, 1, "unexpected end"},
		{`-a`, 1, "expected a digit"},
		{`1.`, 2, "unexpected end"},
		{`1.x`, 2, "expected a digit after the decimal point"},
		{`1e+`, 3, "unexpected end"},
		{`1ex`, 2, "expected a digit in the exponent"},
		{`"a`, 2, "unexpected end"},
		{"\"a\nb\"", 2, `control character '\n'`},
		{`"\x"`, 2, `invalid escape \x`},
		{`"\u12g4"`, 5, "expected four hexadecimal digits"},
		{`"\u12`, 5, "unexpected end"},
		{`"\`, 2, "unexpected end"},
		{"\"a\xffb\"", 2, "invalid UTF-8"},
		{"\"\xed\xa0\x80\"", 1, "invalid UTF-8"}, // a surrogate's bytes
		{"\ufeff{}", 0, "unexpected character"},
	} {
		err := item.JSON(test.in).Valid()
		var syntax *item.SyntaxError
		if !errors.As(err, &syntax) {
			t.Errorf("%q: got %v, want a *SyntaxError", test.in, err)
			continue
		}
		if syntax.Offset != test.offset || !strings.Contains(syntax.Problem, test.problem) {
			t.Errorf("%q: got byte %d, %q; want byte %d, %q", test.in, syntax.Offset, syntax.Problem, test.offset, test.problem)
		}
	}
}

// W11: the limit of depth is exact, in every reader, and typed.
func TestMaxDepth(t *testing.T) {
	nest := func(open, inner, end string, n int) string {
		return strings.Repeat(open, n) + inner + strings.Repeat(end, n)
	}
	for _, kind := range []struct{ open, inner, end string }{{"[", "", "]"}, {`{"a":`, "1", "}"}} {
		if err := item.JSON(nest(kind.open, kind.inner, kind.end, item.MaxDepth)).Valid(); err != nil {
			t.Errorf("%s at the limit: %v", kind.open, err)
		}
		err := item.JSON(nest(kind.open, kind.inner, kind.end, item.MaxDepth+1)).Valid()
		var syntax *item.SyntaxError
		if !errors.As(err, &syntax) || syntax.Offset != item.MaxDepth*len(kind.open) || !strings.Contains(syntax.Problem, "10000 deep") {
			t.Errorf("%s beyond the limit: %v", kind.open, err)
		}
	}
	deep := `{"type":"message","role":"user","content":"x","deep":` + nest("[", "", "]", item.MaxDepth) + `}`
	for name, read := range map[string]func([]byte) error{
		"Parse":         func(b []byte) error { _, err := item.Parse(b); return err },
		"ParseEvent":    func(b []byte) error { _, err := api.ParseEvent(b); return err },
		"ParseRequest":  func(b []byte) error { _, err := api.ParseRequest(b); return err },
		"ParseResponse": func(b []byte) error { _, err := api.ParseResponse(b); return err },
	} {
		var syntax *item.SyntaxError
		if err := read([]byte(deep)); !errors.As(err, &syntax) || syntax.Offset != strings.Index(deep, "[[")+item.MaxDepth-1 {
			t.Errorf("%s: %v", name, err)
		}
	}
	// One level less is read, and survives decoding.
	roundTrip(t, strings.Replace(deep, "[[", "[", 1)[:len(deep)-3]+"}")
}

// W11: long strings are kept.
func TestLongString(t *testing.T) {
	long := strings.Repeat("ä\\n", 10<<20/4)
	in := `{"type":"message","role":"user","content":"` + long + `"}`
	it := parse(t, in)
	if it.JSON() != in {
		t.Error("the bytes changed")
	}
	if m := as[item.Message](t, it); m.Content.Text != strings.ReplaceAll(long, `\n`, "\n") {
		t.Error("the text changed")
	}
}

// validByOracle is what the scanner must accept: what jsontext does, with
// duplicate names, and escaped surrogates without a partner.
func validByOracle(s string) bool {
	return utf8.ValidString(s) &&
		jsontext.Value(s).IsValid(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
}

func checkScan(t tester, s string) {
	t.Helper()
	err := item.JSON(s).Valid()
	if want := validByOracle(s); (err == nil) != want {
		t.Errorf("%q: got %v, jsontext says %v", s, err, want)
	}
	var syntax *item.SyntaxError
	if err != nil && (!errors.As(err, &syntax) || syntax.Offset < 0 || syntax.Offset > len(s) || syntax.Problem == "") {
		t.Errorf("%q: %#v", s, err)
	}
	// Cut anywhere before the offset, the text is a beginning: no other error
	// than an unexpected end can come earlier.
	if syntax != nil && syntax.Offset > 0 {
		err := item.JSON(s[:syntax.Offset]).Valid()
		var earlier *item.SyntaxError
		if errors.As(err, &earlier) && earlier.Offset < syntax.Offset && utf8.ValidString(s[:syntax.Offset]) {
			t.Errorf("%q: stopped at %d, but its beginning at %d", s, syntax.Offset, earlier.Offset)
		}
	}
}

// tokens are what a JSON text, or nearly one, is made of.
var tokens = []string{
	"{", "}", "[", "]", ":", ",", `"`, `""`, `"a"`, `"type"`, "\\", `\n`, `\u`, `\u00e9`, `\ud83d`, `\ude00`,
	"1", "0", "-", "+", ".", "e", "E", "1.5e-7", "12345678901234567890", "true", "false", "null", "t",
	" ", "\n", "\t", "\r", "\v", "\x00", "\x1f", "\x7f", "\xff", "ä", "😀", "\u2028", "\ufeff",
}

// W11
func TestScanAgainstJSONText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		parts := rapid.SliceOfN(rapid.SampledFrom(tokens), 0, 12).Draw(t, "tokens")
		s := strings.Join(parts, "")
		checkScan(t, s)
		checkScan(t, `{"a":[`+s+`]}`)
		checkScan(t, `"`+s+`"`)
	})
}

// checkString compares the reading and writing of strings with jsontext.
func checkString(t tester, s string) {
	t.Helper()
	valid := strings.ToValidUTF8(s, "\uFFFD")
	quoted := item.Quote(s)
	if err := quoted.Valid(); err != nil {
		t.Errorf("Quote(%q): %v", s, err)
	}
	if back, ok := quoted.Unquote(); !ok || back != valid {
		t.Errorf("Quote(%q) is read back as %q, %v", s, back, ok)
	}
	want, err := jsontext.AppendQuote(nil, valid)
	if err != nil || string(want) != string(quoted) {
		t.Errorf("Quote(%q) = %s, jsontext writes %s, %v", s, quoted, want, err)
	}
	lit := `"` + s + `"`
	if item.JSON(lit).Valid() != nil {
		return
	}
	got, ok := item.JSON(lit).Unquote()
	plain, _ := jsontext.AppendUnquote(nil, lit) // its error is of lone surrogates
	if !ok || got != string(plain) {
		t.Errorf("Unquote(%q) = %q, %v; jsontext reads %q", lit, got, ok, plain)
	}
}

// W11
func TestStringsAgainstJSONText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		checkString(t, strings.Join(rapid.SliceOfN(rapid.SampledFrom(tokens), 0, 8).Draw(t, "tokens"), ""))
		checkString(t, rapid.String().Draw(t, "text"))
	})
}

func TestUnquoteOtherKinds(t *testing.T) {
	for _, j := range []item.JSON{"", `"`, "1", "null", "[]", "{}"} {
		if s, ok := j.Unquote(); ok || s != "" {
			t.Errorf("%q: %q, %v", j, s, ok)
		}
	}
}

// checkMembers compares what the item finds by name, and what a list of its
// values finds, with a walk by jsontext.
func checkMembers(t tester, it item.Item) {
	t.Helper()
	d := jsontext.NewDecoder(strings.NewReader(it.JSON()), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	last := map[string]string{}
	var objects []string
	for d.PeekKind() != '}' {
		token, err := d.ReadToken()
		if err != nil {
			t.Fatalf("%v in %q", err, it.JSON())
		}
		if token.Kind() == '{' {
			continue
		}
		name := token.String()
		value, err := d.ReadValue()
		if err != nil {
			t.Fatalf("%v in %q", err, it.JSON())
		}
		last[name] = string(value)
		if value.Kind() == '{' {
			objects = append(objects, string(value))
		}
	}
	for name, want := range last {
		if got, ok := it.Member(name); !ok || string(got) != want {
			t.Errorf("member %q of %q: %q, %v; want %q", name, it.JSON(), got, ok, want)
		}
	}
	items, err := item.ParseList("[ " + strings.Join(objects, "\n,") + "]")
	if err != nil || len(items) != len(objects) {
		t.Fatalf("%d items, %v; want %d", len(items), err, len(objects))
	}
	for i, it := range items {
		if it.JSON() != objects[i] {
			t.Errorf("item %d: %q, want %q", i, it.JSON(), objects[i])
		}
	}
}

// W8 W11: members are found where jsontext finds them.
func TestMembersAgainstJSONText(t *testing.T) {
	words := append([]string{`"a":`, `"b\"":`, `,"a":{"x":"}"}`, `,"c":[",",{}]`, `,"d":{}`, `:{"\\":"\\"}`, `,"\u0061":1`}, tokens...)
	rapid.Check(t, func(t *rapid.T) {
		s := "{" + strings.Join(rapid.SliceOfN(rapid.SampledFrom(words), 0, 10).Draw(t, "words"), "") + "}"
		if it, err := item.ParseString(s); err == nil {
			checkMembers(t, it)
		}
		var b strings.Builder
		b.WriteString(`{"first" : null`)
		for range rapid.IntRange(0, 6).Draw(t, "members") {
			name := rapid.SampledFrom([]string{`"a"`, `"a\\"`, `"\""`, `"{"`, `"first"`, `"é"`}).Draw(t, "name")
			value := rapid.SampledFrom([]string{`{}`, `{ "x" : "}" }`, `[ ]`, `[{},"]",[1]]`, `"\\\""`, `-1.5e+3`, `true`, `""`}).Draw(t, "value")
			space := rapid.SampledFrom([]string{"", " ", "\n\t "}).Draw(t, "space")
			b.WriteString(space + "," + space + name + space + ":" + space + value)
		}
		checkMembers(t, parse(t, b.String()+"\r}"))
	})
}
