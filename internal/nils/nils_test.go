// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package nils_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/antiphon-go/antiphon/internal/nils"
)

type mute struct{ text string }

func (e *mute) Error() string { return e.text }

type calm struct{}

func (*calm) Error() string { return "calm" }

// An error stays what it is, even a nil pointer that has a text; one whose text cannot be
// got is replaced by one that names its type.
func TestErr(t *testing.T) {
	for _, err := range []error{nil, errors.New("x"), context.Canceled, (*calm)(nil), &mute{"y"}, fmt.Errorf("z: %w", &mute{"y"}), errors.Join(&mute{"a"}, &mute{"b"})} {
		if got := nils.Err(err); got != err {
			t.Errorf("%v became %v", err, got)
		}
	}
	for _, err := range []error{(*mute)(nil), fmt.Errorf("outer: %w", (*mute)(nil)), errors.Join(errors.New("first"), fmt.Errorf("outer: %w", (*mute)(nil)))} {
		got := nils.Err(err)
		var m *mute
		if got == nil || errors.As(got, &m) || !strings.Contains(got.Error(), "a nil *nils_test.mute") {
			t.Errorf("%T became %v", err, got)
		}
	}
	if got := nils.Err(fmt.Errorf("outer: %w", (*mute)(nil))); !strings.HasPrefix(got.Error(), "outer: ") {
		t.Errorf("the text is lost: %v", got)
	}
}
