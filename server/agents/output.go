// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agents

import (
	"cmp"
	"context"
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"
	"unicode"

	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/server"
	"github.com/antiphon-go/antiphon/session"
)

// The output of an mcp_call is a text, so an image or a file in the output of a tool is a mark
// there, which names a file. That file is not stored again: it is read from the log of the
// response, and is gone with the response.

// purposeOutput is the API's purpose of files that were not uploaded.
const purposeOutput = "assistants_output"

// outputFileID returns the id of the part n of the output in the entry seq.
func outputFileID(response string, seq int64, n int) string {
	return fmt.Sprintf("file-%s_%d_%d", strings.TrimPrefix(response, "resp_"), seq, n)
}

// parseOutputFile reads an id of outputFileID.
func parseOutputFile(id string) (response string, seq int64, n int, ok bool) {
	rest, found := strings.CutPrefix(id, "file-")
	words := strings.Split(rest, "_")
	if !found || len(words) != 4 {
		return "", 0, 0, false
	}
	seq, err := strconv.ParseInt(words[2], 10, 64)
	if n, failed := strconv.Atoi(words[3]); err == nil && failed == nil && n >= 0 && outputFileID("resp_"+words[0]+"_"+words[1], seq, n) == id {
		return "resp_" + words[0] + "_" + words[1], seq, n, true
	}
	return "", 0, 0, false
}

// contentOf returns the content of an output.
func contentOf(it item.Item) (c item.Content, ok bool) {
	v, err := it.Decode()
	if err != nil {
		return c, false
	}
	switch v := v.(type) {
	case *item.FunctionCallOutput:
		return v.Output, true
	case *item.CustomToolCallOutput:
		return v.Output, true
	}
	return c, false
}

// inside returns the content of a part in base64, and its media type, if the part has it itself.
func inside(p item.Part) (mediaType, content string, ok bool) {
	switch p := p.(type) {
	case *item.InputImage:
		if p.FileID == "" {
			return item.CutDataURI(p.ImageURL)
		}
	case *item.InputFile:
		if p.FileID == "" && p.FileURL == "" {
			return item.CutDataURI(p.FileData)
		}
	}
	return "", "", false
}

// marked returns the output of a call as text, with the ids of files in it.
func (s *shown) marked(it item.Item, seq int64) string {
	c, ok := contentOf(it)
	if !ok || !s.files || c.IsText() {
		return displayed(it)
	}
	var lines []string
	for n, p := range c.Parts {
		if _, _, ok := inside(p); ok {
			switch known := p.(type) {
			case *item.InputImage:
				p = &item.InputImage{FileID: outputFileID(s.id, seq, n), Detail: known.Detail}
			case *item.InputFile:
				p = &item.InputFile{FileID: outputFileID(s.id, seq, n), Filename: known.Filename}
			}
		}
		lines = append(lines, item.Content{Parts: []item.Part{p}}.Display())
	}
	return strings.Join(lines, "\n")
}

// outputFile returns a file in the output of a tool.
func (b *Backend) outputFile(ctx context.Context, id string) (f server.File, content []byte, err error) {
	response, seq, n, ok := parseOutputFile(id)
	in, from, known := parseID(response)
	if !ok || !known {
		return f, nil, server.ErrNotFound
	}
	s, err := b.read(ctx, b.store(), in)
	if err != nil {
		return f, nil, err
	}
	p := partOf(s.Log(), from)
	if p.from == 0 || p.deleted || p.begin.ResponseID != response || seq <= p.from || seq > p.to {
		return f, nil, server.ErrNotFound
	}
	e := s.Log()[seq-1]
	out, ok := e.Body.(session.CallOutput)
	if !ok {
		return f, nil, server.ErrNotFound
	}
	whole, err := out.Item.Whole()
	if err != nil {
		return f, nil, err
	}
	c, _ := contentOf(whole)
	if n >= len(c.Parts) {
		return f, nil, server.ErrNotFound
	}
	kind, payload, ok := inside(c.Parts[n])
	if !ok {
		return f, nil, server.ErrNotFound
	}
	if err := server.Hold(ctx, int64(base64.StdEncoding.DecodedLen(len(payload)))); err != nil {
		return f, nil, err
	}
	if content, err = base64.StdEncoding.DecodeString(payload); err != nil {
		return f, nil, server.ErrNotFound
	}
	f = server.File{ID: id, Purpose: purposeOutput, Bytes: int64(len(content)), Created: e.Time.Unix()}
	if file, ok := c.Parts[n].(*item.InputFile); ok {
		f.Name = cmp.Or(file.Filename, "file")
	} else {
		f.Name = "image." + suffixOf(kind)
	}
	return f, content, nil
}

// suffixOf returns the end of a file's name for a media type: svg for image/svg+xml.
func suffixOf(mediaType string) string {
	_, kind, _ := strings.Cut(mediaType, "/")
	if end := strings.IndexFunc(kind, func(r rune) bool { return r > 'z' || !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '-' }); end >= 0 {
		kind = kind[:end]
	}
	return cmp.Or(kind, "bin")
}
