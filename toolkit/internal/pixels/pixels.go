// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

// Package pixels reads the size of an image from where its format has it.
//
// Decoders of images are for processes that have given up their rights, see package decode; also their functions
// for the header alone, which read palettes, tables and chunks of any length. This package looks at a few
// numbers at known places, and makes nothing of what is there. So it may read images of strangers in the process
// itself: FuzzSize holds it against the decoders.
package pixels

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// errShort is the error of an image that ends before its size.
var errShort = errors.New("it ends before its size")

// Size returns the width and height that an image says it has, in pixels. The media type is one of
// output.SniffPicture, for the same data. Whether the pixels are there is not known.
func Size(mediaType string, data []byte) (width, height int, err error) {
	switch mediaType {
	case "image/png":
		width, height, err = pngSize(data)
	case "image/jpeg":
		width, height, err = jpegSize(data)
	case "image/gif":
		if err = errShort; len(data) >= 10 {
			width, height, err = int(binary.LittleEndian.Uint16(data[6:])), int(binary.LittleEndian.Uint16(data[8:])), nil
		}
	case "image/webp":
		width, height, err = webpSize(data)
	case "image/bmp":
		width, height, err = bmpSize(data)
	case "image/tiff":
		width, height, err = tiffSize(data)
	default:
		err = fmt.Errorf("the size of %s is not known", mediaType)
	}
	if err == nil && (width <= 0 || height <= 0) {
		err = fmt.Errorf("it has %dx%d pixels", width, height)
	}
	if err != nil {
		return 0, 0, err
	}
	return width, height, nil
}

// sizes returns two numbers as sizes, or zeros if one is too large for any image.
func sizes(width, height uint32) (int, int, error) {
	if width > math.MaxInt32 || height > math.MaxInt32 {
		return 0, 0, errors.New("its size is too large")
	}
	return int(width), int(height), nil
}

func pngSize(data []byte) (width, height int, err error) {
	if len(data) < 24 || string(data[12:16]) != "IHDR" {
		return 0, 0, errShort
	}
	return sizes(binary.BigEndian.Uint32(data[16:]), binary.BigEndian.Uint32(data[20:]))
}

// jpegSize goes from one segment to the next until that of a frame. As decoders do, it skips what is between them.
func jpegSize(data []byte) (width, height int, err error) {
	const endOfImage, startOfImage, startOfScan = 0xd9, 0xd8, 0xda
	if len(data) < 2 {
		return 0, 0, errShort
	}
	for rest := data[2:]; len(rest) >= 2; {
		marker := rest[1]
		switch {
		case rest[0] != 0xff, marker == 0xff: // no marker yet
			rest = rest[1:]
			continue
		case marker == 0, marker >= 0xd0 && marker <= startOfImage: // without a length
			rest = rest[2:]
			continue
		case marker == endOfImage, marker == startOfScan:
			return 0, 0, errors.New("it has no frame")
		case len(rest) < 4:
			return 0, 0, errShort
		}
		n := int(binary.BigEndian.Uint16(rest[2:]))
		if n < 2 || len(rest) < 2+n {
			return 0, 0, errShort
		}
		// Three of these numbers are tables and the like, and no frames.
		if marker >= 0xc0 && marker <= 0xcf && marker != 0xc4 && marker != 0xc8 && marker != 0xcc {
			if n < 7 {
				return 0, 0, errShort
			}
			return int(binary.BigEndian.Uint16(rest[7:])), int(binary.BigEndian.Uint16(rest[5:])), nil
		}
		rest = rest[2+n:]
	}
	return 0, 0, errShort
}

func webpSize(data []byte) (width, height int, err error) {
	const first, body = 12, 20 // the first chunk, and what is in it
	if len(data) < body+5 {
		return 0, 0, errShort
	}
	le24 := func(at int) int { return int(data[at]) | int(data[at+1])<<8 | int(data[at+2])<<16 }
	switch kind := string(data[first : first+4]); {
	case kind == "VP8L":
		bits := binary.LittleEndian.Uint32(data[body+1:])
		return int(bits&0x3fff) + 1, int(bits>>14&0x3fff) + 1, nil
	case len(data) < body+10:
		return 0, 0, errShort
	case kind == "VP8X":
		return le24(body+4) + 1, le24(body+7) + 1, nil
	case kind == "VP8 ":
		if data[body+3] != 0x9d || data[body+4] != 0x01 || data[body+5] != 0x2a {
			return 0, 0, errors.New("it has no frame")
		}
		return int(binary.LittleEndian.Uint16(data[body+6:]) & 0x3fff), int(binary.LittleEndian.Uint16(data[body+8:]) & 0x3fff), nil
	}
	return 0, 0, errors.New("it has no frame")
}

func bmpSize(data []byte) (width, height int, err error) {
	if len(data) < 26 {
		return 0, 0, errShort
	}
	if binary.LittleEndian.Uint32(data[14:]) == 12 { // the header of OS/2
		return int(binary.LittleEndian.Uint16(data[18:])), int(binary.LittleEndian.Uint16(data[20:])), nil
	}
	width, height = int(int32(binary.LittleEndian.Uint32(data[18:]))), int(int32(binary.LittleEndian.Uint32(data[22:])))
	if height < 0 { // the rows are from the top down
		height = -height
	}
	return width, height, nil
}

// tiffSize looks for two entries of the first directory.
func tiffSize(data []byte) (width, height int, err error) {
	const head, entry, widthTag, heightTag = 8, 12, 256, 257
	if len(data) < head {
		return 0, 0, errShort
	}
	var order binary.ByteOrder = binary.BigEndian
	if data[0] == 'I' {
		order = binary.LittleEndian
	}
	at := int64(order.Uint32(data[4:]))
	if at+2 > int64(len(data)) {
		return 0, 0, errShort
	}
	var w, h uint32
	entries := data[at+2:]
	for range order.Uint16(data[at:]) {
		if len(entries) < entry {
			return 0, 0, errShort
		}
		value := uint32(0)
		switch order.Uint16(entries[2:]) { // the type
		case 1:
			value = uint32(entries[8])
		case 3:
			value = uint32(order.Uint16(entries[8:]))
		case 4:
			value = order.Uint32(entries[8:])
		}
		switch order.Uint16(entries) {
		case widthTag:
			w = value
		case heightTag:
			h = value
		}
		entries = entries[entry:]
	}
	return sizes(w, h)
}
