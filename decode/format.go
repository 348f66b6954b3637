// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package decode

import (
	"encoding/binary"
	"errors"
	"io"
	"strings"
	"unicode"
)

// A request and its answer, as they pass through pipes. All numbers are big-endian.
//
//	request: kind (1 byte), settings (4 numbers of 8 bytes), length of data (8), data
//	answer:  hello (4), before a byte of the request is read
//	         kind (1), length of text (4), length of data (4), text, data, end of the stream
//
// The reader of an answer does not trust the writer. An answer that is shorter, longer, of
// another kind, or over a limit, is an error as a whole.

// The kinds of requests and answers.
const (
	kindImage  = 'i'
	kindPixels = 'x'
	kindPDF    = 'p'

	unchanged = 'u' // the data is that of the request
	changed   = 'c'
	refused   = 'r' // text is the error
)

// hello is what a decoder says when it has given up its rights.
const hello = "AnD1"

// maxAnswerText limits a note, or an error, in bytes.
const maxAnswerText = 2000

type request struct {
	kind     byte
	settings [4]int64
	data     []byte
}

type answer struct {
	kind byte
	text string
	data []byte
}

func (r request) write(w io.Writer) error {
	head := []byte{r.kind}
	for _, n := range r.settings {
		head = binary.BigEndian.AppendUint64(head, uint64(n))
	}
	head = binary.BigEndian.AppendUint64(head, uint64(len(r.data)))
	if _, err := w.Write(head); err != nil {
		return err
	}
	_, err := w.Write(r.data)
	return err
}

// readRequest reads a request, whose data is shorter than most.
func readRequest(in io.Reader, most int64) (r request, err error) {
	var head [1 + 5*8]byte
	if _, err := io.ReadFull(in, head[:]); err != nil {
		return r, err
	}
	r.kind = head[0]
	for i := range r.settings {
		r.settings[i] = int64(binary.BigEndian.Uint64(head[1+8*i:]))
	}
	n := int64(binary.BigEndian.Uint64(head[1+4*8:]))
	if n < 0 || n > most {
		return r, errors.New("the length of a request is wrong")
	}
	r.data = make([]byte, n)
	_, err = io.ReadFull(in, r.data)
	return r, err
}

func (a answer) write(w io.Writer) error {
	if len(a.text) > maxAnswerText {
		a.text = a.text[:maxAnswerText]
	}
	head := []byte{a.kind}
	head = binary.BigEndian.AppendUint32(head, uint32(len(a.text)))
	head = binary.BigEndian.AppendUint32(head, uint32(len(a.data)))
	if _, err := w.Write(append(head, a.text...)); err != nil {
		return err
	}
	_, err := w.Write(a.data)
	return err
}

// readAnswer reads what follows hello. The errors are those of in if it ends too early, and
// otherwise errDamaged or errTooLong.
func readAnswer(in io.Reader, most int) (a answer, err error) {
	var head [9]byte
	if _, err := io.ReadFull(in, head[:]); err != nil {
		return a, err
	}
	a.kind = head[0]
	text, data := binary.BigEndian.Uint32(head[1:]), binary.BigEndian.Uint32(head[5:])
	switch {
	case a.kind != unchanged && a.kind != changed && a.kind != refused:
		return a, errDamaged
	case a.kind != changed && data > 0, a.kind == refused && text == 0:
		return a, errDamaged
	case text > maxAnswerText, int64(data) > int64(most):
		return a, errTooLong
	}
	both := make([]byte, int(text)+int(data))
	if _, err := io.ReadFull(in, both); err != nil {
		return a, err
	}
	a.text, a.data = inOneLine(string(both[:text])), both[text:]
	if n, err := io.ReadFull(in, head[:1]); n > 0 || !errors.Is(err, io.EOF) {
		return a, errTooLong
	}
	return a, nil
}

// inOneLine returns a text that can be part of a message.
func inOneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "\uFFFD"))
}
