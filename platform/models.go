// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package platform

import (
	"context"
	"iter"
	"net/http"

	"github.com/antiphon-go/antiphon/internal/record"
	"github.com/antiphon-go/antiphon/item"
)

// Model is a model of the endpoint. Schema: Model.
type Model struct {
	ID      string
	Created int64 // Unix time in seconds
	OwnedBy string
	Extra   item.Extra
}

func (v *Model) fields(c *codec) {
	record.Keep(c, &v.Extra)
	c.Text("id", &v.ID)
	c.Member("object", "model")
	c.Number("created", &v.Created)
	c.Text("owned_by", &v.OwnedBy)
}

// MarshalJSON returns the model as JSON.
func (v *Model) MarshalJSON() ([]byte, error) { return encode(v) }

// UnmarshalJSON reads the model from a copy of data.
func (v *Model) UnmarshalJSON(data []byte) error { return decode(data, v) }

var modelPlace = place{"retrieve model", "/models/{model}", "ask without a list of models"}

// Models yields the models of the endpoint that the key may use.
func (c *Client) Models(ctx context.Context) iter.Seq2[*Model, error] {
	p := place{"list models", "/models", modelPlace.instead}
	return list(ctx, c, p.ask(http.MethodGet), nil, func(v *Model) string { return v.ID })
}

// RetrieveModel returns one model.
func (c *Client) RetrieveModel(ctx context.Context, id string) (*Model, error) {
	return object[Model](ctx, c, modelPlace.ask(http.MethodGet, id), "model", "id")
}

// DeleteModel deletes a model that was trained for the caller. If the model does not exist, the
// error has the class [endpoint.NotFound], unless an earlier attempt of this call was lost: that
// attempt may have deleted it.
func (c *Client) DeleteModel(ctx context.Context, id string) error {
	p := place{"delete model", modelPlace.path, modelPlace.instead}
	return c.delete(ctx, p.ask(http.MethodDelete, id))
}
