// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

// Package nils finds nil values that an interface hides, also in errors.
package nils

import (
	"context"
	"errors"
	"fmt"
	"iter"
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

// Each returns what a method of a value returned, such as the Watch of a store. If that is nil,
// it yields an error that says so.
func Each[T any](of any, method string, list iter.Seq2[T, error]) iter.Seq2[T, error] {
	if list != nil {
		return list
	}
	return func(yield func(T, error) bool) {
		var zero T
		yield(zero, fmt.Errorf("the %s of %T returned no iterator", method, of))
	}
}

// A Locker is a store with locks, such as a session.Locker.
type Locker interface {
	Lock(ctx context.Context, id string) (unlock func() error, err error)
}

// Lock takes a lock of a store. A lock without a function to unlock it is an error.
func Lock(ctx context.Context, in Locker, id string) (unlock func() error, err error) {
	unlock, err = in.Lock(ctx, id)
	if unlock == nil && err == nil {
		err = NoUnlock(in)
	}
	return unlock, err
}

// NoUnlock is the error of a store that took a lock and returned no function to unlock it.
func NoUnlock(in any) error {
	return fmt.Errorf("the store %T took a lock and returned no function to unlock it", in)
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
