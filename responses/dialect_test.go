// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package responses_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/dialect/dialecttest"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/responses"
)

func TestDialect(t *testing.T) {
	dialecttest.Run(t, dialecttest.Wire{Dialect: responses.Dialect{}, Stream: eventsOf, Whole: func(r dialecttest.Reply) string {
		w := &eventWriter{}
		return w.response(r, w.write(r))
	}, Read: api.ParseRequest})
}

func eventsOf(r dialecttest.Reply) []string {
	w := &eventWriter{}
	w.add("response.created", `"response":`+w.response(r, nil))
	output := w.write(r)
	if r.Error != nil {
		w.add("error", fmt.Sprintf(`"code":%q,"message":%q,"param":null`, r.Error.Code, r.Error.Message))
		return w.events
	}
	last := "response.completed"
	if r.Limit {
		last = "response.incomplete"
	}
	w.add(last, `"response":`+w.response(r, output))
	return w.events
}

// eventWriter writes a reply as a server of the Responses API does.
type eventWriter struct{ events []string }

func (w *eventWriter) add(name, members string) {
	w.events = append(w.events, fmt.Sprintf("event: %s\ndata: {\"type\":%q,\"sequence_number\":%d,%s}\n\n", name, name, len(w.events), members))
}

// response writes the response object: in progress before its output is known.
func (w *eventWriter) response(r dialecttest.Reply, output []string) string {
	status, details := "in_progress", "null"
	switch {
	case output != nil && r.Limit:
		status, details = "incomplete", `{"reason":"max_output_tokens"}`
	case output != nil:
		status = "completed"
	}
	return fmt.Sprintf(`{"id":"resp_1","object":"response","created_at":1,"status":%q,"model":"m","incomplete_details":%s,"output":[%s],"usage":{"input_tokens":%d,"output_tokens":%d,"total_tokens":%d}}`,
		status, details, strings.Join(output, ","), r.Input, r.Output, r.Input+r.Output)
}

// write writes the items and returns them.
func (w *eventWriter) write(r dialecttest.Reply) []string {
	output := []string{}
	text := func(kind, id, event, before, member string, texts []string, after string) {
		if len(texts) == 0 {
			return
		}
		at := fmt.Sprintf(`"output_index":%d`, len(output))
		w.add("response.output_item.added", at+`,"item":`+fmt.Sprintf(before, id)+after)
		for _, s := range texts {
			w.add("response."+event+".delta", fmt.Sprintf(`"item_id":%q,%s,"content_index":0,"delta":%s`, id, at, item.Quote(s)))
		}
		it := fmt.Sprintf(before, id) + fmt.Sprintf(`{"type":%q,%s}`, kind, member+string(item.Quote(strings.Join(texts, "")))) + after
		w.add("response.output_item.done", at+`,"item":`+it)
		output = append(output, it)
	}
	const message = `{"type":"message","id":%q,"role":"assistant","status":"completed","content":[`
	text("reasoning_text", "rs_1", "reasoning_text", `{"type":"reasoning","id":%q,"summary":[],"content":[`, `"text":`, r.Reasoning, "]}")
	text("output_text", "msg_1", "output_text", message, `"annotations":[],"text":`, r.Text, "]}")
	text("refusal", "msg_2", "refusal", message, `"refusal":`, r.Refusal, "]}")
	first := len(output)
	call := func(i int, arguments string) string {
		c := r.Calls[i]
		return fmt.Sprintf(`{"type":"function_call","id":"fc_%d","call_id":%q,"name":%q,"arguments":%s}`, i, c.ID, c.Name, item.Quote(arguments))
	}
	for i := range r.Calls {
		w.add("response.output_item.added", fmt.Sprintf(`"output_index":%d,"item":%s`, first+i, call(i, "")))
	}
	for n, more := 0, true; more; n++ {
		more = false
		for i, c := range r.Calls {
			if n < len(c.Arguments) {
				w.add("response.function_call_arguments.delta", fmt.Sprintf(`"item_id":"fc_%d","output_index":%d,"delta":%s`, i, first+i, item.Quote(c.Arguments[n])))
				more = true
			}
		}
	}
	for i, c := range r.Calls {
		it := call(i, strings.Join(c.Arguments, ""))
		w.add("response.output_item.done", fmt.Sprintf(`"output_index":%d,"item":%s`, first+i, it))
		output = append(output, it)
	}
	return output
}
