// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agentfile_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/agentfile"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/trust"
)

// TestTranscriptOlder proves that what people and earlier programs wrote, which
// has no marks, is read as it was: a call without a response has an unknown
// outcome, a message answers, and two kinds of remarks have a meaning. What is
// added has marks, behind which remarks have none. M9
func TestTranscriptOlder(t *testing.T) {
	const (
		call  = "<tool_call tool_call_id=\"call_1\" function_name=\"f\">\n{}\n</tool_call>\n"
		reply = "<assistant id=\"msg_1\">I look.</assistant>\n"
		broke = "<!-- the reply broke off here -->\n"
		waits = "<!-- call 1 waits for an approval -->\n"
		began = "<!-- call 1 was started -->\n"
	)
	for text, want := range map[string]string{
		reply:                      "nothing",
		reply + broke:              "I look.",
		call:                       "Whether it took effect is not known",
		reply + call + broke:       "I look.",
		call + waits:               "waits",
		call + waits + began:       "Whether it took effect is not known",
		call + waits + "<run/>\n":  "waits",
		"<run/>\n" + reply + broke: "nothing",
		"<run/>\n<turn number=\"1\"/>\n" + reply + broke:                                                                          "I look.",
		"<run/>\n<turn number=\"1\"/>\n" + call + "<turn_end number=\"1\"/>\n":                                                    "tool not found",
		"<run/>\n<turn number=\"1\"/>\n" + call + "<call tool_call_id=\"call_1\" state=\"started\"/>\n<turn_end number=\"1\"/>\n": "Whether it took effect is not known",
	} {
		dir := t.TempDir()
		out := write(t, prompt+text, dir, "talk.md")
		f, s := open(t, out, out)
		if want == "waits" {
			if w, err := agent.PendingApprovals(t.Context(), s); err != nil || len(w) != 1 || w[0].Number != 1 {
				t.Errorf("%s: %v, %v", text, w, err)
			}
			continue
		}
		got := "nothing"
		for _, it := range nextRequest(t, f, s) {
			got += it.JSON()
		}
		if !strings.Contains(got, want) || strings.Contains(got, "call_1") != strings.Contains(want, " not ") {
			t.Errorf("%s: %s", text, got)
		}
	}
}

// TestTranscriptMarks proves that marks are checked, and that one which names
// what is not there says nothing.
func TestTranscriptMarks(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "talk.md")
	for _, text := range []string{"<call/>", `<call state="done"/>`, `<decision/>`, `<decision kind="x"/>`, "<turn>"} {
		write(t, prompt+text, path)
		if _, err := agentfile.Load(t.Context(), path, agentfile.Options{Consent: trust.Everything}); err == nil || !strings.Contains(err.Error(), "talk.md:3:") {
			t.Errorf("%s: %v", text, err)
		}
	}
	write(t, prompt+`<turn number="x"/><turn_end/><turn/>
<call tool_call_id="nobody" state="started"/><call tool_call_id="nobody" state="waiting"/><call state="withdrawn"/>
<decision kind="collapsed" items="9 1" by="1"/><decision kind="collapsed" items="1"/><decision kind="quarantined" items="x"/>
<user>A <turn/> and a <run/> in a message are text, as is </call>.</user>`, path)
	f := load(t, path, agentfile.Options{Consent: trust.Everything})
	if n := len(f.Items); n != 3 || len(f.Warnings) > 0 || !strings.Contains(f.Items[2].JSON(), item.User("A <turn/> and a <run/> in a message are text, as is </call>.").JSON()[40:]) {
		t.Errorf("%v %v", f.Items, f.Warnings)
	}
	f, s := open(t, path, path)
	if input := nextRequest(t, f, s); len(input) != 3 {
		t.Errorf("%v", input)
	}
}
