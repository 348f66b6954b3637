// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agents

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/antiphon-go/antiphon/host"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/server"
	"github.com/antiphon-go/antiphon/server/internal/kept"
)

// Recall implements [server.Recaller]. The response is the last one that an id in the input
// names. The input must begin with what a client sees of the history, but for items that
// clients leave out because they do not understand them. A client that answers a request for
// approval may leave out more: what it answers is the stored call.
func (b *Backend) Recall(ctx context.Context, model string, input []item.Item) (previous string, known int, err error) {
	a, err := b.named(model)
	if err != nil {
		return "", 0, nil //nolint:nilerr // Respond refuses the request
	}
	previous = lastNamed(input)
	in, seq, ok := parseID(previous)
	if !ok || b.isConversation(ctx, in) {
		return "", 0, nil
	}
	path, err := host.ResolvePath(a.Config.File)
	if err != nil {
		return "", 0, err
	}
	info, err := b.info(ctx, b.store(), in)
	if err != nil || info.Path != path {
		return "", 0, nil //nolint:nilerr // it is not of this agent, or gone: the input is all there is
	}
	s, err := b.read(ctx, b.store(), in)
	if errors.Is(err, server.ErrNotFound) {
		return "", 0, nil
	}
	if err != nil {
		return "", 0, err
	}
	p := partOf(s.Log(), seq)
	if p.from == 0 || p.deleted || !p.ended || p.begin.ResponseID != previous {
		return "", 0, nil
	}
	seen, err := visible(b.inner(ctx, b.store()), s.Log()[:p.to])
	if err != nil {
		return "", 0, err
	}
	if n, ok := kept.Begins(seen, input, leftOut); ok {
		return previous, n, nil
	}
	if n := slices.IndexFunc(input, isAnswer); n > 0 {
		if found, _ := kept.Begins(seen, input[:n], func(item.Item) bool { return true }); found == n {
			return previous, n, nil
		}
	}
	if len(input) > 0 && isAnswer(input[0]) { // it sent no history
		return "", 0, nil
	}
	b.report(fmt.Errorf("agents: a client sent a history back that differs from that of %s: what it left out of it is missing", previous))
	return "", 0, nil
}

func isAnswer(it item.Item) bool { return it.Type() == item.TypeMCPApprovalResponse }

// lastNamed returns the last response that an item of the input belongs to, by its id.
func lastNamed(input []item.Item) string {
	for _, it := range slices.Backward(input) {
		id := it.ID()
		if isAnswer(it) {
			id = it.CallID()
		}
		_, rest, _ := strings.Cut(id, "_")
		list := strings.SplitN(strings.TrimPrefix(rest, "resp_"), "_", 3)
		if len(list) < 3 {
			continue
		}
		name := "resp_" + list[0] + "_" + list[1]
		if _, _, ok := parseID(name); ok {
			return name
		}
	}
	return ""
}

// leftOut reports whether clients leave items like this out of a history.
func leftOut(it item.Item) bool {
	switch it.Type() {
	case item.TypeReasoning, item.TypeMCPCall, item.TypeMCPApprovalRequest, item.TypeMCPApprovalResponse, item.TypeMCPListTools:
		return true
	}
	return false
}
