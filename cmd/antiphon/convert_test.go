// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/chatmd"
	"github.com/antiphon-go/antiphon/internal/apispec"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
)

// B6, I11: whatever parts messages have, the request that they become is valid,
// and what it has no place for is named.
func TestConvertedRequestsAreValid(t *testing.T) {
	spec := apispec.Load(t)
	parts := map[string]string{
		"text":   `{"type":"text","text":"WORD"}`,
		"image":  `{"type":"image_url","image_url":{"url":"https://x/WORD"}}`,
		"file":   `{"type":"file","file":{"file_id":"WORD"}}`,
		"sound":  `{"type":"input_audio","input_audio":{"data":"WORD","format":"wav"}}`,
		"video":  `{"type":"video_url","video_url":{"url":"WORD"}}`,
		"no":     `{"type":"refusal","refusal":"WORD"}`,
		"other":  `{"type":"tomorrow","tomorrow":"WORD"}`,
		"untype": `{"what":"WORD"}`,
	}
	for name, part := range parts {
		for _, content := range []string{"[" + part + "]", `[{"type":"text","text":"a"},` + part + "]"} {
			for _, role := range []string{"user", "system", "developer", "assistant", "tool"} {
				message := `{"role":"` + role + `","tool_call_id":"c","content":` + content + `}`
				if role != "tool" {
					message = `{"role":"` + role + `","content":` + content + `}`
				}
				body := `{"model":"m","messages":[{"role":"user","content":"q"},{"role":"assistant","tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}]},` + message + `]}`
				doc, err := readForm(t.Context(), formChat, "x", []byte(body))
				if err != nil {
					t.Fatal(err)
				}
				out, err := doc.write(formRequest)
				if err != nil {
					t.Fatal(err)
				}
				spec.Check(t, "CreateResponse", out)
				if !strings.Contains(string(out), "WORD") == (len(doc.losses) == 0) {
					t.Errorf("%s of %s: %s\nlost: %v", name, role, out, doc.losses)
				}
			}
		}
	}
}

// B7: a <config> says what it was made of, whatever that holds; what it cannot
// say stays in the request, to be named.
func TestConfigThereAndBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(rapid.Just(""), rapid.StringMatching(`[ -~\n\t\r"'<>&\\]{1,12}`), rapid.String())
		flag := rapid.Ptr(rapid.Bool(), true)
		want := api.Request{
			Model: text.Draw(t, "model"), MaxOutputTokens: rapid.Ptr(rapid.Int64(), true).Draw(t, "max"), Temperature: rapid.Ptr(rapid.Float64(), true).Draw(t, "temperature"),
			ParallelToolCalls: flag.Draw(t, "parallel"), Store: flag.Draw(t, "store"),
		}
		if effort := text.Draw(t, "effort"); effort != "" {
			want.Reasoning = &api.ReasoningConfig{Effort: effort}
		}
		left := want
		out := appendConfig(nil, &left)
		file, err := chatmd.Parse("x", out)
		if err != nil {
			t.Fatalf("%s: %v", out, err)
		}
		var got api.Request
		if file.Config != nil {
			takeConfig(&got, file.Config)
		}
		// Each parameter is in one of the two.
		if left.Model != "" && got.Model == "" {
			got.Model = left.Model
		}
		if got.MaxOutputTokens == nil {
			got.MaxOutputTokens = left.MaxOutputTokens
		}
		if got.Temperature == nil {
			got.Temperature = left.Temperature
		}
		if got.Reasoning == nil {
			got.Reasoning = left.Reasoning
		}
		if left.ParallelToolCalls != nil || left.Store != nil {
			t.Errorf("a flag is left: %s", out)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", out, d)
		}
	})
}

// J6: what a conversation holds is its owner's alone, as in the store.
func TestTranscriptsArePrivate(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("files have no such modes here")
	}
	dir := t.TempDir()
	file := write(t, filepath.Join(dir, "agent.md"), "<config model=\"rehearsal\"/>\n<user>Hello</user>\n")
	for _, args := range [][]string{
		{"run", file, "--out", filepath.Join(dir, "out.md"), "--rehearsal"},
		{"convert", file, "--to", "lines", "--out", filepath.Join(dir, "out.jsonl")},
		{"run", file, "--out", filepath.Join(dir, "too.md"), "--session", "s", "--store", filepath.Join(dir, "store.db"), "--rehearsal"},
	} {
		if o := program(t, args...); o.code != 0 {
			t.Fatalf("%v: %s", args, o.err)
		}
	}
	for _, name := range []string{"out.md", "out.jsonl", "too.md"} {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v %v", name, info.Mode(), err)
		}
	}
}

// I11: a conversation is converted whatever its tools, features and images are:
// what is not there is named, or stays a reference, and --strict refuses it.
func TestConvertNeedsOnlyWhatItConverts(t *testing.T) {
	dir := t.TempDir()
	file := write(t, filepath.Join(dir, "talk.md"), `<config model="m" base_url="http://localhost:1/v1" profile="of-another-machine"/>
<tool name="odoc_search"/>
<tool name="s" type="shell"/>
<tool name="read_file"><read id="a" path="no-such-folder"/></tool>
<script language="chatml">let x = 1</script>
<user>See <img src="gone.png" local/> and <doc src="gone.txt" local/> and <file src="gone.csv" local/></user>
<tool_call tool_call_id="c" function_name="odoc_search">{"q":"WORD"}</tool_call>
<tool_response tool_call_id="c">FOUND</tool_response>
`)
	for _, form := range []string{"items", "lines", "messages", "chat", "request", "chatmd"} {
		o := program(t, "convert", file, "--to", form)
		if o.code != 0 {
			t.Fatalf("%s: %s", form, o.err)
		}
		for _, kept := range []string{"gone.png", "gone.txt", "gone.csv", "WORD", "FOUND", "odoc_search"} {
			if !strings.Contains(o.out, kept) && !strings.Contains(o.err, kept) {
				t.Errorf("%s: %s is not there:\n%s\n%s", form, kept, o.out, o.err)
			}
		}
		for _, named := range []string{`talk.md:6:11: <img src="gone.png"> cannot be read and stays a reference`, "talk.md:5:1: <script> is not built yet"} {
			if !strings.Contains(o.err, named) {
				t.Errorf("%s: %q is not named:\n%s", form, named, o.err)
			}
		}
		toolLost := strings.Contains(o.err, "odoc_search") && strings.Contains(o.err, "type=") && strings.Contains(o.err, "no-such-folder")
		if toolLost == (form == "chatmd") {
			t.Errorf("%s: %s", form, o.err)
		}
		if form == "chatmd" && (!strings.Contains(o.out, "<tool name=\"read_file\"><read id=\"a\" path=\"no-such-folder\"/></tool>\n") || !strings.Contains(o.out, `base_url="http://localhost:1/v1"`)) {
			t.Error(o.out)
		}
		if o := program(t, "convert", file, "--to", form, "--strict"); o.code == 0 || o.out != "" {
			t.Errorf("%s --strict: %d %s", form, o.code, o.out)
		}
	}
	good := write(t, filepath.Join(dir, "good.md"), "<config model=\"m\" max_turns=\"3\"/>\n<tool name=\"read_file\"/>\n<user>Hi</user>\n")
	if o := program(t, "convert", good, "--to", "chatmd", "--strict"); o.code != 0 || !strings.HasPrefix(o.out, "<config model=\"m\" max_turns=\"3\"/>\n<tool name=\"read_file\"/>\n<user>") {
		t.Errorf("%d %s %s", o.code, o.out, o.err)
	}
}

// What cannot be used of a file does not lock in its conversation: it stays as
// it is written, and is named with its place.
func TestConvertSalvages(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "latin.txt"), "caf\xe9")
	write(t, filepath.Join(dir, "words.png"), "no image")
	if err := os.MkdirAll(filepath.Join(dir, ".chatmd", "a.md"), 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, ".chatmd", "a.md", "1.json"), "others")
	for text, want := range map[string][2]string{
		"<system>Be <import src=\"gone.md\"/></system>":       {"1:12: <import> cannot be read", `Be <import src=\"gone.md\"/>`},
		"<import src=\"gone.md\"/>":                           {"1:1: <import> cannot be read", `"hi"`},
		"<import src=\"a.md\"/>":                              {"1:1: <import> is not followed, and stays as written: the file imports itself", `"hi"`},
		"<user><doc src=\"gone.txt\" local/></user>":          {"1:7: <doc src=\"gone.txt\"> cannot be read", `<doc src=\"gone.txt\" local/>`},
		"<user><doc src=\"latin.txt\" local/></user>":         {"1:7: <doc> is not text in UTF-8", `<doc src=\"latin.txt\" local/>`},
		"<user><img src=\"words.png\" local/></user>":         {"1:7: <img src=\"words.png\"> cannot be read", `"image_url":"words.png"`},
		"<user><file src=\"gone.pdf\" local/></user>":         {"1:7: <file src=\"gone.pdf\"> cannot be read", `"file_url":"gone.pdf"`},
		"<user><agent src=\"gone.md\" local>q</agent></user>": {"1:7: <agent src=\"gone.md\"> cannot be read", `<agent src=\"gone.md\" local>q</agent>`},
		"<tool name=\"nosuch\"/>":                             {"1:1: unknown tool", `"hi"`},
		"<script>x</script>":                                  {"1:1: <script> is not built yet", `"hi"`},
		"<tool_call tool_call_id=\"c\" function_name=\"f\"><doc src=\".chatmd/a.md/1.json\" local sha256=\"00\"/></tool_call>": {
			"<doc> does not have the content that the transcript recorded", `sha256=\"00\"`},
	} {
		file := write(t, filepath.Join(dir, "a.md"), text+"\n<user>hi</user>\n")
		o := program(t, "convert", file, "--to", "items")
		wantAll(t, text, o.err, want[0])
		wantAll(t, text, o.out, want[1], `"hi"`)
		if o.code != 0 {
			t.Errorf("%s: exit code %d", text, o.code)
		}
		if o := program(t, "convert", file, "--to", "items", "--strict"); o.code == 0 || o.out != "" {
			t.Errorf("%s, --strict: exit code %d, %s", text, o.code, o.out)
		}
	}
}

// A tool choice that is in the request is not told as lost.
func TestConvertToolChoice(t *testing.T) {
	file := write(t, filepath.Join(t.TempDir(), "a.md"), "<config tool_choice=\"required\"/>\n<tool name=\"read_file\"/>\n<user>hi</user>\n")
	o := program(t, "convert", file, "--to", "request", "--strict")
	wantAll(t, "the request", o.out, `"tool_choice":"required"`)
	if o.code != 0 || strings.Contains(o.err, "lost") {
		t.Errorf("exit code %d\n%s", o.code, o.err)
	}
	body := write(t, filepath.Join(t.TempDir(), "a.json"), `{"model":"m","tool_choice":"none","input":"hi"}`)
	wantAll(t, "ChatMarkdown", program(t, "convert", body, "--from", "request", "--to", "chatmd").out, `tool_choice="none"`)
}

// U8: entries of an exported session are no items, also where the file's first line
// is missing; what stands before that line changes nothing.
func TestConvertPartsOfAnExport(t *testing.T) {
	dir := t.TempDir()
	said := session.InputItem{Item: item.User("hello there")}
	whole := read(t, forged(t, filepath.Join(dir, "agent.md"), session.RunStarted{}, said, session.Stopped{Why: "answered"}))
	lines := strings.SplitAfter(whole, "\n")
	for name, text := range map[string]string{
		"head cut":  strings.Join(lines[1:], ""),
		"one entry": lines[2],
		"the end":   lines[len(lines)-2],
		"spaced":    strings.NewReplacer(":", ": ", ",", ", ").Replace(lines[1] + lines[2]),
	} {
		o := program(t, "convert", write(t, filepath.Join(dir, "part.jsonl"), text), "--to", "chatmd")
		if o.code != exitUsage || o.out != "" || !strings.Contains(o.err, "part.jsonl:1: a line of an exported session") {
			t.Errorf("%s: exit code %d\n%s%s", name, o.code, o.out, o.err)
		}
	}
	for _, before := range []string{"\ufeff", "\n", "\ufeff \r\n"} {
		o := program(t, "convert", write(t, filepath.Join(dir, "late.jsonl"), before+whole), "--to", "chatmd")
		if o.code != 0 || !strings.Contains(o.out, "hello there") {
			t.Errorf("%q: exit code %d\n%s%s", before, o.code, o.out, o.err)
		}
	}
}

// A file that does not fit in the memory is refused before it is read.
func TestConvertRefusesHugeFiles(t *testing.T) {
	path := write(t, filepath.Join(t.TempDir(), "huge.md"), "")
	if err := os.Truncate(path, 3<<30); err != nil { // which takes no place on the disk
		t.Skip(err)
	}
	if o := program(t, "convert", path, "--to", "items"); o.code != 2 || !strings.Contains(o.err, "huge.md is larger than 1024 MiB") {
		t.Errorf("exit code %d: %s", o.code, o.err)
	}
}
