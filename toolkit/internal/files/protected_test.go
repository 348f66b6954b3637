// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package files_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/antiphon-go/antiphon/toolkit/internal/files"
)

// plainTexts reads arguments token by token.
func plainTexts(arguments, name string) (texts []string, whole bool) {
	d := json.NewDecoder(strings.NewReader(arguments))
	if token, err := d.Token(); err != nil || token != json.Delim('{') {
		return nil, false
	}
	for d.More() {
		member, err := d.Token()
		if err != nil {
			return texts, false
		}
		var value any
		if err := d.Decode(&value); err != nil {
			return texts, false
		}
		if text, ok := value.(string); ok && strings.EqualFold(member.(string), name) {
			texts = append(texts, text)
		}
	}
	_, err := d.Token()
	return texts, err == nil
}

// FuzzTexts compares the texts of arguments with those that encoding/json finds.
func FuzzTexts(f *testing.F) {
	for _, s := range []string{
		`{"path":"a"}`, ` {"PATH" : "a", "path":"b\n\u00e9", "x":{"path":"inner"}, "path":["no"], "path":7}`, `{"p\u0061th":"a"}`,
		`["path","a"]`, `"path"`, ``, `{"path":"a"`, `{"path":"a",`, `{"path":"\ud800"}`, `{}`, `null`, `{"path":"a"}{"path":"b"}`,
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, arguments string) {
		got := files.Texts(arguments, "path")
		if want, whole := plainTexts(arguments, "path"); whole && json.Valid([]byte(arguments)) && strings.ToValidUTF8(arguments, "") == arguments && !slices.Equal(got, want) {
			t.Errorf("the texts of %q are %q, want %q", arguments, got, want)
		}
	})
}
