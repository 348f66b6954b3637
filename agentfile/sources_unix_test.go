// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package agentfile_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/antiphon-go/antiphon/agentfile"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/trust"
)

// M6: a circle is told as such when links give its files other names.
func TestImportLinks(t *testing.T) {
	dir := t.TempDir()
	if err := os.Symlink(".", filepath.Join(dir, "d")); err != nil {
		t.Fatal(err)
	}
	_, err := agentfile.Load(t.Context(), write(t, `<import src="d/p.md"/>`, dir, "p.md"), agentfile.Options{Consent: trust.Everything})
	if err == nil || !strings.Contains(err.Error(), "the file imports itself: ") {
		t.Errorf("got %v", err)
	}
}

// A pipe instead of a file is an error; opening it would wait for ever.
func TestPipe(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600); err != nil {
		t.Skip(err)
	}
	_, err := agentfile.Load(t.Context(), write(t, `<user><import src="pipe"/><doc src="pipe" local/></user>`, dir, "p.md"), agentfile.Options{Consent: trust.Everything})
	if err == nil || strings.Count(err.Error(), "not a regular file") != 2 {
		t.Errorf("got %v", err)
	}
}

// K3: a file that a person names is a regular one, with a limit, and a link to another folder
// that is not an agent's file is not quoted.
func TestMainFileIsOneOfItsFolder(t *testing.T) {
	p := newPlace(t)
	for name, to := range map[string]string{"link.md": filepath.Join(p.home, ".ssh", "id_rsa"), "zero.md": "/dev/zero", "good.md": filepath.Join(p.outside, "agent.md"), "near.md": "inside.txt"} {
		if err := os.Symlink(to, filepath.Join(p.work, name)); err != nil {
			t.Skip(err)
		}
	}
	if err := os.Truncate(write(t, "", p.work, "vast.md"), 1<<40); err != nil {
		t.Skip(err)
	}
	for name, want := range map[string]string{
		"link.md": "a link to " + filepath.Join(p.home, ".ssh", "id_rsa") + ", which is outside of its folder",
		"zero.md": "not a regular file", "vast.md": "larger than 256 MiB", "near.md": "text outside of any element", "good.md": "",
	} {
		for _, o := range []agentfile.Options{{}, {Check: true}, {Salvage: true}} {
			o.Workspace, o.Home = p.work, p.home
			f, err := agentfile.Load(t.Context(), filepath.Join(p.work, name), o)
			said := ""
			if err != nil {
				said = err.Error()
			}
			if f != nil {
				said += f.Left.Error()
				f.Close()
			}
			if !strings.Contains(said, want) || want == "" && said != "" || strings.Contains(said, canary) {
				t.Errorf("%s: %s", name, said)
			}
		}
	}
}

// J2: a named pipe in the place of a transcript is not waited for: a command of the run may have
// put it there. The text is kept beside it.
func TestPipeForTranscript(t *testing.T) {
	dir := t.TempDir()
	path, out := write(t, prompt, dir, "agent.md"), filepath.Join(dir, "talk.md")
	_, s := open(t, path, out)
	appendTo(t, s, session.InputItem{Item: item.User("first")})
	if err := os.Remove(out); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(out, 0o600); err != nil {
		t.Skip(err)
	}
	_, err := s.Append(t.Context(), session.InputItem{Item: item.User("second")})
	if !errors.Is(err, session.ErrConflict) || !strings.Contains(read(t, out+".cut"), "second") {
		t.Errorf("%v", err)
	}
}
