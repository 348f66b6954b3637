// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

// Package private reads files that decide what may run on this machine and where keys go. It
// refuses those that others than the user can write.
package private

import (
	"errors"
	"fmt"
	"io"
	"os"
)

// ReadFile reads a file of at most limit bytes that passes [Check].
func ReadFile(path string, limit int64) ([]byte, error) {
	info, err := os.Stat(path) // opening a pipe would wait for a writer
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("it is not a file")
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err = f.Stat(); err != nil {
		return nil, err
	}
	if err := Check(info); err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(text)) > limit {
		return nil, fmt.Errorf("it is larger than %d bytes", limit)
	}
	return text, nil
}
