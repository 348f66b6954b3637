// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"errors"
	"io"
	"iter"
	"path/filepath"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/agentfile"
	"github.com/antiphon-go/antiphon/export"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/session/store"
	"github.com/antiphon-go/antiphon/tool"
)

// Export writes a session out, with those that are nested in it and without the
// secrets of the front end. What is missing in the store is noticed.
type Export struct {
	Front
	Store   store.Store
	Session session.Info
	// FullPaths lets HTML and JSON lines name the agent's file by its full path, not
	// by its name alone: where somebody keeps it goes nowhere with it.
	FullPaths bool
	// Options are what the agent's file may name, whose declarations begin a
	// transcript.
	Options agentfile.Options
}

// JSONLines writes the whole log with all payloads, which [Import.Lines] reads. It
// is read from the store as it is written.
func (e Export) JSONLines(ctx context.Context, w io.Writer) error {
	log := storedLog(ctx, e.Store, e.Session, &e.Front)
	log.Info.Path = e.path()
	return export.JSONLines(w, log)
}

// HTML writes one page for people, with all images in it.
func (e Export) HTML(ctx context.Context, w io.Writer) error {
	log, err := e.log(ctx)
	if err != nil {
		return err
	}
	log.Info.Path = e.path()
	return export.HTML(w, log)
}

func (e Export) path() string {
	if e.FullPaths || e.Session.Path == "" {
		return e.Session.Path
	}
	return filepath.Base(e.Session.Path)
}

// Transcript returns what writes the conversation as ChatMarkdown, for a file at
// out. It begins with what the session's agent declares, so that it can be run,
// where its file is there. What outputs name as kept is written beside out before,
// where a run that goes on with it looks. If out is "" there is no beside, which is
// noticed.
func (e Export) Transcript(ctx context.Context, out string) (write func(io.Writer) error, err error) {
	log, err := e.log(ctx)
	if err != nil {
		return nil, err
	}
	if err := e.keepBeside(ctx, log, out); err != nil {
		return nil, err
	}
	return func(w io.Writer) error {
		head, err := e.declarations(ctx, out)
		if err != nil {
			return err
		}
		if _, err := io.WriteString(w, head); err != nil {
			return err
		}
		return export.ChatMarkdown(w, log)
	}, nil
}

// log reads the session with those that are nested in it.
func (e *Export) log(ctx context.Context) (export.Log, error) {
	s, err := session.Open(ctx, e.Store, e.Session.ID)
	if err != nil {
		return export.Log{}, err
	}
	log := storedLog(ctx, e.Store, e.Session, &e.Front)
	log.Entries = s.Log()
	log.Nested = func(id string) ([]session.Entry, error) {
		nested, err := session.Open(ctx, e.Store, id)
		if err != nil {
			return nil, err
		}
		return nested.Log(), nil
	}
	return log, nil
}

// keepBeside writes what the outputs of a session name as kept beside its transcript
// at out, where a run that goes on with it looks. Of standard output there is no
// beside: then it is told.
func (e *Export) keepBeside(ctx context.Context, log export.Log, out string) error {
	ids, err := log.Kept()
	if err != nil || len(ids) == 0 {
		return err
	}
	if out == "" {
		e.notify(NoticeNotBeside, "the outputs name %s that the transcript does not hold", many(len(ids), "kept output", "kept outputs"))
		return nil
	}
	folder, err := OutputsFolder(out)
	if err != nil {
		return err
	}
	beside := &tool.DirSpill{Dir: folder}
	for _, id := range ids {
		data, err := log.Blob(id)
		if err != nil {
			return err
		}
		if data == nil {
			continue // it is told
		}
		if _, err := beside.Put(ctx, data); err != nil {
			return err
		}
	}
	return nil
}

// declarations is the head of the transcript at out; "", which is noticed, if the
// agent's file cannot be read any more.
func (e *Export) declarations(ctx context.Context, out string) (string, error) {
	if e.Session.Path == "" {
		return "", nil
	}
	if out == "" {
		out = "transcript.md"
	}
	options := e.Options
	options.Check = true
	file, err := agentfile.Load(ctx, e.Session.Path, options)
	if err != nil {
		e.notify(NoticeNoAgent, "%s cannot be read any more, so the transcript names no model and no tools", e.Session.Path)
		return "", nil
	}
	defer file.Close()
	return file.Declarations(out, options)
}

// storedLog is a session whose entries are read when they are written.
func storedLog(ctx context.Context, from store.Store, info session.Info, front *Front) export.Log {
	return export.Log{
		Info: info,
		Hide: front.Environment.Hide,
		Load: func(id string) iter.Seq2[session.Entry, error] { return from.Load(ctx, id, 0) },
		Blob: func(id string) ([]byte, error) {
			spill := agent.BlobSpill(from, info.ID)
			_, size, err := spill.Get(ctx, id, 0, 0)
			if err == nil {
				var data []byte
				data, _, err = spill.Get(ctx, id, 0, size)
				return data, err
			}
			if errors.Is(err, tool.ErrNotStored) {
				front.notify(NoticeMissing, "what is kept with the id %s is not in the store, and so is not exported: an output names it", id)
				return nil, nil
			}
			return nil, err
		},
	}
}
