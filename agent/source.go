// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"fmt"
	"reflect"
	"slices"

	"github.com/antiphon-go/antiphon/tool"
)

// ToolSet returns the tools that a request of this moment would have: the
// agent's Tools, and after them those that its ToolSource has.
func (a *Agent) ToolSet(ctx context.Context) (*tool.Set, error) {
	set, _, err := a.toolSet(ctx, nil, nil)
	return set, err
}

// toolSet returns the tools of this moment. Where the source has what it had
// before, so is the set.
func (a *Agent) toolSet(ctx context.Context, set *tool.Set, had []tool.Tool) (*tool.Set, []tool.Tool, error) {
	var found []tool.Tool
	if a.ToolSource != nil {
		var err error
		if found, err = a.ToolSource(ctx); err != nil {
			return nil, nil, fmt.Errorf("agent: the tools cannot be had: %w", err)
		}
	}
	if set != nil && slices.EqualFunc(found, had, sameTool) {
		return set, had, nil
	}
	found = slices.Clone(found)
	set, err := tool.NewSet(append(slices.Clip(a.Tools), found...)...)
	return set, found, err
}

// sameTool reports whether two tools are one value. Values that Go cannot
// compare are taken for different ones.
func sameTool(a, b tool.Tool) bool {
	return reflect.ValueOf(a).Comparable() && reflect.ValueOf(b).Comparable() && a == b
}

// equip takes the tools that there are now. No call runs meanwhile.
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
	set, err := base.Keeping(r.spill(), r.marks)
	if err != nil {
		return err
	}
	r.base, r.found, r.offers = base, found, r.marks
	if set == r.tools {
		return nil // it had the tool for the rest before
	}
	r.state.Offer(set.Kinds(), r.tools != nil)
	r.tools = set
	r.measure()
	return nil
}
