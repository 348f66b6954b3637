// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package item_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/antiphon-go/antiphon/item"
)

// W8: an edit changes the member it names, and no byte of another.
func TestEdit(t *testing.T) {
	parse := func(s string) item.Item {
		it, err := item.ParseString(s)
		if err != nil {
			t.Fatal(err)
		}
		return it
	}
	for name, tt := range map[string]struct{ got, want string }{
		"replace":   {with(t, parse(`{"role":"system","content": "a\u0041" ,"n":1.0e2}`), "role", `"developer"`), `{"role":"developer","content":"a\u0041","n":1.0e2}`},
		"add":       {with(t, parse(`{"role":"user"}`), "type", `"message"`), `{"role":"user","type":"message"}`},
		"add first": {with(t, parse(`{}`), "type", `"x"`), `{"type":"x"}`},
		"twice":     {with(t, parse(`{"a":1,"b":2,"a":3}`), "b", `4`), `{"a":3,"b":4}`},
		"escaped":   {with(t, parse(`{"\u0061":1}`), "a", `2`), `{"\u0061":2}`},
		"without":   {parse(`{"id":"x","type":"message","status":"completed","role":"user"}`).Without("id", "status", "none").JSON(), `{"type":"message","role":"user"}`},
		"untouched": {parse(`{ "a" : 1 }`).Without("b").JSON(), `{ "a" : 1 }`},
		"all":       {parse(`{"a":1}`).Without("a").JSON(), `{}`},
	} {
		if tt.got != tt.want {
			t.Errorf("%s: %s, want %s", name, tt.got, tt.want)
		}
	}
	if _, err := parse(`{}`).With("a", `{`); err == nil {
		t.Error("a value that is not JSON was taken")
	}
}

func with(t *testing.T, it item.Item, name string, value item.JSON) string {
	t.Helper()
	out, err := it.With(name, value)
	if err != nil {
		t.Fatal(err)
	}
	return out.JSON()
}

// What was set is read, and what was taken away is not there.
func TestEditProperty(t *testing.T) {
	names := rapid.SampledFrom([]string{"a", "b", "type", "role", `"`, "\n", "ä"})
	values := rapid.SampledFrom([]string{`1`, `"x"`, `null`, `[1,{"a":2}]`, `{}`})
	rapid.Check(t, func(rt *rapid.T) {
		raw := "{"
		for i := range rapid.IntRange(0, 5).Draw(rt, "n") {
			if i > 0 {
				raw += ", "
			}
			raw += string(item.Quote(names.Draw(rt, "name"))) + " : " + values.Draw(rt, "value")
		}
		it, err := item.ParseString(raw + "}")
		if err != nil {
			rt.Fatal(err)
		}
		name, value := names.Draw(rt, "set"), item.JSON(values.Draw(rt, "to"))
		set, err := it.With(name, value)
		if err != nil {
			rt.Fatal(err)
		}
		if v, ok := set.Member(name); !ok || v != value {
			rt.Fatalf("%s with %s=%s is %s", it.JSON(), name, value, set.JSON())
		}
		gone := set.Without(name)
		if _, ok := gone.Member(name); ok {
			rt.Fatalf("%s is still in %s", name, gone.JSON())
		}
		if again, err := item.ParseString(gone.JSON()); err != nil || again != gone {
			rt.Fatalf("%s: %v", gone.JSON(), err)
		}
	})
}
