// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"cmp"
	"context"
	"fmt"

	"github.com/antiphon-go/antiphon/agent/plan"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/tool"
)

// readKey returns a key for the content that a call read, from the arguments that it
// ran with. Calls with the same key have read the same thing. It returns false if
// the tool does not say.
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
		if v := recover(); v != nil {
			key, ok = "", false
			r.unkeyed = cmp.Or(r.unkeyed, fmt.Sprintf("the ReadKey of tool %s panicked: %v; what it reads again is sent again", call.Name, v))
		}
	}()
	if edited != "" {
		call.Arguments = edited
	}
	key, ok = annotations.ReadKey.ReadKey(call.Arguments)
	// A key is meaningful only within one tool.
	return call.Name + "\x00" + key, ok
}

// tellUnkeyed records a notice that a tool's ReadKey panicked. readKey cannot record
// it, because it is called while entries are applied to the state.
func (r *Run) tellUnkeyed(ctx context.Context) error {
	if r.unkeyed == "" {
		return nil
	}
	text := r.unkeyed
	r.unkeyed = ""
	return r.notice(ctx, session.Noticed{Turn: r.state.Turn(), Kind: session.NoticeReadKeyFailed, Text: text})
}

// collapse records which outputs are replaced by markers, because a later call read
// the same content.
func (r *Run) collapse(outputs []plan.Collapsed) error {
	bodies := make([]session.Body, len(outputs))
	for i, o := range outputs {
		bodies[i] = session.Collapsed{Seqs: o.Seqs, By: o.By}
	}
	return r.record(bodies...)
}
