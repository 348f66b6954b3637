// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package responses

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/url"

	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/item"
)

// call is one request over all its attempts.
type call struct {
	client  *Client
	http    http.Client
	url     *url.URL
	body    []byte
	header  http.Header
	key     endpoint.Key
	budget  *endpoint.Budget
	attempt int
	asked   bool // for a new key
}

// newCall encodes the request, once for all attempts.
func (c *Client) newCall(ctx context.Context, req *item.Request, stream bool) (*call, error) {
	base := cmp.Or(c.BaseURL, endpoint.DefaultBaseURL)
	u, err := endpoint.URL(base, endpoint.Generic.ResponsesPath)
	if err != nil {
		return nil, err
	}
	profile := endpoint.Detect(u)
	if c.Profile != nil {
		profile = *c.Profile
		if u, err = endpoint.URL(base, cmp.Or(profile.ResponsesPath, endpoint.Generic.ResponsesPath)); err != nil {
			return nil, err
		}
	}
	body, err := encode(req, profile.Omit, stream)
	if err != nil {
		return nil, err
	}
	k := &call{client: c, url: u, body: body, key: c.key(), budget: endpoint.BudgetFrom(ctx)}
	if k.budget == nil {
		k.budget = c.Retry.Budget()
	}
	k.http = *cmp.Or(c.HTTP, sharedHTTP())
	k.http.CheckRedirect = guardRedirects(k.http.CheckRedirect)
	k.header = c.Header.Clone()
	if k.header == nil {
		k.header = http.Header{}
	}
	k.header.Set("Content-Type", "application/json")
	k.header.Set("Accept", "application/json")
	if stream {
		k.header.Set("Accept", "text/event-stream")
	}
	if k.header.Get("User-Agent") == "" {
		k.header.Set("User-Agent", cmp.Or(c.UserAgent, DefaultUserAgent))
	}
	return k, nil
}

// encode returns the request's body. Only stream is decided here; all the rest
// is as the caller set it.
func encode(req *item.Request, omit []string, stream bool) ([]byte, error) {
	r := *req
	if stream {
		r.Stream = &stream
	} else if r.Stream != nil && *r.Stream {
		r.Stream = nil
	}
	for _, name := range omit {
		leaveOut(&r, name)
	}
	return r.AppendJSON(make([]byte, 0, r.Input.Size()+4096))
}

// request builds the HTTP request of one attempt. Its body has a known length
// and can be sent again by net/http.
func (k *call) request(ctx context.Context) (*http.Request, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, k.url.String(), bytes.NewReader(k.body))
	if err != nil {
		return nil, err
	}
	r.Header = k.header.Clone()
	if !k.key.IsZero() && r.Header.Get("Authorization") == "" {
		r.Header.Set("Authorization", "Bearer "+k.key.Reveal())
	}
	return r, nil
}

// retry runs try until it succeeds or fails for good. Try reports whether it
// may be run again, as far as it is concerned.
func (k *call) retry(ctx context.Context, try func() (again bool, err error)) error {
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
		if k.client.OnRetry != nil {
			k.client.OnRetry(err, wait, k.attempt)
		}
		if k.budget.Sleep(ctx, wait) != nil {
			return k.canceled(ctx)
		}
	}
}

// refresh gets a new key, once a call, after an error that says it is due.
func (k *call) refresh(ctx context.Context, err error) bool {
	var e *endpoint.Error
	if k.client.Refresh == nil || k.asked || !errors.As(err, &e) || e.Class != endpoint.Auth {
		return false
	}
	k.asked = true
	if now := k.client.key(); now != k.key {
		k.key = now // another call was faster
		return true
	}
	fresh, failed := k.client.Refresh(ctx)
	if failed != nil {
		e.Hint = "a new key could not be had either: " + failed.Error()
		return false
	}
	k.key = fresh
	k.client.refreshed.Store(&fresh)
	return true
}

func (k *call) canceled(ctx context.Context) *endpoint.Error {
	return k.fill(&endpoint.Error{Class: endpoint.Canceled, Err: context.Cause(ctx)}, nil)
}

// fill adds where the error happened and takes the key out of what the server
// said.
func (k *call) fill(e *endpoint.Error, resp *http.Response) *endpoint.Error {
	e.Op, e.Method = "create response", http.MethodPost
	e.URL = cmp.Or(e.URL, endpoint.ShowURL(k.url))
	if resp != nil && e.RequestID == "" {
		e.RequestID = resp.Header.Get("X-Request-Id")
	}
	e.Message, e.Body = k.key.Hide(e.Message), k.key.Hide(e.Body)
	return e
}
