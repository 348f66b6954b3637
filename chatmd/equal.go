// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package chatmd

import "github.com/go-json-experiment/json/jsontext"

// sameJSON reports whether two JSON texts say the same: equal members in any
// order, equal elements, equal strings however they are escaped. Numbers have
// to be spelled alike, and what JSON leaves open, equal member names and lone
// surrogates, is the same only in the same text.
func sameJSON(a, b string) bool {
	if a == b {
		return true
	}
	ca, cb := jsontext.Value(a), jsontext.Value(b)
	if ca.Format(jsontext.ReorderRawObjects(true)) != nil || cb.Format(jsontext.ReorderRawObjects(true)) != nil {
		return false
	}
	return string(ca) == string(cb)
}
