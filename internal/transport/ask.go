// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/item"
)

// Ask is a request to one of the API's paths, except those that create a model's reply. Its answer
// is one object.
type Ask struct {
	Op, Method string
	// Path has the form of the API's document, with ids written in {}. IDs replace them, in order.
	Path   string
	IDs    []string
	Query  url.Values
	Header map[string]string // in addition to the client's
	Body   item.Body
	Source *Source // in place of Body
	Accept string
	Raw    bool // the answer may be any bytes
	Part   Part
	Repeat Repeat
	// Excuse, if set, receives the error of each attempt and may return nil to ignore it.
	Excuse func(*endpoint.Error) error
}

// Repeat says when a failed request is sent again. A request that the server reports not to have
// started is repeated in any case.
type Repeat int

const (
	// UntilAnswer repeats a request until a part of its answer has arrived; GET and DELETE also
	// after that.
	UntilAnswer Repeat = iota
	// Always is for requests that change nothing.
	Always
	// IfKeyed is like UntilAnswer if the endpoint has a header by which it recognizes a repetition,
	// and like Never otherwise. It is for requests that create something.
	IfKeyed
	// Never is for requests whose repetition would do harm.
	Never
)

// Part is a part of the API that not every endpoint has.
type Part struct {
	Has     func(*endpoint.Profile) endpoint.Support // nil means unknown
	Instead string                                   // what to do without this part
}

// Prepare readies the request and encodes it once for all attempts. Its errors are local: nothing
// has been sent.
func (c *Config) Prepare(ctx context.Context, a *Ask) (*Call, error) {
	path, err := a.address()
	if err != nil {
		return nil, err
	}
	profile, err := c.KnownFor(a)
	if err != nil {
		return nil, err
	}
	create := cmp.Or(profile.ResponsesPath, responsesPath)
	if rest, ok := strings.CutPrefix(path, responsesPath); ok {
		path = create + rest
	}
	own := *c
	if own.BaseURL, err = c.root(profile, create); err != nil {
		return nil, err
	}
	return own.Call(ctx, Request{
		Op: a.Op, Method: a.Method, Path: path, Query: a.Query, Header: a.Header,
		Body: a.Body, Source: a.Source, Accept: a.Accept, Raw: a.Raw,
	})
}

const responsesPath = "/responses"

// KnownFor returns the endpoint's profile, or an error if the endpoint does not have the part of
// the API that the request needs.
func (c *Config) KnownFor(a *Ask) (*endpoint.Profile, error) {
	profile, err := c.Known()
	if err == nil && a.Part.Has != nil && a.Part.Has(profile) == endpoint.No {
		err = a.absent(&endpoint.Error{Op: a.Op}, profile)
	}
	return profile, err
}

// address returns the path with the ids filled in. An id cannot reach beyond its segment.
func (a *Ask) address() (string, error) {
	path := a.Path
	for _, id := range a.IDs {
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
			return "", &endpoint.Error{Op: a.Op, Class: endpoint.BadRequest, Param: name, Message: problem}
		}
		path = before + url.PathEscape(id) + after
	}
	return path, nil
}

// root returns the base URL, even if the configured URL is the address of responses.
func (c *Config) root(profile *endpoint.Profile, create string) (string, error) {
	u, err := c.URL(profile, create, nil)
	if err != nil {
		return "", err
	}
	u.Path, u.RawPath = strings.TrimSuffix(u.Path, create), strings.TrimSuffix(u.RawPath, create)
	if u.Path == "" {
		u.Path = "/." // without this, the profile's base path would be added
	}
	return u.String(), nil
}

// Do sends a request, with retries, and reads its answer.
func Do[T any](ctx context.Context, c *Config, a *Ask, read func(*Exchange) (T, error)) (T, error) {
	var v T
	err := c.do(ctx, a, func(x *Exchange) (err error) {
		defer x.Close()
		v, err = read(x)
		return err
	})
	return v, err
}

// Fetch sends a request, with retries, and returns the exchange once its answer has begun. The
// caller closes it.
func (c *Config) Fetch(ctx context.Context, a *Ask) (*Exchange, error) {
	var begun *Exchange
	err := c.do(ctx, a, func(x *Exchange) error { begun = x; return nil })
	return begun, err
}

func (c *Config) do(ctx context.Context, a *Ask, read func(*Exchange) error) error {
	k, err := c.Prepare(ctx, a)
	if err != nil {
		return err
	}
	return k.Retry(ctx, func() (again bool, err error) {
		x, err := k.Open(ctx)
		if err != nil {
			err = a.Failed(c, err)
			return a.repeats(k, false) || NotStarted(err), err
		}
		if err = read(x); err != nil {
			err = a.Failed(c, err)
		}
		return a.repeats(k, true), err
	})
}

// repeats reports whether the request may be sent again; begun is set if a part of the answer has
// arrived.
func (a *Ask) repeats(k *Call, begun bool) bool {
	switch a.Repeat {
	case Always:
		return true
	case Never:
		return false
	case IfKeyed:
		return !begun && k.id != ""
	}
	return !begun || a.Method == http.MethodGet || a.Method == http.MethodDelete
}

// NotStarted reports whether the server rejected the request before working on it.
func NotStarted(err error) bool {
	switch AsError(err).Class {
	case endpoint.RateLimit, endpoint.Overloaded, endpoint.Auth:
		return true
	}
	return false
}

// AsError returns err as an [*endpoint.Error].
func AsError(err error) *endpoint.Error {
	var e *endpoint.Error
	if errors.As(err, &e) {
		return e
	}
	return &endpoint.Error{Class: endpoint.Protocol, Err: err}
}

// Failed returns the error to report for an attempt's error.
func (a *Ask) Failed(c *Config, err error) error {
	e := AsError(err)
	if a.noSuchPath(e) {
		profile, err := c.Known()
		if err != nil {
			return err
		}
		return a.absent(e, profile)
	}
	if e.Class == endpoint.NotFound {
		a.missing(e)
	}
	if a.Excuse != nil {
		return a.Excuse(e)
	}
	return e
}

// missing gives the hint for an object that does not exist. The path is right, since the API has
// answered, and package endpoint knows what to say about a model.
func (a *Ask) missing(e *endpoint.Error) {
	switch {
	case e.Code == "model_not_found" || e.Param == "model" || e.Type == "api_error":
	case len(a.IDs) > 0:
		e.Hint = "check the id, and that the key is of the project that has it"
	case strings.HasPrefix(a.Path, "/files"), strings.HasPrefix(a.Path, "/vector_stores"), strings.HasPrefix(a.Path, "/conversations"):
		e.Hint = "check the ids in the request, and that the key is of the project that has them"
	default:
		e.Hint = "check the model's name, and the ids in the request"
	}
}

// noSuchPath reports whether the error comes from the server rather than the API. For an object
// that does not exist, the API sends a code or a type.
func (a *Ask) noSuchPath(e *endpoint.Error) bool {
	switch e.Status {
	case http.StatusMethodNotAllowed, http.StatusNotImplemented:
		return true
	case http.StatusNotFound:
		return e.Code == "unknown_url" || e.Code == "404" || e.Type == "" && e.Code == "" && !errors.Is(e.Err, errPartial)
	}
	return false
}

// absent changes e to say that the endpoint does not have this part of the API.
func (a *Ask) absent(e *endpoint.Error, profile *endpoint.Profile) *endpoint.Error {
	said := e.Message
	e.Message = fmt.Sprintf("this endpoint (%s) has no %s", cmp.Or(profile.Name, "unnamed"), a.Path)
	if said != "" {
		e.Message += ": " + said
	}
	e.Class, e.Hint, e.Err = endpoint.NotFound, a.Part.Instead, errors.ErrUnsupported
	return e
}

// Delete sends a request that deletes an object. If the object does not exist, the error has the
// class NotFound; but if an earlier attempt was lost, that attempt may have deleted the object, and
// Delete returns nil.
func (c *Config) Delete(ctx context.Context, a *Ask) error {
	a.Method = http.MethodDelete
	lost := false
	a.Excuse = func(e *endpoint.Error) error {
		if e.Class == endpoint.NotFound && lost {
			return nil
		}
		lost = lost || e.SafeToRetry() && !NotStarted(e)
		return e
	}
	_, err := Do(ctx, c, a, deleted)
	return err
}

// deleted reads a confirmation. The schema has no body for deleted responses, so a success status
// alone is enough.
func deleted(x *Exchange) (struct{}, error) {
	text, err := x.ReadAll()
	if err != nil || len(text) == 0 {
		return struct{}{}, err
	}
	d, err := api.ParseDeleted(text)
	if err != nil {
		return struct{}{}, x.IsNot("confirmation", text, err)
	}
	if !d.Deleted && HasMember(d.Extra, "deleted") {
		return struct{}{}, x.Fail(&endpoint.Error{Class: endpoint.Protocol, Message: "the server did not delete it"})
	}
	if _, failed := d.Extra.Get("error"); failed {
		return struct{}{}, x.IsNot("confirmation", text, nil)
	}
	return struct{}{}, nil
}

// HasMember reports whether a required member was present: Extra records missing ones.
func HasMember(x item.Extra, name string) bool {
	_, missing := x.Get(name)
	return !missing
}

// Object reads an answer that is one object; whole reports whether the object is complete. Readers
// are functions that call Object, not variables initialized with its result: such a variable would
// be linked into every program.
func Object[T any](x *Exchange, what string, parse func([]byte) (T, error), whole func(T) bool) (none T, err error) {
	text, err := x.ReadAll()
	if err != nil {
		return none, err
	}
	v, err := parse(text)
	if err != nil || !whole(v) {
		return none, x.IsNot(what, text, err)
	}
	return v, nil
}

// IsNot returns the error for a 2xx answer that is not the expected object.
func (x *Exchange) IsNot(what string, text []byte, err error) error {
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

// Page is one page of a list.
type Page[T any] struct {
	Data   []T
	LastID string
	More   bool
}

// maxPages limits the length of a list, in case a server never ends it.
const maxPages = 10_000

// List yields the elements of all pages of a list. It fetches the pages as needed, and nothing
// before the caller iterates. An element that appears in several pages, judged by its id, is
// yielded once.
func List[T any](ctx context.Context, c *Config, a Ask, id func(T) string, read func(*Exchange) (Page[T], error)) iter.Seq2[T, error] {
	a.Method = http.MethodGet
	return func(yield func(T, error) bool) {
		var none T
		a, seen := a, map[string]bool{}
		query := url.Values{}
		for name, values := range a.Query {
			query[name] = values
		}
		a.Query = query
		for range maxPages {
			page, err := Do(ctx, c, &a, read)
			if err != nil {
				yield(none, err)
				return
			}
			fresh, ids := 0, make([]string, 0, len(page.Data))
			for _, v := range page.Data {
				key := id(v)
				ids = append(ids, key)
				if key != "" && seen[key] {
					continue
				}
				fresh++
				if !yield(v, nil) {
					return
				}
			}
			for _, key := range ids { // a page may hold two elements with the same id
				seen[key] = true
			}
			if !page.More {
				return
			}
			next := page.LastID
			if next == "" && len(ids) > 0 {
				next = ids[len(ids)-1]
			}
			if next == "" || fresh == 0 || next == a.Query.Get("after") {
				yield(none, a.fault(endpoint.Protocol, "the server says that the list has more items, but sends the same ones again"))
				return
			}
			a.Query.Set("after", next)
		}
		yield(none, a.fault(endpoint.TooLarge, fmt.Sprintf("the list has more than %d pages", maxPages)))
	}
}

// fault returns an error about the list, which is made of several requests.
func (a *Ask) fault(class endpoint.Class, message string) error {
	return &endpoint.Error{Op: a.Op, Class: class, Message: message}
}

// Pause waits before the next poll; n is the number of polls so far. The waits grow like those
// between retries.
func (c *Config) Pause(ctx context.Context, op string, n int) error {
	d, top := cmp.Or(c.Retry.Base, endpoint.DefaultBase), cmp.Or(c.Retry.Cap, endpoint.DefaultCap)
	for ; n > 0 && d < top; n-- {
		d *= 2
	}
	budget := endpoint.BudgetFrom(ctx)
	if budget == nil {
		budget = c.Retry.Budget()
	}
	if budget.Sleep(ctx, min(d, top)) == nil {
		return nil
	}
	return &endpoint.Error{Op: op, Class: endpoint.Canceled, Err: context.Cause(ctx)}
}
