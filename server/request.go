// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/item"
)

// read parses and checks a body. model is the default for a missing model.
func (s *Server) read(ctx context.Context, body []byte, model string) (*Request, *Error) {
	req, err := api.ParseRequest(body)
	if err != nil {
		return nil, unreadable(err)
	}
	object, err := item.Parse(body)
	if err != nil {
		return nil, unreadable(err)
	}
	named := req.Model
	req.Model = cmp.Or(named, model)
	r, wrong := s.check(ctx, req, object, nil)
	req.Model = named
	return r, wrong
}

// check checks a request as strictly as the real endpoint, and finds the history
// that it continues. last is the response that a WebSocket remembers, or nil. The
// caller must release a request that was returned without an error.
func (s *Server) check(ctx context.Context, req *api.Request, object item.Item, last *remembered) (*Request, *Error) {
	if req.Conversation == "null" { // some clients send null for what they leave out
		own := *req
		own.Conversation = ""
		req = &own
	}
	r := &Request{Request: req, Object: object}
	input := req.InputItems()
	for _, wrong := range []*Error{checkHalves(object), checkMembers(req), checkLimits(req), checkTools(req), checkShapes(req, object), checkItems(input)} {
		if wrong != nil {
			return nil, wrong
		}
	}
	wrong := mayName(ctx, input, "input")
	var history []item.Item
	if wrong == nil {
		history, wrong = s.remember(ctx, r, last)
	}
	if wrong == nil {
		wrong = s.dereference(ctx, r.conversation, input)
	}
	if wrong == nil {
		input, wrong = s.unpacked(ctx, input)
	}
	if wrong == nil && req.PreviousResponseID == "" && req.Conversation == "" {
		history, input, wrong = s.recall(ctx, r, input)
	}
	r.outlive = func(context.Context) error { return nil }
	if wrong == nil && slices.ContainsFunc(input, mayNameFile) {
		held, drop := context.WithCancel(context.WithoutCancel(ctx))
		stop := context.AfterFunc(ctx, drop)
		var bytes int64
		input, bytes, wrong = s.withFiles(held, input, "input")
		r.outlive = func(ctx context.Context) error {
			if stop() {
				context.AfterFunc(ctx, drop)
				return nil
			}
			return Hold(ctx, bytes) // the client is gone already
		}
	}
	if wrong == nil {
		wrong = mayAnswer(ctx, input, "input")
	}
	if s.keeper() != nil {
		history = unanswered(history, input)
	}
	r.Items, r.Own, r.Stored = append(slices.Clip(history), input...), len(input), s.keeps(req)
	kept := s.keeper() != nil && (req.PreviousResponseID != "" || req.Conversation != "") // the backend has the history
	if wrong == nil && (len(r.Items) == 0 && !kept || saysNothing(req)) {
		wrong = Invalid("missing_required_parameter", "input", "Missing required parameter: 'input' with at least one item.")
		if slices.ContainsFunc(req.Extra, func(m item.Member) bool { return m.Name == "messages" }) {
			wrong.Message += " 'messages' belongs to Chat Completions: send 'input', or ask /v1/chat/completions."
		}
	}
	if wrong == nil {
		wrong = checkPairs(r.Items, len(history))
	}
	if s.keeper() != nil { // the history was only the calls that wait
		r.Items = input
	}
	if wrong != nil {
		s.release(r)
		return nil, wrong
	}
	return r, nil
}

// saysNothing reports whether a request begins with a text that is empty.
func saysNothing(req *api.Request) bool {
	text, _ := req.Extra.Get("input")
	return text == `""` && req.PreviousResponseID == "" && req.Conversation == ""
}

// recall finds the stored response that the input repeats the history of. It returns that history, of which
// a keeper has all but the calls that wait for their outputs, and the rest of the input.
func (s *Server) recall(ctx context.Context, r *Request, input []item.Item) (history, rest []item.Item, _ *Error) {
	k, ok := s.keeper().(Recaller)
	if s.keeper() == nil {
		k, ok = s.store().(Recaller)
	}
	if !ok || !s.has(Stored) {
		return nil, input, nil
	}
	id, n, err := k.Recall(ctx, r.Model, input)
	switch {
	case err != nil && s.keeper() != nil:
		return nil, nil, s.failure(err)
	case err != nil: // the input is whole but for what the client left out
		s.logf("antiphon server: whether a client left something out of a history cannot be known: %v", err)
		return nil, input, nil
	case id == "":
		return nil, input, nil
	}
	named := *r.Request
	named.PreviousResponseID = id
	r.Request = &named
	if history, wrong := s.remember(ctx, r, nil); wrong == nil {
		return history, input[n:], nil
	}
	named.PreviousResponseID = "" // it cannot be continued: the input is all there is
	return nil, input, nil
}

// remember finds the history that a request continues. If the backend keeps the history,
// it is only the calls that wait for their outputs.
func (s *Server) remember(ctx context.Context, r *Request, last *remembered) ([]item.Item, *Error) {
	id := r.PreviousResponseID
	switch {
	case id != "" && r.Conversation != "":
		return nil, Invalid("mutually_exclusive_parameters", "",
			"Mutually exclusive parameters. Ensure you are only providing one of: 'previous_response_id' or 'conversation'.")
	case r.Conversation != "":
		return s.converse(ctx, r)
	case id == "":
		return nil, nil
	case last != nil && last.id == id:
		if k := s.keeper(); k != nil {
			return s.waiting(ctx, k, id)
		}
		return last.items, nil
	}
	rec, j, err := s.lookUp(ctx, id, item.StatusFailed)
	k := s.keeper()
	switch {
	case !s.has(Stored) || errors.Is(err, ErrNotFound):
		return nil, Invalid("previous_response_not_found", "previous_response_id", "Previous response with id '%s' not found.", id)
	case err != nil:
		return nil, s.failure(err)
	case k != nil && !ended(rec.Response), k == nil && !continues(rec.Response), k == nil && j != nil && !joins(rec.Response):
		return nil, Invalid("", "previous_response_id",
			"Previous response with id '%s' is %s: only a response that has ended and has output can be continued.", id, rec.Response.Status)
	case k != nil:
		return s.waiting(ctx, k, id)
	}
	items, err := s.store().Items(ctx, id)
	if err != nil {
		return nil, s.failure(err)
	}
	r.previous = id
	return append(slices.Clip(items), lasting(rec.Response)...), nil
}

// continues reports whether a request can continue a response that the backend does not keep: one
// that failed or was cancelled only if there is something to go on from.
func continues(r *api.Response) bool {
	return joins(r) || ended(r) && len(r.Output) > 0
}

// joins reports whether a response that has ended becomes a part of its conversation. The client
// of one that failed may ask the same again.
func joins(r *api.Response) bool {
	return r.Status == item.StatusCompleted || r.Status == item.StatusIncomplete
}

// lasting returns the output of a response that becomes history. That of one that is not completed does
// not have the calls that broke off at its end, which nobody can answer, nor the reasoning that led to them.
func lasting(r *api.Response) []item.Item {
	output := r.Output
	if r.Status == item.StatusCompleted {
		return output
	}
	for n := len(output); n > 0; n-- {
		last := output[n-1]
		if last.Type() != item.TypeReasoning && !(last.IsCall() && last.Status() == item.StatusIncomplete) {
			return output[:n:n]
		}
	}
	return nil
}

// unanswered returns the waiting calls that a request must answer: those that it does
// not repeat, and requests for approval only if it answers them, because somebody else may.
func unanswered(waiting, input []item.Item) []item.Item {
	return slices.DeleteFunc(waiting, func(call item.Item) bool {
		named := func(is func(item.Item) bool) bool {
			return slices.ContainsFunc(input, func(it item.Item) bool { return is(it) && it.CallID() == call.CallID() })
		}
		return named(item.Item.IsCall) || call.Type() == item.TypeMCPApprovalRequest && !named(item.Item.IsOutput)
	})
}

// waiting returns the calls of a response or a conversation that wait for their outputs.
func (s *Server) waiting(ctx context.Context, k Keeper, id string) ([]item.Item, *Error) {
	calls, err := k.Waiting(ctx, id)
	if err != nil {
		return nil, s.failure(err)
	}
	return calls, nil
}

// dereference replaces item references in the input by their items. Their URLs count as given
// by the caller: another key may have stored them. conversation is that of the request, or "".
func (s *Server) dereference(ctx context.Context, conversation string, input []item.Item) *Error {
	known := new(hosts)
	for i, it := range input {
		if it.Type() != item.TypeItemReference {
			continue
		}
		found, err := s.item(ctx, it.ID())
		if errors.Is(err, ErrNotFound) && conversation != "" { // a store may know only what responses have said
			items, wrong := s.itemsOf(ctx, conversation)
			if wrong != nil {
				return wrong
			}
			if n := indexOf(items, it.ID()); n >= 0 {
				found, err = items[n], nil
			}
		}
		switch {
		case errors.Is(err, ErrNotFound):
			return Invalid("", fmt.Sprintf("input[%d].id", i), "Item with id '%s' not found.", it.ID())
		case err != nil:
			return s.failure(err)
		}
		if wrong := checkURLs(ctx, known, fmt.Sprintf("input[%d]", i), found.JSON()); wrong != nil {
			return wrong
		}
		input[i] = found
	}
	return nil
}

// ownItem finds an item by its id. The id may have been generated for the list of a
// response's input, or of a conversation's items.
func (s *Server) ownItem(ctx context.Context, id string) (item.Item, error) {
	it, err := s.store().Item(ctx, id)
	if !errors.Is(err, ErrNotFound) {
		return it, err
	}
	_, rest, _ := strings.Cut(id, "_")
	end := strings.LastIndexByte(rest, '_')
	if end < 0 {
		return it, err
	}
	n, notNumber := strconv.Atoi(rest[end+1:])
	if notNumber != nil || n < 0 {
		return it, err
	}
	for _, prefix := range []string{"resp_", "conv_"} {
		of := prefix + rest[:end]
		items, missing := s.store().Items(ctx, of)
		switch {
		case errors.Is(missing, ErrNotFound) || missing == nil && n >= len(items):
		case missing != nil:
			return it, missing
		case listedAs(items[n], of, n).ID() == id:
			return items[n], nil
		}
	}
	return it, err
}
