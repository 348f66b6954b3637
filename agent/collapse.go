// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"github.com/antiphon-go/antiphon/agent/plan"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/tool"
)

// region names what a call read, by the arguments that it was run with.
func (r *Run) region(of item.Item, edited string) (region string, ok bool) {
	call, err := CallOf(of)
	if err != nil {
		return "", false
	}
	t, known := r.tools.Lookup(call.Name)
	if !known {
		return "", false
	}
	traits := tool.TraitsOf(t)
	if traits.Region == nil {
		return "", false
	}
	defer func() {
		if recover() != nil {
			region, ok = "", false
		}
	}()
	if edited != "" {
		call.Arguments = edited
	}
	region, ok = traits.Region.Region(call.Arguments)
	return call.Name + "\x00" + region, ok
}

// collapse records and tells what need not be sent again.
func (r *Run) collapse(outputs []plan.Collapsed) error {
	bodies := make([]session.Body, len(outputs))
	for i, o := range outputs {
		bodies[i] = session.Collapsed{Seqs: o.Seqs, By: o.By}
	}
	if err := r.record(bodies...); err != nil {
		return err
	}
	for _, o := range outputs {
		r.emit(Collapsed{Seqs: o.Seqs, By: o.By})
	}
	return nil
}
