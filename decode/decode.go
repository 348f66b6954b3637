// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

// Package decode reads images and PDF files of strangers in a process of its own.
//
//	policy.Images = decode.Images{}
//	text, err := decode.PDF(ctx, data)
//
// The formats are complex, and a file can be made to crash its decoder, to fill the memory,
// or to take over the process. So each file is decoded by a new copy of the running
// program, which gets the bytes of the file and nothing else. Before it reads them, it
// gives up its rights by [sandbox.Enclose]: on Linux it then opens no files and no
// sockets and starts no processes. On macOS the sandbox of the system confines it. Its
// memory, its processor time and the length of its answer are limited; on systems without
// a sandbox that is all. Whatever happens to the copy is an error for the one file.
//
// The copy does its work in an init function of this package, so main never sees it and
// needs no call. It has no variables of the environment. A package of your program that
// is initialized before this one, and cannot do so without them, keeps the copy from starting;
// the error then says what the copy said. [picture.Limits] decodes in the process itself.
package decode

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"image"
	"time"
	"unicode/utf8"

	"github.com/antiphon-go/antiphon/tool/picture"
)

// Limits for the process that decodes one file.
const (
	imageTime = 2 * time.Minute
	pdfTime   = time.Minute // it stops by itself after pdfTimeout
	cpuTime   = 60          // seconds
	pdfMemory = 1 << 30

	// What the limit of an image leaves out: the file, a smaller image, its encoder, and
	// what waits for the garbage collector.
	imageMemory = 256 << 20
	mostMemory  = 1 << 40

	// The bytes of a text that are not UTF-8 take three bytes each.
	maxPDFAnswer = 3 * (maxPDFText + 1)
)

// Images is like [picture.Limits], but its method Fit decodes in a process of its own. It
// is an output.Imager; the zero value is ready for use.
type Images picture.Limits

// Fit is like [picture.Limits.Fit] and returns the same. An error also says if the image
// was not read because its decoder crashed or used up its memory or its time.
func (l Images) Fit(data []byte) (fit []byte, note string, err error) {
	if len(data) > cmp.Or(l.Input, picture.DefaultInput) {
		return picture.Limits(l).Fit(data) // which says so and does not look at it
	}
	memory := min(cmp.Or(l.Memory, picture.DefaultMemory), mostMemory)
	j := job{
		what: "it", request: request{kind: kindImage, settings: [4]int64{int64(l.Bytes), int64(l.Side), l.Memory, int64(l.Input)}, data: data},
		limits: limits{memory: 2*max(0, memory) + 4*int64(len(data)) + imageMemory, cpu: cpuTime, time: imageTime, answer: max(0, cmp.Or(l.Bytes, picture.DefaultBytes))},
	}
	a, err := j.run(context.Background())
	switch {
	case err != nil:
		return nil, "", err
	case a.kind == unchanged:
		return data, a.text, nil
	case !isResult(a.data):
		return nil, "", j.failed(errDamaged.Error())
	}
	return a.data, a.text, nil
}

// mostPixels is the largest width and height that Pixels returns.
const mostPixels = 2048

// Pixels is like [picture.Limits.Pixels], for at most 2048 pixels in each direction. If ctx is done
// first, Pixels returns its cause.
func (l Images) Pixels(ctx context.Context, data []byte, width, height int) (*image.RGBA, error) {
	if len(data) > cmp.Or(l.Input, picture.DefaultInput) {
		return picture.Limits(l).Pixels(data, width, height) // which says so and does not look at it
	}
	width, height = min(max(1, width), mostPixels), min(max(1, height), mostPixels)
	memory := min(cmp.Or(l.Memory, picture.DefaultMemory), mostMemory)
	most := sizeBytes + 4*width*height
	j := job{
		what: "it", request: request{kind: kindPixels, settings: [4]int64{int64(width), int64(height), l.Memory, int64(l.Input)}, data: data},
		limits: limits{memory: 2*max(0, memory) + 4*int64(len(data)) + int64(most) + imageMemory, cpu: cpuTime, time: imageTime, answer: most},
	}
	a, err := j.run(ctx)
	if err != nil {
		return nil, err
	}
	if a.kind == changed && len(a.data) > sizeBytes {
		w, h := int(binary.BigEndian.Uint32(a.data)), int(binary.BigEndian.Uint32(a.data[4:]))
		if w > 0 && h > 0 && w <= width && h <= height && len(a.data) == sizeBytes+4*w*h {
			return &image.RGBA{Pix: a.data[sizeBytes:], Stride: 4 * w, Rect: image.Rect(0, 0, w, h)}, nil
		}
	}
	return nil, j.failed(errDamaged.Error())
}

// sizeBytes is the length of the width and the height before pixels.
const sizeBytes = 8

// isResult reports whether data begins like an image that Fit makes.
func isResult(data []byte) bool {
	return bytes.HasPrefix(data, []byte("\x89PNG\r\n\x1a\n")) || bytes.HasPrefix(data, []byte("\xff\xd8\xff"))
}

// PDF returns the text of a PDF file, with a form feed between pages. A file without
// text, such as a scan, is an error, and so is one with a password, with more than 5000
// pages or 16 MiB of text, or one that takes more than 30 seconds or very much memory. If
// ctx is done first, PDF returns its cause.
func PDF(ctx context.Context, data []byte) (string, error) {
	j := job{
		what: "the PDF file", request: request{kind: kindPDF, data: data},
		limits: limits{memory: pdfMemory + 4*int64(len(data)), cpu: cpuTime, time: pdfTime, answer: maxPDFAnswer},
	}
	a, err := j.run(ctx)
	if err == nil && (a.kind != changed || !utf8.Valid(a.data)) {
		err = j.failed(errDamaged.Error())
	}
	if err != nil {
		return "", err
	}
	return string(a.data), nil
}

// decoders are the functions that the process of its own runs, by the kind of a request.
var decoders = map[byte]func(request) answer{
	kindImage: func(r request) answer {
		l := picture.Limits{Bytes: int(r.settings[0]), Side: int(r.settings[1]), Memory: r.settings[2], Input: int(r.settings[3])}
		fit, note, err := l.Fit(r.data)
		if err == nil && bytes.Equal(fit, r.data) {
			return answer{kind: unchanged, text: note}
		}
		return answerOf(fit, note, err)
	},
	kindPixels: func(r request) answer {
		l := picture.Limits{Memory: r.settings[2], Input: int(r.settings[3])}
		img, err := l.Pixels(r.data, int(r.settings[0]), int(r.settings[1]))
		if err != nil {
			return answerOf(nil, "", err)
		}
		data := binary.BigEndian.AppendUint32(nil, uint32(img.Rect.Dx()))
		data = binary.BigEndian.AppendUint32(data, uint32(img.Rect.Dy()))
		return answerOf(append(data, img.Pix...), "", nil)
	},
	kindPDF: func(r request) answer {
		text, err := pdfText(context.Background(), r.data)
		return answerOf([]byte(text), "", err)
	},
}

func answerOf(data []byte, note string, err error) answer {
	if err != nil {
		return answer{kind: refused, text: err.Error()}
	}
	return answer{kind: changed, text: note, data: data}
}

var (
	errDamaged = errors.New("the answer of its decoder is damaged")
	errTooLong = errors.New("the answer of its decoder is too long")
)
