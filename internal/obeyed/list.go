// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package obeyed

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// A listing is what matters of the names in a folder.
type listing struct {
	folders []string // the paths of those that may hold repositories
	obeyed  []string
	told    []string // what is obeyed and may be written
	bare    bool     // it looks like a repository
}

// listed is a listing and the folder's identity when it was read. Scans of the same
// folders follow each other, so they are remembered.
type listed struct {
	identity
	listing
}

// remembered holds listings by the paths of folders.
var remembered = struct {
	sync.Mutex
	list map[string]listed
}{list: map[string]listed{}}

const (
	mostRemembered = 8 * mostFolders
	// coarse is the longest time for which a folder may change without its times doing so.
	coarse = 50 * time.Millisecond
)

// list lists a folder.
func list(dir string) (listing, bool) {
	info, err := os.Lstat(dir)
	if err != nil || !info.IsDir() {
		return listing{}, false
	}
	is := identityOf(info)
	remembered.Lock()
	old, ok := remembered.list[dir]
	remembered.Unlock()
	if ok && old.identity == is {
		return old.listing, true
	}
	began := time.Now()
	f, err := os.Open(dir)
	if err != nil {
		return listing{}, false
	}
	entries, err := f.ReadDir(-1)
	_ = f.Close()
	if err != nil {
		return listing{}, false
	}
	l := choose(dir, entries)
	remembered.Lock()
	defer remembered.Unlock()
	if len(remembered.list) >= mostRemembered {
		clear(remembered.list)
	}
	if delete(remembered.list, dir); is.settled(began.Add(-coarse)) {
		remembered.list[dir] = listed{is, l}
	}
	return l, true
}

// choose returns what matters of entries.
func choose(dir string, entries []os.DirEntry) (l listing) {
	parts, folder := 0, strings.ToLower(filepath.Base(dir))
	for _, e := range entries {
		name := e.Name()
		lower := strings.ToLower(name)
		mayWrite, here := inFolders[folder][lower]
		told := here && mayWrite || slices.Contains(instructions, lower)
		own := lower == ".git" || slices.Contains(ofProjects, lower) || ofMise(folder, lower) != "" || here && !mayWrite || isWorkspace(lower) ||
			e.Type()&os.ModeSymlink != 0 && hasObeyed(lower) // what it leads to is not listed under this name
		switch {
		case told:
			l.told = append(l.told, name)
		case own || ofOthers[lower] != nil:
			l.obeyed = append(l.obeyed, name)
		}
		if !own && e.IsDir() && name != "node_modules" { // .hg may hold repositories of patches, and .jj one of git
			l.folders = append(l.folders, filepath.Join(dir, name))
		}
		if name == "HEAD" || e.IsDir() && (name == "objects" || name == "refs") {
			parts++
		}
	}
	l.bare = parts == 3
	slices.Sort(l.folders)
	slices.Sort(l.obeyed)
	slices.Sort(l.told)
	return l
}

// hasObeyed reports whether files in a folder of this name are obeyed that have no such name elsewhere.
func hasObeyed(folder string) bool {
	return inFolders[folder] != nil || folder == ".config" || folder == "mise"
}

// mostEntries is how many entries of a folder that is obeyed as a whole are looked at.
const mostEntries = 200

// stampOf describes what is at a path, so that another stamp means that it has changed.
// For a folder it holds a line for each entry, with its name first, down to a depth. It is
// "" if there is nothing.
func stampOf(path string, depth int) string {
	info, err := os.Lstat(path)
	if err != nil {
		return ""
	}
	switch {
	case info.Mode()&os.ModeSymlink != 0:
		to, _ := os.Readlink(path)
		return "l" + to + "\x00" + fmt.Sprint(identityOf(info))
	case !info.IsDir():
		return "f" + fmt.Sprint(identityOf(info))
	}
	var b strings.Builder
	b.WriteString("d")
	entries, _ := os.ReadDir(path)
	for _, e := range entries[:min(len(entries), mostEntries)] {
		if depth > 0 {
			b.WriteString("\n" + e.Name() + "\x00" + strings.ReplaceAll(stampOf(filepath.Join(path, e.Name()), depth-1), "\n", "\x01"))
		}
	}
	return b.String()
}
