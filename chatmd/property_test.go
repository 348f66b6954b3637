// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package chatmd

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/antiphon-go/antiphon/item"
)

// anyText draws texts that are harmless, hostile, or pieces of both.
func anyText() *rapid.Generator[string] {
	piece := rapid.OneOf(rapid.SampledFrom(hostile), rapid.String(), rapid.StringOfN(rapid.RuneFrom([]rune("RAW|:x</user> \n\r\t\"'&;#<!->")), 0, 12, -1))
	return rapid.Custom(func(t *rapid.T) string {
		return strings.ToValidUTF8(strings.Join(rapid.SliceOfN(piece, 0, 4).Draw(t, "pieces"), ""), "?")
	})
}

// some draws a text that is often "".
func some() *rapid.Generator[string] { return rapid.OneOf(rapid.Just(""), anyText()) }

func anyExtra() *rapid.Generator[item.Extra] {
	value := rapid.OneOf(rapid.Just(item.JSON("null")), rapid.Just(item.JSON(`{"a":[1.0,"\ud800"]}`)), rapid.Map(anyText(), item.Quote))
	return rapid.Custom(func(t *rapid.T) item.Extra {
		var x item.Extra
		for range rapid.SampledFrom([]int{0, 0, 0, 1, 2}).Draw(t, "members") {
			name := rapid.OneOf(rapid.SampledFrom([]string{"id", "status", "phase", "namespace", "type", "content"}), anyText()).Draw(t, "name")
			x.Set(name, value.Draw(t, "value"))
		}
		return x
	})
}

func anyPart() *rapid.Generator[item.Part] {
	return rapid.Custom(func(t *rapid.T) item.Part {
		s, u, x := anyText().Draw(t, "s"), some().Draw(t, "u"), item.Extra(nil)
		if rapid.IntRange(0, 9).Draw(t, "extra") == 0 {
			x = anyExtra().Draw(t, "x")
		}
		switch rapid.IntRange(0, 9).Draw(t, "part") {
		case 0, 1, 2:
			return &item.InputText{Text: s, Extra: x}
		case 3, 4:
			return &item.InputImage{ImageURL: "data:image/png;base64," + s, FileID: u, Detail: item.Detail(some().Draw(t, "detail")), Extra: x}
		case 5:
			return &item.InputFile{FileURL: "https://" + s, Filename: u, Detail: item.Detail(some().Draw(t, "detail")), Extra: x}
		case 6:
			return &item.InputFile{FileData: some().Draw(t, "data"), FileID: u, Filename: s, FileURL: some().Draw(t, "url"), Extra: x}
		case 7:
			return &item.OutputText{Text: s, Annotations: rapid.SampledFrom([]item.JSON{"", "[]", "null", `[{"a":"'\""}]`}).Draw(t, "annotations"), Logprobs: rapid.SampledFrom([]item.JSON{"", "[]", "null"}).Draw(t, "logprobs"), Extra: x}
		case 8:
			return &item.Refusal{Refusal: s, Extra: x}
		}
		return &item.UnknownPart{Raw: `{"type":` + item.Quote(s) + `}`}
	})
}

func anyContent() *rapid.Generator[item.Content] {
	return rapid.OneOf(rapid.Map(anyText(), item.Text), rapid.Map(rapid.SliceOfN(anyPart(), 0, 4), func(p []item.Part) item.Content { return item.Parts(p...) }))
}

func anyItem() *rapid.Generator[item.Item] {
	return rapid.Custom(func(t *rapid.T) item.Item {
		s, id, status, x := anyText().Draw(t, "s"), some().Draw(t, "id"), some().Draw(t, "status"), anyExtra().Draw(t, "x")
		name := anyText().Draw(t, "name")
		switch rapid.IntRange(0, 7).Draw(t, "item") {
		case 0, 1:
			role := rapid.OneOf(rapid.SampledFrom([]string{"user", "assistant", "system", "developer", "tool"}), anyText()).Draw(t, "role")
			return item.Must(&item.Message{ID: id, Role: item.Role(role), Content: anyContent().Draw(t, "content"), Status: status, Phase: some().Draw(t, "phase"), Extra: x})
		case 2:
			return item.Must(&item.FunctionCall{ID: id, CallID: name, Name: s, Namespace: some().Draw(t, "namespace"), Arguments: s, Status: status, Extra: x})
		case 3:
			return item.Must(&item.CustomToolCall{ID: id, CallID: s, Name: name, Input: s, Status: status, Extra: x})
		case 4:
			return item.Must(&item.FunctionCallOutput{ID: id, CallID: name, Output: anyContent().Draw(t, "output"), Status: status, Extra: x})
		case 5:
			return item.Must(&item.CustomToolCallOutput{ID: id, CallID: name, Output: anyContent().Draw(t, "output"), Status: status, Extra: x})
		case 6:
			v := &item.Reasoning{ID: id, EncryptedContent: some().Draw(t, "encrypted"), Status: status, Extra: x}
			for _, s := range rapid.SliceOfN(anyText(), 0, 3).Draw(t, "summary") {
				v.Summary = append(v.Summary, &item.SummaryText{Text: s})
			}
			if rapid.Bool().Draw(t, "content") {
				v.Content = []item.Part{}
			}
			for _, s := range rapid.SliceOfN(anyText(), 0, 2).Draw(t, "text") {
				v.Content = append(v.Content, &item.ReasoningText{Text: s})
			}
			return item.Must(v)
		}
		return item.Must(&item.Unknown{Raw: `{ "type" : ` + item.Quote(s) + ` , "x":[` + item.Quote(name) + `,1E+2]}`})
	})
}

// M1 M2: any transcript is written and read to equal items, and its second
// write is the same bytes.
func TestTranscriptProperty(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		items := rapid.SliceOfN(anyItem(), 1, 4).Draw(rt, "items")
		var src []byte
		for _, it := range items {
			var err error
			if src, err = Append(src, it); err != nil {
				rt.Fatal(err)
			}
		}
		f, err := Parse("t.md", src)
		if err != nil {
			rt.Fatalf("%v\nin\n%s", err, src)
		}
		back, err := f.Items(t.Context(), nil)
		if err != nil || len(back) != len(items) || len(f.Warnings) > 0 {
			rt.Fatalf("%d of %d items, %v, %v\nin\n%s", len(back), len(items), err, f.Warnings, src)
		}
		var again []byte
		for i, it := range back {
			if !sameJSON(it.Item.JSON(), items[i].JSON()) {
				rt.Fatalf("got\n%s\nwant\n%s\nin\n%s", it.Item.JSON(), items[i].JSON(), src)
			}
			if again, err = Append(again, it.Item); err != nil {
				rt.Fatal(err)
			}
		}
		if string(again) != string(src) {
			rt.Fatalf("second write\n%s\nfirst\n%s", again, src)
		}
	})
}

// M3: a transcript cut anywhere recovers what was complete.
func TestRecoverProperty(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var src []byte
		ends := []int{-1}
		for _, it := range rapid.SliceOfN(anyItem(), 1, 3).Draw(rt, "items") {
			src, _ = Append(src, it)
			ends = append(ends, len(src)-1)
		}
		n := rapid.IntRange(0, len(src)).Draw(rt, "cut")
		whole := 0
		for whole+1 < len(ends) && ends[whole+1] <= n {
			whole++
		}
		f, err := Parse("t.md", src[:Recover(src[:n])])
		if err != nil || len(f.entries) != whole {
			rt.Fatalf("cut at %d of\n%s\n%d elements, want %d: %v", n, src, len(f.entries), whole, err)
		}
	})
}
