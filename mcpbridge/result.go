// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package mcpbridge

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	stdjson "encoding/json"
	"fmt"
	"path"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/tool"
	"github.com/antiphon-go/antiphon/tool/output"
)

// block is one block of a result's content, whatever its type. Schema:
// ContentBlock, of the protocol's versions up to 2026-07-28.
type block struct {
	Type        string    `json:"type"`
	Text        *string   `json:"text"`
	Data        string    `json:"data"`
	MIMEType    string    `json:"mimeType"`
	Resource    *resource `json:"resource"`
	URI         string    `json:"uri"`
	Name        string    `json:"name"`
	Description string    `json:"description"`
	Size        *int64    `json:"size"`
}

// resource is an embedded resource. Schema: TextResourceContents and
// BlobResourceContents.
type resource struct {
	URI      string  `json:"uri"`
	MIMEType string  `json:"mimeType"`
	Text     *string `json:"text"`
	Blob     *string `json:"blob"`
}

// result makes an output from a call's result: X1. Content keeps its order; if all
// of it is text, the output is that text.
func (l *link) result(res *mcp.CallToolResult) tool.Result {
	o := resultOutput{link: l}
	raw, tapped := res.Meta[rawMember].(string)
	if !tapped {
		b, err := stdjson.Marshal(res)
		if err != nil {
			o.problem("the result cannot be read: %v", err)
		}
		raw = string(b)
	}
	all, ok := members([]byte(raw), mostMembers)
	if !ok {
		o.text(raw)
		return o.result(false)
	}
	o.content(all["content"])
	o.structured(all["structuredContent"], all["content"])
	return o.result(string(all["isError"]) == "true")
}

// resultOutput is a result under construction.
type resultOutput struct {
	link     *link
	parts    []item.Part
	problems []string
	unsent   []tool.Unsent
	shown    []string // the base64 of data that became a part
}

func (o *resultOutput) text(s string) {
	o.parts = append(o.parts, &item.InputText{Text: o.link.server.hide(s)})
}

func (o *resultOutput) problem(format string, args ...any) {
	o.problems = append(o.problems, fmt.Sprintf(format, args...))
}

// refuse stores data that cannot be sent outside of the output.
func (o *resultOutput) refuse(data []byte, format string, args ...any) {
	o.unsent = append(o.unsent, tool.Unsent{Problem: fmt.Sprintf(format, args...), Data: data})
}

// texts returns the blocks that are text, in order.
func (o *resultOutput) texts() (list []*item.InputText) {
	for _, p := range o.parts {
		if t, ok := p.(*item.InputText); ok {
			list = append(list, t)
		}
	}
	return list
}

// result returns the complete output. For a failure, the text is the error, as
// servers use it.
func (o *resultOutput) result(failed bool) tool.Result {
	var res tool.Result
	texts := o.texts()
	lines := make([]string, 0, len(texts))
	for _, t := range texts {
		lines = append(lines, t.Text)
	}
	text := strings.Join(lines, "\n")
	switch {
	case failed:
		res.Error = cmp.Or(strings.TrimSpace(text), fmt.Sprintf("MCP server %s reported a failure without a reason", o.link.server.Name))
		for _, p := range o.parts {
			if _, isText := p.(*item.InputText); !isText {
				res.Parts = append(res.Parts, p)
			}
		}
	case len(texts) == len(o.parts):
		res.Text = text
	default:
		res.Parts = o.parts
	}
	for _, u := range o.unsent {
		u.Problem = fmt.Sprintf("MCP server %s: %s", o.link.server.Name, u.Problem)
		res.Unsent = append(res.Unsent, u)
	}
	if len(o.problems) > 0 {
		problems := fmt.Sprintf("MCP server %s: %s", o.link.server.Name, strings.Join(o.problems, "; "))
		res.Error = strings.TrimPrefix(res.Error+"\n"+problems, "\n")
	}
	return res
}

// mostBlocks is how many blocks a content may have. One with more is shown as the text that it is.
const mostBlocks = 10_000

// content adds a list of blocks, or a single block in place of a list.
func (o *resultOutput) content(raw jsontext.Value) {
	if len(raw) == 0 || raw.Kind() == 'n' {
		return
	}
	blocks := []jsontext.Value{raw}
	if raw.Kind() == '[' {
		var ok bool
		if blocks, ok = elements(raw, mostBlocks); !ok {
			o.problem("the content cannot be read, or has more than %d blocks", mostBlocks)
			o.text(string(raw))
			return
		}
	}
	for _, b := range blocks {
		o.block(b)
	}
}

func (o *resultOutput) block(raw jsontext.Value) {
	var b block
	if err := json.Unmarshal(raw, &b, lenient); err != nil {
		o.unknown(b.Type, raw)
		return
	}
	switch {
	case b.Type == "text" && b.Text != nil:
		o.text(*b.Text)
	case b.Type == "image":
		o.image(b.Data, b.MIMEType)
	case b.Type == "audio":
		if data, ok := o.decode("audio", b.Data); ok {
			o.file("audio"+extension(b.MIMEType), b.MIMEType, data)
		}
	case b.Type == "resource" && b.Resource != nil && (b.Resource.Text != nil || b.Resource.Blob != nil):
		o.resource(b.Resource)
	case b.Type == "resource_link" && b.URI != "":
		o.text(b.link())
	default:
		o.unknown(b.Type, raw)
	}
}

// unknown adds a block of an unknown kind as text that says so.
func (o *resultOutput) unknown(typ string, raw jsontext.Value) {
	text := raw.Clone()
	if err := text.Compact(lenient); err != nil {
		text = raw
	}
	o.text(fmt.Sprintf("[content of type %q, which cannot be shown: %s]", typ, text))
}

// link describes a resource that the server names but does not send.
func (b *block) link() string {
	text := "[resource link " + b.URI
	if b.Name != "" {
		text += ", name " + b.Name
	}
	if b.MIMEType != "" {
		text += ", type " + b.MIMEType
	}
	if b.Size != nil {
		text += fmt.Sprintf(", %d bytes", *b.Size)
	}
	if b.Description != "" {
		text += ": " + b.Description
	}
	return text + "]"
}

// decode reads base64, with or without line ends and padding.
func (o *resultOutput) decode(what, data string) ([]byte, bool) {
	if strings.HasPrefix(data, "data:") {
		_, data, _ = strings.Cut(data, ",")
	}
	clean := strings.TrimRight(strings.Join(strings.Fields(data), ""), "=")
	b, err := base64.RawStdEncoding.DecodeString(clean)
	if err == nil && len(b) == 0 {
		o.problem("the %s holds no data", what)
		return nil, false
	}
	if err != nil {
		o.refuse([]byte(data), "the %s is not base64: %v", what, err)
		return nil, false
	}
	return b, true
}

// image adds an image if its data has the declared type: T11.
func (o *resultOutput) image(data, mediaType string) {
	b, ok := o.decode("image", data)
	if !ok {
		return
	}
	img, err := output.Image(b)
	if err != nil {
		o.refuse(b, "the image, declared as %q: %v", mediaType, err)
		return
	}
	if is := output.SniffPicture(b); mediaType != "" && !sameType(mediaType, is) {
		o.refuse(b, "the image is declared as %q but its data is %s", mediaType, is)
		return
	}
	o.parts = append(o.parts, img)
	o.shown = append(o.shown, data)
}

func sameType(declared, is string) bool {
	declared, _, _ = strings.Cut(declared, ";")
	declared = strings.ToLower(strings.TrimSpace(declared))
	switch declared {
	case "image/jpg":
		declared = "image/jpeg"
	case "image/x-bmp", "image/x-ms-bmp":
		declared = "image/bmp"
	case "image/*":
		return true
	}
	return declared == is
}

// resource adds an embedded resource: its text, or its bytes by type. Its name comes
// first, because the model may be asked for it by name.
func (o *resultOutput) resource(r *resource) {
	head := "[resource " + r.URI
	if r.MIMEType != "" {
		head += ", type " + r.MIMEType
	}
	head += "]"
	if r.Text != nil {
		o.text(head + "\n" + *r.Text)
		return
	}
	if *r.Blob == "" {
		o.text(head)
		return
	}
	data, ok := o.decode("resource "+r.URI, *r.Blob)
	switch {
	case !ok:
	case output.SniffPicture(data) != "":
		o.text(head)
		o.image(*r.Blob, "")
	case isText(r.MIMEType, data):
		o.text(head + "\n" + string(data))
	default:
		o.text(head)
		o.file(fileName(r), r.MIMEType, data)
	}
}

// isText reports whether bytes are declared as text and are valid text.
func isText(mediaType string, data []byte) bool {
	mediaType, _, _ = strings.Cut(strings.ToLower(mediaType), ";")
	declared := strings.HasPrefix(mediaType, "text/") || strings.HasSuffix(mediaType, "json") || strings.HasSuffix(mediaType, "xml")
	return declared && utf8.Valid(data) && !strings.ContainsRune(string(data), 0)
}

// file adds other bytes as a file, or describes them if the caller does not accept
// files of their type.
func (o *resultOutput) file(name, mediaType string, data []byte) {
	mediaType = cmp.Or(mediaType, "application/octet-stream")
	if accepts := o.link.bridge.opts.Files; accepts != nil && !accepts(mediaType) {
		sum := sha256.Sum256(data)
		o.text(fmt.Sprintf("[%s, type %s, %d bytes, SHA-256 %s: not shown]", name, mediaType, len(data), hex.EncodeToString(sum[:])[:12]))
		return
	}
	url := "data:" + mediaType + ";base64," + base64.StdEncoding.EncodeToString(data)
	o.parts = append(o.parts, &item.InputFile{Filename: name, FileData: url})
	o.shown = append(o.shown, base64.StdEncoding.EncodeToString(data))
}

func fileName(r *resource) string {
	uri, _, _ := strings.Cut(r.URI, "?")
	name := path.Base(uri)
	if name == "." || name == "/" || name == "" {
		return "resource" + extension(r.MIMEType)
	}
	if path.Ext(name) == "" {
		name += extension(r.MIMEType)
	}
	return name
}

// extension returns the usual file extension of a media type.
func extension(mediaType string) string {
	mediaType, _, _ = strings.Cut(strings.ToLower(mediaType), ";")
	switch mediaType {
	case "audio/wav", "audio/x-wav", "audio/wave":
		return ".wav"
	case "audio/mpeg", "audio/mp3":
		return ".mp3"
	case "audio/ogg", "audio/flac", "audio/aac", "audio/webm", "application/pdf", "application/zip":
		_, ending, _ := strings.Cut(mediaType, "/")
		return "." + ending
	case "audio/mp4":
		return ".m4a"
	case "application/gzip", "application/x-gzip":
		return ".gz"
	}
	return ".bin"
}
