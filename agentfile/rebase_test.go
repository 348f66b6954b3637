// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agentfile_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"github.com/antiphon-go/antiphon/agentfile"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/trust"
)

// TestRebaseKeepsModels proves that a transcript in another folder asks the
// same model: only a rehearsal's script is a path. M9
func TestRebaseKeepsModels(t *testing.T) {
	for _, model := range []string{"gpt-5.1", "Qwen/Qwen3-VL-8B-Instruct", "rehearsal", "../odd"} {
		dir := t.TempDir()
		path := write(t, `<config model="`+model+`"/><user>hi</user>`, dir, "a", "agent.md")
		out := filepath.Join(dir, "b", "talk.md")
		write(t, "", filepath.Dir(out), "keep")
		f, store, err := agentfile.OpenTranscript(t.Context(), path, out, agentfile.Options{Consent: trust.Everything})
		if err != nil {
			t.Fatal(err)
		}
		f.Close()
		s, err := session.Open(t.Context(), store, "talk")
		if err != nil {
			t.Fatal(err)
		}
		appendTo(t, s, session.InputItem{Item: item.User("more")})
		if got := load(t, out, agentfile.Options{Consent: trust.Everything}).Model(); got != model {
			t.Errorf("model %q became %q", model, got)
		}
	}
}

// TestRebase proves that a transcript means in another folder what its prompt
// means in its own: sources, roots and the rehearsal's script are found from
// there, and nothing else of the text changes. M9
func TestRebase(t *testing.T) {
	dir := t.TempDir()
	o := agentfile.Options{Workspace: filepath.Join(dir, "work"), Home: filepath.Join(dir, "home"), Consent: trust.Everything}
	write(t, "work", dir, "work", "w.txt")
	write(t, "home", dir, "home", "h.txt")
	write(t, "the document", dir, "agents", "parts", "doc.txt")
	write(t, png, dir, "agents", "pic ture.png")
	write(t, "%PDF-1.4", dir, "agents", "paper.pdf")
	write(t, "found", dir, "agents", "parts", "note.txt")
	write(t, "turn\n  say hi\n", dir, "agents", "play.script")
	absolute := filepath.Join(dir, "work", "w.txt")
	prompt := `<!-- src="doc.txt" stays in a comment -->
<config model="rehearsal:play.script"/>
<tool name="read_file"><read id="parts" path="parts"/><read id="dir" path="${prompt_dir}"/><read id="home" path="${home}"/></tool>
<system><doc src="parts/doc.txt" local/> and ` + "RAW|<doc src=\"parts/doc.txt\" local/>|RAW" + `</system>
<user>
<img src='pic ture.png' local/> <file src="paper.pdf" local filename="p.pdf"/>
<doc src="${workspace}/w.txt" local/> <doc src="${home}/h.txt" local/> <doc src="${prompt_dir}/parts/doc.txt" local/>
<doc src="` + absolute + `" local/> <img src="https://example.com/x.png" detail="low"/> <img src="data:image/png;base64,iVBORw0KGgpyZXN0" local/>
</user>`
	path := write(t, prompt, dir, "agents", "agent.md")
	want := load(t, path, o)
	for _, out := range []string{
		filepath.Join(dir, "agents", "talk.md"),
		filepath.Join(dir, "agents", "parts", "talk.md"),
		filepath.Join(dir, "elsewhere", "deep", "talk.md"),
	} {
		write(t, "", filepath.Dir(out), "keep")
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

		moved := load(t, out, o)
		if d := cmp.Diff(texts(t, append(slices.Clip(want.Items), item.User("more"))), texts(t, moved.Items)); d != "" {
			t.Errorf("%s: %s", out, d)
		}
		findsAll(t, moved)
		text := read(t, out)
		for _, same := range []string{`<!-- src="doc.txt" stays in a comment -->`, `RAW|<doc src="parts/doc.txt" local/>|RAW`, "${home}/h.txt", "${workspace}/w.txt", `"https://example.com/x.png"`} {
			if !strings.Contains(text, same) {
				t.Errorf("%s: no %s in\n%s", out, same, text)
			}
		}
		if filepath.Dir(out) == filepath.Dir(path) && !strings.HasPrefix(text, prompt+"\n") {
			t.Errorf("the text beside the prompt is another:\n%s", text)
		}
	}
	if read(t, path) != prompt {
		t.Error("the prompt file was changed") // M9
	}
}

// findsAll checks that the roots and the script of a moved file are found.
func findsAll(t *testing.T, f *agentfile.File) {
	t.Helper()
	for path, want := range map[string]string{"note.txt": "found", "dir:parts/note.txt": "found", "home:h.txt": "home"} {
		if r := invoke(t, f, "read_file", `{"path":"`+path+`"}`); r.Failed || r.Content.Text != want {
			t.Errorf("%s: %s: %+v", f.Path, path, r)
		}
	}
	if _, err := f.Script(strings.TrimPrefix(f.Model(), "rehearsal:")); err != nil {
		t.Errorf("%s: %v", f.Path, err)
	}
}

// texts are the items' JSON in one spelling.
func texts(t *testing.T, items []item.Item) []string {
	t.Helper()
	list := make([]string, len(items))
	for i, it := range items {
		v := jsontext.Value(it.JSON())
		if err := v.Canonicalize(); err != nil {
			t.Fatal(err)
		}
		list[i] = string(v)
	}
	return list
}

// M6 M9: what an imported file finds by way of the prompt's folder, and what an
// agent said in it, stands in a transcript of another folder itself, so that it
// goes on with the same conversation. What needs neither stays an import.
func TestRebaseImports(t *testing.T) {
	dir := t.TempDir()
	write(t, "notes", dir, "notes.txt")
	write(t, "own", dir, "shared", "own.txt")
	write(t, "x", dir, "data", "x.txt")
	write(t, "<system>s</system>", dir, "shared", "deep", "critic.md")
	write(t, "\ufeff<tool name=\"read_file\"><read id=\"d\" path=\"${prompt_dir}/data\"/></tool>\r\n<import src=\"deep/more.md\"/>", dir, "shared", "tools.md")
	write(t, `<tool name="critic" agent="critic.md" local/>`, dir, "shared", "deep", "more.md")
	write(t, `<doc src="own.txt" local/> <doc src="notes.txt" local/> <b>`, dir, "shared", "bound.txt")
	write(t, `free <doc src="own.txt" local/>`, dir, "shared", "free.txt")
	prompt := write(t, "<import src=\"shared/tools.md\"/>\n<user>A <import src=\"shared/bound.txt\"/> B</user>\n<user><import src=\"shared/free.txt\"/></user>\n", dir, "p.md")
	write(t, "", dir, "elsewhere", "x")
	out := filepath.Join(dir, "elsewhere", "talk.md")
	before, s := open(t, prompt, out)
	appendTo(t, s, session.InputItem{Item: item.User("go on")})
	want := "<tool name=\"read_file\"><read id=\"d\" path=\"../data\"/></tool>\r\n<import src=\"../shared/deep/more.md\"/>\n" +
		"<user>A <doc src=\"../shared/own.txt\" local/> <doc src=\"../notes.txt\" local/> <b> B</user>\n" +
		"<user><import src=\"../shared/free.txt\"/></user>\n<user>\nRAW|\ngo on\n|RAW\n</user>\n"
	if got := read(t, out); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	after := load(t, out, agentfile.Options{Consent: trust.Everything})
	if len(after.Items) != 3 || after.Items[0] != before.Items[0] || after.Items[1] != before.Items[1] || len(after.Doc.Tools) != 2 {
		t.Errorf("%d tools, %v", len(after.Doc.Tools), after.Items)
	}
}
