// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"testing"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/item"
)

// P5 T14: a call of every kind that a tool can run, or whose yes is asked for, is
// read with its id and its input. A new kind is read as the others are.
func TestCallOfEveryKind(t *testing.T) {
	for _, kind := range item.CallKinds() {
		input := `"x"`
		if kind.Tool != "" {
			input = `{"type":"exec"}`
		}
		it, err := item.ParseString(`{"type":"` + string(kind.Call) + `","id":"c1","call_id":"c1","name":"f","server_label":"s","execution":"client","` + kind.Input + `":` + input + `}`)
		if err != nil {
			t.Fatal(err)
		}
		call, err := agent.CallOf(it)
		if kind.Call == item.TypeComputerCall || kind.Call == item.TypeToolSearchCall {
			if err == nil {
				t.Errorf("a %s can be run: test it here", kind.Call)
			}
			continue
		}
		if err != nil || call.ID != "c1" || call.Arguments == "" || call.Name == "" || kind.Tool != "" && call.Name != kind.Tool {
			t.Errorf("%s is read as %+v, %v", kind.Call, call, err)
		}
	}
}
