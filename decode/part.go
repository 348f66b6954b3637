// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package decode

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/antiphon-go/antiphon/internal/nils"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/tool/output"
)

// ReadPart is [Part] for a file that is read from r, at most as far as it may be large.
func ReadPart(name string, r io.Reader) (item.Part, error) {
	if nils.Is(r) {
		return nil, errors.New("decode: the reader of the file is nil")
	}
	data, err := io.ReadAll(io.LimitReader(r, output.MaxFileBytes+1))
	if err != nil {
		return nil, err
	}
	return Part(name, data)
}

// Part returns the content of a file as a part of a message: an image, text under the
// file's name, or a file that the endpoint reads. An image that models do not read (BMP,
// TIFF) becomes a PNG. Data that is empty, larger than [output.MaxFileBytes], or not what
// the name says is an error.
func Part(name string, data []byte) (item.Part, error) {
	switch {
	case len(data) == 0:
		return nil, errors.New("it is empty")
	case len(data) > output.MaxFileBytes:
		return nil, fmt.Errorf("it has more than %d MiB", output.MaxFileBytes>>20)
	case output.SniffImage(data) != "":
		return output.Image(data)
	case output.SniffPicture(data) != "":
		fit, _, err := (Images{Bytes: output.MaxImageBytes}).Fit(data)
		if err != nil {
			return nil, err
		}
		return output.Image(fit)
	case utf8.Valid(data) && output.IsText(data) && output.SniffFile(name, data) != "application/pdf":
		return TextPart(filepath.Base(name), string(data)), nil
	}
	return output.File(name, data)
}

// nameEnd stands between the name of a text and the text.
const nameEnd = ":\n\n"

// TextPart returns a text as a part of a message, under the name of its source, such as a file or a URL.
func TextPart(name, text string) *item.InputText {
	return &item.InputText{Text: name + nameEnd + text}
}

// TextName returns the name that [TextPart] put before a text, or "" if the text has none.
func TextName(text string) string {
	name, _, ok := strings.Cut(text, nameEnd)
	if !ok || strings.Contains(name, "\n") {
		return ""
	}
	return name
}
