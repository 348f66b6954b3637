// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package access

import (
	"fmt"
	"testing"
)

// V5: names that clients invent do not fill the memory, and nothing is uncounted.
func TestInventedNames(t *testing.T) {
	var c counts
	first := Used{"shop", "tour", "completed"}
	c.used(&Use{Project: "shop", Agent: "tour", Status: "completed"})
	const n = 3 * mostUsed
	for i := range n {
		c.used(&Use{Project: "shop", Agent: fmt.Sprintf("m%d", i), Status: "completed"})
		c.used(&Use{Project: fmt.Sprintf("p%d", i), Agent: "tour", Status: "failed"})
	}
	c.used(&Use{Project: "shop", Agent: "tour", Status: "completed"})
	all := int64(0)
	for _, sum := range c.now.Used {
		all += sum.Responses
	}
	if kinds := len(c.now.Used); kinds > 2*mostUsed+3 || all != 2*n+2 || c.now.Used[first].Responses != 2 {
		t.Errorf("%d kinds, %d responses, %+v", kinds, all, c.now.Used[first])
	}
}

// V5: names that the clients of one project invent do not take the place of those of another project.
func TestInventedNamesOfOthers(t *testing.T) {
	var c counts
	for i := range 3 * mostUsed {
		c.used(&Use{Project: "loud", Agent: fmt.Sprintf("m%d", i), Status: "completed"})
	}
	for i := range 50 {
		kind := Used{"quiet", fmt.Sprintf("agent%d", i), "completed"}
		if c.used(&Use{Project: kind.Project, Agent: kind.Agent, Status: kind.Status}); c.now.Used[kind].Responses != 1 {
			t.Fatalf("%+v is not counted by its name", kind)
		}
	}
	if n := c.now.Used[Used{"loud", "other", "completed"}].Responses; n == 0 {
		t.Error("nothing is counted as other")
	}
}
