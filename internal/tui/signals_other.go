// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package tui

import (
	"errors"
	"os"
)

// resizes returns a channel that tells nothing: the size is read with each frame.
func resizes() (resized <-chan os.Signal, end func()) { return nil, func() {} }

func stopSelf() error { return errors.New("this system cannot suspend a program") }
