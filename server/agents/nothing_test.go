// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agents_test

import (
	"net/http"
	"strings"
	"testing"
)

// U3, V1: a request with nothing to answer, or with a limit that the endpoint of the model does not take, is the client's
// mistake, and leaves nothing behind.
func TestNothingToAnswer(t *testing.T) {
	w := serving(t, "", "again\nturn\n  say Hi: {{question}}\n", nil)
	const system, user, said = `{"role":"system","content":"s"}`, `{"role":"user","content":"u"}`, `{"role":"assistant","content":"a"}`
	for _, test := range []struct{ path, body, param string }{
		{"responses", `"input":[` + system + `]`, "input"},
		{"responses", `"input":[{"role":"developer","content":"s"}],"background":true`, "input"},
		{"responses", `"input":[` + said + `],"stream":true`, "input"},
		{"responses", `"input":[` + user + `,` + said + `]`, "input"},
		{"responses", `"input":"",` + `"instructions":"x"`, "input"},
		{"responses", `"input":[{"role":"user","content":[{"type":"text","text":"a"}]}]`, "input[0].content[0].type"},
		{"responses", `"input":[` + said + `,` + system + `,` + user + `]`, ""},
		{"responses", `"input":[` + user + `,` + system + `]`, ""},
		{"chat/completions", `"messages":[` + system + `]`, "messages"},
		{"chat/completions", `"messages":[` + said + `]`, "messages"},
		{"chat/completions", `"messages":[` + system + `,` + user + `,` + said + `]`, "messages"},
		{"chat/completions", `"messages":[` + system + `,` + user + `],"max_tokens":5`, "max_completion_tokens"},
		{"chat/completions", `"messages":[` + user + `],"max_completion_tokens":15,"stream":true`, "max_completion_tokens"},
		{"chat/completions", `"messages":[` + user + `,` + said + `,` + user + `],"max_tokens":16`, ""},
	} {
		status, text := w.send(http.MethodPost, test.path, `{"model":"it",`+test.body+`}`)
		if test.param == "" && (status != http.StatusOK || strings.Contains(text, `"failed"`)) ||
			test.param != "" && (status != http.StatusBadRequest || !strings.Contains(text, `"param": "`+test.param+`"`)) {
			t.Errorf("%s: %d %s", test.body, status, text)
		}
	}
	first := w.create(`{"model":"it","input":"one"}`)
	w.refused(http.MethodPost, "responses", `{"model":"it","previous_response_id":"`+first.ID+`","input":[`+said+`]}`, "nothing that the agent could answer")
	w.same(first)
	second := w.create(`{"model":"it","input":"two","previous_response_id":"` + first.ID + `"}`)
	if got := kinds(second); got != "message:Hi: two" || strings.Split(first.ID, "_")[1] != strings.Split(second.ID, "_")[1] {
		t.Errorf("%s, %s, %s", got, first.ID, second.ID)
	}
}
