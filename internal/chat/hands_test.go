// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/internal/person"
	"github.com/antiphon-go/antiphon/internal/tui"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/tool"
)

// TestEditInEditor proves that the arguments of a call are edited in the person's editor, and that what
// is not JSON, unchanged, or not edited at all asks again. A5
func TestEditInEditor(t *testing.T) {
	call := tool.Call{ID: "c1", Name: "look", Arguments: `{"path":"a.txt"}`}
	for _, tt := range []struct {
		name, becomes string
		err           error
		typed         string
		want, says    string
	}{
		{name: "edited", becomes: "{\n  \"path\": \"b.txt\"\n}\n", want: `{"path":"b.txt"}`},
		{name: "no JSON", becomes: "b.txt", says: "that is not JSON"},
		{name: "unchanged", becomes: "{\n  \"path\": \"a.txt\"\n}", says: "the arguments stay as they are"},
		{name: "failed", err: errors.New("exit status 1"), says: "the editor: exit status 1"},
		{name: "no editor", err: tui.ErrNoEditor, typed: `{"path":"c.txt"}`, want: `{"path":"c.txt"}`, says: "the arguments in place of these:"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var screen bytes.Buffer
			who := person.New(strings.NewReader("e\n"+tt.typed+"\nn\n"), &screen)
			who.Edits = func(text, suffix string) (string, error) {
				if text != "{\n  \"path\": \"a.txt\"\n}" || suffix != ".json" {
					t.Errorf("the editor has %q%s", text, suffix)
				}
				return tt.becomes, tt.err
			}
			v, err := who.Approve(t.Context(), agent.ApprovalRequest{Call: call})
			if err != nil || v.Arguments != tt.want || v.Allow != (tt.want != "") {
				t.Errorf("decided %+v, %v", v, err)
			}
			if !strings.Contains(screen.String(), tt.says) {
				t.Errorf("the screen:\n%s", screen.String())
			}
		})
	}
}

// TestLostWhileEditing proves that a call is not refused by a person whose terminal is lost while they type other
// arguments.
func TestLostWhileEditing(t *testing.T) {
	var screen bytes.Buffer
	who := person.New(strings.NewReader("e\n"), &screen)
	v, err := who.Approve(t.Context(), agent.ApprovalRequest{Call: tool.Call{ID: "c1", Name: "look", Arguments: "{}"}})
	if !errors.Is(err, agent.ErrNobody) || v.By != "" {
		t.Errorf("decided %+v, %v", v, err)
	}
}

// TestRanIsKept proves that the output of a shell line waits for the next message also if the person
// leaves before, that it moves with the conversation, and that its file ends with it. J1
func TestRanIsKept(t *testing.T) {
	data := t.TempDir()
	talk := func(id string) (*dialogue, *bytes.Buffer) {
		var screen bytes.Buffer
		return &dialogue{conf: Config{Data: filepath.Join(data, "antiphon")}, info: session.Info{ID: id}, std: Streams{Err: &screen}}, &screen
	}
	kept := func() (list []string) {
		files, err := os.ReadDir(filepath.Join(data, "antiphon", "drafts"))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			if info, err := f.Info(); err != nil || info.Mode().Perm()&0o077 != 0 && os.PathSeparator == '/' {
				t.Errorf("%s: %v, %v", f.Name(), info.Mode(), err)
			}
			list = append(list, f.Name())
		}
		return list
	}
	one, _ := talk("a")
	one.ran = []string{ranHead + "make test\n3 failed", ranHead + "ls\nx"}
	one.keepRan()
	one.undraft()
	two, screen := talk("a")
	two.recallRan()
	if !slices.Equal(two.ran, one.ran) || !strings.Contains(screen.String(), "the output of ! make test goes with your next message") {
		t.Errorf("recalled %q:\n%s", two.ran, screen.String())
	}
	two.recallRan()
	if len(two.ran) != 2 {
		t.Errorf("recalled twice: %q", two.ran)
	}
	two.info.ID = "fork"
	blocks := filepath.Join(data, "antiphon", "drafts", "fork.ran.part") // then nothing can be written
	if err := os.Mkdir(blocks, 0o700); err != nil {
		t.Fatal(err)
	}
	two.keepRan()
	if got := kept(); !slices.Equal(got, []string{"a.ran", "fork.ran.part"}) || !strings.Contains(screen.String(), "!! the output is lost if you leave before") {
		t.Errorf("kept in %q:\n%s", got, screen.String())
	}
	if err := os.Remove(blocks); err != nil {
		t.Fatal(err)
	}
	two.keepRan()
	if got := kept(); !slices.Equal(got, []string{"fork.ran"}) {
		t.Errorf("kept in %q", got)
	}
	two.ran = nil
	two.keepRan()
	if got := kept(); len(got) != 0 {
		t.Errorf("kept in %q", got)
	}
	if other, _ := talk("b"); other.ran != nil {
		t.Errorf("another conversation has %q", other.ran)
	}
}

// TestLocksAreSwept proves that a chat removes the locks of drafts that others, which were killed, have left behind,
// and not those that are held.
func TestLocksAreSwept(t *testing.T) {
	data := t.TempDir()
	locks := filepath.Join(data, "antiphon", "draft-locks")
	held := &dialogue{conf: Config{Data: filepath.Join(data, "antiphon")}, info: session.Info{ID: "held"}}
	held.draft()
	defer held.undraft()
	long := time.Now().Add(-48 * time.Hour)
	write(t, filepath.Join(locks, "killed"), "")
	for _, name := range []string{"held", "killed"} {
		if err := os.Chtimes(filepath.Join(locks, name), long, long); err != nil {
			t.Fatal(err)
		}
	}
	next := &dialogue{conf: Config{Data: filepath.Join(data, "antiphon")}, info: session.Info{ID: "next"}}
	next.draft()
	defer next.undraft()
	var left []string
	entries, err := os.ReadDir(locks)
	for _, e := range entries {
		left = append(left, e.Name())
	}
	if err != nil || !slices.Equal(left, []string{"held", "next"}) {
		t.Errorf("%v: the locks are %q", err, left)
	}
}

// TestDraftOfItsOwn proves that two terminals with one conversation, or with new ones of one file, do
// not share a draft, and that what a terminal left behind goes to the next one. J1
func TestDraftOfItsOwn(t *testing.T) {
	data := t.TempDir()
	drafts := filepath.Join(data, "antiphon", "drafts")
	open := func() *dialogue {
		return &dialogue{conf: Config{Data: filepath.Join(data, "antiphon")}, info: session.Info{ID: "a"}}
	}
	one, two := open(), open()
	if one.draft() != filepath.Join(drafts, "a") {
		t.Errorf("the first has %s", one.draft())
	}
	if one.draft() != filepath.Join(drafts, "a") {
		t.Error("asked again, it has another one")
	}
	if two.draft() != filepath.Join(drafts, "a-2") {
		t.Errorf("the second has %s", two.draft())
	}
	if two.info.ID = "b"; two.draft() != filepath.Join(drafts, "b") {
		t.Errorf("another conversation has %s", two.draft())
	}
	if err := os.MkdirAll(drafts, 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(drafts, "a-2"), "left")
	two.undraft()
	one.undraft()
	if three := open(); three.draft() != filepath.Join(drafts, "a-2") {
		t.Errorf("what was left is not found: %s", three.draft())
	}
}

// TestArguments proves that the arguments of a chat's commands are completed.
func TestArguments(t *testing.T) {
	d := &dialogue{conf: Config{Models: []string{"big", "fast"}}}
	d.toolNames.Store(&[]string{"append_to_file", "read_file"})
	for in, want := range map[[2]string]string{
		{"theme", "c"}:         "contrast",
		{"mode", ""}:           "ask edits plan",
		{"effort", "mi"}:       "minimal",
		{"model", ""}:          "big fast rehearsal",
		{"collapse", "o"}:      "on off",
		{"allow", "a"}:         "allow |ask |append_to_file",
		{"allow", "deny read"}: "deny read_file",
		{"context", ""}:        "drop ",
		{"cost", ""}:           "",
	} {
		sep := " "
		if strings.Contains(want, "|") {
			sep = "|"
		}
		if got := strings.Join(d.values(in[0], in[1]), sep); got != want {
			t.Errorf("/%s %s: %q, want %q", in[0], in[1], got, want)
		}
	}
}

// TestPastedPicture proves that a picture of the clipboard is kept for the person alone, is sent without
// a question, and that old ones are removed. K2
func TestPastedPicture(t *testing.T) {
	data := t.TempDir()
	d := &dialogue{conf: Config{Data: filepath.Join(data, "antiphon")}}
	old := filepath.Join(data, "antiphon", "pasted", "old.png")
	if err := os.MkdirAll(filepath.Dir(old), 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, old, "x")
	long := time.Now().Add(-2 * keepPasted)
	if err := os.Chtimes(old, long, long); err != nil {
		t.Fatal(err)
	}
	name, err := d.keepPicture([]byte(pngHead))
	if err != nil || !strings.HasPrefix(name, "@") {
		t.Fatalf("%q, %v", name, err)
	}
	path := strings.TrimSpace(name[1:])
	if info, err := os.Stat(path); err != nil || info.Mode().Perm()&0o077 != 0 && os.PathSeparator == '/' {
		t.Errorf("%v, %v", info, err)
	}
	if _, err := os.Stat(old); err == nil {
		t.Error("the old one is still there")
	}
	real, err := filepath.EvalSymlinks(path)
	if err != nil || !d.maySend(real) || d.maySend(filepath.Join(filepath.Dir(real), "other.png")) {
		t.Errorf("%s may be sent: %v, %v", real, d.maySend(real), err)
	}
}
