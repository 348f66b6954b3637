// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"sync"

	"github.com/antiphon-go/antiphon/completions"
	"github.com/antiphon-go/antiphon/endpoint"
)

const einoName = "eino, a Go framework"

// chatRow is the loop over Chat Completions, which is what agent frameworks of Go
// speak.
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

// chat answers as call does, in chunks of Chat Completions.
func (s *answers) chat(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	w.Header().Set("Content-Type", "text/event-stream")
	_, _ = w.Write(chatStream(s.calls.Add(1)))
}

// chatStream is what [callStream] says, in chunks.
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
