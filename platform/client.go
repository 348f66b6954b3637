// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package platform

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/antiphon-go/antiphon/dialect"
	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/internal/jsonx"
	"github.com/antiphon-go/antiphon/internal/record"
	"github.com/antiphon-go/antiphon/internal/transport"
	"github.com/antiphon-go/antiphon/item"
)

// Client is a client of one endpoint. Its fields are those of [dialect.Config], which documents
// them. The zero value uses api.openai.com, without a key. A Client is safe for concurrent use
// while its fields do not change, and must not be copied after its first use.
//
// Errors are or wrap an [*endpoint.Error]; a request that was not sent because it cannot be right
// gives an [*endpoint.RefusedError]. If the endpoint does not have a part of the API, the error
// wraps [errors.ErrUnsupported].
//
// A request that reads, computes or deletes is repeated within [dialect.Config.Retry]. A request
// that creates something is repeated only if the server reported that it did not start, or if the
// endpoint's profile has a header by which it recognizes a repetition
// ([endpoint.Profile.IdempotencyHeader]): otherwise it might be created twice.
type Client dialect.Config

func (c *Client) link() *transport.Config { return (*dialect.Config)(c).Transport() }

// errNil reports a nil client or request.
var errNil = errors.New("platform: the *Client or the request is nil")

// codec reads and writes the members of a JSON object; see [record.Codec].
type codec = record.Codec

// fielder is a struct with one method that names its members for both directions.
type fielder interface{ fields(*codec) }

// pointer is a pointer to a fielder.
type pointer[T any] interface {
	*T
	fielder
}

// encode returns v as JSON.
func encode[T any, P pointer[T]](v P) ([]byte, error) {
	if v == nil {
		return nil, errNil
	}
	b, err := record.Append(nil, v.fields)
	return b, shaped(err)
}

// parse reads a struct. It may keep the memory of data, which must not change.
func parse[T any, P pointer[T]](data []byte) (P, error) {
	v := P(new(T))
	if err := record.Parse(jsonx.String(data), v.fields); err != nil {
		return nil, shaped(err)
	}
	return v, nil
}

// decode reads a struct from a copy of data into v.
func decode[T any, P pointer[T]](data []byte, v P) error {
	if v == nil {
		return errNil
	}
	got, err := parse[T, P](append([]byte(nil), data...))
	if err == nil {
		*v = *got
	}
	return err
}

// shaped returns an error of package record as callers know it.
func shaped(err error) error {
	if e, ok := err.(*jsonx.SyntaxError); ok {
		return (*item.SyntaxError)(e)
	}
	e, ok := err.(*record.Error)
	if !ok {
		return err
	}
	shape := &item.ShapeError{Path: e.Path, Problem: e.Problem}
	if e.Err != nil {
		shape.Problem = e.Err.Error()
	}
	return shape
}

// optInt is an integer, left out if 0. A 0 that was read is kept as another member.
func optInt(c *codec, name string, v *int64) {
	if !c.Decoding {
		if *v != 0 {
			c.OptInt(name, &v)
		}
		return
	}
	if m := c.Find(name); m != nil {
		if n, ok := jsonx.Integer(m.Value); ok && n != 0 {
			*v, m.Taken = n, true
		}
	}
}

// optTrue is a boolean, left out if false. A false that was read is kept as another member.
func optTrue(c *codec, name string, v *bool) {
	if !c.Decoding {
		if *v {
			c.OptBool(name, &v)
		}
		return
	}
	if m := c.Find(name); m != nil && m.Value == "true" {
		*v, m.Taken = true, true
	}
}

// place is a path of the API and what it is for, for errors.
type place struct{ op, path, instead string }

func (p place) ask(method string, ids ...string) *transport.Ask {
	a := &transport.Ask{Op: p.op, Method: method, Path: p.path, IDs: ids, Part: transport.Part{Instead: p.instead}}
	if strings.HasPrefix(p.path, pathStores) {
		a.Header = beta
	}
	return a
}

// beta is what OpenAI's own clients send for vector stores.
var beta = map[string]string{"OpenAI-Beta": "assistants=v2"}

// post returns a POST with v as its body.
func post[T any, P pointer[T]](p place, v P, repeat transport.Repeat, ids ...string) (*transport.Ask, error) {
	body, err := encode[T, P](v)
	if err != nil {
		return nil, err
	}
	a := p.ask(http.MethodPost, ids...)
	a.Body, a.Repeat = item.TextBody(jsonx.String(body)), repeat
	return a, nil
}

// object sends a request whose answer is an object; member is one that it must have.
func object[T any, P pointer[T]](ctx context.Context, c *Client, a *transport.Ask, what, member string) (P, error) {
	if c == nil {
		return nil, errNil
	}
	return transport.Do(ctx, c.link(), a, func(x *transport.Exchange) (P, error) {
		text, err := x.ReadAll()
		if err != nil {
			return nil, err
		}
		v, err := parse[T, P](text)
		if err != nil {
			return nil, x.IsNot(what, text, err)
		}
		if _, present := jsonx.MemberOf(jsonx.String(text), member); !present {
			return nil, x.IsNot(what, text, nil)
		}
		return v, nil
	})
}

// send is post and object in one.
func send[T, Q any, P pointer[T], R pointer[Q]](ctx context.Context, c *Client, p place, v R, repeat transport.Repeat, what, member string, ids ...string) (P, error) {
	a, err := post[Q, R](p, v, repeat, ids...)
	if err != nil {
		return nil, err
	}
	return object[T, P](ctx, c, a, what, member)
}

func (c *Client) delete(ctx context.Context, a *transport.Ask) error {
	if c == nil {
		return errNil
	}
	return c.link().Delete(ctx, a)
}

// ListOptions select the elements of a list and control how they are fetched. The zero value lists
// everything.
type ListOptions struct {
	// After is the id of the element before the first one listed.
	After string
	// Limit is the number of elements per page; 0 means the endpoint's default. It does not limit
	// the list.
	Limit int
	// Order is "asc", the oldest first, or "desc". Empty means the endpoint's default.
	Order string
	// Purpose selects files, see [Upload.Purpose], and is for [Client.Files]. Status selects files
	// of a vector store or a batch, see [StoreFile.Status]. For another list they are an error.
	Purpose, Status string
}

// query returns the options as the query of the list at a path.
func (o *ListOptions) query(path string) (url.Values, error) {
	q := url.Values{}
	switch {
	case o == nil:
		return q, nil
	case o.Limit < 0:
		return nil, refused("limit", fmt.Sprintf("it is %d", o.Limit), "give the number of elements per page, or 0")
	case o.Purpose != "" && path != pathFiles:
		return nil, refused("purpose", "it does not select elements of this list", "leave it out")
	case o.Status != "" && !strings.HasPrefix(path, pathStore):
		return nil, refused("filter", "the status does not select elements of this list", "leave Status out, and compare that of each element")
	}
	for name, value := range map[string]string{"after": o.After, "order": o.Order, "purpose": o.Purpose, "filter": o.Status} {
		if value != "" {
			q.Set(name, value)
		}
	}
	if o.Limit != 0 {
		q.Set("limit", strconv.Itoa(o.Limit))
	}
	return q, nil
}

// list yields the elements of all pages.
func list[T any, P pointer[T]](ctx context.Context, c *Client, a *transport.Ask, options *ListOptions, id func(P) string) iter.Seq2[P, error] {
	if c == nil {
		return func(yield func(P, error) bool) { yield(nil, errNil) }
	}
	query, err := options.query(a.Path)
	if err != nil {
		return func(yield func(P, error) bool) { yield(nil, err) }
	}
	a.Query = query
	return transport.List(ctx, c.link(), *a, id, readPage[T, P])
}

// readPage reads one page of a list. An endpoint may write null for an empty one.
func readPage[T any, P pointer[T]](x *transport.Exchange) (none transport.Page[P], err error) {
	text, err := x.ReadAll()
	if err != nil {
		return none, err
	}
	var (
		data []T
		last string
		more bool
		rest item.Extra
	)
	err = shaped(record.Parse(jsonx.String(text), func(c *codec) {
		record.Keep(c, &rest)
		c.OrEmpty("data", "[]", false)
		record.List(c, "data", &data, func(v *T, c *codec) { P(v).fields(c) })
		c.OptString("last_id", &last)
		c.Flag("has_more", &more)
	}))
	if other, absent := rest.Get("data"); err != nil || absent && other != "null" {
		return none, x.IsNot("list", text, err)
	}
	page := transport.Page[P]{LastID: last, More: more}
	for i := range data {
		page.Data = append(page.Data, &data[i])
	}
	return page, nil
}

// refused returns the error for a request that is not sent.
func refused(param, problem, hint string) error {
	return &endpoint.RefusedError{Param: param, Problem: problem, Hint: hint}
}
