// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

// Package picture prepares images for a model. It verifies that they can be decoded,
// refuses those that would need too much memory before decoding them, and scales
// down those that are too large.
//
// It is a separate package so that programs that do not need it do not contain the
// decoders. To use it, assign Limits to an output.Policy:
//
//	policy.Images = picture.Limits{}
//
// It decodes in this process. Package decode does the same in a process that has given up
// its rights: use that for images of strangers.
package picture

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"image"
	"image/gif"
	"image/jpeg"
	"image/png"
	"strings"

	"golang.org/x/image/bmp"
	"golang.org/x/image/tiff"
	"golang.org/x/image/webp"
)

// Limits says which images may be sent. The zero value is ready for use, with the
// default values.
type Limits struct {
	// Bytes is the largest file to send. 0 means DefaultBytes.
	Bytes int
	// Side is the longest side to send, in pixels. 0 means DefaultSide, which is the
	// size at which models look at images unless a request asks for more.
	Side int
	// Memory is the largest amount of memory to decode an image, in bytes, estimated
	// from its header. An image that needs more is refused before it is decoded. 0
	// means DefaultMemory.
	Memory int64
	// Input is the largest file to accept as input. 0 means DefaultInput.
	Input int
}

// The default limits.
const (
	DefaultBytes  = 5 << 20
	DefaultSide   = 2048
	DefaultMemory = 256 << 20
	DefaultInput  = 64 << 20
)

// Fit returns an image that is within the limits: data itself if it is, and
// otherwise a smaller image, which is always the same for the same data. Note is a
// line for the model that describes the change; it is empty if data is returned
// unchanged.
//
// Fit decodes every image, so that a damaged image is an error here and not at the
// endpoint. A smaller image keeps the proportions, and is rotated according to its
// EXIF orientation. It is a PNG if the image has transparency, or if the original is
// lossless and the PNG is small enough and no larger than the original or than a
// JPEG. Otherwise it is a JPEG. If a PNG would be larger than the original, and the
// image has few colours, Fit merges nearly equal shades to make it smaller.
//
// Metadata and colour profiles are lost in a smaller image. Only the first frame of
// an animated GIF is sent. An animated WebP cannot be decoded and is refused. Models
// do not accept BMP and TIFF: these become a PNG with the same pixels, or are scaled
// down like other images. Only the first page of a TIFF is sent.
//
// A PNG with complete pixels and damaged metadata is sent without the damaged
// chunks, which image viewers ignore, too.
func (l Limits) Fit(data []byte) (fit []byte, note string, err error) {
	if most := cmp.Or(l.Input, DefaultInput); len(data) > most {
		return nil, "", fmt.Errorf("it has %d bytes, more than the limit of %d", len(data), most)
	}
	data, lost := mend(data)
	h, err := readHeader(data)
	if err != nil {
		return nil, "", err
	}
	if most := cmp.Or(l.Memory, DefaultMemory); h.memory() > most {
		return nil, "", fmt.Errorf("it has %dx%d pixels; decoding them would take %d MB, more than the limit of %d MB", h.width, h.height, h.memory()>>20, most>>20)
	}
	img, err := h.decode(data)
	side, size := cmp.Or(l.Side, DefaultSide), cmp.Or(l.Bytes, DefaultBytes)
	fits := len(data) <= size && max(h.width, h.height) <= side && h.frames <= 1 && !h.foreign()
	switch {
	case err != nil && fits && unsupported(err):
		return data, without(lost, ""), nil // the decoder does not support it, but models may
	case err != nil:
		return nil, "", fmt.Errorf("its %s data cannot be decoded: %w", h.format, err)
	case fits:
		return data, without(lost, ""), nil
	}
	fit, note, err = l.shrink(h, img, side, size, len(data))
	return fit, without(lost, note), err
}

// Pixels returns the pixels of an image, scaled down to at most the given width and height and
// rotated according to its EXIF orientation. It uses Memory and Input alone. Of an animated GIF it
// returns the first frame, and of a TIFF the first page.
func (l Limits) Pixels(data []byte, width, height int) (*image.RGBA, error) {
	if most := cmp.Or(l.Input, DefaultInput); len(data) > most {
		return nil, fmt.Errorf("it has %d bytes, more than the limit of %d", len(data), most)
	}
	data, _ = mend(data)
	h, err := readHeader(data)
	if err != nil {
		return nil, err
	}
	if most := cmp.Or(l.Memory, DefaultMemory); h.memory() > most {
		return nil, fmt.Errorf("it has %dx%d pixels, which need more memory than the limit of %d MB", h.width, h.height, most>>20)
	}
	img, err := h.decode(data)
	if err != nil {
		return nil, fmt.Errorf("its %s data cannot be decoded: %w", h.format, err)
	}
	if h.orientation >= 5 {
		width, height = height, width
	}
	width, height = max(1, width), max(1, height)
	w, ht := h.width, h.height
	if w > width {
		w, ht = width, max(1, int(int64(ht)*int64(width)/int64(w)))
	}
	if ht > height {
		w, ht = max(1, int(int64(w)*int64(height)/int64(ht))), height
	}
	return turn(scale(img, w, ht), h.orientation), nil
}

// without adds to a note that damaged chunks were left out.
func without(lost []string, note string) string {
	switch {
	case len(lost) == 0:
		return note
	case note == "":
		note = "[image sent]"
	}
	return strings.TrimSuffix(note, "]") + " without damaged metadata (" + strings.Join(lost, ", ") + ")]"
}

// unsupported reports whether the decoder rejected an image only because it uses a
// feature that the decoder lacks.
func unsupported(err error) bool {
	var j jpeg.UnsupportedError
	var p png.UnsupportedError
	return errors.As(err, &j) || errors.As(err, &p)
}

// decode decodes the pixels. For a GIF it decodes the first frame, at its position
// on the canvas.
func (h *header) decode(data []byte) (img image.Image, err error) {
	defer func() {
		if v := recover(); v != nil { // a panic in a decoder must not end the program
			img, err = nil, fmt.Errorf("the decoder failed: %v", v)
		}
	}()
	r := bytes.NewReader(data)
	switch h.format {
	case "png":
		return png.Decode(r)
	case "jpeg":
		return jpeg.Decode(r)
	case "webp":
		return webp.Decode(r)
	case "bmp":
		if img, err = bmp.Decode(r); errors.Is(err, bmp.ErrUnsupported) {
			img, err = decodeBitmap(data)
		}
		return img, err
	case "tiff":
		return tiff.Decode(r)
	}
	img, err = gif.Decode(r)
	if err != nil {
		return nil, err
	}
	return onCanvas(img, h.width, h.height), nil
}
