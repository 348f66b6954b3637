// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package responses

// Lost is closed when the chain knows that its socket is lost.
func (t *Chain) Lost() <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.socket == nil {
		gone := make(chan struct{})
		close(gone)
		return gone
	}
	return t.socket.gone
}

// Age makes the chain's socket as old as a server lets it be.
func (t *Chain) Age() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.socket.born = t.socket.born.Add(-maxAge)
}
