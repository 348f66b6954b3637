// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/antiphon-go/antiphon/agentfile"
	"github.com/antiphon-go/antiphon/export"
	"github.com/antiphon-go/antiphon/session"
)

// importCommand is antiphon sessions import.
type importCommand struct {
	File string `arg:"" help:"JSON lines of sessions export, or a transcript in ChatMarkdown."`
	Name string `placeholder:"NAME" help:"What to call the session. Default: the name that it had, or the file's."`
	For  string `placeholder:"AGENT" help:"The agent's file that it belongs to. Default: the one it belonged to, or the transcript itself."`
}

// Help is shown by antiphon sessions import --help.
func (importCommand) Help() string {
	return `What is imported is a new session; nothing that is there is changed.

Examples:
  antiphon sessions import work.jsonl --for agent.md
  antiphon sessions import talk.md --name talk --for agent.md`
}

// Run imports.
func (c *importCommand) Run(ctx context.Context, std stdio, env environment, all *sessionsCommand) error {
	path := ""
	if c.For != "" {
		var err error
		if path, err = resolved(c.For); err != nil {
			return usage(err)
		}
	}
	if c.Name != "" {
		if err := checkName(c.Name); err != nil {
			return usage(err)
		}
	}
	f, err := os.Open(c.File)
	if err != nil {
		return usage(err)
	}
	defer f.Close()
	in := bufio.NewReader(f)
	first, _ := in.Peek(1)
	return all.opened(ctx, env, true, func(store keeper) error {
		i := &importer{store: store, name: c.Name, path: path, ids: map[string]string{}}
		if string(first) == "{" {
			if err = i.lines(ctx, f); err != nil {
				err = fmt.Errorf("%s: %w", c.File, err)
			}
		} else {
			err = i.transcript(ctx, c.File)
		}
		if err == nil {
			err = i.call(ctx)
		}
		if err != nil {
			return errors.Join(err, i.takeBack(ctx))
		}
		return all.changed(ctx, std, store, i.made[0], "%s is made, of %s", i.made[0], plural(i.entries, "entry"))
	})
}

// importer makes sessions of a file.
type importer struct {
	store      keeper
	name, path string
	ids        map[string]string // of the sessions in the file, as they are here
	made       []string
	entries    int
}

// takeBack deletes what was made of a file that was not whole: the first
// session, and those that are nested in it with it.
func (i *importer) takeBack(ctx context.Context) error {
	if len(i.made) == 0 {
		return nil
	}
	err := i.store.Delete(context.WithoutCancel(ctx), i.made[0])
	if errors.Is(err, session.ErrNotFound) {
		return nil
	}
	return err
}

// importBatch is how many entries are appended at once.
const importBatch = 256

// lines makes sessions of JSON lines.
func (i *importer) lines(ctx context.Context, f *os.File) error {
	if _, err := f.Seek(0, 0); err != nil {
		return err
	}
	var id string
	var batch []session.Entry
	var end int64
	flush := func() error {
		err := i.store.Append(ctx, id, end, batch)
		end += int64(len(batch))
		i.entries += len(batch)
		batch = batch[:0:0]
		return err
	}
	for line, err := range export.ReadJSONLines(f) {
		if err != nil {
			return usage(err)
		}
		if line.Session == nil {
			batch = append(batch, i.renamed(line.Entry))
		}
		if len(batch) > 0 && (line.Session != nil || len(batch) == importBatch) {
			if err := flush(); err != nil {
				return err
			}
		}
		if line.Session != nil {
			if id, err = i.begin(ctx, *line.Session); err != nil {
				return err
			}
			end = 0
		}
	}
	if id == "" {
		return usage(errors.New("no session is in it"))
	}
	return flush()
}

// begin makes the session that a line begins. Those that are nested keep the end
// of their ids, behind that of the first one.
func (i *importer) begin(ctx context.Context, info session.Info) (string, error) {
	old := info.ID
	if len(i.made) > 0 {
		id := i.renamedID(old)
		i.ids[old] = id
		i.made = append(i.made, id)
		return id, i.store.Create(ctx, session.Info{ID: id, Parent: cmp.Or(i.ids[info.Parent], i.made[0]), Nested: true})
	}
	if i.name = cmp.Or(i.name, info.Name); i.name != "" {
		if err := checkName(i.name); err != nil {
			return "", usage(fmt.Errorf("%w; give another --name", err))
		}
	}
	id := newSessionID(cmp.Or(i.name, "imported"))
	i.ids[old] = id
	i.made = append(i.made, id)
	return id, i.store.Create(ctx, session.Info{ID: id, Path: cmp.Or(i.path, info.Path)})
}

// call gives the session its name, when it is whole: what an import that was
// killed leaves behind is nothing that a run would go on with.
func (i *importer) call(ctx context.Context) error {
	if i.name == "" {
		return nil
	}
	err := i.store.Rename(ctx, i.made[0], i.name)
	if errors.Is(err, session.ErrExists) {
		return usage(fmt.Errorf("a session %q of the same file is there already; give another --name", i.name))
	}
	return err
}

// renamedID is what a nested session of the file is called here: ids of nested
// sessions begin with that of the one around them.
func (i *importer) renamedID(old string) string {
	for from, to := range i.ids {
		if rest, ok := strings.CutPrefix(old, from+"/"); ok {
			return to + "/" + rest
		}
	}
	return i.made[0] + "/" + filepath.Base(old)
}

// renamed is an entry that names nested sessions as they are called here.
func (i *importer) renamed(e session.Entry) session.Entry {
	switch b := e.Body.(type) {
	case session.CallStarted:
		if b.Session != "" {
			b.Session = i.renamedID(b.Session)
			e.Body = b
		}
	case session.Nested:
		b.Session = i.renamedID(b.Session)
		e.Body = b
	case session.Paused:
		b.Session = i.renamedID(b.Session)
		e.Body = b
	}
	return e
}

// transcript makes a session of a ChatMarkdown file.
func (i *importer) transcript(ctx context.Context, path string) error {
	options, err := fileOptions()
	if err != nil {
		return err
	}
	file, err := agentfile.Load(ctx, path, options)
	if err != nil {
		return unread(err)
	}
	defer file.Close()
	if i.path == "" {
		if i.path, err = resolved(path); err != nil {
			return err
		}
	}
	name := cmp.Or(i.name, strings.TrimSuffix(filepath.Base(path), filepath.Ext(path)))
	id, err := i.begin(ctx, session.Info{Name: name})
	if err != nil {
		return err
	}
	s, err := session.Open(ctx, i.store, id)
	if err != nil {
		return err
	}
	bodies := file.Log()
	if len(bodies) == 0 {
		return usage(fmt.Errorf("%s: nothing is said in it", path))
	}
	i.entries = len(bodies)
	_, err = s.Append(ctx, bodies...)
	return err
}
