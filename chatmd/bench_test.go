// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package chatmd

import (
	"fmt"
	"strings"
	"testing"

	"github.com/antiphon-go/antiphon/item"
)

// transcript is the text of a long run: turns of reasoning, a reply, calls and
// their responses, some of which hold source code with tags.
func transcript(size int) []byte {
	src := []byte("<config model=\"m\" show_tool_call/>\n<tool name=\"read_file\"/>\n<user>\nGo on.\n</user>\n")
	output := strings.Repeat("func f(a, b int) (n int) { // <b> x < y && y > z\n\treturn a<<2 | b\n}\n", 60)
	for n := 0; len(src) < size; n++ {
		for _, it := range []item.Item{
			item.Must(&item.Reasoning{ID: fmt.Sprint("rs_", n), EncryptedContent: strings.Repeat("gAAAAAB", 100), Summary: []item.Part{&item.SummaryText{Text: "**Reading**\n\nI look at the file first."}}}),
			item.Must(&item.Message{ID: fmt.Sprint("msg_", n), Role: item.RoleAssistant, Status: "completed", Content: item.Parts(&item.OutputText{Text: "Purpose: read the `file` and tell.", Annotations: "[]"})}),
			item.Must(&item.FunctionCall{ID: fmt.Sprint("fc_", n), CallID: fmt.Sprint("call_", n), Name: "read_file", Arguments: `{"file":"a.go"}`, Status: "completed"}),
			item.Must(&item.FunctionCallOutput{CallID: fmt.Sprint("call_", n), Output: item.Text(output)}),
		} {
			var err error
			if src, err = Append(src, it); err != nil {
				panic(err)
			}
		}
	}
	return src
}

// Issue 6: a transcript of 10 MB parses at over 100 MB/s.
func BenchmarkParse(b *testing.B) {
	src := transcript(10 << 20)
	b.SetBytes(int64(len(src)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Parse("t.md", src); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkItems(b *testing.B) {
	src := transcript(10 << 20)
	b.SetBytes(int64(len(src)))
	b.ReportAllocs()
	for b.Loop() {
		f, err := Parse("t.md", src)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := f.Items(b.Context(), nil); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkAppend(b *testing.B) {
	it := item.Must(&item.FunctionCallOutput{CallID: "call_1", Output: item.Text(strings.Repeat("a line of <text>\n", 1000))})
	b.SetBytes(int64(len(it.JSON())))
	b.ReportAllocs()
	var dst []byte
	for b.Loop() {
		dst, _ = Append(dst[:0], it)
	}
}
