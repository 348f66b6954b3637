// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"reflect"
	"time"

	"golang.org/x/sys/unix"
)

// plumbing connects a program with the readers and writers of its command, as package
// os/exec does for programs that it starts itself.
type plumbing struct {
	program []*os.File // what the program gets
	theirs  []*os.File // those of program that are ours to close
	ours    []*os.File // our ends of pipes
	copies  []func() error
	done    chan error
}

// connect makes the files that a program gets.
func connect(cmd *exec.Cmd) (p *plumbing, err error) {
	p = &plumbing{}
	defer func() {
		if err != nil {
			p.close()
		}
	}()
	in, err := p.input(cmd.Stdin)
	if err != nil {
		return p, err
	}
	out, err := p.output(cmd.Stdout)
	if err != nil {
		return p, err
	}
	errs := out
	if cmd.Stderr == nil || !same(cmd.Stdout, cmd.Stderr) {
		if errs, err = p.output(cmd.Stderr); err != nil {
			return p, err
		}
	}
	p.program = append(append(p.program, in, out, errs), cmd.ExtraFiles...)
	return p, nil
}

// same reports whether two writers are the same one, so that only one goroutine at a
// time calls it.
func same(a, b io.Writer) bool {
	return reflect.TypeOf(a) == reflect.TypeOf(b) && reflect.TypeOf(a).Comparable() && a == b
}

func (p *plumbing) null(flag int) (*os.File, error) {
	f, err := os.OpenFile(os.DevNull, flag, 0)
	if err == nil {
		p.theirs = append(p.theirs, f)
	}
	return f, err
}

func (p *plumbing) input(from io.Reader) (*os.File, error) {
	if from == nil {
		return p.null(os.O_RDONLY)
	}
	if f, ok := from.(*os.File); ok {
		return f, nil
	}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	p.theirs, p.ours = append(p.theirs, r), append(p.ours, w)
	p.copies = append(p.copies, func() error {
		_, err := io.Copy(w, from)
		if errors.Is(err, unix.EPIPE) { // the program did not want all of it
			err = nil
		}
		return errors.Join(err, w.Close())
	})
	return r, nil
}

func (p *plumbing) output(to io.Writer) (*os.File, error) {
	if to == nil {
		return p.null(os.O_WRONLY)
	}
	if f, ok := to.(*os.File); ok {
		return f, nil
	}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	p.theirs, p.ours = append(p.theirs, w), append(p.ours, r)
	p.copies = append(p.copies, func() error {
		_, err := io.Copy(to, r)
		return errors.Join(err, r.Close())
	})
	return w, nil
}

// run starts the copying, when the program has its own copies of the files.
func (p *plumbing) run() {
	for _, f := range p.theirs {
		_ = f.Close()
	}
	p.theirs = nil
	p.done = make(chan error, len(p.copies))
	for _, c := range p.copies {
		go func() { p.done <- c() }()
	}
}

// wait waits until all is copied, for at most delay unless it is 0.
func (p *plumbing) wait(delay time.Duration) (err error) {
	var late <-chan time.Time
	if delay > 0 {
		t := time.NewTimer(delay)
		defer t.Stop()
		late = t.C
	}
	for range p.copies {
		select {
		case e := <-p.done:
			err = errors.Join(err, e)
		case <-late:
			p.close()
			return errors.Join(err, exec.ErrWaitDelay)
		}
	}
	return err
}

func (p *plumbing) close() {
	for _, f := range append(p.theirs, p.ours...) {
		_ = f.Close() // some are closed already
	}
}
