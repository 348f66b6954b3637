// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package output

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
	"unicode/utf8"

	"github.com/antiphon-go/antiphon/internal/nils"
)

// Store keeps outputs that are too long to be sent whole, so that the model can read
// the rest with the tool [ReadToolName]. It must be safe for concurrent use.
//
// The id is derived from the data, never chosen by a model: equal data has the same
// id and is kept once. An id is 1 to 64 letters, digits, underscores and hyphens,
// and cannot be guessed. The stores of this module use the SHA-256 of the data, so
// that data can move from one Store to another under the same id.
type Store interface {
	// Put stores a copy of data and returns its id. The data can be read as soon as
	// Put returns.
	Put(ctx context.Context, data []byte) (id string, err error)
	// Get returns up to n bytes from offset, fewer only at the end, and the total
	// size. At or beyond the end it returns no data and no error. For an unknown id
	// it returns an error that wraps [ErrNotStored].
	Get(ctx context.Context, id string, offset, n int) (data []byte, size int, err error)
}

// ErrNotStored is the error of [Store.Get] for an unknown id.
var ErrNotStored = errors.New("no output is stored under this id")

// StreamStore is a [Store] that can store an output without holding it in memory.
// With any other Store, even a very long output is loaded and passed to Put.
type StreamStore interface {
	Store
	// PutFrom is like Put for the data that r returns up to [io.EOF].
	PutFrom(ctx context.Context, r io.Reader) (id string, err error)
}

// idOf returns the id of data: its SHA-256.
func idOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// isID reports whether s is an id, or an id of an older version: the first half.
func isID(s string) bool {
	b, err := hex.DecodeString(s)
	return err == nil && (len(b) == sha256.Size || len(b) == sha256.Size/2) && hex.EncodeToString(b) == s
}

// MemoryStore is a [Store] in memory. It never removes anything. The zero value is
// an empty store.
type MemoryStore struct {
	mu  sync.RWMutex
	all map[string][]byte
}

// Put implements [Store].
func (m *MemoryStore) Put(_ context.Context, data []byte) (string, error) {
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

// Get implements [Store].
func (m *MemoryStore) Get(_ context.Context, id string, offset, n int) ([]byte, int, error) {
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

// DirStore is a [Store] in a directory, with one file per output, named by the
// SHA-256 of its content. Several programs may share a directory. Nothing is ever
// removed.
//
// The directory may come with another person's transcript, and anybody may change
// it. A file whose content does not match its name is an error, and no model gets
// it.
type DirStore struct {
	// Dir is created when the first output is stored, with access for its owner
	// only.
	Dir string
}

// Put implements [Store]. The file appears whole or not at all, even if the machine
// crashes. A file of the same name with other content is replaced.
func (d *DirStore) Put(ctx context.Context, data []byte) (string, error) {
	id := idOf(data)
	if _, _, err := d.Get(ctx, id, 0, 0); err == nil {
		return id, nil
	}
	return d.PutFrom(ctx, bytes.NewReader(data))
}

// PutFrom implements [StreamStore].
func (d *DirStore) PutFrom(_ context.Context, r io.Reader) (string, error) {
	if r == nil {
		return "", errors.New("storing an output: the reader is nil")
	}
	id, err := d.write(r)
	if err != nil {
		return "", fmt.Errorf("storing an output: %w", err)
	}
	return id, nil
}

// write writes a temporary file and renames it.
func (d *DirStore) write(r io.Reader) (id string, err error) {
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
		_ = root.Remove(name) // the first error is already reported
		return "", err
	}
	return id, syncDir(root)
}

// syncDir makes the new name durable, if the system supports it.
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

// Get implements [Store]. It reads and verifies the whole file in pieces, so that
// the returned data is verified even if another program writes to the file at the
// same time.
func (d *DirStore) Get(_ context.Context, id string, offset, n int) ([]byte, int, error) {
	if !isID(id) {
		return nil, 0, ErrNotStored
	}
	data, size, err := d.read(id, offset, n)
	if err != nil && !errors.Is(err, ErrNotStored) {
		err = fmt.Errorf("reading the stored output %s: %w", id, err)
	}
	return data, size, err
}

func (d *DirStore) read(id string, offset, n int) ([]byte, int, error) {
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

// The text before the id of stored data.
const (
	storedWhole    = ReadToolName + " with id "
	storedOriginal = "kept with the id "
)

// StoredIDs returns the ids of stored data that an output's text mentions in the
// wording of this package: whole texts that were shortened, and originals that were
// refused or replaced. A text that merely imitates the wording yields ids under
// which nothing is stored. The text may be the JSON of the output item.
func StoredIDs(text string) (ids []string) {
	for {
		at, length := strings.Index(text, storedWhole), len(storedWhole)
		if i := strings.Index(text, storedOriginal); i >= 0 && (at < 0 || i < at) {
			at, length = i, len(storedOriginal)
		}
		if at < 0 {
			return ids
		}
		text = text[at+length:]
		id := text[:len(text)-len(strings.TrimLeft(text, nameLetters))]
		if checkStoredID(id, nil) == nil {
			ids = append(ids, id)
		}
	}
}

const nameLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-"

// errNoStore reports a store that is nil, or a nil pointer.
var errNoStore = errors.New("the store of outputs is nil: make one, such as a *MemoryStore")

// putChecked stores data, even if the call is cancelled, and checks the id.
func putChecked(ctx context.Context, s Store, data []byte) (id string, err error) {
	if nils.Is(s) {
		return "", errNoStore
	}
	id, err = s.Put(context.WithoutCancel(ctx), data)
	return id, checkStoredID(id, err)
}

// checkStoredID returns an error for an id that a mark cannot contain.
func checkStoredID(id string, err error) error {
	if err == nil && (id == "" || len(id) > maxID || strings.Trim(id, nameLetters) != "") {
		return fmt.Errorf("the id %q of a stored output is not 1 to %d letters, digits, '_' and '-'", id, maxID)
	}
	return err
}

// Page is a part of a stored output.
type Page struct {
	id           string
	offset, size int // where the page begins; the size of the whole
}

// Read returns a page of a stored output, which begins at offset and has about limit
// bytes. It ends at a line boundary if possible, and never splits characters. Its
// errors are written for the model. The mark about the rest of the output is added
// by [Policy.Write].
func Read(ctx context.Context, s Store, id string, offset, limit int) (Result, error) {
	// A few more bytes on both sides show where characters begin and end.
	const around = utf8.UTFMax
	if nils.Is(s) {
		return Result{}, errNoStore
	}
	from := max(offset-around, 0)
	data, size, err := s.Get(ctx, id, from, limit+3*around)
	switch {
	case errors.Is(err, ErrNotStored):
		return Result{}, fmt.Errorf("there is no stored output with the id %s; the id is in the mark of a shortened output", PlainName(id))
	case err != nil:
		return Result{}, err
	case offset >= size:
		return Result{}, fmt.Errorf("offset %d is beyond the end: the output has %d bytes", offset, size)
	}
	text := string(data)
	start := offset - from
	for start > 0 && !utf8.RuneStart(text[start]) {
		start--
	}
	text = text[start:]
	if !isStoredText(text) {
		return Result{}, fmt.Errorf("what is kept with the id %s is not text but an image or a file of %d bytes: it cannot be read here, and the session keeps it", id, size)
	}
	p := piece{text: stringBody(text)}
	end := p.lineEnd(0, min(len(text), max(limit, around)))
	return Result{Text: text[:end], Page: &Page{id: id, offset: from + start, size: size}}, nil
}

// Behind returns a copy of r with text before its own text. The mark of a page still
// gives the right offset.
func (r Result) Behind(text string) Result {
	if r.Page != nil {
		r.Page = &Page{id: r.Page.id, offset: r.Page.offset - len(text), size: r.Page.size}
	}
	r.Text = text + r.Text
	return r
}

// isStoredText reports whether a part of stored data is text, that is, valid UTF-8
// without NUL, and not an image or a file. Its last character may be incomplete.
func isStoredText(part string) bool {
	for range utf8.UTFMax - 1 {
		if r, n := utf8.DecodeLastRuneInString(part); r != utf8.RuneError || n != 1 {
			break
		}
		part = part[:len(part)-1]
	}
	return IsText([]byte(part))
}
