// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package chatmd

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const (
	pngBytes = "\x89PNG\r\n\x1a\nrest"
	pngURI   = "data:image/png;base64,iVBORw0KGgpyZXN0"
)

// folder is a resolver over a few sources.
func folder(asked *[]Ref) ResolverFunc {
	files := map[string]string{
		"a.md": "# A\n<user>\n", "empty": "", "a.png": pngBytes, "notes.txt": "hi", "dir/a.pdf": "%PDF-1.4", "bad.txt": "\xff\xfe\x00",
		"args.json": ` {"a": "|RAW"}` + "\n", "list.json": `[{"type":"input_text","text":"a"}]`, "https://x/doc": "far",
		"item.json": `{"type":"x","n":1}`,
	}
	return func(_ context.Context, ref Ref) ([]byte, string, error) {
		if asked != nil {
			*asked = append(*asked, ref)
		}
		data, ok := files[ref.Src]
		if !ok {
			return nil, "", fmt.Errorf("open %s: %w", ref.Src, fs.ErrNotExist)
		}
		if strings.HasSuffix(ref.Src, ".pdf") {
			return []byte(data), "application/pdf; x=y", nil
		}
		return []byte(data), "", nil
	}
}

// CHATMD, <doc/> <img/> <file/>: sources come from the resolver. M8: payloads
// in files beside the transcript.
func TestItemsResolve(t *testing.T) {
	tests := []struct{ name, src, want string }{
		{"document in a text", "<user>\nSum up:\n<doc src=\"a.md\" local/>\n</user>", userJSON("Sum up:\n# A\n<user>\n")},
		{"document alone", "<system> <doc src=\"a.md\" local/> </system>", inputJSON("system", "# A\n<user>\n")},
		{"empty document", "<user><doc src=\"empty\" local/></user>", userJSON("")},
		{"remote document", "<user><doc src=\"https://x/doc\"/></user>", userJSON("far")},
		{"local image", "<user>see <img src=\"a.png\" local detail=\"low\"/></user>", `{"type":"message","content":[{"type":"input_text","text":"see"},{"type":"input_image","image_url":"` + pngURI + `","detail":"low"}],"role":"user"}`},
		{"local image, flag off", "<user><img src=\"https://a\" local=\"false\"/></user>", `{"type":"message","content":[{"type":"input_image","image_url":"https://a","detail":"auto"}],"role":"user"}`},
		{"local file", "<user><file src=\"notes.txt\" local/></user>", `{"type":"message","content":[{"type":"input_file","filename":"notes.txt","file_data":"data:text/plain;base64,aGk="}],"role":"user"}`},
		{"local file with a name", "<user><file src=\"dir/a.pdf\" local filename=\"b.pdf\"/></user>", `{"type":"message","content":[{"type":"input_file","filename":"b.pdf","file_data":"data:application/pdf;base64,JVBERi0xLjQ="}],"role":"user"}`},
		{"local file in a folder", "<user><file src=\"dir/a.pdf\" local/></user>", `{"type":"message","content":[{"type":"input_file","filename":"a.pdf","file_data":"data:application/pdf;base64,JVBERi0xLjQ="}],"role":"user"}`},
		{"arguments", "<tool_call tool_call_id=\"c\" function_name=\"f\">\n\t<doc src=\"args.json\" local>\n</tool_call>", `{"type":"function_call","arguments":" {\"a\": \"|RAW\"}\n","call_id":"c","name":"f"}`},
		{"response", "<tool_response tool_call_id=\"c\"><doc src=\"a.md\" local/></tool_response>", `{"type":"function_call_output","call_id":"c","output":"# A\n<user>\n"}`},
		{"response, older list", "<tool_response tool_call_id=\"c\"><doc src=\"list.json\" local/></tool_response>", `{"type":"function_call_output","call_id":"c","output":[{"type":"input_text","text":"a"}]}`},
		{"response, list as text", "<tool_response tool_call_id=\"c\" output=\"text\"><doc src=\"list.json\" local/></tool_response>", `{"type":"function_call_output","call_id":"c","output":"[{\"type\":\"input_text\",\"text\":\"a\"}]"}`},
		{"response, list as content", "<tool_response tool_call_id=\"c\" output=\"content\"><doc src=\"list.json\" local/></tool_response>", `{"type":"function_call_output","call_id":"c","output":[{"type":"input_text","text":"a"}]}`},
		{"image in a response (W3)", "<tool_response tool_call_id=\"c\"><img src=\"a.png\" local/></tool_response>", `{"type":"function_call_output","call_id":"c","output":[{"type":"input_image","image_url":"` + pngURI + `"}]}`},
		{"item", "<item type=\"x\"><doc src=\"item.json\" local/></item>", `{"type":"x","n":1}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f, err := Parse("dir/test.md", []byte(tt.src))
			if err != nil {
				t.Fatal(err)
			}
			list, err := f.Items(t.Context(), folder(nil))
			if err != nil || len(list) != 1 {
				t.Fatalf("%d items, %v", len(list), err)
			}
			if got := list[0].Item.JSON(); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

// What the resolver is told, and that URLs of images and files are left alone.
func TestItemsAsk(t *testing.T) {
	var asked []Ref
	f, err := Parse("t.md", []byte("<user>\n<doc src=\"a.md\" local/> <img src=\"https://x\"/><file src=\"https://x\"/>\n<img src=\"a.png\" local/></user>"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Items(t.Context(), folder(&asked)); err != nil {
		t.Fatal(err)
	}
	want := []Ref{
		{Tag: "doc", Src: "a.md", Local: true, File: "t.md", Position: Position{Offset: 7, Line: 2, Column: 1}},
		{Tag: "img", Src: "a.png", Local: true, File: "t.md", Position: Position{Offset: 77, Line: 3, Column: 1}},
	}
	if diff := cmp.Diff(want, asked); diff != "" {
		t.Error(diff)
	}
}

// M4: sources that cannot be used are all reported, each at its place; the
// other items are there.
func TestItemsErrors(t *testing.T) {
	f, err := Parse("t.md", []byte("<user>a</user>\n<user><doc src=\"gone\" local/> <img src=\"notes.txt\" local/></user>\n"+
		"<user><doc src=\"bad.txt\" local/></user>\n<tool_response tool_call_id=\"c\" output=\"content\"><doc src=\"a.md\" local/></tool_response>\n"+
		"<item type=\"y\"><doc src=\"item.json\" local/></item>"))
	if err != nil {
		t.Fatal(err)
	}
	list, err := f.Items(t.Context(), folder(nil))
	if len(list) != 1 {
		t.Errorf("%d items", len(list))
	}
	want := `t.md:2:7: <doc> cannot be read: open gone: file does not exist: <doc src="gone" local/>
t.md:2:31: <img> is not an image: notes.txt: its data is text/plain; charset=utf-8: <img src="notes.txt" local/> (models take PNG, JPEG, GIF and WebP)
t.md:3:7: <doc> is not text in UTF-8: bad.txt: <doc src="bad.txt" local/> (images go in <img/>, other files in <file/>)
t.md:4:1: output="content" needs images, files or a JSON list of parts: `
	if err == nil || !strings.HasPrefix(err.Error(), want) || !strings.Contains(err.Error(), "\nt.md:5:1: <item> says type y, its JSON x: ") {
		t.Errorf("got\n%v\nwant\n%s", err, want)
	}
	if !errors.Is(err, fs.ErrNotExist) {
		t.Error("the cause is lost")
	}
}

func TestItemsWithoutResolver(t *testing.T) {
	f, _ := Parse("t.md", []byte("<user><doc src=\"a.md\" local/></user>"))
	_, err := f.Items(t.Context(), nil)
	if err == nil || err.Error() != `t.md:1:7: <doc> cannot be read here: a.md: <doc src="a.md" local/>` {
		t.Error(err)
	}
}

func TestItemsCanceled(t *testing.T) {
	f, _ := Parse("t.md", []byte("<user>a</user>"))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := f.Items(ctx, nil); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
