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
)

// places are the folders that paths in a file are relative to.
type places struct {
	promptDir string // absolute
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
	return places{promptDir: dir, workspace: workspace, home: o.Home}, err
}

// expand returns the absolute path that a file means by path: its variables
// replaced, relative to the file's own folder.
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
		path = filepath.Join(p.promptDir, path)
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
	case "prompt_dir", "tool_dir":
		return p.promptDir, nil
	case "home":
		if p.home != "" {
			return p.home, nil
		}
		return "", errors.New("there is no home folder")
	}
	return "", fmt.Errorf("unknown variable ${%s}: there are ${workspace}, ${prompt_dir}, ${tool_dir}, ${home}", name)
}

func checkFolder(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return plain(err)
	}
	if !info.IsDir() {
		return errors.New("it is no folder")
	}
	return nil
}

// plain strips a file system error of the path, which the message has already.
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
