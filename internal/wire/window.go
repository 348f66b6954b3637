// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"context"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/antiphon-go/antiphon/endpoint"
)

// windowTime bounds how long an endpoint is asked for its context window, and
// windowBytes what is read of an answer.
const (
	windowTime  = time.Second
	windowBytes = 1 << 20
)

// windows are what endpoints said of the context windows of models, by name; 0
// is one that said nothing.
type windows map[string]int64

// Window returns how many tokens the endpoint says that the model's context has,
// or 0. It asks once for each model, where the profile says that there is an
// answer to be had, and waits for it no longer than a second. It is for after a
// reply: servers load a model with the first request for it.
func (l *Link) Window(ctx context.Context, model string) int64 {
	p, err := l.Known()
	if err != nil || len(p.Windows) == 0 {
		return 0
	}
	l.Learned.asking.Lock()
	defer l.Learned.asking.Unlock()
	if n, known := l.Learned.windows[model]; known {
		return n
	}
	ctx, stop := context.WithTimeout(ctx, windowTime)
	defer stop()
	n := int64(0)
	for _, path := range p.Windows {
		if n = l.windowAt(ctx, p, path, model); n > 0 {
			break
		}
	}
	if l.Learned.windows == nil {
		l.Learned.windows = windows{}
	}
	l.Learned.windows[model] = n
	return n
}

// windowAt asks at one address: below the base URL, or, where the path begins
// with "//", below the server's root.
func (l *Link) windowAt(ctx context.Context, p *endpoint.Profile, path, model string) int64 {
	below, atRoot := strings.CutPrefix(path, "//")
	if atRoot {
		path = "/" + below
	}
	u, err := l.URL(p, path, nil)
	if err != nil {
		return 0
	}
	if base, ok := strings.CutSuffix(u.Path, p.BasePath+path); atRoot && ok {
		u.Path, u.RawPath = base+path, ""
	}
	k := &Call{link: l, profile: p, method: http.MethodGet, http: l.client(), url: u, accept: TypeJSON, key: l.key()}
	resp, err := k.http.Do(k.request(ctx))
	if err != nil {
		return 0
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, windowBytes))
	if err != nil || resp.StatusCode != http.StatusOK {
		return 0
	}
	return endpoint.WindowIn(text, model)
}
