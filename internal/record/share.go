// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package record

import "reflect"

// shared holds the shared values by type. It needs no lock, because it is written
// only during program initialization.
var shared = map[reflect.Type]any{}

// Share makes a value of a public package available to other packages of this
// module, if users of that package do not need it. An example is the function that
// reads an item from validated text. Values are identified by type, so there can be
// only one of each type. Share must be called during program initialization.
func Share[T any](v T) { shared[reflect.TypeFor[T]()] = v }

// Shared returns the shared value of type T. It panics if there is none; the package
// that shares it must be imported.
func Shared[T any]() T {
	v, ok := shared[reflect.TypeFor[T]()].(T)
	if !ok {
		panic("record: nobody shares a " + reflect.TypeFor[T]().String())
	}
	return v
}
