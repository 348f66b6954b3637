// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package tool

import (
	"fmt"
	"io"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/tool/output"
)

const secretText = "sk-secret-of-the-endpoint"

// longText is more than what is held in memory, with all that is repaired.
func longText(seed uint64, size int) string {
	r := rand.New(rand.NewPCG(seed, 1))
	odd := []string{"\x1b[1;31mred\x1b[0m", "\x00", "日本語", "\xff\xfe", "\xed\xa0\x80", "\r\n", "\x1b]0;title\x07", "\x1b]0;open\n", secretText, "\u009b1m", strings.Repeat("=", 300)}
	var b strings.Builder
	for n := 0; b.Len() < size; n++ {
		fmt.Fprintf(&b, "%d of many", n)
		if r.IntN(4) == 0 {
			b.WriteString(odd[r.IntN(len(odd))])
		}
		if r.IntN(3) > 0 {
			b.WriteByte('\n')
		}
	}
	return b.String()
}

// T6 T7: what is too long for the memory is shortened, kept and told of exactly as
// it would be in memory.
func TestLongIsLikeText(t *testing.T) {
	text := longText(1, (1<<20)+200_000)
	pixel := &item.InputText{Text: "a part"}
	spill := func() map[string]output.Store {
		return map[string]output.Store{"none": nil, "memory": new(output.MemoryStore), "directory": &output.DirStore{Dir: filepath.Join(t.TempDir(), "kept")}}
	}
	for name, shape := range map[string]output.Policy{
		"bytes":      {Limit: &output.Limit{Bytes: 20_000}},
		"few":        {Limit: &output.Limit{Bytes: output.MinBytes}, Envelope: true},
		"head":       {Usual: &output.Limit{Bytes: 64 << 10, Mode: output.Head}},
		"tail":       {Limit: &output.Limit{Bytes: 4000, Mode: output.Tail}},
		"sample":     {Limit: &output.Limit{Bytes: 30_000, Mode: output.Sample}},
		"tokens":     {Limit: &output.Limit{Tokens: 3000}, Tokens: words{}},
		"turn":       {PerTurn: &output.Limit{Bytes: 50_000}},
		"both":       {Limit: &output.Limit{Bytes: 90_000}, PerTurn: &output.Limit{Bytes: 50_000}},
		"very large": {Limit: &output.Limit{Bytes: 1 << 30}},
		"no limit":   {},
	} {
		shape.Secrets = []string{secretText, "short"}
		for kind, s := range spill() {
			if kind != "memory" && name != "sample" {
				continue
			}
			for what, res := range map[string]Result{
				"success": {Text: text}, "failure": {Text: text, Error: "exit status 1"}, "with a part": {Text: text, Parts: []item.Part{pixel}},
				"limited": {Text: text, Limit: &output.Limit{Bytes: 5000}},
			} {
				want := invokeResult(shape, s, res)
				res.Text, res.Long = text[:100], iotest.HalfReader(strings.NewReader(text[100:]))
				got := invokeResult(shape, s, res)
				if shape.PerTurn != nil {
					shape.FitTurn(t.Context(), &want.Output)
					shape.FitTurn(t.Context(), &got.Output)
				}
				if diff := cmp.Diff(want.Content, got.Content); diff != "" {
					t.Fatalf("%s, %s, %s: %s", name, kind, what, diff)
				}
				if got.LeftOut != want.LeftOut || got.Repairs != want.Repairs || !cmp.Equal(got.Stored, want.Stored) || got.StoreError != nil {
					t.Errorf("%s, %s, %s: %d left out, want %d; %d repairs, want %d; %q, want %q; %v", name, kind, what,
						got.LeftOut, want.LeftOut, got.Repairs, want.Repairs, got.Stored, want.Stored, got.StoreError)
				}
			}
		}
	}
}

// A short text is the same whichever way a tool hands it over, and one that cannot
// be read to its end is a failure with what there is.
func TestLongThatIsShort(t *testing.T) {
	o := invokeResult(output.Policy{Limit: &output.Limit{Bytes: 5000}}, nil, Result{Text: "a ", Long: strings.NewReader("b\x00" + secretText)})
	if o.Failed || o.Content.Text != "a b\uFFFD"+secretText {
		t.Errorf("%+v", o.Content)
	}
	broken := io.MultiReader(strings.NewReader("so far"), iotest.ErrReader(io.ErrNoProgress))
	o = invokeResult(output.Policy{}, nil, Result{Long: broken})
	if !o.Failed || !strings.Contains(o.Error, "reading the output: ") || !strings.HasSuffix(o.Content.Text, "so far") {
		t.Errorf("%+v", o.Content)
	}
	if o = invokeResult(output.Policy{}, nil, Result{Long: strings.NewReader("")}); o.Content.Text != output.NoOutput {
		t.Errorf("%+v", o.Content)
	}
}

// A10: a secret is found wherever the text is taken apart.
func TestLongSecrets(t *testing.T) {
	for shift := 0; shift < 60; shift += 5 {
		text := strings.Repeat("x", 16*(64<<10)-shift) + secretText + strings.Repeat("y", (1<<20))
		var s output.MemoryStore
		o := invokeResult(output.Policy{Limit: &output.Limit{Bytes: 2000}, Secrets: []string{secretText}}, &s, Result{Long: strings.NewReader(text)})
		data, _, err := s.Get(t.Context(), o.Stored[0], 0, len(text))
		if err != nil || string(data) != strings.ReplaceAll(text, secretText, output.Redacted) {
			t.Fatalf("%d: %d bytes, %v", shift, len(data), err)
		}
	}
}

// T6: where there is no room for all of it, both ends are kept, and it is said at
// the end, which no limit hides, how much there was.
func TestLongWithoutRoom(t *testing.T) {
	none := filepath.Join(t.TempDir(), "none")
	t.Setenv("TMPDIR", none)
	t.Setenv("TMP", none)
	text := longText(2, 4*(1<<20))
	o := invokeResult(output.Policy{Limit: &output.Limit{Bytes: 1 << 30}}, new(output.MemoryStore), Result{Long: strings.NewReader(text)})
	if !strings.Contains(o.Content.Text, " bytes are lost here and cannot be read again: there was no room for them") || len(o.Content.Text) < 2*(1<<20) {
		t.Errorf("%d bytes", len(o.Content.Text))
	}
	o = invokeResult(output.Policy{Limit: &output.Limit{Bytes: 5000}}, new(output.MemoryStore), Result{Long: strings.NewReader(text)})
	if last := o.Content.Text[strings.LastIndexByte(o.Content.Text, '\n')+1:]; len(o.Stored) != 1 || !strings.HasPrefix(last, "[the output had ") {
		t.Errorf("%q, %q", o.Stored, last)
	}
}

// readFunc is a reader.
type readFunc func(p []byte) (int, error)

func (f readFunc) Read(p []byte) (int, error) { return f(p) }

// T15 G8: whatever is wrong with the reader of a long output, the call fails, and what came
// before is there.
func TestBadLongReader(t *testing.T) {
	once := func(then func(p []byte) (int, error)) io.Reader {
		n := 0
		return readFunc(func(p []byte) (int, error) {
			if n++; n > 1 {
				return then(p)
			}
			return copy(p, " and more"), nil
		})
	}
	for want, long := range map[string]io.Reader{
		"its reader panicked: gone":                             once(func([]byte) (int, error) { panic("gone") }),
		"its reader says that it has read 70000 of 65536 bytes": once(func([]byte) (int, error) { return 70_000, nil }),
		"its reader says that it has read -1 of 65536 bytes":    once(func([]byte) (int, error) { return -1, nil }),
		io.ErrNoProgress.Error():                                once(func([]byte) (int, error) { return 0, nil }),
	} {
		res := Result{Text: "first", Long: long}
		o := (&target{from: output.Source{Name: "f"}}).outcome(t.Context(), res, NoFailure)
		if o.Failure != ToolError || o.Error != "reading the output: "+want || !strings.HasSuffix(o.Content.Text, "output:\nfirst and more") {
			t.Errorf("%s: %+v", want, o)
		}
	}
	var none *strings.Reader
	if o := (&target{}).outcome(t.Context(), Result{Text: "first", Long: none}, NoFailure); o.Failed || o.Content.Text != "first" {
		t.Errorf("a nil reader: %+v", o)
	}
}
