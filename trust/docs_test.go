// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package trust

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// K1: every kind of power has words and a rank, and docs/trust.md lists exactly these words,
// in this order.
func TestPowersAreDocumented(t *testing.T) {
	var want []string
	for _, k := range kinds {
		want = append(want, strings.NewReplacer("WHAT", "…", "WHERE", "…").Replace(k.words))
	}
	page, err := os.ReadFile("../docs/trust.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(page), "| power |")
	table, _, _ = strings.Cut(table, "\n\n")
	var got []string
	for _, row := range regexp.MustCompile(`(?m)^\| ([^|]+) \|`).FindAllStringSubmatch(table, -1) {
		got = append(got, row[1])
	}
	if !slices.Equal(got, want) {
		t.Errorf("the page lists\n%s\nand the table has\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	file, err := parser.ParseFile(token.NewFileSet(), "claim.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		if v, ok := n.(*ast.ValueSpec); ok {
			if typ, ok := v.Type.(*ast.Ident); ok && typ.Name == "Kind" && len(v.Values) == 1 {
				if k := Kind(strings.Trim(v.Values[0].(*ast.BasicLit).Value, `"`)); k.rank() < 0 {
					t.Errorf("%s is not in the table of kinds", v.Names[0].Name)
				}
			}
		}
		return true
	})
}
