// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

// Package nils finds nil values that an interface hides, also in errors.
package nils

import (
	"errors"
	"fmt"
	"reflect"
)

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

// Err returns err or, if its methods panic, an error that says so. That is an error that is a
// nil pointer, or wraps one: a function that returns its *MyError, which is nil, as an error
// returns one that is not nil.
func Err(err error) (safe error) {
	var reached []error // one inside the other or beside it, err first
	defer func() {
		v := recover()
		if v == nil {
			return
		}
		at := reached[len(reached)-1]
		what := fmt.Sprintf("a %T whose methods panic: %v", at, v)
		if Is(at) {
			what = fmt.Sprintf("a nil %T, which is not a nil error", at)
		}
		safe = errors.New("an error without a text: it is " + what)
		if len(reached) > 1 {
			safe = fmt.Errorf("%s (it wraps %s)", err.Error(), what)
		}
	}()
	walk(err, &reached)
	return err
}

// walk calls the methods of an error and of all that it wraps.
func walk(err error, reached *[]error) {
	if err == nil {
		return
	}
	*reached = append(*reached, err)
	_ = err.Error()
	switch e := err.(type) {
	case interface{ Unwrap() error }:
		walk(e.Unwrap(), reached)
	case interface{ Unwrap() []error }:
		for _, one := range e.Unwrap() {
			walk(one, reached)
		}
	}
}
