// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package kept

import (
	"cmp"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/antiphon-go/antiphon/item"
)

// Begins reports whether the input begins with all of a history, without items that may
// be left out, and goes on. n is how many items of the input are in the history.
func Begins(history, input []item.Item, mayLack func(item.Item) bool) (n int, ok bool) {
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
