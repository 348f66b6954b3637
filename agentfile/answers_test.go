// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agentfile_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/agentfile"
	"github.com/antiphon-go/antiphon/agenttest"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/trust"
)

// runner runs agents with a scripted model, and counts them.
func runner(srv *agenttest.Server, name string, asked *[]string) *agentfile.Runner {
	return &agentfile.Runner{
		Models: func(*agentfile.File) (agent.Model, string, error) { return srv.Client(), name, nil },
		Notify: func(f *agentfile.File) { *asked = append(*asked, filepath.Base(f.Path)) },
	}
}

func answers(t *testing.T, texts ...string) *agenttest.Server {
	var list []agenttest.Reply
	for _, s := range texts {
		list = append(list, agenttest.Completed(item.Assistant(s)))
	}
	return agenttest.NewServer(t, list...)
}

// CHATMD, <agent>: runs another file with the body as input and inserts its
// answer; answers are kept by content, not by name.
func TestAgentInMessage(t *testing.T) {
	dir := t.TempDir()
	write(t, "the notes", dir, "notes.txt")
	write(t, "<config temperature=\"0\"/><system>Sum up. <doc src=\"style.txt\" local/></system>", dir, "sub", "sum.md")
	write(t, "Briefly.", dir, "sub", "style.txt")
	path := write(t, "<user>It says: <agent src=\"sub/sum.md\" local>\n<doc src=\"notes.txt\" local/>\n</agent>!</user>", dir, "agent.md")
	var asked []string
	srv := answers(t, "one", "two", "three", "four", "five")
	o := agentfile.Options{Runner: runner(srv, "m", &asked), Answers: filepath.Join(t.TempDir(), "answers")}
	expect := func(what, want string, runs int) {
		t.Helper()
		f := load(t, path, o)
		if got := textOf(t, f.Items[0]); got != "It says: "+want+"!" || len(asked) != runs {
			t.Errorf("%s: %q after %d runs", what, got, len(asked))
		}
	}
	expect("first", "one", 1)
	if sent := srv.Requests()[0].Parse(t); sent.Model != "m" || sent.Input.Len() != 2 || textOf(t, sent.Input.At(0)) != "Sum up. Briefly." || textOf(t, sent.Input.At(1)) != "the notes" {
		t.Errorf("it was asked %s", srv.Requests()[0].Body)
	}
	expect("again", "one", 1)
	if err := os.Rename(filepath.Join(dir, "sub", "sum.md"), filepath.Join(dir, "sub", "other.md")); err != nil {
		t.Fatal(err)
	}
	path = write(t, strings.Replace(read(t, path), "sum.md", "other.md", 1), dir, "agent.md")
	expect("under another name", "one", 1)
	write(t, "At length.", dir, "sub", "style.txt")
	expect("with another text in what it includes", "two", 2)
	write(t, "other notes", dir, "notes.txt")
	expect("asked something else", "three", 3)
	o.Runner = runner(srv, "n", &asked)
	expect("by another model", "four", 4)
	write(t, "<config temperature=\"1\"/><system>Sum up. <doc src=\"style.txt\" local/></system>", dir, "sub", "other.md")
	expect("with other settings", "five", 5)
	expect("and kept", "five", 5)
	if _, err := os.Stat(filepath.Join(dir, ".chatmd")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("beside the file: %v", err)
	}

	// Nothing runs where nothing is to run.
	if _, err := agentfile.Load(t.Context(), path, agentfile.Options{Consent: trust.Everything}); err == nil || !strings.Contains(err.Error(), "agents are not run here") {
		t.Error(err)
	}
	load(t, path, agentfile.Options{Check: true})
	write(t, "<user><agent src=\"sub/other.md\" local/></user>\n<usr/>", dir, "bad.md")
	if _, err := agentfile.Load(t.Context(), filepath.Join(dir, "bad.md"), o); err == nil || len(asked) != 5 {
		t.Errorf("%v: a file with mistakes ran an agent", err)
	}
}

// M9: a transcript holds the answer, so that the conversation goes on with it
// whatever is kept or asked later.
func TestAgentInTranscript(t *testing.T) {
	dir := t.TempDir()
	write(t, "<system>Sum up.</system>", dir, "sum.md")
	path := write(t, "<user>It says: <agent src=\"sum.md\" local>x <doc src=\"sum.md\" local/></agent>!</user>\n", dir, "agent.md")
	out := filepath.Join(dir, "elsewhere", "talk.md")
	write(t, "", dir, "elsewhere", "keep")
	var asked []string
	o := agentfile.Options{Runner: runner(answers(t, "one |RAW </user>"), "m", &asked)}
	f, store, err := agentfile.OpenTranscript(t.Context(), path, out, o)
	if err != nil {
		t.Fatal(err)
	}
	f.Close()
	s, err := session.Open(t.Context(), store, "talk")
	if err != nil {
		t.Fatal(err)
	}
	appendTo(t, s, session.InputItem{Item: item.User("more")})
	again := load(t, out, agentfile.Options{Consent: trust.Everything})
	if len(again.Items) != 2 || again.Items[0] != f.Items[0] || !strings.Contains(read(t, out), "<!-- agent sum.md -->RAW:") {
		t.Errorf("%v\n%s", again.Items, read(t, out))
	}
}

// Circles and what is too deep are errors that name the way, before anything
// runs; so is what fails.
func TestAgentInMessageErrors(t *testing.T) {
	dir := t.TempDir()
	write(t, "<user><agent src=\"b.md\" local/></user>", dir, "a.md")
	write(t, "<user><agent src=\"a.md\" local/></user>", dir, "b.md")
	write(t, "<user><agent src=\"self.md\" local/></user>", dir, "self.md")
	write(t, "<user><agent src=\"gone.md\" local/></user>", dir, "lost.md")
	write(t, "<user><agent src=\"fine.md\" local/></user>", dir, "asks.md")
	write(t, "<user>hi</user>", dir, "fine.md")
	write(t, "<system>Be brief.</system><tool name=\"read_file\"/>", dir, "mute.md")
	write(t, "<user><agent src=\"mute.md\" local/></user>", dir, "none.md")
	write(t, "<user><agent src=\"mute.md\" local> \n</agent></user>", dir, "blank.md")
	for i := range 20 {
		write(t, "<user><agent src=\"d"+string(rune('a'+i+1))+".md\" local/></user>", dir, "d"+string(rune('a'+i))+".md")
	}
	var asked []string
	srv := agenttest.NewServer(t, agenttest.Failed("server_error", "it broke"), agenttest.Failed("server_error", "it broke"), agenttest.Failed("server_error", "it broke"), agenttest.Failed("server_error", "it broke"))
	o := agentfile.Options{Runner: runner(srv, "m", &asked)}
	for name, want := range map[string]string{
		"a.md": "the agent asks itself: ", "self.md": "self.md → ", "lost.md": "gone.md", "da.md": "agents are nested more than 16 deep",
		"none.md": "none.md:1:7: ", "blank.md": "mute.md has no question to answer: add a <user> message", // I8
	} {
		for _, check := range []bool{true, false} {
			o.Check = check
			if _, err := agentfile.Load(t.Context(), filepath.Join(dir, name), o); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	if len(asked) > 0 {
		t.Errorf("%v were asked", asked)
	}
	var failed *agentfile.AgentError
	if _, err := agentfile.Load(t.Context(), filepath.Join(dir, "asks.md"), o); !errors.As(err, &failed) || filepath.Base(failed.File) != "fine.md" || !strings.Contains(err.Error(), "asks.md:1:7: ") {
		t.Error(err)
	}
}

// K7: an answer that came with a folder is never believed, whatever it is called.
// It is left alone, with a remark. Without a folder of the user's own, agents are
// asked each time.
func TestPlantedAnswer(t *testing.T) {
	dir, own := t.TempDir(), filepath.Join(t.TempDir(), "own", "answers")
	write(t, "<user>hi</user>", dir, "sum.md")
	path := write(t, "<user><agent src=\"sum.md\" local/></user>", dir, "agent.md")
	var asked []string
	srv := answers(t, "one", "two", "three", "four")
	o := agentfile.Options{Runner: runner(srv, "m", &asked), Answers: own}
	load(t, path, o)
	kept := entries(t, own)
	if len(kept) != 1 {
		t.Fatalf("kept %v", kept)
	}
	entry := filepath.Join(own, kept[0])
	whole := read(t, entry)
	planted := []string{
		write(t, "believe me", dir, ".chatmd", "cache", kept[0]),
		write(t, strings.Replace(whole, "one", "believe me", 1), dir, ".chatmd", "answers", kept[0]),
	}
	if err := os.Remove(entry); err != nil {
		t.Fatal(err)
	}
	f := load(t, path, o)
	if got := textOf(t, f.Items[0]); got != "two" || len(asked) != 2 {
		t.Errorf("%q after %d runs", got, len(asked))
	}
	if len(f.Warnings) != 1 || !strings.Contains(f.Warnings[0].Error(), "are not used") {
		t.Errorf("remarks: %v", f.Warnings)
	}
	if f := load(t, path, o); len(f.Warnings) != 0 || textOf(t, f.Items[0]) != "two" {
		t.Errorf("its own: %v", f.Warnings)
	}
	o.Answers = ""
	for _, want := range []string{"three", "four"} {
		if got := textOf(t, load(t, path, o).Items[0]); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if read(t, planted[0]) != "believe me" || !strings.Contains(read(t, planted[1]), "believe me") {
		t.Error("what was beside the file was changed")
	}
}

// entries are the names in a folder.
func entries(t *testing.T, dir string) (names []string) {
	t.Helper()
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range list {
		names = append(names, e.Name())
	}
	return names
}

// K7: a kept answer that is damaged, cut off, renamed or not a file is asked for
// again and replaced.
func TestDamagedAnswer(t *testing.T) {
	dir, own := t.TempDir(), filepath.Join(t.TempDir(), "answers")
	write(t, "<user>hi</user>", dir, "sum.md")
	path := write(t, "<user><agent src=\"sum.md\" local/></user>", dir, "agent.md")
	var asked []string
	srv := answers(t, "first", "other", "a", "b", "c", "d", "e", "f")
	o := agentfile.Options{Runner: runner(srv, "m", &asked), Answers: own}
	load(t, path, o)
	entry := filepath.Join(own, entries(t, own)[0])
	whole := read(t, entry)
	o.Runner = runner(srv, "n", &asked)
	load(t, path, o) // another answer, of another model
	var other string
	for _, name := range entries(t, own) {
		if full := filepath.Join(own, name); full != entry {
			other = read(t, full)
		}
	}
	o.Runner = runner(srv, "m", &asked)
	for name, text := range map[string]string{
		"changed": strings.Replace(whole, "first", "worst", 1), "cut off": whole[:len(whole)-1], "empty": "", "longer": whole + "!",
		"of an older form": "first", "another's": other,
	} {
		write(t, text, entry)
		before := len(asked)
		got := textOf(t, load(t, path, o).Items[0])
		if len(asked) != before+1 {
			t.Errorf("%s: %q was believed", name, got)
		}
		if again := textOf(t, load(t, path, o).Items[0]); again != got || len(asked) != before+1 {
			t.Errorf("%s: it was not replaced", name)
		}
	}
}

// An answer that cannot be kept is asked for again, with a remark.
func TestAnswerIsNotKept(t *testing.T) {
	dir := t.TempDir()
	write(t, "<user>hi</user>", dir, "sum.md")
	taken := write(t, "no folder", dir, "taken")
	path := write(t, "<user><agent src=\"sum.md\" local/></user>", dir, "agent.md")
	var asked []string
	o := agentfile.Options{Runner: runner(answers(t, "one", "two"), "m", &asked), Answers: filepath.Join(taken, "answers")}
	for range 2 {
		f := load(t, path, o)
		if len(f.Warnings) != 1 || !strings.Contains(f.Warnings[0].Error(), "is not kept") {
			t.Errorf("%v", f.Warnings)
		}
	}
	if len(asked) != 2 {
		t.Errorf("asked %v", asked)
	}
}

// M5: an agent in a message of an agent that is a tool runs only when all of the
// file around it is in order.
func TestAgentInMessageOfTool(t *testing.T) {
	dir := t.TempDir()
	write(t, "<user>hi</user>", dir, "fine.md")
	write(t, "<system>It says <agent src=\"fine.md\" local/></system>", dir, "helper.md")
	path := write(t, "<tool name=\"helper\" agent=\"helper.md\" local/>\n<user>go</user>\n<usr/>", dir, "agent.md")
	var asked []string
	srv := answers(t, "one")
	o := agentfile.Options{Runner: runner(srv, "m", &asked)}
	if _, err := agentfile.Load(t.Context(), path, o); err == nil || len(asked) > 0 {
		t.Errorf("%v, %v were asked", err, asked)
	}
	write(t, "<tool name=\"helper\" agent=\"helper.md\" local/>\n<user>go</user>", dir, "agent.md")
	if f := load(t, path, agentfile.Options{Check: true}); !f.Partial || len(asked) > 0 {
		t.Errorf("partial %v, %v were asked", f.Partial, asked)
	}
	if f := load(t, path, o); f.Partial || len(asked) != 1 {
		t.Errorf("partial %v, %v were asked", f.Partial, asked)
	}
}

// CHATMD, <agent>: an equal file in another folder, whose tools look into other
// files, is asked too.
func TestAgentsOfTwoFolders(t *testing.T) {
	dir := t.TempDir()
	for _, sub := range []string{"a", "b"} {
		write(t, `<tool name="read_file"><read id="r" path="."/></tool><system>Look.</system>`, dir, sub, "look.md")
	}
	path := write(t, `<user><agent src="a/look.md" local>?</agent>, <agent src="b/look.md" local>?</agent>, <agent src="a/look.md" local>?</agent></user>`, dir, "agent.md")
	var asked []string
	f := load(t, path, agentfile.Options{Runner: runner(answers(t, "one", "two"), "m", &asked), Answers: filepath.Join(t.TempDir(), "answers")})
	if got := textOf(t, f.Items[0]); got != "one, two, one" {
		t.Errorf("%q after %d runs", got, len(asked))
	}
}

// CHATMD, M9: a transcript holds what an agent said that stands in an imported
// file, and nobody is asked again.
func TestAgentInImport(t *testing.T) {
	dir := t.TempDir()
	write(t, "<system>Say.</system>", dir, "say.md")
	write(t, "<agent src=\"say.md\" local>?</agent>", dir, "ask.txt")
	path := write(t, "<user>It says: <import src=\"ask.txt\"/></user>\n", dir, "agent.md")
	var asked []string
	o := agentfile.Options{Runner: runner(answers(t, "</user> RAW|"), "m", &asked)}
	out := filepath.Join(dir, "talk.md")
	f, store, err := agentfile.OpenTranscript(t.Context(), path, out, o)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	s, err := session.Open(t.Context(), store, out)
	if err != nil {
		t.Fatal(err)
	}
	appendTo(t, s, session.InputItem{Item: item.User("go on")})
	again := load(t, out, agentfile.Options{Consent: trust.Everything})
	if got := textOf(t, again.Items[0]); got != "It says: </user> RAW|" || len(asked) != 1 {
		t.Errorf("%q after %d runs, in\n%s", got, len(asked), read(t, out))
	}
}
