// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
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

// TestHangUps proves that a hangup that shells and systems send again counts once, and that one that comes later, or when
// the chat is over, ends the program.
func TestHangUps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hangup, over := make(chan os.Signal), make(chan struct{})
		told := 0
		lost := func() { told++ }
		hungUp.Store(&lost)
		defer hungUp.Store(nil)
		go func() {
			obey(nil, hangup, nil)
			close(over)
		}()
		ended := func() bool {
			synctest.Wait()
			select {
			case <-over:
				return true
			default:
				return false
			}
		}
		for range 3 {
			hangup <- syscall.SIGHUP
		}
		if ended() || told != 1 {
			t.Fatalf("one hangup that is sent again: ended, or the terminal was lost %d times", told)
		}
		time.Sleep(time.Minute)
		hangup <- syscall.SIGHUP
		if !ended() || told != 1 {
			t.Errorf("a later hangup: not ended, or the terminal was lost %d times", told)
		}
		hungUp.Store(nil)
		go obey(nil, hangup, nil)
		hangup <- syscall.SIGHUP // and it returns
	})
}
