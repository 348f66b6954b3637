// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package export_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"
	"regexp"
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

// having are deliveries that wait for a session.
func having(of string, list ...session.Delivery) func(string) iter.Seq2[session.Delivery, error] {
	return func(id string) iter.Seq2[session.Delivery, error] {
		return func(yield func(session.Delivery, error) bool) {
			for _, d := range list {
				if id == of && !yield(d, nil) {
					return
				}
			}
		}
	}
}

func all(waiting iter.Seq2[session.Delivery, error]) (list []session.Delivery, err error) {
	for d, err := range waiting {
		if err != nil {
			return list, err
		}
		list = append(list, d)
	}
	return list, nil
}

// readBack reads sessions from lines.
func readBack(r io.Reader) (logs []export.Log, err error) {
	for line, err := range export.ReadJSONLines(r) {
		switch {
		case err == nil && line.Waiting != nil:
			last := &logs[len(logs)-1]
			var waiting []session.Delivery
			if last.Waiting != nil {
				waiting, _ = all(last.Waiting(last.Info.ID))
			}
			last.Waiting = having(last.Info.ID, append(waiting, *line.Waiting)...)
		case err != nil:
			return logs, err
		case line.Session != nil:
			logs = append(logs, export.Log{Info: *line.Session})
		case line.Blob != nil:
			last := &logs[len(logs)-1]
			id, data := line.Blob.ID, line.Blob.Data
			last.Blob = func(asked string) ([]byte, error) {
				if asked != id {
					return nil, nil
				}
				return data, nil
			}
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
// byte, those of subagents too.
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

// A place in a list of sessions means nothing in a file.
func TestJSONLinesCursor(t *testing.T) {
	got, err := readBack(bytes.NewReader(jsonLines(t, export.Log{Info: session.Info{ID: "s", Cursor: "3-1"}})))
	if err != nil || got[0].Info.ID != "s" || got[0].Info.Cursor != "" {
		t.Errorf("%+v, %v", got, err)
	}
}

// J3: a file that was cut short anywhere, or in which a byte is another, is an
// error that names a line.
func TestJSONLinesDamage(t *testing.T) {
	log := export.Log{Info: session.Info{ID: "a"}, Entries: []session.Entry{
		{Seq: 1, Body: session.InputItem{Item: item.User("one")}}, {Seq: 2, Body: session.RunStarted{}},
	}}
	data := jsonLines(t, log)
	for n := range len(data) - 1 { // without its last newline it is whole
		if _, err := readBack(bytes.NewReader(data[:n])); err == nil || !strings.HasPrefix(err.Error(), "line ") {
			t.Errorf("cut at %d: %v", n, err)
		} else if n > len(`{"format":"antiphon session"`) && !errors.Is(err, export.ErrCut) {
			t.Errorf("cut at %d, which is not said: %v", n, err)
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
	newer := bytes.Replace(data, []byte(`"version":2`), []byte(`"version":7,"more":{}`), 1)
	_, err := readBack(bytes.NewReader(newer))
	if !errors.Is(err, session.ErrNewer) || !strings.Contains(err.Error(), "7") || !strings.Contains(err.Error(), fmt.Sprint("up to version ", export.Version)) {
		t.Error(err)
	}
}

// J8: each line has a sum over those before it, so that a changed letter is an
// error that names the entry, also where nobody looks at the last line. Lines of
// version 1 have none.
func TestJSONLinesSums(t *testing.T) {
	log := export.Log{Info: session.Info{ID: "talk"}, Entries: []session.Entry{
		{Seq: 1, Body: session.InputItem{Item: item.User("one")}}, {Seq: 2, Body: session.InputItem{Item: item.User("two")}}, {Seq: 3, Body: session.Stopped{Why: "answered"}}}}
	data := string(jsonLines(t, log))
	unsealed := regexp.MustCompile(`,"sha256":"[0-9a-f]+"`).ReplaceAllString(data, "")
	if _, err := readBack(strings.NewReader(unsealed)); err != nil {
		t.Error(err)
	}
	for name, text := range map[string]string{
		"a letter":     strings.Replace(unsealed, "two", "tvo", 1),
		"its sum":      strings.Replace(unsealed, `"sum":"`, `"sum":"0`, 1),
		"other order":  strings.NewReplacer("one", "two", "two", "one").Replace(unsealed),
		"before a sum": strings.Replace(unsealed, "one", "two", 1),
	} {
		if _, err := readBack(strings.NewReader(text)); err == nil || name == "a letter" && !strings.Contains(err.Error(), `entry 2 of session "talk"`) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	old := regexp.MustCompile(`,"sum":"[0-9a-f]+"`).ReplaceAllString(strings.Replace(unsealed, `"version":2`, `"version":1`, 1), "")
	if strings.Contains(old, "sum") {
		t.Fatal(old)
	}
	if _, err := readBack(strings.NewReader(old)); err != nil {
		t.Errorf("version 1: %v", err)
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
		{Seq: 1, Body: session.InputItem{Item: file}},
		{Seq: 2, Body: session.TurnStarted{Turn: 1}},
		{Seq: 3, Body: session.OutputItem{Turn: 1, Item: item.Assistant(`So it is sk-live\_0123456789abcdef, &#115;k-live_0123456789abcdef, or [here](https://x.example/?key=` + secret + `)`)}},
		{Seq: 4, Body: session.OutputItem{Turn: 1, Item: item.Call("call_1", "env", `{"key":"\u0073k-live_0123456789abcdef","`+secret+`":1}`)}},
		{Seq: 5, Body: session.CallOutput{CallID: "call_1", Item: out}},
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
	var bodies []session.Body
	for _, e := range log.Entries {
		bodies = append(bodies, e.Body)
	}
	if d := cmp.Diff(told(t, bodies), told(t, file.Log())); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// told lists what a transcript tells of a log.
func told(t *testing.T, bodies []session.Body) (list []string) {
	for _, b := range bodies {
		switch b := b.(type) {
		case session.InputItem:
			list = append(list, "given "+compact(t, b.Item))
		case session.OutputItem:
			list = append(list, "received "+compact(t, b.Item))
		case session.CallOutput:
			list = append(list, "answered "+compact(t, b.Item))
		case session.TurnEnded:
			list = append(list, fmt.Sprintf("turn %d: %s %s", b.Turn, b.Status, b.ResponseID))
		case session.CallStarted:
			list = append(list, fmt.Sprintf("started %s %v", b.CallID, b.Repeatable))
		case session.RunStarted, session.TurnStarted, session.CallDropped:
			list = append(list, fmt.Sprintf("%T", b))
		}
	}
	return list
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
				session.InputItem{Item: item.User(text.Draw(rt, "user"))},
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
	f.Add(string(jsonLines(f, export.Log{Info: session.Info{ID: "a"}, Entries: []session.Entry{{Seq: 1, Body: session.RunStarted{}}, {Seq: 2, Body: session.InputItem{Item: item.User("one")}}}})))
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

// J13: what was left out of an output is in the lines, once; a log that names
// nothing is written as before.
func TestJSONLinesBlobs(t *testing.T) {
	whole := []byte(strings.Repeat("a long output\n", 9000))
	answer := func(id, text string) item.Item {
		it, err := item.Output(id, item.Text(text))
		if err != nil {
			t.Fatal(err)
		}
		return it
	}
	out := answer("c", "a long\n[125986 of 126000 bytes left out here. To read them, call read_output with id 03e522ad1a and offset 14]")
	log := export.Log{Info: session.Info{ID: "s"}, Entries: []session.Entry{
		{Seq: 1, Body: session.CallOutput{CallID: "c", Item: out}},
		{Seq: 2, Body: session.CallOutput{CallID: "d", Item: answer("d", "read_output with id nothing-here")}},
	}}
	if lines := jsonLines(t, log); !bytes.Contains(lines, []byte(`"version":2`)) {
		t.Errorf("without blobs: %s", lines)
	}
	log.Blob = func(id string) ([]byte, error) {
		if id == "03e522ad1a" {
			return whole, nil
		}
		return nil, nil
	}
	lines := jsonLines(t, log)
	back, err := readBack(bytes.NewReader(lines))
	if err != nil || len(back) != 1 || back[0].Blob == nil {
		t.Fatalf("%d sessions, %v", len(back), err)
	}
	if data, _ := back[0].Blob("03e522ad1a"); !bytes.Equal(data, whole) {
		t.Errorf("%d bytes came back of %d", len(data), len(whole))
	}
	if diff := cmp.Diff(spelled(t, log.Entries), spelled(t, back[0].Entries)); diff != "" {
		t.Errorf("entries (-want +got):\n%s", diff)
	}
	if again := jsonLines(t, back[0]); !bytes.Equal(again, lines) {
		t.Error("the same log gives other lines")
	}
	if _, err := readBack(bytes.NewReader(bytes.Replace(lines, []byte("YSBsb25n"), []byte("YSBsb25h"), 1))); err == nil {
		t.Error("a changed blob is taken for what was exported")
	}
}

// J13: what waits for a session is in the lines, byte for byte, unless an entry shows that it was taken meanwhile; a log for which
// nothing waits is written as before.
func TestJSONLinesWaiting(t *testing.T) {
	words, err := item.Parse([]byte(`{"role":"user","content":"a < b & c\u2028\n", "id" : "x"}`))
	if err != nil {
		t.Fatal(err)
	}
	waits := session.Delivery{Delivered: session.Delivered{Key: "1", By: "anna", From: "sessions say", Queued: true}, Bodies: []session.Body{session.InputItem{Item: words}, session.StopAsked{AfterTurn: true}}}
	taken := session.Delivery{Delivered: session.Delivered{Key: "2"}, Bodies: []session.Body{session.InputItem{Item: item.User("taken")}}}
	log := export.Log{Info: session.Info{ID: "s"}, Waiting: having("s", taken), Entries: []session.Entry{
		{Seq: 1, Body: session.Delivered{Key: "2", Entries: 1}}, {Seq: 2, Body: taken.Bodies[0]},
	}}
	if lines := jsonLines(t, log); !bytes.Contains(lines, []byte(`"version":2`)) || bytes.Contains(lines, []byte(`{"waiting"`)) {
		t.Errorf("nothing waits: %s", lines)
	}
	log.Waiting = having("s", taken, waits)
	lines := jsonLines(t, log)
	back, err := readBack(bytes.NewReader(lines))
	if err != nil || len(back) != 1 || back[0].Waiting == nil || !bytes.Contains(lines, []byte(`"version":4`)) {
		t.Fatalf("%d sessions, %v: %s", len(back), err, lines)
	}
	if got, _ := all(back[0].Waiting("s")); len(got) != 1 || !cmp.Equal(got[0], waits, cmp.Comparer(func(a, b item.Item) bool { return a == b })) {
		t.Errorf("%v came back, not %v", got, waits)
	}
	if again := jsonLines(t, back[0]); !bytes.Equal(again, lines) {
		t.Error("the same log gives other lines")
	}
	if _, err := readBack(bytes.NewReader(bytes.Replace(lines, []byte("a < b"), []byte("a > b"), 1))); err == nil {
		t.Error("a changed delivery is taken for what was exported")
	}
}
