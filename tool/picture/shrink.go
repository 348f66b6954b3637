// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package picture

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/jpeg"
	"image/png"
	"strings"
)

// qualities are the JPEG qualities to try, in this order, until the result is small
// enough.
var qualities = []int{90, 75, 60}

// shrink scales the image down until it fits into side pixels and size bytes. If
// even the lowest quality is too large, it continues with three quarters of the
// width and height. The argument was is the size of the original file.
func (l Limits) shrink(h *header, img image.Image, side, size, was int) ([]byte, string, error) {
	width, height := fitInto(h.width, h.height, side)
	for {
		small := turn(scale(img, width, height), h.orientation)
		if h.foreign() && width == h.width && height == h.height {
			was = size // only the format changes: a PNG may use all of size
		}
		fit, format, err := encode(small, h.format == "jpeg", size, was)
		if err != nil {
			return nil, "", err
		}
		if fit != nil {
			return fit, h.note(small.Rect.Dx(), small.Rect.Dy(), format), nil
		}
		if width == 1 && height == 1 {
			return nil, "", fmt.Errorf("it cannot be made as small as %d bytes", size)
		}
		width, height = max(1, width*3/4), max(1, height*3/4)
	}
}

// note describes the change of the image, in sizes after rotation.
func (h *header) note(width, height int, format string) string {
	note := "[image "
	was, wasHeight := h.width, h.height
	if h.orientation >= 5 {
		was, wasHeight = wasHeight, was
	}
	switch {
	case h.frames > 1 && h.format == "tiff":
		note += fmt.Sprintf("is the first of %d pages, ", h.frames)
	case h.frames > 1:
		note += fmt.Sprintf("is the first of %d frames, ", h.frames)
	}
	if h.foreign() {
		note += "made of a " + strings.ToUpper(h.format) + ", "
	}
	if was != width || wasHeight != height {
		note += fmt.Sprintf("scaled from %dx%d to %dx%d pixels, ", was, wasHeight, width, height)
	}
	return note + "sent as " + format + "]"
}

// fitInto returns the largest size with the same proportions whose sides are not
// longer than side.
func fitInto(width, height, side int) (int, int) {
	longer := max(width, height)
	if longer <= side {
		return width, height
	}
	fit := func(n int) int { return max(1, int((int64(n)*int64(side)+int64(longer)/2)/int64(longer))) }
	return fit(width), fit(height)
}

// encode returns the image as a PNG or JPEG of at most size bytes, or nil if neither
// is small enough. Scaling blurs edges, which can make a PNG several times larger
// than the original file: encode then uses a JPEG, if that is smaller.
func encode(img *image.RGBA, lossy bool, size, was int) (data []byte, format string, err error) {
	opaque := img.Opaque()
	if !lossy || !opaque {
		if data, err = encodePNG(img, size, was); err != nil {
			return nil, "", err
		}
		if len(data) <= size && (len(data) <= was || !opaque) {
			return data, "image/png", nil
		}
		if len(data) > size {
			data = nil
		}
	}
	if !opaque {
		return nil, "", nil
	}
	for _, q := range qualities {
		var b bytes.Buffer
		if err := jpeg.Encode(&b, img, &jpeg.Options{Quality: q}); err != nil {
			return nil, "", err
		}
		switch {
		case data != nil && len(data) <= b.Len():
			return data, "image/png", nil
		case b.Len() <= size:
			return b.Bytes(), "image/jpeg", nil
		}
	}
	return nil, "", nil
}

// encodePNG encodes the image as a PNG. It takes the time for a palette and the best
// compression only if the result would otherwise exceed size or be larger than the
// original file.
func encodePNG(img *image.RGBA, size, was int) ([]byte, error) {
	var b bytes.Buffer
	if err := png.Encode(&b, img); err != nil || b.Len() <= min(size, was) {
		return b.Bytes(), err
	}
	var small image.Image = img
	if p := paletted(img); p != nil {
		small = p
	}
	tries := []image.Image{small}
	if p := paletted(rounded(img)); p != nil {
		tries = append(tries, p)
	}
	e := png.Encoder{CompressionLevel: png.BestCompression}
	for _, t := range tries {
		var less bytes.Buffer
		if err := e.Encode(&less, t); err != nil {
			return nil, err
		}
		if less.Len() < b.Len() {
			b = less
		}
		if b.Len() <= min(size, was) {
			break
		}
	}
	return b.Bytes(), nil
}

// rounded returns the image with 16 shades per channel. When lines and flat areas
// are scaled down, their edges become many shades, and this difference is not
// visible. The caller uses the result only if its colours fit into a palette, which
// excludes photographs.
func rounded(img *image.RGBA) *image.RGBA {
	r := image.NewRGBA(img.Rect)
	for i, p := range img.Pix {
		r.Pix[i] = uint8((int(p) + 8) / 17 * 17)
	}
	return r
}

// paletted returns the same image with a palette, or nil if it has more colours than
// a palette can hold.
func paletted(img *image.RGBA) *image.Paletted {
	const most = 256
	seen := make(map[color.RGBA]uint8, most)
	p := image.NewPaletted(img.Rect, nil)
	for y := range img.Rect.Dy() {
		row := img.Pix[y*img.Stride:][:img.Rect.Dx()*4]
		for x := range img.Rect.Dx() {
			c := color.RGBA{row[x*4], row[x*4+1], row[x*4+2], row[x*4+3]}
			n, ok := seen[c]
			if !ok {
				if len(seen) == most {
					return nil
				}
				n = uint8(len(seen))
				seen[c], p.Palette = n, append(p.Palette, c)
			}
			p.Pix[y*p.Stride+x] = n
		}
	}
	return p
}

// onCanvas returns a frame at its position on a transparent canvas.
func onCanvas(img image.Image, width, height int) image.Image {
	canvas := image.Rect(0, 0, width, height)
	if img.Bounds() == canvas {
		return img
	}
	c := image.NewRGBA(canvas)
	draw.Draw(c, img.Bounds(), img, img.Bounds().Min, draw.Src)
	return c
}

// scale scales the image down. Each pixel of the result is the mean of the area that
// it covers. It must not be used to enlarge. It processes the image row by row, so
// that it needs little memory besides the image and the result; other scalers store
// a float for each sample.
func scale(img image.Image, width, height int) *image.RGBA {
	from := img.Bounds()
	w, h := from.Dx(), from.Dy()
	dst := image.NewRGBA(image.Rect(0, 0, width, height))
	row := image.NewRGBA(image.Rect(0, 0, w, 1))
	sums := make([]uint64, width*4)  // of the current row of dst
	spans := make([]uint64, width*4) // of the current row of img
	area := uint64(w) * uint64(h)
	for y := range h {
		draw.Draw(row, row.Rect, img, image.Pt(from.Min.X, from.Min.Y+y), draw.Src)
		clear(spans)
		addRow(spans, row.Pix, w, width)
		// In units in which both images have the height h*height, a row of img has
		// the height height and a row of dst the height h.
		first, last := y*height/h, ((y+1)*height-1)/h
		part := min((first+1)*h, (y+1)*height) - y*height
		addSpans(sums, spans, uint64(part))
		if (first+1)*h <= (y+1)*height { // the row of dst is complete
			pix := dst.Pix[first*dst.Stride:][:width*4]
			for i, s := range sums {
				pix[i] = uint8((s + area/2) / area)
			}
			clear(sums)
			if last > first {
				addSpans(sums, spans, uint64(height-part))
			}
		}
	}
	return dst
}

// addRow adds the w pixels of a row to width spans. In units in which the row has
// the length w*width, a pixel has the length width and a span the length w.
func addRow(spans []uint64, pix []uint8, w, width int) {
	for x := range w {
		first := x * width / w
		part := min((first+1)*w, (x+1)*width) - x*width
		p := pix[x*4 : x*4+4]
		s := spans[first*4:]
		for c := range 4 {
			s[c] += uint64(p[c]) * uint64(part)
		}
		if part < width {
			for c := range 4 {
				s[4+c] += uint64(p[c]) * uint64(width-part)
			}
		}
	}
}

// addSpans adds part times each span to the sums.
func addSpans(sums, spans []uint64, part uint64) {
	for i, s := range spans {
		sums[i] += s * part
	}
}

// turn returns the image rotated and mirrored according to its EXIF orientation.
func turn(img *image.RGBA, orientation int) *image.RGBA {
	if orientation <= 1 {
		return img
	}
	w, h := img.Rect.Dx(), img.Rect.Dy()
	size := image.Rect(0, 0, w, h)
	if orientation >= 5 {
		size = image.Rect(0, 0, h, w)
	}
	dst := image.NewRGBA(size)
	for y := range h {
		for x := range w {
			tx, ty := x, y
			switch orientation {
			case 2:
				tx = w - 1 - x
			case 3:
				tx, ty = w-1-x, h-1-y
			case 4:
				ty = h - 1 - y
			case 5:
				tx, ty = y, x
			case 6:
				tx, ty = h-1-y, x
			case 7:
				tx, ty = h-1-y, w-1-x
			case 8:
				tx, ty = y, w-1-x
			}
			copy(dst.Pix[dst.PixOffset(tx, ty):][:4], img.Pix[img.PixOffset(x, y):][:4])
		}
	}
	return dst
}
