// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/antiphon-go/antiphon/item"
)

// models serves GET /models.
func (s *Server) models(c *call) *Error {
	list, err := s.Backend.(ModelLister).Models(c.r.Context(), "")
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
	list, err := s.Backend.(ModelLister).Models(c.r.Context(), c.ids[0])
	switch {
	case err != nil:
		return s.failure(err)
	case len(list) == 0:
		return &Error{http.StatusNotFound, invalidRequest, "model_not_found", "model",
			fmt.Sprintf("The model '%s' does not exist; GET /v1/models lists those that do.", c.ids[0])}
	}
	return c.send(encoded(list[0].object()))
}

func (m Model) object() string {
	return fmt.Sprintf(`{"id":%s,"object":"model","created":%d,"owned_by":%s}`, item.Quote(m.ID), m.Created, item.Quote(m.OwnedBy))
}
