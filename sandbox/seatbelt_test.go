// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/antiphon-go/antiphon/internal/obeyed"
)

var update = flag.Bool("update", false, "write the files in testdata")

// seatbeltView is a view with what each profile has.
func seatbeltView(write ...string) view {
	v := view{read: []string{"/usr", "/opt/homebrew"}, write: write, hidden: []string{"/Users/ada/.ssh"}}
	if len(write) > 0 {
		v.fixed, v.pinned = []string{"/w/.git/config", "/w/.git/hooks"}, []string{"/w/.git"}
		v.hidden = append(v.hidden, "/w/keys/key")
	}
	return v
}

// TestSeatbeltProfiles compares the text of each profile with a file.
func TestSeatbeltProfiles(t *testing.T) {
	for name, text := range map[string]string{
		NameReadOnly:  seatbeltProfile(seatbeltView(), "/private/tmp/t", reach{}),
		NameWorkspace: seatbeltProfile(seatbeltView("/w"), "/private/tmp/t", reach{}),
		NameNetwork:   seatbeltProfile(seatbeltView("/w"), "/private/tmp/t", reach{all: true}),
		"hosts":       seatbeltProfile(seatbeltView("/w"), "/private/tmp/t", reach{port: "47128"}),
	} {
		path := filepath.Join("testdata", "seatbelt-"+name+".sb")
		if *update {
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil || strings.ReplaceAll(string(want), "\r\n", "\n") != text {
			t.Errorf("%s: %v\n%s", name, err, text)
		}
		if _, err := parseScheme(text); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// strange are names that a profile must not take for its own language.
var strange = []string{
	`quote"`, `"`, `")(allow default)("`, `back\slash`, `end\`, `\"`, `\n`, "new\nline", "\r", "\t", "(paren", ")", ";comment", "#|", "ünï cødé", "日本", "\u200b", "\u202e", "e\u0301",
	"\x01", "\x7f", "\xff\xfe", "  ", "a b", "'", "`", "$HOME", "%s", "*", "[a]", "^", "|", "#t", "\U0001F600", `\x41`, `\101`, `\u0041`,
}

// TestSeatbeltStrangePaths proves that a path of any name is one string in the profile, in
// the rules that it is meant for and in no other.
func TestSeatbeltStrangePaths(t *testing.T) {
	plain, err := parseScheme(seatbeltProfile(seatbeltView("/w"), "/t", reach{}))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range strange {
		checkStrange(t, name, len(plain))
	}
}

func FuzzSeatbeltPaths(f *testing.F) {
	for _, name := range strange {
		f.Add(name)
	}
	plain, err := parseScheme(seatbeltProfile(seatbeltView("/w"), "/t", reach{}))
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, name string) {
		if name == "" || name == "." || name == ".." || strings.ContainsAny(name, "/\x00") {
			return
		}
		checkStrange(t, name, len(plain))
	})
}

func checkStrange(t *testing.T, name string, rules int) {
	t.Helper()
	v := seatbeltView("/w")
	v.read, v.hidden, v.fixed = append(v.read, "/r/"+name), append(v.hidden, "/w/keys/h"+name), append(v.fixed, "/w/f"+name)
	list, err := parseScheme(seatbeltProfile(v, "/t", reach{}))
	if err != nil {
		t.Fatalf("%q: %v", name, err)
	}
	if len(list) != rules+5 {
		t.Errorf("%q: %d rules, not %d", name, len(list), rules+5)
	}
	for _, want := range [][]any{
		{"allow", "file-read*", []any{"subpath", text("/r/" + name)}},
		{"deny", "file-read*", "file-write*", []any{"subpath", text("/w/keys/h" + name)}},
		{"deny", "file-write*", []any{"subpath", text("/w/f" + name)}},
		{"deny", "file-write-unlink", []any{"literal", text("/w/f" + name)}},
		{"deny", "file-write-unlink", []any{"literal", text("/w/keys")}},
	} {
		if !slices.ContainsFunc(list, func(got any) bool { return alike(got, want) }) {
			t.Errorf("%q: there is no rule %q", name, want)
		}
	}
}

// TestSeatbeltOrder proves that what is denied is denied behind all that is allowed.
func TestSeatbeltOrder(t *testing.T) {
	list, err := parseScheme(seatbeltProfile(seatbeltView("/w"), "/t", reach{all: true}))
	if err != nil {
		t.Fatal(err)
	}
	denied := false
	for _, rule := range list[2:] { // behind the version and deny default
		switch rule.([]any)[0] {
		case "deny":
			denied = true
		case "allow":
			if denied {
				t.Errorf("%q stands behind what is denied", rule)
			}
		}
	}
}

// TestSeatbeltAbsent proves that what does not exist is protected, too: rules are about paths.
func TestSeatbeltAbsent(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the paths of this system are others")
	}
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, ".git"), 0o700); err != nil {
		t.Fatal(err)
	}
	v := view{write: []string{dir}, scan: obeyed.Look([]string{dir})}
	profile := seatbeltProfile(v, "/t", reach{})
	for _, name := range []string{"hooks", "config", "config.worktree", "commondir"} {
		if !strings.Contains(profile, "(deny file-write* (subpath "+seatbeltString(filepath.Join(dir, ".git", name))+"))\n") {
			t.Errorf("%s is not protected:\n%s", name, profile)
		}
	}
}

// text is a string of the language, as opposed to a symbol.
type text string

func alike(got any, want any) bool {
	list, ok := want.([]any)
	if !ok {
		return got == want
	}
	other, ok := got.([]any)
	return ok && slices.EqualFunc(other, list, alike)
}

// parseScheme reads the expressions of a text as the interpreter of the system does: a
// backslash in a string takes the meaning from the next character, except for the escapes
// that it knows, which a profile must not have.
func parseScheme(source string) ([]any, error) {
	p := scheme{source}
	var list []any
	for {
		p.space()
		if p.rest == "" {
			return list, nil
		}
		e, err := p.expression()
		if err != nil {
			return nil, err
		}
		list = append(list, e)
	}
}

type scheme struct{ rest string }

func (p *scheme) space() {
	for {
		p.rest = strings.TrimLeft(p.rest, " \n\t\r")
		if !strings.HasPrefix(p.rest, ";") {
			return
		}
		_, p.rest, _ = strings.Cut(p.rest, "\n")
	}
}

func (p *scheme) expression() (any, error) {
	switch p.space(); {
	case p.rest == "":
		return nil, errors.New("the text ends within an expression")
	case p.rest[0] == '(':
		p.rest = p.rest[1:]
		list := []any{}
		for {
			if p.space(); strings.HasPrefix(p.rest, ")") {
				p.rest = p.rest[1:]
				return list, nil
			}
			e, err := p.expression()
			if err != nil {
				return nil, err
			}
			list = append(list, e)
		}
	case p.rest[0] == '"':
		return p.string()
	case strings.ContainsRune(")'`,#|\\", rune(p.rest[0])):
		return nil, errors.New("not expected: " + p.rest)
	}
	end := strings.IndexAny(p.rest, " \n\t\r()\";")
	if end < 0 {
		end = len(p.rest)
	}
	symbol := p.rest[:end]
	p.rest = p.rest[end:]
	return symbol, nil
}

func (p *scheme) string() (any, error) {
	var b strings.Builder
	for i := 1; i < len(p.rest); i++ {
		switch c := p.rest[i]; c {
		case '"':
			p.rest = p.rest[i+1:]
			return text(b.String()), nil
		case '\\':
			if i++; i == len(p.rest) || p.rest[i] != '\\' && p.rest[i] != '"' {
				return nil, errors.New("an escape that versions may read differently")
			}
			b.WriteByte(p.rest[i])
		default:
			b.WriteByte(c)
		}
	}
	return nil, errors.New("a string without an end")
}
