// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package toolkit

import (
	"bytes"
	"fmt"

	"github.com/antiphon-go/antiphon/tool"
)

// sniffBytes is how much of a file decides whether it is text.
const sniffBytes = 8 << 10

// refuseBinary tells what a file is that is not text, by its first bytes. Text
// in an older encoding passes: its letters are ASCII for the most part.
func refuseBinary(p place, head []byte, size int64) error {
	shown := quoted(p.shown)
	if t := tool.SniffPicture(head); t != "" {
		return fmt.Errorf("%s is an image (%s, %d bytes), not text; use import_image to look at it", shown, t, size)
	}
	switch {
	case bytes.HasPrefix(head, []byte("%PDF-")):
		return fmt.Errorf("%s is a PDF document (%d bytes), not text", shown, size)
	case bytes.HasPrefix(head, []byte{0xff, 0xfe}), bytes.HasPrefix(head, []byte{0xfe, 0xff}):
		return fmt.Errorf("%s looks like UTF-16 text (%d bytes); it must be converted to UTF-8 first", shown, size)
	case bytes.IndexByte(head, 0) >= 0:
		return fmt.Errorf("%s is a binary file (%d bytes, begins with % x), not text", shown, size, head[:min(len(head), 8)])
	}
	return nil
}
