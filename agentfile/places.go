// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agentfile

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/antiphon-go/antiphon/chatmd"
	"github.com/antiphon-go/antiphon/internal/homedir"
)

// places are the folders that paths in a file are relative to.
type places struct {
	promptDir string // absolute; of the main file
	toolDir   string // absolute; of the file that contains the path, which may be an imported file
	workspace string // absolute
	home      string
}

func placesOf(path string, o Options) (places, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return places{}, err
	}
	dir := filepath.Dir(abs)
	workspace, err := filepath.Abs(cmp.Or(o.Workspace, dir))
	return places{promptDir: dir, toolDir: dir, workspace: workspace, home: o.Home}, err
}

// guardedHome returns the folder whose hidden files need an agreement.
func (p places) guardedHome() string {
	if p.home != "" {
		return p.home
	}
	folder, err := homedir.Folder()
	if err != nil {
		return "" // the system knows of no home folder
	}
	return folder
}

// of returns the places for elements of the file with the given base: see
// [chatmd.Source].
func (p places) of(base string) places {
	if base != "" {
		p.toolDir = filepath.Dir(base)
	}
	return p
}

// find is like expand for a file to read. A file that is not in the folder of the
// file that names it is searched beside the prompt, and then in the workspace, where
// older programs searched.
func (p places) find(path string) (string, error) {
	first, err := p.expand(path)
	if err != nil || filepath.IsAbs(filepath.FromSlash(path)) || strings.HasPrefix(path, "${") {
		return first, err
	}
	for _, dir := range []string{p.toolDir, p.promptDir, p.workspace} {
		full := filepath.Join(dir, filepath.FromSlash(path))
		if _, err := os.Stat(full); err == nil {
			return full, nil
		}
	}
	return first, nil
}

// expand returns the absolute form of a path in a file: variables are replaced, and
// relative paths start at the file's own folder.
func (p places) expand(path string) (string, error) {
	if name, rest, ok := cutVariable(path); ok {
		dir, err := p.variable(name)
		if err != nil {
			return "", err
		}
		path = dir + "/" + rest
	}
	path = filepath.FromSlash(path)
	if !filepath.IsAbs(path) {
		path = filepath.Join(p.toolDir, path)
	}
	return filepath.Clean(path), nil
}

// cutVariable splits "${name}/rest".
func cutVariable(path string) (name, rest string, ok bool) {
	after, ok := strings.CutPrefix(path, "${")
	if !ok {
		return "", "", false
	}
	name, rest, ok = strings.Cut(after, "}")
	return name, strings.TrimLeft(rest, `/\`), ok
}

func (p places) variable(name string) (string, error) {
	switch name {
	case "workspace":
		return p.workspace, nil
	case "prompt_dir":
		return p.promptDir, nil
	case "tool_dir":
		return p.toolDir, nil
	case "home":
		if p.home != "" {
			return p.home, nil
		}
		return "", errors.New("the home folder is not known")
	case "source_dir", "session_dir", "cache_dir":
		return "", fmt.Errorf("${%s} of the original system: %w; there are ${workspace}, ${prompt_dir}, ${tool_dir}, ${home}", name, chatmd.ErrNotBuilt)
	}
	return "", fmt.Errorf("unknown variable ${%s}: there are ${workspace}, ${prompt_dir}, ${tool_dir}, ${home}", name)
}

func checkFolder(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return plain(err)
	}
	if !info.IsDir() {
		return errors.New("it is not a folder")
	}
	return nil
}

// plain removes the path from a file system error, because the message has it
// already.
func plain(err error) error {
	var pathErr *os.PathError
	var linkErr *os.LinkError
	switch {
	case errors.As(err, &pathErr):
		return pathErr.Err
	case errors.As(err, &linkErr):
		return linkErr.Err
	}
	return err
}

// noRoom adds a hint to an error about a full disk or a reached limit.
func noRoom(err error) error {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || errors.Is(err, syscall.EFBIG) {
		return fmt.Errorf("%w\n  hint: free some space, or raise the limit (ulimit -f), then run it again: the conversation continues where it was", err)
	}
	return err
}
