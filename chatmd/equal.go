// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package chatmd

import "github.com/go-json-experiment/json/jsontext"

// sameJSON reports whether two JSON texts have the same meaning: equal members in
// any order, equal elements, equal strings regardless of escapes. Numbers must have
// the same spelling. Where JSON does not define the meaning, as for repeated member
// names and lone surrogates, only identical texts are the same.
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
