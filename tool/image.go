// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package tool

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"

	"github.com/antiphon-go/antiphon/item"
)

var errNoImage = errors.New("not a PNG, JPEG, GIF or WebP image")

// SniffImage returns the media type of an image by its first bytes: image/png,
// image/jpeg, image/gif or image/webp, which are what the API takes. It returns
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

// SniffPicture is SniffImage that also knows image/bmp and image/tiff: no model
// takes them, and an [Imager] such as package picture's makes a PNG of them.
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

// isBMP looks at more than the two letters that a BMP begins with, which a text
// may begin with too: the size of one of its headers stands after reserved zeros.
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

// CheckImage returns the media type of an image as [SniffPicture] does, or an
// error for bytes that are not an image or that end too early. It looks at the
// frame of the file, not at the pixels.
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

// MaxImageBytes is the largest image that an output carries inline where no
// [Imager] makes it smaller.
const MaxImageBytes = 20 << 20

// Imager makes images fit for a model: picture.Limits is one. It is given the
// bytes of an image in one of the formats of [SniffPicture] and returns those to
// send, in one of those of [SniffImage], and a short note if the model should know what
// was done to it. An error keeps the image from being sent, and the model reads
// it. An Imager must be safe for concurrent use, return the same for the same
// image, and be comparable.
type Imager interface {
	Fit(data []byte) (fit []byte, note string, err error)
}

// Image returns an image part that holds data as a data URI with the media
// type that its bytes show and detail auto. It fails as [CheckImage] does. Where
// no [Imager] makes a PNG of a BMP or TIFF, that is an error in the output.
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

// openDataURI returns the media type and the bytes of an inline payload. Other
// URLs are the endpoint's to fetch: then it is not inline.
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

// sameImageType reports whether a declared type means what the bytes show.
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

// fitImage verifies an image that is sent inline and makes it fit. The original is
// set if it is refused, or another is sent in its place.
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
