// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"github.com/antiphon-go/antiphon/agent/plan"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/tool"
)

// readKey names what a call read, by the arguments that it was run with.
func (r *Run) readKey(of item.Item, edited string) (key string, ok bool) {
	call, err := CallOf(of)
	if err != nil {
		return "", false
	}
	t, known := r.tools.Lookup(call.Name)
	if !known {
		return "", false
	}
	annotations := tool.AnnotationsOf(t)
	if annotations.ReadKey == nil {
		return "", false
	}
	defer func() {
		if recover() != nil {
			key, ok = "", false
		}
	}()
	if edited != "" {
		call.Arguments = edited
	}
	key, ok = annotations.ReadKey.ReadKey(call.Arguments)
	return call.Name + "\x00" + key, ok
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
