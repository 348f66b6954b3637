// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"bytes"
	"context"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"database/sql"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"

	"golang.org/x/crypto/chacha20poly1305"

	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/session/store"
)

// How a store is encrypted:
//
//   - Each entry and each chunk of a blob is sealed by itself, by
//     XChaCha20-Poly1305 with a random nonce of 24 bytes in front of it. What it
//     is and where it belongs is authenticated with it: of an entry the session
//     and the number, of a chunk the blob, the number and the blob's size. So
//     nobody without the key can change one, or put it where another was.
//   - A sealed entry is written in base64, so that it is a line like any other:
//     the checksums are those of what is stored, and can be verified without the
//     key.
//   - The title that a session's first message gives it is sealed, too.
//   - Blobs are found by an HMAC of their hash. The hash itself would tell
//     whoever has a file that the file is in the store.
//   - The keys for both are derived (HKDF-SHA-256) from the owner's key and the
//     salt in table antiphon_seal, so those of two stores differ. proof is a
//     sealed text by which a wrong key is noticed before anything is written.
//
// Not hidden are ids, names, paths, times, numbers and sizes. Who can write to
// the file can delete what is in it, or put an older copy in its place.

// ErrKey is [store.ErrKey]: the key of a store is missing, wrong or of no use.
var ErrKey = store.ErrKey

// NewSecret returns a new random key for [Options.Key], as text.
func NewSecret() string {
	var secret [chacha20poly1305.KeySize]byte
	_, _ = rand.Read(secret[:]) // it never fails
	return hex.EncodeToString(secret[:])
}

// CheckSecret reports a text that is not a key as [NewSecret] makes it: 32 bytes
// in hexadecimal digits, or in base64.
func CheckSecret(secret endpoint.Key) error {
	_, err := secretOf(secret)
	return err
}

func secretOf(key endpoint.Key) ([]byte, error) {
	text := key.Reveal()
	for _, decode := range []func(string) ([]byte, error){hex.DecodeString, base64.StdEncoding.DecodeString} {
		if secret, err := decode(text); err == nil && len(secret) == chacha20poly1305.KeySize {
			return secret, nil
		}
	}
	return nil, fmt.Errorf("%w cannot be used: it must be 32 random bytes, written as 64 hexadecimal digits or in base64", ErrKey)
}

// seal encrypts what a store holds. That of a store that is not encrypted is nil,
// and changes nothing. Without keys it is that of a store that was opened without
// the key, and its methods return [ErrKey].
type seal struct {
	box   cipher.AEAD
	names []byte // the key for the names of blobs
	place string // of the store, for errors
}

// newSeal derives the keys.
func newSeal(key endpoint.Key, salt []byte) (*seal, error) {
	secret, err := secretOf(key)
	if err != nil {
		return nil, err
	}
	inner, err := hkdf.Key(sha256.New, secret, salt, "antiphon store: entries and blobs", chacha20poly1305.KeySize)
	if err != nil {
		return nil, err
	}
	names, err := hkdf.Key(sha256.New, secret, salt, "antiphon store: names of blobs", sha256.Size)
	if err != nil {
		return nil, err
	}
	box, err := chacha20poly1305.NewX(inner)
	return &seal{box: box, names: names}, err
}

// overhead is how many bytes longer a sealed text is.
const overhead = chacha20poly1305.NonceSizeX + chacha20poly1305.Overhead

const (
	noKey   = "the store is encrypted, and no key was given"
	keyHint = "give the key that the store was made with: --store-key, or $ANTIPHON_STORE_KEY"
)

// usable reports a seal without keys.
func (s *seal) usable() error {
	if s != nil && s.box == nil {
		return &Error{Store: s.place, Op: "opening", Problem: noKey, Hint: keyHint, Err: ErrKey}
	}
	return nil
}

// closed reports that what is sealed cannot be looked into.
func (s *seal) closed() bool { return s != nil && s.box == nil }

// put appends a random nonce and the sealed text.
func (s *seal) put(dst, text, place []byte) []byte {
	var nonce [chacha20poly1305.NonceSizeX]byte
	_, _ = rand.Read(nonce[:]) // it never fails
	return s.box.Seal(append(dst, nonce[:]...), nonce[:], text, place)
}

// get opens what put made, in its own memory.
func (s *seal) get(sealed, place []byte) ([]byte, error) {
	const n = chacha20poly1305.NonceSizeX
	if len(sealed) < overhead {
		return nil, errForeign
	}
	text, err := s.box.Open(sealed[n:n], sealed[:n], sealed[n:], place)
	if err != nil {
		return nil, errForeign
	}
	return text, nil
}

// errForeign: what is stored was not sealed with the store's key for this place.
var errForeign = errors.New("it was not encrypted with the store's key for this place: it was changed, or is from elsewhere")

// entryPlace says where an entry belongs.
func entryPlace(id string, seq int64) []byte { return fmt.Appendf(nil, "entry %d of %q", seq, id) }

// line appends an entry's line as it is stored.
func (s *seal) line(dst []byte, id string, seq int64, line []byte) []byte {
	if s == nil {
		return append(dst, line...)
	}
	return base64.RawStdEncoding.AppendEncode(dst, s.put(nil, line, entryPlace(id, seq)))
}

// openLine returns an entry's line from what is stored.
func (s *seal) openLine(id string, seq int64, stored []byte) ([]byte, error) {
	if s == nil {
		return stored, nil
	}
	if err := s.usable(); err != nil {
		return nil, err
	}
	sealed, err := base64.RawStdEncoding.AppendDecode(make([]byte, 0, len(stored)), stored)
	if err != nil {
		return nil, errForeign
	}
	return s.get(sealed, entryPlace(id, seq))
}

// title returns a session's title as it is stored.
func (s *seal) title(id, text string) string {
	if s == nil || text == "" {
		return text
	}
	if s.box == nil {
		return ""
	}
	return base64.RawStdEncoding.EncodeToString(s.put(nil, []byte(text), titlePlace(id)))
}

func titlePlace(id string) []byte { return fmt.Appendf(nil, "title of %q", id) }

// openTitle returns a title from what is stored, "" where that cannot be read:
// there are titles for lists only.
func (s *seal) openTitle(id, stored string) string {
	if s == nil {
		return stored
	}
	if s.box == nil {
		return ""
	}
	sealed, err := base64.RawStdEncoding.DecodeString(stored)
	if err != nil {
		return ""
	}
	text, _ := s.get(sealed, titlePlace(id))
	return string(text)
}

// info is what others are told of a session's row.
func (s *seal) info(r *stored) session.Info {
	i := r.Info
	i.Title = s.openTitle(i.ID, i.Title)
	return i
}

// name is what a blob is found by.
func (s *seal) name(hash session.Hash) session.Hash {
	if s == nil {
		return hash
	}
	mac := hmac.New(sha256.New, s.names)
	_, _ = mac.Write(hash[:]) // a hash never fails
	return session.Hash(mac.Sum(nil))
}

func chunkPlace(name session.Hash, n, size int64) []byte {
	return fmt.Appendf(nil, "part %d of blob %x of %d bytes", n, name, size)
}

// chunk returns a part of a blob as it is stored.
func (s *seal) chunk(name session.Hash, n, size int64, data []byte) []byte {
	if s == nil {
		return data
	}
	return s.put(make([]byte, 0, len(data)+overhead), data, chunkPlace(name, n, size))
}

// stored is how long a part of n bytes is where it is stored.
func (s *seal) stored(n int64) int64 {
	if s == nil {
		return n
	}
	return n + overhead
}

// openChunk returns a part of a blob, in the memory of what is stored.
func (s *seal) openChunk(name session.Hash, n, size int64, stored []byte) ([]byte, error) {
	if s == nil {
		return stored, nil
	}
	if err := s.usable(); err != nil {
		return nil, err
	}
	data, err := s.get(stored, chunkPlace(name, n, size))
	return stored[:copy(stored, data)], err
}

const proofText = "antiphon store"

// beginSeal makes a new database an encrypted one.
func (s *Store) beginSeal(ctx context.Context, t *tx) error {
	key, err := s.askKey(ctx)
	if err != nil {
		return err
	}
	salt := make([]byte, 32)
	_, _ = rand.Read(salt) // it never fails
	made, err := newSeal(key, salt)
	if err != nil {
		return err
	}
	proof := made.put(nil, []byte(proofText), []byte("proof"))
	if _, err := t.exec(ctx, `UPDATE antiphon_state SET value = 0 WHERE name = 'search'`); err != nil { // it would hold words
		return err
	}
	_, err = t.exec(ctx, `INSERT INTO antiphon_seal (salt, proof, sum) VALUES (?, ?, ?)`, salt, proof, sealSum(salt, proof))
	return err
}

// sealSum covers what is stored of a seal.
func sealSum(salt, proof []byte) []byte {
	sum := sha256.Sum256(bytes.Join([][]byte{salt, proof}, []byte{0}))
	return sum[:len(session.Sum{})]
}

// openSeal takes the store's key, if the database is encrypted.
func (s *Store) openSeal(ctx context.Context, t *tx) error {
	var salt, proof, sum []byte
	err := t.row(ctx, `SELECT salt, proof, sum FROM antiphon_seal`).Scan(&salt, &proof, &sum)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return s.openPlain(ctx, t)
	case err != nil:
		return err
	case !bytes.Equal(sum, sealSum(salt, proof)):
		return &session.Damage{Place: "table antiphon_seal", Problem: "its bytes do not have the checksum that was written with it"}
	case s.key == nil && s.keyless:
		s.seal = &seal{place: s.place}
		return nil
	case s.key == nil:
		return s.refuse(noKey, keyHint)
	}
	key, err := s.askKey(ctx)
	if err != nil {
		return err
	}
	opened, err := newSeal(key, salt)
	if err != nil {
		return err
	}
	if text, err := opened.get(proof, []byte("proof")); err != nil || string(text) != proofText {
		return s.refuse("the key is not the one that the store was made with", keyHint)
	}
	s.seal = opened
	return nil
}

// openPlain opens a database that has no row in antiphon_seal. If it has entries
// that are encrypted all the same, the row was lost: without it they cannot be
// opened, and what were written now could be read.
func (s *Store) openPlain(ctx context.Context, t *tx) error {
	var begins []byte // of an entry, where there is no index of words: an encrypted store has none
	err := t.row(ctx, `SELECT substr(data, 1, 8) FROM antiphon_entries WHERE (SELECT max(value) FROM antiphon_state WHERE name = 'search') = 0 LIMIT 1`).Scan(&begins)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return err
	}
	if _, err := base64.RawStdEncoding.DecodeString(string(begins)); err == nil && len(begins) > 0 {
		return &Error{Store: s.place, Op: "opening", Problem: "the store is encrypted, and the row of table antiphon_seal is missing, without which no key opens it",
			Hint: "restore a backup", Err: &session.Damage{Place: "table antiphon_seal", Problem: "its row is missing"}}
	}
	if s.key != nil {
		return s.refuse("the store is not encrypted, and a key was given: it was made without one",
			"to read it, leave the key out; to encrypt it, export its sessions, and import them into a new store with the key")
	}
	return nil
}

// Encrypted reports whether the store is encrypted.
func (s *Store) Encrypted() bool { return s.seal != nil }

// askKey gets the key from whoever keeps it.
func (s *Store) askKey(ctx context.Context) (endpoint.Key, error) {
	key, err := s.key(ctx)
	if err != nil {
		err = &Error{Store: s.place, Op: "opening", Problem: err.Error(), Err: errors.Join(ErrKey, err)}
	}
	return key, err
}

func (s *Store) refuse(problem, hint string) error {
	return &Error{Store: s.place, Op: "opening", Problem: problem, Hint: hint, Err: ErrKey}
}

// originOf returns the session that a log was made for, with whose id its entries
// are sealed.
func (t *tx) originOf(ctx context.Context, log int64) (id string, err error) {
	err = t.row(ctx, `SELECT origin FROM antiphon_logs WHERE log = ?`, log).Scan(&id)
	return id, err
}

// origin is [tx.originOf] for a store that is encrypted, and "" for others. The
// log of a session is its own.
func (s *Store) origin(ctx context.Context, of *stored, log int64) (string, error) {
	if s.seal == nil || s.seal.closed() {
		return "", nil
	}
	id, err := s.reads.originOf(ctx, log)
	if errors.Is(err, sql.ErrNoRows) {
		return "", &session.Damage{Session: of.ID, Place: fmt.Sprintf("table antiphon_logs, log %d", log), Problem: "the row is missing"}
	}
	if err == nil && log == of.log && id != of.ID {
		err = &session.Damage{Session: of.ID, Place: fmt.Sprintf("table antiphon_logs, log %d", log), Problem: fmt.Sprintf("the log is that of session %q", id)}
	}
	return id, err
}
