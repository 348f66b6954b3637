// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"sync"
	"time"

	"github.com/creack/pty"
)

// pane is the person's side of a pseudo-terminal.
type pane struct {
	master *os.File
	cmd    *exec.Cmd // nil if the other side is this process
	began  time.Time

	mu     sync.Mutex
	more   chan struct{} // closed at the next change
	shown  []byte
	chunks []chunk
	ended  bool
}

// chunk is where and when a read of the terminal's output ended.
type chunk struct {
	to int
	at time.Time
}

var paneSize = &pty.Winsize{Rows: screenRows, Cols: screenWidth}

// startPane starts a program in a terminal.
func startPane(cmd *exec.Cmd) (*pane, error) {
	p := &pane{cmd: cmd, began: time.Now(), more: make(chan struct{})}
	var err error
	if p.master, err = pty.StartWithSize(cmd, paneSize); err != nil {
		return nil, err
	}
	go p.read()
	return p, nil
}

// openPane opens a terminal for this process and returns its other side too.
func openPane() (*pane, *os.File, error) {
	master, tty, err := pty.Open()
	if err != nil {
		return nil, nil, err
	}
	p := &pane{master: master, began: time.Now(), more: make(chan struct{})}
	go p.read()
	return p, tty, pty.Setsize(master, paneSize)
}

func (p *pane) read() {
	b := make([]byte, 64<<10)
	for {
		n, err := p.master.Read(b)
		now := time.Now()
		p.mu.Lock()
		p.shown = append(p.shown, b[:n]...)
		p.chunks = append(p.chunks, chunk{len(p.shown), now})
		p.ended = err != nil
		close(p.more)
		p.more = make(chan struct{})
		p.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// patience is how long a text may take to appear.
const patience = 2 * time.Minute

// until waits for a text behind a place of the output. It returns when it was there, and the
// place behind it.
func (p *pane) until(text string, from int) (at time.Time, to int, err error) {
	late := time.NewTimer(patience)
	defer late.Stop()
	looked := from
	for {
		p.mu.Lock()
		i, ended, more := bytes.Index(p.shown[looked:], []byte(text)), p.ended, p.more
		if i >= 0 {
			to = looked + i + len(text)
			n, _ := slices.BinarySearchFunc(p.chunks, to, func(c chunk, to int) int { return c.to - to })
			at = p.chunks[n].at
			p.mu.Unlock()
			return at, to, nil
		}
		looked = max(from, len(p.shown)-len(text))
		end := p.shown[max(0, len(p.shown)-2000):]
		p.mu.Unlock()
		if ended {
			return at, 0, fmt.Errorf("no %q on the screen before the end of %q", text, end)
		}
		select {
		case <-more:
		case <-late.C:
			return at, 0, fmt.Errorf("no %q on the screen in %v: %q", text, patience, end)
		}
	}
}

// place returns the place behind all output so far.
func (p *pane) place() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.shown)
}

// forget drops the output so far.
func (p *pane) forget() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.shown, p.chunks = nil, nil
}

// keys types, and returns when.
func (p *pane) keys(text string) (time.Time, error) {
	now := time.Now()
	_, err := io.WriteString(p.master, text)
	return now, err
}

// close ends the program, if there is one, and the terminal.
func (p *pane) close() {
	if p.cmd != nil {
		_ = p.cmd.Process.Kill()
		_ = p.cmd.Wait()
	}
	_ = p.master.Close()
}
