// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"

	"github.com/antiphon-go/antiphon/agentfile"
	"github.com/antiphon-go/antiphon/trust"
)

// Pack returns the definition of the configuration's file: see [agentfile.Pack]. Its
// Program is that of the configuration. A file that contains a secret of the Environment
// is an error that names it.
//
// If the configuration has a Trust, it is asked as [Open] asks it, and the agreement is
// returned. Otherwise nobody is asked: a definition starts nothing.
func Pack(ctx context.Context, cfg Config) (d agentfile.Definition, a trust.Agreement, err error) {
	if d, err = agentfile.Pack(ctx, cfg.File, cfg.options()); err != nil {
		return d, a, LoadError(err)
	}
	for _, f := range d.Files {
		if text := string(f.Text); cfg.Environment.Hide(text) != text { // J6
			return agentfile.Definition{}, a, invalid("%s: %s contains a secret of the environment, so it is not stored with the agent\n  hint: name the variable instead", cfg.File, f.Path)
		}
	}
	d.Program = cfg.Program
	if cfg.Trust == nil {
		return d, a, nil
	}
	h := &Host{cfg: cfg}
	o := cfg.options()
	o.Check = true
	o.Consent = func(ctx context.Context, c trust.Claim) (trust.Agreement, error) {
		a, err = h.agree(ctx, c)
		return a, err
	}
	f, err := agentfile.Load(ctx, cfg.File, o)
	if err != nil {
		return agentfile.Definition{}, trust.Agreement{}, LoadError(err)
	}
	return d, a, f.Close()
}
