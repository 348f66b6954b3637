// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agentfile_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/antiphon-go/antiphon/agentfile"
	"github.com/antiphon-go/antiphon/chatmd"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/toolkit/web"
	"github.com/antiphon-go/antiphon/trust"
)

// textOf is the text of a message.
func textOf(t *testing.T, it item.Item) string {
	t.Helper()
	m, err := item.As[item.Message](it)
	if err != nil || len(m.Content.Parts) != 1 {
		t.Fatalf("%v: %s", err, it.JSON())
	}
	return m.Content.Parts[0].(*item.InputText).Text
}

// pdfOf is a PDF file with a page for each text, a line of the page for each line.
func pdfOf(pages ...string) []byte {
	var b bytes.Buffer
	var offsets []int
	object := func(format string, args ...any) {
		offsets = append(offsets, b.Len())
		fmt.Fprintf(&b, "%d 0 obj\n"+format+"\nendobj\n", append([]any{len(offsets)}, args...)...)
	}
	b.WriteString("%PDF-1.4\n")
	kids := ""
	for i := range pages {
		kids += fmt.Sprintf("%d 0 R ", 4+2*i)
	}
	object("<</Type/Catalog/Pages 2 0 R>>")
	object("<</Type/Pages/Kids[%s]/Count %d>>", kids, len(pages))
	object("<</Type/Font/Subtype/Type1/BaseFont/Helvetica/Encoding/WinAnsiEncoding>>")
	for i, text := range pages {
		program := "BT /F1 12 Tf 72 720 Td 14 TL\n"
		for line := range strings.SplitSeq(text, "\n") {
			program += "(" + strings.NewReplacer(`\`, `\\`, "(", `\(`, ")", `\)`).Replace(line) + ") Tj T*\n"
		}
		program += "ET"
		object("<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Resources<</Font<</F1 3 0 R>>>>/Contents %d 0 R>>", 5+2*i)
		object("<</Length %d>>\nstream\n%s\nendstream", len(program), program)
	}
	xref := b.Len()
	fmt.Fprintf(&b, "xref\n0 %d\n0000000000 65535 f \n", len(offsets)+1)
	for _, at := range offsets {
		fmt.Fprintf(&b, "%010d 00000 n \n", at)
	}
	fmt.Fprintf(&b, "trailer\n<</Size %d/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF\n", len(offsets)+1, xref)
	return b.Bytes()
}

// CHATMD, <doc>: text as it is, HTML as text or Markdown, the text of a PDF file.
func TestDocuments(t *testing.T) {
	dir := t.TempDir()
	write(t, "<h1>One</h1><p>A <b>bold</b> word.</p>", dir, "page.html")
	write(t, "a <b> & c\n", dir, "plain.txt")
	write(t, string(pdfOf("First line\nsecond \\(line\\)", "Page two")), dir, "paper.pdf")
	tests := []struct{ name, doc, want string }{
		{"text", `<doc src="plain.txt" local/>`, "a <b> & c\n"},
		{"text is not converted", `<doc src="plain.txt" local strip/>`, "a <b> & c\n"},
		{"HTML as it is", `<doc src="page.html" local/>`, "<h1>One</h1><p>A <b>bold</b> word.</p>"},
		{"HTML as text", `<doc src="page.html" local strip/>`, "One\n\nA bold word."},
		{"HTML as Markdown", `<doc src="page.html" local markdown/>`, "# One\n\nA **bold** word."},
		{"strip wins", `<doc src="page.html" local strip markdown/>`, "One\n\nA bold word."},
		{"flags that are off", `<doc src="page.html" local strip="false"/>`, "<h1>One</h1><p>A <b>bold</b> word.</p>"},
		{"PDF", `<doc src="paper.pdf" local/>`, "First line\nsecond \\(line\\)\n\f\nPage two"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := load(t, write(t, "<user>"+tt.doc+"</user>", dir, "agent.md"), agentfile.Options{Consent: trust.Everything})
			if got := textOf(t, f.Items[0]); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
	for name, data := range map[string]string{"broken.pdf": "%PDF-1.7\nand nothing", "cut.pdf": string(pdfOf("text")[:300]), "empty.pdf": string(pdfOf("")), "bytes.bin": "\xff\xfe\x00"} {
		write(t, data, dir, name)
		path := write(t, "<user>\n<doc src=\""+name+"\" local/></user>", dir, "bad.md")
		var list chatmd.ErrorList
		if _, err := agentfile.Load(t.Context(), path, agentfile.Options{Consent: trust.Everything}); !errors.As(err, &list) || list[0].Line != 2 {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// No PDF file, however damaged, makes the program crash or hang: one whose page
// tree has no end, and many with a few bytes changed.
func TestDamagedPDF(t *testing.T) {
	dir := t.TempDir()
	path := write(t, `<user><doc src="a.pdf" local/></user>`, dir, "agent.md")
	try := func(data []byte) error {
		write(t, string(data), dir, "a.pdf")
		file, err := agentfile.Load(t.Context(), path, agentfile.Options{Consent: trust.Everything})
		if err == nil {
			file.Close()
		}
		return err
	}
	good := pdfOf("a", "b\nc")
	if err := try(bytes.Replace(good, []byte("Kids[4 0 R"), []byte("Kids[2 0 R"), 1)); err == nil || !strings.Contains(err.Error(), "circular") {
		t.Error(err)
	}
	newer := append([]byte("%PDF-2.0"), good[len("%PDF-1.4"):]...)
	if err := try(append(newer, "\r\nleft behind the end"...)); err != nil {
		t.Error(err)
	}
	rng := rand.New(rand.NewPCG(1, 2))
	tries := 500
	if testing.Short() {
		tries = 50
	}
	for range tries {
		bad := bytes.Clone(good)
		for range 1 + rng.IntN(6) {
			bad[rng.IntN(len(bad))] = byte(rng.IntN(128))
		}
		_ = try(bad)
	}
}

// M6: imports of files, tools of an imported file with paths of their own, the
// places where older programs looked, and errors with the file they are in.
func TestImportedFiles(t *testing.T) {
	dir := t.TempDir()
	write(t, "the note", dir, "prompts", "shared", "note.txt")
	write(t, `<tool name="read_file"><read id="here" path="."/><read id="tool" path="${tool_dir}"/><read id="prompt" path="${prompt_dir}"/></tool>
<tool name="critic" agent="critic.md" local/>`, dir, "prompts", "shared", "tools.md")
	write(t, "<system>Criticise.</system>", dir, "prompts", "shared", "critic.md")
	write(t, "Rules: <doc src=\"note.txt\" local/>", dir, "prompts", "shared", "rules.txt")
	write(t, "in the workspace", dir, "work", "data", "old.txt")
	o := agentfile.Options{Workspace: filepath.Join(dir, "work")}
	path := write(t, "<import src=\"shared/tools.md\"/>\n<system><import src=\"shared/rules.txt\"/></system><user><doc src=\"data/old.txt\" local/></user>", dir, "prompts", "agent.md")
	f := load(t, path, o)
	if got := textOf(t, f.Items[0]); got != "Rules: the note" {
		t.Error(got)
	}
	if got := textOf(t, f.Items[1]); got != "in the workspace" {
		t.Error(got)
	}
	for at, want := range map[string]string{"note.txt": "the note", "tool:note.txt": "the note", "prompt:shared/note.txt": "the note"} {
		if r := invoke(t, f, "read_file", `{"path":"`+at+`"}`); r.Failed || r.Content.Text != want {
			t.Errorf("%s: %+v", at, r)
		}
	}
	// M9: a transcript elsewhere means the same.
	out := filepath.Join(dir, "elsewhere", "talk.md")
	write(t, "", dir, "elsewhere", "keep")
	moved, store, err := agentfile.OpenTranscript(t.Context(), path, out, o)
	if err != nil {
		t.Fatal(err)
	}
	moved.Close()
	s, err := session.Open(t.Context(), store, "talk")
	if err != nil {
		t.Fatal(err)
	}
	appendTo(t, s, session.InputItem{Item: item.User("more")})
	again := load(t, out, o)
	if len(again.Items) != 3 || again.Items[0] != f.Items[0] || again.Items[1] != f.Items[1] {
		t.Errorf("%v\nin\n%s", again.Items, read(t, out))
	}
	findsNote(t, again)
	declared, err := f.Declarations(filepath.Join(dir, "elsewhere", "x.md"), o)
	if err != nil || strings.Contains(declared, "import") || strings.Contains(declared, "system") {
		t.Errorf("%v: %s", err, declared)
	}
	findsNote(t, load(t, write(t, declared, dir, "elsewhere", "x.md"), o))

	write(t, "\n<tool name=\"telepathy\"/>", dir, "prompts", "shared", "tools.md")
	if _, err := agentfile.Load(t.Context(), path, o); err == nil || !strings.HasPrefix(err.Error(), filepath.Join(dir, "prompts", "shared", "tools.md")+":2:1: unknown tool") {
		t.Error(err)
	}
	write(t, "<import src=\"../agent.md\"/>", dir, "prompts", "shared", "tools.md")
	if _, err := agentfile.Load(t.Context(), path, o); err == nil || !strings.Contains(err.Error(), "the file imports itself: ") {
		t.Error(err)
	}
}

func findsNote(t *testing.T, f *agentfile.File) {
	t.Helper()
	if r := invoke(t, f, "read_file", `{"path":"tool:note.txt"}`); r.Failed || r.Content.Text != "the note" {
		t.Errorf("%s: %+v", f.Path, r)
	}
}

// A3: a document of the network is fetched by the rules of web pages, once, and
// only by what runs; the transcript keeps what it said.
func TestRemoteDocument(t *testing.T) {
	asked := 0
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked++
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprintf(w, "<p>Answer %d |RAW </user></p>", asked)
	}))
	defer srv.Close()
	dir := t.TempDir()
	path := write(t, "<user>See <doc src=\""+srv.URL+"\" strip/>.</user>\n<system>x</system>", dir, "agent.md")
	if _, err := agentfile.Load(t.Context(), path, agentfile.Options{Consent: trust.Everything}); err == nil || !strings.Contains(err.Error(), "must not reach") || asked > 0 {
		t.Errorf("%v, asked %d times", err, asked)
	}
	o := agentfile.Options{Consent: trust.Everything, Web: web.Options{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}}
	o.Check = true
	load(t, path, o)
	o.Check = false
	if asked > 0 {
		t.Error("checking asked the network")
	}
	write(t, "<user>See <doc src=\""+srv.URL+"\"/></user>\n<usr/>", dir, "bad.md")
	if _, err := agentfile.Load(t.Context(), filepath.Join(dir, "bad.md"), o); err == nil || asked > 0 {
		t.Errorf("%v: a file with mistakes asked the network", err)
	}
	out := filepath.Join(dir, "talk.md")
	f, store, err := agentfile.OpenTranscript(t.Context(), path, out, o)
	if err != nil {
		t.Fatal(err)
	}
	f.Close()
	if got := textOf(t, f.Items[0]); got != "See Answer 1 |RAW." || asked != 1 {
		t.Errorf("%q, asked %d times", got, asked)
	}
	s, err := session.Open(t.Context(), store, "talk")
	if err != nil {
		t.Fatal(err)
	}
	appendTo(t, s, session.InputItem{Item: item.User("more")})
	again := load(t, out, agentfile.Options{Consent: trust.Everything})
	if len(again.Items) != 3 || again.Items[0] != f.Items[0] || asked != 1 {
		t.Errorf("asked %d times\n%s", asked, read(t, out))
	}
}

func TestLoadCanceled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	path := write(t, "<user><import src=\"b.txt\"/></user>", t.TempDir(), "a.md")
	os.WriteFile(filepath.Join(filepath.Dir(path), "b.txt"), nil, 0o600)
	if _, err := agentfile.Load(ctx, path, agentfile.Options{Consent: trust.Everything}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// K0: a small file that names a large one many times does not fill the memory.
func TestSourcesTogether(t *testing.T) {
	defer agentfile.LimitSources(2 << 20)()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "big.txt"), bytes.Repeat([]byte("a"), 600<<10), 0o600); err != nil {
		t.Fatal(err)
	}
	for n, want := range map[int]string{3: "", 4: "a.md:6:7: <doc> cannot be read: with it, the documents, images and files are together larger than 2 MiB"} {
		path := filepath.Join(dir, "a.md")
		text := "<config model=\"rehearsal\"/>\n<user>" + strings.Repeat("\n      <doc src=\"big.txt\" local/>", n) + "\n</user>\n"
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := agentfile.Load(t.Context(), path, agentfile.Options{})
		if got := fmt.Sprint(err); want == "" && err != nil || !strings.Contains(got, want) {
			t.Errorf("%d times: %v", n, err)
		}
		if f != nil {
			_ = f.Close()
		}
	}
}
