// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agentfile_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/antiphon-go/antiphon/agentfile"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/trust"
)

const prompt = "<system>Be brief.</system>\n<user>What is there?</user>\n"

func must(t *testing.T, raw string) item.Item {
	t.Helper()
	it, err := item.ParseString(raw)
	if err != nil {
		t.Fatal(err)
	}
	return it
}

// talk is what a run records, with items of all kinds.
func talk(t *testing.T) []session.Body {
	return []session.Body{
		session.RunStarted{},
		session.InputItem{Item: item.User("And:\n|RAW </user> <user> é\r\n")},
		session.TurnStarted{Turn: 1},
		session.OutputItem{Turn: 1, Item: must(t, `{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"Hm."}],"encrypted_content":"xyz"}`)},
		session.OutputItem{Turn: 1, Item: must(t, `{"type":"message","id":"msg_1","role":"assistant","status":"completed","content":[{"type":"output_text","text":"I look.","annotations":[],"logprobs":[]}]}`)},
		session.OutputItem{Turn: 1, Item: must(t, `{"type":"function_call","id":"fc_1","call_id":"call_1","name":"read_file","arguments":"{\"path\": \"x\"}","status":"completed"}`)},
		session.OutputItem{Turn: 1, Item: must(t, `{"type":"custom_tool_call","id":"ct_1","call_id":"call_2","name":"apply","input":"*** a <patch>","status":"completed"}`)},
		session.OutputItem{Turn: 1, Item: must(t, `{"type":"invented_tomorrow","id":"x_1","deep":{"a":[1,2.50,"é"]}}`)},
		session.TurnEnded{Turn: 1, Status: item.StatusCompleted},
		session.Approval{CallID: "call_1", Allowed: true},
		session.CallStarted{CallID: "call_1"},
		session.CallOutput{CallID: "call_1", Item: must(t, `{"type":"function_call_output","call_id":"call_1","output":"a text\n"}`)},
		session.CallOutput{CallID: "call_2", Item: must(t, `{"type":"custom_tool_call_output","call_id":"call_2","output":[{"type":"input_text","text":"see"},{"type":"input_image","image_url":"data:image/png;base64,AAAA"}]}`)},
		session.TurnStarted{Turn: 2},
		session.OutputItem{Turn: 2, Item: must(t, `{"type":"message","id":"msg_2","role":"assistant","status":"completed","content":[{"type":"output_text","text":"There is x.","annotations":[],"logprobs":[]}]}`)},
		session.TurnEnded{Turn: 2, Status: item.StatusCompleted},
		session.Stopped{Why: "answered"},
	}
}

// said are the items of a log.
func said(bodies []session.Body) (list []item.Item) {
	for _, b := range bodies {
		switch b := b.(type) {
		case session.InputItem:
			list = append(list, b.Item)
		case session.OutputItem:
			list = append(list, b.Item)
		case session.CallOutput:
			list = append(list, b.Item)
		}
	}
	return list
}

// TestTranscriptRoundTrip proves that what is appended entry by entry is read
// back as equal items, that each append leaves a file in order that begins with
// the one before, and that a second opening goes on with it. M1 M9
func TestTranscriptRoundTrip(t *testing.T) {
	dir := t.TempDir()
	path, out := write(t, prompt, dir, "agent.md"), filepath.Join(dir, "talk.md")
	f, s := open(t, path, out)
	want, before := slices.Clone(f.Items), ""
	for _, b := range talk(t) {
		appendTo(t, s, b)
		want = append(want, said([]session.Body{b})...)
		if _, started := b.(session.RunStarted); started {
			if _, err := os.Stat(out); !errors.Is(err, fs.ErrNotExist) {
				t.Error("a run with nothing in it makes a file")
			}
			continue
		}
		text := read(t, out)
		if !strings.HasPrefix(text, before) {
			t.Fatalf("%T changed what was written", b)
		}
		before = text
		if d := cmp.Diff(texts(t, want), texts(t, load(t, out, agentfile.Options{Consent: trust.Everything}).Items)); d != "" {
			t.Fatalf("%T: %s", b, d)
		}
	}
	if !strings.HasPrefix(before, prompt) {
		t.Errorf("it does not begin with the prompt:\n%s", before)
	}
	if left, err := filepath.Glob(out + "*"); err != nil || len(left) != 1 {
		t.Errorf("files beside it: %v %v", left, err)
	}

	f, s = open(t, path, out)
	appendTo(t, s, session.InputItem{Item: item.User("more")})
	if got := read(t, out); got[:len(before)] != before {
		t.Error("the second run changed what was written")
	}
	if input := nextRequest(t, f, s); len(input) != len(want)+1 {
		t.Errorf("%d items in the request, want %d", len(input), len(want)+1)
	}
}

// TestTranscriptResumes proves that a transcript knows a run that went on in another
// process. M1
func TestTranscriptResumes(t *testing.T) {
	dir := t.TempDir()
	path, out := write(t, prompt, dir, "agent.md"), filepath.Join(dir, "talk.md")
	_, s := open(t, path, out)
	appendTo(t, s, session.RunStarted{}, session.TurnStarted{Turn: 1}, session.OutputItem{Turn: 1, Item: item.Assistant("There"), Partial: true},
		session.RunStarted{Resumes: true}, session.TurnStarted{Turn: 2}, session.OutputItem{Turn: 2, Item: item.Assistant("There is x.")})
	_, s = open(t, path, out)
	var resumes []bool
	for e := range s.Entries() {
		if b, ok := e.Body.(session.RunStarted); ok {
			resumes = append(resumes, b.Resumes)
		}
	}
	if !slices.Equal(resumes, []bool{false, true}) {
		t.Errorf("its runs go on: %v", resumes)
	}
}

// TestTranscriptConflict proves that a transcript that somebody else writes to,
// who does not ask for its lock, is left alone. M9 J2
func TestTranscriptConflict(t *testing.T) {
	dir := t.TempDir()
	path, out := write(t, prompt, dir, "agent.md"), filepath.Join(dir, "talk.md")
	more := session.InputItem{Item: item.User("more")}
	_, s := open(t, path, out)
	write(t, "by hand", out)
	if _, err := s.Append(t.Context(), more); !errors.Is(err, session.ErrConflict) || !strings.Contains(err.Error(), "another process wrote to it") {
		t.Errorf("another writer of a new file: %v", err)
	}
	if got := read(t, out); got != "by hand" {
		t.Errorf("the file is now %q", got)
	}
	if err := os.Remove(out); err != nil {
		t.Fatal(err)
	}

	_, s = open(t, path, out)
	appendTo(t, s, more)
	text := read(t, out) + "<user>by hand</user>\n"
	write(t, text, out)
	if _, err := s.Append(t.Context(), more); !errors.Is(err, session.ErrConflict) {
		t.Errorf("another writer: %v", err)
	}
	if got := read(t, out); got != text {
		t.Errorf("the file:\n%s", got)
	}
	if got := read(t, out+".cut"); !strings.Contains(got, "more") {
		t.Errorf("what was to be added was kept as %q", got)
	}
	if err := os.Remove(out + ".cut"); err != nil {
		t.Fatal(err)
	}

	if err := os.Remove(out); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Append(t.Context(), more); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file that is gone: %v", err)
	}
	if left, _ := filepath.Glob(out + "*"); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

// TestTranscriptLock proves that one has a transcript, by whatever path, until its
// file is closed, and that nothing of the lock is left behind. J2
func TestTranscriptLock(t *testing.T) {
	dir := t.TempDir()
	path, out := write(t, prompt, dir, "agent.md"), filepath.Join(dir, "talk.md")
	link := filepath.Join(dir, "link.md")
	if err := os.Symlink(out, link); err != nil {
		t.Skip(err)
	}
	other := filepath.Join(dir, "other.md")
	for range 2 { // one that is to be made, and one that is there
		if _, err := os.Stat(out); err == nil && runtime.GOOS != "windows" {
			if err := os.Link(out, other); err != nil {
				t.Fatal(err)
			}
		}
		f, s := open(t, path, out)
		for _, name := range []string{out, link, other} {
			if _, err := os.Stat(name); name != out && err != nil {
				continue
			}
			_, _, err := agentfile.OpenTranscript(t.Context(), path, name, agentfile.Options{Consent: trust.Everything})
			holder := fmt.Sprintf("process %d on ", os.Getpid())
			if !errors.Is(err, session.ErrBusy) || name != other && !strings.Contains(err.Error(), holder) {
				t.Errorf("%s: %v", name, err)
			}
		}
		appendTo(t, s, session.InputItem{Item: item.User("more")})
		if err := errors.Join(f.Close(), f.Close()); err != nil {
			t.Fatal(err)
		}
		_ = os.Remove(other) // where it was made
		if entries, err := os.ReadDir(dir); err != nil || len(entries) != 3 {
			t.Errorf("%v %v", entries, err)
		}
	}
	write(t, "notes of mine", out) // what cannot be opened is not locked either
	for range 2 {
		if _, _, err := agentfile.OpenTranscript(t.Context(), path, out, agentfile.Options{Consent: trust.Everything}); err == nil || errors.Is(err, session.ErrBusy) {
			t.Error(err)
		}
	}
}

// TestTranscriptLasts proves that a new transcript and what is kept beside it are
// for their owner alone, that the folder is synced after each new name, and that
// what a crash left of a file that was not there yet is removed. J1 J6
func TestTranscriptLasts(t *testing.T) {
	dir := t.TempDir()
	path, out := write(t, "<config show_tool_call=\"false\"/>\n"+prompt, dir, "agent.md"), filepath.Join(dir, "talk.md")
	names := map[string]bool{}
	defer agentfile.WatchSync(func(folder string) {
		entries, err := os.ReadDir(folder)
		if err != nil {
			t.Error(err)
		}
		for _, e := range entries {
			names[e.Name()] = true
		}
	})()
	draft := write(t, prompt, dir, "talk.md.4711.new")
	mine := write(t, prompt, dir, "talk.md.new")
	_, s := open(t, path, out)
	if _, err := os.Stat(draft); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the draft is there: %v", err)
	}
	read(t, mine)
	appendTo(t, s, talk(t)...)
	text := read(t, out)
	write(t, text+"<user", out)
	open(t, path, out)
	for _, name := range []string{"talk.md", ".chatmd", ".chatmd/talk.md", ".chatmd/talk.md/1.json", "talk.md.cut"} {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if !names[filepath.Base(name)] {
			t.Errorf("%s: the folder is not synced", name)
		}
		if mode := info.Mode().Perm(); mode&0o077 != 0 && runtime.GOOS != "windows" {
			t.Errorf("%s: %v", name, mode)
		}
	}
}

// TestTranscriptNoNewline proves that a file whose last line has no end, as
// editors leave it, is gone on with on a line of its own.
func TestTranscriptNoNewline(t *testing.T) {
	dir := t.TempDir()
	for _, tail := range []string{"", "\n", "\r\n", " ", "<!-- a remark -->", "<user>by hand</user>"} {
		path := write(t, prompt+tail, dir, "agent.md")
		n := len(load(t, path, agentfile.Options{Consent: trust.Everything}).Items)
		_, s := open(t, path, path)
		appendTo(t, s, session.InputItem{Item: item.User("one")}, session.InputItem{Item: item.User("two")})
		appendTo(t, s, session.InputItem{Item: item.User("three")})
		if got := read(t, path); !strings.HasPrefix(got, prompt+tail) || strings.Contains(got, "\n\n\n") {
			t.Errorf("%q: %q", tail, got)
		}
		if got := load(t, path, agentfile.Options{Consent: trust.Everything}).Items; len(got) != n+3 {
			t.Errorf("%q: %d items, want %d", tail, len(got), n+3)
		}
	}
}

// TestTranscriptTorn proves that a transcript opens wherever a crash cut it,
// that the piece cut off is kept, and that the next request pairs. M3 P1 P2
func TestTranscriptTorn(t *testing.T) {
	dir := t.TempDir()
	path, whole := write(t, prompt, dir, "agent.md"), filepath.Join(dir, "talk.md")
	_, s := open(t, path, whole)
	appendTo(t, s, talk(t)...)
	full := read(t, whole)
	step := 2
	if testing.Short() {
		step = 41
	}
	for end := len(prompt); end <= len(full); end += step {
		out := write(t, full[:end], dir, "torn.md")
		if err := os.RemoveAll(out + ".cut"); err != nil {
			t.Fatal(err)
		}
		f, s := open(t, path, out)
		kept, cut := read(t, out), ""
		if len(f.Warnings) > 0 {
			cut = strings.TrimSuffix(read(t, out+".cut"), "\n")
			if w := f.Warnings[0].Error(); len(f.Warnings) > 1 || !strings.Contains(w, out+".cut") {
				t.Errorf("byte %d: %v", end, f.Warnings)
			}
		}
		if kept+cut != full[:end] {
			t.Fatalf("byte %d: %q and %q are not %q", end, kept, cut, full[:end])
		}
		if strings.Contains(kept, `<turn_end number="2"`) {
			continue // nothing is left to ask
		}
		if input := nextRequest(t, f, s); input == nil {
			t.Errorf("byte %d: nothing to ask", end)
		}
	}
}

// TestTranscriptNotMine proves that a file that is not a transcript is not
// touched.
func TestTranscriptNotMine(t *testing.T) {
	dir := t.TempDir()
	path := write(t, prompt, dir, "agent.md")
	for _, text := range []string{"notes of mine\n<user", "<user>\nRAW|\nnever ended\n</user>\n<user>\nx", "\x00\x01"} {
		out := write(t, text, dir, "notes.txt")
		if _, _, err := agentfile.OpenTranscript(t.Context(), path, out, agentfile.Options{Consent: trust.Everything}); err == nil {
			t.Errorf("%q: no error", text)
		}
		if read(t, out) != text {
			t.Errorf("%q: the file is now %q", text, read(t, out))
		}
		if _, err := os.Stat(out + ".cut"); err == nil {
			t.Errorf("%q: a piece was cut off", text)
		}
	}
	for out, want := range map[string]string{
		dir:                                   "directory",
		filepath.Join(dir, "nope", "talk.md"): "the folder",
	} {
		if _, _, err := agentfile.OpenTranscript(t.Context(), path, out, agentfile.Options{Consent: trust.Everything}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", out, err)
		}
	}
	out := write(t, prompt, dir, "talk.md")
	if _, _, err := agentfile.OpenTranscript(t.Context(), filepath.Join(dir, "nope.md"), out, agentfile.Options{Consent: trust.Everything}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no agent: %v", err)
	}
}

// TestTranscriptBrokeOff proves that a turn that breaks off behind a message
// that is whole is asked again, with a session in memory as with a file, and
// that somebody who answers it by hand is heard instead. E4 M9
func TestTranscriptBrokeOff(t *testing.T) {
	dir := t.TempDir()
	path, out := write(t, prompt, dir, "agent.md"), filepath.Join(dir, "talk.md")
	const mark = "<turn_end number=\"1\" status=\"failed\" reason=\"gone\"/>\n"
	_, s := open(t, path, out)
	turn := talk(t)[2:5]
	appendTo(t, s, turn...)
	appendTo(t, s, session.TurnEnded{Turn: 1, Status: item.StatusFailed, Reason: "gone"}, session.Stopped{Why: "provider_error"})
	text := read(t, out)
	if !strings.HasSuffix(text, "</assistant>\n"+mark) {
		t.Errorf("the transcript:\n%s", text)
	}

	f, s := open(t, path, out)
	if input := nextRequest(t, f, s); len(input) != 5 {
		t.Errorf("the request: %v", input)
	}
	if got := read(t, out); got != text {
		t.Errorf("a turn in which nothing was said left\n%s", got[len(text):])
	}
	f = load(t, out, agentfile.Options{Consent: trust.Everything})
	mem, err := f.Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if input := nextRequest(t, f, mem); len(input) != 5 {
		t.Errorf("the request of a session in memory: %v", input)
	}

	for end := len(text) - len(mark); end < len(text); end++ { // M3
		torn := write(t, text[:end], dir, "torn.md")
		f, s := open(t, path, torn)
		if got := read(t, torn); got != text[:len(text)-len(mark)] && end < len(text)-1 {
			t.Errorf("byte %d: %q", end, got[len(text)-len(mark):])
		}
		if input := nextRequest(t, f, s); len(input) != 5 { // without the mark it broke off too
			t.Errorf("byte %d: %v", end, input)
		}
	}

	write(t, text+"<assistant>By hand.</assistant>\n", out)
	f, s = open(t, path, out)
	if input := nextRequest(t, f, s); input != nil {
		t.Errorf("answered by hand: %v", input)
	}
}

// TestTranscriptOwn proves that a transcript tells what a run said to the model from what
// a person said, and that a mark which lost its message says nothing about another one.
func TestTranscriptOwn(t *testing.T) {
	owns := func(s *session.Session) (list []string) {
		for e := range s.Entries() {
			if b, ok := e.Body.(session.InputItem); ok {
				m, err := item.As[item.Message](b.Item)
				if err != nil {
					t.Fatal(err)
				}
				list = append(list, fmt.Sprintf("%s %t", m.Content.Display(), b.Own))
			}
		}
		return list
	}
	dir := t.TempDir()
	path, out := write(t, prompt, dir, "agent.md"), filepath.Join(dir, "talk.md")
	_, s := open(t, path, out)
	appendTo(t, s, session.RunStarted{}, session.InputItem{Item: item.User("How many?")}, session.TurnStarted{Turn: 1},
		session.OutputItem{Turn: 1, Item: item.Assistant("many")}, session.TurnEnded{Turn: 1, Status: item.StatusCompleted},
		session.InputItem{Item: item.User("It is not a number."), Own: true}, session.TurnStarted{Turn: 2},
		session.OutputItem{Turn: 2, Item: item.Assistant("3")}, session.TurnEnded{Turn: 2, Status: item.StatusCompleted})
	_, s = open(t, path, out)
	if d := cmp.Diff([]string{"Be brief. false", "What is there? false", "How many? false", "It is not a number. true"}, owns(s)); d != "" {
		t.Error(d)
	}
	appendTo(t, s, session.InputItem{Item: item.User("And who?")})
	edited := regexp.MustCompile(`(?s)<user>[^<]*It is not a number\.[^<]*</user>\n`).ReplaceAllString(read(t, out), "")
	if edited == read(t, out) {
		t.Fatal("the message is not in the transcript as expected")
	}
	write(t, edited, out)
	_, s = open(t, path, out)
	if d := cmp.Diff([]string{"Be brief. false", "What is there? false", "How many? false", "And who? false"}, owns(s)); d != "" {
		t.Error(d)
	}
}
