// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"context"
	"testing"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/agenttest"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/tool"
)

// A service that does the work of one key once must not take the payment of one
// conversation for that of another: conversations in memory have ids of their own, also
// where the endpoint counts its call ids from the beginning in each of them.
func TestKeysOfSessionsInMemory(t *testing.T) {
	keys := map[string]string{}
	pay := tool.Must("pay", "Pays.", func(ctx context.Context, _ struct{}) (string, error) {
		call, _ := tool.FromContext(ctx)
		if other, ok := keys[call.Key()]; ok {
			t.Errorf("the sessions %q and %q have the same key", other, call.Session)
		}
		keys[call.Key()] = call.Session
		return "paid", nil
	}, tool.ReadOnly())
	for range 3 {
		model := agenttest.Script(t, agenttest.Completed(item.Call("call_0", "pay", "{}")), agenttest.Completed(item.Assistant("Paid.")))
		a := &agent.Agent{Model: model, Tools: []tool.Tool{pay}}
		if _, err := a.Run(t.Context(), session.New(), item.User("Pay.")); err != nil {
			t.Fatal(err)
		}
	}
	if len(keys) != 3 {
		t.Errorf("%d calls ran", len(keys))
	}
}
