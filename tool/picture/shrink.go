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

// qualities are those of a JPEG, the later where the one before is too large.
var qualities = []int{90, 75, 60}

// shrink makes the image small enough. Should no quality do, it gets smaller
// and smaller. The file had was bytes before.
func (l Limits) shrink(h *header, img image.Image, side, size, was int) ([]byte, string, error) {
	width, height := fitInto(h.width, h.height, side)
	for {
		small := turn(scale(img, width, height), h.orientation)
		if h.foreign() && width == h.width && height == h.height {
			was = size // a PNG of the same pixels, if it is small enough
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

// note tells what became of the image, as it is looked at.
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

// fitInto returns the largest size of the same proportions whose sides are no
// longer than side.
func fitInto(width, height, side int) (int, int) {
	longer := max(width, height)
	if longer <= side {
		return width, height
	}
	fit := func(n int) int { return max(1, int((int64(n)*int64(side)+int64(longer)/2)/int64(longer))) }
	return fit(width), fit(height)
}

// encode returns the image as a PNG or a JPEG of no more than size bytes, or
// nothing if there is none. Scaling blurs edges, so that a PNG can become several
// times what the larger image was: a JPEG is taken if it is smaller than that PNG.
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

// encodePNG takes its time only where the image would be too large, or larger
// than it was.
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

// rounded returns the image with 16 shades of each colour. Of lines and flat
// areas, whose edges become many shades when they are scaled down, nobody sees
// that; what has more colours than a palette holds is not sent so.
func rounded(img *image.RGBA) *image.RGBA {
	r := image.NewRGBA(img.Rect)
	for i, p := range img.Pix {
		r.Pix[i] = uint8((int(p) + 8) / 17 * 17)
	}
	return r
}

// paletted returns the same image by its palette, or nil if it has more colours
// than one holds.
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

// onCanvas returns a frame in its place on a transparent canvas.
func onCanvas(img image.Image, width, height int) image.Image {
	canvas := image.Rect(0, 0, width, height)
	if img.Bounds() == canvas {
		return img
	}
	c := image.NewRGBA(canvas)
	draw.Draw(c, img.Bounds(), img, img.Bounds().Min, draw.Src)
	return c
}

// scale returns the image with each pixel the mean of the area that it covers.
// Nothing gets larger. It goes through the image by rows, so that it takes
// little memory beside the image and the result, which scalers that keep a
// float for every sample do not.
func scale(img image.Image, width, height int) *image.RGBA {
	from := img.Bounds()
	w, h := from.Dx(), from.Dy()
	dst := image.NewRGBA(image.Rect(0, 0, width, height))
	row := image.NewRGBA(image.Rect(0, 0, w, 1))
	sums := make([]uint64, width*4)  // of the row of dst under way
	spans := make([]uint64, width*4) // of one row of img
	area := uint64(w) * uint64(h)
	for y := range h {
		draw.Draw(row, row.Rect, img, image.Pt(from.Min.X, from.Min.Y+y), draw.Src)
		clear(spans)
		addRow(spans, row.Pix, w, width)
		// Row y covers height parts of h·height; a row of dst covers h of them.
		first, last := y*height/h, ((y+1)*height-1)/h
		part := min((first+1)*h, (y+1)*height) - y*height
		addSpans(sums, spans, uint64(part))
		if (first+1)*h <= (y+1)*height { // it is full
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

// addRow adds w pixels to the width spans that they fall into, in parts of
// w·width.
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

func addSpans(sums, spans []uint64, part uint64) {
	for i, s := range spans {
		sums[i] += s * part
	}
}

// turn returns the image as its EXIF orientation wants it to be seen.
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
