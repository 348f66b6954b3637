// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package endpoint

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strings"
)

// SetHeader sets the headers of every request to the endpoint: the profile's fixed headers, the
// key, and the account if the profile has a header for it. A zero key and an empty account set no
// header. A nil header stays nil.
func (p Profile) SetHeader(h http.Header, key Key, account string) {
	if h == nil {
		return
	}
	for name, value := range p.Header {
		h.Set(name, value)
	}
	if account != "" && p.AccountHeader != "" {
		h.Set(p.AccountHeader, account)
	}
	switch {
	case key.IsZero():
	case p.KeyHeader != "" && !isToken(key):
		h.Set(p.KeyHeader, key.Reveal())
	default:
		h.Set("Authorization", "Bearer "+key.Reveal())
	}
}

// isToken reports whether the key is a JSON web token, such as a sign-in gives. Endpoints with
// their own header for keys accept these only as bearer tokens.
func isToken(key Key) bool {
	s := key.Reveal()
	return strings.HasPrefix(s, "eyJ") && strings.Count(s, ".") == 2
}

// CacheKey returns a prompt_cache_key of at most limit bytes: the key if it fits, otherwise a hash
// of it, which is always the same for the same key. A limit below 1 means no limit.
func CacheKey(key string, limit int) string {
	if limit < 1 || len(key) <= limit {
		return key
	}
	sum := sha256.Sum256([]byte(key))
	hash := hex.EncodeToString(sum[:]) // 64 bytes, the usual limit
	return hash[:min(limit, len(hash))]
}
