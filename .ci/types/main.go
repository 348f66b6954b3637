// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

// Types checks the types of all packages and tests of the module in this folder as they are
// built for other systems, such as darwin/arm64, without building anything: a build compiles
// SQLite for each system, which takes minutes. Of packages outside of the module it reads
// only what they declare.
//
//	go run .ci/types/main.go darwin/arm64 windows/amd64
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
)

// source is a package as go list tells it.
type source struct {
	ImportPath, Name, Dir string
	GoFiles, Imports      []string
	ImportMap             map[string]string
	Module                *struct {
		Main      bool
		GoVersion string
	}

	done    chan struct{} // closed when checked is set
	checked *types.Package
	errs    []error
}

func main() {
	failed := false
	for _, target := range os.Args[1:] {
		goos, goarch, _ := strings.Cut(target, "/")
		n, errs := check(goos, goarch)
		for _, err := range errs {
			fmt.Fprintf(os.Stderr, "%s: %v\n", target, err)
		}
		failed = failed || len(errs) > 0
		fmt.Printf("%s: %d packages and tests\n", target, n)
	}
	if failed {
		os.Exit(1)
	}
}

// check returns how many packages of the module it has read, and what is wrong with them.
func check(goos, goarch string) (n int, errs []error) {
	list := exec.Command("go", "list", "-deps", "-test", "-json=ImportPath,Name,Dir,GoFiles,Imports,ImportMap,Module", "./...")
	list.Env = append(os.Environ(), "GOOS="+goos, "GOARCH="+goarch, "CGO_ENABLED=0")
	list.Stderr = os.Stderr
	out, err := list.Output()
	if err != nil {
		return 0, []error{fmt.Errorf("go list: %w", err)}
	}
	packages := map[string]*source{"unsafe": {checked: types.Unsafe, done: make(chan struct{})}}
	close(packages["unsafe"].done)
	var order []*source // each after those that it imports
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		p := &source{done: make(chan struct{})}
		if err := d.Decode(p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return 0, []error{err}
		}
		if p.ImportPath == "unsafe" || strings.HasSuffix(p.ImportPath, ".test") {
			continue // go test writes the latter
		}
		packages[p.ImportPath] = p
		order = append(order, p)
	}
	var all sync.WaitGroup
	files, turn := token.NewFileSet(), make(chan struct{}, runtime.GOMAXPROCS(0))
	for _, p := range order {
		turn <- struct{}{}
		all.Go(func() {
			defer func() { close(p.done); <-turn }()
			p.check(files, packages, goarch)
		})
	}
	all.Wait()
	said := map[string]bool{} // a package is read again for tests that import it
	for _, p := range order {
		if !p.own() {
			continue
		}
		n++
		for _, err := range p.errs {
			if !said[err.Error()] {
				errs = append(errs, err)
			}
			said[err.Error()] = true
		}
	}
	if n == 0 {
		errs = append(errs, errors.New("no package was read"))
	}
	return n, errs
}

func (p *source) own() bool { return p.Module != nil && p.Module.Main }

func (p *source) check(files *token.FileSet, packages map[string]*source, goarch string) {
	fail := func(err error) { p.errs = append(p.errs, err) }
	var parsed []*ast.File
	for _, name := range p.GoFiles {
		if !filepath.IsAbs(name) {
			name = filepath.Join(p.Dir, name)
		}
		f, err := parser.ParseFile(files, name, nil, parser.SkipObjectResolution)
		if err != nil {
			fail(err)
		}
		if f != nil {
			parsed = append(parsed, f)
		}
	}
	conf := types.Config{
		Importer: importer(func(path string) (*types.Package, error) {
			if mapped, ok := p.ImportMap[path]; ok {
				path = mapped
			}
			q := packages[path]
			if q == nil {
				return nil, fmt.Errorf("go list did not name %s", path)
			}
			<-q.done // it stands before p, so it has had its turn
			return q.checked, nil
		}),
		IgnoreFuncBodies: !p.own(),
		Sizes:            types.SizesFor("gc", goarch),
		Error:            fail,
	}
	if p.Module != nil && p.Module.GoVersion != "" {
		conf.GoVersion = "go" + p.Module.GoVersion
	}
	path, _, _ := strings.Cut(p.ImportPath, " ")
	p.checked, _ = conf.Check(path, files, parsed, nil) // its errors went to fail
}

type importer func(path string) (*types.Package, error)

func (f importer) Import(path string) (*types.Package, error) { return f(path) }
