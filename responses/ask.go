// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package responses

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/internal/transport"
	"github.com/antiphon-go/antiphon/item"
)

// ask is a request to one of the API's paths, except the one that creates responses.
type ask struct {
	op, method string
	// path has the form of the API's document, with ids written in {}.
	path   string
	ids    []string
	query  url.Values
	body   item.Body
	accept string
	part   part
	// once is set if repeating the request would do harm. It is then repeated only if the server
	// reported that it did not start.
	once bool
	// excuse, if set, receives the error of each attempt and may return nil to ignore it.
	excuse func(*endpoint.Error) error
}

// part is a part of the API that not every endpoint has.
type part struct {
	has     func(*endpoint.Profile) endpoint.Support
	instead string // what to do without this part
}

var (
	partStored        = part{func(p *endpoint.Profile) endpoint.Support { return p.Stored }, "keep what Create and Stream return"}
	partConversations = part{func(p *endpoint.Profile) endpoint.Support { return p.Conversations }, "send the history with each request"}
	partCompact       = part{func(p *endpoint.Profile) endpoint.Support { return p.Compact }, "have a model summarize the history"}
	partInputTokens   = part{func(p *endpoint.Profile) endpoint.Support { return p.InputTokens }, "read the usage of a response"}
	partBackground    = part{followable, "ask without background"}
)

func followable(p *endpoint.Profile) endpoint.Support {
	if p.Stored == endpoint.No {
		return endpoint.No
	}
	return p.Background
}

// prepare readies the request and encodes it once for all attempts. Its errors are local: nothing
// has been sent.
func (c *Client) prepare(ctx context.Context, a *ask) (*transport.Call, error) {
	path, err := a.address()
	if err != nil {
		return nil, err
	}
	link := c.link()
	profile, err := a.known(link)
	if err != nil {
		return nil, err
	}
	create := cmp.Or(profile.ResponsesPath, responsesPath)
	if rest, ok := strings.CutPrefix(path, responsesPath); ok {
		path = create + rest
	}
	if link.BaseURL, err = root(link, profile, create); err != nil {
		return nil, err
	}
	return link.Call(ctx, transport.Request{Op: a.op, Method: a.method, Path: path, Query: a.query, Body: a.body, Accept: a.accept})
}

// known returns the endpoint's profile, or an error if the endpoint does not have this part of the
// API.
func (a *ask) known(link *transport.Config) (*endpoint.Profile, error) {
	profile, err := link.Known()
	if err == nil && a.part.has(profile) == endpoint.No {
		err = a.absent(&endpoint.Error{Op: a.op}, profile)
	}
	return profile, err
}

// fit returns the request in the form that the endpoint accepts.
func (c *Client) fit(a *ask, req *api.Request) (*api.Request, error) {
	if c == nil || req == nil {
		return nil, errNilCall
	}
	link := c.link()
	profile, err := a.known(link)
	if err != nil {
		return nil, err
	}
	return link.Fit(req, profile)
}

// address returns the path with the ids filled in. An id cannot reach beyond its segment.
func (a *ask) address() (string, error) {
	path := a.path
	for _, id := range a.ids {
		before, rest, _ := strings.Cut(path, "{")
		name, after, _ := strings.Cut(rest, "}")
		problem := ""
		switch {
		case strings.TrimSpace(id) == "":
			problem = name + " is empty"
		case id == "." || id == "..":
			problem = strconv.Quote(id) + " is not a valid " + name
		}
		if problem != "" {
			return "", &endpoint.Error{Op: a.op, Class: endpoint.BadRequest, Param: name, Message: problem}
		}
		path = before + url.PathEscape(id) + after
	}
	return path, nil
}

// root returns the base URL, even if the configured URL is the address of responses.
func root(link *transport.Config, profile *endpoint.Profile, create string) (string, error) {
	u, err := link.URL(profile, create, nil)
	if err != nil {
		return "", err
	}
	u.Path, u.RawPath = strings.TrimSuffix(u.Path, create), strings.TrimSuffix(u.RawPath, create)
	if u.Path == "" {
		u.Path = "/." // without this, the profile's base path would be added
	}
	return u.String(), nil
}

// do sends a request, with retries, and reads its answer. A POST is repeated only while no part of
// an answer has arrived.
func do[T any](ctx context.Context, c *Client, a *ask, read func(*transport.Exchange) (T, error)) (T, error) {
	var v T
	k, err := c.prepare(ctx, a)
	if err != nil {
		return v, err
	}
	err = k.Retry(ctx, func() (again bool, err error) {
		x, err := k.Open(ctx)
		if err != nil {
			err = a.failed(c, err)
			return !a.once || refused(err), err
		}
		defer x.Close()
		v, err = read(x)
		if err != nil {
			err = a.failed(c, err)
		}
		return a.method == http.MethodGet || a.method == http.MethodDelete, err
	})
	return v, err
}

// refused reports whether the server rejected the request before working on it.
func refused(err error) bool {
	switch asError(err).Class {
	case endpoint.RateLimit, endpoint.Overloaded, endpoint.Auth:
		return true
	}
	return false
}

// failed returns the error to report for an attempt's error.
func (a *ask) failed(c *Client, err error) error {
	e := asError(err)
	if a.noSuchPath(e) {
		profile, err := c.link().Known()
		if err != nil {
			return err
		}
		return a.absent(e, profile)
	}
	if a.excuse != nil {
		return a.excuse(e)
	}
	return e
}

// noSuchPath reports whether the error comes from the server rather than the API. For an object
// that does not exist, the API sends a code or a type.
func (a *ask) noSuchPath(e *endpoint.Error) bool {
	switch e.Status {
	case http.StatusMethodNotAllowed, http.StatusNotImplemented:
		return true
	case http.StatusNotFound:
		return e.Code == "unknown_url" || e.Code == "404" || e.Type == "" && e.Code == ""
	}
	return false
}

// absent changes e to say that the endpoint does not have this part of the API.
func (a *ask) absent(e *endpoint.Error, profile *endpoint.Profile) *endpoint.Error {
	said := e.Message
	e.Message = fmt.Sprintf("this endpoint (%s) has no %s", cmp.Or(profile.Name, "unnamed"), a.path)
	if said != "" {
		e.Message += ": " + said
	}
	e.Class, e.Hint, e.Err = endpoint.NotFound, a.part.instead, errors.ErrUnsupported
	return e
}

// readObject reads an answer that is one object; whole reports whether the object is complete.
// Readers are functions that call readObject, not variables initialized with its result: such a
// variable would be linked into every program.
func readObject[T any](x *transport.Exchange, what string, parse func([]byte) (T, error), whole func(T) bool) (none T, err error) {
	text, err := x.ReadAll()
	if err != nil {
		return none, err
	}
	v, err := parse(text)
	if err != nil || !whole(v) {
		return none, isNot(x, what, text, err)
	}
	return v, nil
}

// isNot returns the error for a 2xx answer that is not the expected object.
func isNot(x *transport.Exchange, what string, text []byte, err error) error {
	var syntax *item.SyntaxError
	if errors.As(err, &syntax) {
		return x.Unreadable("the answer", text, true, err)
	}
	e := x.Refused(text)
	if e.Message == "" {
		e.Class, e.Err = endpoint.Protocol, err
		e.Message, e.Hint = "the answer is JSON but not a "+what, ""
	}
	return x.Fail(e)
}
