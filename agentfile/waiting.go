// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agentfile

import (
	"slices"
	"strconv"
	"strings"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/chatmd"
	"github.com/antiphon-go/antiphon/chatmd/transcript"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
)

// waitingIn returns the numbers of the calls that wait, as the remarks say.
func waitingIn(doc *chatmd.File) map[int]bool {
	waiting := map[int]bool{}
	for i, e := range doc.Elements {
		gap := doc.Source()[e.End:]
		if i+1 < len(doc.Elements) {
			gap = gap[:doc.Elements[i+1].Offset-e.End]
		}
		for line := range strings.Lines(gap) {
			rest, ok := strings.CutPrefix(strings.TrimSpace(line), transcript.AboutCall)
			if !ok {
				continue
			}
			if number, ok := strings.CutSuffix(rest, transcript.Waits); ok {
				if n, err := strconv.Atoi(number); err == nil {
					waiting[n] = true
				}
			} else if number, ok := strings.CutSuffix(rest, transcript.Started); ok {
				if n, err := strconv.Atoi(number); err == nil {
					delete(waiting, n)
				}
			}
		}
	}
	return waiting
}

// askedAbout are the entries for the calls that wait.
func askedAbout(items []item.Item, waiting map[int]bool) (bodies []session.Body) {
	number := 0
	for _, it := range items {
		if !it.IsCall() {
			continue
		}
		if number++; !waiting[number] {
			continue
		}
		asked := session.ApprovalAsked{CallID: it.CallID(), Number: number, Tool: it.Name(), Reason: "it was asked about in an earlier run"}
		if c, err := agent.CallOf(it); err == nil {
			asked.Tool, asked.Arguments, asked.Custom = c.Name, c.Arguments, c.Custom
		}
		bodies = append(bodies, asked)
	}
	return bodies
}

// unfinished reports whether a last line is the beginning of a remark.
func unfinished(line string) bool {
	return slices.ContainsFunc([]string{transcript.BrokeOff, transcript.AboutCall}, func(remark string) bool {
		return line != remark && strings.HasPrefix(remark, line) || remark == transcript.AboutCall && strings.HasPrefix(line, remark) && !strings.HasSuffix(line, "-->")
	})
}
