// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package antiphon_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestDocsSymbols proves that the documents point to the right files: a file that they name
// exists, and in `Symbol` (`file.go`) the file declares the symbol.
func TestDocsSymbols(t *testing.T) {
	pages, err := filepath.Glob("docs/*.md")
	if err != nil || len(pages) == 0 {
		t.Fatal("no documents", err)
	}
	file := regexp.MustCompile("`((?:\\w+/)+\\w+\\.go)`")
	symbol, in := "`([A-Za-z]\\w*(?:\\.\\w+)*)`", "`((?:\\w+/)+\\w+\\.go)`"
	pair := regexp.MustCompile(symbol + `\s+\(` + in + `|\(` + symbol + `,\s+` + in + `\)`)
	pairs := 0
	for _, page := range append(pages, "README.md", "CONTRIBUTING.md") {
		text := unindented(t, page)
		for _, m := range file.FindAllStringSubmatch(text, -1) {
			if _, err := os.Stat(filepath.FromSlash(m[1])); err != nil {
				t.Errorf("%s names a file: %v", page, err)
			}
		}
		for _, m := range pair.FindAllStringSubmatch(text, -1) {
			pairs++
			name, in := m[1]+m[3], m[2]+m[4]
			if known := declarations(t, in); !known[name[strings.LastIndex(name, ".")+1:]] {
				t.Errorf("%s says that %s is in %s, which does not declare it", page, name, in)
			}
		}
	}
	if pairs < 15 {
		t.Errorf("%d symbols are named with their files: has the way of writing changed?", pairs)
	}
}

// declarations returns the last parts of the names that a file declares: functions,
// methods, types, variables, constants, fields.
func declarations(t *testing.T, file string) (known map[string]bool) {
	t.Helper()
	known = map[string]bool{}
	for _, decl := range parsed(t, file).Decls {
		switch decl := decl.(type) {
		case *ast.FuncDecl:
			known[decl.Name.Name] = true
		case *ast.GenDecl:
			for _, spec := range decl.Specs {
				for _, name := range specNames(spec) {
					known[name] = true
				}
				for _, member := range members(spec) {
					known[member[strings.Index(member, ".")+1:]] = true
				}
			}
		}
	}
	return known
}

// parsed returns a file of Go with its comments.
func parsed(t *testing.T, file string) *ast.File {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), filepath.FromSlash(file), nil, parser.SkipObjectResolution|parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// TestDocsPackages proves that docs/architecture.md names every package, and that its table
// has the levels of the tests, in order.
func TestDocsPackages(t *testing.T) {
	page := unindented(t, "docs/architecture.md")
	for name := range levels {
		if name != "." && !strings.HasPrefix(name, "examples/") && !strings.Contains(page, "`"+name+"`") {
			t.Errorf("docs/architecture.md does not name %s", name)
		}
	}
	last := -1 << 10
	for _, m := range regexp.MustCompile("(?m)^\\| (-?\\d+) \\| `([\\w/]+)` \\|").FindAllStringSubmatch(page, -1) {
		level, _ := strconv.Atoi(m[1])
		if want, ok := levels[m[2]]; !ok || level != want {
			t.Errorf("docs/architecture.md says that %s has level %d, and it has %d", m[2], level, want)
		}
		if level < last {
			t.Errorf("docs/architecture.md lists %s, of level %d, behind a package of level %d", m[2], level, last)
		}
		last = level
	}
}

// TestDocsInterfaces proves that the comment on session.Store lists every optional interface of
// stores, and the one on sqlstore.Store those that it implements.
func TestDocsInterfaces(t *testing.T) {
	offered := map[string]*ast.InterfaceType{}
	for _, dir := range []string{"session", "session/queue"} {
		eachType(t, dir, func(name, _ string, typ ast.Expr) {
			if in, ok := typ.(*ast.InterfaceType); ok && ast.IsExported(name) {
				offered[strings.TrimPrefix(dir, "session/")+"."+name] = in
			}
		})
	}
	optional, implemented := []string{}, []string{}
	has := methods(t, "session/sqlstore")
	for name := range offered {
		pkg, short, _ := strings.Cut(name, ".")
		needs, embeds := needed(offered, pkg, short)
		if name == "session.Store" || pkg == "session" && !embeds {
			continue // not about stores
		}
		if pkg == "session" {
			optional = append(optional, short)
		}
		if !slices.ContainsFunc(needs, func(method string) bool { return !has[method] }) {
			implemented = append(implemented, name)
		}
	}
	compareLinks(t, "session", optional)
	compareLinks(t, "session/sqlstore", implemented)
}

// compareLinks compares the links in the list of a Store's comment with what it must list.
func compareLinks(t *testing.T, dir string, want []string) {
	t.Helper()
	var got []string
	eachType(t, dir, func(name, doc string, _ ast.Expr) {
		if name != "Store" {
			return
		}
		doc = strings.Join(strings.Fields(doc), " ")
		_, list, found := strings.Cut(doc, "interfaces: ")
		if !found {
			t.Fatalf("%s: the comment on Store has no list of interfaces", dir)
		}
		list, _, _ = strings.Cut(list, ". ")
		for _, m := range regexp.MustCompile(`\[([\w.]+)\]`).FindAllStringSubmatch(list, -1) {
			got = append(got, m[1])
		}
	})
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("%s: the comment on Store lists %v, want %v", dir, got, want)
	}
}

// needed returns the names of the methods of an interface, with those of embedded ones, and
// whether it embeds Store.
func needed(known map[string]*ast.InterfaceType, pkg, name string) (methods []string, embeds bool) {
	for _, m := range known[pkg+"."+name].Methods.List {
		for _, n := range m.Names {
			methods = append(methods, n.Name)
		}
		if len(m.Names) > 0 {
			continue
		}
		inner := typeName(m.Type)
		if _, local := known[pkg+"."+inner]; local {
			more, store := needed(known, pkg, inner)
			methods, embeds = append(methods, more...), embeds || store || inner == "Store"
		}
	}
	return methods, embeds
}

// methods returns the names of the methods of a package's Store.
func methods(t *testing.T, dir string) map[string]bool {
	t.Helper()
	has := map[string]bool{}
	eachFile(t, dir, func(f *ast.File) {
		for _, decl := range f.Decls {
			if fn, ok := decl.(*ast.FuncDecl); ok && fn.Recv != nil && typeName(fn.Recv.List[0].Type) == "Store" {
				has[fn.Name.Name] = true
			}
		}
	})
	return has
}

// eachType calls visit with each type that a package declares, and its comment.
func eachType(t *testing.T, dir string, visit func(name, doc string, typ ast.Expr)) {
	t.Helper()
	eachFile(t, dir, func(f *ast.File) {
		for _, decl := range f.Decls {
			group, ok := decl.(*ast.GenDecl)
			if !ok {
				continue
			}
			for _, spec := range group.Specs {
				if one, ok := spec.(*ast.TypeSpec); ok {
					visit(one.Name.Name, group.Doc.Text(), one.Type)
				}
			}
		}
	})
}

// eachFile calls visit with the files of a package, without its tests.
func eachFile(t *testing.T, dir string, visit func(*ast.File)) {
	t.Helper()
	files, err := filepath.Glob(filepath.FromSlash(dir + "/*.go"))
	if err != nil || len(files) == 0 {
		t.Fatal("no files in", dir, err)
	}
	for _, file := range files {
		if !strings.HasSuffix(file, "_test.go") {
			visit(parsed(t, filepath.ToSlash(file)))
		}
	}
}

// TestDocsProgress proves that docs/events.md and docs/events.schema.json name, for each kind of
// progress, the members that package agent sets.
func TestDocsProgress(t *testing.T) {
	page, schema := unindented(t, "docs/events.md"), unindented(t, "docs/events.schema.json")
	members := map[string]string{} // the JSON member of a field
	for _, m := range regexp.MustCompile("(\\w+) .*`json:\"(\\w+),").FindAllStringSubmatch(unindented(t, "agent/events_json.go"), -1) {
		members[m[1]] = m[2]
	}
	kinds := map[string]string{} // the text of a constant
	for _, m := range regexp.MustCompile(`(Progress\w+)\s+ProgressKind = "(\w+)"`).FindAllStringSubmatch(unindented(t, "agent/events.go"), -1) {
		kinds[m[1]] = m[2]
	}
	set := map[string]map[string]bool{} // the fields that are set, by the constant of the kind
	eachFile(t, "agent", func(f *ast.File) {
		for _, decl := range f.Decls {
			if fn, ok := decl.(*ast.FuncDecl); ok {
				progressFields(fn, set)
			}
		}
	})
	if len(kinds) != 10 || len(set) != len(kinds) {
		t.Errorf("%d kinds of progress, and the code makes %v", len(kinds), slices.Sorted(maps.Keys(set)))
	}
	for kind, fields := range set {
		text := kinds[kind]
		row := regexp.MustCompile("(?m)^\\| `" + text + "` \\|.*$").FindString(page)
		for field := range fields {
			member := members[field]
			if !strings.Contains(row, "`"+member+"`") {
				t.Errorf("docs/events.md: the row of %s does not name %s", text, member)
			}
			of := regexp.MustCompile(`"` + member + `": \{"description": "Of ([^"]*)"`).FindStringSubmatch(schema)
			if of != nil && !strings.Contains(of[1], text) {
				t.Errorf("docs/events.schema.json says that %s is of %s, and it is also of %s", member, of[1], text)
			}
		}
	}
}

// progressFields adds the fields of each Progress that a function makes: those of the literal,
// and those that the function sets later in the variable that holds it.
func progressFields(fn *ast.FuncDecl, set map[string]map[string]bool) {
	holds := map[string]string{} // the kind of the Progress in a variable
	ast.Inspect(fn, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CompositeLit:
			kind, fields := progressLiteral(n)
			if kind == "" {
				break
			}
			if set[kind] == nil {
				set[kind] = map[string]bool{}
			}
			maps.Copy(set[kind], fields)
		case *ast.AssignStmt:
			for i, left := range n.Lhs {
				if name, ok := left.(*ast.Ident); ok && i < len(n.Rhs) {
					if literal, ok := n.Rhs[i].(*ast.CompositeLit); ok {
						holds[name.Name], _ = progressLiteral(literal)
					}
				}
				if field, ok := left.(*ast.SelectorExpr); ok {
					if of, ok := field.X.(*ast.Ident); ok && set[holds[of.Name]] != nil {
						set[holds[of.Name]][field.Sel.Name] = true
					}
				}
			}
		}
		return true
	})
}

// progressLiteral returns the kind and the other fields of a literal Progress, or "".
func progressLiteral(n *ast.CompositeLit) (kind string, fields map[string]bool) {
	if name, ok := n.Type.(*ast.Ident); !ok || name.Name != "Progress" {
		return "", nil
	}
	fields = map[string]bool{}
	for _, e := range n.Elts {
		pair, ok := e.(*ast.KeyValueExpr)
		if !ok {
			continue
		}
		field := typeName(pair.Key)
		if name, ok := pair.Value.(*ast.Ident); ok && field == "Kind" {
			kind = name.Name
			continue
		}
		fields[field] = true
	}
	return kind, fields
}

// TestPackageFiles proves that agent/doc.go lists each file of the package once, and no other.
func TestPackageFiles(t *testing.T) {
	var listed, there []string
	for _, m := range regexp.MustCompile(`(?m)^//\t(\w+\.go) +\S`).FindAllStringSubmatch(unindented(t, "agent/doc.go"), -1) {
		listed = append(listed, m[1])
	}
	files, err := filepath.Glob("agent/*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if name := filepath.Base(file); name != "doc.go" && !strings.HasSuffix(name, "_test.go") {
			there = append(there, name)
		}
	}
	slices.Sort(listed)
	if !slices.Equal(listed, there) {
		t.Errorf("agent/doc.go lists\n%v\nand the files are\n%v", listed, there)
	}
}

// TestDocsLinks proves that the links between the documents lead to a file, and to a heading of it.
func TestDocsLinks(t *testing.T) {
	fence, link := regexp.MustCompile("(?s)```.*?```"), regexp.MustCompile(`\]\(([^)\s]+)\)`)
	var pages []string
	for _, pattern := range []string{"*.md", "docs/*.md", "examples/*.md", "examples/*/*.md", "examples/go/*/*.md"} {
		some, err := filepath.Glob(pattern)
		if err != nil || len(some) == 0 {
			t.Fatal("no pages", pattern, err)
		}
		pages = append(pages, some...)
	}
	for _, page := range pages {
		for _, m := range link.FindAllStringSubmatch(fence.ReplaceAllString(unindented(t, page), ""), -1) {
			if strings.Contains(m[1], ":") {
				continue // it leads out of the repository
			}
			file, heading, _ := strings.Cut(m[1], "#")
			if file = filepath.Join(filepath.Dir(page), filepath.FromSlash(file)); strings.HasPrefix(m[1], "#") {
				file = page
			}
			if _, err := os.Stat(file); err != nil {
				t.Errorf("%s: %v", page, err)
			} else if heading != "" && strings.HasSuffix(file, ".md") && !headings(t, file)[heading] {
				t.Errorf("%s: %s has no heading #%s", page, file, heading)
			}
		}
	}
}

// headings returns the names by which links lead to the headings of a page.
func headings(t *testing.T, page string) map[string]bool {
	t.Helper()
	text := regexp.MustCompile("(?s)```.*?```").ReplaceAllString(unindented(t, page), "")
	names := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^#+ +(.+)$`).FindAllStringSubmatch(text, -1) {
		title := regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`).ReplaceAllString(m[1], "$1")
		name := regexp.MustCompile(`[^\p{L}\p{N}_ -]`).ReplaceAllString(strings.ToLower(strings.TrimSpace(title)), "")
		names[strings.ReplaceAll(name, " ", "-")] = true
	}
	return names
}

// TestFormatNames proves that the table of names in docs/format.md says what the code has, and that
// it has each kind, and each reason of a stop, whose name in Go is another one.
func TestFormatNames(t *testing.T) {
	code := unindented(t, "session/codec.go") + unindented(t, "session/explain.go") + unindented(t, "session/edit.go") + unindented(t, "agent/plan/effect.go")
	listed := map[string]bool{}
	_, table, _ := strings.Cut(unindented(t, "docs/format.md"), "\n## Names in Go\n")
	table, _, _ = strings.Cut(table, "\n## ")
	for _, m := range regexp.MustCompile("(?m)^\\| `(\\w+)` \\| .* \\| `([\\w.]+)` \\|$").FindAllStringSubmatch(table, -1) {
		name := m[2][strings.LastIndex(m[2], ".")+1:]
		listed[m[1]+" "+name] = true
		is := regexp.MustCompile(`newKind\("` + m[1] + `", \(\*` + name + `\)|\b` + name + `\b[^\n]*["=:]` + m[1] + `"`)
		if !is.MatchString(code) {
			t.Errorf("docs/format.md: %s is not %s", m[2], m[1])
		}
	}
	for _, m := range regexp.MustCompile(`newKind\("(\w+)", \(\*(\w+)\)|\bStop(\w+)\s+StopReason = "(\w+)"`).FindAllStringSubmatch(code, -1) {
		text, name := m[1]+m[4], m[2]+m[3]
		if like := strings.ReplaceAll(text, "_", ""); strings.EqualFold(like, name) || listed[text+" "+name] || listed[text+" Stop"+name] {
			continue
		}
		t.Errorf("docs/format.md: the table does not say that %s is %s", text, name)
	}
}
