// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/item"
)

// The routes in this file are served if the backend supports them.

// countTokens serves POST /responses/input_tokens, which does not require a model.
func (s *Server) countTokens(c *call) *Error {
	return s.about(c, "none", func(r *Request) (object, error) {
		counter := s.Backend.(TokenCounter)
		if spends, ok := counter.(CountSpender); !ok || !spends.CountSpends(r) {
			n, err := counter.CountTokens(c.r.Context(), r)
			return &api.TokenCount{InputTokens: n}, err
		}
		count := new(api.TokenCount)
		return count, s.spending(c.r.Context(), r, func(ctx context.Context, _ *Outcome) (err error) {
			count.InputTokens, err = counter.CountTokens(ctx, r)
			return err
		})
	})
}

// compact serves POST /responses/compact.
func (s *Server) compact(c *call) *Error {
	return s.about(c, "", func(r *Request) (made object, err error) {
		err = s.spending(c.r.Context(), r, func(ctx context.Context, o *Outcome) error {
			got, err := s.Backend.(Compactor).Compact(ctx, r)
			if err != nil {
				return err
			}
			got.ID, got.CreatedAt = cmp.Or(got.ID, s.newID("resp_")), cmp.Or(got.CreatedAt, int64(s.now()))
			if o.ID, o.Usage = got.ID, cmp.Or(o.Usage, got.Usage); got.Usage == nil {
				got.Usage = new(api.Usage)
			}
			got.Usage = new(wholeUsage(*got.Usage))
			made = got
			return nil
		})
		return made, err
	})
}

// spending admits a request that makes no response and may cost tokens, and counts what f tells
// by [Spend], also if f fails.
func (s *Server) spending(ctx context.Context, r *Request, f func(context.Context, *Outcome) error) error {
	done, wrong := s.letIn(ctx, r)
	if wrong != nil {
		return wrong
	}
	var o Outcome
	defer func() { done(o) }()
	err := f(context.WithValue(ctx, spentKey{}, &o), &o)
	if o.ID == "" && (o.Cost != 0 || o.Usage != nil) {
		o.ID = s.newID("resp_")
	}
	if o.ID != "" {
		o.Status = item.StatusCompleted
		if err != nil { // a model was asked all the same
			o.Status = item.StatusFailed
		}
	}
	return err
}

// about answers a request that does not make a response with the result of f. model
// is the default for a missing model.
func (s *Server) about(c *call, model string, f func(*Request) (object, error)) *Error {
	body, wrong := s.body(c)
	if wrong != nil {
		return wrong
	}
	r, wrong := s.read(c.r.Context(), body, model)
	if wrong != nil {
		return wrong
	}
	defer s.release(r)
	v, err := f(r)
	if err != nil {
		return s.failure(err)
	}
	return c.send(v)
}

// models serves GET /models.
func (s *Server) models(c *call) *Error {
	list, err := s.listModels(c.r.Context(), "")
	if err != nil {
		return s.failure(err)
	}
	objects := make([]string, len(list))
	for i, m := range list {
		objects[i] = m.object()
	}
	return c.send(encoded(`{"object":"list","data":[` + strings.Join(objects, ",") + `]}`))
}

// model serves GET /models/{id}.
func (s *Server) model(c *call) *Error {
	list, err := s.listModels(c.r.Context(), c.ids[0])
	switch {
	case err != nil:
		return s.failure(err)
	case len(list) == 0:
		return &Error{Status: http.StatusNotFound, Type: invalidRequest, Code: "model_not_found", Param: "model",
			Message: fmt.Sprintf("The model '%s' does not exist; GET /v1/models lists those that do.", c.ids[0])}
	}
	return c.send(encoded(list[0].object()))
}

func (m Model) object() string {
	text := fmt.Sprintf(`{"id":%s,"object":"model","created":%d,"owned_by":%s`, item.Quote(m.ID), m.Created, item.Quote(m.OwnedBy))
	if m.Description != "" {
		text += `,"description":` + string(item.Quote(m.Description))
	}
	return text + "}"
}
