// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package tui

import (
	"context"
	"errors"
	"io"
	"os"
	"runtime"
	"sync"

	"golang.org/x/term"

	uv "github.com/charmbracelet/ultraviolet"
)

// input reads the keys of a terminal in raw mode.
type input struct {
	file   *os.File
	kind   string
	before *term.State // of the terminal
	modes  string      // those that are changed, for the restorer
	events chan uv.Event
	lost   sync.Once // the terminal is gone, and events is closed
	reader interface {
		io.ReadCloser
		Cancel() bool
	}
	ended  chan struct{} // the reader has ended
	paused chan struct{} // nil while nothing is read
}

func openInput(file *os.File, kind string) (*input, error) {
	in := &input{file: file, kind: kind, events: make(chan uv.Event)}
	return in, in.resume()
}

// resume makes the terminal raw and reads its keys.
func (in *input) resume() (err error) {
	modes := modesOf(in.file)
	before, err := term.MakeRaw(int(in.file.Fd()))
	if err != nil {
		return err
	}
	reader, err := uv.NewCancelReader(in.file)
	if err != nil {
		return errors.Join(err, term.Restore(int(in.file.Fd()), before))
	}
	in.before, in.modes, in.reader, in.ended, in.paused = before, modes, reader, make(chan struct{}), make(chan struct{})
	var keys io.Reader = reader
	if runtime.GOOS != "windows" { // there it is a console, which sends no sequences
		keys = &pasted{from: reader}
	}
	go in.read(uv.NewTerminalReader(keys, in.kind), in.ended, in.paused)
	return nil
}

// read passes events on until the reader is cancelled or the terminal is gone, which closes
// events.
func (in *input) read(from *uv.TerminalReader, ended, pause chan struct{}) {
	defer close(ended)
	raw := make(chan uv.Event)
	over := make(chan struct{})
	go func() {
		defer close(over)
		_ = from.StreamEvents(context.Background(), raw)
	}()
	for {
		select {
		case ev := <-raw:
			if paste, ok := ev.(uv.PasteEvent); ok && runtime.GOOS != "windows" {
				ev = uv.PasteEvent{Content: unpasted(paste.Content)}
			}
			select {
			case in.events <- ev:
			case <-pause:
			}
		case <-over:
			select {
			case <-pause:
			default:
				in.gone()
			}
			return
		}
	}
}

// gone says that the terminal is gone.
func (in *input) gone() { in.lost.Do(func() { close(in.events) }) }

// pause stops reading and restores the terminal. If nothing is read, it does nothing.
func (in *input) pause() error {
	if in.paused == nil {
		return nil
	}
	close(in.paused)
	in.paused = nil
	in.reader.Cancel()
	<-in.ended
	return errors.Join(in.reader.Close(), in.restore())
}

// restore makes the terminal as it was.
func (in *input) restore() error { return term.Restore(int(in.file.Fd()), in.before) }

func (in *input) close() error { return in.pause() }
