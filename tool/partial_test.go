// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package tool

import (
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"pgregory.net/rapid"

	"github.com/antiphon-go/antiphon/item"
)

type invoice struct {
	Vendor string    `json:"vendor"`
	Total  float64   `json:"total"`
	Kind   string    `json:"kind" enum:"paid,pa"`
	Due    time.Time `json:"due"`
	Day    string    `json:"day" format:"date"`
	Lines  []struct {
		What string `json:"what"`
		N    int    `json:"n"`
	} `json:"lines"`
	Pair [2]int         `json:"pair"`
	Raw  item.JSON      `json:"raw"`
	Any  any            `json:"any"`
	Map  map[string]int `json:"map"`
	Done *bool          `json:"done"`
}

// G3: what has come of an answer is said, and nothing that has come in half.
func TestPartial(t *testing.T) {
	s, err := NewSchema[invoice]()
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		``: "", ` `: "", `x`: "", `{x`: "", `[`: "[]", `5`: "", `{}}`: "", `{,`: "", `{"a" 1`: "", `{"vendor":"a",}`: "",
		`{`:                                   `{}`,
		`{"ven`:                               `{}`,
		`{"vendor"`:                           `{}`,
		`{"vendor":`:                          `{}`,
		`{"vendor": "`:                        `{"vendor":""}`,
		`{"vendor": "Har`:                     `{"vendor":"Har"}`,
		`{"vendor": "Har\`:                    `{"vendor":"Har"}`,
		`{"vendor": "Har\"`:                   `{"vendor":"Har\""}`,
		`{"vendor": "Har\u00`:                 `{"vendor":"Har"}`,
		`{"vendor": "Har\u00e9`:               `{"vendor":"Har\u00e9"}`,
		`{"vendor": "\ud83d`:                  `{"vendor":""}`,
		`{"vendor": "\ud83d\ude0`:             `{"vendor":""}`,
		`{"vendor": "\ud83d\ude00`:            `{"vendor":"\ud83d\ude00"}`,
		"{\"vendor\": \"\xc3":                 `{"vendor":""}`,
		`{"vendor":"é`:                        `{"vendor":"é"}`,
		`{"total":4`:                          `{}`,
		`{"total":41`:                         `{}`,
		`{"total":41,`:                        `{"total":41}`,
		`{"total":41}`:                        `{"total":41}`,
		`{"total":-}`:                         ``,
		`{"kind":"pa`:                         `{}`,
		`{"kind":"pa"`:                        `{"kind":"pa"}`,
		`{"due":"2026-12-01T00:00:00Z`:        `{}`,
		`{"due":"2026-12-01T00:00:00Z"`:       `{"due":"2026-12-01T00:00:00Z"}`,
		`{"day":"2026-12-0`:                   `{}`,
		`{"lines":[`:                          `{"lines":[]}`,
		`{"lines":[{"what":"t`:                `{"lines":[{"what":"t"}]}`,
		`{"lines":[{"what":"tea","n":1`:       `{"lines":[{"what":"tea"}]}`,
		`{"lines":[{"what":"tea","n":1},`:     `{"lines":[{"what":"tea","n":1}]}`,
		`{"lines":[{"what":"tea","n":1},{`:    `{"lines":[{"what":"tea","n":1},{}]}`,
		`{"lines":[,`:                         ``,
		`{"lines":[{}}`:                       ``,
		`{"pair":[1,2`:                        `{}`,
		`{"pair":[1,2]`:                       `{"pair":[1,2]}`,
		`{"raw":{"a":1`:                       `{}`,
		`{"raw":{"a":1}`:                      `{"raw":{"a":1}}`,
		`{"any":"ab`:                          `{}`,
		`{"any":["ab",1]`:                     `{"any":["ab",1]}`,
		`{"map":{"a":1,"b":2`:                 `{"map":{"a":1}}`,
		`{"done":tru`:                         `{}`,
		`{"done":true`:                        `{"done":true}`,
		`{"done":null`:                        `{"done":null}`,
		`{"strange":{"a":[1,2`:                `{}`,
		`{"strange":{"a":[1,2]},"total":1 , `: `{"total":1}`,
		"{\"vendor\":\"a\nb":                  "",
	} {
		got, ok := s.Partial(text)
		if got != want || ok != (want != "") {
			t.Errorf("%s: %s, %v, want %s", text, got, ok, want)
		}
	}
	if _, ok := s.Partial(strings.Repeat(`{"any":[`, 20_000)); ok {
		t.Error("the depth has no bound")
	}
}

// G3: the work for a text is proportional to its length, however deep it is: a model may
// write ten thousand brackets.
func TestPartialDeep(t *testing.T) {
	s, err := NewSchema[invoice]()
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{
		`{"any":` + strings.Repeat(`[`, 9_990), `{"any":` + strings.Repeat(`[`, 9_990) + strings.Repeat(`]`, 9_990) + `}`,
		`{"raw":` + strings.Repeat(`{"a":`, 9_990), `{"strange":` + strings.Repeat(`{"a":`, 9_990) + `1` + strings.Repeat(`}`, 9_990) + `}`,
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		out, ok := s.Partial(text)
		runtime.ReadMemStats(&after)
		if got := after.TotalAlloc - before.TotalAlloc; got > 50*uint64(len(text)) {
			t.Errorf("%.20s…: %d bytes were needed for %d", text, got, len(text))
		}
		if !ok || !jsontext.Value(out).IsValid() {
			t.Errorf("%.20s…: %.40s, %v", text, out, ok)
		}
	}
}

// G3: of every beginning of a JSON text, the partial value is JSON that decodes, and
// each of its values is the beginning of the one in the whole.
func TestPartialProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		typ := structType(3).Draw(t, "type")
		inferred, err := inferType(typ)
		if err != nil {
			t.Fatal(err)
		}
		v := argumentFor(typ, 4).Draw(t, "value")
		b, err := json.Marshal(v, json.Deterministic(true))
		if err != nil {
			t.Fatal(err)
		}
		checkPartials(t, newSchema(inferred), typ, string(b))
	})
}

func FuzzPartial(f *testing.F) {
	for _, seed := range []string{`{"vendor":"a\ud83d\ude00\n","total":-1.5e3,"kind":"paid","day":"2026-01-01","lines":[{"what":"x","n":1},{}],"map":{"a":1},"done":null}`, `{"any":[1,{"a":"b"}],"raw":[[]], "pair" : [1 , 2]}`, `{"a":{"b":[1]}}`, `[`, `"\u`, "{\"vendor\":\"\xff\"}", `{"total":1e999}`} {
		f.Add(seed)
	}
	s, err := NewSchema[invoice]()
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 2000 {
			return
		}
		checkPartials(t, s, reflect.TypeFor[invoice](), text)
	})
}

// checkPartials checks all beginnings of a text.
func checkPartials(t interface {
	Helper()
	Fatalf(string, ...any)
}, s *Schema, typ reflect.Type, text string,
) {
	t.Helper()
	var full any
	valid := json.Unmarshal([]byte(text), &full) == nil
	decodes := json.Unmarshal([]byte(text), reflect.New(typ).Interface(), jsonOptions) == nil
	for i := range len(text) + 1 {
		out, ok := s.Partial(text[:i])
		if !ok {
			if whole := strings.TrimSpace(text[:i]); valid && strings.HasPrefix(whole, "{") {
				t.Fatalf("%q: nothing, and it is the beginning of JSON", text[:i])
			}
			continue
		}
		var part any
		if err := json.Unmarshal([]byte(out), &part); err != nil && valid {
			t.Fatalf("%q: %s is not JSON: %v", text[:i], out, err)
		} else if err != nil {
			continue // such as a name that is there twice
		}
		if !jsontext.Value(out).IsValid() {
			t.Fatalf("%q: %s is not JSON", text[:i], out)
		}
		if valid && !begins(part, full) {
			t.Fatalf("%q: %s is not a beginning of %s", text[:i], out, text)
		}
		if decodes {
			if err := json.Unmarshal([]byte(out), reflect.New(typ).Interface(), jsonOptions); err != nil {
				t.Fatalf("%q: %s does not decode, and the whole does: %v", text[:i], out, err)
			}
		}
	}
}

// begins reports whether a value is the beginning of another.
func begins(part, full any) bool {
	switch part := part.(type) {
	case string:
		s, ok := full.(string)
		return ok && strings.HasPrefix(s, part)
	case []any:
		list, ok := full.([]any)
		if !ok || len(part) > len(list) {
			return false
		}
		for i, e := range part {
			if !begins(e, list[i]) {
				return false
			}
		}
		return true
	case map[string]any:
		m, ok := full.(map[string]any)
		for name, v := range part {
			whole, there := m[name]
			if ok = ok && there && begins(v, whole); !ok {
				return false
			}
		}
		return ok
	}
	return reflect.DeepEqual(part, full)
}
