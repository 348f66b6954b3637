// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agentfile_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/antiphon-go/antiphon/agentfile"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/trust"
)

// M8: long payloads go into files beside the transcript, under numbers, whatever
// the call is called; all of it reads back.
func TestPayloadFiles(t *testing.T) {
	long := strings.Repeat("a line |RAW </tool_response>\n", 2000)
	bodies := []session.Body{
		session.InputItem{Item: item.User(long)},
		session.TurnStarted{Turn: 1},
		session.OutputItem{Turn: 1, Item: item.Must(&item.FunctionCall{CallID: "../../../etc/passwd", Name: "../x\x00", Arguments: `{"text":"` + strings.Repeat("x", agentfile.MaxInline) + `"}`})},
		session.OutputItem{Turn: 1, Item: item.Must(&item.CustomToolCall{CallID: "c2", Name: "p", Input: "short"})},
		session.TurnEnded{Turn: 1, Status: item.StatusCompleted},
		session.CallOutput{CallID: "../../../etc/passwd", Item: item.Must(&item.FunctionCallOutput{CallID: "../../../etc/passwd", Output: item.Text(long)})},
		session.CallOutput{CallID: "c2", Item: item.Must(&item.CustomToolCallOutput{CallID: "c2", Output: item.Parts(&item.InputText{Text: long}, &item.InputImage{ImageURL: "data:image/png;base64,AAAA"})})},
	}
	for flag, files := range map[string]int{"": 3, " show_tool_call": 3, ` show_tool_call="false"`: 4} {
		dir := t.TempDir()
		path := write(t, "<config model=\"m\""+flag+"/>\n"+prompt, dir, "agent.md")
		out := filepath.Join(dir, "the talk.md")
		_, s := open(t, path, out)
		appendTo(t, s, bodies...)
		names, err := os.ReadDir(filepath.Join(dir, ".chatmd", "the talk.md"))
		names = slices.DeleteFunc(names, func(e os.DirEntry) bool { return e.Name() == "lock" })
		if err != nil || len(names) != files {
			t.Fatalf("%q: %v, %v", flag, names, err)
		}
		for i, n := range names {
			if n.Name() != fmt.Sprintf("%d.json", i+1) {
				t.Errorf("a file %s", n.Name())
			}
		}
		text := read(t, out)
		if strings.Count(text, "<doc src=\".chatmd/the talk.md/") != files || strings.Contains(text, "local></") {
			t.Errorf("%q:\n%.3000s", flag, text)
		}
		f, s := open(t, path, out)
		want := append([]item.Item{}, f.Items[:2]...)
		want = append(want, said(bodies)...)
		if fmt.Sprint(texts(t, f.Items)) != fmt.Sprint(texts(t, want)) {
			t.Errorf("%q: %d items, want %d", flag, len(f.Items), len(want))
		}
		appendTo(t, s, session.TurnStarted{Turn: 2}, session.OutputItem{Turn: 2, Item: item.Must(&item.FunctionCall{CallID: "c3", Name: "f", Arguments: `"` + long + `"`})})
		if _, err := os.Stat(filepath.Join(dir, ".chatmd", "the talk.md", fmt.Sprintf("%d.json", files+1))); err != nil {
			t.Error(err)
		}
		if again := read(t, out); !strings.HasPrefix(again, text) {
			t.Error("the transcript was not only appended to")
		}
	}
}

// J1 M8: a payload without its element is passed over, and never written over.
func TestPayloadOfCrashedRun(t *testing.T) {
	dir := t.TempDir()
	path, out := write(t, prompt, dir, "agent.md"), filepath.Join(dir, "talk.md")
	left := write(t, "torn", dir, ".chatmd", "talk.md", "7.json")
	_, s := open(t, path, out)
	long := strings.Repeat("x", agentfile.MaxInline+1)
	appendTo(t, s, session.TurnStarted{Turn: 1}, session.OutputItem{Turn: 1, Item: item.Must(&item.FunctionCall{CallID: "c", Name: "f", Arguments: long})})
	if read(t, left) != "torn" || read(t, filepath.Join(dir, ".chatmd", "talk.md", "8.json")) != long {
		t.Error("the file of another run was written over")
	}
}

// M8: where a payload cannot be kept, nothing is written and the run is told.
func TestPayloadCannotBeKept(t *testing.T) {
	dir := t.TempDir()
	path, out := write(t, prompt, dir, "agent.md"), filepath.Join(dir, "talk.md")
	_, s := open(t, path, out)
	appendTo(t, s, session.InputItem{Item: item.User("hi")})
	before := read(t, out)
	if err := os.RemoveAll(filepath.Join(dir, ".chatmd")); err != nil {
		t.Skip(err) // the lock is in it
	}
	write(t, "no folder", dir, ".chatmd")
	_, err := s.Append(t.Context(), session.TurnStarted{Turn: 1}, session.OutputItem{Turn: 1, Item: item.Must(&item.FunctionCall{CallID: "c", Name: "f", Arguments: strings.Repeat("x", agentfile.MaxInline+1)})})
	if err == nil || read(t, out) != before {
		t.Errorf("%v\n%s", err, read(t, out))
	}
}

// TestPayloadOfAnother proves that a payload is found beside its transcript alone,
// and only if it is the one that the transcript names: nothing of another
// conversation is read or sent. K7 M8
func TestPayloadOfAnother(t *testing.T) {
	long := strings.Repeat("secret of project one ", 2000)
	for _, older := range []bool{false, true} {
		dir := t.TempDir()
		path := write(t, prompt, dir, "agent.md")
		one, two := filepath.Join(dir, "one", "talk.md"), filepath.Join(dir, "two", "talk.md")
		write(t, "", dir, "two", "x")
		write(t, "", dir, "one", "x")
		for _, out := range []string{one, two} {
			_, s := open(t, path, out)
			appendTo(t, s, session.TurnStarted{Turn: 1}, session.OutputItem{Turn: 1, Item: item.Call("c", "f", "{}")}, session.TurnEnded{Turn: 1, Status: item.StatusCompleted},
				session.CallStarted{CallID: "c"}, session.CallOutput{CallID: "c", Item: item.Must(&item.FunctionCallOutput{CallID: "c", Output: item.Text(long + out)})})
			if text := read(t, out); older {
				write(t, regexp.MustCompile(` sha256="[0-9a-f]{64}"`).ReplaceAllString(text, ""), out)
			} else if strings.Count(text, `<doc src=".chatmd/talk.md/1.json" local sha256="`) != 1 {
				t.Fatal(text)
			}
			load(t, out, agentfile.Options{Consent: trust.Everything})
		}
		mine := filepath.Join(dir, "two", ".chatmd", "talk.md", "1.json")
		if err := os.Remove(mine); err != nil {
			t.Fatal(err)
		}
		o := agentfile.Options{Workspace: filepath.Join(dir, "one")}
		_, err := agentfile.Load(t.Context(), two, o)
		if err == nil || !strings.Contains(err.Error(), "two/talk.md:") || !strings.Contains(err.Error(), "<doc> cannot be read: no such file") {
			t.Errorf("older %v, its payload is gone: %v", older, err)
		}
		write(t, long+"garbled", mine)
		_, err = agentfile.Load(t.Context(), two, o)
		if older != (err == nil) || err != nil && !strings.Contains(err.Error(), "<doc> does not have the content that the transcript recorded: .chatmd/talk.md/1.json") {
			t.Errorf("older %v, another payload: %v", older, err)
		}
	}
}

// M8: files of older programs beside their transcripts are read.
func TestOlderPayloads(t *testing.T) {
	dir := t.TempDir()
	write(t, `{"file":"a"}`, dir, ".chatmd", "0.tool-call.call_1.json")
	write(t, "%PDF-1.4 as text", dir, ".chatmd", "0.tool-call-result.call_1.json")
	path := write(t, `<user>hi</user>
<tool_call tool_call_id="call_1" function_name="f" id="fc_1">
	<doc src="./.chatmd/0.tool-call.call_1.json" local>
</tool_call>
<tool_response tool_call_id="call_1" id="0">
	<doc src="./.chatmd/0.tool-call-result.call_1.json" local>
</tool_response>
`, dir, "talk.md")
	f := load(t, path, agentfile.Options{Consent: trust.Everything})
	got := fmt.Sprint(texts(t, f.Items[1:]))
	if want := `[{"arguments":"{\"file\":\"a\"}","call_id":"call_1","id":"fc_1","name":"f","type":"function_call"} {"call_id":"call_1","output":"%PDF-1.4 as text","type":"function_call_output"}]`; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
