// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package toolkit

import (
	"errors"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/toolkit/internal/kittest"
	"github.com/antiphon-go/antiphon/toolkit/shell"
	"github.com/antiphon-go/antiphon/toolkit/web"
)

func TestRegistry(t *testing.T) {
	if !slices.IsSorted(Names()) {
		t.Errorf("the registry is not sorted: %v", Names())
	}
	k := kittest.New(t)
	all := Deps{Files: k.Files, Shell: new(shell.Options), Web: new(web.Options), Asker: Nobody}
	for _, b := range Builtins() {
		for _, name := range append([]string{b.Name}, b.Aliases...) {
			own, err := New(name, all)
			if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			if f, ok := own.Definition().(*item.FunctionTool); ok && f.Name != name {
				t.Errorf("%s goes by the name %s", name, f.Name)
			}
			if got, ok := Lookup(name); !ok || got.Name != b.Name {
				t.Errorf("%s is taken for %s", name, got.Name)
			}
		}
	}
	if _, ok := Lookup("rm"); ok {
		t.Error("rm is a built-in tool")
	}
	if _, err := New("rm", all); err == nil || !strings.Contains(err.Error(), `no built-in tool "rm"`) {
		t.Error(err)
	}
	all.PatchForm = "diff"
	if _, err := New("apply_patch", all); err == nil || !strings.Contains(err.Error(), `form is "diff", want "custom", "function" or "api"`) {
		t.Error(err)
	}
}

// A tool is made of what it says that it needs, and the error names what lacks.
func TestNeeds(t *testing.T) {
	k := kittest.New(t)
	for _, b := range Builtins() {
		for _, lacking := range []Need{NeedRoots, NeedPrograms, NeedNetwork, NeedPerson} {
			s := Deps{Files: k.Files, Shell: new(shell.Options), Web: new(web.Options), Asker: Nobody}
			switch lacking {
			case NeedRoots:
				s.Files = nil
			case NeedPrograms:
				s.Shell = nil
			case NeedNetwork:
				s.Web = nil
			case NeedPerson:
				s.Asker = nil
			}
			_, err := New(b.Name, s)
			var missing *MissingError
			if !slices.Contains(b.Needs, lacking) {
				if err != nil {
					t.Errorf("%s without %s: %v", b.Name, lacking, err)
				}
			} else if !errors.As(err, &missing) || *missing != (MissingError{b.Name, lacking}) || !strings.Contains(err.Error(), b.Name+" needs "+string(lacking)) {
				t.Errorf("%s without %s: %v", b.Name, lacking, err)
			}
		}
	}
}

// The documents name every built-in tool, with what it needs, and no other.
func TestToolsAreDocumented(t *testing.T) {
	want := map[string]string{}
	for _, b := range Builtins() {
		var needs []string
		for _, n := range b.Needs {
			needs = append(needs, string(n))
		}
		want[b.Name] = strings.Join(b.Aliases, ", ") + ": " + strings.Join(needs, ", ")
	}
	got := map[string]string{}
	row := regexp.MustCompile("(?m)^\\| `(\\w+)`(?:, also `(\\w+)`)? \\| ([^|]+) \\|")
	for _, m := range row.FindAllStringSubmatch(document(t, "tools.md"), -1) {
		got[m[1]] = m[2] + ": " + m[3]
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("docs/tools.md (-registry +page):\n%s", diff)
	}

	_, list, _ := strings.Cut(document(t, "chatmarkdown.md"), "\nBuilt-in tools: ")
	list, _, found := strings.Cut(list, "\n### ")
	if !found {
		t.Fatal("docs/chatmarkdown.md has no list of built-in tools")
	}
	var named []string
	for _, m := range regexp.MustCompile("`(\\w+)`").FindAllStringSubmatch(list, -1) {
		b, known := Lookup(m[1])
		if !known {
			t.Errorf("docs/chatmarkdown.md names %s among the built-in tools", m[1])
		}
		named = append(named, m[1], b.Name)
	}
	for _, b := range Builtins() {
		for _, name := range append([]string{b.Name}, b.Aliases...) {
			if !slices.Contains(named, name) {
				t.Errorf("docs/chatmarkdown.md does not name the built-in tool %s", name)
			}
		}
	}
}

func document(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile("../docs/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
