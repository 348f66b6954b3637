// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unsafe"

	jsonv2 "github.com/go-json-experiment/json"
	oai "github.com/openai/openai-go/v3/responses"

	"github.com/antiphon-go/antiphon/item"
)

// response is a whole response of about size bytes: messages, calls and
// reasoning, or with images the results of an image generation.
func response(size int, images bool) []byte {
	var b bytes.Buffer
	b.WriteString(`{"id":"resp_1","object":"response","created_at":1751381577,"status":"completed","model":"gpt-5.1","output":[`)
	for i := 0; b.Len() < size; i++ {
		if i > 0 {
			b.WriteByte(',')
		}
		switch {
		case images:
			fmt.Fprintf(&b, `{"id":"ig_%d","type":"image_generation_call","status":"completed","result":%q}`, i, strings.Repeat("iVBORw0KGgo", 45_000))
		case i%3 == 0:
			fmt.Fprintf(&b, `{"id":"rs_%d","type":"reasoning","summary":[{"type":"summary_text","text":%q}],"encrypted_content":%q}`, i, strings.Repeat("It follows. ", 20), strings.Repeat("gAAAAABo", 60))
		case i%3 == 1:
			fmt.Fprintf(&b, `{"id":"msg_%d","type":"message","status":"completed","role":"assistant","content":[{"type":"output_text","annotations":[],"logprobs":[],"text":%q}]}`, i, strings.Repeat("Words and \"more\" words.\n", 30))
		default:
			fmt.Fprintf(&b, `{"id":"fc_%d","type":"function_call","status":"completed","call_id":"call_%d","name":"read_file","arguments":%q}`, i, i, `{"path":"notes.txt","offset":1,"limit":200}`)
		}
	}
	b.WriteString(`],"usage":{"input_tokens":1,"input_tokens_details":{"cached_tokens":0},"output_tokens":2,"output_tokens_details":{"reasoning_tokens":0},"total_tokens":3}}`)
	return b.Bytes()
}

// BenchmarkWholeResponse reads a response that is at hand as bytes and counts
// its items; the views of items are not read.
func BenchmarkWholeResponse(b *testing.B) {
	for _, c := range []struct {
		name string
		body []byte
	}{
		{"100KB", response(100_000, false)},
		{"5MB-images", response(5_000_000, true)},
	} {
		want := strings.Count(string(c.body), `"type":"reasoning"`) + strings.Count(string(c.body), `"type":"message"`) +
			strings.Count(string(c.body), `"type":"function_call"`) + strings.Count(string(c.body), `"type":"image_generation_call"`)
		b.Run("size="+c.name+"/lib=antiphon", func(b *testing.B) {
			whole(b, c.body, want, func(body []byte) (int, error) {
				r, err := item.ParseResponseString(unsafe.String(&body[0], len(body))) // as a client does that owns what it read
				if err != nil {
					return 0, err
				}
				return len(r.Output), nil
			})
		})
		b.Run("size="+c.name+"/lib=openai-go", func(b *testing.B) {
			whole(b, c.body, want, func(body []byte) (int, error) {
				var r oai.Response
				err := json.Unmarshal(body, &r)
				return len(r.Output), err
			})
		})
		b.Run("size="+c.name+"/lib=encoding-json", func(b *testing.B) {
			whole(b, c.body, want, func(body []byte) (int, error) {
				var r struct{ Output []map[string]any }
				err := json.Unmarshal(body, &r)
				return len(r.Output), err
			})
		})
		b.Run("size="+c.name+"/lib=json-v2", func(b *testing.B) {
			whole(b, c.body, want, func(body []byte) (int, error) {
				var r struct {
					Output []map[string]any `json:"output"`
				}
				err := jsonv2.Unmarshal(body, &r)
				return len(r.Output), err
			})
		})
	}
}

func whole(b *testing.B, body []byte, want int, read func([]byte) (int, error)) {
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		n, err := read(body)
		if err != nil || n != want {
			b.Fatalf("%d items, want %d: %v", n, want, err)
		}
	}
}
