// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package picture

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"hash/crc32"
	"image"
	"image/color"
	"image/draw"
	"image/gif"
	"image/jpeg"
	"image/png"
	"math/rand/v2"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// noise is an image that no format makes small.
func noise(w, h int, alpha bool) *image.NRGBA {
	img := image.NewNRGBA(image.Rect(0, 0, w, h))
	r := rand.New(rand.NewPCG(1, 2))
	for i := range img.Pix {
		img.Pix[i] = uint8(r.Uint32())
		if i%4 == 3 && !alpha {
			img.Pix[i] = 255
		}
	}
	return img
}

// flat is an image of one colour but for its left half.
func flat(w, h int, left, right color.Color) *image.NRGBA {
	img := image.NewNRGBA(image.Rect(0, 0, w, h))
	draw.Draw(img, img.Rect, image.NewUniform(right), image.Point{}, draw.Src)
	draw.Draw(img, image.Rect(0, 0, w/2, h), image.NewUniform(left), image.Point{}, draw.Src)
	return img
}

func pngOf(t testing.TB, img image.Image) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, img); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func jpegOf(t testing.TB, img image.Image) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := jpeg.Encode(&b, img, &jpeg.Options{Quality: 95}); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func gifOf(t testing.TB, frames ...*image.Paletted) []byte {
	t.Helper()
	var b bytes.Buffer
	g := &gif.GIF{Image: frames, Delay: make([]int, len(frames))}
	if err := gif.EncodeAll(&b, g); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func webpOf(t testing.TB) []byte {
	t.Helper()
	b, err := base64.StdEncoding.DecodeString("UklGRiIAAABXRUJQVlA4IBYAAAAwAQCdASoBAAEADsD+JaQAA3AAAAAA")
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func sizeOf(t testing.TB, data []byte) (format string, w, h int) {
	t.Helper()
	c, format, err := image.DecodeConfig(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	return format, c.Width, c.Height
}

var (
	red  = color.NRGBA{R: 255, A: 255}
	blue = color.NRGBA{B: 255, A: 255}
	thin = color.NRGBA{G: 255, A: 100}
)

// T10: what fits is sent as it is, in all four formats.
func TestFits(t *testing.T) {
	palette := image.NewPaletted(image.Rect(0, 0, 20, 10), color.Palette{red, blue})
	for name, data := range map[string][]byte{
		"png":  pngOf(t, flat(200, 100, red, thin)),
		"jpeg": jpegOf(t, flat(200, 100, red, blue)),
		"gif":  gifOf(t, palette),
		"webp": webpOf(t),
	} {
		fit, note, err := (Limits{}).Fit(data)
		if err != nil || note != "" || !bytes.Equal(fit, data) {
			t.Errorf("%s: %d of %d bytes, %q, %v", name, len(fit), len(data), note, err)
		}
	}
}

// T10: what is too large is scaled down, in its format if it can be, the same
// every time, and the model is told.
func TestScaledDown(t *testing.T) {
	for _, c := range []struct {
		name   string
		data   []byte
		limits Limits
		format string
		w, h   int
		note   string
	}{
		{"wide", pngOf(t, flat(400, 100, red, blue)), Limits{Side: 200}, "png", 200, 50, "[image scaled from 400x100 to 200x50 pixels, sent as image/png]"},
		{"tall photo", jpegOf(t, flat(100, 400, red, blue)), Limits{Side: 200}, "jpeg", 50, 200, "[image scaled from 100x400 to 50x200 pixels, sent as image/jpeg]"},
		{"transparent", pngOf(t, flat(400, 100, thin, blue)), Limits{Side: 100}, "png", 100, 25, ""},
		{"a line", pngOf(t, flat(4000, 1, red, blue)), Limits{}, "png", 2048, 1, ""},
		{"opaque and heavy", pngOf(t, noise(200, 200, false)), Limits{Bytes: 60_000}, "jpeg", 200, 200, "[image sent as image/jpeg]"},
		{"transparent and heavy", pngOf(t, noise(200, 200, true)), Limits{Bytes: 60_000}, "png", 112, 112, "[image scaled from 200x200 to 112x112 pixels, sent as image/png]"},
		{"heavy photo", jpegOf(t, noise(300, 300, false)), Limits{Bytes: 20_000}, "jpeg", 225, 225, ""},
	} {
		fit, note, err := c.limits.Fit(c.data)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		format, w, h := sizeOf(t, fit)
		if format != c.format || w != c.w || h != c.h || c.note != "" && note != c.note || note == "" {
			t.Errorf("%s: %s %dx%d, %q", c.name, format, w, h, note)
		}
		if c.limits.Bytes > 0 && len(fit) > c.limits.Bytes {
			t.Errorf("%s: %d bytes", c.name, len(fit))
		}
		if again, _, _ := c.limits.Fit(c.data); !bytes.Equal(again, fit) {
			t.Errorf("%s: another result", c.name)
		}
		if twice, note, err := c.limits.Fit(fit); err != nil || note != "" || !bytes.Equal(twice, fit) {
			t.Errorf("%s: what fits does not fit: %q %v", c.name, note, err)
		}
	}
}

// The colours stay where they were, transparency too.
func TestScaledColours(t *testing.T) {
	fit, _, err := (Limits{Side: 30}).Fit(pngOf(t, flat(300, 90, red, thin)))
	if err != nil {
		t.Fatal(err)
	}
	img, err := png.Decode(bytes.NewReader(fit))
	if err != nil {
		t.Fatal(err)
	}
	near := func(x, y int, want color.NRGBA) {
		t.Helper()
		got := color.NRGBAModel.Convert(img.At(x, y)).(color.NRGBA)
		for _, d := range []int{int(got.R) - int(want.R), int(got.G) - int(want.G), int(got.B) - int(want.B), int(got.A) - int(want.A)} {
			if d < -3 || d > 3 {
				t.Errorf("at %d,%d: %v, want %v", x, y, got, want)
				return
			}
		}
	}
	near(0, 0, red)
	near(14, 8, red)
	near(15, 0, thin)
	near(29, 8, thin)
}

// Scaling against the plain way: the mean of all covered parts in floats.
func TestScaleProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w, h := rapid.IntRange(1, 40).Draw(t, "w"), rapid.IntRange(1, 40).Draw(t, "h")
		dw, dh := rapid.IntRange(1, w).Draw(t, "to w"), rapid.IntRange(1, h).Draw(t, "to h")
		src := image.NewRGBA(image.Rect(3, 5, 3+w, 5+h))
		for i := range src.Pix {
			src.Pix[i] = uint8(rapid.IntRange(0, 255).Draw(t, "pix"))
		}
		got := scale(src, dw, dh)
		overlap := func(a, b, c, d float64) float64 { return max(0, min(b, d)-max(a, c)) }
		for y := range dh {
			for x := range dw {
				for c := range 4 {
					var sum, area float64
					for sy := range h {
						for sx := range w {
							part := overlap(float64(x)*float64(w)/float64(dw), float64(x+1)*float64(w)/float64(dw), float64(sx), float64(sx+1)) *
								overlap(float64(y)*float64(h)/float64(dh), float64(y+1)*float64(h)/float64(dh), float64(sy), float64(sy+1))
							sum += part * float64(src.Pix[sy*src.Stride+sx*4+c])
							area += part
						}
					}
					want := sum / area
					if d := float64(got.Pix[y*got.Stride+x*4+c]) - want; d < -0.51 || d > 0.51 {
						t.Fatalf("%dx%d to %dx%d at %d,%d: %d, want %.2f", w, h, dw, dh, x, y, got.Pix[y*got.Stride+x*4+c], want)
					}
				}
			}
		}
	})
}

// withChunk puts a chunk behind a PNG's header.
func withHeader(t testing.TB, w, h uint32) []byte {
	data := pngOf(t, flat(4, 4, red, blue))
	binary.BigEndian.PutUint32(data[16:], w)
	binary.BigEndian.PutUint32(data[20:], h)
	binary.BigEndian.PutUint32(data[29:], crc32.ChecksumIEEE(data[12:29]))
	return data
}

// T10 T11: bombs are refused by their header, damage is told, nothing panics.
func TestRefused(t *testing.T) {
	animated := append([]byte("RIFF\x16\x00\x00\x00WEBPVP8X\x0a\x00\x00\x00\x02\x00\x00\x00"), 0, 0, 0, 0, 0, 0)
	whole := pngOf(t, noise(50, 50, true))
	damaged := bytes.Clone(whole)
	damaged[len(damaged)/2] ^= 0x55
	photo := jpegOf(t, noise(50, 50, false))
	for name, c := range map[string]struct {
		data   []byte
		limits Limits
		says   string
	}{
		"bomb":           {withHeader(t, 60000, 60000), Limits{}, "60000x60000 pixels; decoding them would take"},
		"long bomb":      {withHeader(t, 1<<31-1, 1), Limits{}, "pixels; decoding"},
		"lying header":   {withHeader(t, 2000, 2000), Limits{}, "cannot be decoded"},
		"damaged":        {damaged, Limits{}, "cannot be decoded"},
		"cut off":        {whole[:len(whole)-200], Limits{}, "cannot be decoded"},
		"cut off photo":  {photo[:len(photo)/2], Limits{}, "cannot be decoded"},
		"header alone":   {whole[:20], Limits{}, "header is damaged"},
		"text":           {[]byte("<svg/>"), Limits{}, "not a PNG"},
		"nothing":        {nil, Limits{}, "not a PNG"},
		"too many bytes": {whole, Limits{Input: 100}, "more than the limit of 100"},
		"own limit":      {whole, Limits{Memory: 1000}, "limit of 0 MB"},
		"animated WebP":  {animated, Limits{}, "animated WebP"},
		"too small":      {whole, Limits{Bytes: 10}, "cannot be made as small as 10 bytes"},
		"gif header":     {[]byte("GIF89a\x01\x00\x01\x00\x00\x00\x00"), Limits{}, "cannot be decoded"},
		"webp header":    {webpOf(t)[:24], Limits{}, ""},
	} {
		fit, _, err := c.limits.Fit(c.data)
		if err == nil || fit != nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %d bytes, %v", name, len(fit), err)
		}
		t.Logf("%s: %v", name, err)
	}
}

// T10: of an animated GIF the first frame is sent, in its place.
func TestAnimated(t *testing.T) {
	first := image.NewPaletted(image.Rect(0, 0, 40, 20), color.Palette{red, blue})
	second := image.NewPaletted(image.Rect(5, 5, 10, 10), color.Palette{blue, red})
	fit, note, err := (Limits{}).Fit(gifOf(t, first, second, second))
	if err != nil || note != "[image is the first of 3 frames, sent as image/png]" {
		t.Fatal(note, err)
	}
	if format, w, h := sizeOf(t, fit); format != "png" || w != 40 || h != 20 {
		t.Errorf("%s %dx%d", format, w, h)
	}
	img, err := png.Decode(bytes.NewReader(fit))
	if err != nil {
		t.Fatal(err)
	}
	if r, _, b, _ := img.At(20, 10).RGBA(); r != 0xffff || b != 0 {
		t.Errorf("%v", img.At(20, 10))
	}
	small := image.NewPaletted(image.Rect(5, 5, 10, 10), color.Palette{blue, red})
	if got := onCanvas(small, 40, 20).Bounds(); got != image.Rect(0, 0, 40, 20) {
		t.Errorf("%v", got)
	}
}

// exif is a JPEG with an orientation.
func exif(t testing.TB, img image.Image, orientation byte, order string) []byte {
	data := jpegOf(t, img)
	tiff := []byte("II*\x00\x08\x00\x00\x00\x02\x00" + "\x00\x01\x03\x00\x01\x00\x00\x00\x01\x00\x00\x00" + "\x12\x01\x03\x00\x01\x00\x00\x00" + string(rune(orientation)) + "\x00\x00\x00")
	if order == "MM" {
		tiff = []byte("MM\x00*\x00\x00\x00\x08\x00\x01" + "\x01\x12\x00\x03\x00\x00\x00\x01\x00" + string(rune(orientation)) + "\x00\x00")
	}
	body := append([]byte("Exif\x00\x00"), tiff...)
	segment := append([]byte{0xff, 0xe1, 0, byte(len(body) + 2)}, body...)
	return append(append(bytes.Clone(data[:2]), segment...), data[2:]...)
}

// A photo that is to be turned is turned, as its metadata does not survive.
func TestOrientation(t *testing.T) {
	// The corners, clockwise from the top left, as they are stored.
	src := image.NewRGBA(image.Rect(0, 0, 128, 64))
	quarter := func(x, y int, c color.Color) {
		draw.Draw(src, image.Rect(x*64, y*32, x*64+64, y*32+32), image.NewUniform(c), image.Point{}, draw.Src)
	}
	green, white := color.NRGBA{G: 255, A: 255}, color.NRGBA{255, 255, 255, 255}
	quarter(0, 0, red)
	quarter(1, 0, green)
	quarter(1, 1, blue)
	quarter(0, 1, white)
	for o, want := range []string{1: "rgbw", 2: "grwb", 3: "bwrg", 4: "wbgr", 5: "rwbg", 6: "wrgb", 7: "bgrw", 8: "gbwr"} {
		if want == "" {
			continue
		}
		for _, order := range []string{"II", "MM"} {
			fit, note, err := (Limits{Side: 64}).Fit(exif(t, src, byte(o), order))
			if err != nil {
				t.Fatal(err)
			}
			img, err := jpeg.Decode(bytes.NewReader(fit))
			if err != nil {
				t.Fatal(err)
			}
			w, h := img.Bounds().Dx(), img.Bounds().Dy()
			got := ""
			for _, p := range []image.Point{{w / 4, h / 4}, {3 * w / 4, h / 4}, {3 * w / 4, 3 * h / 4}, {w / 4, 3 * h / 4}} {
				r, g, b, _ := img.At(p.X, p.Y).RGBA()
				switch {
				case r > 0x8000 && g > 0x8000:
					got += "w"
				case r > 0x8000:
					got += "r"
				case g > 0x8000:
					got += "g"
				case b > 0x8000:
					got += "b"
				}
			}
			if got != want {
				t.Errorf("orientation %d %s: %s, want %s", o, order, got, want)
			}
			if tall := strings.Contains(note, "from 64x128 to 32x64"); tall != (o >= 5) {
				t.Errorf("orientation %d: %s", o, note)
			}
		}
	}
}

// No bytes panic or come back larger than they may be.
func FuzzFit(f *testing.F) {
	f.Add(pngOf(f, flat(40, 30, red, thin)))
	f.Add(jpegOf(f, flat(40, 30, red, blue)))
	f.Add(exif(f, flat(40, 30, red, blue), 6, "II"))
	f.Add(gifOf(f, image.NewPaletted(image.Rect(0, 0, 8, 8), color.Palette{red, blue}), image.NewPaletted(image.Rect(0, 0, 8, 8), color.Palette{red, blue})))
	f.Add(webpOf(f))
	limits := Limits{Side: 16, Bytes: 2000, Memory: 1 << 20}
	f.Fuzz(func(t *testing.T, data []byte) {
		fit, note, err := limits.Fit(data)
		if err != nil {
			if fit != nil {
				t.Fatal("an image beside an error")
			}
			return
		}
		if len(fit) > limits.Bytes {
			t.Fatalf("%d bytes", len(fit))
		}
		c, _, err := image.DecodeConfig(bytes.NewReader(fit))
		if err != nil || max(c.Width, c.Height) > limits.Side {
			t.Fatalf("%dx%d %v", c.Width, c.Height, err)
		}
		if note == "" && !bytes.Equal(fit, data) {
			t.Fatal("changed without a note")
		}
	})
}

// TestPixels proves that pixels fit into a size whatever the orientation, keep the proportions, and are
// not enlarged.
func TestPixels(t *testing.T) {
	src := image.NewRGBA(image.Rect(0, 0, 128, 64))
	for orientation := byte(1); orientation <= 8; orientation++ {
		data := exif(t, src, orientation, "II")
		for box, want := range map[image.Point]image.Point{{40, 40}: {40, 20}, {1000, 16}: {32, 16}, {1000, 1000}: {128, 64}, {20, 1000}: {20, 10}, {1, 1}: {1, 1}} {
			if orientation >= 5 {
				box, want = image.Pt(box.Y, box.X), image.Pt(want.Y, want.X)
			}
			img, err := (Limits{}).Pixels(data, box.X, box.Y)
			if err != nil {
				t.Fatal(err)
			}
			if got := img.Bounds().Size(); got != want {
				t.Errorf("orientation %d into %v: %v, want %v", orientation, box, got, want)
			}
		}
	}
	if _, err := (Limits{Memory: 1}).Pixels(exif(t, src, 1, "II"), 10, 10); err == nil {
		t.Error("an image that needs more memory than the limit is decoded")
	}
}
