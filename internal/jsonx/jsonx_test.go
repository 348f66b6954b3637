// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package jsonx_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/big"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/antiphon-go/antiphon/internal/jsonx"
)

var seeds = []string{
	`{"a":1,"b\"":[true,false,null],"c":{"d":{}},"e":"\u00e9\ud83d\ude00"}`, ` { "a" : [ ] , "a" : "x" } `, `[1,22,-3.5e+7,"]",{"a":"}"}]`,
	`"\ud800\u0041"`, "\"\xff\"", `{"turn": ,"x":1}`, `{"item": }`, `{"a":1,}`, `{"a" 1}`, `[1,]`, `[1 2]`, `01`, `1.`, `tru`, `"a`, `{`, `[`, ``,
	`{"text":"` + strings.Repeat("plain text ", 20) + `\n","n":12345678901234567890}`, strings.Repeat("[", 100) + strings.Repeat("]", 100),
}

// checkText holds the scanner and the walkers against encoding/json.
func checkText(t *testing.T, s string) {
	value, err := jsonx.Whole(s)
	if want := utf8.ValidString(s) && json.Valid([]byte(s)); (err == nil) != want {
		t.Fatalf("%q: %v, encoding/json says %v", s, err, want)
	}
	var syntax *jsonx.SyntaxError
	if err != nil && (!errors.As(err, &syntax) || syntax.Offset < 0 || syntax.Offset > len(s) || syntax.Problem == "") {
		t.Fatalf("%q: %#v", s, err)
	}
	if err != nil {
		return
	}
	if value != strings.Trim(s, " \t\r\n") || jsonx.SkipValue(value, 0) != len(value) {
		t.Fatalf("%q is taken for %q, which is skipped to %d", s, value, jsonx.SkipValue(value, 0))
	}
	switch value[0] {
	case '{':
		checkObject(t, value)
	case '[':
		checkArray(t, value)
	case '"':
		checkLiteral(t, value)
	default:
		checkNumber(t, value)
	}
}

func checkObject(t *testing.T, s string) {
	last, n := map[string]string{}, 0
	walked := ""
	end := jsonx.EachMember(s, func(name, value string) {
		last[jsonx.Unquote(name)] = value
		walked += name + ":" + value + "\n"
		n++
		checkLiteral(t, name)
		checkText(t, value)
	})
	scanned := ""
	sc := jsonx.Scanner{Text: s}
	stopped, err := sc.Object(0, func(name, value string) { scanned += name + ":" + value + "\n" })
	if end != len(s) || stopped != end || err != nil || scanned != walked || sc.Depth != 0 {
		t.Fatalf("%q: walked to %d, scanned to %d, %v:\n%s\n%s", s, end, stopped, err, walked, scanned)
	}
	var want map[string]json.RawMessage
	if err := json.Unmarshal([]byte(s), &want); err != nil || len(want) != len(last) || n < len(want) {
		t.Fatalf("%q: %d names, %d members, want %d, %v", s, len(last), n, len(want), err)
	}
	for name, value := range want {
		if got, ok := jsonx.MemberOf(s, name); !ok || got != string(value) || got != last[name] {
			t.Fatalf("%q: member %q is %q, %v; want %q", s, name, got, ok, value)
		}
	}
}

func checkArray(t *testing.T, s string) {
	var list []string
	jsonx.EachElement(s, func(value string) { list = append(list, value) })
	var want []json.RawMessage
	if err := json.Unmarshal([]byte(s), &want); err != nil || len(list) != len(want) {
		t.Fatalf("%q: %d elements, want %d, %v", s, len(list), len(want), err)
	}
	for i, value := range list {
		if value != string(want[i]) {
			t.Fatalf("%q: element %d is %q, want %q", s, i, value, want[i])
		}
		checkText(t, value)
	}
}

func checkLiteral(t *testing.T, literal string) {
	var want string
	if err := json.Unmarshal([]byte(literal), &want); err != nil || jsonx.Unquote(literal) != want {
		t.Fatalf("%s is read as %q, want %q, %v", literal, jsonx.Unquote(literal), want, err)
	}
	if !jsonx.Means(literal, want) || jsonx.Means(literal, want+"x") {
		t.Fatalf("%s does not mean %q alone", literal, want)
	}
	if end := jsonx.SkipString(literal, 0); end != len(literal) {
		t.Fatalf("%s ends at %d", literal, end)
	}
	quoted, err := jsonx.AppendQuoted(nil, want)
	var back string
	if err != nil || json.Unmarshal(quoted, &back) != nil || back != want {
		t.Fatalf("%q is written as %s, %v", want, quoted, err)
	}
}

func checkNumber(t *testing.T, s string) {
	n, whole := jsonx.Integer(s)
	if !jsonx.IsNumber(s) {
		if whole {
			t.Fatalf("%s is taken for %d", s, n)
		}
		return
	}
	if at := strings.IndexAny(s, "eE"); len(s) > 40 || at >= 0 && len(s)-at > 4 {
		return // too large to compare
	}
	exact, ok := new(big.Rat).SetString(s)
	f, _ := exact.Float64()
	switch {
	case !ok:
		t.Fatalf("%s is not a number", s)
	case whole && exact.Cmp(new(big.Rat).SetInt64(n)) != 0 && f != float64(n):
		t.Fatalf("%s is read as %d", s, n)
	case !whole && exact.IsInt() && math.Abs(f) < 1<<53:
		t.Fatalf("%s is not read as a whole number", s)
	}
}

// W11
func TestAgainstEncodingJSON(t *testing.T) {
	for _, s := range seeds {
		checkText(t, s)
	}
	for _, kind := range [][2]string{{"[", "]"}, {`{"a":`, "}"}} {
		for _, beyond := range []int{0, 1} {
			n := jsonx.MaxDepth + beyond
			_, err := jsonx.Whole(strings.Repeat(kind[0], n-1) + "[]" + strings.Repeat(kind[1], n-1))
			if (err != nil) != (beyond > 0) {
				t.Errorf("%d of %s: %v", n, kind[0], err)
			}
		}
	}
}

// W11
func FuzzAgainstEncodingJSON(f *testing.F) {
	for _, s := range seeds {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) { checkText(t, s) })
}

// W11: what comes again is read as if it came for the first time, whatever was
// remembered.
func FuzzMemory(f *testing.F) {
	long := strings.Repeat("some text of a stream ", 30)
	f.Add(`{"type":"a","response":{"id":"1","text":"`+long+`","end":null}}`, `{"type":"b","response":{"id":"1","text":"`+long+`","end":1}}`)
	f.Add(`{"item":{"id":"1","text":"`+long+`"}}`, `{"response":{"output":[{"id":"1","text":"`+long+`"}`)
	f.Add(`{"response":{"a":"`+long+`","b":2,"c":3}}`, `{"response":{"a":"`+long+`","b":2,"c":3,}}`)
	f.Fuzz(func(t *testing.T, first, second string) {
		var memory jsonx.Memory
		for _, s := range []string{first, second, first, second} {
			if s == "" || s[0] != '{' {
				return
			}
			plain, remembering := jsonx.Scanner{Text: s}, jsonx.Scanner{Text: s, Memory: memory.Begin(s, `"response"`, true)}
			want, wantErr := plain.Object(0, nil)
			got, err := remembering.Object(0, nil)
			if got != want || (err == nil) != (wantErr == nil) {
				t.Fatalf("%q: stopped at %d, %v; want %d, %v", s, got, err, want, wantErr)
			}
		}
	})
}

// ObjectWith checks the values that its caller has not.
func TestObjectWith(t *testing.T) {
	const s = `{"a":1,"item":{not json},"b":{"c":2}}`
	seen := ""
	sc := jsonx.Scanner{Text: s}
	end, err := sc.ObjectWith(0, func(name, value string) { seen += name + value }, func(name string, i int) int {
		if name != `"item"` {
			return 0
		}
		return i + len("{not json}")
	})
	if end != len(s) || err != nil || seen != `"a"1"item"{not json}"b"{"c":2}` {
		t.Errorf("%d, %v, %s", end, err, seen)
	}
	if _, err := sc.ObjectWith(0, nil, func(string, int) int { return 0 }); err == nil {
		t.Error("what nobody checked is accepted")
	}
}

func TestKindOf(t *testing.T) {
	for value, want := range map[string]string{
		"": "nothing", "{}": "an object", "[]": "a list", `""`: "a string", "-1": "the number -1", "true": "true", "null": "null",
		"123456789012345678901234567890": "the number 12345678901234567890",
	} {
		if got := jsonx.KindOf(value); got != want {
			t.Errorf("%s is %s, want %s", value, got, want)
		}
	}
}

func TestQuotedIsUTF8(t *testing.T) {
	if b, err := jsonx.AppendQuoted([]byte("x"), "a\xffb"); err == nil || string(b) != "x" {
		t.Errorf("%q, %v", b, err)
	}
}

// Of few and of many members, the last of equal names is found, once, in
// whatever order they are asked for.
func TestMembers(t *testing.T) {
	for _, n := range []int{0, 3, 100} {
		var m jsonx.Members
		object := `{"twice":1,"\u0074wice":2`
		for i := range n {
			object += fmt.Sprintf(`,"m%d":%d`, i, i)
		}
		for range 2 { // with memory that was used before
			m.Reset()
			jsonx.EachMember(object+`}`, m.Add)
			m.DropEarlier()
			for i := n - 1; i >= 0; i-- {
				one := m.Find(fmt.Sprint("m", i))
				if one == nil || one.Value != fmt.Sprint(i) {
					t.Fatalf("of %d: m%d is %v", n, i, one)
				}
				one.Taken = true
				if m.Find(one.Name) != nil {
					t.Errorf("of %d: m%d is found twice", n, i)
				}
			}
			if one := m.Find("twice"); one == nil || one.Value != "2" {
				t.Errorf("of %d: twice is %v", n, one)
			}
			if m.Find("missing") != nil || m.Find("") != nil || len(m.List) != n+2 || !m.List[0].Taken || m.List[1].Taken {
				t.Errorf("of %d: %+v", n, m.List)
			}
		}
	}
}
