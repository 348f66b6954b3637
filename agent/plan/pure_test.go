// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"go/parser"
	"go/token"
	"os"
	"slices"
	"strings"
	"testing"
)

// pure are the packages without a clock, I/O, randomness and contexts. Others are
// not imported here: no time, context, rand, os or net.
var pure = []string{
	"cmp", "errors", "fmt", "iter", "maps", "math", "path", "slices", "strconv", "strings",
	"github.com/go-json-experiment/json", "github.com/go-json-experiment/json/jsontext",
	"github.com/antiphon-go/antiphon/api", "github.com/antiphon-go/antiphon/item", "github.com/antiphon-go/antiphon/session",
}

// P1: deciding is pure.
func TestPure(t *testing.T) {
	files, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if !strings.HasSuffix(f.Name(), ".go") || strings.HasSuffix(f.Name(), "_test.go") {
			continue
		}
		src, err := parser.ParseFile(token.NewFileSet(), f.Name(), nil, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		for _, i := range src.Imports {
			if path := strings.Trim(i.Path.Value, `"`); !slices.Contains(pure, path) {
				t.Errorf("%s imports %s", f.Name(), path)
			}
		}
	}
}
