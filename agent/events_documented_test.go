// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"reflect"
	"strings"
	"testing"
)

// Every event stands in the doc comment of Event, and in the table of JSON lines
// with all its members.
func TestEventsAreDocumented(t *testing.T) {
	packages := token.NewFileSet()
	all := map[string]*ast.StructType{}
	names := map[string]string{} // of types, in JSON lines
	list := ""
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".go") || strings.HasSuffix(e.Name(), "_test.go") {
			continue
		}
		file, err := parser.ParseFile(packages, e.Name(), nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			switch d := d.(type) {
			case *ast.GenDecl:
				for _, s := range d.Specs {
					spec, ok := s.(*ast.TypeSpec)
					if !ok {
						continue
					}
					if of, ok := spec.Type.(*ast.StructType); ok {
						all[spec.Name.Name] = of
					}
					if spec.Name.Name == "Event" {
						list = d.Doc.Text()
					}
				}
			case *ast.FuncDecl:
				if d.Recv == nil || d.Name.Name != "Name" || len(d.Body.List) != 1 {
					continue
				}
				typ, ok := d.Recv.List[0].Type.(*ast.Ident)
				result, returns := d.Body.List[0].(*ast.ReturnStmt)
				if ok && returns && typ.IsExported() {
					if text, ok := result.Results[0].(*ast.BasicLit); ok {
						names[typ.Name] = strings.Trim(text.Value, `"`)
					}
				}
			}
		}
	}
	text, err := os.ReadFile("../docs/commands.md")
	if err != nil {
		t.Fatal(err)
	}
	if len(names) < 15 || list == "" {
		t.Fatalf("%d events, and the list %q", len(names), list)
	}
	for typ, name := range names {
		if !strings.Contains(list, "["+typ+"]") {
			t.Errorf("the comment of Event lacks %s", typ)
		}
		row := ""
		for line := range strings.Lines(string(text)) {
			if head, _, ok := strings.Cut(strings.TrimPrefix(line, "| "), " |"); ok && strings.Contains(head, "`"+name+"`") {
				row = line
			}
		}
		if row == "" {
			t.Errorf("docs/commands.md lacks %s", name)
			continue
		}
		for _, f := range all[typ].Fields.List {
			if f.Tag == nil {
				continue
			}
			tag, _, _ := strings.Cut(reflect.StructTag(strings.Trim(f.Tag.Value, "`")).Get("json"), ",")
			if tag != "" && tag != "-" && !strings.Contains(row, "`"+tag+"`") {
				t.Errorf("docs/commands.md lacks %s of %s", tag, name)
			}
		}
	}
}
