// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package export_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/antiphon-go/antiphon/agentfile"
	"github.com/antiphon-go/antiphon/export"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
)

func jsonLines(t testing.TB, log export.Log) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := export.JSONLines(&out, log); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// readBack reads sessions from lines.
func readBack(r io.Reader) (logs []export.Log, err error) {
	for line, err := range export.ReadJSONLines(r) {
		switch {
		case err != nil:
			return logs, err
		case line.Session != nil:
			logs = append(logs, export.Log{Info: *line.Session})
		default:
			last := &logs[len(logs)-1]
			last.Entries = append(last.Entries, line.Entry)
		}
	}
	return logs, nil
}

// spelled are the entries as they are stored, to the byte.
func spelled(t testing.TB, entries []session.Entry) (list []string) {
	t.Helper()
	for _, e := range entries {
		line, err := session.AppendEntry(nil, e)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, string(line))
	}
	return list
}

// J3: what is read from an export are the entries that were written, byte for
// byte, those of nested runs too.
func TestJSONLinesThereAndBack(t *testing.T) {
	log := demo(t)
	data := jsonLines(t, log)
	got, err := readBack(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != 2 || !got[1].Info.Nested || got[1].Info.Parent != log.Info.ID {
		t.Fatalf("%d sessions, want the one and the harbour master's: %+v", len(got), got[len(got)-1].Info)
	}
	if d := cmp.Diff(spelled(t, log.Entries), spelled(t, got[0].Entries)); d != "" {
		t.Error(d)
	}
	inner, err := log.Nested(got[1].Info.ID)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(spelled(t, inner), spelled(t, got[1].Entries)); d != "" {
		t.Error(d)
	}
	again := got[0]
	again.Nested = func(id string) ([]session.Entry, error) {
		if id != got[1].Info.ID {
			return nil, session.ErrNotFound
		}
		return got[1].Entries, nil
	}
	if !bytes.Equal(jsonLines(t, again), data) {
		t.Error("the second export differs from the first")
	}
}

// J3: a file that was cut short anywhere, or in which a byte is another, is an
// error that names a line.
func TestJSONLinesDamage(t *testing.T) {
	log := export.Log{Info: session.Info{ID: "a"}, Entries: []session.Entry{
		{Seq: 1, Body: session.Given{Item: item.User("one")}}, {Seq: 2, Body: session.RunStarted{}},
	}}
	data := jsonLines(t, log)
	for n := range len(data) - 1 { // without its last newline it is whole
		if _, err := readBack(bytes.NewReader(data[:n])); err == nil || !strings.HasPrefix(err.Error(), "line ") {
			t.Errorf("cut at %d: %v", n, err)
		}
	}
	for n := range data {
		other := bytes.Clone(data)
		other[n] ^= 1
		logs, err := readBack(bytes.NewReader(other))
		if err == nil && n < bytes.LastIndex(data, []byte(`"sha256"`)) {
			t.Errorf("another byte at %d is not seen: %s", n, other)
		}
		if err != nil && !strings.HasPrefix(err.Error(), "line ") {
			t.Errorf("another byte at %d: %v, %d sessions", n, err, len(logs))
		}
	}
	for name, text := range map[string]string{
		"empty":      "",
		"other":      "[]\n",
		"behind":     string(data) + "{}\n",
		"twice":      string(data) + string(data),
		"entry gone": strings.Replace(string(data), `{"seq":1,`, `{"seq":2,`, 1),
	} {
		if _, err := readBack(strings.NewReader(text)); err == nil {
			t.Errorf("%s: no error", name)
		} else {
			t.Log(name+":", err)
		}
	}
}

// J5: a file of a newer version is refused with both versions named.
func TestJSONLinesNewer(t *testing.T) {
	data := jsonLines(t, export.Log{})
	newer := bytes.Replace(data, []byte(`"version":1`), []byte(`"version":7,"more":{}`), 1)
	_, err := readBack(bytes.NewReader(newer))
	if !errors.Is(err, session.ErrNewer) || !strings.Contains(err.Error(), "7") || !strings.Contains(err.Error(), "1") {
		t.Error(err)
	}
}

// J6: what the caller names as a secret is in no export.
func TestNoSecrets(t *testing.T) {
	const secret = "sk-live_0123456789abcdef"
	out := output(t, "call_1", "KEY="+secret)
	file, err := item.UserParts(&item.InputText{Text: "my key is " + secret}, &item.InputFile{Filename: secret + ".env", FileData: dataURI("text/plain", []byte("KEY="+secret+"\n"))})
	if err != nil {
		t.Fatal(err)
	}
	log := export.Log{Info: session.Info{ID: "a", Title: secret}, Hide: func(s string) string { return strings.ReplaceAll(s, secret, "[redacted]") }, Entries: []session.Entry{
		{Seq: 1, Body: session.Given{Item: file}},
		{Seq: 2, Body: session.TurnStarted{Turn: 1}},
		{Seq: 3, Body: session.Received{Turn: 1, Item: item.Assistant(`So it is sk-live\_0123456789abcdef, &#115;k-live_0123456789abcdef, or [here](https://x.example/?key=` + secret + `)`)}},
		{Seq: 4, Body: session.Received{Turn: 1, Item: item.Call("call_1", "env", `{"key":"\u0073k-live_0123456789abcdef","`+secret+`":1}`)}},
		{Seq: 5, Body: session.Answered{CallID: "call_1", Item: out}},
		{Seq: 6, Body: session.Stopped{Why: "error", Detail: secret}},
	}}
	var markdown bytes.Buffer
	if err := export.ChatMarkdown(&markdown, log); err != nil {
		t.Fatal(err)
	}
	html := string(page(t, log))
	for name, text := range map[string]string{"HTML": html, "JSON lines": string(jsonLines(t, log)), "ChatMarkdown": markdown.String()} {
		if strings.Contains(text, secret) || !strings.Contains(text, "[redacted]") {
			t.Errorf("%s holds the secret:\n%s", name, text)
		}
	}
	if strings.Contains(html, "S0VZPXNrLWxpdmV") {
		t.Error("the file holds the secret")
	}
}

// M1, J3: the transcript of a session is read back to the same items, and to the
// same calls that wait and replies that broke off.
func TestChatMarkdownThereAndBack(t *testing.T) {
	log := demo(t)
	var out bytes.Buffer
	if err := export.ChatMarkdown(&out, log); err != nil {
		t.Fatal(err)
	}
	path := t.TempDir() + "/talk.md"
	write(t, path, out.Bytes())
	file, err := agentfile.Load(t.Context(), path, agentfile.Options{})
	if err != nil {
		t.Fatalf("%v\n%s", err, out.Bytes())
	}
	defer file.Close()
	var want, got []string
	for _, e := range log.Entries {
		switch b := e.Body.(type) {
		case session.Given:
			want = append(want, compact(t, b.Item))
		case session.Received:
			want = append(want, compact(t, b.Item))
		case session.Answered:
			want = append(want, compact(t, b.Item))
		}
	}
	broken := 0
	for i, b := range file.Log() {
		switch b := b.(type) {
		case session.Given:
			got = append(got, compact(t, b.Item))
		case session.TurnEnded:
			broken++
		default:
			t.Errorf("entry %d: %T", i, b)
		}
	}
	if d := cmp.Diff(want, got); d != "" || broken != 1 {
		t.Errorf("%d broken off (-want +got):\n%s", broken, d)
	}
}

// compact spells an item by its typed form, so that equal items are equal texts.
func compact(t testing.TB, it item.Item) string {
	t.Helper()
	v, err := it.Decode()
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint(item.Must(v).JSON())
}

// J3: whatever texts a log holds, its lines are read back as they were.
func TestJSONLinesAnyText(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		text := rapid.OneOf(rapid.String(), rapid.StringMatching(`[\x00-\x7f]{0,20}`))
		var log export.Log
		for i := range rapid.IntRange(0, 5).Draw(rt, "entries") {
			bodies := []session.Body{
				session.Given{Item: item.User(text.Draw(rt, "user"))},
				session.Stopped{Why: text.Draw(rt, "why"), Detail: text.Draw(rt, "detail")},
				session.Approval{CallID: text.Draw(rt, "call"), Reason: text.Draw(rt, "reason"), Remember: &session.Rule{Tool: text.Draw(rt, "tool")}},
			}
			log.Entries = append(log.Entries, session.Entry{Seq: int64(i) + 1, Body: rapid.SampledFrom(bodies).Draw(rt, "body")})
		}
		log.Info.Name = text.Draw(rt, "name")
		got, err := readBack(bytes.NewReader(jsonLines(t, log)))
		if err != nil {
			rt.Fatal(err)
		}
		if d := cmp.Diff(spelled(t, log.Entries), spelled(t, got[0].Entries)); d != "" {
			rt.Fatal(d)
		}
	})
}

// FuzzReadJSONLines: no bytes make the reader panic, and what it accepts whole
// is written again as it was read.
func FuzzReadJSONLines(f *testing.F) {
	f.Add(string(jsonLines(f, export.Log{Info: session.Info{ID: "a"}, Entries: []session.Entry{{Seq: 1, Body: session.RunStarted{}}, {Seq: 2, Body: session.Given{Item: item.User("one")}}}})))
	f.Add(`{"format":"antiphon session","version":1,"session":{"id":"a","entries":0}}` + "\n" + `{"end":{"sessions":1,"entries":0}}`)
	f.Fuzz(func(t *testing.T, text string) {
		logs, err := readBack(strings.NewReader(text))
		if err != nil || len(logs) != 1 {
			return
		}
		again, err := readBack(bytes.NewReader(jsonLines(t, logs[0])))
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(spelled(t, logs[0].Entries), spelled(t, again[0].Entries)); d != "" {
			t.Error(d)
		}
	})
}
