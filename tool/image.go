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

// CheckImage returns the media type of an image, or an error for bytes that are
// none or that end too early. It looks at the frame of the file, not at the
// pixels.
func CheckImage(data []byte) (mediaType string, err error) {
	switch mediaType = SniffImage(data); mediaType {
	case "image/png":
		err = checkPNG(data)
	case "image/jpeg":
		if bytes.LastIndex(data, []byte{0xff, 0xd9}) < 0 {
			err = cutOff(mediaType)
		}
	case "image/gif":
		if len(data) < 14 {
			err = cutOff(mediaType)
		}
	case "image/webp":
		if len(data) < 20 || int64(binary.LittleEndian.Uint32(data[4:]))+8 > int64(len(data)) {
			err = cutOff(mediaType)
		}
	default:
		err = errNoImage
	}
	return mediaType, err
}

func checkPNG(data []byte) error {
	if len(data) < 33 || string(data[12:16]) != "IHDR" {
		return cutOff("image/png")
	}
	if bytes.LastIndex(data, []byte("IEND")) < 0 {
		return cutOff("image/png")
	}
	return nil
}

func cutOff(mediaType string) error {
	return fmt.Errorf("begins as %s but is cut off or damaged", mediaType)
}

// Image returns an image part that holds data as a data URI with the media
// type that its bytes show and detail auto. It fails as [CheckImage] does.
func Image(data []byte) (*item.InputImage, error) {
	mediaType, err := CheckImage(data)
	if err != nil {
		return nil, err
	}
	url := "data:" + mediaType + ";base64," + base64.StdEncoding.EncodeToString(data)
	return &item.InputImage{ImageURL: url, Detail: item.DetailAuto}, nil
}

// checkImageURL verifies an image that is sent inline. Other URLs are the
// endpoint's to fetch.
func checkImageURL(url string) error {
	const scheme = "data:"
	if len(url) < len(scheme) || !strings.EqualFold(url[:len(scheme)], scheme) {
		return validText(url)
	}
	head, payload, found := strings.Cut(url[len(scheme):], ",")
	declared, isBase64 := strings.CutSuffix(head, ";base64")
	if !found || !isBase64 {
		return fmt.Errorf("the image's data URI is not base64")
	}
	data, err := base64.StdEncoding.DecodeString(payload)
	if err != nil {
		return fmt.Errorf("the image's data URI: %w", err)
	}
	mediaType, err := CheckImage(data)
	if err != nil {
		return fmt.Errorf("the image's data: %w", err)
	}
	declared, _, _ = strings.Cut(declared, ";")
	if !strings.EqualFold(declared, mediaType) {
		return fmt.Errorf("the image is declared as %q but its data is %s", declared, mediaType)
	}
	return nil
}
