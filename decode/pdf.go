// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package decode

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/ledongthuc/pdf"
)

// Limits for one PDF file.
const (
	pdfTimeout  = 30 * time.Second
	maxPDFPages = 5000
	maxPDFText  = 16 << 20
	maxPDFForms = 8 // nesting of drawings
	maxPDFDepth = 50
	maxPDFNames = 4096      // of the letters of a font, which has 256: the library reads all for each letter
	minPDFOps   = 1_000_000 // operators that any file may have, and opsPerByte more for each of its bytes: streams of text have less, and bombs more
	opsPerByte  = 4
	maxPDFDrawn = 10_000 // what drawings of a page draw when they are drawn again: drawings that draw others multiply
)

// pdfText returns the text of a PDF file, with a form feed between pages. A file
// without text, such as a scan, is an error.
//
// The PDF library panics on damaged files and cannot be cancelled at every point, so
// it runs in a goroutine that is abandoned when the time is over.
func pdfText(ctx context.Context, data []byte) (string, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, pdfTimeout, fmt.Errorf("the PDF file was not read within %v", pdfTimeout))
	defer cancel()
	type outcome struct {
		text string
		err  error
	}
	done := make(chan outcome, 1)
	go func() {
		text, err := readPDF(ctx, data)
		done <- outcome{text, err}
	}()
	select {
	case o := <-done:
		return o.text, o.err
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

func readPDF(ctx context.Context, data []byte) (text string, err error) {
	defer func() {
		switch p := recover().(type) {
		case nil:
		case pdfStopped:
			text, err = "", p.error
		default:
			text, err = "", fmt.Errorf("the PDF file is damaged: %v", p)
		}
	}()
	data = plainPDF(data)
	source := newPDFSource(ctx, data)
	r, err := pdf.NewReader(source, int64(len(data)))
	var stopped pdfStopped
	switch {
	case errors.As(err, &stopped):
		return "", stopped.error
	case errors.Is(err, pdf.ErrInvalidPassword):
		return "", errors.New("the PDF file is protected by a password; remove the password first")
	case err != nil:
		return "", fmt.Errorf("the PDF file cannot be read: %w", err)
	}
	source.step()
	w := &pdfWriter{ctx: ctx, source: source, fonts: map[string]*pdfFont{}}
	w.pages(r.Trailer().Key("Root").Key("Pages"), pdf.Value{}, 0)
	if w.err != nil {
		return "", w.err
	}
	text = strings.TrimSpace(w.b.String())
	if text == "" {
		return "", errors.New("the PDF file holds no text; it may be a scan: send it with <file/>")
	}
	return strings.ToValidUTF8(text, "\uFFFD"), nil
}

// plainPDF returns a file in a form that the library accepts: with a version that it
// supports, and without data that some programs append.
func plainPDF(data []byte) []byte {
	data = bytes.Clone(data)
	if len(data) > len("%PDF-1.7\n") {
		copy(data, "%PDF-1.7\n") // the rest of the first line is a comment
	}
	if end := bytes.LastIndex(data, []byte("%%EOF")); end >= 0 {
		data = data[:end+len("%%EOF")]
	}
	return data
}

// pages writes the pages of a part of the page tree. The library's own walk does not
// end if a part contains itself.
func (w *pdfWriter) pages(part, resources pdf.Value, depth int) {
	if own := part.Key("Resources"); !own.IsNull() {
		resources = own
	}
	kids := part.Key("Kids")
	if kids.Kind() != pdf.Array {
		if w.count++; w.count > 1 {
			w.endPage()
		}
		w.ran, w.drawn = map[string]bool{}, 0
		w.stream(part.Key("Contents"), resources, 0)
		return
	}
	for i := range kids.Len() {
		if w.parts++; depth > maxPDFDepth || w.count > maxPDFPages || w.parts > 4*maxPDFPages {
			w.err = fmt.Errorf("the PDF file has more than %d pages, or its page tree is circular", maxPDFPages)
		}
		w.source.step()
		if w.err != nil {
			return
		}
		w.pages(kids.Index(i), resources, depth+1)
	}
}

// pdfWriter writes the texts of a page in the order of the page's program. It
// separates words and lines by their positions.
type pdfWriter struct {
	ctx    context.Context
	source *pdfSource
	err    error
	b      strings.Builder
	fonts  map[string]*pdfFont // by their text in the file
	count  int                 // pages
	parts  int                 // pages and parts of the page tree
	ran    map[string]bool     // the drawings that were drawn on this page, by their text in the file
	drawn  int                 // what they drew when they were drawn again

	ops      int
	state    pdfState
	saved    []pdfState
	line     pdfMatrix // where the line began
	at       pdfMatrix // where the next glyph goes
	any      bool      // something was written on this page
	lastX    float64   // where the last text ended
	lastY    float64
	lastSize float64
}

// pdfState is the state that the operator q saves and Q restores.
type pdfState struct {
	ctm     pdfMatrix
	font    *pdfFont
	size    float64
	char    float64 // Tc
	word    float64 // Tw
	scale   float64 // Tz
	leading float64
	rise    float64
}

// pdfFont is the data of a font that is needed, read once.
type pdfFont struct {
	encoder pdf.TextEncoding
	wide    bool // glyphs have two bytes
	first   int
	widths  []float64 // in units of the font size
	other   float64   // for glyphs without a width: standard fonts omit them
}

// font returns the font of a dictionary.
func (w *pdfWriter) font(v pdf.Value) *pdfFont {
	key := v.String()
	if f := w.fonts[key]; f != nil {
		return f
	}
	if v.Key("Encoding").Key("Differences").Len() > maxPDFNames {
		panic(pdfStopped{errPDFLoop})
	}
	source := pdf.Font{V: v}
	f := &pdfFont{encoder: source.Encoder(), first: source.FirstChar(), other: 0.5}
	for _, n := range source.Widths() {
		f.widths = append(f.widths, n/1000)
	}
	if v.Key("Subtype").Name() == "Type0" {
		inner := v.Key("DescendantFonts").Index(0)
		f.wide, f.first, f.widths = true, 0, nil
		if n := inner.Key("DW").Float64() / 1000; n > 0 && n < 1 {
			f.other = n
		}
		if v.Key("Encoding").Name() == "Identity-H" { // a code is a glyph number
			f.widths = glyphWidths(inner.Key("W"))
		}
	}
	w.fonts[key] = f
	return f
}

// glyphWidths reads the widths of two-byte glyphs: lists of the form first [width
// width …] and first last width.
func glyphWidths(list pdf.Value) (widths []float64) {
	set := func(code int64, n float64) {
		for int64(len(widths)) <= code {
			widths = append(widths, 0)
		}
		widths[code] = n / 1000
	}
	for i := 0; i+1 < list.Len(); {
		first, second := list.Index(i).Int64(), list.Index(i+1)
		if first < 0 || first > maxGlyph {
			return widths
		}
		if second.Kind() == pdf.Array {
			for k := range min(int64(second.Len()), maxGlyph-first+1) {
				set(first+k, second.Index(int(k)).Float64())
			}
			i += 2
			continue
		}
		width := list.Index(i + 2).Float64()
		for code := first; code <= min(second.Int64(), maxGlyph); code++ {
			set(code, width)
		}
		i += 3
	}
	return widths
}

// maxGlyph is the largest two-byte number.
const maxGlyph = 0xffff

// width returns the width of a glyph.
func (f *pdfFont) width(code int) float64 {
	if i := code - f.first; i >= 0 && i < len(f.widths) && f.widths[i] > 0 {
		return f.widths[i]
	}
	return f.other
}

// pdfMatrix is [a b c d e f].
type pdfMatrix [6]float64

var pdfUnit = pdfMatrix{1, 0, 0, 1, 0, 0}

// times returns the matrix that applies m first, then n.
func (m pdfMatrix) times(n pdfMatrix) pdfMatrix {
	return pdfMatrix{
		m[0]*n[0] + m[1]*n[2], m[0]*n[1] + m[1]*n[3],
		m[2]*n[0] + m[3]*n[2], m[2]*n[1] + m[3]*n[3],
		m[4]*n[0] + m[5]*n[2] + n[4], m[4]*n[1] + m[5]*n[3] + n[5],
	}
}

func (w *pdfWriter) endPage() {
	w.b.WriteString("\n\f\n")
	w.any = false
}

// stream runs the program of a page or of a drawing on it. It reports whether the program has no text, however often
// it runs. Many plots draw each of their thousands of markers with a drawing.
func (w *pdfWriter) stream(program, resources pdf.Value, depth int) (empty bool) {
	if depth > maxPDFForms {
		return false
	}
	if program.IsNull() {
		return true
	}
	if depth == 0 {
		w.state = pdfState{ctm: pdfUnit, scale: 1}
	}
	saved := len(w.saved)
	before := w.state
	again := false // this drawing was drawn before on this page
	if depth > 0 {
		key := program.String()
		again, w.ran[key] = w.ran[key], true
	}
	fonts := map[string]*pdfFont{} // by their names in this stream
	skip := map[string]bool{}      // names in this stream of what has no text
	empty = true
	pdf.Interpret(program, func(stk *pdf.Stack, op string) {
		if w.ops++; w.ops%256 == 0 && w.ctx.Err() != nil {
			panic(pdfStopped{context.Cause(w.ctx)})
		}
		if int64(w.ops) > minPDFOps+opsPerByte*w.source.Size() {
			panic(pdfStopped{errPDFWork})
		}
		w.source.step()
		args := make([]pdf.Value, stk.Len())
		for i := len(args) - 1; i >= 0; i-- {
			args[i] = stk.Pop()
		}
		if op == "Do" && len(args) == 1 {
			name := args[0].Name()
			if skip[name] {
				return
			}
			skip[name] = w.form(resources.Key("XObject").Key(name), resources, depth, again)
			empty = empty && skip[name]
			return
		}
		if strings.HasPrefix(op, "T") || op == "BT" || op == "'" || op == "\"" {
			empty = false
		}
		if op == "Tf" && len(args) == 2 {
			name := args[0].Name()
			if fonts[name] == nil {
				fonts[name] = w.font(resources.Key("Font").Key(name))
			}
			w.state.font, w.state.size = fonts[name], args[1].Float64()
			return
		}
		w.operator(op, args)
	})
	w.state, w.saved = before, w.saved[:min(saved, len(w.saved))]
	return empty
}

// form runs a drawing that may contain text. It reports whether it has none. again: the drawing that draws it was drawn
// before, so the size of the file no longer bounds what is drawn.
func (w *pdfWriter) form(x, resources pdf.Value, depth int, again bool) (empty bool) {
	if x.Key("Subtype").Name() != "Form" {
		return true
	}
	if again {
		w.drawn++
	}
	if w.drawn > maxPDFDrawn {
		panic(pdfStopped{errPDFDrawn})
	}
	if own := x.Key("Resources"); !own.IsNull() {
		resources = own
	}
	before := w.state
	w.state.ctm = numbers(x.Key("Matrix")).times(w.state.ctm)
	empty = w.stream(x, resources, depth+1)
	w.state = before
	return empty
}

// numbers reads a matrix; the default is the identity.
func numbers(v pdf.Value) pdfMatrix {
	if v.Len() != 6 {
		return pdfUnit
	}
	var m pdfMatrix
	for i := range m {
		m[i] = v.Index(i).Float64()
	}
	return m
}

func (w *pdfWriter) operator(op string, args []pdf.Value) {
	n := make([]float64, 6)
	for i := range min(len(args), 6) {
		n[i] = args[i].Float64()
	}
	s := &w.state
	switch op {
	case "q":
		if len(w.saved) < 1000 {
			w.saved = append(w.saved, *s)
		}
	case "Q":
		if k := len(w.saved); k > 0 {
			*s, w.saved = w.saved[k-1], w.saved[:k-1]
		}
	case "cm":
		s.ctm = pdfMatrix(n).times(s.ctm)
	case "BT":
		w.line, w.at = pdfUnit, pdfUnit
	case "Tm":
		w.line, w.at = pdfMatrix(n), pdfMatrix(n)
	case "Td":
		w.move(n[0], n[1])
	case "TD":
		s.leading = -n[1]
		w.move(n[0], n[1])
	case "T*":
		w.move(0, -s.leading)
	case "Tc":
		s.char = n[0]
	case "Tw":
		s.word = n[0]
	case "Tz":
		s.scale = n[0] / 100
	case "TL":
		s.leading = n[0]
	case "Ts":
		s.rise = n[0]
	default:
		w.show(op, args, n)
	}
}

func (w *pdfWriter) move(x, y float64) {
	w.line = pdfMatrix{1, 0, 0, 1, x, y}.times(w.line)
	w.at = w.line
}

// show handles the operators that show text.
func (w *pdfWriter) show(op string, args []pdf.Value, n []float64) {
	s := &w.state
	switch {
	case op == "Tj" && len(args) == 1:
		w.text(args[0].RawString())
	case op == "'" && len(args) == 1:
		w.move(0, -s.leading)
		w.text(args[0].RawString())
	case op == "\"" && len(args) == 3:
		s.word, s.char = n[0], n[1]
		w.move(0, -s.leading)
		w.text(args[2].RawString())
	case op == "TJ" && len(args) == 1:
		for i := range args[0].Len() {
			if x := args[0].Index(i); x.Kind() == pdf.String {
				w.text(x.RawString())
			} else {
				w.forward(-x.Float64() / 1000 * s.size * s.scale)
			}
		}
	}
}

// forward moves the position of the next glyph.
func (w *pdfWriter) forward(x float64) {
	w.at = pdfMatrix{1, 0, 0, 1, x, 0}.times(w.at)
}

// text writes a string, after a space or a line end if it is apart from the previous
// text.
func (w *pdfWriter) text(raw string) {
	s := &w.state
	if s.font == nil || raw == "" || w.err != nil {
		return
	}
	place := w.at.times(s.ctm)
	size := math.Abs(s.size) * math.Hypot(place[2], place[3])
	shown := printablePDF(s.font.encoder.Decode(raw))
	if shown != "" {
		w.separate(place[4], place[5], size, shown)
		w.b.WriteString(shown)
		w.any = true
	}
	if w.b.Len() > maxPDFText {
		w.err = fmt.Errorf("the PDF file has more than %d MiB of text", maxPDFText>>20)
	}
	w.forward(w.width(raw))
	if shown != "" {
		end := w.at.times(s.ctm)
		w.lastX, w.lastY, w.lastSize = end[4], end[5], size
	}
}

// width returns how far a string moves the position of the next glyph.
func (w *pdfWriter) width(raw string) float64 {
	s := &w.state
	total := 0.0
	for i := 0; i < len(raw); i++ {
		code := int(raw[i])
		if s.font.wide && i+1 < len(raw) {
			i++
			code = code<<8 | int(raw[i])
		}
		total += (s.font.width(code)*s.size + s.char) * s.scale
		if code == ' ' && !s.font.wide {
			total += s.word * s.scale
		}
	}
	return total
}

// separate writes the separator between the previous text and the text at x, y.
func (w *pdfWriter) separate(x, y, size float64, next string) {
	if !w.any {
		return
	}
	high := max(size, w.lastSize, 1)
	written := w.b.String()
	glued := !strings.HasSuffix(written, " ") && !strings.HasPrefix(next, " ")
	switch down := math.Abs(y - w.lastY); {
	case down > 1.8*high:
		w.b.WriteString("\n\n")
	case down > 0.6*high:
		w.b.WriteByte('\n')
	case glued && (x-w.lastX > 0.18*high || x < w.lastX-high):
		w.b.WriteByte(' ')
	}
}

// printablePDF removes characters that are not text.
func printablePDF(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' && r != '\t' || r == 0x7f || r == '\uFFFD' {
			return -1
		}
		return r
	}, s)
}
