// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package antiphon_test

import (
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestDocsCode proves that Go code in the documents is built: each block stands
// in an example, or in a program of the repository, but for its indentation.
func TestDocsCode(t *testing.T) {
	var built strings.Builder
	goFiles(t, func(_, file string) {
		if strings.HasPrefix(filepath.Base(file), "example_") {
			built.WriteString(unindented(t, file))
		}
	})
	built.WriteString(unindented(t, filepath.FromSlash("bench/umbrella/main.go")))

	files, err := filepath.Glob("docs/*.md")
	if err != nil || len(files) == 0 {
		t.Fatal("no documents", err)
	}
	block := regexp.MustCompile("(?s)```go\n(.*?)```")
	for _, file := range append(files, "README.md") {
		for _, m := range block.FindAllStringSubmatch(unindented(t, file), -1) {
			if !strings.Contains(built.String(), m[1]) {
				t.Errorf("%s: this stands in no example_*_test.go:\n%s", file, m[1])
			}
		}
	}
}

// unindented returns a file's text without the tabs that its lines begin with.
func unindented(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return regexp.MustCompile(`(?m)^\t+`).ReplaceAllString(string(text), "")
}

// TestDocsNames proves that the Go names in the documents exist: `pkg.Name` of a
// package of this module, and `Type.Member` of a type in any of them.
func TestDocsNames(t *testing.T) {
	known, packages := goNames(t)
	pages, err := filepath.Glob("docs/*.md")
	if err != nil || len(pages) == 0 {
		t.Fatal("no documents", err)
	}
	fence := regexp.MustCompile("(?s)```.*?```")
	name := regexp.MustCompile("`([A-Za-z]\\w*)\\.([A-Z]\\w*)[^`]*`")
	for _, page := range pages {
		text := fence.ReplaceAllString(unindented(t, page), "")
		for _, m := range name.FindAllStringSubmatch(text, -1) {
			if strings.HasPrefix(m[2], "Test") || strings.HasPrefix(m[2], "Example") {
				continue // TestFeatures looks for these
			}
			isType := ast.IsExported(m[1]) && strings.ToUpper(m[1]) != m[1] // LABEL.TOOL is a placeholder
			if (isType || packages[m[1]]) && !known[m[1]+"."+m[2]] {
				t.Errorf("%s names %s, and there is no %s.%s", page, m[0], m[1], m[2])
			}
		}
	}
}

// goNames returns the names that packages of this module declare, as pkg.Name and as
// Type.Member, and the names of the packages.
func goNames(t *testing.T) (known, packages map[string]bool) {
	t.Helper()
	known, packages = map[string]bool{}, map[string]bool{}
	goFiles(t, func(_, file string) {
		if strings.HasSuffix(file, "_test.go") {
			return
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		packages[parsed.Name.Name] = true
		for _, decl := range parsed.Decls {
			switch decl := decl.(type) {
			case *ast.FuncDecl:
				if decl.Recv == nil {
					known[parsed.Name.Name+"."+decl.Name.Name] = true
				} else {
					known[typeName(decl.Recv.List[0].Type)+"."+decl.Name.Name] = true
				}
			case *ast.GenDecl:
				for _, spec := range decl.Specs {
					for _, name := range specNames(spec) {
						known[parsed.Name.Name+"."+name] = true
					}
					for _, member := range members(spec) {
						known[member] = true
					}
				}
			}
		}
	})
	return known, packages
}

// specNames returns the names that a declaration of types, variables or constants
// declares.
func specNames(spec ast.Spec) (names []string) {
	switch spec := spec.(type) {
	case *ast.TypeSpec:
		return []string{spec.Name.Name}
	case *ast.ValueSpec:
		for _, name := range spec.Names {
			names = append(names, name.Name)
		}
	}
	return names
}

// members returns the fields or methods in the declaration of a type, as Type.Member.
func members(spec ast.Spec) (names []string) {
	declared, ok := spec.(*ast.TypeSpec)
	if !ok {
		return nil
	}
	var list *ast.FieldList
	switch as := declared.Type.(type) {
	case *ast.StructType:
		list = as.Fields
	case *ast.InterfaceType:
		list = as.Methods
	default:
		return nil
	}
	for _, field := range list.List {
		for _, name := range field.Names {
			names = append(names, declared.Name.Name+"."+name.Name)
		}
		if len(field.Names) == 0 {
			names = append(names, declared.Name.Name+"."+typeName(field.Type))
		}
	}
	return names
}

// typeName returns the name of a receiver's or an embedded type.
func typeName(expr ast.Expr) string {
	switch expr := expr.(type) {
	case *ast.StarExpr:
		return typeName(expr.X)
	case *ast.IndexExpr:
		return typeName(expr.X)
	case *ast.IndexListExpr:
		return typeName(expr.X)
	case *ast.SelectorExpr:
		return expr.Sel.Name
	case *ast.Ident:
		return expr.Name
	}
	return ""
}

// TestRules proves that every rule that a comment names stands in docs/rules.md,
// and that the page says which no test names.
func TestRules(t *testing.T) {
	page, err := os.ReadFile("docs/rules.md")
	if err != nil {
		t.Fatal(err)
	}
	table, untested, _ := strings.Cut(string(page), "## Without a test")
	unproven := map[string]bool{} // the rules that no test has named so far
	for _, row := range regexp.MustCompile(`(?m)^\| ([A-Z]\d+) \|`).FindAllStringSubmatch(table, -1) {
		if unproven[row[1]] {
			t.Errorf("docs/rules.md has %s twice", row[1])
		}
		unproven[row[1]] = true
	}
	known := maps.Clone(unproven)
	comment, name := regexp.MustCompile(`(?m)(?:^|\s)//(.*)$`), regexp.MustCompile(`\b[A-Z]\d{1,2}\b`)
	goFiles(t, func(dir, file string) {
		for _, c := range comment.FindAllStringSubmatch(unindented(t, file), -1) {
			for _, rule := range name.FindAllString(c[1], -1) {
				if !known[rule] {
					t.Errorf("%s names rule %s, which docs/rules.md does not have: %s", file, rule, c[1])
				}
				if strings.HasSuffix(file, "_test.go") || dir == "agenttest" || dir == "session/storetest" {
					delete(unproven, rule)
				}
			}
		}
	})
	listed := name.FindAllString(untested, -1)
	slices.Sort(listed)
	if want := slices.Sorted(maps.Keys(unproven)); !slices.Equal(listed, want) {
		t.Errorf("docs/rules.md lists as without a test: %v\nbut those are: %v", listed, want)
	}
}

// TestProgramsAreShort proves that a program in examples/go can be copied at a glance:
// it has a page, a test that the race detector runs, and less than 120 lines in one file.
func TestProgramsAreShort(t *testing.T) {
	programs, err := filepath.Glob("examples/go/*/main.go")
	if err != nil || len(programs) != 15 {
		t.Fatal(programs, err)
	}
	for _, program := range programs {
		text, err := os.ReadFile(program)
		if err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(string(text), "\n"); n >= 120 {
			t.Errorf("%s has %d lines", program, n)
		}
		if all, _ := filepath.Glob(filepath.Join(filepath.Dir(program), "*.go")); len(all) != 2 {
			t.Errorf("beside %s and its test there is more: %v", program, all)
		}
		for _, name := range []string{"README.md", "main_test.go"} {
			if _, err := os.Stat(filepath.Join(filepath.Dir(program), name)); err != nil {
				t.Error(err)
			}
		}
	}
}

// TestProgramsPrintWhatTheyShow proves that the programs in examples/ print what
// their pages show.
func TestProgramsPrintWhatTheyShow(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: builds programs")
	}
	pages, err := filepath.Glob("examples/*/README.md")
	short, errShort := filepath.Glob("examples/go/*/README.md")
	if err = errors.Join(err, errShort); err != nil {
		t.Fatal(err)
	}
	pages = append(pages, short...)
	shown := 0
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		_, block, found := strings.Cut(string(text), "It prints:\n\n```text\n")
		if !found {
			continue
		}
		shown++
		if test, err := os.ReadFile(filepath.Join(filepath.Dir(page), "main_test.go")); err == nil && strings.Contains(string(test), "README.md") {
			continue // the program's own test compares them
		}
		want, _, _ := strings.Cut(block, "```")
		// The exit status is not looked at: an evaluation fails on purpose.
		got, _ := exec.Command("go", "run", "./"+filepath.ToSlash(filepath.Dir(page))).Output()
		if string(got) != want {
			t.Errorf("%s shows\n%s\nand it prints\n%s", page, want, got)
		}
	}
	if shown < 4 {
		t.Errorf("%d pages show what a program prints", shown)
	}
}

// TestNoticesAreDocumented proves that docs/format.md lists every kind of notice.
func TestNoticesAreDocumented(t *testing.T) {
	page := unindented(t, "docs/format.md")
	for _, m := range regexp.MustCompile(`(?m)^Notice\w+ += "(\w+)"`).FindAllStringSubmatch(unindented(t, "session/entry.go"), -1) {
		if !strings.Contains(page, "| `"+m[1]+"` |") {
			t.Errorf("docs/format.md does not list the notice %s", m[1])
		}
	}
}

// TestFeatures proves that docs/features.md has its rows, each with a test or an
// example that exists, or with the word no.
func TestFeatures(t *testing.T) {
	named := map[string]int{} // in how many packages, also with the last part of a package's path before it
	goFiles(t, func(dir, file string) {
		if strings.HasSuffix(file, "_test.go") {
			for _, m := range regexp.MustCompile(`(?m)^func ((?:Test|Example)\w*)\(`).FindAllStringSubmatch(unindented(t, file), -1) {
				named[m[1]]++
				named[path.Base(dir)+"."+m[1]]++
			}
		}
	})
	next := 1
	for _, m := range regexp.MustCompile(`(?m)^\| (\d+) \| .* \| (.*) \| ?(.*) \|$`).FindAllStringSubmatch(unindented(t, "docs/features.md"), -1) {
		if m[1] != strconv.Itoa(next) {
			t.Fatalf("row %s stands where row %d should", m[1], next)
		}
		next++
		shown := regexp.MustCompile("`((?:\\w+\\.)?(?:Test|Example)\\w*)`").FindAllStringSubmatch(m[3], -1)
		if len(shown) == 0 && !strings.HasPrefix(m[2], "no") {
			t.Errorf("row %s names no test", m[1])
		}
		for _, name := range shown {
			if n := named[name[1]]; n != 1 {
				t.Errorf("row %s: %d tests are named %s; put the package before the name", m[1], n, name[1])
			}
		}
	}
	if next != 102 {
		t.Errorf("%d rows, want 101", next-1)
	}
}
