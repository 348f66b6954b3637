// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"errors"
	"strconv"
	"strings"

	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/item"
)

// misplaced is an error that names an item of the input as it was sent, which
// is not the input that was given.
type misplaced struct {
	err *endpoint.Error
	at  int
}

func (e *misplaced) Error() string { return e.err.Error() }

// Unwrap returns the endpoint's own error.
func (e *misplaced) Unwrap() error { return e.err }

// RefusedItem is the index in the input that was given of the item that the
// endpoint names, or -1. Package agent asks for it.
func (e *misplaced) RefusedItem() int { return e.at }

// Refusal returns err such that it names an item of given, where sent is what
// became of it for the endpoint.
func Refusal(err error, given, sent *item.List) error {
	if err == nil || given == sent {
		return err
	}
	var e *endpoint.Error
	if !errors.As(err, &e) || !strings.HasPrefix(e.Param, "input") {
		return err
	}
	i, ok := inputIndex(e.Param)
	if !ok {
		i = -1
	}
	return RefusedAt(e, given, sent, i)
}

// RefusedAt returns err such that it names an item of given, where i is the item
// of sent that the endpoint means, or -1 if it cannot be told.
func RefusedAt(e *endpoint.Error, given, sent *item.List, i int) error {
	switch {
	case i < 0 || i >= sent.Len():
		i = -1
	case given != sent:
		i = origin(given, sent.At(i))
	}
	return &misplaced{e, i}
}

// inputIndex reads the index out of input[3].output or input.3.
func inputIndex(param string) (int, bool) {
	rest := strings.TrimLeft(strings.TrimPrefix(param, "input"), "[.")
	end := strings.IndexFunc(rest, func(r rune) bool { return r < '0' || r > '9' })
	if end >= 0 {
		rest = rest[:end]
	}
	i, err := strconv.Atoi(rest)
	return i, err == nil
}

// origin finds the one item that was sent, as it is or with its id, or whose
// output it is.
func origin(given *item.List, sent item.Item) int {
	found := -1
	for i, it := range given.All() {
		same := it == sent || it.Type() == sent.Type() && (sent.IsOutput() && it.CallID() == sent.CallID() || sent.ID() != "" && it.ID() == sent.ID())
		switch {
		case same && found >= 0:
			return -1 // it might be either
		case same:
			found = i
		}
	}
	return found
}
