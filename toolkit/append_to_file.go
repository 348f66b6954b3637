// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package toolkit

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"

	"github.com/antiphon-go/antiphon/tool"
	"github.com/antiphon-go/antiphon/toolkit/internal/files"
)

//go:embed append_to_file.md
var appendToFileText string

// appendToFileInput are the arguments of append_to_file. The tags of its fields
// become the tool's schema.
type appendToFileInput struct {
	Path    string `json:"path" jsonschema:"the file, relative to a root, or name:path for a named root; it is created if it does not exist"`
	Content string `json:"content" jsonschema:"the text to add at the end, exactly as it is; no line end is added"`
}

func newAppendToFile(name string, f *files.Files) (tool.Tool, error) {
	t, err := tool.New(name, f.Describe(appendToFileText), fileTools{f}.appendToFile, tool.Exclusive())
	if err != nil {
		return nil, err
	}
	return f.Guard(t, files.PathOf, files.None), nil
}

// appendToFile adds text to the end of a file. It adds no line end before the text,
// but says so in the output if the last line had none.
func (f fileTools) appendToFile(ctx context.Context, in appendToFileInput) (string, error) {
	if in.Content == "" {
		return "", errors.New("content is empty; there is nothing to append")
	}
	p, release, err := f.Pin(ctx, in.Path, "write", true)
	if err != nil {
		return "", err
	}
	defer func() { _ = release() }()
	var done string
	err = f.Edit(p, true, func(old []byte, exists bool) ([]byte, error) {
		// Edit may have waited for another write.
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		content := append(bytes.Clone(old), in.Content...)
		switch {
		case !exists:
			done = fmt.Sprintf("Created %s with %d bytes.", p, len(content))
		case len(old) > 0 && old[len(old)-1] != '\n':
			done = fmt.Sprintf("Appended %d bytes to %s, which has %d bytes now. Its last line had no line end, so the text went on in that line.", len(in.Content), p, len(content))
		default:
			done = fmt.Sprintf("Appended %d bytes to %s, which has %d bytes now.", len(in.Content), p, len(content))
		}
		return content, nil
	})
	if err != nil {
		return "", err
	}
	return done, nil
}
