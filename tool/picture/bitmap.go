// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package picture

import (
	"encoding/binary"
	"errors"
	"image"
	"image/color"
	"io"
	"math/bits"

	"golang.org/x/image/bmp"
)

// This file decodes the BMP images that browsers show and package bmp does not
// support: those of OS/2, with 16 bits per pixel, with custom masks, with
// compression, or with a gap before the pixels.

// bitmap is a BMP image whose header has been read.
type bitmap struct {
	width, height int
	topDown       bool
	bits          int // per pixel
	compressed    bool
	masks         [4]uint32 // for red, green, blue and alpha
	palette       []color.NRGBA
	pixels        []byte // in their stored form
}

// The compression methods of BMP.
const (
	bmpPlain  = 0
	bmpRLE8   = 1
	bmpRLE4   = 2
	bmpMasks  = 3
	bmpMasks4 = 6 // like bmpMasks, with a mask for alpha
)

var errNotWhole = errors.New("bmp: the header does not fit the file")

// bmpConfig returns the size of a BMP from its header.
func bmpConfig(data []byte) (width, height int, err error) {
	b, err := readBitmap(data)
	if err != nil {
		return 0, 0, err
	}
	return b.width, b.height, nil
}

// readBitmap reads everything except the pixels.
func readBitmap(data []byte) (*bitmap, error) {
	const file, core, info, os2 = 14, 12, 40, 64
	if len(data) < file+core {
		return nil, io.ErrUnexpectedEOF
	}
	u16 := func(at int) int { return int(binary.LittleEndian.Uint16(data[at:])) }
	u32 := func(at int) uint32 { return binary.LittleEndian.Uint32(data[at:]) }
	offset, size := int64(u32(10)), int64(u32(file))
	if offset > int64(len(data)) || file+size > offset {
		return nil, errNotWhole
	}
	b := &bitmap{pixels: data[offset:]}
	table := data[file+size : offset] // masks and palette
	// The core header of OS/2 has two bytes each for the sizes, and a palette
	// without a fourth byte.
	if size == core {
		b.width, b.height, b.bits = u16(18), u16(20), u16(24)
		return b.colours(table, 3, 0)
	}
	if size < info {
		return nil, bmp.ErrUnsupported
	}
	b.width, b.height, b.bits = int(int32(u32(18))), int(int32(u32(22))), u16(28)
	// A negative height means that the rows are stored from the top down.
	if b.height < 0 {
		b.height, b.topDown = -b.height, true
	}
	switch compression := u32(30); {
	case compression == bmpPlain:
	case compression == bmpRLE8 && b.bits == 8, compression == bmpRLE4 && b.bits == 4:
		b.compressed = true
	// In a header of OS/2 with 64 bytes, these numbers mean other methods.
	case (compression == bmpMasks || compression == bmpMasks4) && (b.bits == 16 || b.bits == 32) && size != os2:
		n := 3
		// Only longer headers, and this method, have a mask for alpha.
		if size >= 56 || compression == bmpMasks4 {
			n = 4
		}
		if offset < file+info+4*int64(n) {
			return nil, errNotWhole
		}
		for i := range n {
			b.masks[i] = u32(file + info + 4*i)
		}
	default:
		return nil, bmp.ErrUnsupported
	}
	return b.colours(table, 4, int64(u32(46)))
}

// colours sets the palette, whose entries have size bytes each, or the default masks
// if the file has none. A used of 0 means a palette of full size.
func (b *bitmap) colours(table []byte, size int, used int64) (*bitmap, error) {
	switch b.bits {
	case 1, 2, 4, 8:
		n := int64(1) << b.bits
		if used > 0 {
			n = min(n, used)
		}
		for ; n > 0 && len(table) >= size; n-- {
			b.palette = append(b.palette, color.NRGBA{table[2], table[1], table[0], 0xff})
			table = table[size:]
		}
	case 16:
		if b.masks == [4]uint32{} {
			b.masks = [4]uint32{0x7c00, 0x3e0, 0x1f, 0}
		}
	case 24, 32:
		if b.masks == [4]uint32{} {
			b.masks = [4]uint32{0xff0000, 0xff00, 0xff, 0}
		}
	default:
		return nil, bmp.ErrUnsupported
	}
	return b, nil
}

// decodeBitmap decodes a BMP with its pixels.
func decodeBitmap(data []byte) (image.Image, error) {
	b, err := readBitmap(data)
	if err != nil {
		return nil, err
	}
	img := image.NewNRGBA(image.Rect(0, 0, b.width, b.height))
	if b.compressed {
		return img, b.runs(img)
	}
	// Each row is padded to a multiple of four bytes.
	stride := (b.width*b.bits + 31) / 32 * 4
	if int64(len(b.pixels)) < int64(stride)*int64(b.height) {
		return nil, io.ErrUnexpectedEOF
	}
	for y := range b.height {
		row := b.pixels[y*stride : (y+1)*stride]
		for x := range b.width {
			if err := b.set(img, x, y, b.value(row, x)); err != nil {
				return nil, err
			}
		}
	}
	if b.masks[3] != 0 && hidden(img) {
		for i := 3; i < len(img.Pix); i += 4 {
			img.Pix[i] = 0xff
		}
	}
	return img, nil
}

// hidden reports whether an image is completely transparent. Programs that ignore
// alpha write such images, and mean an opaque one.
func hidden(img *image.NRGBA) bool {
	for i := 3; i < len(img.Pix); i += 4 {
		if img.Pix[i] != 0 {
			return false
		}
	}
	return true
}

// value returns the stored value of the x-th pixel of a row.
func (b *bitmap) value(row []byte, x int) uint32 {
	switch b.bits {
	case 16:
		return uint32(binary.LittleEndian.Uint16(row[2*x:]))
	case 24:
		return uint32(row[3*x]) | uint32(row[3*x+1])<<8 | uint32(row[3*x+2])<<16
	case 32:
		return binary.LittleEndian.Uint32(row[4*x:])
	}
	at := x * b.bits
	return uint32(row[at/8]) >> (8 - b.bits - at%8) & (1<<b.bits - 1)
}

// set sets a pixel of img from its stored value. The argument y counts rows in
// stored order, which is normally from the bottom up.
func (b *bitmap) set(img *image.NRGBA, x, y int, value uint32) error {
	if !b.topDown {
		y = b.height - 1 - y
	}
	if b.bits <= 8 {
		if int64(value) >= int64(len(b.palette)) {
			return errors.New("bmp: a pixel has no colour in the palette")
		}
		img.SetNRGBA(x, y, b.palette[value])
		return nil
	}
	c := color.NRGBA{part(value, b.masks[0]), part(value, b.masks[1]), part(value, b.masks[2]), 0xff}
	if b.masks[3] != 0 {
		c.A = part(value, b.masks[3])
	}
	img.SetNRGBA(x, y, c)
	return nil
}

// part returns the bits of a value that a mask selects, scaled to eight bits.
func part(value, mask uint32) byte {
	if mask == 0 {
		return 0
	}
	shift := bits.TrailingZeros32(mask)
	return byte(uint64(value&mask) >> shift * 0xff / (uint64(mask) >> shift))
}

// runs decodes compressed pixels. Pixels that the file skips stay transparent.
func (b *bitmap) runs(img *image.NRGBA) error {
	in, x, y := b.pixels, 0, 0
	put := func(value byte) error {
		if x >= b.width || y >= b.height {
			return errors.New("bmp: a run goes beyond the image")
		}
		err := b.set(img, x, y, uint32(value))
		x++
		return err
	}
	for len(in) >= 2 {
		count, value := int(in[0]), in[1]
		in = in[2:]
		switch {
		case count > 0:
			for i := range count {
				if err := put(b.nth([]byte{value, value}, i%2)); err != nil {
					return err
				}
			}
		case value == 0: // end of row
			x, y = 0, y+1
		case value == 1: // end of image
			return nil
		case value == 2: // move right and up
			if len(in) < 2 {
				return io.ErrUnexpectedEOF
			}
			x, y, in = x+int(in[0]), y+int(in[1]), in[2:]
		default: // uncompressed pixels
			size := (int(value)*b.bits + 7) / 8
			if len(in) < size {
				return io.ErrUnexpectedEOF
			}
			for i := range int(value) {
				if err := put(b.nth(in, i)); err != nil {
					return err
				}
			}
			// The pixels are padded to an even number of bytes.
			in = in[min(len(in), (size+1)&^1):]
		}
	}
	if y >= b.height || y == b.height-1 && x >= b.width {
		return nil // some programs omit the end mark
	}
	return io.ErrUnexpectedEOF
}

// nth returns the n-th value of compressed pixels. A byte holds one value of eight
// bits or two of four.
func (b *bitmap) nth(values []byte, n int) byte {
	if b.bits == 8 {
		return values[n]
	}
	return values[n/2] >> (4 - n%2*4) & 0xf
}
