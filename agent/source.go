// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"fmt"
	"reflect"
	"slices"

	"github.com/antiphon-go/antiphon/internal/nils"
	"github.com/antiphon-go/antiphon/tool"
)

// ToolSet returns the tools that a request would have now: the agent's Tools and
// Handoffs, followed by those of its ToolSource.
func (a *Agent) ToolSet(ctx context.Context) (*tool.Set, error) {
	set, _, err := a.toolSet(ctx, nil, nil)
	return set, err
}

// toolSet returns the current tools. If the source returns the same tools as before,
// it returns the same set.
func (a *Agent) toolSet(ctx context.Context, set *tool.Set, had []tool.Tool) (*tool.Set, []tool.Tool, error) {
	var found []tool.Tool
	if a.ToolSource != nil {
		var err error
		if found, err = a.ToolSource(ctx); err != nil {
			return nil, nil, fmt.Errorf("agent: cannot get the tools: %w", nils.Err(err))
		}
	}
	if set != nil && slices.EqualFunc(found, had, sameTool) {
		return set, had, nil
	}
	found = slices.Clone(found)
	handoffs, err := a.handoffTools()
	if err != nil {
		return nil, nil, err
	}
	set, err = tool.NewSet(slices.Concat(a.Tools, handoffs, found)...)
	return set, found, err
}

// sameTool reports whether two tools are the same value. Values that Go cannot
// compare count as different.
func sameTool(a, b tool.Tool) bool {
	return reflect.ValueOf(a).Comparable() && reflect.ValueOf(b).Comparable() && a == b
}

// equip fetches the current tools. It must not be called while a call runs.
func (r *Run) equip(ctx context.Context) error {
	if r.tools == nil {
		r.marks = Shortened(r.session.Log())
	}
	if r.tools != nil && r.agent.ToolSource == nil && r.offers == r.marks {
		return nil
	}
	base, found, err := r.agent.toolSet(ctx, r.base, r.found)
	if err != nil {
		return err
	}
	if base == r.base && r.offers == r.marks && r.tools != nil {
		return nil
	}
	set, err := base.Keeping(r.outputStore(), r.marks)
	if err != nil {
		return err
	}
	r.base, r.found, r.offers = base, found, r.marks
	if set == r.tools {
		return nil // it already had the tool to read shortened outputs
	}
	r.state.Offer(set.Kinds(), r.tools != nil || r.swapped)
	r.tools, r.swapped = set, false
	r.measure()
	return nil
}
