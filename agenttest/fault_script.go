// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agenttest

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/server"
)

// script is one response in the form of the API.
type script struct {
	*server.Writer
	stream bool
	warmUp bool // the request wants no output
	size   int  // of the request, in bytes
	spoken int  // bytes of output
	events []piece
}

func newScript(n int, r Request) *script {
	req, lane := readRequest(r)
	generate, _ := req.Extra.Get("generate")
	s := &script{
		stream: r.Socket > 0 || req.Stream != nil && *req.Stream,
		warmUp: generate == "false",
		size:   len(r.Body),
	}
	s.Writer = server.NewWriter(api.Response{
		ID: "resp_" + strconv.Itoa(n), PreviousResponseID: req.PreviousResponseID, Conversation: conversationOf(req), CreatedAt: new(1_700_000_000.0), Model: cmp.Or(req.Model, "test-model"),
		Instructions: "null", Metadata: "{}", ParallelToolCalls: new(true), Temperature: new(1.0), ToolChoice: `"auto"`, Tools: "[]", TopP: new(1.0),
		Extra: item.Extra{{Name: "error", Value: "null"}, {Name: "incomplete_details", Value: "null"}},
	}, func(ev api.Event) error {
		s.spoken += len(ev.Delta)
		s.events = append(s.events, piece{text: ev.JSON()})
		return nil
	})
	s.StreamID = lane
	return s
}

// conversationOf returns the conversation of a request, as the response names it.
func conversationOf(req *api.Request) *api.ConversationRef {
	id, ok := api.ConversationID(req.Conversation)
	if !ok {
		return nil
	}
	return &api.ConversationRef{ID: id}
}

// readRequest parses a request as far as possible.
func readRequest(r Request) (req *api.Request, lane string) {
	if r.Socket > 0 {
		if ev, err := api.ParseClientEvent(r.Body); err == nil {
			if create, ok := ev.(*api.CreateEvent); ok {
				return create.Request, create.StreamID
			}
		}
	}
	req, err := api.ParseRequest(r.Body)
	if err != nil {
		req = new(api.Request)
	}
	return req, ""
}

// count sets the usage, with four bytes per token.
func (s *script) count() {
	in, out := int64(s.size/4), int64(s.spoken/4)
	s.Usage(api.Usage{
		InputTokens: in, InputDetails: &api.InputTokensDetails{CacheWriteTokens: new(int64(0))},
		OutputTokens: out, OutputDetails: &api.OutputTokensDetails{}, TotalTokens: in + out,
	})
}

// body returns the output: the events or, without a stream, the response.
func (s *script) body() (string, []piece) {
	if s.stream || !s.Ended() {
		return typeStream, s.events
	}
	b, err := s.Response().AppendJSON(nil)
	if err != nil {
		panic(err) // a test built an invalid item
	}
	return typeJSON, []piece{{pieceRaw, string(b)}}
}

// object encodes names and values as a JSON object. A string is quoted; an item.JSON
// is inserted unchanged.
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
