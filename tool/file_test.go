// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package tool

import (
	"bytes"
	"encoding/base64"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/tool/output"
)

// T10: files by what their bytes show.
func TestFile(t *testing.T) {
	for _, c := range []struct{ name, data, wantName, wantType string }{
		{"a.pdf", "%PDF-1.7\n", "a.pdf", "application/pdf"},
		{"report", "%PDF-1.7\n", "report", "application/pdf"},
		{"/tmp/x/a.txt", "text\n", "a.txt", "text/plain"},
		{`C:\x\a.CSV`, "a,b\n", "a.CSV", "text/csv"},
		{"a.json", "{}", "a.json", "application/json"},
		{"a.go", "package a\n", "a.go", "text/plain"},
		{"", "text", "file", "text/plain"},
		{"a\nb\u202e.md", "# é", "a_b_.md", "text/markdown"},
		{"a.docx", "PK\x03\x04...", "a.docx", "application/vnd.openxmlformats-officedocument.wordprocessingml.document"},
		{"a.jar", "PK\x03\x04...", "a.jar", "application/zip"},
		{"a.gz", "\x1f\x8b\x08\x00", "a.gz", "application/gzip"},
		{"a.bin", "\x00\x01", "a.bin", "application/octet-stream"},
		{"a.png", "\x89PNG\r\n\x1a\n", "a.png", "image/png"},
	} {
		f, err := output.File(c.name, []byte(c.data))
		if err != nil {
			t.Errorf("%q: %v", c.name, err)
			continue
		}
		want := "data:" + c.wantType + ";base64," + base64.StdEncoding.EncodeToString([]byte(c.data))
		if f.Filename != c.wantName || f.FileData != want {
			t.Errorf("%q: %+v", c.name, f)
		}
		if o := invokeValue(t, output.Policy{}, f, nil); o.Failed || len(o.Content.Parts) != 1 || !cmp.Equal(o.Content.Parts[0], item.Part(f)) {
			t.Errorf("%q cannot be sent as it is: %+v", c.name, o)
		}
	}
	for name, data := range map[string][]byte{
		"empty.txt": nil,
		"lie.pdf":   []byte("hello"),
		"lie.docx":  []byte("%PDF-1.7"),
		"lie.txt":   {0, 1, 2},
		"large.bin": make([]byte, output.MaxFileBytes+1),
	} {
		if f, err := output.File(name, data); err == nil {
			t.Errorf("%s: %s", name, f.FileData[:min(40, len(f.FileData))])
		}
	}
	long, err := output.File(strings.Repeat("é", 300)+".pdf", []byte("%PDF-1.4"))
	if err != nil || len(long.Filename) > 128 || !strings.HasSuffix(long.Filename, "é.pdf") {
		t.Errorf("%+v %v", long, err)
	}
}

// T10: bytes that are a PDF become a file.
func TestPDFBytes(t *testing.T) {
	o := invokeValue(t, output.Policy{}, []byte("%PDF-1.7 \x00\xff"), nil)
	f, ok := o.Content.Parts[0].(*item.InputFile)
	if !ok || f.Filename != "output.pdf" || !strings.HasPrefix(f.FileData, "data:application/pdf;base64,") {
		t.Errorf("%+v", o)
	}
}

// T11: a file whose media type lies is not sent; of other types nothing is
// known here.
func TestBadFiles(t *testing.T) {
	uri := func(mediaType, data string) string {
		return "data:" + mediaType + ";base64," + base64.StdEncoding.EncodeToString([]byte(data))
	}
	for name, data := range map[string]string{
		"lying PDF":  uri("application/pdf", "hello"),
		"lying text": uri("text/plain", "a\x00"),
		"lying zip":  uri("application/zip", "x"),
		"no image":   uri("image/png", "x"),
		"bad base64": "data:application/pdf;base64,*",
		"no base64":  "data:text/plain,abc",
		"empty":      uri("text/plain", ""),
		"too large":  uri("audio/wav", strings.Repeat("x", output.MaxFileBytes+1)),
	} {
		o := invokeValue(t, output.Policy{}, item.Parts(&item.InputText{Text: "text"}, &item.InputFile{Filename: "a", FileData: data}), nil)
		if !o.Failed || !strings.HasSuffix(strings.Join(texts(o.Content), ""), "\n\noutput:\ntext") || strings.Contains(o.Error, "base64,") {
			t.Errorf("%s: %+v", name, o.Error)
		}
	}
	for name, f := range map[string]*item.InputFile{
		"PDF":     {Filename: "a.pdf", FileData: uri("Application/PDF", "%PDF-1")},
		"unknown": {Filename: "a.wav", FileData: uri("audio/wav", "RIFF")},
		"URL":     {FileURL: "https://example.com/a.pdf"},
		"id":      {FileID: "file-1"},
		"bare":    {Filename: "a.pdf", FileData: "JVBERi0="},
	} {
		if o := invokeValue(t, output.Policy{}, f, nil); o.Failed || !cmp.Equal(o.Content.Parts[0], item.Part(f)) {
			t.Errorf("%s: %+v", name, o)
		}
	}
	if o := invokeValue(t, output.Policy{}, &item.InputFile{FileData: uri("text/plain", "x")}, nil); o.Content.Parts[0].(*item.InputFile).Filename != "file" {
		t.Errorf("no name: %+v", o)
	}
}

// imager is an Imager that does what it is told.
type imager struct {
	fit  string
	note string
	err  string
}

func (i imager) Fit(data []byte) ([]byte, string, error) {
	if i.err != "" {
		return nil, "", errors.New(i.err)
	}
	if i.fit == "" {
		return data, i.note, nil
	}
	return []byte(i.fit), i.note, nil
}

// T10: what an Imager makes of an image is sent, with its note before it.
func TestImager(t *testing.T) {
	png := pixelPNG(t)
	img, err := output.Image(png)
	if err != nil {
		t.Fatal(err)
	}
	other := append(bytes.Clone(png), "more"...)
	small, err := output.Image(other)
	if err != nil {
		t.Fatal(err)
	}
	text := func(s string) item.Part { return &item.InputText{Text: s} }
	for name, c := range map[string]struct {
		images imager
		res    Result
		want   []item.Part
	}{
		"as it is":     {imager{}, Result{Text: "t", Parts: []item.Part{img}}, []item.Part{text("t"), img}},
		"smaller":      {imager{fit: string(other), note: "[small\x00er]"}, Result{Text: "t", Parts: []item.Part{img}}, []item.Part{text("t"), text("[small\uFFFDer]"), small}},
		"without text": {imager{fit: string(other), note: "[smaller]"}, Result{Parts: []item.Part{img}}, []item.Part{text("[smaller]"), small}},
		"not inline":   {imager{err: "no"}, Result{Parts: []item.Part{&item.InputImage{FileID: "file-1"}}}, []item.Part{&item.InputImage{FileID: "file-1"}}},
	} {
		o := invokeValue(t, output.Policy{Images: c.images}, c.res, nil)
		if diff := cmp.Diff(c.want, o.Content.Parts); diff != "" || o.Failed {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	for name, i := range map[string]imager{"refused": {err: "it is too large"}, "broken": {fit: "no image"}} {
		o := invokeValue(t, output.Policy{Images: i}, Result{Text: "t", Parts: []item.Part{img}}, nil)
		if !o.Failed || !o.Content.IsText() {
			t.Errorf("%s: %+v", name, o)
		}
		t.Log(o.Error)
	}
	big := append(bytes.Clone(png), make([]byte, output.MaxImageBytes)...)
	if o := invokeValue(t, output.Policy{}, big, nil); !o.Failed || !strings.Contains(o.Error, "more than the limit of") {
		t.Errorf("%s", o.Error)
	}
}
