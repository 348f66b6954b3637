// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/antiphon-go/antiphon/decode"
	"github.com/antiphon-go/antiphon/internal/homedir"
	"github.com/antiphon-go/antiphon/internal/private"
	"github.com/antiphon-go/antiphon/internal/show"
	"github.com/antiphon-go/antiphon/item"
)

// This file makes a message of a prompt, and has the files that the prompt names behind an @.

// message returns a prompt as an item, with the files and sessions that it names behind @. Pictures are shown. With asks, the
// person may be asked about files; otherwise one that needs a question is an error.
func (t *dialogue) message(ctx context.Context, text string, asks bool, depict func(ctx context.Context, name, uri string)) ([]item.Item, error) {
	if text == "" {
		return nil, nil
	}
	var parts []item.Part
	for _, name := range namesIn(text) {
		at := t.sessionAt
		if IsFile(name) {
			at = t.fileAt
		}
		switch part, err := at(ctx, name, asks); {
		case err != nil:
			return nil, fmt.Errorf("@%s: %w", show.Visible(name), err)
		case part != nil:
			parts = append(parts, part)
			show.PicturesIn([]item.Part{part}, func(uri string) { depict(ctx, name, uri) })
		}
	}
	if parts == nil {
		return []item.Item{item.User(text)}, nil
	}
	message, err := item.UserParts(append([]item.Part{&item.InputText{Text: text}}, parts...)...)
	return []item.Item{message}, err
}

// first adds what the flags send with the first prompt.
func (t *dialogue) first(said []item.Item, err error) ([]item.Item, error) {
	switch begins := len(said) == 0; {
	case err != nil || begins && !t.host.Fresh():
		return said, err
	case begins && len(t.conf.Parts) > 0: // they follow the question of the agent's file, as those of antiphon run do
		m, err := item.UserParts(t.conf.Parts...)
		if err != nil {
			return nil, err
		}
		said = []item.Item{m}
	case len(t.conf.Parts) > 0:
		m, err := item.As[item.Message](said[0])
		if err != nil {
			return nil, err
		}
		parts := slices.Clone(t.conf.Parts)
		if said := m.Content.Parts; len(said) > 1 { // what a prompt names follows it, and so do these
			parts = append(slices.Clone(said), parts...)
		} else {
			parts = append(parts, &item.InputText{Text: m.Content.Display()})
		}
		if said[0], err = item.UserParts(parts...); err != nil {
			return nil, err
		}
	}
	if t.conf.System != "" {
		said = append([]item.Item{item.System(t.conf.System)}, said...)
	}
	return said, nil
}

// filesIn returns the names of files that stand behind an @ in a prompt.
func filesIn(text string) []string {
	return slices.DeleteFunc(namesIn(text), func(name string) bool { return !IsFile(name) })
}

// namesIn returns what stands behind an @ in a prompt, once each.
func namesIn(text string) (names []string) {
	seen := map[string]bool{}
	for word := range strings.FieldsSeq(text) {
		if name, at := strings.CutPrefix(word, "@"); at && name != "" && !seen[name] {
			seen[name] = true
			names = append(names, name)
		}
	}
	return names
}

// IsFile reports whether a name is that of a regular file, or of a link to one.
func IsFile(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.Mode().IsRegular()
}

// fileAt returns the file that a prompt names, or nil if the person does not want it to be sent. A
// prompt may be pasted from somebody else, so a file outside of the current folder is asked about. K2
func (t *dialogue) fileAt(ctx context.Context, name string, asks bool) (item.Part, error) {
	path, err := filepath.Abs(name)
	if err != nil {
		return nil, err
	}
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return nil, errors.Unwrap(err)
	}
	if !t.maySend(real) {
		if !asks {
			return nil, errors.New("it is asked about when the work is over")
		}
		question := "   send " + show.Visible(real) + ", which is not in this folder? [y]es, [n]o: "
		if beside(real) != real {
			question = "   send " + show.Visible(real) + ", a hidden file of your home folder? [y]es, [n]o: "
		}
		answer, err := t.asked(ctx, question)
		if err != nil {
			return nil, err
		}
		if answer = strings.ToLower(answer); answer != "y" && answer != "yes" {
			fmt.Fprintln(t.std.Err, "   "+show.Visible(name)+" is not sent")
			return nil, nil
		}
		t.mayLeave.add(real)
	}
	f, info, err := private.Open(real)
	if err != nil {
		return nil, cmp.Or(errors.Unwrap(err), err)
	}
	defer f.Close()
	now, err := os.Lstat(real)
	if again, gone := filepath.EvalSymlinks(path); err != nil || gone != nil || again != real || !os.SameFile(now, info) {
		return nil, errors.New("another file took its place")
	}
	part, err := decode.ReadPart(name, f)
	if err == nil {
		fmt.Fprintf(t.std.Err, "   with %s\n", show.Visible(beside(real)))
	}
	return part, err
}

// maySend reports whether a file may be sent without a question: one of this folder, one that the
// person has agreed to, or a picture that they pasted.
func (t *dialogue) maySend(real string) bool {
	_, pasted := t.pictures.Load(real)
	return pasted || t.mayLeave.has(real) || !outside(real)
}

// agreed is what the person has agreed to, by keys. It is safe for concurrent use.
type agreed struct {
	mu   sync.Mutex
	keys map[string]bool
}

func (a *agreed) add(key string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.keys == nil {
		a.keys = map[string]bool{}
	}
	a.keys[key] = true
}

func (a *agreed) has(key string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.keys[key]
}

// outside reports whether a file, by its path without links, is not in the current folder, or is a
// hidden one of the home folder.
func outside(real string) bool {
	here, err := os.Getwd()
	if err == nil {
		here, err = filepath.EvalSymlinks(here)
	}
	if err != nil {
		return true
	}
	rest, err := filepath.Rel(here, real)
	if err != nil || !filepath.IsLocal(rest) {
		return true
	}
	home, err := homedir.Folder()
	if err == nil {
		home, err = filepath.EvalSymlinks(home)
	}
	if err != nil {
		return false
	}
	if below, err := filepath.Rel(here, home); err != nil || !filepath.IsLocal(below) {
		return false // the folder is a project
	}
	return slices.ContainsFunc(strings.Split(filepath.ToSlash(rest), "/"), func(name string) bool { return strings.HasPrefix(name, ".") })
}

// filesAt returns the files whose names begin with a text, folders with a slash.
func filesAt(begin string) (list []string) {
	folder, name := filepath.Split(begin)
	entries, err := os.ReadDir(cmp.Or(folder, "."))
	if err != nil {
		return nil
	}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), name) || name == "" && strings.HasPrefix(e.Name(), ".") || strings.ContainsAny(e.Name(), " \n") {
			continue
		}
		path := folder + e.Name()
		if e.IsDir() {
			path += "/"
		}
		list = append(list, path)
	}
	return list
}

// realPath returns the path of a file without links.
func realPath(name string) (string, error) {
	path, err := filepath.Abs(name)
	if err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(path)
}
