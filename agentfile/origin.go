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

// OtherAgentError says that a transcript was begun by another agent's file than
// the one that is to go on with it. Its own agent would answer, and not that file's.
type OtherAgentError struct {
	// Transcript is the file, Agent the one that is to go on with it.
	Transcript, Agent string
	// Begun is the file that began it, as seen from the transcript's folder. It is
	// empty if no run is marked in the transcript: then it may be an agent's file itself.
	Begun string
}

// Error says what else can be done.
func (e *OtherAgentError) Error() string {
	const hint = "\n  hint: to go on with it, run %s --in-place; for a new conversation, give another file"
	if e.Begun == "" {
		return fmt.Sprintf("%s: it is not a transcript of %s, and its own model and tools would be used"+hint, e.Transcript, e.Agent, e.Transcript)
	}
	return fmt.Sprintf("%s: %s began it, not %s, and its own model and tools would be used"+hint, e.Transcript, e.Begun, e.Agent, e.Transcript)
}

// checkOrigin reports a transcript that another agent's file began. Of one with
// runs that does not say, or whose agent's file has changed since, it returns a warning.
func (f *File) checkOrigin(path, out string, src []byte, o Options) (warning, err error) {
	own, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, plain(err))
	}
	if o.KeepAgent || sameFile(path, out) {
		return nil, nil
	}
	hash, begun, named, hashed, ran := session.Fingerprint(string(own)), "", false, false, false
	for _, e := range f.Doc.Elements {
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
		return fmt.Errorf("%s has changed since it began %s, which goes on with what it says itself [warning]", path, out), nil
	case begun != "":
		return nil, &OtherAgentError{Transcript: out, Agent: path, Begun: begun}
	case bytes.HasPrefix(src, bytes.TrimSpace(own)):
	case !ran: // perhaps an agent's file, which a slip must not write to or run
		return nil, &OtherAgentError{Transcript: out, Agent: path}
	default:
		return fmt.Errorf("%s does not say which agent's file began it; its own model and tools are used, not those of %s [warning]", out, path), nil
	}
	return nil, nil
}

// namesAgent reports whether a run in the file names the agent's file.
func (f *File) namesAgent() bool {
	return slices.ContainsFunc(f.Doc.Elements, func(e chatmd.Element) bool { return e.Tag == chatmd.RunTag && e.Value("agent") != "" })
}

// besides is the path of what a file names by a relative path.
func besides(file, name string) string {
	name = filepath.FromSlash(name)
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(filepath.Dir(file), name)
}

// asSeenFrom is the path of a file relative to another one's folder.
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

// hashes are the file and its imports by their bytes, for the log; of a
// transcript, what stands before the first run. A name is relative to the file's
// folder: logs are passed on, and where somebody keeps files is nobody else's
// business.
func (f *File) hashes() []session.Hashed {
	own := f.Doc.Source()
	for _, e := range f.Doc.Elements {
		if e.Tag == chatmd.RunTag {
			own = own[:e.Offset]
			break
		}
	}
	list := []session.Hashed{{Name: filepath.Base(f.Path), Hash: session.Fingerprint(own)}}
	for _, src := range f.Doc.Imports {
		name := asSeenFrom(f.Path, src.Base)
		if strings.HasPrefix(name, "/") {
			name = filepath.Base(src.Base)
		}
		list = append(list, session.Hashed{Name: name, Hash: session.Fingerprint(string(src.Text))})
	}
	return list
}
