// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package picture

import (
	"bytes"
	"encoding/binary"
	"image"
	"image/color"
	"image/png"
	"slices"
	"strings"
	"testing"

	"golang.org/x/image/bmp"
	"golang.org/x/image/tiff"
)

func bmpOf(t testing.TB, img image.Image) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := bmp.Encode(&b, img); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func tiffOf(t testing.TB, img image.Image) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := tiff.Encode(&b, img, &tiff.Options{Compression: tiff.Deflate}); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// T10: BMP and TIFF become a PNG of the same pixels, also where that is the
// larger file, and are made smaller like other images.
func TestForeignFormats(t *testing.T) {
	for _, img := range []*image.NRGBA{flat(60, 40, red, blue), noise(50, 50, false)} {
		for name, data := range map[string][]byte{"BMP": bmpOf(t, img), "TIFF": tiffOf(t, img)} {
			fit, note, err := (Limits{}).Fit(data)
			if err != nil || note != "[image made of a "+name+", sent as image/png]" {
				t.Fatalf("%s: %q, %v", name, note, err)
			}
			got, err := png.Decode(bytes.NewReader(fit))
			if err != nil || got.Bounds() != img.Bounds() {
				t.Fatal(err)
			}
			for y := range img.Rect.Dy() {
				for x := range img.Rect.Dx() {
					r, g, b, _ := got.At(x, y).RGBA()
					if wr, wg, wb, _ := img.At(x, y).RGBA(); r != wr || g != wg || b != wb {
						t.Fatalf("%s: another colour at %d,%d", name, x, y)
					}
				}
			}
			if again, _, _ := (Limits{}).Fit(data); !bytes.Equal(again, fit) {
				t.Errorf("%s: another result", name)
			}
		}
	}
	_, note, err := (Limits{Side: 50}).Fit(bmpOf(t, flat(200, 100, red, blue)))
	if err != nil || note != "[image made of a BMP, scaled from 200x100 to 50x25 pixels, sent as image/png]" {
		t.Errorf("%q, %v", note, err)
	}
}

// bitmapOf is a BMP file of a header, what follows it, and pixels.
func bitmapOf(header, table, pixels []byte) []byte {
	offset := 14 + len(header) + len(table)
	data := binary.LittleEndian.AppendUint32([]byte("BM"), uint32(offset+len(pixels)))
	data = binary.LittleEndian.AppendUint32(append(data, 0, 0, 0, 0), uint32(offset))
	return slices.Concat(data, header, table, pixels)
}

// infoOf is the header of a BMP of 5x3 pixels.
func infoOf(size, height, bits, compression, colours int) []byte {
	h := make([]byte, size)
	for at, v := range map[int]int{0: size, 4: 5, 8: height, 16: compression, 32: colours} {
		binary.LittleEndian.PutUint32(h[at:], uint32(v))
	}
	binary.LittleEndian.PutUint16(h[12:], 1)
	binary.LittleEndian.PutUint16(h[14:], uint16(bits))
	return h
}

// T10: all that browsers show under the name BMP is shown.
func TestKindsOfBMP(t *testing.T) {
	// The rows from the lowest: red red red blue black, five white, blue black red white red.
	rows := []string{"rrrbk", "wwwww", "bkrwr"}
	colours := map[rune]color.NRGBA{'r': {255, 0, 0, 255}, 'b': {0, 0, 255, 255}, 'k': {0, 0, 0, 255}, 'w': {255, 255, 255, 255}}
	number := map[rune]byte{'k': 0, 'r': 1, 'b': 2, 'w': 3}
	palette4 := []byte{0, 0, 0, 0, 0, 0, 255, 0, 255, 0, 0, 0, 255, 255, 255, 0}
	palette3 := []byte{0, 0, 0, 0, 0, 255, 255, 0, 0, 255, 255, 255}
	pixels := func(width int, of func(c rune) uint32) (all []byte) {
		for _, row := range rows {
			var line []byte
			for _, c := range row {
				line = append(line, binary.LittleEndian.AppendUint32(nil, of(c))[:width]...)
			}
			all = append(all, append(line, make([]byte, -len(line)&3)...)...)
		}
		return all
	}
	by := func(r, g, b, always uint32) func(c rune) uint32 {
		return func(c rune) (v uint32) {
			for i, mask := range []uint32{r, g, b} {
				if part := []byte{colours[c].R, colours[c].G, colours[c].B}[i]; part > 0 {
					v |= mask
				}
			}
			return v | always
		}
	}
	masks := func(list ...uint32) (table []byte) {
		for _, m := range list {
			table = binary.LittleEndian.AppendUint32(table, m)
		}
		return table
	}
	v4 := infoOf(108, 3, 32, 3, 0)
	copy(v4[40:], masks(0xff, 0xff00, 0xff0000, 0xff000000))
	core := func(bits byte) []byte { return []byte{12, 0, 0, 0, 5, 0, 3, 0, 1, 0, bits, 0} }
	plain := pixels(3, by(0xff0000, 0xff00, 0xff, 0))
	for name, data := range map[string][]byte{
		"OS/2 24":            bitmapOf(core(24), nil, plain),
		"OS/2 8":             bitmapOf(core(8), palette3, pixels(1, func(c rune) uint32 { return uint32(number[c]) })),
		"a gap":              bitmapOf(infoOf(40, 3, 24, 0, 0), make([]byte, 6), plain),
		"16":                 bitmapOf(infoOf(40, 3, 16, 0, 0), nil, pixels(2, by(0x7c00, 0x3e0, 0x1f, 0))),
		"16 with masks":      bitmapOf(infoOf(40, 3, 16, 3, 0), masks(0xf800, 0x7e0, 0x1f), pixels(2, by(0xf800, 0x7e0, 0x1f, 0))),
		"32 with masks":      bitmapOf(infoOf(40, 3, 32, 3, 0), masks(0xff000000, 0xff0000, 0xff00), pixels(4, by(0xff000000, 0xff0000, 0xff00, 7))),
		"32 with 10 bits":    bitmapOf(infoOf(40, 3, 32, 3, 0), masks(0x3ff00000, 0xffc00, 0x3ff), pixels(4, by(0x3ff00000, 0xffc00, 0x3ff, 0))),
		"32 with alpha":      bitmapOf(v4, nil, pixels(4, by(0xff, 0xff00, 0xff0000, 0xff000000))),
		"32 with no alpha":   bitmapOf(v4, nil, pixels(4, by(0xff, 0xff00, 0xff0000, 0))),
		"runs of 8":          bitmapOf(infoOf(40, 3, 8, 1, 4), palette4, []byte{3, 1, 1, 2, 1, 0, 0, 0, 5, 3, 0, 0, 0, 5, 2, 0, 1, 3, 1, 0, 0, 1}),
		"runs of 4":          bitmapOf(infoOf(40, 3, 4, 2, 4), palette4, []byte{3, 0x11, 2, 0x20, 0, 0, 5, 0x33, 0, 0, 0, 5, 0x20, 0x13, 0x10, 0, 0, 1}),
		"runs without end":   bitmapOf(infoOf(40, 3, 8, 1, 4), palette4, []byte{3, 1, 1, 2, 1, 0, 0, 0, 5, 3, 0, 0, 0, 5, 2, 0, 1, 3, 1, 0}),
		"from the top":       bitmapOf(infoOf(40, -3, 16, 0, 0), nil, pixels(2, by(0x7c00, 0x3e0, 0x1f, 0))),
		"16, and bytes more": append(bitmapOf(infoOf(40, 3, 16, 0, 0), nil, pixels(2, by(0x7c00, 0x3e0, 0x1f, 0))), 1, 2, 3),
	} {
		fit, note, err := (Limits{}).Fit(data)
		if err != nil || note != "[image made of a BMP, sent as image/png]" {
			t.Errorf("%s: %q, %v", name, note, err)
			continue
		}
		got, err := png.Decode(bytes.NewReader(fit))
		if err != nil {
			t.Fatal(err)
		}
		for y, row := range rows {
			if name != "from the top" {
				y = 2 - y
			}
			for x, c := range row {
				if color.NRGBAModel.Convert(got.At(x, y)) != color.Color(colours[c]) {
					t.Errorf("%s: at %d,%d %v, want %v", name, x, y, got.At(x, y), colours[c])
				}
			}
		}
		for n := range len(data) - 6 {
			if _, _, err := (Limits{}).Fit(data[:n]); err == nil {
				t.Errorf("%s: %d of %d bytes pass", name, n, len(data))
			}
		}
	}
	if _, _, err := (Limits{}).Fit(bitmapOf(infoOf(40, 3, 24, 4, 0), nil, plain)); err == nil || err.Error() != "it is a BMP of a kind that cannot be read: make a PNG of it" {
		t.Error(err)
	}
}

// T10: of a TIFF of several pages the first is sent, and it is said.
func TestPages(t *testing.T) {
	data := tiffOf(t, flat(10, 10, red, blue))
	first := binary.LittleEndian.Uint32(data[4:])
	next := first + 2 + 12*uint32(binary.LittleEndian.Uint16(data[first:]))
	second := uint32(len(data))
	data = append(data, data[first:next+4]...)
	binary.LittleEndian.PutUint32(data[next:], second)
	if _, note, err := (Limits{}).Fit(data); err != nil || note != "[image is the first of 2 pages, made of a TIFF, sent as image/png]" {
		t.Errorf("%q, %v", note, err)
	}
	binary.LittleEndian.PutUint32(data[next:], first) // a chain that goes back ends
	if _, note, err := (Limits{}).Fit(data); err != nil || strings.Contains(note, "pages") {
		t.Errorf("%q, %v", note, err)
	}
}

// T10: what would fill the memory is refused by its header; what is cut off or
// damaged is an error.
func TestForeignBombs(t *testing.T) {
	huge := bmpOf(t, flat(4, 4, red, blue))
	binary.LittleEndian.PutUint32(huge[18:], 100_000)
	binary.LittleEndian.PutUint32(huge[22:], 100_000)
	if _, _, err := (Limits{}).Fit(huge); err == nil || !strings.Contains(err.Error(), "100000x100000 pixels; decoding them would take") {
		t.Errorf("BMP: %v", err)
	}
	huge = tiffOf(t, flat(4, 4, red, blue))
	at := binary.LittleEndian.Uint32(huge[4:]) + 2
	for _, field := range []uint32{at, at + 12} { // width and height
		binary.LittleEndian.PutUint16(huge[field+2:], 4) // LONG
		binary.LittleEndian.PutUint32(huge[field+8:], 60_000)
	}
	if _, _, err := (Limits{}).Fit(huge); err == nil || !strings.Contains(err.Error(), "60000x60000 pixels; decoding them would take") {
		t.Errorf("TIFF: %v", err)
	}
	for name, data := range map[string][]byte{"BMP": bmpOf(t, noise(30, 30, false)), "TIFF": tiffOf(t, noise(30, 30, false))} {
		for _, n := range []int{9, 20, len(data) / 2} {
			if fit, _, err := (Limits{}).Fit(data[:n]); err == nil {
				t.Errorf("%s of %d bytes: %d bytes pass", name, n, len(fit))
			}
		}
	}
}

func FuzzForeign(f *testing.F) {
	f.Add(bmpOf(f, flat(6, 4, red, blue)))
	f.Add(tiffOf(f, flat(6, 4, red, blue)))
	f.Add(bitmapOf(infoOf(40, 3, 8, 1, 1), []byte{1, 2, 3, 0}, []byte{5, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 2, 1, 1, 0, 1}))
	f.Add(bitmapOf(infoOf(40, 3, 32, 3, 0), make([]byte, 12), make([]byte, 60)))
	f.Add(bitmapOf([]byte{12, 0, 0, 0, 5, 0, 3, 0, 1, 0, 24, 0}, nil, make([]byte, 48)))
	f.Fuzz(func(t *testing.T, data []byte) {
		fit, _, err := (Limits{Memory: 1 << 20, Side: 64}).Fit(data)
		if err == nil && len(fit) == 0 {
			t.Error("nothing, and no error")
		}
	})
}
