// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net/http"

	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/internal/sse"
)

// Upgrade asks a server to switch to another protocol on the connection. It sends a GET with the
// header through the client. If the server refuses, it also returns the server's answer with the
// beginning of its body.
type Upgrade func(ctx context.Context, url string, client *http.Client, header http.Header) (*http.Response, error)

// Dial calls up to open a connection to the call's URL within the idle limit. It passes the HTTP
// client with guarded redirects, the call's headers, the headers in more, and the key. If the
// answer is not an upgrade, Dial returns it as an error; see [Refused].
func (k *Call) Dial(ctx context.Context, more map[string]string, up Upgrade) error {
	x := k.Talk(ctx, nil)
	defer x.Close()
	header := k.header()
	header.Del("Accept")
	for name, value := range more {
		if header.Get(name) == "" {
			header.Set(name, value)
		}
	}
	k.authorize(header)
	return x.Do(func(ctx context.Context) error {
		resp, err := up(ctx, k.url.String(), &k.http, header) //nolint:bodyclose // up closes it
		if resp != nil {
			k.hideHeader(resp.Header)
		}
		endpoint.FillMeta(ctx, resp, max(k.attempt, 1))
		switch {
		case err == nil:
			return nil
		case x.Ended():
			return x.Broken(err)
		case resp == nil:
			return x.Fail(endpoint.FromTransport(http.MethodGet, k.url, err))
		}
		return k.refusal(resp, err)
	})
}

// refusal returns the error for an answer that is not a valid upgrade.
func (k *Call) refusal(resp *http.Response, err error) *endpoint.Error {
	if resp.StatusCode == http.StatusSwitchingProtocols {
		return k.Fill(&endpoint.Error{Class: endpoint.Protocol, Status: resp.StatusCode, Message: err.Error(), Err: err}, resp)
	}
	var body []byte
	if resp.Body != nil {
		body, _ = io.ReadAll(io.LimitReader(resp.Body, maxErrorBody)) // a partial body still helps
	}
	e := k.refused(resp, body)
	e.Err = cmp.Or(e.Err, err)
	return e
}

// Refused reports whether an error of [Call.Dial] says that the server does not support the
// protocol at this address. Errors about the key, rate limits or the server's health do not.
func Refused(err error) bool {
	var e *endpoint.Error
	if !errors.As(err, &e) {
		return false
	}
	switch e.Status {
	case http.StatusBadRequest:
		return e.Class == endpoint.BadRequest || e.Class == endpoint.Protocol
	case http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusNotAcceptable, http.StatusUpgradeRequired,
		http.StatusNotImplemented, http.StatusSwitchingProtocols:
		return true
	}
	return e.Status >= 200 && e.Status <= 299
}

// Talk begins an exchange over an open connection, such as a WebSocket. Resp is the answer to the
// upgrade and may be nil. The Body is empty; [Exchange.Do] and [Receive] wait for the other side.
func (k *Call) Talk(ctx context.Context, resp *http.Response) *Exchange {
	x := &Exchange{call: k, outer: ctx, Body: http.NoBody, Kind: Stream}
	if resp != nil {
		own := *resp
		own.Body = http.NoBody
		x.Response = &own
	}
	x.ctx, x.cancel = context.WithCancelCause(ctx)
	x.idle.open(k.config.idle(), x.cancel)
	return x
}

// Do calls f within the idle limit. The context of f is the exchange's.
func (x *Exchange) Do(f func(context.Context) error) error {
	x.idle.start()
	defer x.idle.stop()
	return f(x.ctx)
}

// Receive waits for the next value within the idle limit. Ok is false if the channel is closed or
// the exchange has ended; see [Exchange.Ended].
func Receive[T any](x *Exchange, from <-chan T) (v T, ok bool) {
	x.idle.start()
	defer x.idle.stop()
	select {
	case v, ok = <-from:
	case <-x.ctx.Done():
	}
	return v, ok
}

// Context returns the exchange's context. It ends with the caller's context, when the idle limit is
// exceeded, and on Close.
func (x *Exchange) Context() context.Context { return x.ctx }

// MaxEvent returns the size limit of one event, in bytes.
func (k *Call) MaxEvent() int { return cmp.Or(max(k.config.MaxEvent, 0), sse.DefaultMaxEvent) }
