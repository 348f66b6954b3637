// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package tool

import (
	"bytes"
	"cmp"
	"fmt"
	"path"
	"strings"
	"unicode/utf8"

	"github.com/antiphon-go/antiphon/item"
)

// MaxFileBytes is the largest file that an output carries inline.
const MaxFileBytes = 32 << 20

// File returns a file part that holds data as a data URI, under the last
// element of name, with the media type that its bytes show: a PDF, text, a zip
// file and what is made of one, gzip, or an image. Of text and zip files the
// name's extension says which kind. Bytes that nobody knows are
// application/octet-stream. It fails on no data, on more than [MaxFileBytes],
// and on a name that says PDF, Word and the like where the bytes say otherwise.
func File(name string, data []byte) (*item.InputFile, error) {
	name = fileName(name)
	switch {
	case len(data) == 0:
		return nil, fmt.Errorf("the file %s is empty", plainName(name))
	case len(data) > MaxFileBytes:
		return nil, fmt.Errorf("the file %s has %d bytes, more than the limit of %d", plainName(name), len(data), MaxFileBytes)
	}
	mediaType := SniffFile(name, data)
	if want := fileTypes[extension(name)]; want != "" && kindOf(want) != kindOf(mediaType) {
		return nil, fmt.Errorf("the file %s is not what its name says: its data is %s", plainName(name), mediaType)
	}
	return &item.InputFile{Filename: cmp.Or(name, "file"), FileData: dataURI(mediaType, data)}, nil
}

// SniffFile returns the media type of a file by its bytes and, where these
// leave it open, by its name's extension. It is never empty.
func SniffFile(name string, data []byte) string {
	kind := kindZip
	switch {
	case SniffPicture(data) != "":
		return SniffPicture(data)
	case isPDF(data):
		return kindPDF
	case isZip(data):
	case bytes.HasPrefix(data, []byte("\x1f\x8b\x08")):
		return "application/gzip"
	case isText(data):
		kind = kindText
	default:
		return "application/octet-stream"
	}
	if t := fileTypes[extension(name)]; kindOf(t) == kind {
		return t
	}
	return kind
}

const (
	kindPDF  = "application/pdf"
	kindText = "text/plain"
	kindZip  = "application/zip"
)

// fileTypes are the media types of the extensions whose bytes say less.
var fileTypes = map[string]string{
	"pdf":  kindPDF,
	"zip":  kindZip,
	"docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
	"pptx": "application/vnd.openxmlformats-officedocument.presentationml.presentation",
	"xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
	"txt":  kindText,
	"csv":  "text/csv",
	"css":  "text/css",
	"html": "text/html",
	"json": "application/json",
	"md":   "text/markdown",
	"xml":  "application/xml",
}

// kindOf is the part of a media type that the bytes must show.
func kindOf(mediaType string) string {
	switch {
	case strings.HasPrefix(mediaType, "text/"), mediaType == "application/json", mediaType == "application/xml":
		return kindText
	case strings.HasPrefix(mediaType, "application/vnd.openxmlformats-"):
		return kindZip
	}
	return mediaType
}

func extension(name string) string {
	return strings.ToLower(strings.TrimPrefix(path.Ext(name), "."))
}

// fileName returns the last element of a path of either kind, as valid text on
// one line.
func fileName(name string) string {
	name, _ = Sanitize(name)
	name = name[strings.LastIndexAny(name, `/\`)+1:]
	name = strings.Map(func(r rune) rune {
		if notVisible(r) {
			return '_'
		}
		return r
	}, name)
	const most = 128
	if over := len(name) - most; over > 0 { // the extension stays
		for !utf8.RuneStart(name[over]) {
			over++
		}
		name = name[over:]
	}
	return name
}

func isPDF(data []byte) bool { return bytes.HasPrefix(data, []byte("%PDF-")) }

func isZip(data []byte) bool {
	return bytes.HasPrefix(data, []byte("PK\x03\x04")) || bytes.HasPrefix(data, []byte("PK\x05\x06"))
}

func isText(data []byte) bool { return bytes.IndexByte(data, 0) < 0 && utf8.Valid(data) }

// originalFile returns the bytes of a file that is refused, as far as they can be
// read.
func originalFile(f *item.InputFile) []byte {
	if _, data, inline, err := openDataURI("file", f.FileData); inline && err == nil {
		return data
	}
	return []byte(f.FileData)
}

// settleFile verifies a file that is sent inline: base64, not too large, a PDF
// if it is said to be one, text if it is said to be text. Of other types the
// bytes are not known here.
func settleFile(f *item.InputFile) error {
	if err := validText(f.FileData); err != nil {
		return err
	}
	declared, data, inline, err := openDataURI("file", f.FileData)
	if err != nil || !inline {
		return err
	}
	f.Filename = cmp.Or(f.Filename, "file")
	declared = strings.ToLower(declared)
	switch kind := kindOf(declared); {
	case len(data) == 0:
		return fmt.Errorf("the file is empty")
	case len(data) > MaxFileBytes:
		return fmt.Errorf("the file has %d bytes, more than the limit of %d", len(data), MaxFileBytes)
	case kind == kindPDF && !isPDF(data), kind == kindZip && !isZip(data), kind == kindText && !isText(data),
		strings.HasPrefix(kind, "image/") && !sameImageType(kind, SniffPicture(data)):
		return fmt.Errorf("the file is declared as %q but its data is something else", declared)
	}
	return nil
}
