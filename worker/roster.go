// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/antiphon-go/antiphon/internal/nils"
	"github.com/antiphon-go/antiphon/sandbox"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/session/queue"
)

// Card describes a running worker to the other workers of its store.
type Card struct {
	Name    string   `json:"name"`
	Host    string   `json:"host,omitempty"`
	Labels  []string `json:"labels,omitempty"`  // with those that it has by itself
	Volumes []string `json:"volumes,omitempty"` // that are there now
	// Folders are for work whose files are on its Host alone.
	Folders []string `json:"folders,omitempty"`
	// Repositories are those of which it makes checkouts; see [Worker].
	Repositories []string `json:"repositories,omitempty"`
	Agents       []string `json:"agents,omitempty"` // the hashes of the definitions that it can run
	Tenants      []string `json:"tenants"`          // null means everybody's
	// Endpoints are the base URLs of the models of definitions, by their hashes, as far as they
	// are known.
	Endpoints map[string]string `json:"endpoints,omitempty"`
	Caps      map[string]int    `json:"caps,omitempty"` // the most runs of tenants at once; see [Worker]
	// Ended is set if the worker has ended in order. Work that only it can do still waits for a
	// moment, because it may start again.
	Ended bool `json:"ended,omitzero"`
}

// Running returns the cards of the workers that run, in no particular order. One that was
// killed is among them for up to a quarter of a minute. Known is false if the store does not
// keep them.
func Running(ctx context.Context, in session.Store) (cards []Card, known bool, err error) {
	kept, known := in.(queue.Roster)
	if !known || nils.Is(in) {
		return nil, false, nil
	}
	cards, err = cardsOf(ctx, kept, "")
	return slices.DeleteFunc(cards, func(c Card) bool { return c.Ended }), true, err
}

// cardsOf returns the cards of all workers but one.
func cardsOf(ctx context.Context, in queue.Roster, but string) (cards []Card, err error) {
	list, err := in.Roster(ctx)
	for _, w := range list {
		var c Card
		if w.ID != but && json.Unmarshal(w.Data, &c) == nil { // else it is of a version that we do not know
			cards = append(cards, c)
		}
	}
	return cards, err
}

// own returns the labels that a worker has by itself.
func (w *Worker) own() (labels []string) {
	if w.stage != nil {
		return nil // a simulation has no sandbox and no keys
	}
	if sandbox.Available().Confines() {
		labels = append(labels, "sandbox")
	}
	for _, place := range w.Config.Endpoint.Keyed(w.Config.Environment) {
		labels = append(labels, "key="+place)
	}
	return labels
}

// A worker counts as running for cardLasts, also if it was killed. It tells that it goes on
// each cardEvery. A worker that starts again in this time leaves no work without one. To tell
// that it has ended may take leaveTime: a store that hangs does not keep the program.
const (
	cardLasts = 15 * time.Second
	cardEvery = 5 * time.Second
	leaveTime = 5 * time.Second
)

// roster keeps a worker's card in the store. Nil is that of a store that keeps none.
type roster struct {
	p     *pool
	kept  queue.Roster
	id    string
	told  []byte // what it told last
	until time.Time
}

func newRoster(p *pool) *roster {
	kept, ok := p.Config.Store.(queue.Roster)
	if !ok {
		return nil
	}
	return &roster{p: p, kept: kept, id: rand.Text()}
}

// enter tells that the worker runs, if it is time or something about it has changed. One
// that ends soon is nobody to wait for.
func (r *roster) enter(ctx context.Context) error {
	if r == nil || r.p.once {
		return nil
	}
	c, err := r.card()
	if err != nil {
		return err
	}
	data, err := json.Marshal(c)
	if err != nil || bytes.Equal(data, r.told) && time.Now().Before(r.until) {
		return err
	}
	until := time.Now().Add(cardEvery)
	if err = r.kept.Enter(ctx, queue.Present{ID: r.id, Data: data}, cardLasts); err == nil {
		r.told, r.until = data, until
	}
	return err
}

// leave tells that the worker has ended.
func (r *roster) leave(ctx context.Context) error {
	if r == nil || r.told == nil {
		return nil
	}
	ctx, end := context.WithTimeout(ctx, leaveTime)
	defer end()
	var c Card
	err := json.Unmarshal(r.told, &c)
	if err != nil {
		return err
	}
	c.Ended = true
	data, err := json.Marshal(c)
	if err != nil {
		return err
	}
	return r.kept.Enter(ctx, queue.Present{ID: r.id, Data: data}, cardLasts)
}

func (r *roster) card() (c Card, err error) {
	w := r.p.Worker
	c = Card{Name: w.Name, Host: w.Host, Labels: r.p.labels, Tenants: w.Tenants, Volumes: real(w.Volumes), Caps: w.Caps, Endpoints: map[string]string{}}
	c.Folders = append(slices.Clip(c.Volumes), real([]string{w.Config.Workspace})...)
	if w.Checkouts != "" && hasGit() {
		c.Repositories = w.Repositories
	}
	c.Agents, err = r.p.stage.fits()
	slices.Sort(c.Agents)
	for _, hash := range c.Agents {
		if url := r.p.stage.url(hash); url != "" {
			c.Endpoints[hash] = url
		}
	}
	return c, err
}

// real returns the folders that are there, also by their paths without links.
func real(folders []string) (list []string) {
	for _, folder := range folders {
		path, err := filepath.EvalSymlinks(folder)
		if err != nil {
			continue
		}
		if list = append(list, folder); path != folder {
			list = append(list, path)
		}
	}
	return list
}

// read returns a function that says of work which this worker cannot do whether to park it,
// because no other one can. If that is not known, it says whether the work has waited for
// long.
func (r *roster) read(ctx context.Context) (hopeless func(w queue.Work, why string, long bool) bool, err error) {
	if r == nil {
		return func(_ queue.Work, _ string, long bool) bool { return long }, nil
	}
	cards, err := cardsOf(ctx, r.kept, r.id)
	return func(w queue.Work, why string, long bool) bool {
		if strings.HasPrefix(why, noDefinition) {
			return long
		}
		none := true
		for _, c := range cards {
			switch able, sure := c.can(w); {
			case able && sure:
				return false
			case able:
				none = false
			}
		}
		return none || long
	}, err
}

// can reports whether the worker of the card can do some work, and whether that is sure:
// whether it has a certain folder, only the worker itself knows.
func (c *Card) can(w queue.Work) (able, sure bool) {
	if c.Tenants != nil && !slices.Contains(c.Tenants, w.Tenant) || !slices.Contains(c.Agents, w.Agent) {
		return false, true
	}
	sure = true
	lacks := queue.Want{Labels: c.Labels, Has: func(need string) bool {
		kind, value, _ := strings.Cut(need, "=")
		switch kind + "=" {
		case onHost:
			return value == c.Host
		case inRepository:
			return isAllowed(value, c.Repositories)
		case inFolder:
			sure = false
			return isBelow(value, c.Folders)
		case onVolume:
			sure = false
			return isBelow(value, c.Volumes)
		}
		return false
	}}.Lacks(w)
	return len(lacks) == 0, sure
}

// isBelow reports whether a folder is one of some folders, or below one, as far as their
// names say.
func isBelow(folder string, roots []string) bool {
	return slices.ContainsFunc(roots, func(root string) bool {
		rest, err := filepath.Rel(root, folder)
		return err == nil && filepath.IsLocal(rest)
	})
}
