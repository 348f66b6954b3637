// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package responses

import (
	"context"
	"errors"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/internal/transport"
	"github.com/antiphon-go/antiphon/item"
)

// talk makes one attempt over a socket.
func (s *stream) talk(ctx context.Context, k *transport.Call, sock *socket, q question) error {
	s.held, s.failure = api.Event{}, nil
	x := k.Talk(ctx, sock.resp)
	defer x.Close()
	a, err := sock.ask(x, q)
	defer a.end()
	if err == nil {
		err = s.read(x, a)
	}
	if err == nil {
		sock.used = a.begun
		return nil
	}
	var held *item.HeldError
	if errors.As(err, &held) {
		return held // nothing was answered, and no answer will come
	}
	e := k.Fill(asError(err), x.Response)
	e.Sent = s.sent
	return e
}
