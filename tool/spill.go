// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package tool

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"sync"
)

// Spill keeps outputs that are too long to be sent whole, so that the model can
// read the rest with [ReadOutput]. It must be safe for concurrent use.
//
// The id comes from what is stored, never from a model: the same data has the
// same id and is kept once. An id is 1 to 64 letters, digits, underscores and
// hyphens, and nobody can guess one. Those of this module are the SHA-256 of the
// data, so that what one Spill kept another can take over under the same id.
type Spill interface {
	// Put keeps a copy of data and returns its id. When it returns, the data
	// can be read.
	Put(ctx context.Context, data []byte) (id string, err error)
	// Get returns up to n bytes from offset on, fewer only at the end, and the
	// size of all of it. From the end on there are none, which is not an error. An
	// id that is not there is an error that wraps [ErrNotStored].
	Get(ctx context.Context, id string, offset, n int) (data []byte, size int, err error)
}

// ErrNotStored is what [Spill.Get] returns for an id that it does not have.
var ErrNotStored = errors.New("no output is stored under this id")

// StreamSpill is a [Spill] that takes an output without all of it in memory.
// Outputs that are too long for that are given to Put whole otherwise.
type StreamSpill interface {
	Spill
	// PutFrom is Put for all that r returns up to [io.EOF].
	PutFrom(ctx context.Context, r io.Reader) (id string, err error)
}

// idOf returns the id of data: its SHA-256.
func idOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// isID reports whether s is an id, or one as older versions made it: the first
// half.
func isID(s string) bool {
	b, err := hex.DecodeString(s)
	return err == nil && (len(b) == sha256.Size || len(b) == sha256.Size/2) && hex.EncodeToString(b) == s
}

// MemorySpill is a [Spill] that lasts as long as the program and grows with
// what is put into it. The zero value is empty and ready.
type MemorySpill struct {
	mu  sync.RWMutex
	all map[string][]byte
}

// Put implements [Spill].
func (m *MemorySpill) Put(_ context.Context, data []byte) (string, error) {
	id := idOf(data)
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, ok := m.all[id]; !ok {
		if m.all == nil {
			m.all = make(map[string][]byte)
		}
		m.all[id] = append([]byte{}, data...)
	}
	return id, nil
}

// Get implements [Spill].
func (m *MemorySpill) Get(_ context.Context, id string, offset, n int) ([]byte, int, error) {
	m.mu.RLock()
	data, ok := m.all[id]
	m.mu.RUnlock()
	if !ok {
		return nil, 0, ErrNotStored
	}
	from := min(max(offset, 0), len(data))
	to := from + min(max(n, 0), len(data)-from)
	return append([]byte{}, data[from:to]...), len(data), nil
}

// DirSpill is a [Spill] in a directory: one file for each output, named by the
// SHA-256 of its content. Several programs may share it. Nothing is ever removed.
//
// The directory may have come with another person's transcript, or be changed by
// anybody: a file that does not have the content that its name says is an error,
// and is not given to a model.
type DirSpill struct {
	// Dir is made when the first output is stored, for its owner alone.
	Dir string
}

// Put implements [Spill]. The file appears whole or not at all, also when the
// machine stops. One of this name that has another content is replaced.
func (d *DirSpill) Put(ctx context.Context, data []byte) (string, error) {
	id := idOf(data)
	if _, _, err := d.Get(ctx, id, 0, 0); err == nil {
		return id, nil
	}
	return d.PutFrom(ctx, bytes.NewReader(data))
}

// PutFrom implements [StreamSpill].
func (d *DirSpill) PutFrom(_ context.Context, r io.Reader) (string, error) {
	id, err := d.write(r)
	if err != nil {
		return "", fmt.Errorf("storing an output: %w", err)
	}
	return id, nil
}

// write makes the file beside its place and moves it there.
func (d *DirSpill) write(r io.Reader) (id string, err error) {
	if err := os.MkdirAll(d.Dir, 0o700); err != nil {
		return "", err
	}
	root, err := os.OpenRoot(d.Dir)
	if err != nil {
		return "", err
	}
	defer root.Close()
	name := ".new-" + rand.Text()
	f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return "", err
	}
	h := sha256.New()
	_, err = io.Copy(io.MultiWriter(f, h), r)
	if err == nil {
		err = f.Sync()
	}
	if closed := f.Close(); err == nil {
		err = closed
	}
	id = hex.EncodeToString(h.Sum(nil))
	if err == nil {
		err = root.Rename(name, id)
	}
	if err != nil {
		_ = root.Remove(name) // what failed is told already
		return "", err
	}
	return id, syncDir(root)
}

// syncDir makes the new name last, where the system can say so.
func syncDir(root *os.Root) error {
	dir, err := root.Open(".")
	if err != nil {
		return err
	}
	defer dir.Close()
	if err := dir.Sync(); err != nil && !errors.Is(err, fs.ErrInvalid) && !errors.Is(err, errors.ErrUnsupported) && !errors.Is(err, fs.ErrPermission) {
		return err
	}
	return nil
}

// Get implements [Spill]. It reads all of the file, in pieces, so that what it
// returns is what was verified, whoever writes to the file meanwhile.
func (d *DirSpill) Get(_ context.Context, id string, offset, n int) ([]byte, int, error) {
	if !isID(id) {
		return nil, 0, ErrNotStored
	}
	data, size, err := d.read(id, offset, n)
	if err != nil && err != ErrNotStored {
		err = fmt.Errorf("reading the stored output %s: %w", id, err)
	}
	return data, size, err
}

func (d *DirSpill) read(id string, offset, n int) ([]byte, int, error) {
	root, err := os.OpenRoot(d.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, 0, ErrNotStored
	}
	if err != nil {
		return nil, 0, err
	}
	defer root.Close()
	info, err := root.Stat(id)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !info.Mode().IsRegular() {
		return nil, 0, ErrNotStored
	}
	if err != nil {
		return nil, 0, err
	}
	f, err := root.Open(id)
	if err != nil {
		return nil, 0, err
	}
	defer f.Close()
	size := int(info.Size())
	from := min(max(offset, 0), size)
	wanted := make([]byte, min(max(n, 0), size-from))
	h := sha256.New()
	_, err = io.CopyN(h, f, int64(from))
	if err == nil {
		_, err = io.ReadFull(io.TeeReader(f, h), wanted)
	}
	if err == nil {
		_, err = io.CopyN(h, f, int64(size-from-len(wanted)))
	}
	if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
		return nil, 0, err
	}
	if err != nil || !strings.HasPrefix(hex.EncodeToString(h.Sum(nil)), id) {
		return nil, 0, errors.New("it was changed or damaged after it was stored, so it is not given")
	}
	return wanted, size, nil
}
