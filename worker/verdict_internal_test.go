// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"strings"
	"testing"

	"github.com/antiphon-go/antiphon/session/queue"
)

// D4: work that no worker can do is parked with what is missing, and work that was parked for
// this is ready again as soon as a worker can do it; an operator's decision stays.
func TestVerdict(t *testing.T) {
	const lacks = needed + "a worker with the label gpu"
	for name, c := range map[string]struct {
		w                 queue.Work
		why               string
		forEver, hopeless bool
		to                queue.State
		reason            string // what the reason contains
	}{
		"ready, and can be done":                     {w: queue.Work{State: queue.Ready}},
		"ready, and another worker may do it":        {w: queue.Work{State: queue.Ready}, why: lacks},
		"ready, and nobody does it":                  {w: queue.Work{State: queue.Ready}, why: lacks, hopeless: true, to: queue.Parked, reason: lacks},
		"due after a time, and nobody does it":       {w: queue.Work{State: queue.Waiting}, why: lacks, hopeless: true, to: queue.Parked, reason: lacks},
		"its worker is lost, and nobody does it":     {w: queue.Work{State: queue.Running, Worker: "anna"}, why: lacks, hopeless: true, to: queue.Parked, reason: "it was begun by anna, which died or was cut off"},
		"its worker is lost, and another may do it":  {w: queue.Work{State: queue.Running, Worker: "anna"}, why: lacks},
		"parked for what is there now":               {w: queue.Work{State: queue.Parked, Reason: lacks}, to: queue.Ready, reason: "a worker that can do it is there"},
		"parked for what is still missing":           {w: queue.Work{State: queue.Parked, Reason: lacks}, why: lacks, hopeless: true},
		"parked by an operator":                      {w: queue.Work{State: queue.Parked, Reason: "wrong branch"}},
		"waits for an approval that gets a deadline": {w: queue.Work{State: queue.Waiting}, forEver: true, to: queue.Ready, reason: "its approval has a deadline now"},
		"the same, and this worker cannot do it":     {w: queue.Work{State: queue.Waiting}, why: lacks, forEver: true, hopeless: true},
	} {
		to, reason := verdict(c.w, c.why, c.forEver, c.hopeless)
		if to != c.to || !strings.Contains(reason, c.reason) || (reason == "") != (c.to == "") {
			t.Errorf("%s: %q, %q", name, to, reason)
		}
	}
}
