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

// A store is encrypted as follows:
//
//   - Each entry and each chunk of a blob is sealed separately with XChaCha20-Poly1305.
//     A random nonce of 24 bytes precedes the sealed bytes. The place of the data is
//     authenticated with it: the session and number of an entry; the blob, the number
//     and the blob's size of a chunk. Without the key, therefore, it is not possible to
//     change data or to move it to another place.
//   - A sealed entry is stored in base64, so that it is a line like any other. The
//     checksums cover the stored form and can be verified without the key.
//   - The title that a session takes from its first message is sealed, too.
//   - Blobs are found by an HMAC of their hash. With the hash itself, someone who has a
//     file could find out whether the store contains it.
//   - The keys for both are derived with HKDF-SHA-256 from the owner's key and the salt
//     in table antiphon_seal, so that they differ between stores. The column proof holds
//     a sealed text that detects a wrong key before anything is written.
//
// Ids, names, paths, times, numbers and sizes are not hidden. Someone who can write
// to the file can delete data, or replace it with an older copy.

// ErrKey is [store.ErrKey]: the key of a store is missing, wrong or malformed.
var ErrKey = store.ErrKey

// NewSecret returns a new random key for [Options.Key], in text form.
func NewSecret() string {
	var secret [chacha20poly1305.KeySize]byte
	_, _ = rand.Read(secret[:]) // it never fails
	return hex.EncodeToString(secret[:])
}

// CheckSecret returns an error if a text is not a valid key. A key is 32 bytes,
// written in hexadecimal digits, as [NewSecret] does, or in base64.
func CheckSecret(secret endpoint.Key) error {
	_, err := secretOf(secret)
	return err
}

// secretOf returns the bytes of a key.
func secretOf(key endpoint.Key) ([]byte, error) {
	text := key.Reveal()
	for _, decode := range []func(string) ([]byte, error){hex.DecodeString, base64.StdEncoding.DecodeString} {
		if secret, err := decode(text); err == nil && len(secret) == chacha20poly1305.KeySize {
			return secret, nil
		}
	}
	return nil, fmt.Errorf("%w cannot be used: it must be 32 random bytes, written as 64 hexadecimal digits or in base64", ErrKey)
}

// seal encrypts and decrypts the contents of a store. The seal of a store that is
// not encrypted is nil; its methods return their input unchanged. A seal without
// keys belongs to an encrypted store that was opened without its key; usable then
// returns an error that wraps [ErrKey].
type seal struct {
	box   cipher.AEAD
	names []byte // the key for the names of blobs
	place string // the store's place, for errors
}

// newSeal derives the keys of a seal from the owner's key and the store's salt.
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

// overhead is the number of bytes that sealing adds.
const overhead = chacha20poly1305.NonceSizeX + chacha20poly1305.Overhead

const (
	noKey   = "the store is encrypted, and no key was given"
	keyHint = "give the key that the store was made with: --store-key, or $ANTIPHON_STORE_KEY"
)

// usable returns an error if the store is encrypted and was opened without its key.
func (s *seal) usable() error {
	if s != nil && s.box == nil {
		return &Error{Store: s.place, Op: "opening", Problem: noKey, Hint: keyHint, Err: ErrKey}
	}
	return nil
}

// closed reports whether sealed data cannot be decrypted, because the key is
// missing.
func (s *seal) closed() bool { return s != nil && s.box == nil }

// put seals text for a place and appends a random nonce and the sealed bytes to dst.
func (s *seal) put(dst, text, place []byte) []byte {
	var nonce [chacha20poly1305.NonceSizeX]byte
	_, _ = rand.Read(nonce[:]) // it never fails
	return s.box.Seal(append(dst, nonce[:]...), nonce[:], text, place)
}

// get opens the result of put. The text overwrites the memory of sealed.
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

// errForeign reports that stored data was not sealed with the store's key for this
// place.
var errForeign = errors.New("it was not encrypted with the store's key for this place: it was changed, or is from elsewhere")

// entryPlace returns the authenticated place of an entry.
func entryPlace(id string, seq int64) []byte { return fmt.Appendf(nil, "entry %d of %q", seq, id) }

// line appends the stored form of an entry's line to dst.
func (s *seal) line(dst []byte, id string, seq int64, line []byte) []byte {
	if s == nil {
		return append(dst, line...)
	}
	return base64.RawStdEncoding.AppendEncode(dst, s.put(nil, line, entryPlace(id, seq)))
}

// openLine returns the line of an entry from its stored form.
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

// title returns the stored form of a session's title.
func (s *seal) title(id, text string) string {
	if s == nil || text == "" {
		return text
	}
	if s.box == nil {
		return ""
	}
	return base64.RawStdEncoding.EncodeToString(s.put(nil, []byte(text), titlePlace(id)))
}

// titlePlace returns the authenticated place of a title.
func titlePlace(id string) []byte { return fmt.Appendf(nil, "title of %q", id) }

// openTitle returns a title from its stored form, or "" if it cannot be read. It
// does not report an error because titles only serve lists.
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

// info returns the public information about a session, with its title decrypted.
func (s *seal) info(r *stored) session.Info {
	i := r.Info
	i.Title = s.openTitle(i.ID, i.Title)
	return i
}

// name returns the name under which a blob is stored: its hash, or an HMAC of the
// hash in an encrypted store.
func (s *seal) name(hash session.Hash) session.Hash {
	if s == nil {
		return hash
	}
	mac := hmac.New(sha256.New, s.names)
	_, _ = mac.Write(hash[:]) // a hash never fails
	return session.Hash(mac.Sum(nil))
}

// chunkPlace returns the authenticated place of a chunk. It includes the size of the
// blob, so that a shortened blob is noticed.
func chunkPlace(name session.Hash, n, size int64) []byte {
	return fmt.Appendf(nil, "part %d of blob %x of %d bytes", n, name, size)
}

// chunk returns the stored form of a chunk of a blob.
func (s *seal) chunk(name session.Hash, n, size int64, data []byte) []byte {
	if s == nil {
		return data
	}
	return s.put(make([]byte, 0, len(data)+overhead), data, chunkPlace(name, n, size))
}

// stored returns the stored size of a chunk of n bytes.
func (s *seal) stored(n int64) int64 {
	if s == nil {
		return n
	}
	return n + overhead
}

// openChunk returns a chunk of a blob from its stored form. It overwrites the memory
// of stored with the result.
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
	if _, err := t.exec(ctx, `UPDATE antiphon_state SET value = 0 WHERE name = 'search'`); err != nil { // an index would reveal words
		return err
	}
	_, err = t.exec(ctx, `INSERT INTO antiphon_seal (salt, proof, sum) VALUES (?, ?, ?)`, salt, proof, sealSum(salt, proof))
	return err
}

// sealSum returns the checksum of a row of antiphon_seal.
func sealSum(salt, proof []byte) []byte {
	sum := sha256.Sum256(bytes.Join([][]byte{salt, proof}, []byte{0}))
	return sum[:len(session.Sum{})]
}

// openSeal sets up the seal of the store, if the database is encrypted, and checks
// the key against the database's proof.
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

// openPlain opens a database that has no row in antiphon_seal. If its entries are
// encrypted all the same, the row was lost, and openPlain returns an error: the
// entries cannot be decrypted without it, and new ones would be written in plain
// text.
func (s *Store) openPlain(ctx context.Context, t *tx) error {
	var begins []byte // of an entry; an encrypted store has no index of words
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

// askKey calls the store's Key function.
func (s *Store) askKey(ctx context.Context) (endpoint.Key, error) {
	key, err := s.key(ctx)
	if err != nil {
		err = &Error{Store: s.place, Op: "opening", Problem: err.Error(), Err: errors.Join(ErrKey, err)}
	}
	return key, err
}

// refuse returns an error that wraps [ErrKey].
func (s *Store) refuse(problem, hint string) error {
	return &Error{Store: s.place, Op: "opening", Problem: problem, Hint: hint, Err: ErrKey}
}

// originOf returns the session for which a log was created. The log's entries are
// sealed with the id of that session.
func (t *tx) originOf(ctx context.Context, log int64) (id string, err error) {
	err = t.row(ctx, `SELECT origin FROM antiphon_logs WHERE log = ?`, log).Scan(&id)
	return id, err
}

// origin is like [tx.originOf] for an encrypted store whose key is known, and
// returns "" otherwise. It reports damage if a session's own log was created for
// another session.
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
