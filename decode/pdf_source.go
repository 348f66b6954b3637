// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package decode

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime/metrics"
)

// maxPDFMemory is the limit on the growth of the heap while a PDF file is read. A
// small file can expand to gigabytes, because streams are compressed.
const maxPDFMemory = 256 << 20

var (
	errPDFMemory = errors.New("the PDF file takes too much memory to read")
	errPDFLoop   = errors.New("the PDF file refers to its own parts in a circle, or too often")
	errPDFWork   = fmt.Errorf("the pages of the PDF file have more than %d steps for each of its bytes, which no text needs, so that to read it would take too long", opsPerByte)
	errPDFDrawn  = fmt.Errorf("the drawings of a page of the PDF file draw each other more than %d times", maxPDFDrawn)
)

// How often one place of a file is read in one step, and how much is read. The library follows tables and streams that
// name each other in a circle for ever.
const (
	mostOpening  = 10   // while the tables are read
	mostReadings = 1000 // afterwards, for one operator of a page: its font may have many parts
	leastBytes   = 64 << 20
)

// pdfSource is the file as the library reads it. It stops the library in ReadAt when
// the time or the memory is used up, or when the library goes in a circle, because the library has no other way to stop.
type pdfSource struct {
	*bytes.Reader
	ctx    context.Context
	sample []metrics.Sample
	limit  uint64 // of the heap

	most  int           // how often a place is read in one step
	times map[int64]int // how often each place was read in this step
	bytes int64         // that were read in this step
}

func newPDFSource(ctx context.Context, data []byte) *pdfSource {
	s := &pdfSource{Reader: bytes.NewReader(data), ctx: ctx, times: map[int64]int{}, most: mostOpening, sample: []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}}
	s.limit = s.heap() + maxPDFMemory
	return s
}

func (s *pdfSource) heap() uint64 {
	metrics.Read(s.sample)
	if v := s.sample[0].Value; v.Kind() == metrics.KindUint64 {
		return v.Uint64()
	}
	return 0
}

// ReadAt implements [io.ReaderAt]. It panics to stop the library.
func (s *pdfSource) ReadAt(p []byte, off int64) (int, error) {
	switch {
	case s.ctx.Err() != nil:
		panic(pdfStopped{context.Cause(s.ctx)})
	case s.heap() > s.limit:
		panic(pdfStopped{errPDFMemory})
	}
	n, err := s.Reader.ReadAt(p, off)
	s.times[off]++
	if s.bytes += int64(n); s.times[off] > s.most || s.bytes > max(leastBytes, 4*s.Size()) {
		panic(pdfStopped{errPDFLoop})
	}
	return n, err
}

// step begins another step of the work, after the tables of the file were read.
func (s *pdfSource) step() {
	s.most, s.bytes = mostReadings, 0
	clear(s.times)
}

// pdfStopped is the panic that ends the library's work. It implements
// [runtime.Error] because the library treats other panics as bad operands and
// continues.
type pdfStopped struct{ error }

// RuntimeError implements [runtime.Error].
func (pdfStopped) RuntimeError() {}

// Unwrap returns the reason.
func (p pdfStopped) Unwrap() error { return p.error }
