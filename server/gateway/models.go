// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"strings"
	"sync"
	"time"

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
// out those that do not answer in time.
func (b *Backend) Models(ctx context.Context, id string) ([]server.Model, error) {
	b.init()
	if id != "" {
		if _, err := b.candidates(id); err != nil {
			return nil, nil // it does not exist
		}
	}
	lists := make([][]server.Model, len(b.ups))
	var asked sync.WaitGroup
	for i, u := range b.ups {
		asked.Go(func() { lists[i] = u.models(ctx, b) })
	}
	asked.Wait()
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
func (u *upstream) models(ctx context.Context, b *Backend) []server.Model {
	if u.Models != "" && !strings.HasSuffix(u.Models, "*") && !strings.HasSuffix(u.Models, "/") {
		owner := u.about().Profile
		if owner == endpoint.Careful.Name { // nobody knows what it is
			owner = "antiphon"
		}
		return []server.Model{{ID: u.Models, OwnedBy: owner}}
	}
	u.list.mu.Lock()
	defer u.list.mu.Unlock()
	if !u.list.at.IsZero() && b.now().Sub(u.list.at) < listFresh {
		return u.list.names
	}
	ctx, stop := context.WithTimeout(endpoint.WithBudget(ctx, endpoint.Retry{Max: -1}.Budget()), listTimeout)
	defer stop()
	var names []server.Model
	for m, err := range (*platform.Client)(u.Config).Models(ctx) {
		if err != nil {
			if ctx.Err() == nil {
				b.log(err)
			}
			return u.list.names // the last that it said
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
	return names
}
