// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"strings"
)

// deltas is the number of text deltas in a generated stream.
const deltas = 2000

// events builds a stream of events with sequence numbers.
type events struct {
	bytes.Buffer
	seq int
}

// event appends an event. Members are the JSON members after its type.
func (e *events) event(typ, members string) {
	fmt.Fprintf(e, "event: %s\ndata: {\"type\":%q,\"sequence_number\":%d,%s}\n\n", typ, typ, e.seq, members)
	e.seq++
}

// textStream returns the stream of a reply with one message, in the form of OpenAI's
// endpoint.
func textStream() []byte {
	var e events
	const id = "msg_6863f64a5260819ea9e2fdc22f24f14808b05fafad31a471"
	const at = `"item_id":"` + id + `","output_index":0,"content_index":0`
	e.event("response.created", `"response":{"id":"resp_1","object":"response","status":"in_progress","output":[]}`)
	e.event("response.output_item.added", `"output_index":0,"item":{"id":"`+id+`","type":"message","status":"in_progress","content":[],"role":"assistant"}`)
	e.event("response.content_part.added", at+`,"part":{"type":"output_text","annotations":[],"logprobs":[],"text":""}`)
	var text strings.Builder
	for i := range deltas {
		word := fmt.Sprintf(" word%d", i)
		if i%20 == 19 {
			word = ".\n\n"
		}
		text.WriteString(word)
		e.event("response.output_text.delta", fmt.Sprintf(`%s,"delta":%q,"logprobs":[],"obfuscation":"aB3dE5"`, at, word))
	}
	message := fmt.Sprintf(`{"id":%q,"type":"message","status":"completed","content":[{"type":"output_text","annotations":[],"logprobs":[],"text":%q}],"role":"assistant"}`, id, text.String())
	e.event("response.output_text.done", fmt.Sprintf(`%s,"text":%q,"logprobs":[]`, at, text.String()))
	e.event("response.output_item.done", `"output_index":0,"item":`+message)
	e.event("response.completed", `"response":{"id":"resp_1","object":"response","status":"completed","output":[`+message+`],"usage":{"input_tokens":1,"input_tokens_details":{"cached_tokens":0},"output_tokens":2000,"output_tokens_details":{"reasoning_tokens":0},"total_tokens":2001}}`)
	return e.Bytes()
}

// mixedStream returns a stream that alternates between reasoning, text and calls.
func mixedStream() []byte {
	var e events
	e.event("response.created", `"response":{"id":"resp_1","object":"response","status":"in_progress","output":[]}`)
	for i := range 100 {
		rs, msg, fc := fmt.Sprintf("rs_%d", i), fmt.Sprintf("msg_%d", i), fmt.Sprintf("fc_%d", i)
		e.event("response.output_item.added", fmt.Sprintf(`"output_index":%d,"item":{"id":%q,"type":"reasoning","summary":[]}`, 3*i, rs))
		for range 8 {
			e.event("response.reasoning_summary_text.delta", fmt.Sprintf(`"item_id":%q,"output_index":%d,"summary_index":0,"delta":"It follows ","obfuscation":"xY"`, rs, 3*i))
		}
		e.event("response.output_item.added", fmt.Sprintf(`"output_index":%d,"item":{"id":%q,"type":"message","status":"in_progress","content":[],"role":"assistant"}`, 3*i+1, msg))
		for range 8 {
			e.event("response.output_text.delta", fmt.Sprintf(`"item_id":%q,"output_index":%d,"content_index":0,"delta":"some words ","logprobs":[]`, msg, 3*i+1))
		}
		e.event("response.output_item.done", fmt.Sprintf(`"output_index":%d,"item":{"id":%q,"type":"message","status":"completed","content":[{"type":"output_text","annotations":[],"logprobs":[],"text":%q}],"role":"assistant"}`, 3*i+1, msg, strings.Repeat("some words ", 8)))
		e.event("response.output_item.added", fmt.Sprintf(`"output_index":%d,"item":{"id":%q,"type":"function_call","status":"in_progress","arguments":"","call_id":"call_%d","name":"read_file"}`, 3*i+2, fc, i))
		for range 4 {
			e.event("response.function_call_arguments.delta", fmt.Sprintf(`"item_id":%q,"output_index":%d,"delta":"{\"path\":"`, fc, 3*i+2))
		}
		e.event("response.function_call_arguments.done", fmt.Sprintf(`"item_id":%q,"output_index":%d,"arguments":"{\"path\":\"notes.txt\"}"`, fc, 3*i+2))
	}
	return e.Bytes()
}

// wholeResponse returns a response of about size bytes. It contains messages, calls
// and reasoning or, if images is set, results of image generation.
func wholeResponse(size int, images bool) []byte {
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
			fmt.Fprintf(&b, `{"id":"msg_%d","type":"message","status":"completed","role":"assistant","content":[{"type":"output_text","annotations":[],"logprobs":[],"text":%q}]}`, i, strings.Repeat("A line of words, as models write them, of about this length.\n", 14))
		default:
			fmt.Fprintf(&b, `{"id":"fc_%d","type":"function_call","status":"completed","call_id":"call_%d","name":"read_file","arguments":%q}`, i, i, `{"path":"notes.txt","offset":1,"limit":200}`)
		}
	}
	b.WriteString(`],"usage":{"input_tokens":1,"input_tokens_details":{"cached_tokens":0},"output_tokens":2,"output_tokens_details":{"reasoning_tokens":0},"total_tokens":3}}`)
	return b.Bytes()
}
