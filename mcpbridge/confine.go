// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package mcpbridge

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/antiphon-go/antiphon/sandbox"
)

// supports says whether this system can confine programs as a profile says.
var supports = sandbox.Profile.Supported

// confine prepares the command for its profile.
func (s *Server) confine(cmd *exec.Cmd) (*program, error) {
	dir, err := filepath.Abs(s.Dir)
	if err != nil {
		return nil, err
	}
	profile := sandbox.Network(dir)
	if s.Sandbox != nil {
		profile = s.Sandbox(dir)
	} else if supports(profile) != nil {
		profile = sandbox.Full()
	}
	profile.Read = slices.Concat(profile.Read, s.held.named, s.held.usual)
	profile.Held = s.held.at
	run, err := sandbox.Command(context.Background(), profile, cmd)
	if err != nil {
		return nil, err
	}
	return &program{run}, nil
}

// held is what the program of a server reads in addition to its profile.
type held struct {
	named []string // because its command line names it
	usual []string // the program that PATH leads to, and the folders of PATH
	at    map[string]string
}

// Hold notes what the program may read because its command line names it, and what these
// paths lead to: the program and the script that it runs, with the folders that they and
// the files that they lead to are in and the packages of Node.js around them, and the other
// files. Hold returns these paths with links resolved. A link that the program changes
// later opens nothing to it, also if it is started again. [Connect] calls Hold for servers
// for which the caller did not, in copies of them.
func (s *Server) Hold() []string {
	if len(s.Command) == 0 {
		return nil
	}
	if s.held == nil {
		s.hold()
	}
	var list []string
	for _, path := range s.held.named {
		if real := s.held.at[filepath.Clean(path)]; !slices.Contains(list, real) {
			list = append(list, real)
		}
	}
	return list
}

func (s *Server) hold() {
	dir, _ := filepath.Abs(s.Dir) // confine returns the error
	h := &held{}
	if filepath.Base(s.Command[0]) != s.Command[0] {
		h.named = around(dir, s.Command[0], true)
	} else if program, err := exec.LookPath(s.Command[0]); err == nil {
		h.usual = around(dir, program, true)
	}
	script := false
	for _, word := range s.Command[1:] {
		list := around(dir, word, !script)
		script = script || len(list) > 0 && !strings.HasPrefix(word, "-")
		h.named = append(h.named, list...)
	}
	h.at = sandbox.Hold(slices.Concat(h.named, h.usual, []string{dir})...)
	s.held = h
}

// holdTools adds what the program reads because of its PATH.
func (s *Server) holdTools(path string) {
	s.Hold()
	h := held{named: s.held.named, usual: slices.Clone(s.held.usual), at: maps.Clone(s.held.at)}
	dir, _ := filepath.Abs(s.Dir)
	for _, folder := range filepath.SplitList(path) {
		if rest, err := filepath.Rel(dir, folder); err != nil || !filepath.IsLocal(rest) { // else the program may make a link of it
			h.usual = append(h.usual, sandbox.ToolFolders(folder)...)
		}
	}
	maps.Copy(h.at, sandbox.Hold(h.usual...))
	s.held = &h
}

// pathOf returns the value of PATH.
func pathOf(env []string) string {
	for _, v := range env {
		if path, ok := strings.CutPrefix(v, "PATH="); ok {
			return path
		}
	}
	return ""
}

// around returns what a server reads because its command line names a file: the file and,
// for a program or a script, the folder that it is in and the packages of Node.js that it
// belongs to.
func around(dir, name string, runs bool) (list []string) {
	if !filepath.IsAbs(name) {
		name = filepath.Join(dir, name)
	}
	real, err := filepath.EvalSymlinks(name)
	if err != nil {
		return nil
	}
	if info, err := os.Stat(real); err != nil || !info.Mode().IsRegular() {
		return nil
	}
	if list = []string{name, real}; !runs {
		return list
	}
	for _, file := range []string{name, real} {
		folder := filepath.Dir(file)
		folders := []string{folder}
		if at := strings.Index(folder+"/", "/node_modules/"); at > 0 {
			folders = append(folders, folder[:at]+"/node_modules")
		}
		list = append(list, sandbox.ToolFolders(folders...)...)
	}
	return list
}

// program is the program of a server.
type program struct{ *sandbox.Run }

// Wait waits for the program, ends what it left behind, and says how it ended.
func (p *program) Wait() string {
	end, err := p.Run.Wait()
	var failed *sandbox.SetupError
	switch {
	case errors.As(err, &failed):
		return failed.Problem
	case end.Signal != 0:
		return "signal: " + end.Signal.String()
	case end.Code < 0 && err != nil:
		return err.Error()
	}
	return fmt.Sprintf("exit status %d", end.Code)
}

// Lacked says which permission the program probably lacked in its sandbox if it failed
// with this text, or "".
func (p *program) Lacked(text string) string {
	list := p.Denials(sandbox.Exit{Code: -1}, text)
	if len(list) == 0 {
		return ""
	}
	profile := sandbox.NameFull
	if list[0].Permission == sandbox.PermissionNetwork {
		profile = sandbox.NameNetwork
	}
	return list[0].Reason + "; only the user can allow it, with the sandbox profile " + profile
}

// AskToEnd asks the program to end, where the system has a way to ask.
func (p *program) AskToEnd() { _ = p.Signal(syscall.SIGTERM) } // it may have ended
