// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package completions_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/completions"
	"github.com/antiphon-go/antiphon/item"
)

// delta is a chunk that adds to the choice.
func delta(members string) string {
	return `{"id":"r","choices":[{"index":0,"delta":{` + members + `}}]}`
}

// finish is a chunk that ends the choice.
func finish(reason string) string {
	return `{"id":"r","choices":[{"index":0,"delta":{},"finish_reason":"` + reason + `"}]}`
}

// said is the items of a response in short.
func said(t *testing.T, r *api.Response) string {
	t.Helper()
	var list []string
	for _, it := range r.Output {
		v, err := it.Decode()
		if err != nil {
			t.Fatal(err)
		}
		switch v := v.(type) {
		case *item.Message:
			list = append(list, v.Content.Display())
		case *item.FunctionCall:
			list = append(list, fmt.Sprintf("%s=%s(%s)", v.CallID, v.Name, v.Arguments))
		case *item.CustomToolCall:
			list = append(list, fmt.Sprintf("%s=%s<%s>", v.CallID, v.Name, v.Input))
		case *item.Reasoning:
			list = append(list, "("+item.Parts(v.Content...).Display()+")")
		}
	}
	return strings.Join(list, " | ")
}

// What servers really send.
func TestDeviations(t *testing.T) {
	call := func(members string) string { return delta(`"tool_calls":[{` + members + `}]`) }
	for _, c := range []struct {
		name   string
		chunks []string
		want   string
	}{
		{"the usual", []string{delta(`"role":"assistant","content":""`), delta(`"content":"Hel"`), delta(`"content":"lo"`), finish("stop")}, "Hello"},
		{"content of null, and a chunk with a role and nothing else", []string{delta(`"role":"assistant"`), delta(`"content":null`), delta(`"content":"a"`), finish("stop")}, "a"},
		{"content as a list", []string{delta(`"content":[{"type":"text","text":"a"}]`), delta(`"content":[{"type":"thinking","thinking":[{"type":"text","text":"hm"}]},{"type":"text","text":"b"}]`), finish("stop")}, "ab | (hm)"},
		{"a call in pieces", []string{call(`"index":0,"id":"c1","type":"function","function":{"name":"f","arguments":""}`), call(`"index":0,"function":{"arguments":"{\"a\""}`), call(`"index":0,"function":{"arguments":":1}"}`), finish("tool_calls")}, `c1=f({"a":1})`},
		{"parallel calls whose pieces alternate", []string{call(`"index":0,"id":"c1","function":{"name":"f","arguments":""}`), call(`"index":1,"id":"c2","function":{"name":"g","arguments":""}`), call(`"index":0,"function":{"arguments":"{}"}`), call(`"index":1,"function":{"arguments":"[]"}`), finish("tool_calls")}, `c1=f({}) | c2=g([])`},
		{"no index", []string{call(`"id":"c1","function":{"name":"f","arguments":"{"}`), call(`"function":{"arguments":"}"}`), call(`"id":"c2","function":{"name":"g","arguments":"{}"}`), finish("stop")}, `c1=f({}) | c2=g({})`},
		{"no index and no id", []string{call(`"function":{"name":"f","arguments":"{}"}`), call(`"function":{"name":"f","arguments":"{\"b\":2}"}`), finish("stop")}, `call_r_0=f({}) | call_r_1=f({"b":2})`},
		{"index 0 for all", []string{call(`"index":0,"id":"c1","function":{"name":"f","arguments":"{}"}`), call(`"index":0,"id":"c2","function":{"name":"f","arguments":"{}"}`), finish("stop")}, `c1=f({}) | c2=f({})`},
		{"one id for all", []string{call(`"index":0,"id":"c","function":{"name":"f","arguments":"{}"}`), call(`"index":1,"id":"c","function":{"name":"g","arguments":"{}"}`), finish("stop")}, `c=f({}) | c=g({})`},
		{"id and name in each chunk", []string{call(`"index":0,"id":"c1","function":{"name":"f","arguments":"{\"a\":"}`), call(`"index":0,"id":"c1","function":{"name":"f","arguments":"1}"}`), finish("stop")}, `c1=f({"a":1})`},
		{"another id in each chunk", []string{call(`"index":0,"id":"c1","function":{"name":"f","arguments":"{"}`), call(`"index":0,"id":"c7","function":{"arguments":"}"}`), finish("stop")}, `c1=f({})`},
		{"null and empty members in later chunks", []string{call(`"index":0,"id":"c1","function":{"name":"f","arguments":"{"}`), call(`"index":0,"id":null,"type":null,"function":{"name":null,"arguments":"}"}`), call(`"index":0,"id":"","function":{"name":"","arguments":null}`), finish("stop")}, `c1=f({})`},
		{"a name in pieces", []string{call(`"index":0,"id":"c1","function":{"name":"get_"}`), call(`"index":0,"function":{"name":"weather"}`), call(`"index":0,"function":{"arguments":"{}"}`), finish("stop")}, `c1=get_weather({})`},
		{"arguments that are an object", []string{call(`"index":0,"id":"c1","function":{"name":"f","arguments":{"a": 1}}`), finish("stop")}, `c1=f({"a": 1})`},
		{"no arguments (I6)", []string{call(`"index":0,"id":"c1","function":{"name":"f"}`), finish("stop")}, `c1=f({})`},
		{"two whole calls in one chunk", []string{delta(`"tool_calls":[{"id":"c1","function":{"name":"f","arguments":"{}"}},{"id":"c2","function":{"name":"g","arguments":"{}"}}]`), finish("stop")}, `c1=f({}) | c2=g({})`},
		{"a custom tool", []string{call(`"index":0,"id":"c1","type":"custom","custom":{"name":"sh","input":""}`), call(`"index":0,"custom":{"input":"ls"}`), finish("tool_calls")}, `c1=sh<ls>`},
		{"the older function_call", []string{delta(`"function_call":{"name":"f","arguments":""}`), delta(`"function_call":{"arguments":"{}"}`), finish("function_call")}, `call_r_0=f({})`},
		{"reasoning_content", []string{delta(`"reasoning_content":"h"`), delta(`"reasoning_content":"m","content":null`), delta(`"content":"a"`), finish("stop")}, `(hm) | a`},
		{"reasoning, in both words", []string{delta(`"reasoning":"hm","reasoning_content":"hm"`), delta(`"content":"a"`), finish("stop")}, `(hm) | a`},
		{"reasoning in details alone", []string{delta(`"reasoning_details":[{"type":"reasoning.text","index":0,"text":"h"}]`), delta(`"reasoning_details":[{"type":"reasoning.text","index":0,"text":"m","signature":"s"}]`), delta(`"content":"a"`), finish("stop")}, `(hm) | a`},
		{"a refusal", []string{delta(`"refusal":"no"`), delta(`"refusal":" way"`), finish("stop")}, `no way`},
		{"finish_reason twice", []string{delta(`"content":"a"`), finish("stop"), finish("stop")}, "a"},
		{"finish_reason with the content", []string{`{"id":"r","choices":[{"index":0,"delta":{"content":"a"},"finish_reason":"stop"}]}`}, "a"},
		{"an empty list of choices first", []string{`{"id":"","choices":[],"prompt_filter_results":[{}]}`, delta(`"content":"a"`), finish("stop")}, "a"},
		{"more choices", []string{delta(`"content":"a"`), `{"id":"r","choices":[{"index":1,"delta":{"content":"b"},"finish_reason":"stop"}]}`, finish("stop")}, "a"},
		{"a message in place of deltas", []string{`{"id":"r","choices":[{"index":0,"message":{"role":"assistant","content":"a"},"finish_reason":"stop"}]}`}, "a"},
		{"no id of the response", []string{`{"choices":[{"delta":{"tool_calls":[{"function":{"name":"f"}}]},"finish_reason":"stop"}]}`}, "call_0_0=f({})"},
		{"nothing but an end", []string{delta(`"role":"assistant","content":""`), finish("stop")}, ""},
		{"sound", []string{delta(`"audio":{"id":"a","data":"AA=="}`), delta(`"audio":{"transcript":"hi"}`), finish("stop")}, "hi"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := decode(t, c.chunks)
			if got.err != nil {
				t.Fatal(got.err)
			}
			r, whole := got.acc.Response()
			if d := cmp.Diff(c.want, said(t, r)); d != "" || !whole || r.Status != item.StatusCompleted {
				t.Errorf("status %s (-want +got):\n%s", r.Status, d)
			}
			if !slices.Equal(r.Output, got.items) {
				t.Errorf("items told %v, in the response %v", got.items, r.Output)
			}
			deltas(t, got.events)
		})
	}
}

// deltas checks S4: the deltas of each text make its done event.
func deltas(t *testing.T, events []api.Event) {
	t.Helper()
	sum := map[string]string{}
	for i, ev := range events {
		if ev.SequenceNumber != int64(i) {
			t.Errorf("event %d has the number %d", i, ev.SequenceNumber)
		}
		kind, isDelta := strings.CutSuffix(string(ev.Type), ".delta")
		key := fmt.Sprint(kind, ev.ItemID, ev.OutputIndex, ev.ContentIndex)
		if isDelta {
			sum[key] += strings.Clone(ev.Delta)
			continue
		}
		kind, isDone := strings.CutSuffix(string(ev.Type), ".done")
		key = fmt.Sprint(kind, ev.ItemID, ev.OutputIndex, ev.ContentIndex)
		for _, name := range []string{"text", "arguments", "input", "refusal"} {
			if v, ok := ev.Member(name); isDone && ok && sum[key] != ev.Text(name) {
				t.Errorf("%s: the deltas make %q, done says %s", kind, sum[key], v)
			}
		}
	}
}

// S9
func TestStreamUsage(t *testing.T) {
	for name, chunks := range map[string][]string{
		"behind":                {delta(`"content":"a"`), finish("stop"), `{"id":"r","choices":[],"usage":{"prompt_tokens":10,"completion_tokens":5,"total_tokens":15,"prompt_tokens_details":{"cached_tokens":3},"completion_tokens_details":{"reasoning_tokens":2}}}`},
		"with the end":          {`{"id":"r","choices":[{"delta":{"content":"a"},"finish_reason":"stop"}],"usage":{"prompt_tokens":10,"completion_tokens":5,"prompt_tokens_details":{"cached_tokens":3},"completion_tokens_details":{"reasoning_tokens":2}}}`},
		"in each chunk":         {`{"id":"r","choices":[{"delta":{"content":"a"}}],"usage":{"prompt_tokens":10,"completion_tokens":1}}`, `{"id":"r","choices":[{"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":10,"completion_tokens":5,"prompt_cache_hit_tokens":3,"completion_tokens_details":{"reasoning_tokens":2}}}`},
		"of null, then some":    {`{"id":"r","usage":null,"choices":[{"delta":{"content":"a"},"finish_reason":"stop"}]}`, `{"id":"r","choices":[],"usage":{"prompt_tokens":10,"completion_tokens":5,"cache_read_input_tokens":3,"completion_tokens_details":{"reasoning_tokens":2}}}`},
		"xAI's, thoughts apart": {`{"id":"r","choices":[{"delta":{"content":"a"},"finish_reason":"stop"}],"usage":{"prompt_tokens":10,"completion_tokens":3,"total_tokens":15,"prompt_tokens_details":{"cached_tokens":3},"completion_tokens_details":{"reasoning_tokens":2}}}`},
		"Groq's":                {`{"id":"r","choices":[{"delta":{"content":"a"},"finish_reason":"stop"}],"x_groq":{"usage":{"prompt_tokens":10,"completion_tokens":5,"prompt_tokens_details":{"cached_tokens":3},"completion_tokens_details":{"reasoning_tokens":2}}}}`},
	} {
		got := decode(t, chunks)
		r, _ := got.acc.Response()
		if u := r.Usage; got.err != nil || u == nil || u.InputTokens != 10 || u.OutputTokens != 5 || u.TotalTokens != 15 || u.Cached() != 3 || u.Reasoning() != 2 {
			t.Errorf("%s: %v, %+v", name, got.err, u)
		}
	}
}

// S3
func TestStreamEnds(t *testing.T) {
	for reason, want := range map[string]string{
		"length": "incomplete max_output_tokens", "content_filter": "incomplete content_filter", "error": "failed ",
		"stop": "completed ", "end_turn": "completed ",
	} {
		got := decode(t, []string{delta(`"content":"a"`), finish(reason)})
		r, whole := got.acc.Response()
		details := ""
		if r.Incomplete != nil {
			details = r.Incomplete.Reason
		}
		if s := r.Status + " " + details; s != want || !whole {
			t.Errorf("%s: got %s", reason, s)
		}
		if last := got.events[len(got.events)-1]; !last.Terminal() {
			t.Errorf("%s: the last event is %s", reason, last.Type)
		}
		if r.Status == item.StatusIncomplete && r.Output[0].Status() != item.StatusIncomplete {
			t.Errorf("%s: the item is %s", reason, r.Output[0].Status())
		}
	}
}

// S2: [DONE] without a finish_reason is not an end.
func TestStreamTruncated(t *testing.T) {
	got := decode(t, []string{delta(`"content":"a"`), delta(`"tool_calls":[{"index":0,"id":"c","function":{"name":"f","arguments":"{\"a\""}}]`)})
	_, whole := got.acc.Response()
	if !errors.Is(got.err, completions.ErrTruncated) || whole || len(got.items) != 0 {
		t.Errorf("%v, whole %t, items %v", got.err, whole, got.items)
	}
	if p := got.acc.Partial(); len(p) != 1 || p[0].Type() != item.TypeMessage || p[0].Status() != item.StatusIncomplete {
		t.Errorf("partial %v", p)
	}
}

func TestStreamErrors(t *testing.T) {
	for chunk, want := range map[string]string{
		`{"error":{"message":"boom","code":502}}`:        "502: boom",
		`{"error":"boom"}`:                               "boom",
		`{"object":"error","message":"boom","code":400}`: "400: boom",
		`{"id":"r","choices":[{"delta":{},"finish_reason":"error"}],"error":{"message":"boom"}}`: "boom",
		`{"id":"r","choices":[{"delta":{},"finish_reason":"error","error":{"message":"boom"}}]}`: "boom",
		`{"error":{"message":"boom","type":"invalid_request_error","code":"tool_use_failed"}}`:   "tool_use_failed: boom",
	} {
		got := decode(t, []string{delta(`"content":"a"`), chunk, finish("stop")})
		last := got.events[len(got.events)-1]
		apiErr, ok := last.Err()
		if got.err != nil || last.Type != api.EventError || !ok || apiErr.Error() != want {
			t.Errorf("%s: %v, %s", chunk, got.err, last.JSON())
		}
	}
	for chunk, want := range map[string]string{
		`{"type":"response.created"}`: "choices: found nothing",
		`[]`:                          "found an empty list, want a chunk",
		`{"choices":[7]}`:             "choices: found the number 7",
		`{"id":`:                      "invalid JSON at byte 6",
		delta(`"tool_calls":[7]`):     "found the number 7, want a call",
	} {
		if got := decode(t, []string{chunk}); got.err == nil || !strings.Contains(got.err.Error(), want) {
			t.Errorf("%s: %v", chunk, got.err)
		}
	}
}

// A stream of nothing but beginnings of calls is given up.
func TestStreamBounded(t *testing.T) {
	chunks := []string{}
	for i := range 5000 {
		chunks = append(chunks, delta(fmt.Sprintf(`"tool_calls":[{"index":%d,"id":"c%d","function":{"name":"f"}}]`, i, i)))
	}
	if got := decode(t, chunks); got.err == nil || !strings.Contains(got.err.Error(), "more calls than") {
		t.Error(got.err)
	}
}

// R2: details of reasoning in pieces are put together as they were.
func TestStreamDetails(t *testing.T) {
	got := decode(t, []string{
		delta(`"reasoning_details":[{"type":"reasoning.text","text":"h","signature":null,"index":0}]`),
		delta(`"reasoning_details":[{"type":"reasoning.text","text":"m","signature":"s","index":0},{"type":"reasoning.encrypted","data":"d","index":1}]`),
		delta(`"content":"a"`), finish("stop"),
	})
	r, _ := got.acc.Response()
	v, _ := r.Output[0].Member(completions.ReasoningDetails)
	if want := `[{"type":"reasoning.text","text":"hm","signature":"s","index":0},{"type":"reasoning.encrypted","data":"d","index":1}]`; string(v) != want {
		t.Errorf("got  %s\nwant %s", v, want)
	}
}

// What a stream has that nobody knows is named, or kept in the response.
func TestStreamLosses(t *testing.T) {
	got := decode(t, []string{
		`{"id":"r","citations":["u"],"choices":[{"index":0,"delta":{"content":"a","foreign":1},"content_filter_results":{"hate":1}}]}`,
		`{"id":"r","citations":["u"],"choices":[{"index":0,"delta":{"content":"b","foreign":2}},{"index":1,"delta":{"content":"x"}}]}`,
		finish("stop"),
	})
	want := "choices[0].delta.foreign: has no counterpart\nchoices[0].content_filter_results: has no counterpart\nchoices[1]: a response has one choice"
	sorted := func(s string) []string { return slices.Sorted(strings.SplitSeq(s, "\n")) }
	if d := cmp.Diff(sorted(want), sorted(lines(got.losses))); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	r, _ := got.acc.Response()
	if v, _ := r.Extra.Get("citations"); v != `["u"]` {
		t.Errorf("extra %v", r.Extra)
	}
}

// A consumer that has had enough is left alone.
func TestStreamStops(t *testing.T) {
	var d completions.Decoder
	n := 0
	yield := func(api.Event) bool { n++; return false }
	for _, c := range []string{delta(`"content":"a"`), delta(`"content":"b"`), finish("stop")} {
		if err := d.Decode([]byte(c), yield); err != nil {
			t.Fatal(err)
		}
	}
	if err := d.Finish(yield); err != nil || n != 1 {
		t.Errorf("%v, %d events", err, n)
	}
}

func FuzzDecoder(f *testing.F) {
	f.Add(delta(`"content":"a"`) + "\n" + finish("stop"))
	f.Add(delta(`"tool_calls":[{"id":"c1","function":{"name":"f","arguments":"{}"}}]`) + "\n" + finish("length"))
	f.Add(delta(`"reasoning_details":[{"type":"reasoning.text","text":"h"}]`) + "\n" + delta(`"annotations":[{"type":"url_citation","url_citation":{"url":"u"}}]`))
	f.Add(`{"error":{"message":"m"}}`)
	f.Fuzz(func(t *testing.T, stream string) {
		var d completions.Decoder
		var acc api.Accumulator
		yield := func(ev api.Event) bool {
			if _, err := acc.Add(ev); err != nil {
				t.Errorf("%s: %v", ev.JSON(), err)
			}
			return true
		}
		for line := range strings.SplitSeq(stream, "\n") {
			if d.Decode([]byte(line), yield) != nil {
				return
			}
		}
		if err := d.Finish(yield); err != nil {
			return
		}
		r, _ := acc.Response()
		if _, _, err := completions.AppendResponse(nil, r, completions.Options{Reasoning: completions.ReasoningDetails}); err != nil {
			t.Errorf("cannot be written: %v", err)
		}
	})
}

func FuzzParse(f *testing.F) {
	f.Add(`{"model":"m","messages":[{"role":"user","content":"a"}]}`)
	f.Add(`[{"role":"assistant","tool_calls":[{"id":"c","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"c","content":[{"type":"image_url","image_url":{"url":"u"}}]}]`)
	f.Add(`{"id":"r","choices":[{"message":{"role":"assistant","content":"a","annotations":[{"type":"x"}]},"finish_reason":"stop"}]}`)
	f.Fuzz(func(t *testing.T, text string) {
		if items, _, err := completions.ToItems([]byte(text)); err == nil {
			_, _, _ = completions.FromItems(item.NewList(items...), completions.Options{Plain: true, Reasoning: completions.ReasoningDetails})
		}
		if r, _, err := completions.ParseRequest([]byte(text)); err == nil {
			if _, err := r.AppendJSON(nil); err != nil {
				t.Error(err)
			}
			body, _, err := completions.AppendRequest(nil, r, completions.Options{})
			if err == nil && item.JSON(body).Valid() != nil {
				t.Errorf("no JSON: %s", body)
			}
		}
		if r, _, err := completions.ParseResponse([]byte(text)); err == nil {
			body, _, err := completions.AppendResponse(nil, r, completions.Options{Reasoning: completions.ReasoningDetails})
			if err != nil || item.JSON(body).Valid() != nil {
				t.Errorf("%v: %s", err, body)
			}
		}
	})
}
