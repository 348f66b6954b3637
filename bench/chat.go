// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/completions"
	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/item"
)

const einoName = "eino, a Go framework"

// chatRow runs the agent loop over Chat Completions, the API that agent frameworks
// in Go use.
func chatRow(turns int) row {
	connect := sync.OnceValues(plainHTTP.wired)
	r := row{
		name: fmt.Sprintf("loop of %d turns over Chat Completions", turns), unit: "turn", units: turns, maxAllocs: -1,
		note: func() string {
			return "The framework (eino, with its model for OpenAI) runs in a process of its own and says how much of it was the loop. No Go framework that speaks the Responses API was at hand."
		},
		libs: []lib{
			{"antiphon", func() (int, error) {
				w, err := connect()
				if err != nil {
					return 0, err
				}
				model := &completions.Client{BaseURL: w.base + "/loop", Key: endpoint.NewKey(benchKey), HTTP: w.ours}
				return ourRun(model, turns, fileTool(func() {}))
			}},
		},
	}
	r.addApart(einoName, eino, "/loop")
	return r
}

// chatDeltasRow reads a stream of Chat Completions with each library's client. Ours
// also converts it into events of the Responses API.
func chatDeltasRow() row {
	const n = 2000
	var b bytes.Buffer
	for i := range n {
		fmt.Fprintf(&b, `data: {"id":"chatcmpl-CBA9Vj3kTq","object":"chat.completion.chunk","created":1751381577,"model":"gpt-5.1-2025-11-13","service_tier":"default","system_fingerprint":null,"choices":[{"index":0,"delta":{"content":" word%d"},"finish_reason":null}],"usage":null,"obfuscation":"%.*s"}`+"\n\n", i, i%16, "mD6kQ0aWz81LhPq4")
	}
	b.WriteString(`data: {"id":"chatcmpl-CBA9Vj3kTq","object":"chat.completion.chunk","created":1751381577,"model":"gpt-5.1-2025-11-13","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}` + "\n\ndata: [DONE]\n\n")
	web := &http.Client{Transport: canned{b.Bytes()}}
	client := &completions.Client{Key: endpoint.NewKey(benchKey), HTTP: web}
	req := &api.Request{Model: "gpt-5.1", Input: item.NewList(item.User("hi"))}
	theirs := openai.NewClient(option.WithAPIKey(benchKey), option.WithHTTPClient(web))
	params := openai.ChatCompletionNewParams{Model: "gpt-5.1", Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage("hi")}}
	return row{
		name: "chat deltas through the client", unit: "delta", units: n, bytes: b.Len(), maxAllocs: 2,
		bars: []bar{
			most("nanoseconds a delta", func(r result) float64 { return float64(r.ours().cpu.Nanoseconds()) / n }, 1500, 800),
			most("allocations a delta", func(r result) float64 { return r.ours().allocs / n }, 2, 1.1),
		},
		libs: []lib{
			{"antiphon", func() (int, error) {
				total := 0
				for ev, err := range client.Stream(context.Background(), req) {
					if err != nil {
						return 0, err
					}
					total += len(ev.Delta)
				}
				return total, nil
			}},
			{"openai-go", func() (int, error) {
				total := 0
				s := theirs.Chat.Completions.NewStreaming(context.Background(), params)
				for s.Next() {
					if c := s.Current(); len(c.Choices) > 0 {
						total += len(c.Choices[0].Delta.Content)
					}
				}
				return total, s.Err()
			}},
		},
	}
}

// chat answers like call, in chunks of Chat Completions.
func (s *answers) chat(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	w.Header().Set("Content-Type", "text/event-stream")
	_, _ = w.Write(chatStream(s.calls.Add(1)))
}

// chatStream returns the content of [callStream] in chunks of Chat Completions.
func chatStream(n int64) []byte {
	var b bytes.Buffer
	chunk := func(members string) {
		fmt.Fprintf(&b, `data: {"id":"chatcmpl-%d","object":"chat.completion.chunk","created":1751381577,"model":"gpt-5.1",%s}`+"\n\n", n, members)
	}
	delta := func(members string) { chunk(`"choices":[{"index":0,"delta":{` + members + `},"finish_reason":null}]`) }
	delta(`"role":"assistant","content":""`)
	for range 8 {
		delta(`"content":"some words "`)
	}
	delta(fmt.Sprintf(`"tool_calls":[{"index":0,"id":"call_%d","type":"function","function":{"name":"read_file","arguments":""}}]`, n))
	for _, part := range []string{`{\"path\"`, `:\"notes`, `.txt\"`, `}`} {
		delta(`"tool_calls":[{"index":0,"function":{"arguments":"` + part + `"}}]`)
	}
	chunk(`"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]`)
	chunk(`"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":2,"total_tokens":3}`)
	b.WriteString("data: [DONE]\n\n")
	return b.Bytes()
}
