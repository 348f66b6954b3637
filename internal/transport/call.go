// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package transport

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
	"github.com/antiphon-go/antiphon/internal/nils"
	"github.com/antiphon-go/antiphon/item"
)

// Request is the request that a [Call] sends.
type Request struct {
	Op     string // for errors, such as "create response"
	Method string // "" means POST
	Path   string // relative to the base URL
	Query  url.Values
	Header map[string]string // in addition to the client's, which take precedence
	Body   item.Body         // nil means no body
	Source *Source           // in place of Body
	Accept string            // "" means application/json
	Raw    bool              // the answer may be any bytes
	// Secrets are further texts that [Call.Hide] replaces, such as [ToolSecrets].
	Secrets []string
}

// Media types.
const (
	TypeJSON   = "application/json"
	TypeEvents = "text/event-stream"
)

// Call is one request with all its attempts. It is used by one goroutine.
type Call struct {
	config  *Config
	profile *endpoint.Profile
	op      string
	method  string
	http    http.Client
	url     *url.URL // must not be changed
	accept  string
	more    map[string]string // further headers
	raw     bool
	body    item.Body
	source  *Source
	id      string // identifies the request, so that the server can recognize a repetition
	key     endpoint.Key
	secrets []string // in the body
	budget  *endpoint.Budget
	attempt int
	asked   bool // a new key was requested
}

// Call prepares a request. It sends nothing. The errors are those of [endpoint.URL].
func (c *Config) Call(ctx context.Context, r Request) (*Call, error) {
	profile, err := c.Known()
	if err != nil {
		return nil, err
	}
	u, err := c.find(profile, r.Path)
	if err == nil && len(r.Query) > 0 {
		u, err = c.URL(profile, r.Path, r.Query)
	}
	if err != nil {
		return nil, err
	}
	k := &Call{
		config: c, profile: profile, op: r.Op, method: cmp.Or(r.Method, http.MethodPost),
		http: c.client(), url: u, accept: cmp.Or(r.Accept, TypeJSON), more: r.Header, raw: r.Raw,
		body: r.Body, source: r.Source, key: c.key(), secrets: r.Secrets, budget: endpoint.BudgetFrom(ctx),
	}
	if k.budget == nil {
		k.budget = c.Retry.Budget()
	}
	if (r.Body != nil || r.Source != nil) && profile.IdempotencyHeader != "" {
		k.id = newID()
	}
	return k, nil
}

// request returns the HTTP request of one attempt. Its body has a known length, and net/http can
// send it again. The URL was parsed before.
func (k *Call) request(ctx context.Context) *http.Request {
	u := *k.url
	r := &http.Request{
		Method: k.method, URL: &u, Host: u.Host,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: k.header(),
	}
	k.authorize(r.Header)
	attach(r, k.body)
	return r.WithContext(ctx)
}

// header returns the header of one attempt, without the key.
func (k *Call) header() http.Header {
	h := k.config.Header.Clone()
	if h == nil {
		h = make(http.Header, 8)
	}
	values := make([]string, 0, 4) // one array for all single values
	set := func(name, value string) {
		n := len(values)
		values = append(values, value)
		h[name] = values[n : n+1 : n+1]
	}
	if h.Get("User-Agent") == "" {
		set("User-Agent", cmp.Or(k.config.UserAgent, DefaultUserAgent))
	}
	set("Accept", k.accept)
	if k.source != nil {
		set("Content-Type", k.source.Type)
	} else if k.body != nil {
		set("Content-Type", TypeJSON)
	}
	for name, value := range k.more {
		if h.Get(name) == "" {
			h.Set(name, value)
		}
	}
	if name := k.profile.IdempotencyHeader; k.id != "" && h.Get(name) == "" {
		// In lower case, because net/http retries a request that has this header in its usual
		// spelling.
		set(strings.ToLower(name), k.id)
	}
	return h
}

// authorize sets the key and the profile's other headers. It keeps the caller's headers.
func (k *Call) authorize(h http.Header) {
	key := k.key
	if h.Get("Authorization") != "" || k.profile.KeyHeader != "" && h.Get(k.profile.KeyHeader) != "" {
		key = endpoint.Key{}
	}
	for name, values := range k.config.Discovered.headers(k.profile, key, k.config.Account) {
		if h.Get(name) == "" {
			h[name] = values
		}
	}
}

// Retry calls try until it succeeds or fails for good. Try reports whether it may be called again.
func (k *Call) Retry(ctx context.Context, try func() (again bool, err error)) error {
	gate := endpoint.GateFrom(ctx)
	for {
		k.attempt++
		if err := k.enter(ctx, gate); err != nil {
			return err
		}
		again, err := try()
		if e := (*endpoint.Error)(nil); gate != nil && errors.As(err, &e) {
			gate.Failed(ctx, k.config.About("").URL, e)
		}
		if err == nil || !again {
			return err
		}
		if k.source.spent() {
			return unrepeatable(err)
		}
		if k.refresh(ctx, err) {
			continue
		}
		wait, ok := k.budget.Next(err)
		if !ok {
			return err
		}
		if k.config.OnRetry != nil {
			k.config.OnRetry(err, wait, k.attempt)
		}
		if k.budget.Sleep(ctx, wait) != nil {
			return k.canceled(ctx)
		}
	}
}

// enter waits until the gate lets a request through. A request that it refuses was not sent.
func (k *Call) enter(ctx context.Context, gate endpoint.Gate) error {
	if gate == nil {
		return nil
	}
	err := gate.Enter(ctx, k.config.About("").URL)
	if err != nil && ctx.Err() != nil {
		return k.canceled(ctx)
	}
	return err
}

// refresh gets a new key after an error that requires one, at most once per call.
func (k *Call) refresh(ctx context.Context, err error) bool {
	var e *endpoint.Error
	if k.config.Refresh == nil || k.asked || !errors.As(err, &e) || e.Class != endpoint.Auth {
		return false
	}
	k.asked = true
	if now := k.config.key(); now != k.key {
		k.key = now // another call has refreshed the key already
		return true
	}
	fresh, failed := k.config.Refresh(ctx)
	if failed != nil {
		e.Hint = "getting a new key failed too: " + failed.Error()
		return false
	}
	k.key = fresh
	k.config.Discovered.key.Store(&fresh)
	return true
}

func (k *Call) canceled(ctx context.Context) *endpoint.Error {
	return k.Fill(&endpoint.Error{Class: endpoint.Canceled, Err: context.Cause(ctx)}, nil)
}

// Fill adds the request's place to e and removes the secrets that were sent from the server's
// message. Resp may be nil.
func (k *Call) Fill(e *endpoint.Error, resp *http.Response) *endpoint.Error {
	e.Op, e.Method = k.op, k.method
	e.URL = cmp.Or(e.URL, endpoint.ShowURL(k.url))
	e.Attempts = max(k.attempt, 1)
	if resp != nil && e.RequestID == "" {
		e.RequestID = resp.Header.Get("X-Request-Id")
	}
	texts := []*string{&e.Message, &e.Body, &e.Code, &e.Type, &e.Param, &e.RequestID, &e.Hint, &e.URL}
	if a, ok := errors.AsType[*api.APIError](e.Err); ok {
		texts = append(texts, &a.Message, &a.Code, &a.Type, &a.Param)
	}
	for _, text := range texts {
		*text = k.Hide(*text)
	}
	if !nils.Is(e.Err) {
		cause := e.Err.Error()
		if clean := k.Hide(hideUserinfo(cause)); clean != cause {
			e.Message = cmp.Or(e.Message, clean)
			e.Err = &cleaned{clean, e.Err}
		}
	}
	return e
}

const maxRedirects = 5

// guarded is the redirect policy for a client without its own, the usual case.
var guarded = guardRedirects(nil)

// guardRedirects follows a redirect only if it repeats the same request at the same host: net/http
// would turn a POST into a GET without its body, and would send headers with keys to subdomains.
// Next is the policy of the caller's client, which is called afterwards.
func guardRedirects(next func(*http.Request, []*http.Request) error) func(*http.Request, []*http.Request) error {
	return func(r *http.Request, via []*http.Request) error {
		from := via[len(via)-1]
		refuse := func(hint string) error {
			return &endpoint.Error{
				Method: from.Method, URL: endpoint.ShowURL(from.URL), Class: endpoint.Protocol,
				Status:  r.Response.StatusCode,
				Message: fmt.Sprintf("the server redirects to %s, which was not followed", endpoint.ShowURL(r.URL)),
				Hint:    hint,
			}
		}
		upgrade := from.URL.Scheme == "http" && r.URL.Scheme == "https"
		sameHost := strings.EqualFold(r.URL.Host, from.URL.Host) && (r.URL.Scheme == from.URL.Scheme || upgrade)
		switch {
		case !sameHost:
			return refuse("the key is not sent to another host; if the API is at that host, use it as the base URL")
		case r.Method != from.Method:
			return refuse("the redirect would lose the request's body; use that address as the base URL")
		case len(via) >= maxRedirects:
			return refuse("there were too many redirects; check the base URL")
		case next != nil:
			return next(r, via)
		}
		return nil
	}
}

// misplaced is an error about an item of the input as it was sent, which differs from the caller's
// input.
type misplaced struct {
	err *endpoint.Error
	at  int
}

func (e *misplaced) Error() string { return e.err.Error() }

// Unwrap returns the endpoint's own error.
func (e *misplaced) Unwrap() error { return e.err }

// RefusedItem returns the index, in the caller's input, of the item that the endpoint rejected, or
// -1. Package agent calls it.
func (e *misplaced) RefusedItem() int { return e.at }

// Refusal returns err with the index of the rejected item in given. Sent is the form of given that
// was sent.
func Refusal(err error, given, sent *item.List) error {
	if err == nil || given == sent {
		return err
	}
	var e *endpoint.Error
	if !errors.As(err, &e) || !strings.HasPrefix(e.Param, "input") {
		return err
	}
	i, ok := inputIndex(e.Param)
	if !ok {
		i = -1
	}
	return RefusedAt(e, given, sent, i)
}

// RefusedAt returns err with the index of the rejected item in given. The argument i is the index
// of the item in sent, or -1 if unknown.
func RefusedAt(e *endpoint.Error, given, sent *item.List, i int) error {
	switch {
	case i < 0 || i >= sent.Len():
		i = -1
	case given != sent:
		i = origin(given, sent.At(i))
	}
	return &misplaced{e, i}
}

// inputIndex reads the index from input[3].output or input.3.
func inputIndex(param string) (int, bool) {
	rest := strings.TrimLeft(strings.TrimPrefix(param, "input"), "[.")
	end := strings.IndexFunc(rest, func(r rune) bool { return r < '0' || r > '9' })
	if end >= 0 {
		rest = rest[:end]
	}
	i, err := strconv.Atoi(rest)
	return i, err == nil
}

// origin finds the only item of given that corresponds to a sent item: the same item, one with the
// same id, or the output of the same call.
func origin(given *item.List, sent item.Item) int {
	found := -1
	for i, it := range given.All() {
		same := it == sent || it.Type() == sent.Type() && (sent.IsOutput() && it.CallID() == sent.CallID() || sent.ID() != "" && it.ID() == sent.ID())
		switch {
		case same && found >= 0:
			return -1 // ambiguous
		case same:
			found = i
		}
	}
	return found
}
