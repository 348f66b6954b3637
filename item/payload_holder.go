// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package item

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"hash"
	"io"
	"slices"
	"sync"

	"github.com/antiphon-go/antiphon/internal/jsonx"
)

// Source provides the payloads that items hold, such as the blobs of a store. Its
// methods are called by several goroutines at once.
type Source interface {
	// OpenPayload returns the bytes with this SHA-256. The caller checks the hash
	// the first time it reads them.
	OpenPayload(hash [32]byte) (io.ReadCloser, error)
}

// PayloadStore makes items whose payloads stay in a [Source] until the item is sent,
// written or requested with [Item.Whole]. In the text of such an item, as returned
// by [Item.JSON], a reference replaces the base64 of each payload. The reference is
// valid only in this process, until the PayloadStore is closed. Everything made from
// the item contains it too, and everything that encodes items for others puts the
// base64 back: [List.MarshalJSON], api.Request.Body and so on. A program that writes
// [Item.JSON] or the fields of a decoded item elsewhere must call [Item.Whole]
// first.
//
// A PayloadStore is safe for concurrent use.
type PayloadStore struct {
	id  uint32
	src Source

	mu   sync.Mutex
	seen map[[32]byte]bool // payloads whose hash has been checked
}

// holders maps the ids of open stores to the stores.
var holders struct {
	sync.RWMutex
	last uint32
	open map[uint32]*PayloadStore
}

// NewHolder returns a PayloadStore for the payloads in src.
func NewHolder(src Source) *PayloadStore {
	drawHead()
	holders.Lock()
	defer holders.Unlock()
	if holders.open == nil {
		holders.open = map[uint32]*PayloadStore{}
	}
	holders.last++
	h := &PayloadStore{id: holders.last, src: src, seen: map[[32]byte]bool{}}
	holders.open[h.id] = h
	return h
}

// Close releases the PayloadStore. Items that refer to it cannot be sent or written
// any more. It does not close the source.
func (h *PayloadStore) Close() {
	if h == nil {
		return
	}
	holders.Lock()
	defer holders.Unlock()
	delete(holders.open, h.id)
}

// Join returns the item that [Item.Split] split, without reading the payloads. The
// error is an error of [ParseString], or says which payload is wrong.
func (h *PayloadStore) Join(rest string, payloads []Payload) (Item, error) {
	if len(payloads) == 0 {
		return ParseString(rest)
	}
	b := make([]byte, 0, len(rest)+len(payloads)*tokenLen)
	last := 0
	for i, p := range payloads {
		if p.At < last || p.At > len(rest) || p.Size < 1 || p.Size > maxHeld {
			return Item{}, fmt.Errorf("payload %d: %d bytes at byte %d of %d: %w", i, p.Size, p.At, len(rest), errPlace)
		}
		b = append(b, rest[last:p.At]...)
		b = token{holder: h.id, hash: p.Hash, size: p.Size}.append(b)
		last = p.At
	}
	return ParseString(jsonx.String(append(b, rest[last:]...)))
}

var errPlace = errors.New("not a place that a payload was taken out of")

// A HeldError reports a payload that is not available when it is needed. The text
// that should have contained it was not written.
type HeldError struct {
	// Hash is the SHA-256 of the payload and Size its length in bytes. Both are zero
	// if the reference to it was cut.
	Hash [32]byte
	Size int64
	// Err is the reason.
	Err error
}

func (e *HeldError) Error() string {
	if e.Size == 0 {
		return fmt.Sprint(cmp.Or(e.Err, errors.New("a payload is not available")))
	}
	return fmt.Sprintf("payload sha256:%x of %d bytes: %v", e.Hash, e.Size, e.Err)
}

// Unwrap returns e.Err.
func (e *HeldError) Unwrap() error { return e.Err }

var (
	errClosed = errors.New("the store that keeps it was closed")
	errBroken = errors.New("the reference to a payload was split: shorten only what is whole")
	errShort  = errors.New("the store has fewer bytes")
	errLong   = errors.New("the store has more bytes")
	errOther  = errors.New("the store has other bytes under this hash")
)

// fail returns err as the reason why the payload is not available.
func (t token) fail(err error) error { return &HeldError{Hash: t.hash, Size: t.size, Err: err} }

// find returns the store that the token refers to.
func (t token) find() (*PayloadStore, error) {
	holders.RLock()
	defer holders.RUnlock()
	if h := holders.open[t.holder]; h != nil {
		return h, nil
	}
	return nil, t.fail(errClosed)
}

// open opens the payload.
func (t token) open() (*payload, error) {
	h, err := t.find()
	if err != nil {
		return nil, err
	}
	r, err := h.src.OpenPayload(t.hash)
	if err != nil {
		return nil, t.fail(err)
	}
	p := &payload{token: t, from: h, r: r, left: t.size}
	// Hash a payload only the first time. Each turn sends all images of its history
	// again.
	if !h.knows(t.hash) {
		p.sum = sha256.New()
	}
	return p, nil
}

// load reads the payload into memory.
func (t token) load() ([]byte, error) {
	p, err := t.open()
	if err != nil {
		return nil, err
	}
	defer p.close()
	var b bytes.Buffer // grows as data arrives, because the size may be wrong
	room := rooms.Get().(*room)
	defer rooms.Put(room)
	for {
		n, err := p.fill(room.plain[:])
		b.Write(room.plain[:n])
		if err == io.EOF {
			return b.Bytes(), nil
		}
		if err != nil {
			return nil, err
		}
	}
}

// knows reports whether a payload with this hash has been checked.
func (h *PayloadStore) knows(hash [32]byte) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.seen[hash]
}

// remember records that a payload with this hash has been checked.
func (h *PayloadStore) remember(hash [32]byte) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.seen[hash] = true
}

// payload is a payload that is being read.
type payload struct {
	token
	from *PayloadStore
	r    io.ReadCloser
	left int64
	sum  hash.Hash // nil if the hash was checked before
}

func (p *payload) close() { _ = p.r.Close() } // an error does not matter after reading

// fill reads as many bytes as fit into b, and fewer only at the end. It returns
// io.EOF together with the last bytes, if size and hash are right.
func (p *payload) fill(b []byte) (int, error) {
	want := int(min(int64(len(b)), p.left))
	n, err := io.ReadFull(p.r, b[:want])
	if err != nil {
		if err == io.EOF || err == io.ErrUnexpectedEOF {
			err = errShort
		}
		return n, p.fail(err)
	}
	if p.sum != nil {
		p.sum.Write(b[:n])
	}
	if p.left -= int64(n); p.left > 0 {
		return n, nil
	}
	return n, p.end()
}

// end checks that the source has no more bytes and that the hash is right.
func (p *payload) end() error {
	var more [1]byte
	n, err := io.ReadFull(p.r, more[:])
	switch {
	case n > 0:
		return p.fail(errLong)
	case err != io.EOF:
		return p.fail(err)
	case p.sum == nil:
		return io.EOF
	case [32]byte(p.sum.Sum(nil)) != p.hash:
		return p.fail(errOther)
	}
	p.from.remember(p.hash)
	return io.EOF
}

// room is a pair of buffers for encoding payloads. encoded has exactly the size that
// plain needs when it is encoded.
type room struct {
	plain   [24 << 10]byte
	encoded [32 << 10]byte
}

var rooms = sync.Pool{New: func() any { return new(room) }}

// appendWhole appends a text with the base64 of payloads in place of their tokens.
// On error it returns dst unchanged.
func appendWhole(dst []byte, s string) ([]byte, error) {
	out := dst
	last := 0
	for i := nextToken(s, 0); i >= 0; i = nextToken(s, last) {
		t, ok := readToken(s, i)
		if !ok {
			return dst, &HeldError{Err: errBroken}
		}
		out = append(out, s[last:i]...)
		last = i + tokenLen
		var err error
		if out, err = t.appendBase64(out); err != nil {
			return dst, err
		}
	}
	return append(out, s[last:]...), nil
}

// appendBase64 appends the payload as base64.
func (t token) appendBase64(dst []byte) ([]byte, error) {
	p, err := t.open()
	if err != nil {
		return dst, err
	}
	defer p.close()
	room := rooms.Get().(*room)
	defer rooms.Put(room)
	for {
		n, err := p.fill(room.plain[:])
		if err != nil && err != io.EOF {
			return dst, err
		}
		k := base64.StdEncoding.EncodedLen(n)
		dst = slices.Grow(dst, k)[:len(dst)+k]
		encodeBase64(dst[len(dst)-k:], room.plain[:n])
		if err == io.EOF {
			return dst, nil
		}
	}
}

// wholeFrom replaces the tokens in the text that was appended to dst by the base64
// of their payloads. On error it returns dst unchanged.
func wholeFrom(dst, out []byte, err error) ([]byte, error) {
	if err != nil || nextToken(jsonx.String(out), len(dst)) < 0 {
		return out, err
	}
	return appendWhole(dst, string(out[len(dst):]))
}
