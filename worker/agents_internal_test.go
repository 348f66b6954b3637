// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/antiphon-go/antiphon/agentfile"
	"github.com/antiphon-go/antiphon/trust"
)

// An agreement about a file holds for the copy in another folder: the powers that name
// the file's folder, and no others.
func TestAgreementHoldsForTheCopy(t *testing.T) {
	state, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	own := filepath.Join(state, "own")
	a := &Agents{Folder: filepath.Join(state, "definitions"), Agreed: trust.Open(filepath.Join(state, "agreed.jsonl"))}
	d := agentfile.Definition{Main: "agent.md", Files: []agentfile.IncludedFile{{Path: "agent.md"}}}
	hash, err := d.Hash()
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := a.open(d, "", ""); err != errUntrusted {
		t.Error(err)
	}
	agreed := trust.Powers{{Kind: trust.Allows, What: "count", Where: own}, {Kind: trust.Reads, What: "/data/"}}
	path := filepath.Join(own, "agent.md")
	claim := trust.Claim{Path: path, Sources: []trust.Source{{Path: path, Hash: hash}}, Powers: agreed}
	if err := a.Agreed.Add(t.Context(), trust.GrantOf(claim, time.Now())); err != nil {
		t.Fatal(err)
	}
	copied, ask, err := a.open(d, "", "")
	if err != nil {
		t.Fatal(err)
	}
	folder := filepath.Dir(copied)
	wanted := trust.Powers{
		{Kind: trust.Allows, What: "count", Where: folder}, {Kind: trust.Reads, What: "/data/"},
		{Kind: trust.Allows, What: "count", Where: state}, {Kind: trust.Reads, What: own + "/"}, {Kind: trust.Starts, What: "count", Where: folder},
	}
	got, err := ask(t.Context(), trust.Claim{Path: copied, Sources: []trust.Source{{Path: copied}}, Powers: wanted})
	if err != nil || len(got.Powers) != 2 || !got.Powers.Has(wanted[0]) || !got.Powers.Has(wanted[1]) {
		t.Errorf("%v, %v", got.Powers, err)
	}
	// What holds in the worker's own folder holds in the one where the session works.
	place := filepath.Join(state, "place")
	_, ask, err = a.open(d, place, own)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		where string
		want  int
	}{{place, 1}, {place + "2", 0}, {filepath.Join(place, "below"), 0}, {state + place, 0}, {state, 0}} {
		if got, err := ask(t.Context(), trust.Claim{Path: copied, Sources: []trust.Source{{Path: copied}}, Powers: trust.Powers{{Kind: trust.Allows, What: "count", Where: c.where}}}); err != nil || len(got.Powers) != c.want {
			t.Errorf("in %s: %v, %v", c.where, got.Powers, err)
		}
	}
	script := trust.Source{Path: filepath.Join(state, "script.sh"), Word: "script.sh"}
	if got, err := ask(t.Context(), trust.Claim{Path: copied, Sources: []trust.Source{{Path: copied}, script}, Powers: wanted}); err != nil || len(got.Powers) != 0 {
		t.Errorf("a script from elsewhere: %v, %v", got.Powers, err)
	}
}
