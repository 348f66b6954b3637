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

// What is here reads the BMP images that browsers show and package bmp does not
// know: those of OS/2, with 16 bits a pixel, with masks of their own, compressed,
// and with a gap before the pixels.

// bitmap is a BMP image whose header was read.
type bitmap struct {
	width, height int
	topDown       bool
	bits          int // of a pixel
	compressed    bool
	masks         [4]uint32 // of red, green, blue and alpha
	palette       []color.NRGBA
	pixels        []byte // as they are stored
}

// The compressions of BMP.
const (
	bmpPlain  = 0
	bmpRLE8   = 1
	bmpRLE4   = 2
	bmpMasks  = 3
	bmpMasks4 = 6 // with one for alpha
)

var errNotWhole = errors.New("bmp: the header does not fit the file")

// bmpConfig reads the header of a BMP.
func bmpConfig(data []byte) (width, height int, err error) {
	b, err := readBitmap(data)
	if err != nil {
		return 0, 0, err
	}
	return b.width, b.height, nil
}

// readBitmap reads all but the pixels.
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
	if size == core {
		b.width, b.height, b.bits = u16(18), u16(20), u16(24)
		return b.colours(table, 3, 0)
	}
	if size < info {
		return nil, bmp.ErrUnsupported
	}
	b.width, b.height, b.bits = int(int32(u32(18))), int(int32(u32(22))), u16(28)
	if b.height < 0 {
		b.height, b.topDown = -b.height, true
	}
	switch compression := u32(30); {
	case compression == bmpPlain:
	case compression == bmpRLE8 && b.bits == 8, compression == bmpRLE4 && b.bits == 4:
		b.compressed = true
	case (compression == bmpMasks || compression == bmpMasks4) && (b.bits == 16 || b.bits == 32) && size != os2:
		n := 3
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

// colours completes the header by the palette, whose entries have size bytes each,
// or by the masks that are usual.
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

// decodeBitmap reads the pixels.
func decodeBitmap(data []byte) (image.Image, error) {
	b, err := readBitmap(data)
	if err != nil {
		return nil, err
	}
	img := image.NewNRGBA(image.Rect(0, 0, b.width, b.height))
	if b.compressed {
		return img, b.runs(img)
	}
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

// hidden reports an image that is transparent all over, which is how programs that
// know nothing of alpha leave it.
func hidden(img *image.NRGBA) bool {
	for i := 3; i < len(img.Pix); i += 4 {
		if img.Pix[i] != 0 {
			return false
		}
	}
	return true
}

// value is what a row holds for a pixel.
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

// set puts a pixel where it is shown; y counts the rows as they are stored.
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

// part is what a mask takes out of a value, in eight bits.
func part(value, mask uint32) byte {
	if mask == 0 {
		return 0
	}
	shift := bits.TrailingZeros32(mask)
	return byte(uint64(value&mask) >> shift * 0xff / (uint64(mask) >> shift))
}

// runs reads compressed pixels. Those that are left out stay transparent.
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
		case value == 0: // the end of the row
			x, y = 0, y+1
		case value == 1: // the end
			return nil
		case value == 2: // a step
			if len(in) < 2 {
				return io.ErrUnexpectedEOF
			}
			x, y, in = x+int(in[0]), y+int(in[1]), in[2:]
		default: // pixels as they are
			size := (int(value)*b.bits + 7) / 8
			if len(in) < size {
				return io.ErrUnexpectedEOF
			}
			for i := range int(value) {
				if err := put(b.nth(in, i)); err != nil {
					return err
				}
			}
			in = in[min(len(in), (size+1)&^1):]
		}
	}
	if y >= b.height || y == b.height-1 && x >= b.width {
		return nil // some programs leave the end out
	}
	return io.ErrUnexpectedEOF
}

// nth is the nth value of compressed pixels, of which a byte holds one or two.
func (b *bitmap) nth(values []byte, n int) byte {
	if b.bits == 8 {
		return values[n]
	}
	return values[n/2] >> (4 - n%2*4) & 0xf
}
