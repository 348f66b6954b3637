// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package toolkit

import (
	"context"
	_ "embed"
	"fmt"
	"io"

	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/tool"
	"github.com/antiphon-go/antiphon/tool/output"
	"github.com/antiphon-go/antiphon/toolkit/internal/files"
	"github.com/antiphon-go/antiphon/toolkit/internal/pixels"
)

// MaxImageBytes is the maximum size of an image for import_image.
const MaxImageBytes = 20 << 20

//go:embed import_image.md
var importImageText string

// importImageInput are the arguments of import_image.
type importImageInput struct {
	Path string `json:"path" jsonschema:"the image, relative to a root, or name:path for a named root"`
}

func newImportImage(name string, f *files.Files) (tool.Tool, error) {
	t, err := tool.New(name, f.Describe(importImageText), fileTools{f}.importImage, tool.ReadOnly(), tool.Idempotent())
	if err != nil {
		return nil, err
	}
	return f.Guard(t, files.None, files.PathOf), nil
}

// importImage returns a line of text and the image. The media type is determined
// from the data, not from the file's name.
func (f fileTools) importImage(ctx context.Context, in importImageInput) (tool.Result, error) {
	p, release, err := f.Pin(ctx, in.Path, "read", false)
	if err != nil {
		return tool.Result{}, err
	}
	defer func() { _ = release() }()
	file, info, err := p.Open("read")
	if err != nil {
		return tool.Result{}, err
	}
	defer file.Close()
	if info.Size() > MaxImageBytes {
		return tool.Result{}, fmt.Errorf("%s has %d bytes; the limit for an image is %d. Use a smaller version of it", p, info.Size(), MaxImageBytes)
	}
	data, err := io.ReadAll(io.LimitReader(files.ReadWithin(ctx, file), MaxImageBytes+1))
	if err != nil {
		return tool.Result{}, p.Problem("read", err)
	}
	if len(data) > MaxImageBytes {
		return tool.Result{}, fmt.Errorf("%s has more than %d bytes, the limit for an image. Use a smaller version of it", p, MaxImageBytes)
	}
	part, err := output.Image(data)
	if err != nil {
		return tool.Result{}, fmt.Errorf("%s cannot be imported: %w%s", p, err, readInstead(p, data))
	}
	mediaType := output.SniffPicture(data)
	width, height, err := pixels.Size(mediaType, data)
	if err != nil {
		return tool.Result{}, fmt.Errorf("%s cannot be imported: it begins as %s but its header is damaged (%w)", p, mediaType, err)
	}
	text := fmt.Sprintf("%s: %s, %dx%d pixels, %d bytes", p, mediaType, width, height, len(data))
	return tool.Result{Text: text, Parts: []item.Part{part}}, nil
}

// readInstead suggests the tool for a text file.
func readInstead(p files.Place, data []byte) string {
	if len(data) > 0 && p.RefuseBinary(data, int64(len(data))) == nil {
		return "; it looks like text: use read_file"
	}
	return ""
}
