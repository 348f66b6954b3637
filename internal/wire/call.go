// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"

	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/item"
)

// Request is what a [Call] sends.
type Request struct {
	Op     string // for errors, such as "create response"
	Method string // "" is POST
	Path   string // below the base URL
	Query  url.Values
	Body   item.Body // nil for none
	Accept string    // "" is application/json
}

// Media types.
const (
	TypeJSON   = "application/json"
	TypeEvents = "text/event-stream"
)

// Call is one request over all its attempts. It is used by one goroutine.
type Call struct {
	link    *Link
	profile *endpoint.Profile
	op      string
	method  string
	http    http.Client
	url     *url.URL // not to be changed
	accept  string
	body    item.Body
	id      string // names the request to the server, which can then tell a repetition
	key     endpoint.Key
	budget  *endpoint.Budget
	attempt int
	asked   bool // for a new key
}

// Call prepares a request. The errors are those of [endpoint.URL]; nothing is
// sent yet.
func (l *Link) Call(ctx context.Context, r Request) (*Call, error) {
	profile, err := l.Known()
	if err != nil {
		return nil, err
	}
	u, err := l.find(profile, r.Path)
	if err == nil && len(r.Query) > 0 {
		u, err = l.URL(profile, r.Path, r.Query)
	}
	if err != nil {
		return nil, err
	}
	k := &Call{
		link: l, profile: profile, op: r.Op, method: cmp.Or(r.Method, http.MethodPost),
		http: l.client(), url: u, accept: cmp.Or(r.Accept, TypeJSON), body: r.Body, key: l.key(), budget: endpoint.BudgetFrom(ctx),
	}
	if k.budget == nil {
		k.budget = l.Retry.Budget()
	}
	if r.Body != nil && profile.IdempotencyHeader != "" {
		k.id = newID()
	}
	return k, nil
}

// request builds the HTTP request of one attempt. Its body has a known length
// and can be sent again by net/http. The URL has been parsed before.
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

// header builds the header of one attempt, without the key.
func (k *Call) header() http.Header {
	h := k.link.Header.Clone()
	if h == nil {
		h = make(http.Header, 8)
	}
	values := make([]string, 0, 4) // one array for all values of their own
	set := func(name, value string) {
		n := len(values)
		values = append(values, value)
		h[name] = values[n : n+1 : n+1]
	}
	if h.Get("User-Agent") == "" {
		set("User-Agent", cmp.Or(k.link.UserAgent, DefaultUserAgent))
	}
	set("Accept", k.accept)
	if k.body != nil {
		set("Content-Type", TypeJSON)
	}
	if name := k.profile.IdempotencyHeader; k.id != "" && h.Get(name) == "" {
		// In lower case, for net/http would repeat a request by itself that
		// has this header as it spells it.
		set(strings.ToLower(name), k.id)
	}
	return h
}

// authorize puts the key and what else the profile wants into a header. What
// the caller has put there stays.
func (k *Call) authorize(h http.Header) {
	key := k.key
	if h.Get("Authorization") != "" || k.profile.KeyHeader != "" && h.Get(k.profile.KeyHeader) != "" {
		key = endpoint.Key{}
	}
	for name, values := range k.link.Learned.headers(k.profile, key, k.link.Account) {
		if h.Get(name) == "" {
			h[name] = values
		}
	}
}

// Retry runs try until it succeeds or fails for good. Try reports whether it
// may be run again, as far as it is concerned.
func (k *Call) Retry(ctx context.Context, try func() (again bool, err error)) error {
	for {
		k.attempt++
		again, err := try()
		if err == nil || !again {
			return err
		}
		if k.refresh(ctx, err) {
			continue
		}
		wait, ok := k.budget.Next(err)
		if !ok {
			return err
		}
		if k.link.OnRetry != nil {
			k.link.OnRetry(err, wait, k.attempt)
		}
		if k.budget.Sleep(ctx, wait) != nil {
			return k.canceled(ctx)
		}
	}
}

// refresh gets a new key, once a call, after an error that says it is due.
func (k *Call) refresh(ctx context.Context, err error) bool {
	var e *endpoint.Error
	if k.link.Refresh == nil || k.asked || !errors.As(err, &e) || e.Class != endpoint.Auth {
		return false
	}
	k.asked = true
	if now := k.link.key(); now != k.key {
		k.key = now // another call was faster
		return true
	}
	fresh, failed := k.link.Refresh(ctx)
	if failed != nil {
		e.Hint = "a new key could not be had either: " + failed.Error()
		return false
	}
	k.key = fresh
	k.link.Learned.key.Store(&fresh)
	return true
}

func (k *Call) canceled(ctx context.Context) *endpoint.Error {
	return k.Fill(&endpoint.Error{Class: endpoint.Canceled, Err: context.Cause(ctx)}, nil)
}

// Fill adds where the error happened and takes what was sent in secret out of
// what the server said. Resp may be nil.
func (k *Call) Fill(e *endpoint.Error, resp *http.Response) *endpoint.Error {
	e.Op, e.Method = k.op, k.method
	e.URL = cmp.Or(e.URL, endpoint.ShowURL(k.url))
	e.Attempts = max(k.attempt, 1)
	if resp != nil && e.RequestID == "" {
		e.RequestID = resp.Header.Get("X-Request-Id")
	}
	texts := []*string{&e.Message, &e.Body, &e.Code, &e.Type, &e.Param, &e.RequestID, &e.Hint}
	if e.Message == "" && e.Err != nil {
		if cause := e.Err.Error(); k.Hide(cause) != cause {
			e.Message = cause // which is told instead
		}
	}
	if a, ok := e.Err.(*item.APIError); ok {
		texts = append(texts, &a.Message, &a.Code, &a.Type, &a.Param)
	}
	for _, text := range texts {
		*text = k.Hide(*text)
	}
	return e
}
