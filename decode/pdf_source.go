// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package decode

import (
	"bytes"
	"context"
	"errors"
	"runtime/metrics"
)

// maxPDFMemory is the limit on the growth of the heap while a PDF file is read. A
// small file can expand to gigabytes, because streams are compressed.
const maxPDFMemory = 256 << 20

var errPDFMemory = errors.New("the PDF file takes too much memory to read")

// pdfSource is the file as the library reads it. It stops the library in ReadAt when
// the time or the memory is used up, because the library has no other way to stop.
type pdfSource struct {
	*bytes.Reader
	ctx    context.Context
	sample []metrics.Sample
	limit  uint64 // of the heap
}

func newPDFSource(ctx context.Context, data []byte) *pdfSource {
	s := &pdfSource{Reader: bytes.NewReader(data), ctx: ctx, sample: []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}}
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
	return s.Reader.ReadAt(p, off)
}

// pdfStopped is the panic that ends the library's work. It implements
// [runtime.Error] because the library treats other panics as bad operands and
// continues.
type pdfStopped struct{ error }

// RuntimeError implements [runtime.Error].
func (pdfStopped) RuntimeError() {}

// Unwrap returns the reason.
func (p pdfStopped) Unwrap() error { return p.error }
