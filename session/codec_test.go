// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package session_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
)

var update = flag.Bool("update", false, "write the golden files anew")

func must(t testing.TB, raw string) item.Item {
	t.Helper()
	it, err := item.ParseString(raw)
	if err != nil {
		t.Fatal(err)
	}
	return it
}

// everyKind has one entry of each kind, with nothing left out, and some more.
func everyKind(t testing.TB) []session.Entry {
	usage, err := api.ParseResponse([]byte(`{"id":"r","usage":{"input_tokens":12,"input_tokens_details":{"cached_tokens":3},` +
		`"output_tokens":4,"output_tokens_details":{"reasoning_tokens":2},"total_tokens":16,"tomorrow":[1.50]}}`))
	if err != nil {
		t.Fatal(err)
	}
	rule := session.Rule{Verdict: session.Allow, Tool: "run_*", Member: "argv", Prefix: []string{"go", "test \"x\""}, Under: "/w", Arguments: `{"a":1}`, Definition: "d", From: "--allow"}
	message := must(t, `{ "type":"message","role":"user", "content":"caf\u00e9 \/ 1e3 <&>  ","n":1.0}`)
	lines := must(t, "{\"type\":\"message\",\r\n\t\"role\":\"user\",\"content\":\"a\\nb\"}")
	setup := session.Setup{
		Model: "m", Endpoint: "https://host/v1", API: "responses", Transport: "http", Profile: "openai", Rehearsal: true,
		Settings: `{"temperature":0.5, "text":{ } }`, Instructions: session.Fingerprint("Be brief."),
		Tools:   []session.Hashed{{Name: "echo", Hash: session.Fingerprint("{}")}, {}},
		Program: "antiphon v1", Files: []session.Hashed{{Name: "agent.md", Hash: "00"}},
	}
	bodies := []session.Body{
		session.InputItem{Item: message, Own: true},
		session.RunStarted{Resumes: true, Setup: &setup, Conversation: session.Conversation{ID: "conv_1", Session: "s"}},
		session.TurnStarted{Turn: 7, Continues: 5, InConversation: "conv_1", Setup: &session.Setup{}},
		session.OutputItem{Turn: 7, Item: lines, Partial: true},
		session.TurnEnded{Turn: 7, ResponseID: "resp_1", Status: "failed", Reason: "it\nbroke", Class: "overloaded", Usage: usage.Usage, Refused: 3, Cost: 0.0125,
			Model: "m-2026", ServiceTier: "default", RequestID: "req_1", InConversation: "conv_1", Window: 4096, Profile: "ollama", Setup: &setup},
		session.ApprovalAsked{CallID: "call_1", Number: 2, Tool: "run_command", Arguments: `{"a": 1}`, Custom: true, Reason: "why", Rules: []session.Rule{rule, {}}, Sandbox: "workspace"},
		session.Approval{CallID: "call_1", Number: 2, Allowed: true, Reason: "r", By: "somebody", From: "terminal", Rule: "allow x", Decided: session.DeciderPerson, Edited: `{"a":2}`, Remember: &rule, Definition: "d", Asked: "w"},
		session.CallStarted{CallID: "call_1", Arguments: `{}`, Session: "s/1-call_1", Repeatable: true},
		session.SubagentUsage{CallID: "call_1", Session: "s/1-call_1", Turns: 3, Tokens: 1 << 60, Cost: 1e-9},
		session.Paused{CallID: "call_1", Session: "s/1-call_1", Until: time.Date(2026, 11, 23, 18, 30, 0, 0, time.UTC), Reason: "the build"},
		session.CallOutput{CallID: "call_1", Item: must(t, `{"type":"function_call_output","call_id":"call_1","output":"x"}`), Failed: true, Edited: true},
		session.CallDropped{CallID: "call_1", Reason: "computer"},
		session.ItemsWithdrawn{Seqs: []int64{1, 4}, Reason: "no", By: "guard"},
		session.ReasoningDropped{Reason: "invalid_encrypted_content"},
		session.Quarantined{Seq: 4, Member: "action", Reason: "too large"},
		session.Compacted{Through: 9, Kept: []int64{1, 4}, By: session.BySummary, Items: []item.Item{message, lines}, Failure: "none", Before: 1000, After: 10, Usage: usage.Usage, Cost: 3},
		session.Restored{Seq: 12},
		session.Collapsed{Seqs: []int64{1, 2, math.MaxInt64}, By: 5},
		session.Noticed{Turn: 7, Kind: session.NoticeTextDiffers, ItemID: "msg_1", CallID: "call_1", Text: "the final text differs"},
		session.Superseded{Seqs: []int64{3, 4}, By: 9},
		session.Delivered{Key: "m-17", By: "anna", From: "slack", Shown: "5feceb66ffc8", Queued: true, Entries: 2, Problem: "decided"},
		session.StopAsked{Why: "cancelled", AfterTurn: true, Detail: "ctrl-c\xff\x00", Run: 2},
		session.Stopped{Why: "answered", Detail: "d"},
		session.Note{Item: message},
	}
	var list []session.Entry
	for i, b := range bodies {
		list = append(list, session.Entry{Seq: int64(i + 1), Time: time.Date(2026, 11, 21, 18, 0, i, 5e6, time.UTC), Body: b})
	}
	return list
}

// lessThanEverything are entries of which parts are left out.
func lessThanEverything() []session.Entry {
	list := []session.Entry{
		{Seq: math.MaxInt64, Body: session.InputItem{}},
		{Body: session.RunStarted{}},
		{Body: session.OutputItem{}},
		{Body: session.TurnEnded{Usage: &api.Usage{}}},
		{Body: session.Compacted{Items: []item.Item{}, Kept: []int64{}}},
		{Body: session.Compacted{Items: []item.Item{{}, item.User("u")}}},
		{Body: session.ApprovalAsked{Rules: []session.Rule{}}},
		{Body: session.Approval{Remember: &session.Rule{Prefix: []string{}}}},
		{Body: session.Collapsed{}}, {Body: session.Superseded{}},
	}
	return list
}

func encode(t testing.TB, e session.Entry) string {
	t.Helper()
	b, err := session.AppendEntry([]byte("before "), e)
	if err != nil {
		t.Fatalf("%+v: %v", e, err)
	}
	line, ok := strings.CutPrefix(string(b), "before ")
	if !ok || strings.ContainsAny(line, "\n\r") || item.JSON(line).Valid() != nil {
		t.Fatalf("no line of JSON: %q", b)
	}
	return line
}

// publishedKinds are the kinds of types that were renamed after the format was
// published. The kinds stay, since logs hold them.
var publishedKinds = map[string]string{
	"InputItem":     "given",
	"OutputItem":    "received",
	"SubagentUsage": "nested",
	"CallOutput":    "answered",
	"CallDropped":   "withdrawn",
}

// The table of kinds above has every kind of body there is.
func TestCodecKnowsEveryBody(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "entry.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var have []string
	for _, e := range everyKind(t) {
		name := reflect.TypeOf(e.Body).Name()
		have = append(have, name)
		want := strings.ToLower(name[:1])
		for _, r := range name[1:] {
			if r < 'a' {
				want += "_"
			}
			want += strings.ToLower(string(r))
		}
		if older, ok := publishedKinds[name]; ok {
			want = older
		}
		if session.Kind(e.Body) != want {
			t.Errorf("the kind of %s is %q, want %q", name, session.Kind(e.Body), want)
		}
		v := reflect.ValueOf(e.Body)
		for i := range v.NumField() {
			if v.Field(i).IsZero() {
				t.Errorf("%s.%s is not in the table: its place in the format is not pinned", name, v.Type().Field(i).Name)
			}
		}
	}
	for _, decl := range file.Decls {
		f, ok := decl.(*ast.FuncDecl)
		if !ok || f.Name.Name != "body" {
			continue
		}
		if name := f.Recv.List[0].Type.(*ast.Ident).Name; !slices.Contains(have, name) {
			t.Errorf("%s is not in the table: can it be written?", name)
		}
	}
	if session.Kind(nil) != "" {
		t.Error("nothing has a kind")
	}
}

// W8 for the log: what is written is what is read, and the format stays.
func TestCodecGolden(t *testing.T) {
	golden := filepath.Join("testdata", "entries.jsonl")
	var all bytes.Buffer
	for _, e := range append(everyKind(t), lessThanEverything()...) {
		line := encode(t, e)
		got, err := session.ParseEntry([]byte(line))
		if err != nil {
			t.Errorf("%s: %v", line, err)
		}
		if diff := cmp.Diff(e, got, compare); diff != "" {
			t.Errorf("%s: (-written +read):\n%s", line, diff)
		}
		fmt.Fprintln(&all, line)
	}
	if *update {
		if err := os.WriteFile(golden, all.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), all.String()); diff != "" {
		t.Errorf("the format of logs has changed: older ones must be read still (-want +got):\n%s", diff)
	}
}

// What another program has written in another order or with spaces is read;
// J5: what a newer one has added is refused by name.
func TestParseEntryRefuses(t *testing.T) {
	for _, c := range []struct{ line, want string }{
		{`{"seq":3,"kind":"reflected","mood":1}`, `kind "reflected"`},
		{`{"seq":3,"kind":"stopped","why":"x","because":{}}`, `member "because" of kind "stopped"`},
		{`{"seq":3,"kind":"note","item":{"type":"message"},"mood":1}`, `member "mood" of kind "note"`},
		{`{"seq":3,"kind":"approval","remember":{"verdict":"allow","until":"noon"}}`, `member "until" of kind "remember"`},
		{`{"seq":3,"kind":"stopped","why":"x","why":"y"}`, `member "why" of kind "stopped"`},
		{`{"seq":3,"kind":"run_started","setup":{"model":"m","model":"n"}}`, `member "model" of kind "setup"`},
	} {
		_, err := session.ParseEntry([]byte(c.line))
		if !errors.Is(err, session.ErrNewer) || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "entry 3") {
			t.Errorf("%s: got %v, want ErrNewer and %s", c.line, err, c.want)
		}
	}
	for _, line := range []string{
		``, `{`, `{}`, `[]`, `null`, `{"seq":1}`, `{"kind":5}`, `{"kind":"given","item":{"type"}}`, `{"kind":"given","item":5}`,
		`{"kind":"given","item":"{}x"}`, `{"kind":"given","item":{}`, `{"kind":"given","item":{}},`, `{"kind":"given",,"item":{}}`,
		`{"kind":"given","item":{},}`, `{"seq":1.5,"kind":"note"}`, `{"seq":"1","kind":"note"}`, `{"kind":"turn_ended","usage":5}`,
		`{"kind":"turn_ended","cost":0x10}`, `{"kind":"received","partial":1}`, `{"kind":"stopped","why":"\x"}`, `{"kind":"stopped" "why":"x"}`,
		`{"kind":"stopped","why":{"base64":"*"}}`, `{"kind":"collapsed","entries":[1,]}`, `{"kind":"collapsed","entries":{}}`,
		`{"kind":"given","item":[{}]}`, `{"kind":"given","item":[{},{"at":1,"size":1,"sha256":"00"}]}`, `{"time":"noon","kind":"note"}`,
		`{"seq":1,"kind":"stopped","why":}`, `{"seq":1,"kind":"stopped","why"}`, `{"seq":1,"kind":"received","turn": ,"item":{}}`,
		`{"seq":1,"kind":"note","item": }`,
	} {
		if e, err := session.ParseEntry([]byte(line)); err == nil || errors.Is(err, session.ErrNewer) {
			t.Errorf("%s: got %+v, %v", line, e, err)
		}
	}
	for _, c := range []struct{ line, want string }{
		{`{"seq":3,"kind":"run_started","setup":{"tools":[{"name":"a"},{"name":5}]}}`, `entry 3: setup.tools[1].name: neither a text nor an object with valid base64 in its member base64`},
		{`{"seq":3,"kind":"collapsed","entries":[1,2.0]}`, `entry 3: entries[1]: no whole number`},
		{`{"seq":3,"kind":"approval_asked","rules":5}`, `entry 3: rules: found the number 5, want a list`},
		{`{"seq":3,"kind":"approval","remember":"no"}`, `entry 3: remember: not a JSON object`},
	} {
		if _, err := session.ParseEntry([]byte(c.line)); err == nil || err.Error() != c.want {
			t.Errorf("%s: got %v, want %s", c.line, err, c.want)
		}
	}
	for _, line := range []string{
		` { "kind" : "received" , "item" : { "type" : "x" } , "turn" : 2, "seq":1 } `,
		`{"item":"{ \"type\" : \"x\" }","turn":2,"kind":"received","partial":false,"seq":1}`,
	} {
		e, err := session.ParseEntry([]byte(line))
		want := session.Entry{Seq: 1, Body: session.OutputItem{Turn: 2, Item: must(t, `{ "type" : "x" }`)}}
		if err != nil || cmp.Diff(want, e, compare) != "" {
			t.Errorf("%s: got %+v, %v", line, e, err)
		}
	}
}

// What cannot be written is an error and leaves the bytes before it.
func TestAppendEntryRefuses(t *testing.T) {
	for _, b := range []session.Body{
		nil,
		session.SubagentUsage{Cost: math.NaN()},
		session.TurnEnded{Usage: &api.Usage{Extra: item.Extra{{Name: "x", Value: "no JSON"}}}},
	} {
		got, err := session.AppendEntry([]byte("x"), session.Entry{Seq: 4, Body: b})
		if err == nil || !strings.Contains(err.Error(), "entry 4") || string(got) != "x" {
			t.Errorf("%#v: got %q, %v", b, got, err)
		}
	}
}

// blobs is what a store keeps of payloads.
type blobs map[[32]byte][]byte

func (b blobs) OpenPayload(hash [32]byte) (io.ReadCloser, error) {
	return io.NopCloser(bytes.NewReader(b[hash])), nil
}

// J4 in the codec: payloads are cut out, and come back byte for byte.
func TestSplit(t *testing.T) {
	data := bytes.Repeat([]byte("pixels!?"), 1000)
	image := `data:image/png;base64,` + base64.StdEncoding.EncodeToString(data)
	small := `data:image/png;base64,` + base64.StdEncoding.EncodeToString(data[:300])
	kept := blobs{}
	holder := item.NewHolder(kept)
	defer holder.Close()
	split := &session.Split{Min: 4096, Join: holder.Join, Keep: func(p item.Payload, payload func() ([]byte, error)) error {
		b, err := payload()
		if p.Size != int64(len(b)) || p.Hash != sha256.Sum256(b) {
			t.Errorf("%+v is about %d bytes", p, len(b))
		}
		kept[p.Hash] = b
		return err
	}}
	for _, space := range []string{"", "\n "} {
		it := must(t, `{"type":"message","role":"user",`+space+`"content":[{"type":"input_image","image_url":"`+image+`"},`+
			`{"type":"input_image","image_url":"`+small+`"},{"type":"input_image","image_url":"`+image+`"}]}`)
		for _, b := range []session.Body{session.InputItem{Item: it}, session.Compacted{Items: []item.Item{it, item.User("x"), it}}} {
			line, err := split.AppendEntry(nil, session.Entry{Seq: 1, Body: b})
			if err != nil || len(line) > 4000 || bytes.ContainsAny(line, "\n") {
				t.Fatalf("%d bytes, %v", len(line), err)
			}
			e, err := split.ParseEntry(string(line))
			if err != nil {
				t.Fatal(err)
			}
			again, err := split.AppendEntry(nil, e) // held payloads are not read
			if err != nil || string(again) != string(line) {
				t.Errorf("written again: %v\n%s\n%s", err, line, again)
			}
			if got, want := encode(t, e), encode(t, session.Entry{Seq: 1, Body: b}); got != want {
				t.Errorf("whole again:\n%.300s, want\n%.300s", got, want)
			}
			if _, err := session.ParseEntry(line); err == nil {
				t.Error("read without its payloads")
			}
		}
	}
	if len(kept) != 1 {
		t.Errorf("%d payloads are kept, want one", len(kept))
	}
	broken := errors.New("full")
	bad := &session.Split{Min: 4096, Keep: func(item.Payload, func() ([]byte, error)) error { return broken }}
	it := must(t, `{"type":"x","result":"`+base64.StdEncoding.EncodeToString(data)+`"}`)
	if _, err := bad.AppendEntry(nil, session.Entry{Body: session.Note{Item: it}}); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
}

// anyEntry draws entries of every kind.
func anyEntry(t *rapid.T) session.Entry {
	text := rapid.OneOf(rapid.String(), rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string { return string(b) }), rapid.Just(""))
	draw := func() string { return text.Draw(t, "text") }
	n := func() int64 { return rapid.Int64().Draw(t, "n") }
	yes := func() bool { return rapid.Bool().Draw(t, "yes") }
	cost := func() float64 { return rapid.Float64().Draw(t, "cost") }
	anItem := func() item.Item {
		content := string(item.Quote(strings.ToValidUTF8(draw(), "?")))
		space := rapid.SampledFrom([]string{"", " ", "\n", "\r\n\t"}).Draw(t, "space")
		it, err := item.ParseString(`{` + space + `"type":"message","role":"user",` + space + `"content":` + content + space + `}`)
		if err != nil {
			t.Fatal(err)
		}
		return it
	}
	items := func() []item.Item {
		var list []item.Item
		for range rapid.IntRange(0, 3).Draw(t, "items") {
			list = append(list, anItem())
		}
		return list
	}
	rule := func() session.Rule {
		return session.Rule{Verdict: session.Verdict(draw()), Tool: draw(), Member: draw(), Prefix: rapid.SliceOfN(text, 1, 3).Draw(t, "prefix"), Under: draw(), Arguments: draw(), Definition: draw()}
	}
	usage := func() *api.Usage {
		if yes() {
			return nil
		}
		return &api.Usage{InputTokens: n(), OutputTokens: n(), TotalTokens: n(), InputDetails: &api.InputTokensDetails{CachedTokens: n()}}
	}
	var remember *session.Rule
	if yes() {
		r := rule()
		remember = &r
	}
	bodies := []session.Body{
		session.InputItem{Item: anItem(), Own: yes()}, session.RunStarted{Resumes: yes()}, session.TurnStarted{Turn: int(n()), Continues: n()},
		session.OutputItem{Turn: int(n()), Item: anItem(), Partial: yes()},
		session.TurnEnded{Turn: int(n()), ResponseID: draw(), Status: draw(), Reason: draw(), Class: draw(), Usage: usage(), Refused: n(), Cost: cost()},
		session.ApprovalAsked{CallID: draw(), Number: int(n()), Tool: draw(), Arguments: draw(), Custom: yes(), Reason: draw(), Rules: []session.Rule{rule()}, Sandbox: draw()},
		session.Approval{CallID: draw(), Number: int(n()), Allowed: yes(), Reason: draw(), By: draw(), Edited: draw(), Remember: remember, Definition: draw(), Asked: draw()},
		session.CallStarted{CallID: draw(), Arguments: draw(), Session: draw(), Repeatable: yes()},
		session.SubagentUsage{CallID: draw(), Session: draw(), Turns: int(n()), Tokens: n(), Cost: cost()},
		session.Paused{CallID: draw(), Session: draw(), Reason: draw()},
		session.CallOutput{CallID: draw(), Item: anItem(), Failed: yes(), Edited: yes()},
		session.CallDropped{CallID: draw(), Reason: draw()},
		session.ItemsWithdrawn{Seqs: rapid.SliceOfN(rapid.Int64(), 1, 4).Draw(t, "withdrawn"), Reason: draw(), By: draw()}, session.ReasoningDropped{Reason: draw()},
		session.Quarantined{Seq: n(), Reason: draw()},
		session.Compacted{Through: n(), By: draw(), Items: items(), Before: n(), After: n(), Usage: usage(), Cost: cost(), Failure: draw()},
		session.Restored{Seq: n()}, session.Collapsed{Seqs: rapid.SliceOfN(rapid.Int64(), 1, 4).Draw(t, "seqs"), By: n()},
		session.Noticed{Turn: int(n()), Kind: draw(), ItemID: draw(), CallID: draw(), Text: draw()},
		session.Restored{Seq: n()}, session.Superseded{Seqs: rapid.SliceOfN(rapid.Int64(), 1, 4).Draw(t, "entries"), By: n()}, session.Collapsed{Seqs: rapid.SliceOfN(rapid.Int64(), 1, 4).Draw(t, "seqs"), By: n()},
		session.Delivered{Key: draw(), By: draw(), From: draw(), Shown: draw(), Queued: yes(), Entries: int(n()), Problem: draw()},
		session.StopAsked{Why: draw(), AfterTurn: yes(), Detail: draw(), Run: n()}, session.Stopped{Why: draw(), Detail: draw()}, session.Note{Item: anItem()},
	}
	at := time.Unix(rapid.Int64Range(-1e9, 1e11).Draw(t, "second"), rapid.Int64Range(0, 1e9-1).Draw(t, "nanosecond")).UTC()
	return session.Entry{Seq: n(), Time: at, Body: rapid.SampledFrom(bodies).Draw(t, "body")}
}

func TestCodecRoundTrip(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		e := anyEntry(rt)
		line := encode(t, e)
		got, err := session.ParseEntry([]byte(line))
		if err != nil {
			rt.Fatalf("%s: %v", line, err)
		}
		if diff := cmp.Diff(e, got, compare); diff != "" {
			rt.Fatalf("%s: (-written +read):\n%s", line, diff)
		}
	})
}

// Whatever text it is: no panic, and what is read can be written and read again.
func FuzzParseEntry(f *testing.F) {
	for _, e := range append(everyKind(f), lessThanEverything()...) {
		f.Add(encode(f, e))
	}
	f.Add(`{"kind":"received","item":{"a":1},"turn":2}`)
	f.Add(`{"kind":"note","turn": ,"item":{"a":1}}`)
	f.Add(`{"kind":"note","item": }`)
	f.Add(`{"kind":"note","item":["{\"a\":\"\"}",{"at":6,"size":200,"sha256":"` + strings.Repeat("ab", 32) + `"}]}`)
	f.Fuzz(func(t *testing.T, line string) {
		e, err := session.ParseEntry([]byte(line))
		if err != nil {
			return
		}
		if err := item.JSON(line).Valid(); err != nil {
			t.Fatalf("read %q, which is not JSON: %v", line, err)
		}
		again, err := session.ParseEntry([]byte(encode(t, e)))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(e, again, compare); diff != "" {
			t.Fatalf("(-first +again):\n%s", diff)
		}
	})
}

func BenchmarkCodec(b *testing.B) {
	list := everyKind(b)
	b.Run("append", func(b *testing.B) {
		var buf []byte
		b.ReportAllocs()
		for i := range b.N {
			buf, _ = session.AppendEntry(buf[:0], list[i%len(list)])
		}
	})
	var lines []string
	for _, e := range list {
		lines = append(lines, encode(b, e))
	}
	b.Run("parse", func(b *testing.B) {
		b.ReportAllocs()
		for i := range b.N {
			if _, err := session.ParseEntry([]byte(lines[i%len(lines)])); err != nil {
				b.Fatal(err)
			}
		}
	})
}
