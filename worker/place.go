// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/antiphon-go/antiphon/session/queue"
)

// Place says where the files are that a session works with. The zero value is nowhere in
// particular: any worker may do the work, in its own workspace.
//
// A place is kept among the needs of work, so a worker that knows nothing of places does
// not begin it.
type Place struct {
	// Host is the name of the only machine that has the files: see [Worker].Host. "" means
	// that each worker with the Folder has the same files in it, as on a shared volume.
	Host string
	// Folder is the workspace, as a full path. "" means the worker's own.
	Folder string
	// Repository is the address of a git repository, and Reference a branch, a tag or a commit
	// in it. Each worker works in a checkout of its own, which begins with the commit that the
	// reference named first. What a run changes in the files is kept in the session, so that
	// another worker goes on with it: see [ChangesOf]. Host and Folder are empty then.
	Repository, Reference string
}

// Beginnings of needs that are places.
const (
	onHost   = "host="   // the name of a machine
	inFolder = "folder=" // a folder of that machine
	onVolume = "volume=" // a folder with the same files at all workers that have it
	// The address of a repository, "#" and a reference.
	inRepository = "repository="
)

// Needs returns the needs of work that has the place.
func (p Place) Needs() (needs []string) {
	if p.Host != "" {
		needs = append(needs, onHost+p.Host)
	}
	switch {
	case p.Repository != "":
		needs = append(needs, inRepository+p.Repository+"#"+p.Reference)
	case p.Folder == "":
	case p.Host != "":
		needs = append(needs, inFolder+p.Folder)
	default:
		needs = append(needs, onVolume+p.Folder)
	}
	return needs
}

// Check returns an error for a place where no work can be done, such as a repository whose
// address contains a password, which the store would keep.
func (p Place) Check() error {
	if p.Repository != "" || p.Reference != "" {
		if p.Host != "" || p.Folder != "" {
			return errors.New("a place is a repository or a folder, and not both")
		}
		return checkRepository(p.Repository, p.Reference)
	}
	if p.Folder != "" && (!filepath.IsAbs(p.Folder) || filepath.Clean(p.Folder) != p.Folder) {
		return fmt.Errorf("the place %q is not a full path of a folder", p.Folder)
	}
	return nil
}

// isPlace reports whether a need is a place.
func isPlace(need string) bool {
	return slices.ContainsFunc([]string{onHost, inFolder, onVolume, inRepository}, func(kind string) bool { return strings.HasPrefix(need, kind) })
}

// settle returns the needs of work that takes the place of other work of its session: with
// the place that the session has, unless there is another one. A session that would go on
// elsewhere would not find its files.
func settle(needs []string, place *Place, before queue.Work) []string {
	needs = slices.Clone(needs)
	switch {
	case place != nil:
		return append(slices.DeleteFunc(needs, isPlace), place.Needs()...)
	case slices.ContainsFunc(needs, isPlace):
		return needs
	}
	return append(needs, slices.DeleteFunc(slices.Clone(before.Needs), func(need string) bool { return !isPlace(need) })...)
}

// want returns what work the worker can do, as far as its needs say.
func (p *pool) want() queue.Want {
	return queue.Want{Labels: p.labels, Has: p.has, Tenants: p.Tenants, Caps: p.Caps}
}

// has reports whether the worker has the place of a need.
func (w *Worker) has(need string) bool {
	if host, is := strings.CutPrefix(need, onHost); is {
		return host == w.Host
	}
	if place, is := strings.CutPrefix(need, inRepository); is {
		return w.fetches(place) == nil
	}
	if !isPlace(need) {
		return false
	}
	_, err := w.folder(need)
	return err == nil
}

// repositoryOf returns the repository and reference among needs, or "".
func repositoryOf(needs []string) string {
	for _, need := range needs {
		if place, is := strings.CutPrefix(need, inRepository); is {
			return place
		}
	}
	return ""
}

// workspace returns the workspace of the work of a session, and why there is none here.
func (w *Worker) workspace(id string, needs []string) (string, error) {
	if place := repositoryOf(needs); place != "" {
		return w.checkoutOf(id).files(), w.fetches(place)
	}
	for _, need := range needs {
		if isPlace(need) && !strings.HasPrefix(need, onHost) {
			return w.folder(need)
		}
	}
	return w.Config.Workspace, nil
}

// folder returns the real path of the folder of a need. The row of the queue names it, so
// it counts only below what the operator of the worker named. K2
func (w *Worker) folder(need string) (real string, err error) {
	roots := w.Volumes
	kind, folder, _ := strings.Cut(need, "=")
	if kind+"=" == inFolder {
		roots = append(slices.Clip(roots), w.Config.Workspace) // what is in it, this machine alone has
	}
	if err := (Place{Folder: folder}).Check(); err != nil || folder == "" {
		return "", errNoPath
	}
	// Links may lead elsewhere, so the real paths count.
	if real, err = filepath.EvalSymlinks(folder); err != nil {
		return "", errNotThere
	}
	if info, err := os.Stat(real); err != nil || !info.IsDir() {
		return "", errNotThere
	}
	for _, root := range roots {
		if root == "" {
			continue
		}
		if root, err = filepath.EvalSymlinks(root); err != nil {
			continue // the volume is not there now
		}
		if rest, err := filepath.Rel(root, real); err == nil && filepath.IsLocal(rest) {
			return real, nil
		}
	}
	return "", errNotGiven
}

// placeError says why a folder cannot be a workspace.
type placeError string

func (e placeError) Error() string { return string(e) }

const (
	errNoPath   placeError = "it is not a full path"
	errNotThere placeError = "this worker has no such folder"
	errNotGiven placeError = "this worker's operator gave it no such folder"

	errNoRepository placeError = "this worker's operator gave it no such repository"
	errNoGit        placeError = "this worker has no program git, or no folder for checkouts"
)

// described names needs for people: labels, and then places.
func described(needs []string, labels string) string {
	var places []string
	var list []string
	for _, need := range needs {
		switch kind, value, _ := strings.Cut(need, "="); {
		case !isPlace(need):
			list = append(list, need)
		case kind+"=" == onHost:
			places = append(places, "on the host "+value)
		default:
			places = append(places, "with the "+kind+" "+value)
		}
	}
	if len(list) > 0 {
		places = append([]string{labels + strings.Join(list, ", ")}, places...)
	}
	return strings.Join(places, " ")
}
