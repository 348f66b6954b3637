// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

// Package kittest supports tests of tools. It provides tools over a temporary
// directory and calls them as a model does.
package kittest

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/antiphon-go/antiphon/tool"
	"github.com/antiphon-go/antiphon/tool/output"
	"github.com/antiphon-go/antiphon/toolkit/internal/files"
)

// Args are the arguments of a tool call.
type Args map[string]any

// JSON returns arguments in JSON, as a model writes them.
func JSON(t testing.TB, a Args) string {
	t.Helper()
	b, err := json.Marshal(a)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// WantError checks that a call failed with an error text that contains want.
func WantError(t testing.TB, o tool.Outcome, want string) {
	t.Helper()
	if !o.Failed || !strings.Contains(o.Error, want) {
		t.Errorf("got failed=%v, error %q, content %.300q; want an error with %q", o.Failed, o.Error, o.Content.Text, want)
	}
}

// Kit is a set of tools over a temporary directory, which is their first root.
type Kit struct {
	T     *testing.T
	Dir   string
	Files *files.Files
	Set   *tool.Set
}

// New returns a kit without tools. Its files have the roots in more besides the
// temporary directory.
func New(t *testing.T, more ...files.Root) *Kit {
	t.Helper()
	k := &Kit{T: t, Dir: t.TempDir()}
	var err error
	if k.Files, err = files.Open(append([]files.Root{{Path: k.Dir}}, more...)...); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = k.Files.Close() })
	return k
}

// Add adds a tool to the kit. It takes the results of the tool's constructor.
func (k *Kit) Add(own tool.Tool, err error) {
	k.T.Helper()
	if err != nil {
		k.T.Fatal(err)
	}
	tools := []tool.Tool{own}
	if k.Set != nil {
		for _, other := range k.Set.All() {
			tools = append(tools, other)
		}
	}
	if k.Set, err = tool.NewSet(tools...); err != nil {
		k.T.Fatal(err)
	}
}

// Write writes a file and returns its absolute path.
func (k *Kit) Write(name, content string) string {
	k.T.Helper()
	p := filepath.Join(k.Dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
		k.T.Fatal(err)
	}
	if err := os.WriteFile(p, []byte(content), 0o644); err != nil {
		k.T.Fatal(err)
	}
	return p
}

// Symlink creates a symbolic link. It skips the test if the system has none.
func (k *Kit) Symlink(target, name string) {
	k.T.Helper()
	if err := os.Symlink(target, filepath.Join(k.Dir, filepath.FromSlash(name))); err != nil {
		k.T.Skipf("no symbolic links here: %v", err)
	}
}

// Content returns the content of a file.
func (k *Kit) Content(name string) string {
	k.T.Helper()
	b, err := os.ReadFile(filepath.Join(k.Dir, filepath.FromSlash(name)))
	if err != nil {
		k.T.Fatal(err)
	}
	return string(b)
}

// Tree returns the content of all files below the kit's directory, by path.
func (k *Kit) Tree() map[string]string {
	k.T.Helper()
	return Tree(k.T, k.Dir)
}

// Tree returns the content of all files below a directory, by path. The path of a
// folder ends with a slash, and a symbolic link has the content "link".
func Tree(t interface{ Fatal(...any) }, dir string) map[string]string {
	tree := map[string]string{}
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(dir, p)
		switch {
		case d.IsDir():
			if rel != "." {
				tree[filepath.ToSlash(rel)+"/"] = ""
			}
		case d.Type()&fs.ModeSymlink != 0:
			tree[filepath.ToSlash(rel)] = "link"
		default:
			b, err := os.ReadFile(p)
			if err != nil {
				return err
			}
			tree[filepath.ToSlash(rel)] = string(b)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

// NoLeftovers checks that no temporary files are left.
func (k *Kit) NoLeftovers() {
	k.T.Helper()
	left, err := filepath.Glob(filepath.Join(k.Dir, ".antiphon-*"))
	if err != nil || len(left) > 0 {
		k.T.Errorf("left behind: %v %v", left, err)
	}
}

// Call calls a tool.
func (k *Kit) Call(name string, a Args) tool.Outcome {
	k.T.Helper()
	return k.Shaped(name, a, output.Policy{})
}

// Shaped calls a tool with an output policy.
func (k *Kit) Shaped(name string, a Args, shape output.Policy) tool.Outcome {
	k.T.Helper()
	return k.Set.Invoke(k.T.Context(), tool.Call{Name: name, Arguments: JSON(k.T, a)}, shape)
}

// OK calls a tool, checks that the call succeeds, and returns its output.
func (k *Kit) OK(name string, a Args) string {
	k.T.Helper()
	o := k.Call(name, a)
	if o.Failed {
		k.T.Fatalf("%s %v: %s", name, a, o.Error)
	}
	return o.Content.Display()
}

// Fails calls a tool and checks that it fails with an error text that contains want
// and does not reveal where the root is.
func (k *Kit) Fails(name string, a Args, want string) {
	k.T.Helper()
	o := k.Call(name, a)
	if !o.Failed {
		k.T.Errorf("%s %v: got %q, want a failure", name, a, o.Content.Display())
		return
	}
	if !strings.Contains(o.Error, want) {
		k.T.Errorf("%s %v:\n got %s\nwant %s", name, a, o.Error, want)
	}
	if strings.Contains(o.Error, k.Dir) && !strings.Contains(o.Error, "is outside of") {
		k.T.Errorf("%s %v tells where the root is: %s", name, a, o.Error)
	}
}
