// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agentfile_test

import (
	"bytes"
	"compress/zlib"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/antiphon-go/antiphon/agentfile"
	"github.com/antiphon-go/antiphon/trust"
)

// objects is a PDF file of the objects, the first of which is its root.
func objects(list ...string) string {
	var b strings.Builder
	b.WriteString("%PDF-1.4\n")
	table := fmt.Sprintf("xref\n0 %d\n0000000000 65535 f \n", len(list)+1)
	for i, o := range list {
		table += fmt.Sprintf("%010d 00000 n \n", b.Len())
		fmt.Fprintf(&b, "%d 0 obj\n%s\nendobj\n", i+1, o)
	}
	at := b.Len()
	fmt.Fprintf(&b, "%strailer\n<</Size %d/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF\n", table, len(list)+1, at)
	return b.String()
}

// program is an object of a PDF file: what a page draws.
func program(text string) string {
	return fmt.Sprintf("<</Length %d>>\nstream\n%s\nendstream", len(text), text)
}

// form is an object of a PDF file: a drawing.
func form(resources, text string) string {
	return fmt.Sprintf("<</Type/XObject/Subtype/Form/Resources<<%s>>/Length %d>>\nstream\n%s\nendstream", resources, len(text), text)
}

// page is a PDF file of one page, whose program is begin, mb megabytes of fill,
// and end, compressed.
func page(t *testing.T, begin, fill, end string, mb int) string {
	t.Helper()
	var b bytes.Buffer
	w := zlib.NewWriter(&b)
	fmt.Fprint(w, begin)
	block := strings.Repeat(fill, 1<<20/len(fill))
	for range mb {
		fmt.Fprint(w, block)
	}
	fmt.Fprint(w, end)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return objects("<</Type/Catalog/Pages 2 0 R>>", "<</Type/Pages/Count 1/Kids[3 0 R]>>",
		"<</Type/Page/Parent 2 0 R/Resources<</Font<</F1 5 0 R>>>>/Contents 4 0 R>>",
		fmt.Sprintf("<</Length %d/Filter/FlateDecode>>\nstream\n%s\nendstream", b.Len(), b.String()),
		"<</Type/Font/Subtype/Type1/BaseFont/Helvetica/Encoding/WinAnsiEncoding>>")
}

// CHATMD, documents: a small PDF file that stands for gigabytes, or for a page
// tree without end, is an error soon.
func TestPDFBombs(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: unpacks large PDF files")
	}
	tree := []string{"<</Type/Catalog/Pages 2 0 R>>"}
	for i := range 45 {
		tree = append(tree, fmt.Sprintf("<</Type/Pages/Kids[%d 0 R %d 0 R]>>", i+3, i+3))
	}
	for name, tt := range map[string]struct{ pdf, want string }{
		"string":  {page(t, "BT /F1 12 Tf (", "A", ") Tj ET", 300), "takes too much memory"},
		"numbers": {page(t, "", "1 ", "", 40), "takes too much memory"},
		"tree":    {objects(append(tree, "<</Type/Pages/Kids[]>>")...), "pages, or its page tree is circular"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, tt.pdf, dir, "x.pdf")
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := agentfile.Load(t.Context(), write(t, `<user><doc src="x.pdf" local/></user>`, dir, "p.md"), agentfile.Options{Consent: trust.Everything})
			// Each of four limits may be the first that stops a bomb: memory, which is sampled, the
			// memory of the process that reads it, the size of the text, and time on a busy machine.
			// The race detector has words of its own for the second.
			limits := []string{tt.want, "MB of memory", "ThreadSanitizer failed to allocate", "more than 16 MiB of text", "was not read within"}
			stopped := err != nil && slices.ContainsFunc(limits, func(s string) bool { return strings.Contains(err.Error(), s) })
			if !stopped {
				t.Errorf("got %v", err)
			}
			if runtime.ReadMemStats(&after); after.Sys-before.Sys > 64<<20 {
				t.Errorf("%d MiB were taken", (after.Sys-before.Sys)>>20)
			}
		})
	}
}

// CHATMD, documents: glyphs of two bytes that are placed one by one are words.
func TestPDFWideFont(t *testing.T) {
	program := "BT /F1 10 Tf 1 0 0 1 72 700 Tm <0001> Tj 1 0 0 1 75 700 Tm <0002> Tj 1 0 0 1 83 700 Tm <0001> Tj 1 0 0 1 96 700 Tm <0002> Tj ET"
	table := "/CIDInit /ProcSet findresource begin 12 dict begin begincmap 1 begincodespacerange <0000> <FFFF> endcodespacerange " +
		"2 beginbfchar <0001> <0069> <0002> <006D> endbfchar endcmap end end"
	dir := t.TempDir()
	write(t, objects("<</Type/Catalog/Pages 2 0 R>>", "<</Type/Pages/Count 1/Kids[3 0 R]>>",
		"<</Type/Page/Parent 2 0 R/Resources<</Font<</F1 5 0 R>>>>/Contents 4 0 R>>",
		fmt.Sprintf("<</Length %d>>\nstream\n%s\nendstream", len(program), program),
		"<</Type/Font/Subtype/Type0/BaseFont/X/Encoding/Identity-H/DescendantFonts[6 0 R]/ToUnicode 7 0 R>>",
		"<</Type/Font/Subtype/CIDFontType2/BaseFont/X/W[1 [300] 2 2 800]>>",
		fmt.Sprintf("<</Length %d>>\nstream\n%s\nendstream", len(table), table)), dir, "x.pdf")
	f := load(t, write(t, `<user><doc src="x.pdf" local/></user>`, dir, "p.md"), agentfile.Options{Consent: trust.Everything})
	if got := textOf(t, f.Items[0]); got != "imi m" {
		t.Errorf("got %q", got)
	}
}

// CHATMD, documents: a PDF file whose parts name each other in a circle is an error as soon as the circle is seen, and
// not when the time of its decoder is over.
func TestPDFCircles(t *testing.T) {
	table := "xref\n0 1\n0000000000 65535 f \ntrailer\n<</Size 1/Root 1 0 R/Prev %03d>>\n"
	head := "%PDF-1.4\n%" + strings.Repeat(" ", 100) + "\n"
	itself := head + fmt.Sprintf(table, len(head)) + fmt.Sprintf("startxref\n%d\n%%%%EOF\n", len(head))
	second := len(head) + len(fmt.Sprintf(table, 100))
	each := head + fmt.Sprintf(table, second) + fmt.Sprintf(table, len(head)) + fmt.Sprintf("startxref\n%d\n%%%%EOF\n", len(head))
	entries := "\x00\x00\x00\x01\x00\x09\x01\x00\x00\x02\x00\x04\x00" // objects 0 and 1, and a catalog in stream 4
	stream := func(prev int) string {
		return fmt.Sprintf("5 0 obj\n<</Type/XRef/Size 6/W[1 1 1]/Index[0 4]/Root 2 0 R/Length %d/Prev %d>>\nstream\n%s\nendstream\nendobj\n", len(entries), prev, entries)
	}
	streams := head + stream(len(head)) + fmt.Sprintf("startxref\n%d\n%%%%EOF\n", len(head))
	extends := "4 0 obj\n<</Type/ObjStm/N 1/First 4/Length 8/Extends 4 0 R>>\nstream\n9 0 null\nendstream\nendobj\n"
	in := fmt.Sprintf("\x00\x00\x00\x00\x00\x00\x02\x04\x00\x00\x00\x00\x01%c\x00", len(head))
	objectStreams := head + extends + fmt.Sprintf("5 0 obj\n<</Type/XRef/Size 5/W[1 1 1]/Root 2 0 R/Length %d>>\nstream\n%s\nendstream\nendobj\nstartxref\n%d\n%%%%EOF\n", len(in), in, len(head)+len(extends))
	drawing := "<</Type/XObject/Subtype/Form/Length 70/Resources<</XObject<</A 5 0 R>>>>>>\nstream\n" + strings.Repeat("/A Do /A Do\n", 100)[:70] + "\nendstream"
	drawings := objects("<</Type/Catalog/Pages 2 0 R>>", "<</Type/Pages/Count 1/Kids[3 0 R]>>",
		"<</Type/Page/Parent 2 0 R/Resources<</XObject<</A 5 0 R>>>>/Contents 4 0 R>>", "<</Length 30>>\nstream\n/A Do /A Do /A Do /A Do /A Do  \nendstream", drawing)
	// A drawing draws ten, and each of these draws ten. A small file has a hundred thousand texts, and no circle.
	multiply := []string{"<</Type/Catalog/Pages 2 0 R>>", "<</Type/Pages/Count 1/Kids[3 0 R]>>",
		"<</Type/Page/Parent 2 0 R/Resources<</Font<</F1 5 0 R>>/XObject<</A 6 0 R>>>>/Contents 4 0 R>>", program("/A Do"), "<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>"}
	for i := range 5 {
		multiply = append(multiply, form(fmt.Sprintf("/XObject<</A %d 0 R>>", i+7), strings.Repeat("/A Do ", 10)))
	}
	multiply = append(multiply, form("/Font<</F1 5 0 R>>", "BT /F1 12 Tf (x) Tj ET"))
	wordy := objects("<</Type/Catalog/Pages 2 0 R>>", "<</Type/Pages/Count 1/Kids[3 0 R]>>",
		"<</Type/Page/Parent 2 0 R/Resources<</Font<</F1 5 0 R>>>>/Contents 4 0 R>>",
		fmt.Sprintf("<</Length 200030>>\nstream\nBT /F1 12 Tf (%s) Tj ET         \nendstream", strings.Repeat("A", 200_000)),
		"<</Type/Font/Subtype/Type1/BaseFont/H/Encoding<</Differences["+strings.Repeat("1 /a ", 200_000)+"]>>>>") // for each letter, all of them are read
	bomb := func(operators int) string { // which has a hundredth of the size, compressed
		var packed bytes.Buffer
		z := zlib.NewWriter(&packed)
		_, _ = z.Write([]byte("BT /F1 12 Tf (x) Tj ET " + strings.Repeat("q Q ", operators/2)))
		_ = z.Close()
		return objects("<</Type/Catalog/Pages 2 0 R>>", "<</Type/Pages/Count 1/Kids[3 0 R]>>",
			"<</Type/Page/Parent 2 0 R/Resources<</Font<</F1 5 0 R>>>>/Contents 4 0 R>>",
			fmt.Sprintf("<</Filter/FlateDecode/Length %d>>\nstream\n%s\nendstream", packed.Len(), packed.String()), "<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>")
	}
	const circle, often = "in a circle, or too often", "draw each other more than 10000 times"
	for name, tt := range map[string]struct{ pdf, want string }{
		"operators":                   {bomb(4_000_000), "more than 4 steps for each of its bytes"},
		"names of letters":            {wordy, circle},
		"a table that follows itself": {itself, circle}, "two tables": {each, circle}, "a stream of the table": {streams, circle}, "streams of objects": {objectStreams, circle},
		"drawings": {drawings, often}, "drawings that multiply": {objects(multiply...), often},
	} {
		dir := t.TempDir()
		write(t, tt.pdf, dir, "x.pdf")
		_, err := agentfile.Load(t.Context(), write(t, `<user><doc src="x.pdf" local/></user>`, dir, "p.md"), agentfile.Options{Consent: trust.Everything})
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// CHATMD, documents: a page has more than ten thousand markers, each a drawing, as plots have; so has a figure that is a
// drawing itself, as in papers. Markers may have text.
func TestPDFMarkers(t *testing.T) {
	const label = "BT /F1 12 Tf 1 0 0 1 72 700 Tm (Measured values) Tj ET\n"
	markers := label + strings.Repeat("q 1 0 0 1 3 4 cm /M0 Do Q\n", 10_001)
	grouped := form("/XObject<</M0 7 0 R>>", "/M0 Do")
	line := form("", "0 0 m 1 1 l S")
	letter := form("/Font<</F1 5 0 R>>", "BT /F1 12 Tf 1 0 0 1 72 500 Tm (x) Tj ET")
	for name, tt := range map[string]struct {
		page    string
		objects []string // from 6
		texts   int      // of markers
	}{
		"of a page":               {markers, []string{line}, 0},
		"of a page, each a group": {markers, []string{grouped, line}, 0},
		"with text":               {markers, []string{letter}, 10_001},
		"of a figure":             {label + "/M0 Do /M0 Do", []string{form("/XObject<</M0 7 0 R>>", markers), line}, 0},
		"of a figure, with text":  {label + "/M0 Do", []string{form("/Font<</F1 5 0 R>>/XObject<</M0 7 0 R>>", markers[len(label):]), letter}, 10_001},
		"and text in one drawing": {label + "/M0 Do", []string{form("/XObject<</M0 7 0 R/M1 8 0 R>>", "/M0 Do /M1 Do /M0 Do /M1 Do"), line, letter}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, objects(append([]string{"<</Type/Catalog/Pages 2 0 R>>", "<</Type/Pages/Count 1/Kids[3 0 R]>>",
				"<</Type/Page/Parent 2 0 R/Resources<</Font<</F1 5 0 R>>/XObject<</M0 6 0 R>>>>/Contents 4 0 R>>", program(tt.page),
				"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>"}, tt.objects...)...), dir, "x.pdf")
			f := load(t, write(t, `<user><doc src="x.pdf" local/></user>`, dir, "p.md"), agentfile.Options{Consent: trust.Everything})
			got := textOf(t, f.Items[0])
			if !strings.HasPrefix(got, "Measured values") || strings.Count(got, "x") != tt.texts {
				t.Errorf("%d markers of %d: %.100q", strings.Count(got, "x"), tt.texts, got)
			}
		})
	}
}
