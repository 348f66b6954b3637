// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

// Package picture makes images fit for a model: it verifies that they can be
// shown, refuses those that would fill the memory before they are decoded, and
// scales down those that are too large.
//
// It is a package of its own so that programs which do not use it need not
// carry the decoders. A tool.Shape takes it as it is:
//
//	shape.Images = picture.Limits{}
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

// Limits say what may be sent. The zero value is ready: see the defaults.
type Limits struct {
	// Bytes is the largest file that is sent. 0 means DefaultBytes.
	Bytes int
	// Side is the longest side that is sent, in pixels. 0 means DefaultSide,
	// which is what models look at unless they are asked for more.
	Side int
	// Memory is what decoding may take, in bytes, by the image's header. An
	// image that would take more is refused before it is decoded. 0 means
	// DefaultMemory.
	Memory int64
	// Input is the largest file that is looked at. 0 means DefaultInput.
	Input int
}

// The defaults.
const (
	DefaultBytes  = 5 << 20
	DefaultSide   = 2048
	DefaultMemory = 256 << 20
	DefaultInput  = 64 << 20
)

// Fit returns an image that keeps to the limits: data itself if it does, or a
// smaller one, the same for the same image. Note says what was done, as a line
// for the model, and is empty if data is returned as it is.
//
// Every image is decoded, so that one that is damaged is an error here and not
// at the endpoint. A smaller one keeps its proportions and the way it is to be
// turned. It is a PNG if the image has transparency, or if it came without loss
// and a PNG is small enough and no larger than the image was or than a JPEG;
// otherwise a JPEG. Where the PNG would be larger than the image was, and few
// colours do, shades that are nearly the same become one. Metadata and colour
// profiles do not survive. Of an animated GIF the first frame is sent; an animated WebP
// cannot be read and is refused. BMP and TIFF, which models do not take, become a
// PNG of the same pixels, or are made smaller like other images; of a TIFF of
// several pages the first is sent.
//
// A PNG whose pixels are whole and whose metadata is damaged is sent without
// the chunks that are: what shows pictures to people passes over them, too.
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
		return data, without(lost, ""), nil // it is whole, for those who can read it
	case err != nil:
		return nil, "", fmt.Errorf("its %s data cannot be decoded: %w", h.format, err)
	case fits:
		return data, without(lost, ""), nil
	}
	fit, note, err = l.shrink(h, img, side, size, len(data))
	return fit, without(lost, note), err
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

func unsupported(err error) bool {
	var j jpeg.UnsupportedError
	var p png.UnsupportedError
	return errors.As(err, &j) || errors.As(err, &p)
}

// decode reads the pixels; of a GIF, those of the first frame, in its place.
func (h *header) decode(data []byte) (img image.Image, err error) {
	defer func() {
		if v := recover(); v != nil { // no image may end the program
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
