// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/antiphon-go/antiphon/worker"
)

// placeFlag says where the files of a session are.
type placeFlag struct {
	Place string `placeholder:"PLACE" help:"Where the session's files are: host (the current folder of this machine) or host:DIR; volume:DIR (a folder with the same files at each worker that has it); git:URL#REF (a checkout of a branch, tag or commit, whose changes go along); none (each worker's own folder). Default: where the session's work has them, or none."`
}

// place returns the place that was asked for; nil if none was.
func (f *placeFlag) place() (*worker.Place, error) {
	var p worker.Place
	kind, dir, named := strings.Cut(f.Place, ":")
	switch kind {
	case "":
		if named {
			return nil, fmt.Errorf("--place %s: it is host, host:DIR, volume:DIR, git:URL#REF or none", quoted(f.Place))
		}
		return nil, nil
	case "none":
		if named {
			return nil, errors.New("--place none has no folder")
		}
		return &p, nil
	case "host":
		var err error
		if p.Host, err = os.Hostname(); err != nil {
			return nil, fmt.Errorf("--place host: this machine has no name: %w", err)
		}
	case "volume":
		if dir == "" {
			return nil, errors.New("--place volume needs a folder: volume:DIR")
		}
	case "git":
		p.Repository, p.Reference, _ = strings.Cut(dir, "#")
		if p.Repository == "" || p.Reference == "" {
			return nil, fmt.Errorf("--place %s: it needs a repository and a branch, tag or commit: git:URL#REF", quoted(f.Place))
		}
		p.Repository = strings.TrimSuffix(fullAddress(p.Repository), "/")
		if err := p.Check(); err != nil {
			return nil, fmt.Errorf("--place: %w", err)
		}
		return &p, nil
	default:
		return nil, fmt.Errorf("--place %s: it is host, host:DIR, volume:DIR, git:URL#REF or none", quoted(f.Place))
	}
	path, err := filepath.Abs(dir)
	p.Folder = path
	return &p, err
}

// fullAddress returns the address of a repository; that of a folder here as a full path.
func fullAddress(address string) string {
	if info, err := os.Stat(address); err != nil || !info.IsDir() {
		return address
	}
	path, err := filepath.Abs(address)
	if err != nil {
		return address
	}
	if strings.HasSuffix(address, "/") {
		path += "/" // all below it
	}
	return path
}
