// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/antiphon-go/antiphon/agentfile"
	"github.com/antiphon-go/antiphon/audit"
	"github.com/antiphon-go/antiphon/internal/show"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/trust"
)

// trustListCommand is antiphon trust list.
type trustListCommand struct {
	JSON bool `name:"json" help:"Print the agreements as lines of JSON."`
}

// Run lists the agreements.
func (c *trustListCommand) Run(std stdio, env environment) error {
	store, err := trustStore(env)
	if err != nil {
		return err
	}
	agents, err := workerAgents(env)
	if err != nil {
		return err
	}
	n := 0
	for _, kept := range []*trust.Store{store, agents.Agreed} {
		for g, err := range kept.All() {
			if err != nil {
				return usage(err)
			}
			n++
			if err := c.print(std.out, &g, kept == agents.Agreed); err != nil {
				return err
			}
		}
	}
	if n == 0 && !c.JSON {
		fmt.Fprintln(std.err, "antiphon: no file is trusted")
	}
	return nil
}

// print prints one agreement.
func (c *trustListCommand) print(w io.Writer, g *trust.Grant, workers bool) error {
	if !c.JSON {
		return printGrant(w, g, workers)
	}
	line := struct {
		trust.Grant `json:",inline"`
		Workers     bool `json:"workers,omitzero"`
	}{*g, workers}
	return errors.Join(json.MarshalWrite(toJSON(w), line, lineOptions), newline(w))
}

func newline(w io.Writer) error {
	_, err := io.WriteString(w, "\n")
	return err
}

// printGrant prints one agreement for people. If workers is set, it is about what workers
// may run.
func printGrant(w io.Writer, g *trust.Grant, workers bool) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s  %s  (%s)\n", g.Hash[:min(12, len(g.Hash))], show.Visible(g.Path), when(g.At))
	if workers {
		b.WriteString("  workers run it: antiphon work\n")
	}
	for _, p := range g.Powers {
		fmt.Fprintf(&b, "  %s\n", show.Visible(p.String()))
	}
	for _, v := range g.Variables {
		fmt.Fprintf(&b, "  you named %s for the variable %s\n", show.Visible(v.Host), show.Visible(v.Name))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// trustRevokeCommand is antiphon trust revoke.
type trustRevokeCommand struct {
	Which []string `arg:"" name:"file-or-hash" help:"Agents' files, or beginnings of hashes that list prints."`
}

// contentOf returns the hash of a file with all that it includes, or "" if it cannot be
// read. A copy of the file may be what is remembered.
func (t *truster) contentOf(ctx context.Context, path string) (hash string) {
	options, err := fileOptions()
	if err != nil {
		return ""
	}
	options.Check, options.Known, options.Made = true, t.knows, t.made
	file, err := agentfile.Load(ctx, path, options)
	if err != nil {
		return ""
	}
	defer file.Close()
	c := file.Claim()
	return c.Hash()
}

// minHash is the least number of characters of a hash that identify an agreement.
const minHash = 6

// Run removes agreements.
func (c *trustRevokeCommand) Run(ctx context.Context, std stdio, env environment) error {
	t, err := newTruster("", &trustFlags{}, std, env, nil)
	if err != nil {
		return err
	}
	agents, err := workerAgents(env)
	if err != nil {
		return err
	}
	for _, which := range c.Which {
		path, err := filepath.Abs(which)
		if err != nil {
			return err
		}
		removed, err := c.remove(ctx, t, which, path)
		if err != nil {
			return err
		}
		byWorkers, err := agents.Agreed.Remove(ctx, func(g trust.Grant) bool {
			return g.Path == path || len(which) >= minHash && strings.HasPrefix(g.Hash, which)
		})
		if err != nil {
			return err
		}
		if removed = append(removed, byWorkers...); len(removed) > 1 { // one line for each file
			slices.SortStableFunc(removed, func(a, b trust.Grant) int { return strings.Compare(a.Path, b.Path) })
		}
		if len(removed) == 0 {
			return usage(fmt.Errorf("%s is not trusted; antiphon trust list shows what is", show.Visible(which)))
		}
		for i, g := range removed {
			if i == 0 || g.Path != removed[i-1].Path {
				fmt.Fprintf(std.out, "%s is not trusted any more\n", show.Visible(g.Path))
			}
		}
		if err := t.revoked(ctx, removed); err != nil {
			return err
		}
	}
	return nil
}

// remove removes the agreements about a file, whatever its content was, and those about a
// file with the same content elsewhere: an agreement about a content holds for all of them.
func (c *trustRevokeCommand) remove(ctx context.Context, t *truster, which, path string) ([]trust.Grant, error) {
	contents := map[string]bool{}
	if hash := t.contentOf(ctx, path); hash != "" {
		contents[hash] = true
	}
	for g, err := range t.store.All() {
		if err != nil {
			return nil, usage(err)
		}
		if g.Path == path || len(which) >= minHash && strings.HasPrefix(g.Hash, which) {
			contents[g.Hash] = true
		}
	}
	begun, err := t.begun.Remove(ctx, func(g trust.Grant) bool { return g.Path == path }) // it is a stranger's transcript then
	if err != nil {
		return nil, err
	}
	file, err := filepath.EvalSymlinks(path)
	if err != nil {
		file = path
	}
	stores, err := t.stores.Remove(ctx, func(g trust.Grant) bool {
		return g.Path == file || len(which) >= minHash && strings.HasPrefix(g.Hash, which)
	})
	if err != nil {
		return nil, err
	}
	begun = append(begun, stores...)
	removed, err := t.store.Remove(ctx, func(g trust.Grant) bool { return g.Path == path || contents[g.Hash] })
	return append(begun, removed...), err
}

// revoked records agreements that were taken back. They are removed first: not to
// trust a file needs no record.
func (t *truster) revoked(ctx context.Context, removed []trust.Grant) error {
	var records []audit.Record
	for _, g := range removed {
		records = append(records, audit.Record{Kind: audit.KindRevoked, File: g.Path, Claim: g.Hash, Powers: g.Powers, Decided: session.DeciderPerson, By: "the caller of the command", From: "antiphon trust revoke"})
	}
	return t.record(ctx, records...)
}
