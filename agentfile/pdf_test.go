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
