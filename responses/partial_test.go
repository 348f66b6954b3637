// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package responses_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/antiphon-go/antiphon/agenttest"
	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/responses"
)

// S2: the items of a reply that broke off are those that an Accumulator finds in
// its events, however the server names them.
func TestPartialErrorHasEachItem(t *testing.T) {
	const one, two = `{"type":"function_call","id":"fc_1","call_id":"c1","name":"n","arguments":"{}"}`, `{"type":"function_call","id":"fc_2","call_id":"c2","name":"n","arguments":"{}"}`
	const blank, bare = `{"type":"function_call","call_id":"c1","name":"n","arguments":"{\"a\":1}"}`, `{"type":"function_call","call_id":"c1","name":"n","arguments":"{\"a\":2}"}`
	done := func(index, it string) string {
		return `{"type":"response.output_item.done",` + index + `"item":` + it + `}`
	}
	for name, test := range map[string]struct{ events, want []string }{
		"one place for all":          {[]string{done(`"output_index":0,`, one), done(`"output_index":0,`, two)}, []string{one, two}},
		"no places":                  {[]string{done("", one), done("", two)}, []string{one, two}},
		"one name for all":           {[]string{done(`"output_index":0,`, blank), done(`"output_index":1,`, bare)}, []string{blank, bare}},
		"neither place nor id":       {[]string{done("", blank), done("", bare)}, []string{blank, bare}},
		"twice":                      {[]string{done(`"output_index":0,`, one), done(`"output_index":0,`, one)}, []string{one}},
		"twice, without a place":     {[]string{done("", one), done("", one)}, []string{one}},
		"one that cannot be read":    {[]string{done("", one), done("", `5`), done("", two)}, []string{one, two}},
		"no more than was announced": {[]string{`{"type":"response.output_item.added","output_index":0,"item":` + one + `}`, done(`"output_index":1,`, two)}, []string{two}},
	} {
		t.Run(name, func(t *testing.T) {
			var acc api.Accumulator
			var told []string
			for _, text := range test.events {
				ev, err := api.ParseEvent([]byte(text))
				if err != nil {
					t.Fatal(err)
				}
				items, _ := acc.Add(ev)
				told = append(told, asTexts(items)...)
			}
			srv := agenttest.NewServer(t, agenttest.Events(test.events...))
			var failure error
			for _, err := range srv.Client().Stream(t.Context(), hello()) {
				failure = err
			}
			var partial *responses.PartialError
			if !errors.As(failure, &partial) {
				t.Fatalf("got %v", failure)
			}
			if diff := cmp.Diff(test.want, asTexts(partial.Items)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(told, asTexts(partial.Items)); diff != "" {
				t.Errorf("(-accumulated +got):\n%s", diff)
			}
		})
	}
}
