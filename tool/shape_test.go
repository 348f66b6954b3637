// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package tool

import (
	"context"
	"encoding/base64"
	"errors"
	"math"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/tool/output"
)

const pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="

func pixelPNG(t testing.TB) []byte {
	b, err := base64.StdEncoding.DecodeString(pixel)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func invokeValue[Out any](t *testing.T, shape output.Policy, out Out, err error) Outcome {
	t.Helper()
	tl := Must("f", "", func(context.Context, struct{}) (Out, error) { return out, err })
	o := mustSet(t, tl).Invoke(t.Context(), Call{Name: "f"}, shape)
	if _, jsonErr := o.Content.JSON(); jsonErr != nil {
		t.Errorf("the output cannot be encoded: %v", jsonErr)
	}
	return o
}

type object struct {
	Output string `json:"output"`
	Code   int    `json:"code"`
}

// T1 T2 T5: what a typed function returns, as the model sees it.
func TestValues(t *testing.T) {
	type pair struct {
		A int      `json:"a"`
		B []string `json:"b"`
	}
	check := func(name string, got Outcome, want string) {
		t.Helper()
		if got.Failed || !got.Content.IsText() || got.Content.Text != want {
			t.Errorf("%s: got %+v, want the text %q", name, got, want)
		}
	}
	check("text", invokeValue(t, output.Policy{}, "a\n\t\"b\" {\"c\":1}\r\n", nil), "a\n\t\"b\" {\"c\":1}\r\n")
	check("result", invokeValue(t, output.Policy{}, Result{Text: "x"}, nil), "x")
	check("content", invokeValue(t, output.Policy{}, item.Text("x"), nil), "x")
	check("bytes", invokeValue(t, output.Policy{}, []byte("x\n"), nil), "x\n")
	check("named text", invokeValue(t, output.Policy{}, item.Detail("low"), nil), "low")
	check("duration", invokeValue(t, output.Policy{}, 90*time.Second, nil), "1m30s")
	check("number", invokeValue(t, output.Policy{}, 3, nil), "3")
	check("zero", invokeValue(t, output.Policy{}, 0, nil), "0")
	check("false", invokeValue(t, output.Policy{}, false, nil), "false")
	check("struct", invokeValue(t, output.Policy{}, pair{1, []string{"<&>"}}, nil), `{"a":1,"b":["<&>"]}`)
	check("map", invokeValue(t, output.Policy{}, map[string]int{"b": 1, "a": 2}, nil), `{"a":2,"b":1}`)
	check("empty list", invokeValue(t, output.Policy{}, []int{}, nil), "[]")
	check("output member", invokeValue(t, output.Policy{}, object{"line\n", 3}, nil), "line\n")
	check("output in a map", invokeValue(t, output.Policy{}, map[string]any{"output": "x"}, nil), "x")
	check("output no string", invokeValue(t, output.Policy{}, map[string]any{"output": 1}, nil), `{"output":1}`)
	check("JSON", invokeValue(t, output.Policy{}, item.JSON(` { "a" : 1.50 } `), nil), `{"a":1.50}`)
	check("JSON text", invokeValue(t, output.Policy{}, item.JSON(`"x\ny"`), nil), "x\ny")

	check("empty", invokeValue(t, output.Policy{}, "", nil), output.NoOutput)
	check("nil", invokeValue[any](t, output.Policy{}, nil, nil), output.NoOutput)
	check("nil pointer", invokeValue[*pair](t, output.Policy{}, nil, nil), output.NoOutput)
	check("nil result", invokeValue[*Result](t, output.Policy{}, nil, nil), output.NoOutput)
	check("nil JSON", invokeValue(t, output.Policy{}, item.JSON(""), nil), output.NoOutput)
	check("empty struct", invokeValue(t, output.Policy{}, struct{}{}, nil), output.NoOutput)
	check("empty output", invokeValue(t, output.Policy{}, object{}, nil), output.NoOutput)
	check("no parts", invokeValue(t, output.Policy{}, item.Parts(), nil), output.NoOutput)
	check("empty text part", invokeValue(t, output.Policy{}, item.Parts(&item.InputText{}), nil), output.NoOutput)
}

// T3 T4: a failure shows status, error and the output so far.
func TestFailures(t *testing.T) {
	boom := errors.New("exit status 2")
	for name, c := range map[string]struct {
		got  Outcome
		want string
	}{
		"error":        {invokeValue(t, output.Policy{}, "", boom), output.Envelope(true, "f", "exit status 2", "")},
		"and output":   {invokeValue(t, output.Policy{}, "so far\n", boom), output.Envelope(true, "f", "exit status 2", "so far\n")},
		"in result":    {invokeValue(t, output.Policy{}, Result{Text: "out", Error: "bad"}, nil), output.Envelope(true, "f", "bad", "out")},
		"both":         {invokeValue(t, output.Policy{}, Result{Text: "out", Error: "bad\n"}, boom), output.Envelope(true, "f", "bad\nexit status 2", "out")},
		"zero value":   {invokeValue(t, output.Policy{}, object{}, boom), output.Envelope(true, "f", "exit status 2", "")},
		"value":        {invokeValue(t, output.Policy{}, []int{1}, boom), output.Envelope(true, "f", "exit status 2", "[1]")},
		"no reason":    {invokeValue(t, output.Policy{}, "", errors.New(" \n")), output.Envelope(true, "f", output.NoErrorText, "")},
		"no JSON":      {invokeValue(t, output.Policy{}, math.NaN(), nil), ""},
		"binary":       {invokeValue(t, output.Policy{}, []byte("a\x00b"), nil), ""},
		"invalid JSON": {invokeValue(t, output.Policy{}, item.JSON("{"), nil), ""},
	} {
		if !c.got.Failed || c.got.Failure != ToolError || c.got.Error == "" {
			t.Errorf("%s: %+v", name, c.got)
		}
		if c.want != "" && c.got.Content.Text != c.want {
			t.Errorf("%s: got %q, want %q", name, c.got.Content.Text, c.want)
		}
		if !strings.HasPrefix(c.got.Content.Text, "status:\nerror\n\ntoolName:\nf\n\nerror:\n") {
			t.Errorf("%s: no envelope: %q", name, c.got.Content.Text)
		}
	}
}

// T3: successes by choice, of the caller or of the tool.
func TestEnvelopeByChoice(t *testing.T) {
	want := "status:\nsuccess\n\ntoolName:\nf\n\nerror:\n\n\noutput:\nhi"
	if got := invokeValue(t, output.Policy{Envelope: true}, "hi", nil); got.Content.Text != want || got.Failed {
		t.Errorf("%+v", got)
	}
	tl := Must("f", "", func(context.Context, struct{}) (string, error) { return "hi", nil }, Enveloped())
	if got := mustSet(t, tl).Invoke(t.Context(), Call{Name: "f"}, output.Policy{}); got.Content.Text != want {
		t.Errorf("%+v", got)
	}
	empty := "status:\nsuccess\n\ntoolName:\nf\n\nerror:\n\n\noutput:\n"
	if got := invokeValue(t, output.Policy{Envelope: true}, "", nil); got.Content.Text != empty {
		t.Errorf("%q", got.Content.Text)
	}
}

// T3: images and files follow as parts, the text first if there is any.
func TestParts(t *testing.T) {
	img, err := output.Image(pixelPNG(t))
	if err != nil {
		t.Fatal(err)
	}
	file := &item.InputFile{Filename: "a.pdf", FileData: "data:application/pdf;base64,JVBERi0="}
	text := func(s string) item.Part { return &item.InputText{Text: s} }
	for name, c := range map[string]struct {
		got  Outcome
		want []item.Part
	}{
		"text and image":  {invokeValue(t, output.Policy{}, Result{Text: "t", Parts: []item.Part{img, file}}, nil), []item.Part{text("t"), img, file}},
		"image":           {invokeValue(t, output.Policy{}, []item.Part{img}, nil), []item.Part{img}},
		"one part":        {invokeValue(t, output.Policy{}, img, nil), []item.Part{img}},
		"image bytes":     {invokeValue(t, output.Policy{}, pixelPNG(t), nil), []item.Part{img}},
		"content":         {invokeValue(t, output.Policy{}, item.Parts(img, text("after")), nil), []item.Part{img, text("after")}},
		"text part":       {invokeValue(t, output.Policy{}, item.Parts(text("t")), nil), []item.Part{text("t")}},
		"model's text":    {invokeValue(t, output.Policy{}, item.Parts(&item.OutputText{Text: "t"}, img), nil), []item.Part{text("t"), img}},
		"nil parts":       {invokeValue(t, output.Policy{}, item.Parts(nil, (*item.InputImage)(nil), img), nil), []item.Part{img}},
		"enveloped":       {invokeValue(t, output.Policy{Envelope: true}, item.Parts(text("t"), img), nil), []item.Part{text(output.Envelope(false, "f", "", "t")), img}},
		"enveloped image": {invokeValue(t, output.Policy{Envelope: true}, img, nil), []item.Part{text(output.Envelope(false, "f", "", "")), img}},
		"failure":         {invokeValue(t, output.Policy{}, Result{Parts: []item.Part{img}, Error: "e"}, nil), []item.Part{text(output.Envelope(true, "f", "e", "")), img}},
		"URL and id": {invokeValue(t, output.Policy{}, item.Parts(&item.InputImage{ImageURL: "https://example.com/a.png"}, &item.InputImage{FileID: "file-1"}), nil),
			[]item.Part{&item.InputImage{ImageURL: "https://example.com/a.png"}, &item.InputImage{FileID: "file-1"}}},
		"unknown": {invokeValue(t, output.Policy{}, item.Parts(&item.UnknownPart{Raw: `{"type":"new"}`}), nil), []item.Part{&item.UnknownPart{Raw: `{"type":"new"}`}}},
	} {
		if diff := cmp.Diff(c.want, c.got.Content.Parts); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// T11: bytes that are not an image, or not the one declared: an error, and the
// rest of the output.
func TestBadImages(t *testing.T) {
	png := pixelPNG(t)
	uri := func(mediaType string, data []byte) *item.InputImage {
		return &item.InputImage{ImageURL: "data:" + mediaType + ";base64," + base64.StdEncoding.EncodeToString(data)}
	}
	for name, p := range map[string]item.Part{
		"lying type":   uri("image/jpeg", png),
		"no image":     uri("image/png", []byte("hello")),
		"cut off":      uri("image/png", png[:40]),
		"svg":          uri("image/svg+xml", []byte("<svg/>")),
		"not base64":   &item.InputImage{ImageURL: "data:image/png,abc"},
		"bad base64":   &item.InputImage{ImageURL: "data:image/png;base64,a"},
		"invalid UTF8": &item.InputImage{ImageURL: "https://\xff"},
		"invalid part": &item.UnknownPart{Raw: `{`},
	} {
		o := invokeValue(t, output.Policy{}, Result{Text: "text", Parts: []item.Part{p}}, nil)
		if !o.Failed || !o.Content.IsText() || !strings.HasSuffix(o.Content.Text, "\n\noutput:\ntext") {
			t.Errorf("%s: %+v", name, o)
		}
		t.Logf("%s: %s", name, o.Error)
	}
	if o := invokeValue(t, output.Policy{}, png[:30], nil); !o.Failed {
		t.Errorf("a cut off image was sent: %+v", o)
	}
	if o := invokeValue(t, output.Policy{}, uri("IMAGE/PNG", png), nil); o.Failed {
		t.Errorf("%+v", o)
	}
}

func TestSniffImage(t *testing.T) {
	for data, want := range map[string]string{
		"\x89PNG\r\n\x1a\n":          "image/png",
		"\xff\xd8\xff\xe0":           "image/jpeg",
		"GIF87a":                     "image/gif",
		"GIF89a":                     "image/gif",
		"RIFF\x00\x00\x00\x00WEBP":   "image/webp",
		"RIFF\x00\x00\x00\x00WAVE":   "",
		"":                           "",
		"BM":                         "",
		"<svg xmlns='http://x'></s>": "",
	} {
		if got := output.SniffImage([]byte(data)); got != want {
			t.Errorf("%q: %q, want %q", data, got, want)
		}
		if _, err := output.Image([]byte(data)); err == nil {
			t.Errorf("%q: a header alone is an image", data)
		}
	}
}

// T3: the exact form, and that neither a name nor an error can begin a block.
func TestEnvelope(t *testing.T) {
	const raw = "a\n\nerror:\nx\n\noutput:\n\n"
	for _, c := range []struct {
		name, errText, output, want string
	}{
		{"f", "", "", "status:\nerror\n\ntoolName:\nf\n\nerror:\n\n\noutput:\n"},
		{"f", "e\n", raw, "status:\nerror\n\ntoolName:\nf\n\nerror:\ne\n\n\noutput:\n" + raw},
		{"f", "a\n\noutput:\nb", "o", "status:\nerror\n\ntoolName:\nf\n\nerror:\na\n\n output:\nb\n\noutput:\no"},
		{"f", "status:\r\ntoolName: \nerror:", "", "status:\nerror\n\ntoolName:\nf\n\nerror:\n status:\r\n toolName: \n error:\n\noutput:\n"},
		{"f", "x\routput:\r", "", "status:\nerror\n\ntoolName:\nf\n\nerror:\nx\r output:\r\n\noutput:\n"},
		{"f", "output: x\n output:", "", "status:\nerror\n\ntoolName:\nf\n\nerror:\noutput: x\n output:\n\noutput:\n"},
		{"x\n\noutput:\nok", "", "", "status:\nerror\n\ntoolName:\n\"x\\n\\noutput:\\nok\"\n\nerror:\n\n\noutput:\n"},
		{"output:", "", "", "status:\nerror\n\ntoolName:\n output:\n\nerror:\n\n\noutput:\n"},
	} {
		if diff := cmp.Diff(c.want, output.Envelope(true, c.name, c.errText, c.output)); diff != "" {
			t.Errorf("%q %q (-want +got):\n%s", c.name, c.errText, diff)
		}
	}
}

// opened is what a reader of an envelope finds: it knows the four headings and
// nothing else.
type opened struct{ status, name, err, output string }

func open(t *rapid.T, s string) opened {
	var o opened
	for _, b := range []struct {
		heading string
		to      *string
	}{{"status:\n", &o.status}, {"toolName:\n", &o.name}, {"error:\n", &o.err}, {"output:\n", &o.output}} {
		if !strings.HasPrefix(s, b.heading) {
			t.Fatalf("want %q at %q", b.heading, s)
		}
		s = s[len(b.heading):]
		next := map[string]string{"status:\n": "\n\ntoolName:\n", "toolName:\n": "\n\nerror:\n", "error:\n": "\n\noutput:\n"}[b.heading]
		if next == "" {
			*b.to = s
			break
		}
		i := strings.Index(s, next)
		if i < 0 {
			t.Fatalf("want %q in %q", next, s)
		}
		*b.to, s = s[:i], s[i+2:]
	}
	return o
}

// T3 as a property: whatever the texts are, reading the first block of each
// heading gives the output back unchanged and the error but for the indent.
func TestEnvelopeCannotBeForged(t *testing.T) {
	piece := rapid.SampledFrom([]string{"status:", "toolName:", "error:", "output:", "\n", "\n\n", "\r", "\r\n", " ", "x", "é", ":", "\u2028"})
	text := rapid.Custom(func(t *rapid.T) string { return strings.Join(rapid.SliceOfN(piece, 0, 12).Draw(t, "pieces"), "") })
	rapid.Check(t, func(t *rapid.T) {
		failed, name, errText, out := rapid.Bool().Draw(t, "failed"), text.Draw(t, "name"), text.Draw(t, "error"), text.Draw(t, "output")
		got := open(t, output.Envelope(failed, name, errText, out))
		if (got.status == "error") != failed || got.output != out {
			t.Fatalf("status %q output %q, want %v %q", got.status, got.output, failed, out)
		}
		if squeeze(got.err) != squeeze(errText) {
			t.Fatalf("error %q, want %q", got.err, errText)
		}
		if strings.ContainsAny(got.name, "\n\r") {
			t.Fatalf("name %q has several lines", got.name)
		}
	})
}

func squeeze(s string) string { return strings.ReplaceAll(s, " ", "") }

// T9: the table.
func TestSanitize(t *testing.T) {
	for _, c := range []struct {
		in, want string
		repairs  int
	}{
		{"", "", 0},
		{"plain\ttext\r\nnext\rline\v\f\u0085é😀\u00a0", "plain\ttext\r\nnext\rline\v\f\u0085é😀\u00a0", 0},
		{"a\xffb", "a\uFFFDb", 1},
		{"a\xff\xfe\xfdb\xff", "a\uFFFDb\uFFFD", 2},
		{"cut \xe2\x82", "cut \uFFFD", 1},
		{"\xed\xa0\x80\xed\xb0\x80", "\uFFFD\uFFFD", 2},
		{"\xff\xed\xa0\x80", "\uFFFD\uFFFD", 2},
		{"a\x00b\x00\x00", "a\uFFFDb\uFFFD\uFFFD", 3},
		{"kept \uFFFD", "kept \uFFFD", 0},
		{"\x1b[1;31mred\x1b[0m", "red", 2},
		{"\x1b[38:2::1:2:3mx\x1b[?25l\x1b[2 q", "x", 3},
		{"\x1b]0;title\x07x", "x", 1},
		{"\x1b]8;;https://e.x/\x1b\\link\x1b]8;;\x1b\\", "link", 2},
		{"\x1bP1$r0m\x1b\\x\x1b_app\x1b\\y\x1b^pm\x1b\\\x1bXsos\x1b\\", "xy", 4},
		{"\x1b]0;never ends\nnext line", "0;never ends\nnext line", 1},
		{"\x1b(B\x1b)0\x1b%Gx", "x", 3},
		{"\x1b7\x1bM\x1b=x", "x", 3},
		{"\x1b\x1b[0m\x1b", "", 3},
		{"\x1b[12\nx", "\nx", 1},
		{"\x1b[3éx", "éx", 1},
		{"\u009b1mx\u009d0;t\u009cy\u0090q\x1b\\z\u009c", "xyz", 4},
		{"\x1b \nx", " \nx", 1},
	} {
		got, n := output.Sanitize(c.in)
		if got != c.want || n != c.repairs {
			t.Errorf("%q: got %q with %d repairs, want %q with %d", c.in, got, n, c.want, c.repairs)
		}
	}
}

// T9 as a property: the result is clean, stays as it is, and no visible text
// is lost on the way but what stands inside of a sequence.
func TestSanitizeProperties(t *testing.T) {
	gen := rapid.SliceOf(rapid.OneOf(
		rapid.SampledFrom([]byte("\x1b\x1b[]PX^_\\;m0\x07\x00\xc2\x9b\x9c\x9d\xed\xa0\x80\xff\n\t a")),
		rapid.Byte(),
	))
	rapid.Check(t, func(t *rapid.T) {
		in := string(gen.Draw(t, "bytes"))
		got, n := output.Sanitize(in)
		if !utf8.ValidString(got) || strings.ContainsAny(got, "\x00\x1b\u009b\u009d") {
			t.Fatalf("%q is not clean: %q", in, got)
		}
		if again, m := output.Sanitize(got); again != got || m != 0 {
			t.Fatalf("%q changed again to %q", got, again)
		}
		if (n == 0) != (got == in) {
			t.Fatalf("%q became %q with %d repairs", in, got, n)
		}
		if strings.Count(got, "\n") != strings.Count(in, "\n") {
			t.Fatalf("%q lost a line end: %q", in, got)
		}
	})
}

// T9: bidirectional controls, joiners and marks are text: a model reads it in
// its own order, and what it writes back must match the file.
func TestSanitizeKeepsText(t *testing.T) {
	const text = "\ufeffa\u202eb\u2066c\u2069 \u200d\u200e\u00ad\U000e0041\b\a\x7f"
	if got, n := output.Sanitize(text); got != text || n != 0 {
		t.Errorf("%q, %d repairs", got, n)
	}
}

func FuzzSanitize(f *testing.F) {
	f.Add("plain")
	f.Add("\x1b[1;31mred\x1b[0m \x1b]0;t\x07\x1bP1\x1b\\ \u009b1m")
	f.Add("\xed\xa0\x80\xff\x00\xc2\x9d")
	f.Fuzz(func(t *testing.T, in string) {
		got, n := output.Sanitize(in)
		if !utf8.ValidString(got) || strings.ContainsAny(got, "\x00\x1b") {
			t.Fatalf("%q is not clean: %q", in, got)
		}
		if again, m := output.Sanitize(got); again != got || m != 0 {
			t.Fatalf("%q changed again to %q", got, again)
		}
		if (n == 0) != (got == in) || strings.Count(got, "\n") != strings.Count(in, "\n") {
			t.Fatalf("%q became %q with %d repairs", in, got, n)
		}
	})
}

// T9: repairs are made everywhere and counted.
func TestRepairsCounted(t *testing.T) {
	o := invokeValue(t, output.Policy{}, Result{Text: "a\x00", Parts: []item.Part{&item.InputText{Text: "\x1b[0mb"}}, Error: "\xff"}, nil)
	if o.Repairs != 3 || o.Error != "\uFFFD" {
		t.Errorf("%+v", o)
	}
	for text, want := range map[string]int{
		`"a\ud800b"`: 1, `"\uDC00\ud800"`: 2, `"\ud83d\uDE00 \\ud800 \n"`: 0, `"\ud800\ud83d\ude00"`: 1, `"\ud83d\ude00\ude00"`: 1, `"\ud83dx\ude00"`: 2,
		`{"output":"\ud800"}`: 1, `{"a":"\ud800"}`: 0, "\"\xff\"": 1, "[\"\xff\"]": 1, `"\ufffd"`: 0,
	} {
		if o := invokeValue(t, output.Policy{}, item.JSON(text), nil); o.Repairs != want || strings.Count(o.Content.Text, "\uFFFD") != want && text != `"\ufffd"` {
			t.Errorf("%s: %d repairs in %q, want %d", text, o.Repairs, o.Content.Text, want)
		}
	}
	o = invokeValue(t, output.Policy{}, map[string]string{"a": "\xff"}, nil)
	if o.Repairs != 1 || o.Content.Text != "{\"a\":\"\uFFFD\"}" {
		t.Errorf("%+v", o)
	}
}
