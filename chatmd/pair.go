// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package chatmd

import (
	"fmt"

	"github.com/antiphon-go/antiphon/item"
)

// calledAs is the kind of a call in the file, and its line.
type calledAs struct {
	custom bool
	line   int
}

// untyped is a response with neither a type nor an output attribute, written by a
// person or an older program: this program always writes them. custom is the kind
// that its item gets.
type untyped struct {
	callID string
	node   *node
	custom *bool
}

// called records a call.
func (c *compiler) called(id string, custom bool, line int) {
	if c.calls == nil {
		c.calls = map[string][]calledAs{}
	}
	c.calls[id] = append(c.calls[id], calledAs{custom, line})
}

// giveKinds assigns a kind to each response without one: the kind of the calls with
// its id, anywhere in the file. Otherwise the response would answer no call, and the
// model would read that its call was interrupted. If calls of both kinds have the
// id, the file must state the kind.
func (c *compiler) giveKinds() {
	for _, u := range c.untyped {
		calls := c.calls[u.callID]
		if len(calls) == 0 {
			continue
		}
		*u.custom = calls[0].custom
		for _, other := range calls[1:] {
			if other.custom == calls[0].custom {
				continue
			}
			function, custom := calls[0].line, other.line
			if calls[0].custom {
				function, custom = custom, function
			}
			c.fail(u.node, fmt.Sprintf("<tool_response> does not say which call it answers: the call %q of line %d is a %s, that of line %d a %s",
				excerpt(u.callID), custom, item.TypeCustomToolCall, function, item.TypeFunctionCall),
				`write type="custom_tool_call" or type="function_call"`)
			break
		}
	}
}
