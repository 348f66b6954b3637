// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package item_test

import (
	"strings"
	"testing"

	"github.com/antiphon-go/antiphon/item"
)

// G8: parts that endpoints refuse in a user message are errors that say what to do; those that
// this package does not know may be right.
func TestUserPartsThatDoNotFit(t *testing.T) {
	for want, p := range map[string]item.Part{
		"part 1 is an image without a URL":                     &item.InputImage{},
		"part 1 is a file without data, a URL or a file id":    &item.InputFile{Filename: "a.pdf"},
		"part 1 is a *item.OutputText, which only a model":     &item.OutputText{Text: "x"},
		"part 1 is a *item.Refusal, which only a model says: ": &item.Refusal{},
		"found no part": (*item.OutputText)(nil),
	} {
		if it, err := item.UserParts(p); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s, %v, want %s", it, err, want)
		}
	}
	if _, err := item.UserParts(&item.UnknownPart{Raw: `{"type":"input_audio","data":"x"}`}, &item.InputFile{FileID: "f"}); err != nil {
		t.Error(err)
	}
}
