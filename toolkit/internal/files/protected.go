// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package files

import (
	"errors"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"

	jsonv2 "github.com/go-json-experiment/json"

	"github.com/antiphon-go/antiphon/agent/plan"
	"github.com/antiphon-go/antiphon/internal/jsonx"
	"github.com/antiphon-go/antiphon/internal/obeyed"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/tool"
)

// Some files are run or obeyed by other programs without another question, see package
// obeyed: whoever writes to them starts programs later. A person is asked about a
// write to them whatever the tool, even if its calls are allowed.

// Protect adds files and folders, by absolute paths, that a person is asked about
// before a tool writes to them. It must not be called while tools run.
func (f *Files) Protect(paths ...string) {
	for _, p := range paths {
		f.protected = append(f.protected, realPath(p))
	}
}

// ProtectedPaths returns the paths that were added, with their links resolved.
func (f *Files) ProtectedPaths() []string {
	if f == nil {
		return nil
	}
	return slices.Clone(f.protected)
}

// Protected returns the reason for asking about a write to an absolute path, or "".
// It looks at the path as it is written and as the links on the way lead.
func (f *Files) Protected(path string) string { return f.protects(path, realPath(path)) }

// protects is Protected for a path that leads to another one, without links.
func (f *Files) protects(path, real string) string {
	if name := obeyed.Name(path); name != "" {
		return "it writes to " + name + ", which other programs run or obey later without asking you"
	}
	return f.protectedAt(real)
}

// protectedAt is Protected for a path without links.
func (f *Files) protectedAt(real string) string {
	if name := obeyed.Name(real); name != "" {
		return "it writes to " + name + ", which other programs run or obey later without asking you"
	}
	for _, p := range f.protected {
		if lies(real, p) {
			return "it writes to " + filepath.Base(p) + ", which decides what this program does"
		}
	}
	return ""
}

// Holds returns the reason for asking about something that is put into a folder under a name that is not known, by
// its absolute path, or "": other programs run or obey some files of the folder, see Protected.
func (f *Files) Holds(path string) string {
	for _, at := range []string{path, realPath(path)} {
		if name := obeyed.Holds(at); name != "" {
			return "it writes to " + name + ", where other programs run or obey files later without asking you"
		}
	}
	return ""
}

// realPath resolves the links of a path as far as it exists.
func realPath(path string) string {
	rest := ""
	for at := path; ; at = filepath.Dir(at) {
		if real, err := filepath.EvalSymlinks(at); err == nil {
			return filepath.Join(real, rest)
		}
		if at == filepath.Dir(at) {
			return filepath.Clean(path)
		}
		rest = filepath.Join(filepath.Base(at), rest)
	}
}

// Home names the user's home folder, with what is private in it: in a root that contains it,
// a person is asked before a tool reads hidden files, and before it reads outside of the home
// folder. Without a home, "", nothing is private. It must not be called while tools run.
func (f *Files) Home(path string) {
	if f.home = path; path != "" {
		f.home = realPath(path)
	}
}

// AboveHome reports whether a root contains the home folder, so that places in it may be private.
func (f *Files) AboveHome() bool {
	return f.home != "" && slices.ContainsFunc(f.roots, func(r *openRoot) bool { return lies(f.home, r.real) })
}

// Private returns the reason for asking about a read of a place, or "". A root within the
// home folder is a project, which a person chose, also if it is in a hidden folder.
func (f *Files) Private(p Place) string { return f.privateAt(p, realPath(p.Path())) }

// privateAt is Private for a place that leads to a path without links.
func (f *Files) privateAt(p Place, real string) string {
	if f.home == "" || !lies(f.home, p.in().real) {
		return ""
	}
	if !lies(real, f.home) {
		if lies(f.home, real) { // a folder on the way
			return ""
		}
		return "it reads outside of your home folder: " + real
	}
	rel, _ := filepath.Rel(f.home, real) // it is there
	for i, name := range strings.Split(filepath.ToSlash(rel), "/") {
		system := i == 0 && (runtime.GOOS == "darwin" && strings.EqualFold(name, "Library") || runtime.GOOS == "windows" && strings.EqualFold(name, "AppData"))
		if system || strings.HasPrefix(name, ".") && name != "." && name != ".chatmd" {
			return "it reads hidden files of your home folder, where keys and passwords are: " + filepath.ToSlash(rel)
		}
	}
	return ""
}

// lies reports whether path is dir or in it.
func lies(path, dir string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(rel)
}

// guarded is a tool with an opinion about the files that it reads or writes to.
type guarded struct {
	tool.Tool
	files         *Files
	writes, reads func(call tool.Call) []string
}

// Unwrap returns the tool that is guarded, which checks its arguments.
func (g *guarded) Unwrap() tool.Tool { return g.Tool }

// Writes returns the absolute paths of the files that a call writes to.
func (g *guarded) Writes(call tool.Call) (paths []string) {
	for _, name := range g.writes(call) {
		if place, err := g.files.Resolve(name); err == nil {
			paths = append(paths, place.Path())
		}
	}
	return paths
}

// Guard adds to a tool that a person is asked about writes to protected files, and about reads of
// private ones, see [Files.Home]. The functions return the paths of a call, as the model wrote
// them: those that it writes to, and those that it only reads. A tool that writes to a file may
// also show what is in it, such as the lines that a patch does not fit.
func (f *Files) Guard(t tool.Tool, writes, reads func(call tool.Call) []string) tool.Tool {
	return &guarded{t, f, writes, reads}
}

// Option is for tools that use the roots: answers about them are bound to the roots, and
// rules about folders are held against the places that paths lead to.
func (f *Files) Option() tool.Option {
	return tool.InFolders(f, tool.Origin{Identity: f.Identity()})
}

// Annotations implements [tool.Annotated].
func (g *guarded) Annotations() tool.Annotations {
	a := tool.AnnotationsOf(g.Tool)
	a.Folders, a.Origin.Identity = g.files, g.files.Identity()
	return a
}

// Identity returns the roots for [tool.Origin].
func (f *Files) Identity() string {
	var parts []string
	for _, r := range f.roots {
		parts = append(parts, r.Name, r.abs[0])
	}
	return strings.Join(parts, "\x00")
}

// Approval asks about calls that write to protected files or read private ones, and refuses those whose path
// leads to one through a link: the tool would not follow the link after a yes, because it may lead elsewhere by
// then. The rules have their usual meaning.
func (g *guarded) Approval(call tool.Call, rules []session.Rule) (verdict session.Verdict, reason string) {
	p := plan.Policy{Rules: rules}
	if j := p.Judge(g.question(call), nil); j.Ruled {
		verdict, reason = j.Verdict, j.Reason
	}
	if verdict == session.Deny {
		return verdict, reason
	}
	paths := g.look(call)
	if why := g.led(paths); why != "" {
		return session.Deny, why
	}
	if why := g.why(paths); why != "" {
		return session.Ask, why
	}
	return verdict, reason
}

// seen is a path of a call, and what was there when it was looked at.
type seen struct {
	Place
	real   string // without links
	writes bool
}

// look looks at the paths of a call, each once, so that all that is said of a path is about the same place. It
// leaves out those that the call will fail with.
func (g *guarded) look(call tool.Call) (paths []seen) {
	writes := g.writes(call)
	for i, name := range slices.Concat(writes, g.reads(call)) {
		if place, err := g.files.Resolve(name); err == nil {
			paths = append(paths, seen{place, realPath(place.Path()), i < len(writes)})
		}
	}
	return paths
}

// led returns why a call is refused whose path leads to a protected or private place through a link, or "".
func (g *guarded) led(paths []seen) string {
	for _, p := range paths {
		if p.real != p.unlinked() && (g.files.privateAt(p.Place, p.real) != "" || p.writes && g.files.protectedAt(p.real) != "") {
			return "a symbolic link on the way leads to " + p.real + ", and is not followed there; name the file itself, which asks first"
		}
	}
	return ""
}

// why returns the reason for asking about the files of a call, or "".
func (g *guarded) why(paths []seen) string {
	var private []string // all of them, so that a question about one is none about another
	for _, p := range paths {
		if p.writes {
			if why := g.files.protects(p.Path(), p.real); why != "" {
				return why
			}
		}
		if why := g.files.privateAt(p.Place, p.real); why != "" && !slices.Contains(private, why) {
			private = append(private, why)
		}
	}
	return strings.Join(private, "; ")
}

// Within implements [tool.Folders]. A folder that is reached through a link is the folder
// that it leads to, so nothing is within the link: somebody may change where it leads.
func (f *Files) Within(folder, path string) (within, known bool) {
	in, err := f.Resolve(folder)
	if err != nil {
		return false, true
	}
	at, err := f.Resolve(path)
	if err != nil {
		return false, true // the call will fail
	}
	rel, err := filepath.Rel(in.unlinked(), realPath(at.Path()))
	return err == nil && filepath.IsLocal(rel), true
}

// Led reports whether a link within its root leads to another place.
func (p Place) Led() bool { return realPath(p.Path()) != p.unlinked() }

// unlinked returns the absolute path of a place. Only the links on the way to its root are
// resolved.
func (p Place) unlinked() string { return filepath.Join(p.in().real, p.OSPath()) }

// Suggest returns the usual suggestion about the folder of the call's path. It returns none
// for a call that is always asked about.
func (g *guarded) Suggest(call tool.Call) []session.Rule {
	if v, _ := g.Approval(call, nil); v == session.Ask {
		return nil
	}
	list := plan.Suggest(g.question(call))
	return slices.DeleteFunc(list, func(r session.Rule) bool { return r.Under == "" })
}

func (g *guarded) question(call tool.Call) plan.Question {
	return plan.Question{Tool: call.Name, Arguments: call.Arguments, Custom: call.Custom, Within: g.files.Within}
}

// PathOf returns the argument "path" of a call, for [Files.Guard].
func PathOf(call tool.Call) []string { return Texts(call.Arguments, "path") }

// None is for tools that only read or only write, for [Files.Guard].
func None(tool.Call) []string { return nil }

// Decode decodes the arguments of a call of one of the API's own tools, whose schemas no set
// checks. Rules and questions read the same arguments by the names of the members, so it
// refuses those that can be read in another way: a member that is there twice, or whose name
// differs in case, "_" or "-" only.
func Decode[T any](arguments string) (exact T, err error) {
	var loose T
	if err := jsonv2.Unmarshal([]byte(arguments), &loose, jsonv2.MatchCaseInsensitiveNames(true)); err != nil {
		return exact, err
	}
	err = jsonv2.Unmarshal([]byte(arguments), &exact)
	if err == nil && !reflect.DeepEqual(exact, loose) {
		err = errors.New("it can be read in two ways; write each member once, by the name that the API gives it")
	}
	return exact, err
}

// Texts returns the texts that an argument of a call may have for a tool: also the
// second of two by the same name, and one whose name differs in case.
func Texts(arguments, name string) (texts []string) {
	sc := jsonx.Scanner{Text: arguments}
	start := jsonx.SkipSpace(arguments, 0)
	if start == len(arguments) || arguments[start] != '{' {
		return nil
	}
	_, _ = sc.Object(start, func(member, value string) { // the call fails with what cannot be read
		if value[0] == '"' && strings.EqualFold(jsonx.Unquote(member), name) {
			texts = append(texts, jsonx.Unquote(value))
		}
	})
	return texts
}
