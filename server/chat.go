// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/completions"
	"github.com/antiphon-go/antiphon/internal/jsonx"
	"github.com/antiphon-go/antiphon/item"
)

// chat serves POST /chat/completions: the same backend in another format. Nothing is
// stored.
func (s *Server) chat(c *call) *Error {
	body, wrong := s.body(c)
	if wrong != nil {
		return wrong
	}
	if wrong := checkMembersOfChat(body); wrong != nil {
		return wrong
	}
	r, wrong := s.readChat(c.r.Context(), body)
	if wrong != nil {
		return wrong.ofMessages()
	}
	j, wrong := s.newJob(r)
	if wrong != nil {
		return wrong
	}
	j.keep, r.Stored = false, false
	defer func() { s.forget(r, j.id) }()
	j.w.admit = func(wish string) (string, error) {
		j.id = cmp.Or(wish, j.w.response.ID)
		return "chatcmpl-" + name(j.id), nil
	}
	if isSet(r.Stream) {
		return s.streamChat(c, j, wantsUsage(body))
	}
	if wrong = s.run(c.r.Context(), j); wrong != nil || !j.w.Ended() {
		return wrong.ofMessages()
	}
	return s.wholeChat(c, j)
}

// onlyChat are the members of Chat Completions that the Responses API does not have, and that
// a backend may honour: see [ChatChecker].
var onlyChat = []string{"stop", "seed", "logit_bias", "frequency_penalty", "presence_penalty", "modalities", "audio", "prediction"}

// onlyResponses are the members of requests for responses that Chat Completions does not have.
var onlyResponses = []string{
	"input", "instructions", "previous_response_id", "conversation", "include", "background", "max_output_tokens", "max_tool_calls", "text",
	"truncation", "prompt", "context_management", "type", "generate",
}

// checkMembersOfChat refuses members that would be read as those of a request for a response, or have no effect.
func checkMembersOfChat(body []byte) *Error {
	object, err := item.Parse(body)
	if err != nil {
		return nil // told when it is read
	}
	for _, name := range onlyResponses {
		if v, ok := object.Member(name); ok && v != "null" {
			return Invalid("unknown_parameter", name, "Unknown parameter: '%s'. Chat Completions does not have it: leave it out, or ask /v1/responses.", name)
		}
	}
	return checkHalves(object)
}

// readChat converts a Chat Completions request to a request for a response.
func (s *Server) readChat(ctx context.Context, body []byte) (*Request, *Error) {
	if wrong := checkMessages(body); wrong != nil {
		return nil, wrong
	}
	req, losses, err := completions.ParseRequest(body)
	switch {
	case errors.Is(err, completions.ErrNothing):
		return nil, Invalid("invalid_value", "messages", "Invalid 'messages': none of them says anything.")
	case err != nil:
		return nil, unreadable(err)
	}
	sent, err := item.Parse(body)
	if err != nil {
		return nil, unreadable(err)
	}
	if wrong := whoSpeaks(sent); wrong != nil {
		return nil, wrong
	}
	var only item.Extra
	for _, l := range losses {
		switch v, member := sent.Member(l.Path); {
		case l.Kind == completions.LostMember && slices.Contains(onlyChat, l.Path):
			if n, err := strconv.ParseFloat(string(v), 64); err != nil || n != 0 || l.Path == "seed" { // a penalty of 0 is none
				only = append(only, item.Member{Name: l.Path, Value: v})
			}
		case l.Kind == completions.LostContent, l.Kind == completions.LostMember && member:
			about := " "
			if !strings.HasPrefix(l.What, "has ") { // a sentence of its own
				about = ": "
			}
			return nil, Invalid("unsupported_value", l.Path, "Unsupported value: '%s'%s%s.", l.Path, about, l.What)
		}
	}
	limit, wrong := chatLimit(req)
	if wrong != nil {
		return nil, wrong
	}
	b, err := req.AppendJSON(nil)
	if err != nil {
		return nil, s.failure(err)
	}
	object, err := item.Parse(b)
	if err != nil {
		return nil, s.failure(err)
	}
	r, wrong := s.check(ctx, req, object, nil)
	if wrong != nil {
		return nil, wrong
	}
	r.MaxOutputTokens, r.Chat = limit, only
	if wrong = s.checkChat(r); wrong != nil {
		s.release(r)
		return nil, wrong
	}
	return r, nil
}

// checkMessages returns an error if there are no messages, or one has no content that must have some: it would be
// left out. What else is wrong is found when they are read.
func checkMessages(body []byte) (wrong *Error) {
	object, err := item.Parse(body)
	if err != nil {
		return nil
	}
	messages, _ := object.Member("messages")
	if messages == "" || messages == "null" || messages == "[]" {
		return Invalid("missing_required_parameter", "messages", "Missing required parameter: 'messages' with at least one message.")
	}
	n := 0
	jsonx.EachElement(string(messages), func(m string) {
		role, _ := jsonx.MemberOf(m, "role")
		if content, ok := jsonx.MemberOf(m, "content"); wrong == nil && (!ok || content == "null") && (role == `"user"` || role == `"system"` || role == `"developer"`) {
			at := fmt.Sprintf("messages[%d].content", n)
			wrong = Invalid("missing_required_parameter", at, "Missing required parameter: '%s'.", at)
		}
		n++
	})
	return wrong
}

// whoSpeaks refuses a message with the name of who speaks: items have no place for it, and the model would take several
// people for one. The name in an output is that of a function.
func whoSpeaks(request item.Item) *Error {
	list, _ := request.Member("messages")
	var messages []struct {
		Role string         `json:"role"`
		Name jsontext.Value `json:"name"`
	}
	if err := json.Unmarshal([]byte(list), &messages, jsontext.AllowDuplicateNames(true)); err != nil {
		return nil // the messages were read before
	}
	for i, m := range messages {
		if name := string(m.Name); m.Role == "tool" || m.Role == "function" || name == "" || name == "null" || name == `""` {
			continue
		}
		where := fmt.Sprintf("messages[%d].name", i)
		return Invalid("unsupported_parameter", where, "Unsupported parameter: '%s' is not supported: say in the text who speaks.", where)
	}
	return nil
}

// chatLimit takes the limit of output tokens out of a request: Chat Completions has no minimum,
// and some clients send -1 for no limit.
func chatLimit(req *api.Request) (limit *int64, _ *Error) {
	for _, name := range []string{"max_completion_tokens", "max_tokens"} {
		if v, ok := req.Extra.Get(name); ok && v != "null" {
			return nil, Invalid("invalid_type", name, "Invalid type for '%s': expected an integer.", name)
		}
	}
	limit = req.MaxOutputTokens
	if limit != nil && *limit == -1 {
		limit = nil
	}
	if limit != nil && *limit < 1 {
		return nil, Invalid("integer_below_min_value", "max_completion_tokens",
			"Invalid 'max_completion_tokens': integer below minimum value. Expected a value >= 1, but got %d instead.", *limit)
	}
	req.MaxOutputTokens = nil
	return limit, nil
}

// checkChat refuses members of Chat Completions that the backend does not honour.
func (s *Server) checkChat(r *Request) *Error {
	if len(r.Chat) == 0 {
		return nil
	}
	if k, ok := s.Backend.(ChatChecker); ok {
		if err := k.CheckChat(r); err != nil {
			return s.failure(err)
		}
		return nil
	}
	name := r.Chat[0].Name
	return Invalid("unsupported_parameter", name, "Unsupported parameter: '%s' is not supported with this model.", name)
}

// chatNames are the names of members in Chat Completions, by those in the Responses API. None begins another one.
var chatNames = map[string]string{
	"max_output_tokens": "max_completion_tokens", "reasoning.effort": "reasoning_effort", "text.verbosity": "verbosity",
	"text.format.type": "response_format.type", "text.format.name": "response_format.json_schema.name", "text.format.schema": "response_format.json_schema.schema",
}

// ofMessages rewords the error for a client that sent messages and not items. It returns nil for nil.
func (e *Error) ofMessages() *Error {
	switch {
	case e == nil:
		return nil
	case strings.HasPrefix(e.Param, "input"):
		e.Param = "messages"
	default:
		for name, chat := range chatNames {
			if rest, ok := strings.CutPrefix(e.Param, name); ok {
				e.Param, e.Message = chat+rest, strings.ReplaceAll(e.Message, name, chat)
				break
			}
		}
	}
	if strings.Contains(e.Message, "'input[") {
		e.Message += " (The input consists of the items made from the messages.)"
	}
	return e
}

// wantsUsage reports whether a stream should end with its usage.
func wantsUsage(body []byte) bool {
	request, err := item.Parse(body)
	if err != nil {
		return false
	}
	v, _ := request.Member("stream_options")
	options, err := item.ParseString(string(v))
	if err != nil {
		return false
	}
	want, _ := options.Member("include_usage")
	return want == "true"
}

// wholeChat sends a completion in one piece.
func (s *Server) wholeChat(c *call, j *job) *Error {
	r := j.w.Response()
	if r.Status == item.StatusFailed {
		return &Error{Status: http.StatusInternalServerError, Type: serverError, Code: r.Error.Code, Message: r.Error.Message}
	}
	c.name(j)
	plain := api.Response{ID: r.ID, Model: r.Model, CreatedAt: r.CreatedAt, Status: r.Status, Incomplete: r.Incomplete, Usage: r.Usage}
	for _, it := range r.Output {
		if text := unapproved(it); text != "" {
			it = item.Must(&item.Message{Role: item.RoleAssistant, Content: item.Content{Parts: []item.Part{&item.Refusal{Refusal: text}}}})
		}
		plain.Output = append(plain.Output, it)
	}
	b, _, err := completions.AppendResponse(nil, &plain, completions.Options{})
	if err != nil {
		return s.failure(err)
	}
	c.sendJSON(b)
	return nil
}

// unapproved returns what a client of Chat Completions is told of a request for approval, or ""
// for another item: that API has neither the request nor an answer to it, so the call waits for
// nobody.
func unapproved(it item.Item) string {
	if it.Type() != item.TypeMCPApprovalRequest {
		return ""
	}
	return fmt.Sprintf("The call of %s was not made: it needs an approval, which Chat Completions does not have. Use the Responses API.", it.Name())
}

// streamChat sends a completion in chunks.
func (s *Server) streamChat(c *call, j *job, usage bool) *Error {
	var encoder completions.Encoder
	w := s.stream(c.w)
	defer w.end()
	w.await(c.eventStream)
	j.flush = w.flush
	j.to = func(ev api.Event) error {
		w.start(func() { c.streams(j) })
		if ev.Type == api.EventItemDone {
			if v, err := ev.Decode(); err == nil {
				if done, ok := v.(*api.ItemDoneEvent); ok && unapproved(done.Item) != "" {
					said := &api.RefusalDeltaEvent{Delta: unapproved(done.Item)}
					said.OutputIndex = done.OutputIndex
					if ev, err = api.NewEvent(said); err != nil {
						return err
					}
				}
			}
		}
		return encoder.Encode(ev, func(chunk []byte) error {
			if object, err := item.Parse(chunk); err == nil && !usage {
				if choices, _ := object.Member("choices"); choices == "[]" {
					return nil // the chunk with the usage
				}
			}
			return w.event("", string(chunk))
		})
	}
	wrong := s.run(c.r.Context(), j)
	if wrong == nil && j.w.err == nil {
		_ = w.event("", completions.Done) // a client that is gone is not an error
	}
	return w.refuse(wrong.ofMessages(), "", func(e *Error) string { return `{"error": ` + e.line() + "}" })
}
