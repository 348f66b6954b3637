// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package audit_test

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

// constants returns the values of the constants of a type in a file.
func constants(t *testing.T, path, typeName string) (list []string) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		if v, ok := n.(*ast.ValueSpec); ok {
			if typ, ok := v.Type.(*ast.Ident); ok && typ.Name == typeName && len(v.Values) == 1 {
				list = append(list, strings.Trim(v.Values[0].(*ast.BasicLit).Value, `"`))
			}
		}
		return true
	})
	return list
}

// K8: docs/audit.md lists exactly the kinds of records, in this order, and all deciders.
func TestKindsAreDocumented(t *testing.T) {
	text, err := os.ReadFile("../docs/audit.md")
	if err != nil {
		t.Fatal(err)
	}
	page := string(text)
	_, table, _ := strings.Cut(page, "| kind |")
	table, _, _ = strings.Cut(table, "\n\n")
	var got []string
	for _, row := range regexp.MustCompile(`(?m)^\| ([^|]+) \|`).FindAllStringSubmatch(table, -1) {
		for _, name := range regexp.MustCompile("`([a-z]+)`").FindAllStringSubmatch(row[1], -1) {
			got = append(got, name[1])
		}
	}
	if want := constants(t, "record.go", "Kind"); len(want) == 0 || !slices.Equal(got, want) {
		t.Errorf("the page lists %v, and the package has %v", got, want)
	}
	for _, name := range constants(t, "../session/rule.go", "Decider") {
		if !strings.Contains(page, "`"+name+"`") {
			t.Errorf("the page does not name the decider %s", name)
		}
	}
}
