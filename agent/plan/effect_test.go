// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/antiphon-go/antiphon/agent/plan"
)

// P1: an effect is written as JSON and read as it was.
func TestEffectJSON(t *testing.T) {
	call := plan.CallRef{Seq: 5, Number: 2, CallID: "call \"a\""}
	for _, c := range []struct {
		effect plan.Effect
		want   string
	}{
		{plan.Ask{Turn: 3}, `{"effect":"ask","turn":3}`},
		{plan.Skip{Calls: []plan.Skipped{{CallRef: call, Reason: "no"}}}, `{"effect":"skip","calls":[{"entry":5,"number":2,"call_id":"call \"a\"","reason":"no"}]}`},
		{plan.Approve{Calls: []plan.CallRef{call}}, `{"effect":"approve","calls":[{"entry":5,"number":2,"call_id":"call \"a\""}]}`},
		{plan.Call{Calls: []plan.CallRef{call, {Seq: 6}}}, `{"effect":"call","calls":[{"entry":5,"number":2,"call_id":"call \"a\""},{"entry":6,"number":0,"call_id":""}]}`},
		{plan.Collapse{Outputs: []plan.Collapsed{{Seqs: []int64{3}, By: 7}}}, `{"effect":"collapse","outputs":[{"entries":[3],"by":7}]}`},
		{plan.Compact{Through: 9, Kept: []int64{4}, By: "summary", Before: 100, Replaced: 80}, `{"effect":"compact","through":9,"kept":[4],"by":"summary","before":100,"replaced":80}`},
		{plan.Stop{Why: plan.StopMaxTurns, Detail: "4 of 4"}, `{"effect":"stop","why":"max_turns","detail":"4 of 4"}`},
	} {
		got, err := plan.Marshal(c.effect)
		if err != nil || string(got) != c.want {
			t.Errorf("%#v: %s, %v", c.effect, got, err)
		}
		if again, err := plan.Unmarshal(got); err != nil || !reflect.DeepEqual(again, c.effect) {
			t.Errorf("%s was read as %#v, %v", got, again, err)
		}
	}
}

func TestEffectJSONRefuses(t *testing.T) {
	if _, err := plan.Marshal(nil); err == nil {
		t.Error("nil is written")
	}
	for data, want := range map[string]string{
		"":                               "cannot decode effect",
		"{}":                             `unknown effect ""`,
		`{"effect":"sing"}`:              `unknown effect "sing"`,
		`{"effect":"ask","mood":"glad"}`: "mood",
		`{"effect":"ask","turn":"3"}`:    "turn",
	} {
		if e, err := plan.Unmarshal([]byte(data)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %#v, %v; want %q", data, e, err, want)
		}
	}
}
