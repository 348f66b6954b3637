// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package item

import (
	"crypto/sha256"
	"encoding/base64"
	"strings"

	"github.com/antiphon-go/antiphon/internal/jsonx"
)

// eachPayload visits the base64 in the strings of a validated text that stands
// for at least least bytes. It looks at every byte at most twice.
func eachPayload(s string, least int, visit func(from, to int)) {
	shortest := base64.StdEncoding.EncodedLen(least)
	named := false // the last string was a name that keeps its value
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
				named = false // the elements of a list have no name
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

// keepsValue reports a member that is read for what it says: its value is never
// taken for a payload.
func keepsValue(literal string) bool {
	name := jsonx.Unquote(literal)
	switch name {
	case "type", "id", "role", "name", "status", "detail", "filename", "encrypted_content",
		"text", "content", "output", "input", "arguments", "refusal", "instructions", "code", "logs", "error":
		return true
	}
	return strings.HasSuffix(name, "_id")
}

// payloadIn returns where in a string literal's body its payload begins: what
// is to the end canonical base64, alone or after the head of a data URI. It
// returns the length where there is none.
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

// canonical reports whether base64 of which the letters are good is what an
// encoder writes: padded, and with no bits in the last letter that mean nothing.
func canonical(s string, pad int) bool {
	if len(s)%4 != 0 {
		return false
	}
	last := sextet[s[len(s)-1-pad]]
	return pad == 0 || last&(1<<(2*pad)-1) == 0
}

// maxDataHead bounds the media type of a data URI, in bytes.
const maxDataHead = 1024

// dataHead reports what stands before the payload of a data URI as
// [CutDataURI] finds it. An escape other than that of a slash is not base64.
func dataHead(s string) bool {
	_, ok := cutScheme(s)
	return ok && len(s) <= maxDataHead && strings.HasSuffix(s, ";base64,") && strings.IndexByte(s, ',') == len(s)-1 &&
		strings.Count(s, `\`) == strings.Count(s, `\/`)
}

// sextet is the value of a letter of the standard alphabet, -1 for others.
var sextet = func() (t [256]int8) {
	for i := range t {
		t[i] = -1
	}
	for i, c := range []byte("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/") {
		t[c] = int8(i)
	}
	return t
}()

// decodedLen is how many bytes canonical base64 stands for.
func decodedLen(s string) int {
	return len(s)/4*3 - (len(s) - len(strings.TrimRight(s, "=")))
}

// sumBase64 returns how many bytes canonical base64 stands for, and their hash,
// without holding them.
func sumBase64(s string) (size int64, hash [32]byte) {
	h := sha256.New()
	room := rooms.Get().(*room)
	defer rooms.Put(room)
	for s != "" {
		n := min(len(s), len(room.encoded))
		k, _ := base64.StdEncoding.Decode(room.plain[:], jsonx.Bytes(s[:n])) // it is canonical
		h.Write(room.plain[:k])
		size += int64(k)
		s = s[n:]
	}
	h.Sum(hash[:0])
	return size, hash
}
