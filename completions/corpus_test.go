// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package completions_test

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/completions"
	"github.com/antiphon-go/antiphon/internal/apispec"
	"github.com/antiphon-go/antiphon/internal/sse"
	"github.com/antiphon-go/antiphon/item"
)

// recorded calls visit with every recording of a kind.
func recorded(t *testing.T, kind string, visit func(t *testing.T, text []byte)) {
	t.Helper()
	dir := apispec.Shared(t, "corpus")
	files, err := filepath.Glob(filepath.Join(dir, "chat_completions", kind, "*"))
	if err != nil || len(files) == 0 {
		t.Skipf("no recordings of %s", kind)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(filepath.Base(file), func(t *testing.T) { visit(t, text) })
	}
}

// I11, B6: requests become valid requests of the Responses API, and go back
// with all that was said in them.
func TestRecordedRequests(t *testing.T) {
	spec := apispec.Load(t)
	recorded(t, "requests", func(t *testing.T, text []byte) {
		r, losses, err := completions.ParseRequest(text)
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range losses {
			if l.Kind == completions.LostContent {
				t.Errorf("content is lost: %v", l)
			}
		}
		own := *r
		own.Extra = nil // what a provider has of its own
		if c := own.Reasoning; c != nil {
			c := *c
			c.Extra = nil
			own.Reasoning = &c
		}
		var tools []item.Tool
		for _, tool := range own.Tools {
			if _, unknown := tool.(*item.UnknownTool); !unknown {
				tools = append(tools, tool)
			}
		}
		if own.Tools = tools; strings.Contains(string(own.ToolChoice), `"tool"`) {
			own.ToolChoice = ""
		}
		if n := own.MaxOutputTokens; n != nil {
			own.MaxOutputTokens = new(max(*n, 16)) // fewer are for the profile to refuse (B4)
		}
		clean := item.NewList()
		for _, it := range own.Input.All() {
			clean.Append(it.Without(completions.ReasoningDetails))
		}
		own.Input = clean
		body, err := own.AppendJSON(nil)
		if err != nil {
			t.Fatal(err)
		}
		spec.Check(t, "CreateResponse", body)

		back, losses, err := completions.AppendRequest(nil, r, completions.Options{Reasoning: completions.ReasoningContent})
		if err != nil {
			t.Fatal(err)
		}
		want := facts(t, get(parsed(t, text), "messages"))
		if d := cmp.Diff(want, facts(t, get(parsed(t, back), "messages"))); d != "" {
			t.Errorf("messages (-want +got):\n%s\nlosses: %v", d, losses)
		}
		before, after := get(parsed(t, text), "tools"), get(parsed(t, back), "tools")
		if len(anyList(before)) != len(anyList(after)) {
			t.Errorf("tools: %v became %v", before, after)
		}
	})
}

// I11: chat completions become responses, and go back.
func TestRecordedResponses(t *testing.T) {
	recorded(t, "responses", func(t *testing.T, text []byte) {
		r, losses, err := completions.ParseResponse(text)
		if err != nil {
			t.Fatal(err)
		}
		body, err := r.AppendJSON(nil)
		if err != nil {
			t.Fatal(err)
		}
		again, err := api.ParseResponse(body)
		if err != nil || !cmp.Equal(again.Output, r.Output, cmp.Comparer(sameItem)) {
			t.Errorf("not a response: %v", err)
		}
		back, _, err := completions.AppendResponse(nil, r, completions.Options{Reasoning: completions.ReasoningPlain})
		if err != nil {
			t.Fatal(err)
		}
		was, is := get(anyList(get(parsed(t, text), "choices"))[0], "message"), get(anyList(get(parsed(t, back), "choices"))[0], "message")
		if d := cmp.Diff(messageFacts(was), messageFacts(is)); d != "" {
			t.Errorf("message (-want +got):\n%s\nlosses: %v", d, losses)
		}
		apart := func(n ...string) float64 {
			f, _ := get(parsed(t, text), append([]string{"usage"}, n...)...).(float64)
			return f
		}
		xAI := apart("total_tokens") == apart("prompt_tokens")+apart("completion_tokens")+apart("completion_tokens_details", "reasoning_tokens")
		for _, path := range [][]string{{"id"}, {"model"}, {"created"}, {"usage", "prompt_tokens"}, {"usage", "completion_tokens"}, {"usage", "total_tokens"},
			{"usage", "completion_tokens_details", "reasoning_tokens"}, {"service_tier"}, {"system_fingerprint"}} {
			if was, is := get(parsed(t, text), path...), get(parsed(t, back), path...); was != is && was != nil && was != "" && !(xAI && path[len(path)-1] == "completion_tokens") {
				t.Errorf("%v was %v and is %v", path, was, is)
			}
		}
		if was, is := get(anyList(get(parsed(t, text), "choices"))[0], "finish_reason"), get(anyList(get(parsed(t, back), "choices"))[0], "finish_reason"); was != is && was != "stop" {
			t.Errorf("finish_reason was %v and is %v", was, is)
		}
	})
}

func sameItem(a, b item.Item) bool { return a == b }

// chunksOf are the data of a stream's events, [DONE] left out.
func chunksOf(t rapid.TB, stream []byte) (chunks []string) {
	t.Helper()
	rd := sse.NewReader(bytes.NewReader(stream), sse.Options{})
	for {
		ev, err := rd.Next()
		if err == io.EOF {
			return chunks
		}
		if err != nil {
			t.Fatal(err)
		}
		if s := string(ev.Data); s != "" && s != completions.Done {
			chunks = append(chunks, s)
		}
	}
}

// decoded is what a decoder makes of chunks.
type decoded struct {
	acc    api.Accumulator
	events []api.Event
	items  []item.Item
	text   strings.Builder
	err    error
	losses []completions.Loss
}

func decode(t rapid.TB, chunks []string) *decoded {
	t.Helper()
	var d completions.Decoder
	out := &decoded{}
	yield := func(ev api.Event) bool {
		kept := ev
		out.events = append(out.events, kept)
		items, err := out.acc.Add(ev)
		if err != nil {
			t.Errorf("%s: %v", ev.JSON(), err)
		}
		out.items = append(out.items, items...)
		if ev.Type == api.EventTextDelta {
			out.text.WriteString(ev.Delta)
		}
		return true
	}
	for _, c := range chunks {
		if out.err = d.Decode([]byte(c), yield); out.err != nil {
			return out
		}
	}
	out.err = d.Finish(yield)
	out.losses = d.Losses()
	return out
}

// S4, S5, S9: streams become the events of a response whose items are those
// that a plain reader finds, and go back into chunks that say the same.
func TestRecordedStreams(t *testing.T) {
	spec := apispec.Load(t)
	recorded(t, "streams", func(t *testing.T, text []byte) {
		chunks := chunksOf(t, text)
		got := decode(t, chunks)
		want, reason, broken := told(t, chunks)
		if broken {
			if last := got.events[len(got.events)-1]; last.Type != api.EventError {
				t.Errorf("the last event is %s", last.Type)
			}
			return
		}
		if got.err != nil {
			t.Fatal(got.err)
		}
		for _, ev := range got.events {
			known := ev.Type != api.EventCreated && ev.Type != api.EventInProgress && !ev.Terminal() // those have whole responses
			if known && !strings.Contains(ev.JSON(), completions.ReasoningDetails) {
				spec.Check(t, "ResponseStreamEvent", []byte(ev.JSON()))
			}
		}
		r, whole := got.acc.Response()
		if !whole || r.Status != item.StatusCompleted || !cmp.Equal(r.Output, got.items, cmp.Comparer(sameItem)) {
			t.Errorf("status %s, whole %t, %d items of %d", r.Status, whole, len(got.items), len(r.Output))
		}
		compare(t, want, r)
		for name, value := range map[string]any{"text": got.text.String(), "reason": reason} {
			if was := map[string]any{"text": want["content"], "reason": reason}[name]; was != value {
				t.Errorf("%s is %q, want %q", name, value, was)
			}
		}
		if bytes.Contains(text, []byte(`"completion_tokens":`)) && (r.Usage == nil || r.Usage.OutputTokens == 0) {
			t.Errorf("usage %+v", r.Usage)
		}

		var e completions.Encoder
		e.Options.Reasoning = completions.ReasoningPlain
		var again []string
		for _, ev := range got.events {
			if err := e.Encode(ev, func(c []byte) error { again = append(again, string(c)); return nil }); err != nil {
				t.Fatal(err)
			}
		}
		back, backReason, _ := told(t, again)
		if d := cmp.Diff(messageFacts(want), messageFacts(back)); d != "" || backReason != reason && reason != "stop" {
			t.Errorf("chunks (-want +got): reason %s, was %s\n%s", backReason, reason, d)
		}
		if want["reasoning"] != "" && want["reasoning"] != back["reasoning"] {
			t.Errorf("reasoning was %q and is %q", want["reasoning"], back["reasoning"])
		}
	})
}

// compare holds a response against the message that a plain reader found.
func compare(t rapid.TB, want map[string]any, r *api.Response) {
	t.Helper()
	body, _, err := completions.AppendResponse(nil, r, completions.Options{Reasoning: completions.ReasoningPlain})
	if err != nil {
		t.Fatal(err)
	}
	is := get(anyList(get(parsed(t, body), "choices"))[0], "message")
	if d := cmp.Diff(messageFacts(want), messageFacts(is)); d != "" {
		t.Errorf("message (-want +got):\n%s", d)
	}
	if s, _ := get(is, "reasoning").(string); want["reasoning"] != s && want["reasoning"] != "" {
		t.Errorf("reasoning is %q, want %q", s, want["reasoning"])
	}
}
