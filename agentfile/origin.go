// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agentfile

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/antiphon-go/antiphon/chatmd"
	"github.com/antiphon-go/antiphon/chatmd/transcript"
	"github.com/antiphon-go/antiphon/session"
)

// OtherAgentError means that a transcript was begun by another agent's file than the
// given one. The transcript's own agent would answer, and not the given file's.
type OtherAgentError struct {
	// Transcript is the file, and Agent the agent's file that was given.
	Transcript, Agent string
	// Begun is the file that began it, relative to the transcript's folder. It is
	// empty if the transcript has no mark of a run: then it may itself be an agent's
	// file.
	Begun string
}

// Error includes a hint about the alternatives.
func (e *OtherAgentError) Error() string {
	const hint = "\n  hint: to continue it, run %s --in-place; for a new conversation, give another file"
	if e.Begun == "" {
		return fmt.Sprintf("%s: not a transcript of %s; the model and tools of the transcript would be used"+hint, e.Transcript, e.Agent, e.Transcript)
	}
	return fmt.Sprintf("%s: the transcript was begun by %s, not %s; the model and tools of the transcript would be used"+hint, e.Transcript, e.Begun, e.Agent, e.Transcript)
}

// checkOrigin returns an error for a transcript that another agent's file began. It
// returns a warning if the transcript has runs that do not name the file, or if the
// file has changed since.
func (f *File) checkOrigin(path, out string, src []byte, o Options) (warning, err error) {
	own, err := read(path)
	if err != nil {
		return nil, err
	}
	if o.KeepAgent || sameFile(path, out) {
		return nil, nil
	}
	hash, begun, named, hashed, ran := session.Fingerprint(string(own)), "", false, false, false
	for _, e := range f.doc().Elements {
		if e.Tag != chatmd.RunTag {
			continue
		}
		ran = true
		if s, err := transcript.SetupOf(e); err == nil && s != nil && len(s.Files) > 0 {
			if hashed = true; s.Files[0].Hash == hash {
				return nil, nil
			}
		}
		agent := e.Value("agent")
		if agent == "" {
			continue
		}
		if begun == "" {
			begun = agent
		}
		named = named || sameFile(path, besides(out, agent))
	}
	switch {
	case named && !hashed:
	case named:
		return fmt.Errorf("%s has changed since it began %s; the transcript's own model and tools are used [warning]", path, out), nil
	case begun != "":
		return nil, &OtherAgentError{Transcript: out, Agent: path, Begun: begun}
	case bytes.HasPrefix(src, bytes.TrimSpace(own)):
	case !ran: // it may be an agent's file, which must not be run or written to by mistake
		return nil, &OtherAgentError{Transcript: out, Agent: path}
	default:
		return fmt.Errorf("%s does not name the agent's file that began it; the transcript's own model and tools are used, not those of %s [warning]", out, path), nil
	}
	return nil, nil
}

// namesAgent reports whether a run in the file names the agent's file.
func (f *File) namesAgent() bool {
	return slices.ContainsFunc(f.doc().Elements, func(e chatmd.Element) bool { return e.Tag == chatmd.RunTag && e.Value("agent") != "" })
}

// besides returns the path of a file that another file names by a relative path.
func besides(file, name string) string {
	name = filepath.FromSlash(name)
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(filepath.Dir(file), name)
}

// asSeenFrom returns the path of a file relative to another file's folder.
func asSeenFrom(file, path string) string {
	dir, err1 := filepath.Abs(filepath.Dir(file))
	abs, err2 := filepath.Abs(path)
	rel, err3 := filepath.Rel(dir, abs)
	if err1 != nil || err2 != nil || err3 != nil {
		return filepath.ToSlash(path)
	}
	return filepath.ToSlash(rel)
}

func sameFile(a, b string) bool {
	infoA, errA := os.Stat(a)
	infoB, errB := os.Stat(b)
	return errA == nil && errB == nil && os.SameFile(infoA, infoB)
}

// hashes returns the hashes of the file and its imports, for the log. Of a
// transcript, only the part before the first run is hashed. Names are relative to
// the file's folder, because logs are passed on and should not reveal where their
// author keeps files.
func (f *File) hashes() []session.Hashed {
	own := f.doc().Source()
	for _, e := range f.doc().Elements {
		if e.Tag == chatmd.RunTag {
			own = own[:e.Offset]
			break
		}
	}
	list := []session.Hashed{{Name: filepath.Base(f.Path), Hash: session.Fingerprint(own)}}
	for _, src := range f.doc().Imports {
		name := asSeenFrom(f.Path, src.Base)
		if strings.HasPrefix(name, "/") {
			name = filepath.Base(src.Base)
		}
		list = append(list, session.Hashed{Name: name, Hash: session.Fingerprint(string(src.Text))})
	}
	return list
}
