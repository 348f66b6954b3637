// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package completions

import (
	"slices"
	"strings"
	"testing"

	"github.com/antiphon-go/antiphon/api"
)

// decodeAll decodes chunks, each with the memory of the last one or without, and
// returns all that can be seen of it.
func decodeAll(chunks []string, repeat bool) (seen []string, repeated int) {
	var d Decoder
	note := func(ev api.Event) bool {
		seen = append(seen, ev.JSON())
		return true
	}
	for _, c := range chunks {
		if !repeat {
			d.like = pattern{}
		}
		before := d.like.before
		text := []byte(c)
		err := d.Decode(text, note)
		for i := range text {
			text[i] = 'x' // what was decoded does not change with it
		}
		if before != "" && d.like.before == before {
			repeated++
		}
		if err != nil {
			seen = append(seen, err.Error())
		}
	}
	d.Done()
	if err := d.Finish(note); err != nil {
		seen = append(seen, err.Error())
	}
	for _, l := range d.Losses() {
		seen = append(seen, l.String())
	}
	return seen, repeated
}

func wantSame(t *testing.T, chunks []string) int {
	t.Helper()
	fast, n := decodeAll(chunks, true)
	plain, _ := decodeAll(chunks, false)
	if !slices.Equal(fast, plain) {
		t.Fatalf("%q:\nwith memory    %q\nwithout memory %q", chunks, fast, plain)
	}
	return n
}

const (
	openAIChunk  = `{"id":"c1","object":"chat.completion.chunk","created":1,"model":"m","system_fingerprint":"f","choices":[{"index":0,"delta":{"content":"TEXT"},"logprobs":null,"finish_reason":null}],"usage":null,"obfuscation":"PAD"}`
	spacedChunk  = `{"id": "c1", "choices": [{"index": 0, "delta": {"role": "assistant", "content": "TEXT"}, "finish_reason": null}]}`
	thoughtChunk = `{"id":"c1","choices":[{"index":0,"delta":{"content":null,"reasoning_content":"TEXT"},"finish_reason":null}]}`
	endChunk     = `{"id":"c1","choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":2}}`
)

func filled(form, text, pad string) string {
	return strings.NewReplacer("TEXT", text, "PAD", pad).Replace(form)
}

// S1: a chunk that is compared with the one before means what it says.
func TestRepeatedChunks(t *testing.T) {
	texts := []string{"a", " word", "", `\n`, `\ud83d`, `\ude00`, "ü", "🎻", `\"x\"`, `content\":\"`, "a\x01", "\xff", `\q`, "end"}
	for _, form := range []string{openAIChunk, spacedChunk, thoughtChunk} {
		var chunks []string
		for i, s := range texts {
			chunks = append(chunks, filled(form, s, strings.Repeat("p", i)))
		}
		if n := wantSame(t, append(chunks, endChunk)); n < 4 {
			t.Errorf("%s: %d chunks were like the one before", form, n)
		}
	}
	for _, odd := range []string{
		`{"choices":[{"delta":{"content":"TEXT"}}],"content":"TEXT"}`,
		`{"choices":[{"delta":{"content":"a","content":"TEXT"}}]}`,
		`{"choices":[{"delta":{"content":"TEXT","c\u006fntent":"b"}}]}`,
		`{"choices":[{"delta":{"content" :"TEXT"}}],"content":"TEXT"}`,
		`{"choices":[{"delta":{"content":"TEXT"}},{"index":1,"delta":{"content":"b"}}]}`,
		`{"choices":[{"delta":{"content":"TEXT","audio":{"transcript":"b"}}}]}`,
		`{"choices":[{"message":{"content":"TEXT"}}]}`,
		`{"choices":[{"delta":{"reasoning":"TEXT","reasoning_content":"b"}}]}`,
		`{"choices":[{"delta":{"content":"TEXT","obfuscation":"PAD"}}]}`,
		`{"choices":[{"delta":{"content":"TEXT"},"logprobs":{"content":[{"token":"TEXT"}]}}]}`,
		`{"choices":[{"delta":{"content":"TEXT"}}],"usage":{"prompt_tokens":1,"completion_tokens":2}}`,
		`{"choices":[{"delta":{"content":"TEXT"}}],"error":{"message":"no"}}`,
	} {
		wantSame(t, []string{filled(odd, "a", ""), filled(odd, "b", "p"), filled(odd, "c", ""), endChunk})
	}
}

// FuzzRepeatedChunks changes one chunk in any way between two that are alike.
func FuzzRepeatedChunks(f *testing.F) {
	f.Add(openAIChunk, "a", "b", "p", 40, "x")
	f.Add(spacedChunk, "ü", `\n`, "", 3, `"content":"`)
	f.Add(thoughtChunk, "a", `\ud83d`, "", 60, `"}`)
	f.Fuzz(func(t *testing.T, form, a, b, pad string, at int, insert string) {
		first, second := filled(form, a, pad), filled(form, b, "")
		odd := second
		if at >= 0 && at < len(second) {
			odd = second[:at] + insert + second[at:]
		}
		wantSame(t, []string{first, second, odd, first, second, odd, endChunk})
	})
}
