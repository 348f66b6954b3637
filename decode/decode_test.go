// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package decode

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/antiphon-go/antiphon/tool/picture"
)

// recorded returns the files with these endings in this project, in the tests of Go and of
// the libraries that decode.
func recorded(t testing.TB, endings ...string) map[string][]byte {
	t.Helper()
	folders := []string{"../docs", "../examples"}
	for _, args := range [][]string{{"env", "GOROOT"}, {"list", "-m", "-f", "{{.Dir}}", "golang.org/x/image", "github.com/ledongthuc/pdf"}} {
		out, err := exec.Command("go", args...).Output()
		if err != nil {
			t.Logf("without what %q would name: %v", args, err)
		}
		for _, dir := range strings.Fields(string(out)) {
			folders = append(folders, filepath.Join(dir, "testdata"), filepath.Join(dir, "src/image/testdata"))
		}
	}
	files := map[string][]byte{}
	for _, folder := range folders {
		if _, err := os.Stat(folder); err != nil {
			continue
		}
		err := filepath.WalkDir(folder, func(path string, _ os.DirEntry, err error) error {
			for _, ending := range endings {
				if err == nil && strings.HasSuffix(path, ending) {
					files[path], err = os.ReadFile(path)
				}
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return files
}

// T10: the process of its own returns the same bytes, notes and errors as this process.
func TestSameImages(t *testing.T) {
	files := recorded(t, ".png", ".jpeg", ".gif", ".webp", ".bmp", ".tiff")
	if len(files) < 5 {
		t.Fatalf("%d images", len(files))
	}
	for name, data := range hostileImages(t) {
		files[name] = data
	}
	var group sync.WaitGroup
	defer group.Wait()
	n := 0
	for name, data := range files {
		if n++; len(data) > 60_000 && !strings.HasPrefix(name, "..") || testing.Short() && n%10 != 0 {
			continue // the large images of libraries say no more than the small ones
		}
		group.Go(func() {
			same(t, name, picture.Limits{}, data)
			same(t, name, picture.Limits{}, data[:len(data)*2/3])
			if len(data) < 10_000 { // the smaller the image is to be, the more often it is encoded
				same(t, name, picture.Limits{Bytes: 600}, data)
				same(t, name, picture.Limits{Side: 64, Bytes: 5000, Memory: 1 << 20, Input: 1 << 20}, data)
			}
		})
	}
}

func same(t *testing.T, name string, l picture.Limits, data []byte) {
	t.Helper()
	want, wantNote, wantErr := l.Fit(data)
	fit, note, err := Images(l).Fit(data)
	if !bytes.Equal(fit, want) || note != wantNote || fmt.Sprint(err) != fmt.Sprint(wantErr) {
		t.Errorf("%s, %d bytes, %+v: %d bytes, %q, %v; want %d, %q, %v", name, len(data), l, len(fit), note, err, len(want), wantNote, wantErr)
	}
}

// TestSamePixels proves that the process of its own returns the same pixels and errors as this process,
// also of hostile and broken images, within the size, and that the end of a context is the error.
func TestSamePixels(t *testing.T) {
	files := hostileImages(t)
	waves, err := os.ReadFile("../examples/tour/waves.png")
	if err != nil {
		t.Fatal(err)
	}
	files["waves"], files["half of waves"] = waves, waves[:len(waves)/2]
	var group sync.WaitGroup
	defer group.Wait()
	for name, data := range files {
		group.Go(func() {
			want, wantErr := picture.Limits{}.Pixels(data, 40, 30)
			img, err := Images{}.Pixels(t.Context(), data, 40, 30)
			if fmt.Sprint(err) != fmt.Sprint(wantErr) {
				t.Errorf("%s: %v, want %v", name, err, wantErr)
			}
			if err == nil && wantErr == nil && (!bytes.Equal(img.Pix, want.Pix) || img.Rect != want.Rect || img.Rect.Dx() > 40 || img.Rect.Dy() > 30) {
				t.Errorf("%s: %v, want %v", name, img.Rect, want.Rect)
			}
		})
	}
	gone := errors.New("gone")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(gone)
	if _, err := (Images{}).Pixels(ctx, []byte("x"), 1, 1); !errors.Is(err, gone) {
		t.Error(err)
	}
}

// CHATMD, documents: the process of its own returns the same texts and errors of PDF files.
func TestSamePDF(t *testing.T) {
	files := recorded(t, ".pdf")
	files["none"], files["cut"], files["words"] = nil, []byte("%PDF-1.7\n"), []byte("%PDF-1.7\n"+strings.Repeat("words ", 1000)+"%%EOF")
	for name, data := range files {
		want, wantErr := pdfText(t.Context(), data)
		text, err := PDF(t.Context(), data)
		if text != want || fmt.Sprint(err) != fmt.Sprint(wantErr) {
			t.Errorf("%s: %q, %v; want %q, %v", name, text, err, want, wantErr)
		}
	}
}

// pngHeader is a PNG that says it has this size, with pixels that are not enough.
func pngHeader(width, height uint32) []byte {
	chunk := func(name string, body []byte) []byte {
		b := binary.BigEndian.AppendUint32(nil, uint32(len(body)))
		b = append(append(b, name...), body...)
		return binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b[4:]))
	}
	size := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, width), height)
	b := append([]byte("\x89PNG\r\n\x1a\n"), chunk("IHDR", append(size, 8, 6, 0, 0, 0))...)
	return append(append(b, chunk("IDAT", []byte{0x78, 0x9c, 1, 0, 0, 0xff, 0xff})...), chunk("IEND", nil)...)
}

// hostileImages are images that are damaged, or much larger than their files.
func hostileImages(t testing.TB) map[string][]byte {
	t.Helper()
	made := func(encode func(io.Writer, image.Image) error) []byte {
		var b bytes.Buffer
		img := image.NewPaletted(image.Rect(0, 0, 40, 30), color.Palette{color.Black, color.White})
		if err := encode(&b, img); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	asJPEG := made(func(w io.Writer, img image.Image) error { return jpeg.Encode(w, img, nil) })
	asGIF := made(func(w io.Writer, img image.Image) error { return gif.Encode(w, img, nil) })
	asPNG := made(png.Encode)
	webp, err := base64.StdEncoding.DecodeString("UklGRiIAAABXRUJQVlA4IBYAAAAwAQCdASoBAAEADsD+JaQAA3AAAAAA")
	if err != nil {
		t.Fatal(err)
	}
	hugeJPEG, hugeGIF, hugeWebP := bytes.Clone(asJPEG), bytes.Clone(asGIF), bytes.Clone(webp)
	for _, marker := range []byte{0xc0, 0xc2} {
		if at := bytes.Index(hugeJPEG, []byte{0xff, marker, 0}); at >= 0 {
			copy(hugeJPEG[at+5:], "\xff\xff\xff\xff")
		}
	}
	copy(hugeGIF[6:], "\xff\xff\xff\xff")
	copy(hugeWebP[26:], "\xff\x3f\xff\x3f")
	return map[string][]byte{
		"tiny": asPNG, "empty": nil, "text": []byte("text"),
		"a huge PNG": pngHeader(1<<30, 1<<30), "a PNG without pixels": pngHeader(1000, 1000), "a PNG of no size": pngHeader(0, 5),
		"a huge JPEG": hugeJPEG, "a huge GIF": hugeGIF, "a huge WebP": hugeWebP,
		"half a PNG": asPNG[:len(asPNG)/2], "half a JPEG": asJPEG[:len(asJPEG)/2], "half a GIF": asGIF[:len(asGIF)/2], "half a WebP": webp[:len(webp)/2],
		"a huge TIFF": []byte("II*\x00\x08\x00\x00\x00\x02\x00\x00\x01\x04\x00\x01\x00\x00\x00\xff\xff\xff\x7f\x01\x01\x04\x00\x01\x00\x00\x00\xff\xff\xff\x7f\x00\x00\x00\x00"),
	}
}
