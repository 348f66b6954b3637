// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"syscall"
	"testing"
)

// TestObey proves that interrupts end the program, that a request to judge those that have come is answered also if the
// program ends, and that a request without one changes nothing.
func TestObey(t *testing.T) {
	for _, sig := range []os.Signal{nil, os.Interrupt, syscall.SIGTERM} {
		ends, drop, over := make(chan os.Signal, 1), make(chan chan struct{}), make(chan struct{})
		go func() {
			obey(ends, nil, drop)
			close(over)
		}()
		for range 3 {
			done := make(chan struct{})
			drop <- done
			<-done
		}
		if sig != nil {
			ends <- sig
			done := make(chan struct{})
			select {
			case drop <- done:
				<-done
			case <-over:
			}
			<-over
			continue
		}
		select {
		case <-over:
			t.Error("it ends without a signal")
		default:
		}
		ends <- syscall.SIGTERM
		<-over
	}
}
