// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net/http"

	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/internal/sse"
)

// Upgrade asks a server to speak another protocol on the connection. It sends a
// GET with the header through the client, and returns the server's answer too
// where that is a refusal, with the beginning of its body.
type Upgrade func(ctx context.Context, url string, client *http.Client, header http.Header) (*http.Response, error)

// Dial has up open a connection to the call's URL, within the idle limit: with
// the link's HTTP client and its guard of redirects, the call's headers and
// those of more, and the key. An answer that is not an upgrade is returned as the
// error that it is, see [Refused].
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
		resp, err := up(ctx, k.url.String(), &k.http, header)
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

// refusal is the error for an answer that is not an upgrade, or a wrong one.
func (k *Call) refusal(resp *http.Response, err error) *endpoint.Error {
	if resp.StatusCode == http.StatusSwitchingProtocols {
		return k.Fill(&endpoint.Error{Class: endpoint.Protocol, Status: resp.StatusCode, Message: err.Error(), Err: err}, resp)
	}
	var body []byte
	if resp.Body != nil {
		body, _ = io.ReadAll(io.LimitReader(resp.Body, maxErrorBody)) // half of it is better than nothing
	}
	e := k.refused(resp, body)
	e.Err = cmp.Or(e.Err, err)
	return e
}

// Refused reports an error of [Call.Dial] which says that the server does not
// speak the protocol at this address. What it says of the key, of limits and of
// its health is not one.
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

// Talk begins an exchange over a connection that is open already, such as a
// WebSocket. Resp is the answer to the upgrade and may be nil. There is no Body
// to read; [Exchange.Do] and [Receive] wait for the other side.
func (k *Call) Talk(ctx context.Context, resp *http.Response) *Exchange {
	x := &Exchange{call: k, outer: ctx, Body: http.NoBody, Kind: Stream}
	if resp != nil {
		own := *resp
		own.Body = http.NoBody
		x.Response = &own
	}
	x.ctx, x.cancel = context.WithCancelCause(ctx)
	x.idle.open(k.link.idle(), x.cancel)
	return x
}

// Do runs f within the idle limit: its context ends with the exchange's.
func (x *Exchange) Do(f func(context.Context) error) error {
	x.idle.start()
	defer x.idle.stop()
	return f(x.ctx)
}

// Receive waits for the next value within the idle limit. Ok is false when the
// channel is closed, or when the exchange has ended, see [Exchange.Ended].
func Receive[T any](x *Exchange, from <-chan T) (v T, ok bool) {
	x.idle.start()
	defer x.idle.stop()
	select {
	case v, ok = <-from:
	case <-x.ctx.Done():
	}
	return v, ok
}

// Context is the exchange's: it ends with the caller's, with silence, and with
// Close.
func (x *Exchange) Context() context.Context { return x.ctx }

// MaxEvent is the size limit of one event, in bytes.
func (k *Call) MaxEvent() int { return cmp.Or(max(k.link.MaxEvent, 0), sse.DefaultMaxEvent) }
