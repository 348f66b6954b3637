// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package item_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/antiphon-go/antiphon/item"
)

// W13: text as it is, parts by lines, data by type, size and hash.
func TestDisplay(t *testing.T) {
	const hello = "aGVsbG8=" // "hello", whose SHA-256 begins 2cf24dba5fb0a30e
	for _, test := range []struct {
		name    string
		content item.Content
		want    string
	}{
		{"text", item.Text("a\n\"b\" <c> "), "a\n\"b\" <c> "},
		{"empty text", item.Text(""), ""},
		{"no parts", item.Parts(), ""},
		{"parts", item.Parts(&item.InputText{Text: "a"}, &item.OutputText{Text: "b\nc"}, &item.Refusal{Refusal: "no"},
			&item.ReasoningText{Text: "r"}, &item.SummaryText{Text: "s"}), "a\nb\nc\nno\nr\ns"},
		{"image", item.Parts(&item.InputImage{ImageURL: "https://x/y.png"}), `<image src="https://x/y.png"/>`},
		{"image with detail", item.Parts(&item.InputImage{ImageURL: "https://x/y.png", Detail: item.DetailLow}),
			`<image src="https://x/y.png" detail="low"/>`},
		{"image without a scheme", item.Parts(&item.InputImage{ImageURL: "a.png"}, &item.InputImage{ImageURL: "//cdn.example/x.png"}), // W13
			"<image src=\"a.png\"/>\n<image src=\"//cdn.example/x.png\"/>"},
		{"image by id", item.Parts(&item.InputImage{FileID: "file_1"}), `<image src="file_1"/>`},
		{"image data", item.Parts(&item.InputImage{ImageURL: "data:image/png;base64," + hello}),
			`<image src="image/png, 5 bytes, sha256:2cf24dba5fb0a30e"/>`},
		{"scheme in capitals", item.Parts(&item.InputImage{ImageURL: "DATA:image/png;base64," + hello}),
			`<image src="image/png, 5 bytes, sha256:2cf24dba5fb0a30e"/>`},
		{"data that is not a base64", item.Parts(&item.InputImage{ImageURL: "data:image/png;base64,!"}),
			`<image src="image/png, 1 bytes, sha256:bb7208bc9b5d7c04"/>`},
		{"text data", item.Parts(&item.InputFile{FileURL: "data:text/csv,hello"}),
			`<file src="text/csv, 5 bytes, sha256:2cf24dba5fb0a30e"/>`},
		{"file", item.Parts(&item.InputFile{Filename: "a.pdf", FileData: "data:application/pdf;base64," + hello}),
			`<file name="a.pdf" src="application/pdf, 5 bytes, sha256:2cf24dba5fb0a30e"/>`},
		{"file without a scheme", item.Parts(&item.InputFile{Filename: "a", FileData: hello}),
			`<file name="a" src="base64, 5 bytes, sha256:2cf24dba5fb0a30e"/>`},
		{"file by URL and id", item.Parts(&item.InputFile{FileURL: "https://x/a"}, &item.InputFile{FileID: "f"}),
			"<file src=\"https://x/a\"/>\n<file src=\"f\"/>"},
		{"unknown", item.Parts(&item.UnknownPart{Raw: `{"type":"input_audio","data":"AAAA"}`}), `<part type="input_audio"/>`},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := test.content.Display(); got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
}

// W13: however the data is carried, none of it is shown.
func TestDisplayHidesData(t *testing.T) {
	payload := strings.Repeat("QUJD", 5000)
	for _, url := range []string{
		"data:image/png;base64," + payload, "data:;base64," + payload, "data:" + payload, "Data:text/plain," + payload, payload,
	} {
		got := item.Parts(&item.InputImage{ImageURL: url}, &item.InputFile{FileData: url}, &item.InputFile{FileURL: url}).Display()
		if strings.Contains(got, "QUJDQUJD") || len(got) > 500 {
			t.Errorf("%.40s: shown as %.300s", url, got)
		}
	}
}

// W14: what Persist writes, Restore reads back equal, whatever the text looks
// like.
func TestPersist(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := anyContent().Draw(t, "content")
		branch, s, err := c.Persist()
		if err != nil {
			t.Fatal(err)
		}
		if (branch == item.BranchText) != c.IsText() || c.IsText() && s != c.Text {
			t.Errorf("persisted %+v as %s %q", c, branch, s)
		}
		back, err := item.Restore(branch, s)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c, back); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

func anyContent() *rapid.Generator[item.Content] {
	text := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"", "[]", `[{"type":"input_text","text":"x"}]`, `"x"`, "null"}))
	return rapid.Custom(func(t *rapid.T) item.Content {
		if rapid.Bool().Draw(t, "text") {
			return item.Text(text.Draw(t, "text"))
		}
		parts := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) item.Part { return anyPart(t, text) }), 0, 4).Draw(t, "parts")
		return item.Parts(append([]item.Part{}, parts...)...)
	})
}

func anyPart(t *rapid.T, text *rapid.Generator[string]) item.Part {
	s := text.Draw(t, "value")
	var x item.Extra
	if rapid.Bool().Draw(t, "extra") {
		x.Set("x_cache_breakpoint", `{"a":[1.0,null]}`)
	}
	switch rapid.IntRange(0, 7).Draw(t, "kind") {
	case 0:
		return &item.InputText{Text: s, Extra: x}
	case 1:
		return &item.InputImage{ImageURL: s, Detail: item.Detail(text.Draw(t, "detail")), Extra: x}
	case 2:
		return &item.InputFile{FileData: s, Filename: text.Draw(t, "name"), Extra: x}
	case 3:
		return &item.OutputText{Text: s, Annotations: "[{}]", Extra: x}
	case 4:
		return &item.Refusal{Refusal: s, Extra: x}
	case 5:
		return &item.ReasoningText{Text: s, Extra: x}
	case 6:
		return &item.SummaryText{Text: s, Extra: x}
	}
	return &item.UnknownPart{Raw: `{"type":"other","v":` + item.Quote(s) + `}`}
}

// W14: other branches and other JSON are refused.
func TestRestoreErrors(t *testing.T) {
	for _, test := range []struct {
		branch item.Branch
		in     string
	}{{"", "x"}, {"json", "[]"}, {item.BranchContent, ""}, {item.BranchContent, "{}"}, {item.BranchContent, `"x"`}, {item.BranchContent, "[1]"}} {
		if c, err := item.Restore(test.branch, test.in); err == nil {
			t.Errorf("%s %q: %+v", test.branch, test.in, c)
		}
	}
	if _, _, err := item.Parts(&item.InputText{Text: "\xff"}).Persist(); err == nil {
		t.Error("a part with invalid UTF-8 was persisted")
	}
}

func extraOf(t *testing.T, s string) item.Extra {
	t.Helper()
	return as[item.FunctionCall](t, parse(t, s)).Extra
}

// W7 W11: Extra holds what no field can, in order; of equal names the last wins.
func TestExtra(t *testing.T) {
	const call = `"call_id":"c","name":"f","arguments":"{}"`
	for _, test := range []struct {
		name, members string
		want          item.Extra
	}{
		{"nothing", ``, nil},
		{"unknown", `,"b":1.0,"a":"\u0041"`, item.Extra{{Name: "b", Value: "1.0"}, {Name: "a", Value: `"\u0041"`}}},
		{"null", `,"status":null,"id":null`, item.Extra{{Name: "status", Value: "null"}, {Name: "id", Value: "null"}}},
		{"wrong type", `,"status":{"x":[]},"namespace":7`, item.Extra{{Name: "status", Value: `{"x":[]}`}, {Name: "namespace", Value: "7"}}},
		{"empty", `,"status":""`, item.Extra{{Name: "status", Value: `""`}}},
		{"duplicates", `,"x":1,"y":2,"x":3`, item.Extra{{Name: "y", Value: "2"}, {Name: "x", Value: "3"}}},
		{"duplicate by escape", `,"x":1,"\u0078":2`, item.Extra{{Name: "x", Value: "2"}}},
		{"odd names", `,"":1,"a b\n\"":2`, item.Extra{{Name: "", Value: "1"}, {Name: "a b\n\"", Value: "2"}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			in := `{"type":"function_call",` + call + test.members + `}`
			if diff := cmp.Diff(test.want, extraOf(t, in)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			out := roundTrip(t, in)
			sameJSON(t, "decoded and encoded", out, in)
			if again := roundTrip(t, out); again != out {
				t.Errorf("no fixpoint: %s, %s", out, again)
			}
		})
	}
}

// W11: of equal names of a field the last wins, also beyond the size from which
// they are found by a map.
func TestDuplicateMembers(t *testing.T) {
	many := strings.Builder{}
	for i := range 50 {
		many.WriteString(`,"m` + strings.Repeat("x", i) + `":0`)
	}
	for _, more := range []string{"", many.String()} {
		in := `{"name":"a","type":"function_call","call_id":"c","arguments":"1"` + more + `,"name":"b","arguments":"2"}`
		it := parse(t, in)
		v := as[item.FunctionCall](t, it)
		if v.Name != "b" || v.Arguments != "2" || it.Name() != "b" {
			t.Errorf("got %+v", v)
		}
		if _, ok := v.Extra.Get("name"); ok {
			t.Error("the overridden name is in Extra")
		}
	}
}

// A field that is set wins over a member of its name in Extra.
func TestExtraAndFields(t *testing.T) {
	v := as[item.FunctionCall](t, parse(t, `{"type":"function_call","call_id":"c","name":"f","arguments":"","status":null,"x":1}`))
	v.Status = "completed"
	v.Extra.Set("x", "2")
	v.Extra.Set("y", ` {"a": 1} `)
	got := encode(t, v).JSON()
	if want := `{"type":"function_call","status":"completed","arguments":"","call_id":"c","name":"f","x":2,"y":{"a": 1}}`; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	v.Extra.Delete("x")
	v.Extra.Delete("nothing")
	if _, ok := v.Extra.Get("x"); ok {
		t.Error("Delete left the member")
	}
	v.Extra.Set("bad", "{")
	_, err := item.New(v)
	wantShape(t, err, item.ShapeError{Type: "function_call", Path: "bad", Problem: "byte 1"})
	_, err = item.New(&item.FunctionCall{Name: "\xff"})
	wantShape(t, err, item.ShapeError{Type: "function_call", Path: "name", Problem: "UTF-8"})
}

// W7 W11: any members, in any order, survive decoding.
func TestExtraProperty(t *testing.T) {
	values := []string{"null", `""`, `"x"`, "5", "-0.0", "1e30", "true", "[]", `{"k":[1]}`, `"\ud83d\ude00"`}
	names := []string{"id", "status", "namespace", "phase", "caller", "x", "y", "é", "role", "output"}
	rapid.Check(t, func(t *rapid.T) {
		in := `{"type":"function_call"`
		for _, name := range rapid.Permutation(append(names, "call_id", "name", "arguments")).Draw(t, "names") {
			value := rapid.SampledFrom(values).Draw(t, name)
			if name == "call_id" || name == "name" || name == "arguments" {
				value = `"v"`
			} else if rapid.Bool().Draw(t, "absent") {
				continue
			}
			in += "," + string(item.Quote(name)) + ":" + value
		}
		in += "}"
		out := roundTrip(t, in)
		sameJSON(t, "decoded and encoded", out, in)
		v, w := decode(t, parse(t, in)), decode(t, parse(t, out))
		if diff := cmp.Diff(v, w, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("(-first +second):\n%s", diff)
		}
	})
}
