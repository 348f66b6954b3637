// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package decode

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/jpeg"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/antiphon-go/antiphon/tool/picture"
)

// photograph is a JPEG of 3000x2000 pixels and about 1 MB: smooth areas with some noise.
func photograph(b *testing.B) []byte {
	b.Helper()
	r := rand.New(rand.NewPCG(1, 2))
	img := image.NewRGBA(image.Rect(0, 0, 3000, 2000))
	for y := range 2000 {
		for x := range 3000 {
			n := r.IntN(18)
			img.SetRGBA(x, y, color.RGBA{uint8(x/16 + n), uint8(y/10 + n), uint8((x+y)/25 + n), 255})
		}
	}
	var out bytes.Buffer
	if err := jpeg.Encode(&out, img, &jpeg.Options{Quality: 85}); err != nil {
		b.Fatal(err)
	}
	return out.Bytes()
}

// paper is a PDF file of 20 pages with 50 lines each.
func paper() []byte {
	var b bytes.Buffer
	b.WriteString("%PDF-1.4\n")
	var kids []string
	list := []string{"<</Type/Catalog/Pages 2 0 R>>", "", "<</Type/Font/Subtype/Type1/BaseFont/Helvetica/Encoding/WinAnsiEncoding>>"}
	for page := range 20 {
		var program strings.Builder
		program.WriteString("BT /F1 12 Tf 14 TL 1 0 0 1 72 720 Tm\n")
		for line := range 50 {
			fmt.Fprintf(&program, "(Page %d, line %d, has as many words as a line of a paper usually has.) Tj T*\n", page, line)
		}
		program.WriteString("ET")
		kids = append(kids, fmt.Sprintf("%d 0 R", len(list)+1))
		list = append(list, fmt.Sprintf("<</Type/Page/Parent 2 0 R/Resources<</Font<</F1 3 0 R>>>>/Contents %d 0 R>>", len(list)+2),
			fmt.Sprintf("<</Length %d>>\nstream\n%s\nendstream", program.Len(), program.String()))
	}
	list[1] = fmt.Sprintf("<</Type/Pages/Count 20/Kids[%s]>>", strings.Join(kids, " "))
	table := fmt.Sprintf("xref\n0 %d\n0000000000 65535 f \n", len(list)+1)
	for i, o := range list {
		table += fmt.Sprintf("%010d 00000 n \n", b.Len())
		fmt.Fprintf(&b, "%d 0 obj\n%s\nendobj\n", i+1, o)
	}
	at := b.Len()
	fmt.Fprintf(&b, "%strailer\n<</Size %d/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF\n", table, len(list)+1, at)
	return b.Bytes()
}

// BenchmarkDecode compares this process with a process of its own: for an image that is
// scaled down, one that is sent as it is, and a PDF file.
func BenchmarkDecode(b *testing.B) {
	photo, document := photograph(b), paper()
	icon := pngHeader(1, 1)
	run := func(name string, decode func() error) {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if err := decode(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	run("image/here", func() error { _, _, err := picture.Limits{}.Fit(photo); return err })
	run("image/own", func() error { _, _, err := Images{}.Fit(photo); return err })
	run("PDF/here", func() error { _, err := pdfText(b.Context(), document); return err })
	run("PDF/own", func() error { _, err := PDF(b.Context(), document); return err })
	run("damaged/here", func() error { _, _, err := picture.Limits{}.Fit(icon); return failure(err) })
	run("damaged/own", func() error { _, _, err := Images{}.Fit(icon); return failure(err) })
}

func failure(err error) error {
	if err == nil {
		return fmt.Errorf("an image without pixels was read")
	}
	return nil
}
