// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package picture

import (
	"bytes"
	"image"
	"image/color"
	"slices"
	"testing"
)

// with puts a chunk behind the header of a PNG, with a wrong checksum.
func with(data []byte, name string) []byte {
	const header = 33
	chunk := append([]byte{0, 0, 0, 3}, name+"abc\x01\x02\x03\x04"...)
	return slices.Concat(data[:header], chunk, data[header:])
}

// T11: a PNG that is damaged where no pixels are reaches the model; one that is
// damaged where they are does not.
func TestDamagedMetadata(t *testing.T) {
	palette := image.NewPaletted(image.Rect(0, 0, 20, 10), color.Palette{red, blue})
	for _, img := range []image.Image{flat(200, 100, red, thin), palette} {
		whole := pngOf(t, img)
		fit, note, err := (Limits{}).Fit(with(with(whole, "iCCP"), "tEXt"))
		if err != nil || !bytes.Equal(fit, whole) || note != "[image sent without damaged metadata (tEXt, iCCP)]" {
			t.Errorf("%d of %d bytes, %q, %v", len(fit), len(whole), note, err)
		}
		for _, name := range []string{"IDAT", "XXXX", "i\x00CP"} {
			if fit, _, err := (Limits{}).Fit(with(whole, name)); err == nil || fit != nil {
				t.Errorf("%q: %d bytes pass", name, len(fit))
			}
		}
	}
	_, note, err := (Limits{Side: 50}).Fit(with(pngOf(t, flat(200, 100, red, blue)), "gAMA"))
	if err != nil || note != "[image scaled from 200x100 to 50x25 pixels, sent as image/png without damaged metadata (gAMA)]" {
		t.Errorf("%q, %v", note, err)
	}
}

// T10: dense lines, whose edges become many shades when they are scaled down, are
// written with fewer shades, so close that nobody sees it.
func TestScaledLinesAreSmall(t *testing.T) {
	lines := image.NewPaletted(image.Rect(0, 0, 1501, 1499), color.Palette{color.White, color.Black, red})
	for i := range lines.Pix {
		if x, y := i%1501, i/1501; (x+y)%6 == 0 || y%17 == 3 {
			lines.Pix[i] = uint8(1 + y%17/3%2)
		}
	}
	data := pngOf(t, lines)
	fit, note, err := (Limits{Side: 1000}).Fit(data)
	if err != nil {
		t.Fatal(err)
	}
	exact := scale(lines, 1000, 999)
	if plain := pngOf(t, exact); len(fit)*8 > len(plain) {
		t.Errorf("%d bytes became %d, and %d as a plain PNG: %s", len(data), len(fit), len(plain), note)
	}
	got, _, err := image.Decode(bytes.NewReader(fit))
	if err != nil {
		t.Fatal(err)
	}
	for y := range 999 {
		for x := range 1000 {
			r, g, b, a := got.At(x, y).RGBA()
			want := exact.RGBAAt(x, y)
			for i, c := range [][2]int{{int(r >> 8), int(want.R)}, {int(g >> 8), int(want.G)}, {int(b >> 8), int(want.B)}, {int(a >> 8), int(want.A)}} {
				if d := c[0] - c[1]; d < -9 || d > 9 {
					t.Fatalf("pixel %d,%d: sample %d is %d, want %d", x, y, i, c[0], c[1])
				}
			}
		}
	}
}

// T10: what is scaled down is written as small as it can be without a loss that
// is seen: by a palette, or as a JPEG where that is smaller.
func TestScaledIsSmall(t *testing.T) {
	lines := image.NewPaletted(image.Rect(0, 0, 900, 900), color.Palette{color.White, color.Black})
	for i := range lines.Pix {
		x, y := i%900, i/900
		lines.Pix[i] = uint8((x/2*(x/9) + y/2*(y/11) + x*y/40) % 2)
	}
	for _, img := range []image.Image{lines, flat(900, 900, red, blue)} {
		data := pngOf(t, img)
		fit, note, err := (Limits{Side: 600}).Fit(data)
		if err != nil {
			t.Fatal(err)
		}
		if plain := pngOf(t, scale(img, 600, 600)); len(plain) > len(data) && len(fit) > len(plain)*2/3 {
			t.Errorf("%d bytes became %d, and %d as a plain PNG: %s", len(data), len(fit), len(plain), note)
		}
		t.Logf("%d bytes became %d: %s", len(data), len(fit), note)
	}
}
