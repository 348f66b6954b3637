// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package chat

import "testing"

// closing is a face that tells whether it was closed.
type closing struct {
	face
	closed bool
}

func (c *closing) close() error {
	c.closed = true
	return nil
}

// TestChatPanics proves that a conversation that panics gives the terminal back, and one that ends does not
// give it back twice.
func TestChatPanics(t *testing.T) {
	t.Parallel()
	for _, panics := range []bool{true, false} {
		f := &closing{}
		func() {
			defer func() {
				if p := recover(); (p != nil) != panics {
					t.Errorf("it panics with %v", p)
				}
			}()
			_ = (&dialogue{face: f}).guarded(func() error {
				if panics {
					panic("broken")
				}
				return nil
			})
		}()
		if f.closed != panics {
			t.Errorf("the terminal is given back: %v", f.closed)
		}
	}
}
