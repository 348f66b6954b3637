// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/platform"
	"github.com/antiphon-go/antiphon/server"
)

// listed is the list of an upstream's models, which is asked for again after a while.
type listed struct {
	mu    sync.Mutex
	at    time.Time
	names []server.Model
}

const (
	listFresh   = time.Minute
	listTimeout = 5 * time.Second
	maxListed   = 10_000
)

// Models implements [server.ModelLister]. It asks the upstreams for their lists, and leaves
// out those that do not answer in time. If none does, it returns an error. An upstream without a
// list has no models to show.
func (b *Backend) Models(ctx context.Context, id string) ([]server.Model, error) {
	b.init()
	if id != "" {
		if _, err := b.candidates(id); err != nil {
			return nil, nil // it does not exist
		}
	}
	lists, failures := make([][]server.Model, len(b.ups)), make([]error, len(b.ups))
	var asked sync.WaitGroup
	for i, u := range b.ups {
		asked.Go(func() { lists[i], failures[i] = u.models(ctx, b) })
	}
	asked.Wait()
	if len(failures) > 0 && !slices.Contains(failures, nil) {
		return nil, b.told(failures[0], &server.Request{Request: new(api.Request)})
	}
	for _, err := range failures {
		if err != nil && ctx.Err() == nil {
			b.log(err)
		}
	}
	var all []server.Model
	seen := map[string]bool{}
	for _, list := range lists {
		for _, m := range list {
			if !seen[m.ID] && (id == "" || id == m.ID) {
				seen[m.ID] = true
				all = append(all, m)
			}
		}
	}
	return all, nil
}

// models returns the models of one upstream, by the names that requests have for them.
func (u *upstream) models(ctx context.Context, b *Backend) ([]server.Model, error) {
	if u.Models != "" && !strings.HasSuffix(u.Models, "*") && !strings.HasSuffix(u.Models, "/") {
		owner := u.about().Profile
		if owner == endpoint.Careful.Name { // nobody knows what it is
			owner = "antiphon"
		}
		return []server.Model{{ID: u.Models, OwnedBy: owner}}, nil
	}
	u.list.mu.Lock()
	defer u.list.mu.Unlock()
	if !u.list.at.IsZero() && b.now().Sub(u.list.at) < listFresh {
		return u.list.names, nil
	}
	ctx, stop := context.WithTimeout(endpoint.WithBudget(ctx, endpoint.Retry{Max: -1}.Budget()), listTimeout)
	defer stop()
	var names []server.Model
	for m, err := range (*platform.Client)(u.Config).Models(ctx) {
		if err != nil {
			var e *endpoint.Error
			if errors.As(err, &e) && (e.Class == endpoint.NotFound || e.Status == http.StatusMethodNotAllowed || e.Status == http.StatusNotImplemented) {
				return u.list.names, nil // it has no list, or none any more
			}
			if u.list.at.IsZero() {
				return nil, err
			}
			if ctx.Err() == nil {
				b.log(err)
			}
			return u.list.names, nil // the last that it said
		}
		name := m.ID
		if strings.HasSuffix(u.Models, "/") {
			name = u.Models + name
		}
		if u.fit(name) > 0 && len(names) < maxListed {
			names = append(names, server.Model{ID: name, Created: m.Created, OwnedBy: m.OwnedBy})
		}
	}
	u.list.at, u.list.names = b.now(), names
	return names, nil
}
