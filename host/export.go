// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"cmp"
	"context"
	"errors"
	"io"
	"iter"
	"path/filepath"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/agentfile"
	"github.com/antiphon-go/antiphon/export"
	"github.com/antiphon-go/antiphon/internal/nils"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/session/store"
	"github.com/antiphon-go/antiphon/tool/output"
)

// Export writes a session with its nested sessions, without the secrets of the front
// end. It notifies about data that is missing in the store.
type Export struct {
	FrontEnd
	Store   store.Store
	Session session.Info
	// FullPaths writes the full path of the agent's file in HTML and JSON lines.
	// Otherwise only the name is written, so that an export does not reveal where its
	// author keeps files.
	FullPaths bool
	// Options are the options for loading the agent's file, whose declarations begin a
	// transcript.
	Options agentfile.Options
}

// JSONLines writes the whole log with all payloads, which [Import.Lines] reads. The
// session is read from the store while it is written.
func (e Export) JSONLines(ctx context.Context, w io.Writer) error {
	if nils.Is(e.Store) {
		return errNoStore
	}
	log := storedLog(ctx, e.Store, e.Session, &e.FrontEnd)
	log.Info.Path = e.path()
	return export.JSONLines(w, log)
}

// HTML writes one page for people, which includes all images.
func (e Export) HTML(ctx context.Context, w io.Writer) error {
	log, err := e.log(ctx)
	if err != nil {
		return err
	}
	log.Info.Path = e.path()
	return export.HTML(w, log)
}

// path returns the path of the agent's file as it may be written.
func (e Export) path() string {
	if e.FullPaths || e.Session.Path == "" {
		return e.Session.Path
	}
	return filepath.Base(e.Session.Path)
}

// Transcript returns a function that writes the conversation as ChatMarkdown, for a
// file at out. The text begins with the declarations of the session's agent, if its
// file exists, so that it can be run. The stored parts of outputs are written beside
// out first, where a later run looks for them. If out is "", they cannot be written,
// and a notice says so.
func (e Export) Transcript(ctx context.Context, out string) (write func(io.Writer) error, err error) {
	log, err := e.log(ctx)
	if err != nil {
		return nil, err
	}
	if err := e.keepBeside(ctx, log, out); err != nil {
		return nil, err
	}
	return func(w io.Writer) error {
		if nils.Is(w) {
			return errors.New("host: the writer of the transcript is nil")
		}
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

// log reads the session with its nested sessions.
func (e *Export) log(ctx context.Context) (export.Log, error) {
	s, err := session.Open(ctx, e.Store, e.Session.ID)
	if err != nil {
		return export.Log{}, err
	}
	log := storedLog(ctx, e.Store, e.Session, &e.FrontEnd)
	log.Entries = s.Log()
	e.tellWaiting(ctx, log)
	log.Waiting = nil
	log.Nested = func(id string) ([]session.Entry, error) {
		nested, err := session.Open(ctx, e.Store, id)
		if err != nil {
			return nil, err
		}
		return nested.Log(), nil
	}
	return log, nil
}

// tellWaiting says how much waits for the session and its nested ones: only lines hold it. So what cannot be read
// of it is no reason not to export the rest.
func (e *Export) tellWaiting(ctx context.Context, log export.Log) {
	ids, err := nestedOf(ctx, e.Store, e.Session.ID)
	waiting := 0
	for _, id := range append(ids, e.Session.ID) {
		for _, unread := range log.Waiting(id) {
			if unread != nil {
				err = cmp.Or(err, unread)
				break
			}
			waiting++
		}
	}
	if waiting > 0 {
		e.notify(NoticeMissing, "the export does not contain %s for the session, which no run has taken yet; JSON lines do", many(waiting, "delivery that waits", "deliveries that wait"))
	}
	if err != nil {
		e.notify(NoticeMissing, "the export does not contain what waits for the session, and not all of that can be read: %v", err)
	}
}

// nestedOf returns the ids of all sessions inside a session.
func nestedOf(ctx context.Context, in session.Catalog, id string) (ids []string, err error) {
	for info, err := range nils.Each(in, "List", in.List(ctx, session.Query{Prefix: id + "/", Nested: true, Archived: true})) {
		if err != nil {
			return ids, err
		}
		ids = append(ids, info.ID)
	}
	return ids, nil
}

// keepBeside writes the stored parts of a session's outputs beside its transcript at
// out, where a later run looks for them. For standard output it only sends a notice.
func (e *Export) keepBeside(ctx context.Context, log export.Log, out string) error {
	ids, err := log.Kept()
	if err != nil || len(ids) == 0 {
		return err
	}
	if out == "" {
		e.notify(NoticeNotBeside, "the outputs refer to %s that the transcript does not contain", many(len(ids), "kept output", "kept outputs"))
		return nil
	}
	folder, err := OutputsFolder(out)
	if err != nil {
		return err
	}
	beside := &output.DirStore{Dir: folder}
	for _, id := range ids {
		data, err := log.Blob(id)
		if err != nil {
			return err
		}
		if data == nil {
			continue // already reported
		}
		if _, err := beside.Put(ctx, data); err != nil {
			return err
		}
	}
	return nil
}

// declarations returns the beginning of the transcript at out. If the agent's file
// cannot be read any more, it sends a notice and returns "".
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

// storedLog returns a session whose entries are read while they are written.
func storedLog(ctx context.Context, from store.Store, info session.Info, front *FrontEnd) export.Log {
	return export.Log{
		Info: info,
		Hide: front.Environment.Hider(),
		Load: func(id string) iter.Seq2[session.Entry, error] { return from.Load(ctx, id, 0) },
		Waiting: func(id string) iter.Seq2[session.Delivery, error] {
			if box, ok := from.(session.Inbox); ok {
				return box.Deliveries(ctx, id)
			}
			return func(func(session.Delivery, error) bool) {}
		},
		Blob: func(id string) ([]byte, error) {
			spill := agent.BlobOutputs(from, info.ID)
			_, size, err := spill.Get(ctx, id, 0, 0)
			if err == nil {
				var data []byte
				data, _, err = spill.Get(ctx, id, 0, size)
				return data, err
			}
			if errors.Is(err, output.ErrNotStored) {
				front.notify(NoticeMissing, "the stored output %s is not in the store, so it is not exported, although an output refers to it", id)
				return nil, nil
			}
			return nil, err
		},
	}
}
