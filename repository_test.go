// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package antiphon_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/antiphon-go/antiphon"

// levels is the list of packages. A package imports only packages of lower
// levels: arrows point down.
var levels = map[string]int{
	"internal/jsonx":           -3,
	"internal/nils":            -3,
	"internal/lazyregexp":      -3,
	"internal/nonsense":        0, // a generator, and tests of all that is exported
	"internal/record":          -2,
	".":                        0,
	"item":                     -1,
	"api":                      0,
	"internal/sse":             0,
	"internal/filelock":        0,
	"internal/homedir":         0,
	"internal/excerpt":         0,
	"internal/spool":           -1,
	"internal/publicip":        0,
	"internal/obeyed":          0,
	"internal/reach":           0,
	"internal/private":         -1,
	"internal/traceparent":     0,
	"internal/typo":            -1,
	"internal/tui":             0,
	"internal/words":           0,
	"internal/variables":       1,
	"endpoint":                 0,
	"tool/output":              1,
	"tool/picture":             0,
	"tool":                     2,
	"chatmd":                   1,
	"session":                  1,
	"internal/transport":       1,
	"agent/plan":               2,
	"agent":                    3,
	"chatmd/transcript":        2,
	"session/queue":            2,
	"session/store":            2,
	"internal/lease":           2,
	"internal/memstore":        3, // test support, imported by tests alone
	"session/sqlstore":         3,
	"session/storetest":        3, // test support, imported by tests alone
	"dialect":                  2,
	"dialect/dialecttest":      3, // test support, imported by tests alone
	"completions":              3,
	"responses":                3,
	"platform":                 3,
	"sandbox":                  3,
	"decode":                   4,
	"trust":                    2,
	"audit":                    3,
	"mcpbridge":                4,
	"eventlog":                 4,
	"tracing":                  4,
	"server":                   4,
	"export":                   4,
	"rehearsal":                5,
	"server/access":            5,
	"server/internal/kept":     5,
	"server/internal/estimate": 4,
	"server/tokens":            6,
	"agenttest":                5,
	"agentfile":                6,
	"host":                     7,
	"internal/show":            8,
	"internal/person":          9,
	"worker":                   8,
	"server/agents":            9,
	"server/gateway":           8,
	"server/mcpserver":         8,
	"server/sessions":          9,
	"internal/attach":          10,
	"internal/chat":            11,
	"cmd/antiphon":             12,
	"examples/mcp/server":      0,
	"examples/handover":        6,
	"examples/approve-http":    6,
	"examples/chat":            6,
	"examples/evaluation":      6,
	"examples/guard":           6,
	"internal/apispec":         8, // test support, imported by tests alone
	"internal/compliance":      9, // test support, imported by tests alone
	"internal/packagemap":      0, // a program that draws the packages
	"internal/torture":         8, // nothing but tests
	"internal/realservers":     0, // models for tests with real servers, and these tests

	"toolkit/internal/wording": 2,
	"toolkit/internal/pixels":  2,
	"toolkit/internal/files":   3,
	"toolkit/internal/kittest": 4, // test support, imported by tests alone
	"toolkit/patch":            4,
	"toolkit/web":              4,
	"toolkit/search":           4,
	"toolkit/shell":            4,
	"toolkit":                  5,
}

// foreign lists what a package may import from other modules. What is not
// listed here imports the standard library only.
var foreign = map[string][]string{
	"item":                 {"github.com/go-json-experiment/json"},
	"endpoint":             {"github.com/go-json-experiment/json"},
	"chatmd":               {"github.com/go-json-experiment/json"},
	"chatmd/transcript":    {"github.com/go-json-experiment/json"},
	"responses":            {"github.com/go-json-experiment/json", "github.com/coder/websocket"},
	"server":               {"github.com/go-json-experiment/json", "github.com/coder/websocket"},
	"rehearsal":            {"github.com/go-json-experiment/json"},
	"completions":          {"github.com/go-json-experiment/json"},
	"agenttest":            {"github.com/go-json-experiment/json", "github.com/coder/websocket"},
	"tool/picture":         {"golang.org/x/image"},
	"trust":                {"github.com/go-json-experiment/json", "golang.org/x/net"},
	"audit":                {"github.com/go-json-experiment/json"},
	"agent":                {"github.com/go-json-experiment/json"},
	"agent/plan":           {"github.com/go-json-experiment/json"},
	"worker":               {"github.com/robfig/cron", "modernc.org/sqlite"},
	"tracing":              {"go.opentelemetry.io/otel"},
	"mcpbridge":            {"github.com/modelcontextprotocol/go-sdk", "github.com/go-json-experiment/json"},
	"agentfile":            {"github.com/go-json-experiment/json"},
	"decode":               {"github.com/ledongthuc/pdf"},
	"export":               {"github.com/go-json-experiment/json", "github.com/yuin/goldmark"},
	"tool":                 {"github.com/go-json-experiment/json"},
	"internal/filelock":    {"golang.org/x/sys"},
	"internal/reach":       {"github.com/go-json-experiment/json"},
	"sandbox":              {"golang.org/x/sys"},
	"session":              {"github.com/go-json-experiment/json"},
	"session/sqlstore":     {"golang.org/x/crypto"},
	"host":                 {"github.com/go-json-experiment/json"},
	"server/access":        {"github.com/go-json-experiment/json"},
	"server/agents":        {"github.com/go-json-experiment/json"},
	"server/gateway":       {"github.com/go-json-experiment/json"},
	"server/internal/kept": {"github.com/go-json-experiment/json"},
	"server/tokens":        {"github.com/coreos/go-oidc"},
	"server/sessions":      {"github.com/go-json-experiment/json"},
	"server/mcpserver":     {"github.com/go-json-experiment/json", "github.com/modelcontextprotocol/go-sdk"},
	"cmd/antiphon":         {"github.com/go-json-experiment/json", "github.com/alecthomas/kong", "golang.org/x/term", "github.com/jackc/pgx", "modernc.org/sqlite", "github.com/zalando/go-keyring", "github.com/prometheus/client_golang", "go.opentelemetry.io/otel"},
	"examples/handover":    {"modernc.org/sqlite"},
	"examples/mcp/server":  {"github.com/modelcontextprotocol/go-sdk"},
	"examples/go/mcp":      {"github.com/modelcontextprotocol/go-sdk"},
	"examples/go/traced":   {"go.opentelemetry.io/otel"},
	"examples/go/approve":  {"modernc.org/sqlite"},
	"internal/person":      {"github.com/go-json-experiment/json"},
	"internal/show":        {"github.com/go-json-experiment/json", "golang.org/x/term"},
	"internal/tui":         {"github.com/charmbracelet/ultraviolet", "github.com/charmbracelet/x/ansi", "golang.org/x/term", "golang.org/x/sys"},
	"internal/words":       {"golang.org/x/text"},
	"internal/apispec":     {"github.com/santhosh-tekuri/jsonschema", "golang.org/x/text"},
	"internal/compliance":  {"github.com/coder/websocket"},

	"toolkit/internal/kittest": {"github.com/go-json-experiment/json"},
	"toolkit/internal/files":   {"github.com/go-json-experiment/json"},
	"toolkit/shell":            {"github.com/go-json-experiment/json", "golang.org/x/sys", "mvdan.cc/sh"},
	"toolkit/web":              {"golang.org/x/net"},
}

// goFiles calls visit for every Go file of the module.
func goFiles(t *testing.T, visit func(dir, file string)) {
	t.Helper()
	err := filepath.WalkDir(".", func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if name := d.Name(); p != "." && (name == "testdata" || name == "bench" || name == "contrib" || strings.HasPrefix(name, ".")) {
				return filepath.SkipDir
			}
			return nil
		}
		if strings.HasSuffix(p, ".go") {
			visit(filepath.ToSlash(filepath.Dir(p)), p)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func importsOf(t *testing.T, file string) []string {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, imp := range f.Imports {
		p, err := strconv.Unquote(imp.Path.Value)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, p)
	}
	return list
}

// TestImportArrows proves that packages import only what stands below them.
func TestImportArrows(t *testing.T) {
	goFiles(t, func(dir, file string) {
		level, known := levels[dir]
		if strings.HasPrefix(dir, "examples/go/") {
			level, known = 6, true // as the other programs
		}
		if !known {
			t.Errorf("%s: package %s is not in the list of packages; a new one needs a reason in docs/architecture.md", file, dir)
			return
		}
		if strings.HasSuffix(file, "_test.go") {
			return
		}
		for _, imp := range importsOf(t, file) {
			checkArrow(t, file, dir, level, imp)
		}
	})
}

// TestNothingCompilesAtTheStart proves that no regular expression is compiled at each start of
// a program that links a package.
func TestNothingCompilesAtTheStart(t *testing.T) {
	programs := []string{"internal/lazyregexp", "internal/packagemap"}
	goFiles(t, func(dir, file string) {
		if strings.HasSuffix(file, "_test.go") || strings.HasPrefix(dir, "examples/") || slices.Contains(programs, dir) {
			return
		}
		if text, err := os.ReadFile(file); err != nil || strings.Contains(string(text), "regexp.MustCompile(") {
			t.Errorf("%s: lazyregexp.New is in place of regexp.MustCompile (%v)", file, err)
		}
	})
}

func checkArrow(t *testing.T, file, dir string, level int, imp string) {
	t.Helper()
	if own, ok := strings.CutPrefix(imp, module+"/"); ok {
		if to, known := levels[own]; !known || to >= level {
			t.Errorf("%s: %s (level %d) imports %s (level %d): arrows point down", file, dir, level, own, to)
		}
		return
	}
	first, _, _ := strings.Cut(imp, "/")
	if !strings.Contains(first, ".") {
		return // the standard library
	}
	allowed := func(m string) bool { return imp == m || strings.HasPrefix(imp, m+"/") }
	if !slices.ContainsFunc(foreign[dir], allowed) {
		t.Errorf("%s: %s may not import %s", file, dir, imp)
	}
}

// goFileName fits the names of Go files that a page names.
var goFileName = regexp.MustCompile("`([a-z_/]+\\.go)`")

// TestArchitecturePage proves that the files which docs/architecture.md names are
// there, each by its path from the root.
func TestArchitecturePage(t *testing.T) {
	page, err := os.ReadFile("docs/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	found := goFileName.FindAllSubmatch(page, -1)
	if len(found) < 10 {
		t.Fatalf("%d files are named", len(found))
	}
	for _, m := range found {
		if _, err := os.Stat(string(m[1])); err != nil {
			t.Error(err)
		}
	}
}

// TestPackagePicture proves that the picture of the packages has all of them, but for
// the tests' own, and none that is gone: make picture draws it again.
func TestPackagePicture(t *testing.T) {
	picture, err := os.ReadFile("docs/packages.svg")
	if err != nil {
		t.Fatal(err)
	}
	drawn := map[string]bool{}
	for _, m := range regexp.MustCompile(`>([a-z/]+)</text>`).FindAllSubmatch(picture, -1) {
		drawn[string(m[1])] = true
	}
	for dir := range levels {
		own := dir == "." || strings.HasPrefix(dir, "examples/")
		for _, tests := range []string{"internal/apispec", "internal/compliance", "internal/memstore", "internal/nonsense", "internal/packagemap", "internal/realservers", "internal/torture", "toolkit/internal/kittest"} {
			own = own || dir == tests
		}
		if !own && !drawn[dir] {
			t.Errorf("%s is not in docs/packages.svg", dir)
		}
		delete(drawn, dir)
	}
	for dir := range drawn {
		t.Errorf("docs/packages.svg has %s, which is not a package", dir)
	}
}

// TestLicenceHeaders proves that every Go file says whose it is.
func TestLicenceHeaders(t *testing.T) {
	const header = "// Copyright 2026 The Antiphon Authors\n// SPDX-License-Identifier: Apache-2.0\n\n"
	goFiles(t, func(_, file string) {
		src, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(string(src), header) {
			t.Errorf("%s: the licence header is missing", file)
		}
	})
}

// TestReadmeProgram proves that the program in the README is one that is built:
// the benchmarks build it to weigh it.
func TestReadmeProgram(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(readme), "```go\n")
	shown, _, found := strings.Cut(rest, "```")
	program, err := os.ReadFile(filepath.FromSlash("bench/umbrella/main.go"))
	if err != nil {
		t.Fatal(err)
	}
	if !found || !strings.HasSuffix(string(program), ")\n\n"+shown) {
		t.Errorf("the program in the README is not bench/umbrella/main.go:\n%s", shown)
	}
}

// TestPackagesExist proves that the list holds no package that is gone.
func TestPackagesExist(t *testing.T) {
	for dir := range levels {
		files, err := filepath.Glob(path.Join(dir, "*.go"))
		if err != nil || len(files) == 0 {
			t.Errorf("package %s is listed and has no files", dir)
		}
	}
}

// exported is how many names of their own the packages export that users open first.
// A new name is a promise: raise a number with the reason in the commit.
var exported = map[string]int{"agent": 141, "tool": 81, "session": 189, "item": 264, "responses": 11, "host": 81, "platform": 44}

// TestExportedNames proves that the packages that users open do not grow unnoticed:
// types, functions, constants and variables, without methods and fields.
func TestExportedNames(t *testing.T) {
	for dir, want := range exported {
		got := 0
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			if name := e.Name(); strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go") {
				file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(dir, name), nil, parser.SkipObjectResolution)
				if err != nil {
					t.Fatal(err)
				}
				got += exportedIn(file)
			}
		}
		if got != want {
			t.Errorf("package %s exports %d names, not %d", dir, got, want)
		}
	}
}

func exportedIn(file *ast.File) (n int) {
	count := func(names ...*ast.Ident) {
		for _, name := range names {
			if name.IsExported() {
				n++
			}
		}
	}
	for _, d := range file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Recv == nil {
				count(d.Name)
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch spec := spec.(type) {
				case *ast.TypeSpec:
					count(spec.Name)
				case *ast.ValueSpec:
					count(spec.Names...)
				}
			}
		}
	}
	return n
}
