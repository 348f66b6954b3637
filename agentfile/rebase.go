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

// head returns the beginning of a transcript of the file in another folder: the text
// of the file with relative paths adjusted so that they still name the same files.
// Answers of agents and documents from the network replace their elements, because
// the conversation must continue with exactly these texts. Imports that are found
// through the prompt's folder are replaced by their content too.
func (f *File) head(from places, to string) string {
	return f.doc().Copy(chatmd.Copying{
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

// bound reports whether an element of an imported file names something relative to
// the prompt's folder or the workspace, which changes when the prompt is in another
// folder.
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

// Declarations returns the declarations of the file and its imports, without
// messages: the beginning of a transcript at the path out whose conversation comes
// from elsewhere, such as the log of a session.
func (f *File) Declarations(out string, o Options) (string, error) {
	from, err := placesOf(f.Path, o)
	if err != nil {
		return "", err
	}
	to, err := placesOf(out, o)
	if err != nil {
		return "", err
	}
	return f.doc().Declarations(moving(from, to.promptDir)), nil
}

// moving returns the edit function for a file that is moved to another folder.
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

// inPlaceOf returns the replacement of an element in a transcript: a comment that
// names its source, and the source's text.
func inPlaceOf(e chatmd.Element, said string) string {
	remark := ""
	if src := e.Value("src"); !strings.Contains(src, "--") && !strings.ContainsAny(src, ">\n\r") {
		remark = "<!-- " + e.Tag + " " + src + " -->"
	}
	return remark + chatmd.Fence(said)
}

// movedSource is like movedPath for a file that is searched in several folders.
func movedSource(path string, from places, to string) (string, bool) {
	full, err := from.find(path)
	first, _ := from.expand(path)
	if err != nil || full == first {
		return movedPath(path, from, to)
	}
	return moved(full, "", to)
}

// moved returns a path relative to another folder. If from is "", the path is
// absolute.
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

// movedPath is like moved for a path that may begin with a variable.
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
