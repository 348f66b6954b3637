// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agentfile

import (
	"bytes"
	"strings"

	"github.com/antiphon-go/antiphon/chatmd"
	"github.com/antiphon-go/antiphon/chatmd/transcript"
)

// brokenOff returns the numbers of the items behind which the remark stands.
func brokenOff(doc *chatmd.File, items []chatmd.Located) map[int]bool {
	broken := map[int]bool{}
	n := 0
	for i, e := range doc.Elements {
		gap := doc.Source()[e.End:]
		if i+1 < len(doc.Elements) {
			gap = gap[:doc.Elements[i+1].Offset-e.End]
		}
		for n < len(items) && items[n].Offset < e.End {
			n++
		}
		if n > 0 && strings.Contains(gap, transcript.BrokeOff) {
			broken[n-1] = true
		}
	}
	return broken
}

// whole returns how much of a transcript is whole; see [chatmd.Recover].
func whole(src []byte) int {
	n := chatmd.Recover(src)
	last := bytes.LastIndexByte(src, '\n') + 1
	if rest := string(src[last:]); n == len(src) && unfinished(rest) {
		return last
	}
	return n
}
