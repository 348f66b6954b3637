// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package item

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/antiphon-go/antiphon/internal/jsonx"
)

// Payload describes a payload that [Item.Split] took out of an item's text: the
// base64 of an image or a file.
type Payload struct {
	// At is the byte offset in the remaining text at which the base64 belongs.
	At int
	// Size is the number of bytes after decoding the base64.
	Size int64
	// Hash is the SHA-256 of the decoded bytes.
	Hash [32]byte
}

// LeastPayload is the smallest size in bytes of a payload that [Item.Split] takes
// out. A Payload would be larger than a smaller one.
const LeastPayload = 128

// Split splits an item for a store that keeps large payloads separately, each once.
// It returns the item's text without the payloads, a description of each payload,
// and a function that reads them. [PayloadStore.Join] reverses Split byte for byte.
//
// A payload is a string in the item that is base64, entirely or after the head of a
// data URI, and has at least least bytes. It is taken out only if encoding it again
// gives the same text: standard alphabet, padded, no line breaks and no escapes.
// Names, ids, text in words and encrypted_content are never taken out, whatever they
// look like.
//
// A payload that the item already holds elsewhere is described without being read.
// read returns the bytes of payload i, and loads it if necessary.
func (it Item) Split(least int) (rest string, payloads []Payload, read func(i int) ([]byte, error)) {
	c := splitter{s: it.raw}
	eachToken(it.raw, func(at int, t token, ok bool) {
		if ok {
			c.found = append(c.found, found{from: at, to: at + tokenLen, token: t, held: true})
		}
	})
	eachPayload(it.raw, max(least, LeastPayload), func(from, to int) {
		c.found = append(c.found, found{from: from, to: to})
	})
	if len(c.found) == 0 {
		return it.raw, nil, c.read
	}
	slices.SortFunc(c.found, func(a, b found) int { return a.from - b.from })
	rest, payloads = c.split()
	return rest, payloads, c.read
}

// splitter splits one text.
type splitter struct {
	s     string
	found []found
}

// found is a payload in the text: its base64, or the token of a held payload.
type found struct {
	from, to int
	held     bool
	token    token
}

// split returns the text without the payloads, and their descriptions.
func (c *splitter) split() (string, []Payload) {
	payloads := make([]Payload, len(c.found))
	rest := make([]byte, 0, len(c.s)-c.found[0].to+c.found[0].from)
	last := 0
	for i := range c.found {
		f := &c.found[i]
		rest = append(rest, c.s[last:f.from]...)
		last = f.to
		if f.held {
			payloads[i] = Payload{At: len(rest), Size: f.token.size, Hash: f.token.hash}
			continue
		}
		size, hash := sumBase64(c.s[f.from:f.to])
		payloads[i] = Payload{At: len(rest), Size: size, Hash: hash}
	}
	return jsonx.String(append(rest, c.s[last:]...)), payloads
}

// read returns the bytes of payload i.
func (c *splitter) read(i int) ([]byte, error) {
	if i < 0 || i >= len(c.found) {
		return nil, fmt.Errorf("there is no payload %d, but %d of them", i, len(c.found))
	}
	f := c.found[i]
	if f.held {
		return f.token.load()
	}
	return base64.StdEncoding.DecodeString(c.s[f.from:f.to])
}

// Externalized reports whether the item holds payloads that are kept elsewhere. Such
// an item comes from [PayloadStore.Join], or was made from one that does.
func (it Item) Externalized() bool { return HasHeld(it.raw) }

// Whole returns the item with all its payloads, byte for byte as it was before
// [Item.Split]. An item that holds no payloads is returned unchanged. The error is a
// [*HeldError].
func (it Item) Whole() (Item, error) {
	if !it.Externalized() {
		return it, nil
	}
	b, err := appendWhole(make([]byte, 0, it.Size()), it.raw)
	if err != nil {
		return Item{}, err
	}
	return Item{raw: jsonx.String(b), typ: it.typ}, nil
}

// Size returns the length in bytes of the whole item. It does not read the payloads
// that the item holds.
func (it Item) Size() int {
	n := len(it.raw)
	eachToken(it.raw, func(_ int, t token, ok bool) {
		if ok {
			n += t.encoded() - tokenLen
		}
	})
	return n
}

// HasHeld reports whether a text contains the beginning of a reference to a held
// payload. Text that leaves the process must not; tests use HasHeld to check this.
func HasHeld(s string) bool { return nextToken(s, 0) >= 0 }

// ShowHeld returns the text with a short description in place of each reference to a
// held payload. It is for people, as in a log.
func ShowHeld(s string) string {
	if !HasHeld(s) {
		return s
	}
	var out []byte
	last := 0
	eachToken(s, func(at int, t token, ok bool) {
		out = append(out, s[last:at]...)
		if last = at + len(*tokenHead.Load()); ok {
			last = at + tokenLen
			out = fmt.Appendf(out, "(%d bytes, sha256:%x)", t.size, t.hash[:8])
		}
	})
	return jsonx.String(append(out, s[last:]...))
}

// eachPayload visits the base64 in the strings of a validated text, if it decodes to
// at least least bytes. It looks at every byte at most twice.
func eachPayload(s string, least int, visit func(from, to int)) {
	shortest := base64.StdEncoding.EncodedLen(least)
	named := false // the previous string was the name of a member whose value is kept
	for i := 0; ; {
		n := strings.IndexByte(s[i:], '"')
		if n < 0 {
			return
		}
		start := i + n
		end := jsonx.SkipString(s, start)
		i = end
		if behind := jsonx.SkipSpace(s, end); behind < len(s) && s[behind] == ':' {
			named = keepsValue(s[start:end])
			i = behind + 1
			if i = jsonx.SkipSpace(s, i); i >= len(s) || s[i] != '"' {
				named = false // elements of a list have no name of their own
			}
			continue
		}
		if !named && end-start-2 >= shortest {
			body := s[start+1 : end-1]
			if from := payloadIn(body); len(body)-from >= shortest && decodedLen(body[from:]) >= least {
				visit(start+1+from, end-1)
			}
		}
		named = false
	}
}

// keepsValue reports whether the named member is read by people or programs, so that
// its value is never treated as a payload.
func keepsValue(literal string) bool {
	name := jsonx.Unquote(literal)
	switch name {
	case "type", "id", "role", "name", "status", "detail", "filename", "encrypted_content",
		"text", "content", "output", "input", "arguments", "refusal", "instructions", "code", "logs", "error":
		return true
	}
	return strings.HasSuffix(name, "_id")
}

// payloadIn returns the offset in a string literal's body at which its payload
// begins. A payload is canonical base64 up to the end, alone or after the head of a
// data URI. If there is none, it returns the length of body.
func payloadIn(body string) int {
	end := len(body)
	pad := 0
	for pad < 2 && pad < end && body[end-1-pad] == '=' {
		pad++
	}
	from := end - pad
	for from > 0 && sextet[body[from-1]] >= 0 {
		from--
	}
	if from == end-pad || !canonical(body[from:], pad) || from > 0 && !dataHead(body[:from]) {
		return end
	}
	return from
}

// canonical reports whether base64 with valid letters is what an encoder would
// write: padded, and with unused bits of the last letter zero.
func canonical(s string, pad int) bool {
	if len(s)%4 != 0 {
		return false
	}
	last := sextet[s[len(s)-1-pad]]
	return pad == 0 || last&(1<<(2*pad)-1) == 0
}

// maxDataHead is the maximum length in bytes of the head of a data URI.
const maxDataHead = 1024

// dataHead reports whether s is what precedes the payload of a data URI, in the
// sense of [CutDataURI]. The only escape allowed in it is that of a slash.
func dataHead(s string) bool {
	_, ok := cutScheme(s)
	return ok && len(s) <= maxDataHead && strings.HasSuffix(s, ";base64,") && strings.IndexByte(s, ',') == len(s)-1 &&
		strings.Count(s, `\`) == strings.Count(s, `\/`)
}

// sextet maps a letter of the standard alphabet to its value, and other bytes to -1.
var sextet = func() (t [256]int8) {
	for i := range t {
		t[i] = -1
	}
	for i, c := range []byte("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/") {
		t[c] = int8(i)
	}
	return t
}()

// decodedLen returns the number of bytes that canonical base64 decodes to.
func decodedLen(s string) int {
	return len(s)/4*3 - (len(s) - len(strings.TrimRight(s, "=")))
}

// sumBase64 returns the decoded size of canonical base64 and its hash, without
// holding all decoded bytes in memory.
func sumBase64(s string) (size int64, hash [32]byte) {
	h := sha256.New()
	room := rooms.Get().(*room)
	defer rooms.Put(room)
	for s != "" {
		n := min(len(s), len(room.encoded))
		k, _ := base64.StdEncoding.Decode(room.plain[:], jsonx.Bytes(s[:n])) // cannot fail: it is canonical
		h.Write(room.plain[:k])
		size += int64(k)
		s = s[n:]
	}
	h.Sum(hash[:0])
	return size, hash
}

// A token replaces, in an item's text, the base64 of a payload that is held
// elsewhere. Because it is text within a string, it survives whatever is done with
// the item: an edit, decoding, conversion to another form. Its format is
//
//	^ 26 letters drawn by the process, 8 digits the holder, 64 digits the hash, 12 digits the size
//
// Text from outside cannot contain a token by chance or by design, because the
// letters are secret: no token leaves the process. A token needs no escapes. Its
// first character does not occur in base64 and rarely in other text, so searching
// for it is fast.
type token struct {
	holder uint32
	hash   [32]byte
	size   int64
}

const (
	secretLen = 26 // letters of rand.Text: at least 128 bits
	headLen   = 1 + secretLen
	tokenLen  = headLen + 8 + 64 + 12
	maxHeld   = 1<<48 - 1 // maximum bytes of a payload
)

// tokenHead is the beginning of all tokens of this process. It is nil until the
// first [PayloadStore] is made, since there are no tokens before.
var tokenHead atomic.Pointer[string]

// drawHead draws the head of the tokens.
var drawHead = sync.OnceFunc(func() {
	head := "^" + rand.Text()[:secretLen]
	tokenHead.Store(&head)
})

// append appends the text of the token.
func (t token) append(dst []byte) []byte {
	dst = append(dst, *tokenHead.Load()...)
	dst = appendHex(dst, uint64(t.holder), 8)
	dst = hex.AppendEncode(dst, t.hash[:])
	return appendHex(dst, uint64(t.size), 12)
}

// appendHex appends v with the given number of hexadecimal digits.
func appendHex(dst []byte, v uint64, digits int) []byte {
	for shift := 4 * (digits - 1); shift >= 0; shift -= 4 {
		dst = append(dst, "0123456789abcdef"[v>>shift&15])
	}
	return dst
}

// encoded returns the length of the base64 that the token replaces.
func (t token) encoded() int { return base64.StdEncoding.EncodedLen(int(t.size)) }

// nextToken returns the index at or after i at which a token begins, or -1.
func nextToken(s string, i int) int {
	head := tokenHead.Load()
	if head == nil {
		return -1
	}
	n := strings.Index(s[i:], *head)
	if n < 0 {
		return -1
	}
	return i + n
}

// readToken reads the token that begins at i. ok is false if the token is
// incomplete, because the text was cut.
func readToken(s string, i int) (t token, ok bool) {
	if i+tokenLen > len(s) {
		return token{}, false
	}
	rest := s[i+headLen : i+tokenLen]
	holder, err1 := strconv.ParseUint(rest[:8], 16, 32)
	_, err2 := hex.Decode(t.hash[:], jsonx.Bytes(rest[8:72]))
	size, err3 := strconv.ParseUint(rest[72:], 16, 48)
	t.holder, t.size = uint32(holder), int64(size)
	return t, err1 == nil && err2 == nil && err3 == nil && size > 0
}

// eachToken visits the tokens in a text. ok is false for an incomplete token.
func eachToken(s string, visit func(at int, t token, ok bool)) {
	for i := nextToken(s, 0); i >= 0; {
		t, ok := readToken(s, i)
		visit(i, t, ok)
		// If the token is incomplete, skip only its head: another token may begin in
		// the text after it.
		next := i + headLen
		if ok {
			next = i + tokenLen
		}
		i = nextToken(s, next)
	}
}

// pairs maps twelve bits to their two letters, with the first letter in the lower
// byte. The table is built on first use, because most programs never send a held
// payload.
var pairs = sync.OnceValue(func() *[1 << 12]uint16 {
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
	t := new([1 << 12]uint16)
	for i := range t {
		t[i] = uint16(letters[i>>6]) | uint16(letters[i&63])<<8
	}
	return t
})

// encodeBase64 does the same as base64.StdEncoding.Encode in half the time. Speed
// matters because each turn encodes every image of its history again.
func encodeBase64(dst, src []byte) {
	t := pairs()
	for len(src) >= 8 && len(dst) >= 8 { // six bytes at a time
		w := binary.BigEndian.Uint64(src)
		binary.LittleEndian.PutUint64(dst, uint64(t[w>>52])|uint64(t[w>>40&0xfff])<<16|
			uint64(t[w>>28&0xfff])<<32|uint64(t[w>>16&0xfff])<<48)
		src, dst = src[6:], dst[8:]
	}
	base64.StdEncoding.Encode(dst, src)
}
