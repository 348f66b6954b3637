// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"

	"github.com/antiphon-go/antiphon/agenttest"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
)

// A table of conversations: what the model says, what the shop did, what the customer
// reads.
func TestSell(t *testing.T) {
	done := agenttest.Completed(item.Assistant("Thank you."))
	for _, c := range []struct {
		name    string
		replies []agenttest.Reply
		did     string
		left    int
		fails   string
	}{
		{"sold", []agenttest.Reply{agenttest.Completed(item.Call("c1", "order", `{"tea":"Darjeeling","boxes":2}`)), done}, `
			turn 1
			  order {"tea":"Darjeeling","boxes":2} = 2 of Darjeeling are on their way
			turn 2
			  > Thank you.
			stopped: answered`, 1, ""},
		{"too many", []agenttest.Reply{agenttest.Completed(item.Call("c1", "order", `{"tea":"Darjeeling","boxes":4}`)), done}, `
			turn 1
			  order {"tea":"Darjeeling","boxes":4} ! there are 3 boxes of Darjeeling
			turn 2
			  > Thank you.
			stopped: answered`, 3, ""},
		{"nonsense", []agenttest.Reply{agenttest.Completed(item.Call("c1", "order", `{"tea":"Darjeeling","boxes":0}`)), done}, `
			turn 1
			  order {"tea":"Darjeeling","boxes":0} ! …boxes…
			turn 2
			  > Thank you.
			stopped: answered`, 3, ""},
		{"the model is down", []agenttest.Reply{agenttest.Failure(401, "invalid_api_key", "wrong key")}, "", 3, "wrong key"},
	} {
		t.Run(c.name, func(t *testing.T) {
			shop, s := &Shop{Stock: map[string]int{"Darjeeling": 3}}, session.New()
			answer, err := shop.Sell(t.Context(), agenttest.Script(t, c.replies...), s, "Tea, please.")
			switch {
			case c.fails != "":
				if err == nil || !strings.Contains(err.Error(), c.fails) {
					t.Errorf("got %v, want an error with %q", err, c.fails)
				}
			case err != nil || answer != "Thank you.":
				t.Error(answer, err)
			default:
				agenttest.CheckTrajectory(t, s.Log(), c.did)
			}
			if n := shop.Stock["Darjeeling"]; n != c.left {
				t.Errorf("%d boxes are left, want %d", n, c.left)
			}
		})
	}
}

// A conversation with a real model was recorded once, with ANTIPHON_RECORD=Sell and a
// key, and is played back in each test. Here agenttest.Server is the real model.
func TestRecorded(t *testing.T) {
	file := t.TempDir() + "/sell.json"
	server := agenttest.NewServer(t, agenttest.Completed(item.Assistant("We are closed.")))
	t.Run("record", func(t *testing.T) {
		t.Setenv(agenttest.RecordVariable, "record")
		tape := agenttest.Record(t, file)
		client := server.Client()
		client.HTTP = tape.Client()
		if _, err := (&Shop{}).Sell(t.Context(), client, session.New(), "Tea?"); err != nil {
			t.Fatal(err)
		}
	})
	t.Run("replay", func(t *testing.T) {
		client := server.Client()
		client.HTTP = agenttest.Replay(t, file).Client()
		answer, err := (&Shop{}).Sell(t.Context(), client, session.New(), "Tea?")
		if err != nil || answer != "We are closed." {
			t.Error(answer, err)
		}
	})
}
