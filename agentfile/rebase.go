// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agentfile

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/antiphon-go/antiphon/chatmd"
	"github.com/antiphon-go/antiphon/rehearsal"
)

// head returns the text that a transcript of the file begins with in another
// folder: the file's, with its relative paths adjusted so that they mean the
// same. What agents and the network said stands in their place, for the
// conversation is to go on with just that.
// So does what imports bring that is found by way of the prompt's folder.
func (f *File) head(from places, to string) string {
	return f.Doc.Copy(chatmd.Copying{
		Attr: moving(from, to),
		Element: func(e chatmd.Element) (string, bool) {
			said, ok := f.fetched[placeOf(e.Base, e.Offset)]
			return inPlaceOf(e, said), ok
		},
		Bound: func(e chatmd.Element) bool {
			_, said := f.fetched[placeOf(e.Base, e.Offset)]
			return said || bound(e, from, to)
		},
	})
}

// bound reports whether an element of an imported file names something by way of
// the prompt's folder or the workspace, once the prompt is in another folder.
func bound(e chatmd.Element, from places, to string) bool {
	if from.promptDir == to {
		return false
	}
	here := from.of(e.Base)
	there := here
	there.promptDir = to
	return slices.ContainsFunc(e.Attrs, func(a chatmd.Attr) bool {
		var full string
		switch {
		case isPayload(e, a):
			full, _ = here.expand(a.Value)
		case isSource(e, a), e.Tag == "tool" && a.Name == "agent":
			full, _ = here.find(a.Value)
		case e.Tag == "read" && a.Name == "path":
			full, _ = here.expand(a.Value)
		default:
			return false
		}
		alone, _ := there.expand(a.Value)
		return full != alone
	})
}

// Declarations returns what the file and its imports declare, without messages:
// what a transcript at the path out begins with if the conversation comes from
// elsewhere, such as the log of a session.
func (f *File) Declarations(out string, o Options) (string, error) {
	from, err := placesOf(f.Path, o)
	if err != nil {
		return "", err
	}
	to, err := placesOf(out, o)
	if err != nil {
		return "", err
	}
	return f.Doc.Declarations(moving(from, to.promptDir)), nil
}

// moving returns the edit of a file that is moved to another folder.
func moving(from places, to string) func(chatmd.Element, chatmd.Attr) (string, bool) {
	return func(e chatmd.Element, a chatmd.Attr) (string, bool) {
		p := from.of(e.Base)
		if p.toolDir == to && p.promptDir == to {
			return "", false
		}
		switch {
		case isPayload(e, a):
			return movedPath(a.Value, p, to)
		case isSource(e, a), e.Tag == "tool" && a.Name == "agent":
			return movedSource(a.Value, p, to)
		case e.Tag == "read" && a.Name == "path":
			return movedPath(a.Value, p, to)
		case e.Tag == "config" && a.Name == "model":
			return movedScript(a.Value, p.toolDir, to)
		case e.Tag == chatmd.RunTag && a.Name == "agent":
			return moved(a.Value, p.toolDir, to)
		}
		return "", false
	}
}

// inPlaceOf is what stands in a transcript in place of an element: a remark that
// names its source, and what the source said.
func inPlaceOf(e chatmd.Element, said string) string {
	remark := ""
	if src := e.Value("src"); !strings.Contains(src, "--") && !strings.ContainsAny(src, ">\n\r") {
		remark = "<!-- " + e.Tag + " " + src + " -->"
	}
	return remark + chatmd.Fence(said)
}

// movedSource is movedPath for a file that is looked for in several folders.
func movedSource(path string, from places, to string) (string, bool) {
	full, err := from.find(path)
	first, _ := from.expand(path)
	if err != nil || full == first {
		return movedPath(path, from, to)
	}
	return moved(full, "", to)
}

// moved returns a relative path as seen from another folder; without a from, the
// path is absolute.
func moved(path, from, to string) (string, bool) {
	if path == "" || from != "" && filepath.IsAbs(path) {
		return "", false
	}
	abs := filepath.Join(from, filepath.FromSlash(path))
	rel, err := filepath.Rel(to, abs)
	if err != nil {
		return abs, true // on another volume
	}
	return filepath.ToSlash(rel), true
}

// movedPath is moved for a path that may begin with a variable.
func movedPath(path string, from places, to string) (string, bool) {
	name, rest, ok := cutVariable(path)
	switch {
	case !ok:
		return moved(path, from.toolDir, to)
	case name == "tool_dir":
		return moved("./"+rest, from.toolDir, to)
	case name == "prompt_dir":
		return moved("./"+rest, from.promptDir, to)
	}
	return "", false
}

func movedScript(model, from, to string) (string, bool) {
	script, rehearsed := rehearsal.ParseModel(model)
	if !rehearsed {
		return "", false
	}
	path, ok := moved(script, from, to)
	return rehearsal.Model + ":" + path, ok
}
