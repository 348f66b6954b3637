// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package tool

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/tool/output"
)

// words counts a token for each word, each run of spaces and each character
// that is not ASCII.
type words struct{}

func (words) Count(s string) int {
	n := 0
	var last int
	for _, r := range s {
		kind := 0
		switch {
		case r > unicode.MaxASCII:
			kind = -1
		case unicode.IsSpace(r):
			kind = 1
		}
		if kind < 0 || kind != last || n == 0 {
			n++
		}
		last = kind
	}
	return n
}

func texts(c item.Content) []string {
	if c.IsText() {
		return []string{c.Text}
	}
	var list []string
	for _, p := range c.Parts {
		if t, ok := p.(*item.InputText); ok {
			list = append(list, t.Text)
		}
	}
	return list
}

var allModes = []output.Mode{"", output.Head, output.Tail, output.HeadTail, output.Sample}

var markPattern = regexp.MustCompile(`\[(\d+)(?: of (\d+))? bytes left out here(?: \(lines (\d+) to (\d+)(?: of (\d+))?\))?` +
	`(?:\. To read them, call read_output with id ([0-9A-Za-z_-]+) and offset (\d+)|, offset (\d+)|\. They were not kept; to see them, call the tool for less at a time)?\]`)

// someText draws a text with lines of every length, all kinds of line ends and
// of characters, and nothing that looks like a mark.
func someText() *rapid.Generator[string] {
	chunk := rapid.OneOf(
		rapid.StringN(0, 30, -1),
		rapid.SampledFrom([]string{"\n", "\n", "\r\n", "\r", "é", "😀", "日本語", "\u2028", " ", strings.Repeat("x", 300), strings.Repeat("ü", 200), strings.Repeat("line\n", 50), "\n\n\n", "error:\n"}),
	)
	return rapid.Custom(func(t *rapid.T) string {
		s := strings.Join(rapid.SliceOfN(chunk, 0, 60).Draw(t, "chunks"), "")
		s = strings.Repeat(s, rapid.IntRange(1, 4).Draw(t, "times"))
		s, _ = output.Sanitize(strings.ReplaceAll(s, "[", "("))
		return s
	})
}

func indices(n int) []int {
	list := make([]int, n)
	for i := range list {
		list[i] = i
	}
	return list
}

func invokeResult(shape output.Policy, store output.Store, res Result, opts ...Option) Outcome {
	tools := []Tool{Must("f", "", func(context.Context, none) (Result, error) { return res, nil }, opts...)}
	if store != nil {
		tools = append(tools, ReadOutput(store))
	}
	s, err := NewSet(tools...)
	if err != nil {
		panic(err)
	}
	return s.Invoke(context.Background(), Call{Name: "f"}, shape)
}

// T6 T7: no output is larger than its limit, in bytes and in tokens, whatever
// it is made of, and each of its texts can be read whole.
func TestLimitProperties(t *testing.T) {
	text := someText()
	img := &item.InputImage{ImageURL: "https://example.com/a.png"}
	rapid.Check(t, func(t *rapid.T) {
		res := Result{Text: text.Draw(t, "text")}
		if rapid.Bool().Draw(t, "failed") {
			res.Error = "e" + text.Draw(t, "error")
		}
		for range rapid.SampledFrom([]int{0, 0, 0, 1, 2, 40}).Draw(t, "parts") {
			res.Parts = append(res.Parts, img, &item.InputText{Text: text.Draw(t, "part")})
		}
		l := output.Limit{Mode: rapid.SampledFrom(allModes).Draw(t, "mode")}
		if rapid.Bool().Draw(t, "in bytes") {
			l.Bytes = rapid.IntRange(output.MinBytes, 6000).Draw(t, "bytes")
		} else {
			l.Tokens = rapid.IntRange(output.MinTokens, 2000).Draw(t, "tokens")
		}
		shape := output.Policy{Envelope: rapid.Bool().Draw(t, "envelope"), Limit: &l}
		if rapid.Bool().Draw(t, "counter") {
			shape.Tokens = words{}
		}
		spill := new(output.MemoryStore)
		o := invokeResult(shape, spill, res)
		bytes, tokens := 0, 0
		for _, s := range texts(o.Content) {
			if !utf8.ValidString(s) {
				t.Fatalf("not valid: %q", s)
			}
			bytes += len(s)
			if shape.Tokens != nil {
				tokens += shape.Tokens.Count(s)
			}
		}
		if shape.Tokens == nil {
			tokens = (bytes + 3) / 4
		}
		if l.Bytes > 0 && bytes > l.Bytes || l.Tokens > 0 && tokens > l.Tokens {
			t.Fatalf("%d bytes, %d tokens: limit %+v", bytes, tokens, l)
		}
		whole := invokeResult(output.Policy{Envelope: shape.Envelope}, nil, res)
		if o.LeftOut == 0 {
			if got, want := fmt.Sprint(texts(o.Content)), fmt.Sprint(texts(whole.Content)); got != want {
				t.Fatalf("changed: %q, want %q", got, want)
			}
		} else if len(o.Stored) == 0 || o.StoreError != nil {
			t.Fatalf("%d bytes are gone: %+v", o.LeftOut, o)
		}
		if diff := cmp.Diff(o.Content, invokeResult(shape, spill, res).Content); diff != "" {
			t.Fatalf("another result: %s", diff)
		}
		if countImages(o.Content) != countImages(whole.Content) {
			t.Fatal("the images changed")
		}
	})
}

func countImages(c item.Content) int {
	n := 0
	for _, p := range c.Parts {
		if _, ok := p.(*item.InputImage); ok {
			n++
		}
	}
	return n
}

// T6: a mark leads to the rest, page by page, and all of it is there.
func TestReadTheRest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Repeat("the whole output, ümläuts and 日本語 too\n", rapid.IntRange(40, 400).Draw(t, "lines"))
		text += someText().Draw(t, "end")
		shape := output.Policy{Limit: &output.Limit{Bytes: rapid.IntRange(output.MinBytes, 1500).Draw(t, "limit"), Mode: output.Head}}
		spill := new(output.MemoryStore)
		o := invokeResult(shape, spill, Result{Text: text})
		s, err := NewSet(ReadOutput(spill))
		if err != nil {
			t.Fatal(err)
		}
		var all strings.Builder
		content := o.Content.Text
		for range len(text) {
			m := markPattern.FindStringSubmatchIndex(content)
			if m == nil {
				all.WriteString(content)
				break
			}
			offset := content[m[14]:m[15]]
			kept := content[:m[0]]
			all.WriteString(kept)
			if fmt.Sprint(all.Len()) != offset { // the newline before a mark
				whole := strings.TrimSuffix(all.String(), "\n")
				all.Reset()
				all.WriteString(whole)
			}
			if fmt.Sprint(all.Len()) != offset {
				t.Fatalf("the mark says %s, %d bytes were read", offset, all.Len())
			}
			limit := rapid.IntRange(1, 3000).Draw(t, "page")
			p := s.Invoke(context.Background(), Call{Name: ReadOutputName, Arguments: fmt.Sprintf(`{"id":%q,"offset":%s,"limit":%d}`, o.Stored[0], offset, limit)}, shape)
			if p.Failed || len(p.Content.Text) > shape.Limit.Bytes || !utf8.ValidString(p.Content.Text) || len(p.Stored) > 0 {
				t.Fatalf("page at %s: %+v", offset, p)
			}
			content = p.Content.Text
		}
		if all.String() != text {
			t.Fatalf("read %d bytes that differ from the %d there are", all.Len(), len(text))
		}
	})
}

// T7: a tool's own limit counts, in its own mode; the smallest is kept to.
func TestLimitOfTool(t *testing.T) {
	long := strings.Repeat("0123456789abcde\n", 1000)
	size := func(shape output.Policy, opts ...Option) int {
		return len(invokeResult(shape, nil, Result{Text: long}, opts...).Content.Text)
	}
	within := func(n, limit int) bool { return n <= limit && n > limit*9/10 }
	if n := size(output.Policy{}); n != len(long) {
		t.Errorf("no limit: %d bytes", n)
	}
	if n := size(output.Policy{Limit: &output.Limit{}}); n != len(long) {
		t.Errorf("an empty limit: %d bytes", n)
	}
	if n := size(output.Policy{}, MaxOutput(output.Limit{Bytes: 3000})); !within(n, 3000) {
		t.Errorf("its own: %d bytes", n)
	}
	if n := size(output.Policy{Limit: &output.Limit{Bytes: 1024}}, MaxOutput(output.Limit{Tokens: 1000})); !within(n, 4000) {
		t.Errorf("its own over that of all: %d bytes", n)
	}
	if n := size(output.Policy{Limit: &output.Limit{Bytes: 5000, Tokens: 1000}}); !within(n, 4000) {
		t.Errorf("both: %d bytes", n)
	}
	if n := size(output.Policy{Limit: &output.Limit{Bytes: 1}}); !within(n, output.MinBytes) {
		t.Errorf("too small: %d bytes", n)
	}
	o := invokeResult(output.Policy{Limit: &output.Limit{Bytes: 2000, Mode: output.Head}}, nil, Result{Text: long + "end"}, MaxOutput(output.Limit{Mode: output.Tail}))
	if len(o.Content.Text) > 2000 || !strings.HasSuffix(o.Content.Text, "end") || !strings.HasPrefix(o.Content.Text, "[") {
		t.Errorf("its own mode: %q", o.Content.Text)
	}
}

// T3 T4 T6: the envelope survives a limit: all blocks, in order, the error and
// the output both in part.
func TestEnvelopeCut(t *testing.T) {
	o := invokeResult(output.Policy{Limit: &output.Limit{Bytes: 2000}}, nil, Result{
		Error: strings.Repeat("status:\nerror:\noutput:\n", 500),
		Text:  strings.Repeat("output:\n", 500),
	})
	text := o.Content.Text
	if len(text) > 2000 || !strings.HasPrefix(text, "status:\nerror\n\ntoolName:\nf\n\nerror:\n status:\n error:\n output:\n") {
		t.Errorf("%d bytes: %q", len(text), text)
	}
	if strings.Count(text, "\n\noutput:\noutput:\n") != 1 || strings.Count(text, " bytes left out here") != 2 {
		t.Errorf("%q", text)
	}
	if !strings.HasPrefix(o.Error, "status:") || len(o.Error) != 500*len("status:\nerror:\noutput:\n") {
		t.Errorf("the program's error is cut: %d bytes", len(o.Error))
	}
}

// T7: the outputs of a turn together keep within its limit; what is settled
// never changes; in whatever order.
func TestTurnProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 6).Draw(t, "calls")
		turn := output.Limit{Bytes: rapid.IntRange(n*output.MinBytes, 20000).Draw(t, "turn")}
		if rapid.Bool().Draw(t, "tokens") {
			turn = output.Limit{Tokens: max(turn.Bytes/8, n*output.MinTokens)}
		}
		shape := output.Policy{PerTurn: &turn}
		if rapid.Bool().Draw(t, "counter") {
			shape.Tokens = words{}
		}
		if rapid.Bool().Draw(t, "limit") {
			shape.Limit = &output.Limit{Bytes: 5000}
		}
		outs := make([]*output.Output, n)
		for i := range outs {
			text := strings.Repeat(fmt.Sprintf("call %d says ä word\n", i), rapid.IntRange(0, 1000).Draw(t, "lines"))
			o := invokeResult(shape, nil, Result{Text: text}).Output
			outs[i] = &o
		}
		settled, before := make([]bool, n), make([]string, n)
		for i, o := range outs {
			settled[i], before[i] = shape.WithinTurn(o, n), o.Content.Text
		}
		order := rapid.Permutation(indices(n)).Draw(t, "order")
		mixed := make([]*output.Output, n)
		for i, j := range order {
			c := *outs[j]
			mixed[i] = &c
		}
		shape.FitTurn(context.Background(), outs...)
		shape.FitTurn(context.Background(), mixed...)
		bytes, tokens := 0, 0
		for i, o := range outs {
			if settled[i] && o.Content.Text != before[i] {
				t.Fatalf("%d was settled at %d bytes and now has %d", i, len(before[i]), len(o.Content.Text))
			}
			bytes += len(o.Content.Text)
			tokens += words{}.Count(o.Content.Text)
		}
		if shape.Tokens == nil {
			tokens = bytes / 4
		}
		if turn.Bytes > 0 && bytes > turn.Bytes || turn.Tokens > 0 && tokens > turn.Tokens {
			t.Fatalf("%d bytes, %d tokens: the turn has %+v", bytes, tokens, turn)
		}
		for i, j := range order {
			if mixed[i].Content.Text != outs[j].Content.Text {
				t.Fatalf("in another order %q, was %q", mixed[i].Content.Text, outs[j].Content.Text)
			}
		}
		again := outs[0].Content.Text
		if shape.FitTurn(context.Background(), outs...); outs[0].Content.Text != again {
			t.Fatal("a second FitTurn changed something")
		}
	})
}

// T6: the floor stands where the turn's limit is too small for all.
func TestTurnFloor(t *testing.T) {
	shape := output.Policy{PerTurn: &output.Limit{Bytes: 2000}}
	outs := make([]*output.Output, 10)
	for i := range outs {
		o := invokeResult(shape, nil, Result{Text: strings.Repeat("abc\n", 1000)}).Output
		outs[i] = &o
	}
	shape.FitTurn(t.Context(), outs...)
	for _, o := range outs {
		if n := len(o.Content.Text); n > output.MinBytes || n < output.MinBytes*3/4 {
			t.Errorf("%d bytes", n)
		}
	}
	other := output.Output{Content: item.Text(strings.Repeat("x", 5000))}
	if shape.FitTurn(t.Context(), &other); len(other.Content.Text) != 5000 || !shape.WithinTurn(&other, 1) {
		t.Error("an outcome of somebody else was changed")
	}
}

type brokenSpill struct{ id string }

func (b brokenSpill) Put(context.Context, []byte) (string, error) {
	if b.id != "" {
		return b.id, nil
	}
	return "", errors.New("disk full")
}

func (brokenSpill) Get(context.Context, string, int, int) ([]byte, int, error) {
	return nil, 0, errors.New("disk gone")
}

// T6: what cannot be stored is not promised.
func TestSpillFails(t *testing.T) {
	for _, s := range []output.Store{brokenSpill{}, brokenSpill{"an id with spaces"}, brokenSpill{strings.Repeat("x", 65)}} {
		o := invokeResult(output.Policy{Limit: &output.Limit{Bytes: 1024}}, s, Result{Text: strings.Repeat("abc\n", 1000)})
		if o.StoreError == nil || len(o.Stored) != 0 || strings.Contains(o.Content.Text, ReadOutputName) || !strings.Contains(o.Content.Text, "They were not kept") || len(o.Content.Text) > 1024 {
			t.Errorf("%+v", o)
		}
	}
}

func TestReadOutputErrors(t *testing.T) {
	spill := new(output.MemoryStore)
	id, err := spill.Put(t.Context(), []byte("secret"))
	if err != nil {
		t.Fatal(err)
	}
	s := mustSet(t, ReadOutput(spill))
	call := func(args string) Outcome {
		return s.Invoke(t.Context(), Call{Name: ReadOutputName, Arguments: args}, output.Policy{})
	}
	if o := call(`{"id":"other"}`); !o.Failed || o.Error != "there is no stored output with the id other; the id is in the mark of a shortened output" || strings.Contains(o.Content.Text, id) {
		t.Errorf("%+v", o)
	}
	if o := call(`{"id":"` + id + `"}`); o.Failed || o.Content.Text != "secret" {
		t.Errorf("%+v", o)
	}
	if o := call(`{"id":"` + id + `","offset":6}`); !o.Failed || o.Error != "offset 6 is beyond the end: the output has 6 bytes" {
		t.Errorf("%+v", o)
	}
	for _, args := range []string{`{}`, `{"id":1}`, `{"id":"a","offset":-1}`, `{"id":"a","limit":0}`} {
		if o := call(args); o.Failure != BadArguments {
			t.Errorf("%s: %+v", args, o)
		}
	}
	if o := mustSet(t, ReadOutput(brokenSpill{})).Invoke(t.Context(), Call{Name: ReadOutputName, Arguments: `{"id":"a"}`}, output.Policy{}); o.Error != "disk gone" {
		t.Errorf("%+v", o)
	}
	annotations := AnnotationsOf(ReadOutput(spill))
	if !annotations.ReadOnly || !annotations.Idempotent {
		t.Errorf("%+v", annotations)
	}
}

// A page of a call whose arguments somebody changed says so, and its mark still
// leads on.
func TestReadOutputEdited(t *testing.T) {
	spill := new(output.MemoryStore)
	text := strings.Repeat("0123456789abcde\n", 300)
	id, err := spill.Put(t.Context(), []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	s := mustSet(t, ReadOutput(spill))
	o := s.Invoke(t.Context(), Call{Name: ReadOutputName, Arguments: `{"id":"` + id + `","offset":32,"limit":64}`, Edited: true}, output.Policy{})
	if !strings.HasSuffix(o.Content.Text, text[32:96]+fmt.Sprintf("[4704 of 4800 bytes left out here. To read them, call read_output with id %s and offset 96]", id)) {
		t.Errorf("%q", o.Content.Text)
	}
}
