// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package rehearsal

import (
	"encoding/base64"
	"fmt"
	"slices"
	"time"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/item"
)

// output is one output item.
type output struct {
	begin  item.Value    // without its text
	wait   time.Duration // delay before it begins
	pieces []piece       // its text
}

// piece is some text of an output, sent after a delay.
type piece struct {
	wait time.Duration
	text string
}

// outputs groups the steps of a turn: consecutive say statements are one message.
// tail is the delay at the end of the turn.
func outputs(steps []step) (list []output, kinds []step, tail time.Duration) {
	var wait time.Duration
	for _, st := range steps {
		last := len(kinds) - 1
		switch {
		case st.verb == verbPause:
			wait += st.pause
			continue
		case st.verb == verbSay && last >= 0 && kinds[last].verb == verbSay:
			list[last].pieces = append(list[last].pieces, piece{wait, "\n" + st.text})
		default:
			kinds = append(kinds, st)
			list = append(list, output{wait: wait, pieces: []piece{{0, st.text}}})
		}
		wait = 0
	}
	return list, kinds, wait
}

// naming makes the ids of one response. They depend only on the request, and are
// unique within a conversation.
type naming struct {
	hash string // of the request
	turn int    // of the conversation, from 1
}

func (n naming) id(prefix string, index int) string {
	return fmt.Sprintf("%s%s%s%02d", prefix, idMark, n.hash, index)
}

func (n naming) callID(index int) string {
	return fmt.Sprintf("call_%d_%d_%s", n.turn, index+1, n.hash[:12])
}

// The phases of messages: before calls, and the final answer. Schema: MessagePhase.
const (
	phaseCommentary = "commentary"
	phaseFinal      = "final_answer"
)

// build makes the output items of a turn.
func build(steps []step, name naming, req *api.Request) (list []output, tail time.Duration) {
	list, kinds, tail := outputs(steps)
	phase := phaseFinal
	if slices.ContainsFunc(kinds, func(st step) bool { return st.tool != "" }) {
		phase = phaseCommentary
	}
	for i, st := range kinds {
		switch st.verb {
		case verbReason:
			r := &item.Reasoning{ID: name.id("rs", i)}
			if slices.Contains(req.Include, api.IncludeEncryptedReasoning) {
				r.EncryptedContent = base64.StdEncoding.EncodeToString([]byte("rehearsal " + r.ID))
			}
			list[i].begin = r
		case verbCall, verbCallRaw:
			list[i].begin = &item.FunctionCall{ID: name.id("fc", i), CallID: name.callID(i), Name: st.tool}
		case verbCustom:
			list[i].begin = &item.CustomToolCall{ID: name.id("ctc", i), CallID: name.callID(i), Name: st.tool}
		default:
			list[i].begin = &item.Message{ID: name.id("msg", i), Phase: phase}
		}
	}
	return list, tail
}
