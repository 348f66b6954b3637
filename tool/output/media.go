// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package output

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"path"
	"strings"
	"unicode/utf8"

	"github.com/antiphon-go/antiphon/item"
)

// MaxFileBytes is the maximum size of a file that is sent inline.
const MaxFileBytes = 32 << 20

// File returns a file part that holds data as a data URI, named by the last element
// of name. The bytes determine the media type: a PDF, text, a zip file or a format
// based on zip, gzip, or an image. For text and zip files, the name's extension
// determines the exact type. Unknown bytes are application/octet-stream. File
// returns an error for empty data, for more than [MaxFileBytes], and for a name of a
// PDF, Word document or similar that contradicts the bytes.
func File(name string, data []byte) (*item.InputFile, error) {
	name = fileName(name)
	switch {
	case len(data) == 0:
		return nil, fmt.Errorf("the file %s is empty", PlainName(name))
	case len(data) > MaxFileBytes:
		return nil, fmt.Errorf("the file %s has %d bytes, more than the limit of %d", PlainName(name), len(data), MaxFileBytes)
	}
	mediaType := SniffFile(name, data)
	if want := fileTypes[extension(name)]; want != "" && kindOf(want) != kindOf(mediaType) {
		return nil, fmt.Errorf("the file %s is not what its name says: its data is %s", PlainName(name), mediaType)
	}
	return &item.InputFile{Filename: cmp.Or(name, "file"), FileData: dataURI(mediaType, data)}, nil
}

// SniffFile returns the media type of a file, determined by its bytes and, if they
// are ambiguous, by the extension of its name. It is never empty.
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
	case IsText(data):
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

// fileTypes are the media types of extensions, for formats that bytes do not
// identify.
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

// kindOf returns the part of a media type that the bytes must confirm.
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

// fileName returns the last element of a path with slashes or backslashes, as valid
// text on one line.
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
	if over := len(name) - most; over > 0 { // keep the extension
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

// IsText reports whether data is valid UTF-8 without NUL.
func IsText(data []byte) bool { return bytes.IndexByte(data, 0) < 0 && utf8.Valid(data) }

// originalFile returns the bytes of a refused file, as far as they can be decoded.
func originalFile(f *item.InputFile) []byte {
	if _, data, inline, err := openDataURI("file", f.FileData); inline && err == nil {
		return data
	}
	return []byte(f.FileData)
}

// settleFile verifies a file that is sent inline: it must be base64 and not too
// large, a declared PDF must be a PDF, and declared text must be text. Other types
// are not checked.
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
	case kind == kindPDF && !isPDF(data), kind == kindZip && !isZip(data), kind == kindText && !IsText(data),
		strings.HasPrefix(kind, "image/") && !sameImageType(kind, SniffPicture(data)):
		return fmt.Errorf("the file is declared as %q but its data is something else", declared)
	}
	return nil
}

var errNoImage = errors.New("not a PNG, JPEG, GIF or WebP image")

// SniffImage returns the media type of an image by its first bytes: image/png,
// image/jpeg, image/gif or image/webp, the formats that the API accepts. It returns
// "" for anything else.
func SniffImage(data []byte) string {
	switch {
	case bytes.HasPrefix(data, []byte("\x89PNG\r\n\x1a\n")):
		return "image/png"
	case bytes.HasPrefix(data, []byte("\xff\xd8\xff")):
		return "image/jpeg"
	case bytes.HasPrefix(data, []byte("GIF87a")), bytes.HasPrefix(data, []byte("GIF89a")):
		return "image/gif"
	case len(data) >= 12 && string(data[:4]) == "RIFF" && string(data[8:12]) == "WEBP":
		return "image/webp"
	}
	return ""
}

// SniffPicture is like SniffImage but also recognizes image/bmp and image/tiff.
// Models do not accept these; an [Imager] such as package picture's converts them to
// PNG.
func SniffPicture(data []byte) string {
	if mediaType := SniffImage(data); mediaType != "" {
		return mediaType
	}
	switch {
	case bytes.HasPrefix(data, []byte("II*\x00")), bytes.HasPrefix(data, []byte("MM\x00*")):
		return "image/tiff"
	case isBMP(data):
		return "image/bmp"
	}
	return ""
}

// isBMP checks more than the two letters at the beginning of a BMP, because a text
// may begin with them too: after reserved zeros it must have the size of a known
// header.
func isBMP(data []byte) bool {
	const head = 18
	if len(data) < head || string(data[:2]) != "BM" || binary.LittleEndian.Uint32(data[6:]) != 0 {
		return false
	}
	switch binary.LittleEndian.Uint32(data[14:]) {
	case 12, 40, 52, 56, 64, 108, 124:
		return true
	}
	return false
}

// CheckImage returns the media type of an image like [SniffPicture], or an error for
// bytes that are not an image or are truncated. It checks the structure of the file,
// not the pixels.
func CheckImage(data []byte) (mediaType string, err error) {
	switch mediaType = SniffPicture(data); mediaType {
	case "image/png":
		err = checkPNG(data)
	case "image/jpeg":
		if bytes.LastIndex(data, []byte{0xff, 0xd9}) < 0 {
			err = errDamaged(mediaType)
		}
	case "image/gif":
		if len(data) < 14 {
			err = errDamaged(mediaType)
		}
	case "image/webp":
		if len(data) < 20 || int64(binary.LittleEndian.Uint32(data[4:]))+8 > int64(len(data)) {
			err = errDamaged(mediaType)
		}
	case "image/bmp":
		if int64(binary.LittleEndian.Uint32(data[10:])) > int64(len(data)) {
			err = errDamaged(mediaType)
		}
	case "image/tiff":
		if len(data) < 8 {
			err = errDamaged(mediaType)
		}
	default:
		err = errNoImage
	}
	return mediaType, err
}

func checkPNG(data []byte) error {
	if len(data) < 33 || string(data[12:16]) != "IHDR" {
		return errDamaged("image/png")
	}
	if bytes.LastIndex(data, []byte("IEND")) < 0 {
		return errDamaged("image/png")
	}
	return nil
}

func errDamaged(mediaType string) error {
	return fmt.Errorf("begins as %s but is incomplete or damaged", mediaType)
}

// MaxImageBytes is the maximum size of an image that is sent inline without an
// [Imager] to reduce it.
const MaxImageBytes = 20 << 20

// Imager adapts images to a model; picture.Limits is an implementation. Image
// receives the bytes of an image in a format of [SniffPicture]. It returns the bytes
// to send, in a format of [SniffImage], and a short note if the model should know
// about a change. If it returns an error, the image is not sent, and the model reads
// the error. An Imager must be safe for concurrent use, return the same result for
// the same image, and be comparable.
type Imager interface {
	Fit(data []byte) (fit []byte, note string, err error)
}

// Image returns an image part that holds data as a data URI, with the media type
// determined by its bytes and detail auto. It fails like [CheckImage]. A BMP or TIFF
// becomes an error in the output if there is no [Imager] to convert it to PNG.
func Image(data []byte) (*item.InputImage, error) {
	mediaType, err := CheckImage(data)
	if err != nil {
		return nil, err
	}
	return &item.InputImage{ImageURL: dataURI(mediaType, data), Detail: item.DetailAuto}, nil
}

func dataURI(mediaType string, data []byte) string {
	head := "data:" + mediaType + ";base64,"
	b := make([]byte, 0, len(head)+base64.StdEncoding.EncodedLen(len(data)))
	return string(base64.StdEncoding.AppendEncode(append(b, head...), data))
}

// openDataURI returns the media type and the bytes of an inline payload. inline is
// false for other URLs, which the endpoint fetches.
func openDataURI(what, url string) (mediaType string, data []byte, inline bool, err error) {
	const scheme = "data:"
	if len(url) < len(scheme) || !strings.EqualFold(url[:len(scheme)], scheme) {
		return "", nil, false, nil
	}
	head, payload, found := strings.Cut(url[len(scheme):], ",")
	declared, isBase64 := strings.CutSuffix(head, ";base64")
	if !found || !isBase64 {
		return "", nil, true, fmt.Errorf("the %s's data URI is not base64", what)
	}
	if data, err = base64.StdEncoding.DecodeString(payload); err != nil {
		return "", nil, true, fmt.Errorf("the %s's data URI: %w", what, err)
	}
	declared, _, _ = strings.Cut(declared, ";")
	return declared, data, true, nil
}

// sameImageType reports whether a declared type matches the detected type.
func sameImageType(declared, is string) bool {
	switch declared = strings.ToLower(declared); declared {
	case "image/jpg", "image/pjpeg":
		declared = "image/jpeg"
	case "image/x-bmp", "image/x-ms-bmp", "image/x-windows-bmp":
		declared = "image/bmp"
	case "image/x-png":
		declared = "image/png"
	}
	return declared == is
}

// fitImage verifies and adapts an image that is sent inline. It returns the original
// if the image is refused or replaced.
func fitImage(img *item.InputImage, images Imager) (note string, original []byte, err error) {
	declared, data, inline, err := openDataURI("image", img.ImageURL)
	if !inline {
		return "", nil, err
	}
	if err != nil {
		return "", []byte(img.ImageURL), err
	}
	mediaType, err := CheckImage(data)
	switch {
	case err != nil:
		return "", data, fmt.Errorf("the image's data: %w", err)
	case !sameImageType(declared, mediaType):
		return "", data, fmt.Errorf("the image is declared as %q but its data is %s", declared, mediaType)
	case images == nil && SniffImage(data) == "":
		return "", data, fmt.Errorf("the image is %s, and models take PNG, JPEG, GIF and WebP", mediaType)
	case images == nil && len(data) > MaxImageBytes:
		return "", data, fmt.Errorf("the image has %d bytes, more than the limit of %d", len(data), MaxImageBytes)
	case images == nil:
		return "", nil, nil
	}
	fit, note, err := images.Fit(data)
	if err != nil {
		return "", data, fmt.Errorf("the image: %w", err)
	}
	note, _ = Sanitize(note)
	if bytes.Equal(fit, data) {
		return note, nil, nil
	}
	if mediaType = SniffImage(fit); mediaType == "" {
		return "", data, errors.New("the image, made to fit, is not a PNG, JPEG, GIF or WebP image")
	}
	if _, err = CheckImage(fit); err != nil {
		return "", data, fmt.Errorf("the image, made to fit: %w", err)
	}
	img.ImageURL = dataURI(mediaType, fit)
	return note, data, nil
}

// DataImage returns an image part that holds data unverified; [Policy.Write]
// verifies it.
func DataImage(data []byte) *item.InputImage {
	return &item.InputImage{ImageURL: dataURI(SniffPicture(data), data), Detail: item.DetailAuto}
}

// DataFile returns a file part that holds data unverified; [Policy.Write] verifies
// it.
func DataFile(name string, data []byte) *item.InputFile {
	return &item.InputFile{Filename: name, FileData: dataURI(SniffFile(name, data), data)}
}
