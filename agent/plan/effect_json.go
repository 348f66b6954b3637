// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// written is the JSON form of every effect: its name and its members.
type written struct {
	Effect   string      `json:"effect"`
	Turn     int         `json:"turn,omitzero"`
	Calls    []Skipped   `json:"calls,omitzero"`
	Outputs  []Collapsed `json:"outputs,omitzero"`
	Through  int64       `json:"through,omitzero"`
	Kept     []int64     `json:"kept,omitzero"`
	By       string      `json:"by,omitzero"`
	Before   int64       `json:"before,omitzero"`
	Replaced int64       `json:"replaced,omitzero"`
	Why      StopReason  `json:"why,omitzero"`
	Detail   string      `json:"detail,omitzero"`
}

// Marshal encodes an effect as one JSON object, such as {"effect":"ask","turn":3}.
// Another process decodes it with [Unmarshal]. It returns an error only for a nil
// effect.
func Marshal(e Effect) ([]byte, error) {
	var w written
	switch e := e.(type) {
	case Ask:
		w = written{Effect: "ask", Turn: e.Turn}
	case Skip:
		w = written{Effect: "skip", Calls: e.Calls}
	case Approve:
		w = written{Effect: "approve", Calls: bare(e.Calls)}
	case Call:
		w = written{Effect: "call", Calls: bare(e.Calls)}
	case Collapse:
		w = written{Effect: "collapse", Outputs: e.Outputs}
	case Compact:
		w = written{Effect: "compact", Through: e.Through, Kept: e.Kept, By: e.By, Before: e.Before, Replaced: e.Replaced}
	case Stop:
		w = written{Effect: "stop", Why: e.Why, Detail: e.Detail}
	default:
		return nil, fmt.Errorf("plan: not an effect: %T", e)
	}
	return json.Marshal(&w, jsontext.AllowInvalidUTF8(true)) // a call's id may be any bytes; its entry number identifies it
}

// Unmarshal decodes the output of [Marshal]. It returns an error for an effect or a
// member that it does not know, which a newer version may have written.
func Unmarshal(data []byte) (Effect, error) {
	var w written
	if err := json.Unmarshal(data, &w, json.RejectUnknownMembers(true)); err != nil {
		return nil, fmt.Errorf("plan: cannot decode effect: %w", err)
	}
	switch w.Effect {
	case "ask":
		return Ask{w.Turn}, nil
	case "skip":
		return Skip{w.Calls}, nil
	case "approve":
		return Approve{refs(w.Calls)}, nil
	case "call":
		return Call{refs(w.Calls)}, nil
	case "collapse":
		return Collapse{w.Outputs}, nil
	case "compact":
		return Compact{Through: w.Through, Kept: w.Kept, By: w.By, Before: w.Before, Replaced: w.Replaced}, nil
	case "stop":
		return Stop{w.Why, w.Detail}, nil
	}
	return nil, fmt.Errorf("plan: unknown effect %q", w.Effect)
}

func bare(calls []CallRef) (list []Skipped) {
	for _, c := range calls {
		list = append(list, Skipped{CallRef: c})
	}
	return list
}

func refs(calls []Skipped) (list []CallRef) {
	for _, c := range calls {
		list = append(list, c.CallRef)
	}
	return list
}
