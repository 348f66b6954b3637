// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package picture

import (
	"bytes"
	"encoding/binary"
	"image"
	"image/png"
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
	f.Fuzz(func(t *testing.T, data []byte) {
		fit, _, err := (Limits{Memory: 1 << 20, Side: 64}).Fit(data)
		if err == nil && len(fit) == 0 {
			t.Error("nothing, and no error")
		}
	})
}
