// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/antiphon-go/antiphon/agenttest"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/tool"
)

// P4: two calls of one reply that share a call id both run, and the second goes
// by another id from then on.
func TestCallsOfOneCallID(t *testing.T) {
	event := func(stage string, i int) string {
		arguments := ""
		if stage == "done" {
			arguments = fmt.Sprintf(`{\"text\":\"%d\"}`, i)
		}
		return fmt.Sprintf(`{"type":"response.output_item.%s","output_index":%d,"item":{"type":"function_call","id":"fc_%d","call_id":"echo","name":"echo","arguments":"%s","status":"completed"}}`, stage, i, i, arguments)
	}
	r := newRig(t, agenttest.Events(event("added", 0), event("added", 1), event("done", 0), event("done", 1),
		`{"type":"response.completed","response":{"id":"resp_1","status":"completed","output":[]}}`), agenttest.Completed(item.Assistant("done")))
	r.agent.Tools = []tool.Tool{echo()}
	r.run(item.User("go"))
	var calls, outputs []string
	for _, it := range r.last() {
		if it.IsCall() {
			calls = append(calls, it.CallID())
		}
		if it.IsOutput() {
			outputs = append(outputs, it.CallID())
		}
	}
	if len(calls) != 2 || calls[0] == calls[1] || !slices.Equal(calls, outputs) {
		t.Errorf("calls %q, outputs %q", calls, outputs)
	}
}
