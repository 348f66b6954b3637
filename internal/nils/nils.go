// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

// Package nils finds nil values that an interface hides.
package nils

import "reflect"

// Is reports whether v is nil, or an interface that holds a nil pointer or a nil function. A
// caller who forgot to make a value passes one as easily as the other, and a method that is
// called on it panics.
func Is(v any) bool {
	if v == nil {
		return true
	}
	r := reflect.ValueOf(v)
	return (r.Kind() == reflect.Pointer || r.Kind() == reflect.Func) && r.IsNil()
}
