// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agenttest

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/antiphon-go/antiphon/item"
)

// script writes the events of one response, as the API sends them.
type script struct {
	id     string
	stream bool
	lane   string // the stream_id of a request on a WebSocket
	warmUp bool   // the request wants no output
	req    *item.Request
	size   int // of the request, in bytes
	model  string

	events []piece
	output []string // the items
	spoken int      // bytes of output
}

func newScript(n int, r Request) *script {
	req, lane := readRequest(r)
	generate, _ := req.Extra.Get("generate")
	s := &script{
		id:     "resp_" + strconv.Itoa(n),
		stream: r.Socket > 0 || req.Stream != nil && *req.Stream,
		lane:   lane,
		warmUp: generate == "false",
		req:    req,
		size:   len(r.Body),
		model:  cmp.Or(req.Model, "test-model"),
	}
	for _, t := range []item.EventType{item.EventCreated, item.EventInProgress} {
		s.event(t, "response", item.JSON(s.response(item.StatusInProgress, "null", "null", "")))
	}
	return s
}

// readRequest reads a request, as well as it can be read.
func readRequest(r Request) (req *item.Request, lane string) {
	if r.Socket > 0 {
		if ev, err := item.ParseClientEvent(r.Body); err == nil {
			if create, ok := ev.(*item.CreateEvent); ok {
				return create.Request, create.StreamID
			}
		}
	}
	req, err := item.ParseRequest(r.Body)
	if err != nil {
		req = new(item.Request)
	}
	return req, ""
}

// event appends an event with its sequence number.
func (s *script) event(t item.EventType, members ...any) {
	members = append([]any{"type", string(t), "sequence_number", len(s.events)}, members...)
	if s.lane != "" {
		members = append(members, "stream_id", s.lane)
	}
	s.events = append(s.events, piece{text: object(members...)})
}

// finish returns the body: the events with the last one, or the response.
func (s *script) finish(last item.EventType, failure, incomplete string) (string, []piece) {
	status := strings.TrimPrefix(string(last), "response.")
	usage := object(
		"input_tokens", s.size/4, "input_tokens_details", item.JSON(object("cached_tokens", 0, "cache_write_tokens", 0)),
		"output_tokens", s.spoken/4, "output_tokens_details", item.JSON(object("reasoning_tokens", 0)),
		"total_tokens", s.size/4+s.spoken/4)
	if last == item.EventFailed {
		usage = ""
	}
	response := s.response(status, failure, incomplete, usage)
	if !s.stream {
		return typeJSON, []piece{{pieceRaw, response}}
	}
	s.event(last, "response", item.JSON(response))
	return typeStream, s.events
}

func (s *script) response(status, failure, incomplete, usage string) string {
	members := []any{
		"id", s.id, "object", "response", "created_at", 1_700_000_000, "status", status,
		"error", item.JSON(failure), "incomplete_details", item.JSON(incomplete),
		"instructions", nil, "metadata", item.JSON("{}"), "model", s.model,
		"output", item.JSON("[" + strings.Join(s.output, ",") + "]"),
		"parallel_tool_calls", true, "temperature", 1, "tool_choice", "auto",
		"tools", item.JSON("[]"), "top_p", 1,
	}
	if usage != "" { // the API sends null, which its own schema does not have
		members = append(members, "usage", item.JSON(usage))
	}
	return object(members...)
}

// item appends the events of one output item.
func (s *script) item(it item.Item) {
	index := len(s.output)
	id := cmp.Or(it.ID(), fmt.Sprintf("%s_%s_%d", idPrefix[it.Type()], s.id, index))
	v, err := it.Decode()
	if err != nil {
		v = &item.Unknown{Raw: item.JSON(it.JSON())} // as wrong as the test wants it
	}
	switch v := v.(type) {
	case *item.Message:
		s.message(v, id, index)
	case *item.FunctionCall:
		v.ID, v.Status = id, cmp.Or(v.Status, item.StatusCompleted)
		empty := *v
		empty.Arguments, empty.Status = "", item.StatusInProgress
		s.added(index, &empty)
		s.deltas(item.EventArgumentsDelta, v.Arguments, "item_id", id, "output_index", index)
		s.event(item.EventArgumentsDone, "item_id", id, "output_index", index, "name", v.Name, "arguments", v.Arguments)
		s.done(index, v)
	case *item.CustomToolCall:
		v.ID = id
		empty := *v
		empty.Input = ""
		s.added(index, &empty)
		s.deltas(item.EventCustomInputDelta, v.Input, "item_id", id, "output_index", index)
		s.event(item.EventCustomInputDone, "item_id", id, "output_index", index, "input", v.Input)
		s.done(index, v)
	case *item.Reasoning:
		s.reasoning(v, id, index)
	default:
		s.event(item.EventItemAdded, "output_index", index, "item", item.JSON(it.JSON()))
		s.event(item.EventItemDone, "output_index", index, "item", item.JSON(it.JSON()))
		s.output = append(s.output, it.JSON())
	}
}

var idPrefix = map[item.Type]string{
	item.TypeMessage:        "msg",
	item.TypeFunctionCall:   "fc",
	item.TypeCustomToolCall: "ctc",
	item.TypeReasoning:      "rs",
}

func (s *script) added(index int, v item.Value) {
	s.event(item.EventItemAdded, "output_index", index, "item", item.JSON(item.Must(v).JSON()))
}

func (s *script) done(index int, v item.Value) {
	it := item.Must(v)
	s.event(item.EventItemDone, "output_index", index, "item", item.JSON(it.JSON()))
	s.output = append(s.output, it.JSON())
}

// message writes a message, an easy one as the output message that it means.
func (s *script) message(m *item.Message, id string, index int) {
	m.ID, m.Status, m.Role = id, cmp.Or(m.Status, item.StatusCompleted), cmp.Or(m.Role, item.RoleAssistant)
	if m.Content.IsText() {
		m.Content = item.Parts(&item.OutputText{Text: m.Content.Text, Annotations: "[]", Logprobs: "[]"})
	}
	empty := *m
	empty.Status, empty.Content = item.StatusInProgress, item.Parts()
	s.added(index, &empty)
	for i, p := range m.Content.Parts {
		at := []any{"item_id", id, "output_index", index, "content_index", i}
		switch p := p.(type) {
		case *item.OutputText:
			s.event(item.EventPartAdded, append(at, "part", item.JSON(`{"type":"output_text","annotations":[],"logprobs":[],"text":""}`))...)
			s.deltas(item.EventTextDelta, p.Text, append(at, "logprobs", item.JSON("[]"))...)
			s.event(item.EventTextDone, append(at, "text", p.Text, "logprobs", item.JSON("[]"))...)
		case *item.Refusal:
			s.event(item.EventPartAdded, append(at, "part", item.JSON(`{"type":"refusal","refusal":""}`))...)
			s.deltas(item.EventRefusalDelta, p.Refusal, at...)
			s.event(item.EventRefusalDone, append(at, "refusal", p.Refusal)...)
		default:
			s.event(item.EventPartAdded, append(at, "part", partJSON(p))...)
		}
		s.event(item.EventPartDone, append(at, "part", partJSON(p))...)
	}
	s.done(index, m)
}

func (s *script) reasoning(v *item.Reasoning, id string, index int) {
	v.ID = id
	empty := *v
	empty.Summary, empty.Content, empty.EncryptedContent = []item.Part{}, nil, ""
	s.added(index, &empty)
	for i, p := range v.Summary {
		at := []any{"item_id", id, "output_index", index, "summary_index", i}
		s.event(item.EventSummaryPartAdded, append(at, "part", item.JSON(`{"type":"summary_text","text":""}`))...)
		if p, ok := p.(*item.SummaryText); ok {
			s.deltas(item.EventSummaryTextDelta, p.Text, at...)
			s.event(item.EventSummaryTextDone, append(at, "text", p.Text)...)
		}
		s.event(item.EventSummaryPartDone, append(at, "part", partJSON(p))...)
	}
	s.done(index, v)
}

// deltas writes a text in pieces, which end after white space, as tokens
// mostly do. An empty text has none.
func (s *script) deltas(t item.EventType, text string, members ...any) {
	s.spoken += len(text)
	for text != "" {
		n := len(text)
		if i := strings.IndexAny(text, " \n,"); i >= 0 {
			n = i + 1
		}
		s.event(t, append(members[:len(members):len(members)], "delta", text[:n])...)
		text = text[n:]
	}
}

func partJSON(p item.Part) item.JSON {
	list, err := item.Parts(p).JSON()
	if err != nil {
		panic(err) // a part that a test built wrongly
	}
	return item.JSON(strings.TrimSuffix(strings.TrimPrefix(string(list), "["), "]"))
}

// object writes names and values as a JSON object. A string is quoted, an
// item.JSON is taken as it is.
func object(members ...any) string {
	var b strings.Builder
	for i := 0; i < len(members); i += 2 {
		b.WriteByte("{,"[min(i, 1)])
		b.WriteString(string(item.Quote(members[i].(string))))
		b.WriteByte(':')
		switch v := members[i+1].(type) {
		case nil:
			b.WriteString("null")
		case string:
			b.WriteString(string(item.Quote(v)))
		default:
			fmt.Fprint(&b, v)
		}
	}
	b.WriteByte('}')
	return b.String()
}
