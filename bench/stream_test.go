// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	oai "github.com/openai/openai-go/v3/responses"

	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/responses"
)

// deltas is how many text deltas the benchmark's stream has.
const deltas = 2000

// textStream is a reply of one message, as OpenAI's endpoint streams it.
func textStream() []byte {
	var b bytes.Buffer
	seq := 0
	event := func(typ, members string) {
		fmt.Fprintf(&b, "event: %s\ndata: {\"type\":%q,\"sequence_number\":%d,%s}\n\n", typ, typ, seq, members)
		seq++
	}
	const at = `"item_id":"msg_1","output_index":0,"content_index":0`
	event("response.created", `"response":{"id":"resp_1","object":"response","status":"in_progress","output":[]}`)
	event("response.output_item.added", `"output_index":0,"item":{"id":"msg_1","type":"message","status":"in_progress","content":[],"role":"assistant"}`)
	event("response.content_part.added", at+`,"part":{"type":"output_text","annotations":[],"logprobs":[],"text":""}`)
	var text bytes.Buffer
	for i := range deltas {
		word := fmt.Sprintf(" word%d", i)
		text.WriteString(word)
		event("response.output_text.delta", fmt.Sprintf(`%s,"delta":%q,"logprobs":[],"obfuscation":"aB3dE5"`, at, word))
	}
	message := fmt.Sprintf(`{"id":"msg_1","type":"message","status":"completed","content":[{"type":"output_text","annotations":[],"logprobs":[],"text":%q}],"role":"assistant"}`, text.String())
	event("response.output_text.done", fmt.Sprintf(`%s,"text":%q,"logprobs":[]`, at, text.String()))
	event("response.output_item.done", `"output_index":0,"item":`+message)
	event("response.completed", `"response":{"id":"resp_1","object":"response","status":"completed","output":[`+message+`],"usage":{"input_tokens":1,"input_tokens_details":{"cached_tokens":0},"output_tokens":2000,"output_tokens_details":{"reasoning_tokens":0},"total_tokens":2001}}`)
	return b.Bytes()
}

// canned answers every request with the same stream, without a socket: what is
// measured is the reading.
type canned struct{ body []byte }

func (c canned) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Body != nil {
		_, _ = io.Copy(io.Discard, req.Body)
		_ = req.Body.Close()
	}
	return &http.Response{
		StatusCode: http.StatusOK, Status: "200 OK", Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header:  http.Header{"Content-Type": {"text/event-stream"}},
		Body:    io.NopCloser(bytes.NewReader(c.body)),
		Request: req,
	}, nil
}

// BenchmarkTextStream reads one stream of 2 000 text deltas, looking at each
// delta, with each client as its users would.
func BenchmarkTextStream(b *testing.B) {
	body := textStream()
	httpClient := &http.Client{Transport: canned{body}}
	b.Run("lib=antiphon", func(b *testing.B) {
		client := &responses.Client{Key: endpoint.NewKey("sk-bench"), HTTP: httpClient}
		req := &item.Request{Model: "gpt-5.1", Input: item.NewList(item.User("hi"))}
		measure(b, body, func() (n int) {
			for ev, err := range client.Stream(context.Background(), req) {
				if err != nil {
					b.Fatal(err)
				}
				if ev.Type == item.EventTextDelta {
					n += len(ev.Delta)
				}
			}
			return n
		})
	})
	b.Run("lib=openai-go", func(b *testing.B) {
		client := openai.NewClient(option.WithAPIKey("sk-bench"), option.WithHTTPClient(httpClient))
		params := oai.ResponseNewParams{
			Model: "gpt-5.1",
			Input: oai.ResponseNewParamsInputUnion{OfString: openai.String("hi")},
		}
		measure(b, body, func() (n int) {
			stream := client.Responses.NewStreaming(context.Background(), params)
			for stream.Next() {
				if ev := stream.Current(); ev.Type == "response.output_text.delta" {
					n += len(ev.Delta)
				}
			}
			if err := stream.Err(); err != nil {
				b.Fatal(err)
			}
			return n
		})
	})
}

func measure(b *testing.B, body []byte, read func() int) {
	want := read()
	if want == 0 {
		b.Fatal("no deltas were read")
	}
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		if got := read(); got != want {
			b.Fatalf("read %d bytes of deltas, want %d", got, want)
		}
	}
}
