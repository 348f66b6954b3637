// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package picture

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"

	"golang.org/x/image/bmp"
	"golang.org/x/image/tiff"
	"golang.org/x/image/webp"
)

// header describes an image by what its file says before the pixels.
type header struct {
	format        string // png, jpeg, gif, webp, bmp, tiff
	width, height int    // as stored
	perPixel      int    // bytes of memory to decode one pixel
	orientation   int    // the EXIF orientation, 1 to 8
	frames        int    // frames of a GIF or pages of a TIFF
}

// memory returns the number of bytes that decoding the image takes.
func (h *header) memory() int64 { return int64(h.width) * int64(h.height) * int64(h.perPixel) }

var errFormat = errors.New("it is not a PNG, JPEG, GIF, WebP, BMP or TIFF image")

// foreign reports whether models do not accept the image's format.
func (h *header) foreign() bool { return h.format == "bmp" || h.format == "tiff" }

// readHeader reads the structure of the file, but never decodes pixels.
func readHeader(data []byte) (*header, error) {
	h := &header{orientation: 1, frames: 1}
	var config image.Config
	var err error
	r := bytes.NewReader(data)
	switch {
	case bytes.HasPrefix(data, []byte("\x89PNG\r\n\x1a\n")):
		h.format = "png"
		config, err = png.DecodeConfig(r)
		h.perPixel = 2 * bytesOf(config.ColorModel) // an interlaced image is assembled from copies
	case bytes.HasPrefix(data, []byte("\xff\xd8")):
		h.format = "jpeg"
		config, err = jpeg.DecodeConfig(r)
		h.perPixel = 3
		h.jpegSegments(data)
	case bytes.HasPrefix(data, []byte("GIF8")):
		h.format, h.perPixel = "gif", 5 // one byte for the palette index, four for the canvas
		config, err = gif.DecodeConfig(r)
		h.frames = gifFrames(data)
	case len(data) >= 12 && string(data[:4]) == "RIFF" && string(data[8:12]) == "WEBP":
		h.format, h.perPixel = "webp", 8
		// The decoder reads only still images. Bit 1 of the flags marks an
		// animation.
		if len(data) > 20 && string(data[12:16]) == "VP8X" && data[20]&2 != 0 {
			return nil, errors.New("it is an animated WebP: only still images can be sent")
		}
		config, err = webp.DecodeConfig(r)
	case bytes.HasPrefix(data, []byte("BM")):
		h.format, h.perPixel = "bmp", 4
		// Package bmp reads most images; this package reads the rest.
		if config, err = bmp.DecodeConfig(r); errors.Is(err, bmp.ErrUnsupported) {
			config.Width, config.Height, err = bmpConfig(data)
		}
	case bytes.HasPrefix(data, []byte("II*\x00")), bytes.HasPrefix(data, []byte("MM\x00*")):
		h.format = "tiff"
		config, err = tiff.DecodeConfig(r)
		h.perPixel = 2 * bytesOf(config.ColorModel) // strips are decompressed separately, and one may hold the whole image
		h.orientation, h.frames = exifOrientation(data), tiffPages(data)
	default:
		return nil, errFormat
	}
	if errors.Is(err, bmp.ErrUnsupported) {
		return nil, errors.New("it is a BMP of a kind that cannot be read: make a PNG of it")
	}
	if err != nil {
		return nil, fmt.Errorf("it begins as %s but its header is damaged: %w", h.format, err)
	}
	h.width, h.height = config.Width, config.Height
	if h.width <= 0 || h.height <= 0 {
		return nil, fmt.Errorf("it has %dx%d pixels", h.width, h.height)
	}
	return h, nil
}

// bytesOf returns the size of a decoded pixel in bytes.
func bytesOf(m color.Model) int {
	switch m {
	case color.GrayModel:
		return 1
	case color.Gray16Model:
		return 2
	case color.RGBA64Model, color.NRGBA64Model:
		return 8
	}
	if _, ok := m.(color.Palette); ok {
		return 1
	}
	return 4
}

// jpegSegments reads what the decoder does not report: the orientation, and the
// memory for each pixel. The decoder holds all coefficients of a progressive image
// until the end.
func (h *header) jpegSegments(data []byte) {
	for rest := data[2:]; len(rest) >= 4 && rest[0] == 0xff; {
		marker, n := rest[1], int(binary.BigEndian.Uint16(rest[2:]))
		if marker == 0xff { // padding
			rest = rest[1:]
			continue
		}
		if n < 2 || len(rest) < 2+n || marker == 0xda {
			return
		}
		body := rest[4 : 2+n]
		switch {
		case marker == 0xe1 && bytes.HasPrefix(body, []byte("Exif\x00\x00")):
			h.orientation = exifOrientation(body[6:])
		case marker == 0xc0, marker == 0xc1, marker == 0xc2:
			h.perPixel = jpegPerPixel(body, marker == 0xc2)
		}
		rest = rest[2+n:]
	}
}

// jpegPerPixel returns the bytes of memory per pixel from the sampling of the
// components.
func jpegPerPixel(frame []byte, progressive bool) int {
	const fixed = 6
	var most, sum int
	for i := fixed; i+3 <= len(frame); i += 3 {
		area := int(frame[i+1]>>4) * int(frame[i+1]&15)
		most, sum = max(most, area), sum+area
	}
	if most == 0 {
		return 3
	}
	// The component with the densest samples has one for each pixel.
	perPixel := float64(sum) / float64(most)
	if progressive {
		perPixel *= 5 // each sample also has a coefficient of four bytes
	}
	return int(perPixel) + 1
}

// exifOrientation returns the value of tag 0x0112 in the first directory of a TIFF
// structure.
func exifOrientation(tiff []byte) int {
	var order binary.ByteOrder = binary.BigEndian
	if bytes.HasPrefix(tiff, []byte("II")) {
		order = binary.LittleEndian
	}
	if len(tiff) < 8 {
		return 1
	}
	at := int64(order.Uint32(tiff[4:]))
	if at+2 > int64(len(tiff)) {
		return 1
	}
	entries := tiff[at+2:]
	const size = 12
	for range order.Uint16(tiff[at:]) {
		if len(entries) < size {
			break
		}
		if order.Uint16(entries) == 0x0112 {
			if o := int(order.Uint16(entries[8:])); o >= 1 && o <= 8 {
				return o
			}
			break
		}
		entries = entries[size:]
	}
	return 1
}

// gifFrames counts the frames of a GIF by its blocks, until its end or the first
// incomplete block.
func gifFrames(data []byte) int {
	const fixed = 13
	if len(data) < fixed {
		return 0
	}
	rest := data[fixed:]
	skip := func(n int) bool {
		if n > len(rest) {
			rest = nil
			return false
		}
		rest = rest[n:]
		return true
	}
	palette := func(flags byte) int {
		if flags&0x80 == 0 {
			return 0
		}
		return 3 << (1 + flags&7)
	}
	blocks := func() bool { // skips data blocks through the empty one that ends them
		for len(rest) > 0 {
			n := int(rest[0])
			if !skip(1+n) || n == 0 {
				break
			}
		}
		return len(rest) > 0
	}
	frames := 0
	skip(palette(data[10]))
	for len(rest) > 0 {
		switch rest[0] {
		case 0x21: // extension
			if !skip(2) || !blocks() {
				return frames
			}
		case 0x2c: // frame
			if len(rest) < 10 {
				return frames
			}
			frames++
			if !skip(10+palette(rest[9])+1) || !blocks() {
				return frames
			}
		default:
			return frames
		}
	}
	return frames
}

// tiffPages counts the pages of a TIFF, until their chain ends or points backwards.
// The latter prevents an endless loop.
func tiffPages(tiff []byte) (pages int) {
	var order binary.ByteOrder = binary.BigEndian
	if bytes.HasPrefix(tiff, []byte("II")) {
		order = binary.LittleEndian
	}
	const head, entry = 8, 12
	if len(tiff) < head {
		return 0
	}
	last := int64(0)
	// Each directory must be behind the one before, or the chain could be a loop.
	for at := int64(order.Uint32(tiff[4:])); at > last && at+2 <= int64(len(tiff)); {
		pages, last = pages+1, at
		next := at + 2 + entry*int64(order.Uint16(tiff[at:]))
		if next+4 > int64(len(tiff)) {
			break
		}
		at = int64(order.Uint32(tiff[next:]))
	}
	return pages
}
