// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package export_test

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/export"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
)

func page(t testing.TB, log export.Log) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := export.HTML(&out, log); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func write(t testing.TB, path string, data []byte) {
	t.Helper()
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// J3: every kind of entry on a page, to the byte. With -update the file is
// written anew.
func TestGolden(t *testing.T) {
	const golden = "testdata/page.golden.html"
	data := page(t, demo(t))
	checkPage(data, t.Errorf)

	data = page(t, everything(t))
	checkPage(data, t.Errorf)
	_, rest, found := bytes.Cut(data, []byte("<main"))
	got, _, ended := bytes.Cut(rest, []byte("</main>"))
	if !found || !ended {
		t.Fatalf("no conversation in\n%s", data)
	}
	if *update {
		write(t, golden, got)
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(string(got), "\n")); d != "" {
		t.Errorf("%s (-want +got; -update writes it):\n%s", golden, d)
	}
}

// J3: a call that the endpoint made shows why it failed, whatever form the error has, and an image that was not made.
func TestPageShowsErrors(t *testing.T) {
	for _, tt := range []struct{ item, has, lacks string }{
		{`{"type":"mcp_call","id":"i","status":"failed","server_label":"db","name":"ask","arguments":"{}","output":null,"error":{"type":"mcp_tool_execution_error","content":[{"type":"text","text":"no such table"}]}}`, "no such table", `(empty)`},
		{`{"type":"mcp_call","id":"i","server_label":"db","name":"ask","arguments":"{}","output":"half","error":"it broke off"}`, "it broke off", ""},
		{`{"type":"mcp_call","id":"i","server_label":"db","name":"ask","arguments":"{}","output":"half","error":{"type":"http_error","code":502,"message":"bad gateway"}}`, "bad gateway", ""},
		{`{"type":"mcp_call","id":"i","server_label":"db","name":"ask","arguments":"{}","output":"whole","error":null}`, "whole", "Error"},
		{`{"type":"mcp_call","id":"i","server_label":"db","name":"ask","arguments":"{}","output":""}`, "no arguments", "Error"},
		{`{"type":"image_generation_call","id":"i","status":"failed","result":null,"error":"no picture of that"}`, "no picture of that", "data:image/png;base64,\""},
	} {
		it, err := item.ParseString(tt.item)
		if err != nil {
			t.Fatal(err)
		}
		data := page(t, export.Log{Entries: []session.Entry{{Seq: 1, Body: session.RunStarted{}}, {Seq: 2, Body: session.TurnStarted{Turn: 1}}, {Seq: 3, Body: session.OutputItem{Turn: 1, Item: it}}}})
		_, main, _ := bytes.Cut(data, []byte("<main"))
		main, _, _ = bytes.Cut(main, []byte("</main>"))
		if !bytes.Contains(main, []byte(tt.has)) || tt.lacks != "" && bytes.Contains(main, []byte(tt.lacks)) {
			t.Errorf("%s:\n%s", tt.item, main)
		}
	}
}

// everything is a log with every kind of entry.
func everything(t testing.TB) export.Log {
	t.Helper()
	parse := func(s string) item.Item {
		it, err := item.ParseString(s)
		if err != nil {
			t.Fatal(err)
		}
		return it
	}
	usage := &api.Usage{InputTokens: 1200, InputDetails: &api.InputTokensDetails{CachedTokens: 1000}, OutputTokens: 30, OutputDetails: &api.OutputTokensDetails{ReasoningTokens: 9}, TotalTokens: 1230}
	rule := &session.Rule{Verdict: session.Allow, Tool: "run", Member: "argv", Prefix: []string{"git", "status"}}
	bodies := []session.Body{
		session.InputItem{Item: item.System("Be brief.")},
		session.InputItem{Item: parse(`{"type":"message","role":"user","content":[{"type":"input_text","text":"Look:\n <b>"},{"type":"input_image","image_url":"data:image/png;base64,AAAA","detail":"high"},{"type":"input_image","image_url":"https://example.org/a.png"},{"type":"input_file","filename":"../a b.txt","file_data":"data:text/plain;base64,YQ=="},{"type":"input_file","file_id":"file_1"}]}`)},
		session.RunStarted{},
		session.TurnStarted{Turn: 1},
		session.OutputItem{Turn: 1, Item: parse(`{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"**Thinking**\n\nOf *it*."}],"encrypted_content":"AAAA"}`)},
		session.OutputItem{Turn: 1, Item: parse(`{"type":"message","role":"assistant","id":"m_1","content":[{"type":"output_text","text":"I [look](https://example.org), <i>not</i> [there](javascript:x).","annotations":[{"type":"url_citation","url":"https://example.org/s","title":"A source","start_index":0,"end_index":1}]}]}`)},
		session.OutputItem{Turn: 1, Item: item.Call("a", "run", `{"argv":["git","status"],"deep":{"a":[1,2.50,true,null,"x"],"name":"a long enough value to be laid out over several lines of the page"}}`)},
		session.OutputItem{Turn: 1, Item: item.Call("b", "run", `{"argv":["rm","x"]}`)},
		session.OutputItem{Turn: 1, Item: item.Call("c", "nested", `not JSON`)},
		session.OutputItem{Turn: 1, Item: parse(`{"type":"web_search_call","id":"ws","status":"completed","action":{"type":"search","query":"tides"}}`)},
		session.TurnEnded{Turn: 1, Status: item.StatusCompleted, Usage: usage, Cost: .5},
		session.ApprovalAsked{CallID: "a", Tool: "run", Reason: "no rule"},
		session.Approval{CallID: "a", Allowed: true, By: "Ada", Reason: "it only reads", Edited: `{"argv":["git","status","-s"]}`, Remember: rule},
		session.CallStarted{CallID: "a"},
		session.CallOutput{CallID: "a", Edited: true, Item: output(t, "a", "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-one\n+two\nafter\x1b[0m")},
		session.Approval{CallID: "b", By: "", Reason: "a rule denies it"},
		session.CallOutput{CallID: "b", Failed: true, Item: output(t, "b", "denied")},
		session.CallStarted{CallID: "c", Session: "inner"},
		session.SubagentUsage{CallID: "c", Session: "inner", Turns: 1, Tokens: 12, Cost: .25},
		session.CallOutput{CallID: "c", Failed: true, Item: output(t, "c", "")},
		session.ReasoningDropped{Reason: "it cannot be read"},
		session.Quarantined{Seq: 2, Reason: "the image is broken"},
		session.Compacted{Through: 9, By: session.ByDropping, Items: []item.Item{item.Developer("Left out.")}, Before: 9000, After: 100},
		session.Restored{Seq: 23},
		session.Collapsed{Seqs: []int64{15}, By: 17},
		session.Noticed{Turn: 1, Kind: session.NoticeTextDiffers, Text: "the final text differs from what was shown"},
		session.Note{Item: item.Assistant("a note")},
		session.StopAsked{Why: "interrupted", AfterTurn: true},
		session.Stopped{Why: "max_turns", Detail: "1 is the limit"},
		session.RunStarted{},
		session.TurnStarted{Turn: 2},
		session.OutputItem{Turn: 2, Item: item.Call("d", "run", `{}`)},
		session.OutputItem{Turn: 2, Partial: true, Item: item.Assistant("half a")},
		session.TurnEnded{Turn: 2, Status: item.StatusFailed, Reason: "the connection was lost"},
		session.CallDropped{CallID: "d", Reason: "never carried out"},
		session.CallOutput{CallID: "z", Item: output(t, "z", "of no call")},
		session.TurnStarted{Turn: 3},
		session.OutputItem{Turn: 3, Item: item.Call("e", "ask", `{"q":1}`)},
		session.TurnEnded{Turn: 3, Status: item.StatusIncomplete, Reason: "max_output_tokens"},
		session.ApprovalAsked{CallID: "e", Reason: "it writes"},
		session.TurnStarted{Turn: 4},
	}
	log := export.Log{Info: session.Info{ID: "all", Parent: "other", At: 2}}
	for i, b := range bodies {
		log.Entries = append(log.Entries, session.Entry{Seq: int64(i) + 1, Time: time.Date(2026, 11, 21, 10, 0, i, 0, time.UTC), Body: b})
	}
	log.Nested = func(string) ([]session.Entry, error) {
		return []session.Entry{{Seq: 1, Body: session.InputItem{Item: item.User("the task")}}, {Seq: 2, Body: session.OutputItem{Item: item.Assistant("done")}}}, nil
	}
	return log
}

// A nested log that cannot be read ends the export: a page without it would
// look whole.
func TestNestedLogFails(t *testing.T) {
	log := everything(t)
	broken := errors.New("the disk is gone")
	log.Nested = func(string) ([]session.Entry, error) { return nil, broken }
	for name, write := range map[string]func(*bytes.Buffer) error{
		"HTML":       func(out *bytes.Buffer) error { return export.HTML(out, log) },
		"JSON lines": func(out *bytes.Buffer) error { return export.JSONLines(out, log) },
	} {
		if err := write(new(bytes.Buffer)); !errors.Is(err, broken) {
			t.Errorf("%s: %v", name, err)
		}
	}
	log.Nested = nil
	if data := page(t, log); !bytes.Contains(data, []byte("its log is not part of this page")) {
		t.Error("the page does not say that a log is missing")
	}
}

// long is a log of many items, with a call and its output for each message.
func long(t testing.TB, items int) export.Log {
	t.Helper()
	var log export.Log
	add := func(b session.Body) {
		log.Entries = append(log.Entries, session.Entry{Seq: int64(len(log.Entries)) + 1, Body: b})
	}
	for i := 0; i < items; i += 4 {
		id := fmt.Sprintf("call_%d", i)
		add(session.InputItem{Item: item.User(fmt.Sprintf("Question %d: what is in the file?", i))})
		add(session.OutputItem{Item: item.Assistant("I look **at it** first:\n\n- one\n- two\n")})
		add(session.OutputItem{Item: item.Call(id, "read_file", fmt.Sprintf(`{"path":"notes/%d.txt"}`, i))})
		add(session.CallOutput{CallID: id, Item: output(t, id, strings.Repeat("a line of a file\n", 20))})
	}
	return log
}

// drawn is a source of payloads that are made when they are asked for.
type drawn struct {
	size int
	seed map[[32]byte]byte
}

func (d drawn) bytes(seed byte) []byte {
	data := make([]byte, d.size)
	_, _ = rand.NewChaCha8([32]byte{seed}).Read(data)
	return data
}

func (d drawn) OpenPayload(hash [32]byte) (io.ReadCloser, error) {
	seed, ok := d.seed[hash]
	if !ok {
		return nil, session.ErrNotFound
	}
	return io.NopCloser(bytes.NewReader(d.bytes(seed))), nil
}

// heldImages is a log with images that are kept elsewhere.
func heldImages(t testing.TB, size, count int) export.Log {
	t.Helper()
	source := drawn{size, map[[32]byte]byte{}}
	holder := item.NewHolder(source)
	t.Cleanup(holder.Close)
	var log export.Log
	for i := range count {
		data := source.bytes(byte(i))
		source.seed[sha256.Sum256(data)] = byte(i)
		it, err := item.UserParts(&item.InputImage{ImageURL: dataURI("image/png", data)})
		if err != nil {
			t.Fatal(err)
		}
		rest, payloads, _ := it.Split(1000)
		held, err := holder.Join(rest, payloads)
		if err != nil || !held.Externalized() {
			t.Fatalf("%v: nothing is held", err)
		}
		log.Entries = append(log.Entries, session.Entry{Seq: int64(i) + 1, Body: session.InputItem{Item: held}})
	}
	return log
}

// A page takes memory for one payload at a time, and so do lines.
func TestPayloadsOneByOne(t *testing.T) {
	const size, count = 512 << 10, 16
	log := heldImages(t, size, count)
	for name, write := range map[string]func(io.Writer, export.Log) error{"HTML": export.HTML, "JSON lines": export.JSONLines, "ChatMarkdown": export.ChatMarkdown} {
		w := new(measure)
		before := w.heap()
		if err := write(w, log); err != nil {
			t.Fatal(err)
		}
		if w.n < size*count {
			t.Errorf("%s: %d bytes, want the %d images in them", name, w.n, count)
		}
		more := int64(w.peak) - int64(before)
		t.Logf("%s: %d MB written, %.1f MB more of heap at most", name, w.n>>20, float64(more)/(1<<20))
		if more > 8*size {
			t.Errorf("%s: %d bytes more of heap at most, for %d images of %d", name, more, count, size)
		}
	}
}

// measure looks at the heap while a page is written.
type measure struct {
	n    int
	next int
	peak uint64
}

func (m *measure) Write(p []byte) (int, error) {
	if m.n += len(p); m.n >= m.next {
		m.next = m.n + 512<<10
		m.peak = max(m.peak, m.heap())
	}
	return len(p), nil
}

func (m *measure) heap() uint64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}

func BenchmarkPage(b *testing.B) {
	log := long(b, 10000)
	n := 0
	for b.Loop() {
		n = len(page(b, log))
	}
	b.ReportMetric(float64(n)/1e6, "MB")
}

// The page of a generated image has the image, in its own format, and the words of the call.
func TestGeneratedImage(t *testing.T) {
	call, err := item.ParseString(`{"type":"image_generation_call","id":"ig_1","status":"completed","revised_prompt":"A cat, from above","output_format":"webp","result":"UklGRg=="}`)
	if err != nil {
		t.Fatal(err)
	}
	got := string(page(t, export.Log{Entries: []session.Entry{{Seq: 1, Body: session.TurnStarted{Turn: 1}}, {Seq: 2, Body: session.OutputItem{Turn: 1, Item: call}}}}))
	for _, want := range []string{"A cat, from above", "data:image/webp;base64,UklGRg=="} {
		if !strings.Contains(got, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
}
