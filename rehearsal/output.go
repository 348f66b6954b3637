// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package rehearsal

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/antiphon-go/antiphon/item"
)

// output is one output item, with what is needed to stream it.
type output struct {
	added  item.Item // as it stands when it begins
	done   item.Item
	wait   time.Duration // before it begins
	pieces []piece       // its text
}

// piece is some text of an output, sent after a wait.
type piece struct {
	wait time.Duration
	text string
}

func (o *output) text() string {
	var b strings.Builder
	for _, p := range o.pieces {
		b.WriteString(p.text)
	}
	return b.String()
}

// outputs groups the steps of a turn: says in a row are one message. It also
// returns the wait at the turn's end.
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

// naming makes the ids of one response. They depend on the request alone, and
// on no two places of a conversation are they the same.
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

// The phases of messages: on the way to calls, and after them. Schema:
// MessagePhase.
const (
	phaseCommentary = "commentary"
	phaseFinal      = "final_answer"
)

// build makes the output items of a turn.
func build(steps []step, name naming, req *item.Request) (list []output, tail time.Duration, err error) {
	list, kinds, tail := outputs(steps)
	phase := phaseFinal
	if slices.ContainsFunc(kinds, func(st step) bool { return st.tool != "" }) {
		phase = phaseCommentary
	}
	for i := range list {
		added, done := name.values(i, kinds[i], list[i].text())
		if m, ok := done.(*item.Message); ok {
			m.Phase, added.(*item.Message).Phase = phase, phase
		}
		if r, ok := done.(*item.Reasoning); ok && slices.Contains(req.Include, item.IncludeEncryptedReasoning) {
			r.EncryptedContent = base64.StdEncoding.EncodeToString([]byte("rehearsal " + r.ID))
		}
		if list[i].added, err = item.New(added); err != nil {
			return nil, 0, err
		}
		if list[i].done, err = item.New(done); err != nil {
			return nil, 0, err
		}
	}
	return list, tail, nil
}

// values returns an item as it begins and as it ends.
func (n naming) values(i int, st step, text string) (added, done item.Value) {
	switch st.verb {
	case verbReason:
		id := n.id("rs", i)
		return &item.Reasoning{ID: id}, &item.Reasoning{ID: id, Summary: []item.Part{&item.SummaryText{Text: text}}}
	case verbCall, verbCallRaw:
		c := item.FunctionCall{ID: n.id("fc", i), CallID: n.callID(i), Name: st.tool, Status: item.StatusInProgress}
		d := c
		d.Arguments, d.Status = text, item.StatusCompleted
		return &c, &d
	case verbCustom:
		c := item.CustomToolCall{ID: n.id("ctc", i), CallID: n.callID(i), Name: st.tool}
		d := c
		d.Input = text
		return &c, &d
	}
	m := item.Message{ID: n.id("msg", i), Role: item.RoleAssistant, Content: item.Parts(), Status: item.StatusInProgress}
	d := m
	d.Content, d.Status = item.Parts(textPart(text)), item.StatusCompleted
	return &m, &d
}

func textPart(text string) *item.OutputText {
	return &item.OutputText{Text: text, Annotations: "[]", Logprobs: "[]"}
}
