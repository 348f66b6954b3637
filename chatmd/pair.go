// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package chatmd

import (
	"fmt"

	"github.com/antiphon-go/antiphon/item"
)

// calledAs is a call of the file: its kind, and the line that it stands in.
type calledAs struct {
	custom bool
	line   int
}

// untyped is a response without a type and without an output attribute, which
// this program always writes: a person or an older program wrote it. custom is
// the kind that its item gets.
type untyped struct {
	callID string
	node   *node
	custom *bool
}

// called notes a call.
func (c *compiler) called(id string, custom bool, line int) {
	if c.calls == nil {
		c.calls = map[string][]calledAs{}
	}
	c.calls[id] = append(c.calls[id], calledAs{custom, line})
}

// giveKinds gives each response that does not say what kind of call it answers
// the kind of the calls that have its id, wherever they stand. Without that, the
// response would answer nothing, and the model would read that its call was
// interrupted. Where the calls of the id are of both kinds the file has to say.
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
