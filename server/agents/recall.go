// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agents

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/antiphon-go/antiphon/host"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/server"
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
	if n, ok := begins(seen, input, leftOut); ok {
		return previous, n, nil
	}
	if n := slices.IndexFunc(input, isAnswer); n > 0 {
		if found, _ := begins(seen, input[:n], func(item.Item) bool { return true }); found == n {
			return previous, n, nil
		}
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

// begins reports whether the input begins with all of a history, without items that may
// be left out, and goes on. n is how many items of the input are in the history.
func begins(history, input []item.Item, mayLack func(item.Item) bool) (n int, ok bool) {
	for _, it := range history {
		switch {
		case n < len(input) && isSame(it, input[n]):
			n++
		case !mayLack(it):
			return 0, false
		}
	}
	return n, 0 < n && n < len(input)
}

// isSame reports whether an item that a client sent is one of a history, and says the same. Clients
// leave out ids, and write a text that they received in parts as a string.
func isSame(stored, sent item.Item) bool {
	switch {
	case stored.Type() != sent.Type():
		return false
	case sent.Type() == item.TypeMessage:
		return sent.JSON() == stored.JSON() || saysSame(stored, sent, func(a, b *item.Message) bool {
			return a.Role == b.Role && a.Content.Display() == b.Content.Display()
		})
	case sent.CallID() != "":
		return sent.CallID() == stored.CallID() && callsSame(stored, sent)
	}
	return sent.ID() != "" && sent.ID() == stored.ID() && callsSame(stored, sent)
}

// callsSame reports whether a call or an output says what another one of the same type and id says.
func callsSame(stored, sent item.Item) bool {
	switch sent.Type() {
	case item.TypeFunctionCall:
		return saysSame(stored, sent, func(a, b *item.FunctionCall) bool { return a.Name == b.Name && sameJSON(a.Arguments, b.Arguments) })
	case item.TypeFunctionCallOutput:
		return saysSame(stored, sent, func(a, b *item.FunctionCallOutput) bool { return a.Output.Display() == b.Output.Display() })
	case item.TypeCustomToolCall:
		return saysSame(stored, sent, func(a, b *item.CustomToolCall) bool { return a.Name == b.Name && a.Input == b.Input })
	case item.TypeCustomToolCallOutput:
		return saysSame(stored, sent, func(a, b *item.CustomToolCallOutput) bool { return a.Output.Display() == b.Output.Display() })
	case item.TypeMCPCall:
		return saysSame(stored, sent, func(a, b *item.MCPCall) bool {
			return a.Name == b.Name && sameJSON(a.Arguments, b.Arguments) && (b.Output == "" || a.Output == b.Output) // clients leave outputs out
		})
	case item.TypeMCPApprovalResponse:
		return saysSame(stored, sent, func(a, b *item.MCPApprovalResponse) bool { return a.Approve == b.Approve })
	}
	a, _ := stored.Member("output") // of other outputs, such as screenshots
	b, sends := sent.Member("output")
	return !sends || sameJSON(string(a), string(b))
}

// saysSame compares two items of one type by what f looks at.
func saysSame[T any, P interface {
	*T
	item.Value
}](stored, sent item.Item, f func(a, b P) bool) bool {
	a, errA := item.As[T, P](stored)
	b, errB := item.As[T, P](sent)
	return errA == nil && errB == nil && f(a, b)
}

// sameJSON reports whether two texts are the same JSON, which clients write anew. A call without
// arguments may have an object without members.
func sameJSON(a, b string) bool {
	a, b = cmp.Or(a, "{}"), cmp.Or(b, "{}")
	x, y := jsontext.Value(a), jsontext.Value(b)
	return a == b || x.Format(jsontext.ReorderRawObjects(true)) == nil && y.Format(jsontext.ReorderRawObjects(true)) == nil && string(x) == string(y)
}
