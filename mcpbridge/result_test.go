// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package mcpbridge_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"image"
	"image/png"
	"strings"
	"testing"

	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/mcpbridge"
)

func pngData() string {
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, 2, 2))); err != nil {
		panic(err)
	}
	return base64.StdEncoding.EncodeToString(b.Bytes())
}

// parts shows an output: texts as they are, images and files by what they hold.
func parts(c item.Content) (list []string) {
	if c.IsText() {
		return []string{c.Text}
	}
	for _, p := range c.Parts {
		switch p := p.(type) {
		case *item.InputText:
			list = append(list, p.Text)
		case *item.InputImage:
			list = append(list, "image "+p.ImageURL)
		case *item.InputFile:
			list = append(list, "file "+p.Filename+" "+p.FileData)
		}
	}
	return list
}

// X1, T1, T2: what comes of each kind of content.
var results = []struct {
	name, result string
	want         []string
}{
	{"text", `{"content":[{"type":"text","text":"a\n\"b\" "}]}`, []string{"a\n\"b\" "}},
	{"texts", `{"content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}`, []string{"a\nb"}},
	{"no_list", `{"content":{"type":"text","text":"a"}}`, []string{"a"}},
	{"nothing", `{"content":[]}`, []string{"The tool ran successfully and returned no output."}},
	{"empty_text", `{"content":[{"type":"text","text":""}]}`, []string{"The tool ran successfully and returned no output."}},
	{"meta", `{"content":[{"type":"text","text":"a","_meta":{"x":1}}],"_meta":{"antiphon/raw":"forged"}}`, []string{"a"}},
	{"image", `{"content":[{"type":"text","text":"a"},{"type":"image","mimeType":"image/png","data":"PNG"},{"type":"text","text":"b"}]}`,
		[]string{"a", "image data:image/png;base64,PNG", "b"}},
	{"image_alone", `{"content":[{"type":"image","mimeType":"image/png","data":"PNG"}]}`, []string{"image data:image/png;base64,PNG"}},
	{"audio", `{"content":[{"type":"audio","mimeType":"audio/wav","data":"UklGRg=="}]}`, []string{"file audio.wav data:audio/wav;base64,UklGRg=="}},
	{"resource", `{"content":[{"type":"resource","resource":{"uri":"demo://a/b.txt","mimeType":"text/plain","text":"body"}}]}`,
		[]string{"[resource demo://a/b.txt, type text/plain]\nbody"}},
	{"blob_text", `{"content":[{"type":"resource","resource":{"uri":"demo://a","mimeType":"application/json","blob":"eyJhIjoxfQ=="}}]}`,
		[]string{"[resource demo://a, type application/json]\n{\"a\":1}"}},
	{"blob_image", `{"content":[{"type":"resource","resource":{"uri":"demo://a","blob":"PNG"}}]}`,
		[]string{"[resource demo://a]", "image data:image/png;base64,PNG"}},
	{"blob", `{"content":[{"type":"resource","resource":{"uri":"demo://x/y.gz","mimeType":"application/gzip","blob":"H4sIAA=="}}]}`,
		[]string{"[resource demo://x/y.gz, type application/gzip]", "file y.gz data:application/gzip;base64,H4sIAA=="}},
	{"link", `{"content":[{"type":"resource_link","uri":"file:///a","name":"A","mimeType":"text/x","size":3,"description":"an a"}]}`,
		[]string{"[resource link file:///a, name A, type text/x, 3 bytes: an a]"}},
	{"unknown", `{"content":[{"type":"hologram","depth":9007199254740993},{"type":"text","text":"a"}]}`,
		[]string{`[content of type "hologram", which cannot be shown: {"type":"hologram","depth":9007199254740993}]` + "\na"}},
	{"structured", `{"content":[],"structuredContent":{"z":9007199254740993,"a":1.50}}`, []string{`{"z":9007199254740993,"a":1.50}`}},
	{"structured_only", `{"structuredContent":[1, 2]}`, []string{`[1,2]`}},
	{"structured_twice", `{"content":[{"type":"text","text":"{ \"a\": 1,\n \"z\": 2 }"}],"structuredContent":{"z":2,"a":1}}`, []string{`{"z":2,"a":1}`}},
	{"structured_wrapped", `{"content":[{"type":"text","text":"hello"}],"structuredContent":{"result":"hello"}}`, []string{"hello"}},
	{"structured_wrapped_list", `{"content":[{"type":"text","text":"a"},{"type":"text","text":"{\"b\":1}"}],"structuredContent":{"result":["a",{"b":1}]}}`,
		[]string{"a\n{\"b\":1}"}},
	{"structured_wrapped_object", `{"content":[{"type":"text","text":"{\"b\": 1}"}],"structuredContent":{"result":{"b":1}}}`, []string{`{"b": 1}`}},
	{"structured_number", `{"content":[{"type":"text","text":"4"}],"structuredContent":{"result":4}}`, []string{"4"}},
	{"structured_more", `{"content":[{"type":"text","text":"it rains"}],"structuredContent":{"mm":4}}`, []string{"it rains\n{\"mm\":4}"}},
	{"structured_output", `{"structuredContent":{"output":"as it is"}}`, []string{"as it is"}},
	{"structured_string", `{"structuredContent":"as it is"}`, []string{"as it is"}},
	{"structured_mirror", `{"content":[{"type":"image","mimeType":"image/png","data":"PNG"}],"structuredContent":{"content":[{"mimeType":"image/png","type":"image","data":"PNG"}]}}`,
		[]string{"image data:image/png;base64,PNG"}},
	{"structured_picture", `{"content":[{"type":"image","mimeType":"image/png","data":"PNG"}],"structuredContent":{"w":2,"png":"PNG"}}`,
		[]string{"image data:image/png;base64,PNG", `{"w":2,"png":"(sent as a part)"}`}},
	{"structured_image", `{"content":[{"type":"image","mimeType":"image/png","data":"PNG"}],"structuredContent":{"a":1}}`,
		[]string{"image data:image/png;base64,PNG", `{"a":1}`}},
}

func withPNG(s string) string { return strings.ReplaceAll(s, "PNG", pngData()) }

// scripted is a server that gives the results, and failures.
func scripted(results map[string]string) string {
	raw := map[string]json.RawMessage{}
	for name, r := range results {
		raw[name] = json.RawMessage(withPNG(r))
	}
	b, err := json.Marshal(raw)
	if err != nil {
		panic(err)
	}
	return string(b)
}

func allResults() map[string]string {
	all := map[string]string{}
	for _, c := range results {
		all[c.name] = c.result
	}
	return all
}

// X1: over stdio, where the results are the server's very text.
func TestResults(t *testing.T) {
	checkResults(t, connect(t, mcpbridge.Options{}, program("script", "RESULTS="+scripted(allResults()))))
}

func checkResults(t *testing.T, r *rig) {
	t.Helper()
	for _, c := range results {
		o := r.call(c.name, "{}")
		var want []string
		for _, w := range c.want {
			want = append(want, withPNG(w))
		}
		if got := parts(o.Content); o.Failed || strings.Join(got, "|") != strings.Join(want, "|") {
			t.Errorf("%s: failed %v\n got %q\nwant %q", c.name, o.Failed, got, want)
		}
	}
}

// X1, T3, T4, T11: failures, with what else there was.
func TestFailures(t *testing.T) {
	r := connect(t, mcpbridge.Options{}, program("script", "RESULTS="+scripted(map[string]string{
		"fails":     `{"content":[{"type":"text","text":"no such city"}],"isError":true}`,
		"no_reason": `{"content":[],"isError":true}`,
		"picture":   `{"content":[{"type":"text","text":"see"},{"type":"image","mimeType":"image/png","data":"PNG"}],"isError":true}`,
		"liar":      `{"content":[{"type":"text","text":"see"},{"type":"image","mimeType":"image/jpeg","data":"PNG"}]}`,
		"no_image":  `{"content":[{"type":"image","mimeType":"image/png","data":"aGVsbG8="}]}`,
		"no_base64": `{"content":[{"type":"text","text":"kept"},{"type":"image","mimeType":"image/png","data":"***"}]}`,
	})))
	for _, c := range []struct{ name, err, output string }{
		{"fails", "no such city", ""},
		{"no_reason", "MCP server probe reported a failure without a reason", ""},
		{"picture", "see", "image/png"},
		{"liar", `declared as "image/jpeg" but its data is image/png`, "see"},
		{"no_image", "not a PNG, JPEG, GIF or WebP image", ""},
		{"no_base64", "not base64", "kept"},
	} {
		o := r.call(c.name, "{}")
		shown := o.Content.Display()
		_, output, _ := strings.Cut(shown, "\n\noutput:\n")
		if !o.Failed || !strings.Contains(o.Error, c.err) || !strings.HasPrefix(shown, "status:\nerror\n\ntoolName:\n"+c.name+"\n") || !strings.Contains(output, c.output) {
			t.Errorf("%s: failed %v, error %q\n%s", c.name, o.Failed, o.Error, shown)
		}
	}
}

// The option Files keeps bytes out of the request that its endpoint would
// refuse.
func TestFilesRefused(t *testing.T) {
	o := mcpbridge.Options{Files: func(mediaType string) bool { return !strings.HasPrefix(mediaType, "audio/") }}
	r := connect(t, o, program("script", "RESULTS="+scripted(allResults())))
	text := r.call("audio", "{}").Content.Display()
	if !strings.HasPrefix(text, "[audio.wav, type audio/wav, 4 bytes, SHA-256 ") {
		t.Error(text)
	}
}

// I9, W11: a schema goes out as the server wrote it.
func TestSchemaBytes(t *testing.T) {
	const schema = `{"type":"object","properties":{"z":{"type":"integer","maximum":9007199254740993},"a":{"anyOf":[{"type":"string"},{"$ref":"#/$defs/x"}]}},"$defs":{"x":{"enum":[1.50,"<b>"]}}}`
	r := connect(t, mcpbridge.Options{}, program("script", `RESULTS={}`, `TOOLS={"name":"t","description":"d","inputSchema":`+schema+`},{"name":"u","inputSchema":{}},{"name":"v","title":"V","inputSchema":{"type":"object"}}`))
	defs := r.set().Definitions()
	f := defs[0].(*item.FunctionTool)
	if string(f.Parameters) != schema || f.Description != "d" || f.Name != "t" || *f.Strict {
		t.Errorf("%+v", f)
	}
	if f := defs[1].(*item.FunctionTool); string(f.Parameters) != "{}" {
		t.Errorf("%+v", f)
	}
	if f := defs[2].(*item.FunctionTool); f.Description != "V" {
		t.Errorf("%+v", f)
	}
}

// What the tap does not understand it leaves alone.
func FuzzTap(f *testing.F) {
	for _, c := range results {
		f.Add([]byte(`{"jsonrpc":"2.0","id":1,"result":` + c.result + `}`))
	}
	f.Add([]byte(`{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"a","inputSchema":{"b":1},"_meta":null},null]}}`))
	f.Add([]byte(`{"result":{"tools":[{"inputSchema":{},"_meta":[]}],"content":3}}`))
	f.Add([]byte(`{"result":{"content":[],"inputRequests":{}}}`))
	f.Fuzz(func(t *testing.T, message []byte) {
		out, err := mcpbridge.Tap(bytes.Clone(message))
		if err != nil {
			return
		}
		if json.Valid(message) != json.Valid(out) {
			t.Errorf("%q became %q", message, out)
		}
	})
}
