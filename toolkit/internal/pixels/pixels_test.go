// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package pixels

import (
	"bytes"
	"image"
	"image/color/palette"
	"image/gif"
	"image/jpeg"
	"image/png"
	"io"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/image/bmp"
	"golang.org/x/image/tiff"
	_ "golang.org/x/image/webp" // to compare with

	"github.com/antiphon-go/antiphon/tool/output"
)

// samples returns images of all formats.
func samples(t testing.TB) (list [][]byte) {
	img := image.NewPaletted(image.Rect(0, 0, 300, 7), palette.WebSafe)
	for _, encode := range []func(io.Writer, image.Image) error{
		png.Encode, bmp.Encode,
		func(w io.Writer, m image.Image) error { return gif.Encode(w, m, nil) },
		func(w io.Writer, m image.Image) error { return jpeg.Encode(w, m, nil) },
		func(w io.Writer, m image.Image) error { return tiff.Encode(w, m, nil) },
	} {
		var b bytes.Buffer
		if err := encode(&b, img); err != nil {
			t.Fatal(err)
		}
		list = append(list, b.Bytes())
	}
	for _, chunk := range []string{
		"VP8X\x0a\x00\x00\x00\x00\x00\x00\x00\x2b\x01\x00\x06\x00\x00",
		"VP8L\x0a\x00\x00\x00\x2f\x2b\x81\x01\x00\x00\x00\x00\x00\x00",
		"VP8 \x0a\x00\x00\x00\x10\x00\x00\x9d\x01\x2a\x2c\x01\x07\x00",
	} {
		list = append(list, []byte("RIFF\x16\x00\x00\x00WEBP"+chunk))
	}
	return list
}

// The size is that of the decoders.
func TestSize(t *testing.T) {
	for _, data := range samples(t) {
		mediaType := output.SniffPicture(data)
		if w, h, err := Size(mediaType, data); err != nil || w != 300 || h != 7 {
			t.Errorf("%s: %dx%d, %v", mediaType, w, h, err)
		}
		if config, _, err := image.DecodeConfig(bytes.NewReader(data)); err == nil && (config.Width != 300 || config.Height != 7) {
			t.Errorf("%s: the sample has %dx%d pixels", mediaType, config.Width, config.Height)
		}
		for n := range data[:min(len(data), 2000)] {
			_, _, _ = Size(mediaType, data[:n]) // no panic
		}
		if n := testing.AllocsPerRun(10, func() { _, _, _ = Size(mediaType, data) }); n > 0 {
			t.Errorf("%s: %v pieces of memory", mediaType, n)
		}
	}
}

// Whatever an image holds, its size is read without a panic, and it is the one that a decoder reads, if that reads one.
func FuzzSize(f *testing.F) {
	for _, data := range samples(f) {
		f.Add(data)
	}
	files, err := filepath.Glob(filepath.Join("..", "..", "..", "examples", "*", "*.png"))
	if err != nil {
		f.Fatal(err)
	}
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		mediaType := output.SniffPicture(data)
		if mediaType == "" {
			return
		}
		w, h, err := Size(mediaType, data)
		if err == nil && (w <= 0 || h <= 0) {
			t.Fatalf("%dx%d", w, h)
		}
		config, format, theirs := image.DecodeConfig(bytes.NewReader(data))
		if theirs != nil || config.Width <= 0 || config.Height <= 0 {
			return
		}
		if w != config.Width || h != config.Height {
			t.Fatalf("%s has %dx%d pixels to a decoder, and here %dx%d, %v", format, config.Width, config.Height, w, h, err)
		}
	})
}
