// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"strings"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/agentfile"
	"github.com/antiphon-go/antiphon/export"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/session/store"
	"github.com/antiphon-go/antiphon/tool"
)

// Import makes a session of what an export has written, or of a transcript. What is
// imported brings no authority: approvals of calls that have not run, remembered
// rules and the like are dropped. K5
type Import struct {
	// Store gets the session. Nothing that is there is changed.
	Store store.Store
	// Name is what the session is called. "" is the name that it had, or the file's.
	Name string
	// Path is the agent's file that it belongs to, as of [ResolvePath], so that a
	// run can go on with it. "" is none.
	Path string
	// Options are what a transcript may name.
	Options agentfile.Options
}

// Imported is what an [Import] has made.
type Imported struct {
	session.Info
	// Dropped is what was not taken over, in order.
	Dropped []Dropped `json:"dropped"`
	// Read is how many entries an import made, those of nested sessions included.
	Read int `json:"-"`
}

// Dropped is one thing that an import, or a fork, did not take over.
type Dropped struct {
	Session string `json:"session"`
	Entry   int64  `json:"entry"`
	What    string `json:"what"`
}

// Lines imports what [export.JSONLines] has written, entry by entry. It reads it
// twice, and calls it by name in errors. Of a file that is not whole nothing stays.
func (i Import) Lines(ctx context.Context, name string, f io.ReadSeeker) (*Imported, error) {
	return i.do(ctx, func(m *importer) error {
		err := m.lines(ctx, f)
		switch {
		case errors.Is(err, export.ErrCut):
			return fmt.Errorf("%s: %w\n  hint: nothing was imported; export the session again, or copy the whole file", name, err)
		case err != nil:
			return fmt.Errorf("%s: %w", name, err)
		}
		return nil
	})
}

// Transcript imports a ChatMarkdown file, which holds what was said. Name is its
// path, for messages and for the outputs that are kept beside it.
func (i Import) Transcript(ctx context.Context, name string, f io.Reader) (*Imported, error) {
	return i.do(ctx, func(m *importer) error { return m.transcript(ctx, name, f, i.Options) })
}

func (i Import) do(ctx context.Context, read func(*importer) error) (*Imported, error) {
	m := &importer{store: i.Store, name: i.Name, path: i.Path, ids: map[string]string{}, parents: map[string]string{}, kept: map[string]bool{}, dropped: []Dropped{}}
	err := read(m)
	if err == nil {
		err = m.call(ctx)
	}
	if err == nil {
		var info session.Info
		if info, err = i.Store.Info(ctx, m.made[0]); err == nil {
			return &Imported{info, m.dropped, m.entries}, nil
		}
	}
	if len(m.made) > 0 { // the first session, and those that are nested in it with it
		err = errors.Join(err, takeBack(ctx, i.Store, m.made[0]))
	}
	return nil, err
}

// importer makes sessions of a file.
type importer struct {
	store      store.Store
	name, path string
	ids        map[string]string // of the sessions in the file, as they are here
	made       []string
	entries    int
	dropped    []Dropped
	title      string            // that the file says
	kept       map[string]bool   // ids that outputs name, and whether they were there
	named      []Dropped         // the same in order, each with its id as What
	armed      []*agent.Disarm   // one for each session of the file, in order
	parents    map[string]string // of the sessions in the file, by the ids that they have there
}

// disarmed is an entry without what would let something run.
func (i *importer) disarmed(d *agent.Disarm, id string, e session.Entry) session.Entry {
	kept, what := d.Entry(e)
	for _, text := range what {
		i.dropped = append(i.dropped, Dropped{id, e.Seq, text})
	}
	return kept
}

// takeBack deletes what was begun of a session that cannot be made.
func takeBack(ctx context.Context, store session.Catalog, id string) error {
	err := store.Delete(context.WithoutCancel(ctx), id)
	if errors.Is(err, session.ErrNotFound) {
		return nil
	}
	return err
}

// Entries are appended together up to so many, and up to so many bytes of the
// file: a batch is in memory.
const (
	importBatch = 256
	importBytes = 1 << 20
)

// learn reads the file once to see which calls were carried out.
func (i *importer) learn(f io.ReadSeeker) error {
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return err
	}
	for line, err := range export.ReadJSONLines(f) {
		switch {
		case err != nil:
			return &ConfigError{err}
		case line.Session != nil:
			d, id := new(agent.Disarm), line.Session.ID
			d.Child = func(number int, callID, child string) bool {
				return child == session.NestedID(id, number, callID) && i.parents[child] == id
			}
			if i.armed = append(i.armed, d); line.Session.Nested {
				i.parents[id] = line.Session.Parent
			}
		case line.Blob != nil:
		default:
			i.armed[len(i.armed)-1].Learn(line.Entry)
		}
	}
	_, err := f.Seek(0, io.SeekStart)
	return err
}

// lines makes sessions of JSON lines.
func (i *importer) lines(ctx context.Context, f io.ReadSeeker) error {
	if err := i.learn(f); err != nil {
		return err
	}
	var id string
	var batch []session.Entry
	var end int64
	size := 0
	flush := func() error {
		err := i.store.Append(ctx, id, end, batch)
		end += int64(len(batch))
		i.entries += len(batch)
		batch, size = batch[:0:0], 0
		return err
	}
	for line, err := range export.ReadJSONLines(f) {
		if err != nil {
			return &ConfigError{err}
		}
		if line.Blob != nil {
			if err := i.keep(ctx, line.Blob); err != nil {
				return err
			}
			continue
		}
		if line.Session == nil {
			i.note(id, line.Entry)
			batch = append(batch, i.renamed(i.disarmed(i.armed[len(i.made)-1], id, line.Entry)))
			size += line.Size
		}
		if len(batch) > 0 && (line.Session != nil || len(batch) == importBatch || size >= importBytes) {
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
		return invalid("no session is in it")
	}
	i.missing("in the file")
	return flush()
}

// note remembers what an entry names as kept beside the log.
func (i *importer) note(id string, e session.Entry) {
	for _, named := range export.KeptIn(e) {
		if _, known := i.kept[named]; !known {
			i.kept[named] = false
			i.named = append(i.named, Dropped{id, e.Seq, named})
		}
	}
}

// missing tells what outputs name as kept and was not there.
func (i *importer) missing(where string) {
	for _, d := range i.named {
		if !i.kept[d.What] {
			d.What = fmt.Sprintf("what is kept with the id %s: an output names it, and it is not %s", d.What, where)
			i.dropped = append(i.dropped, d)
		}
	}
}

// keep takes over what entries name: under the same id, which is its hash, so
// that what was left out of an output can be read here as there.
func (i *importer) keep(ctx context.Context, b *export.Blob) error {
	if sum := sha256.Sum256(b.Data); b.ID != hex.EncodeToString(sum[:]) {
		return invalid("the blob %s is not what was exported: its SHA-256 differs", b.ID)
	}
	_, err := i.store.PutBlob(ctx, i.made[len(i.made)-1], b.Data)
	i.kept[b.ID] = err == nil
	return err
}

// beside takes over what the outputs of a transcript name and the folder beside it
// has, as far as it is named by its whole hash, which older versions did not do.
func (i *importer) beside(ctx context.Context, transcript string) error {
	folder, err := OutputsFolder(transcript)
	if err != nil {
		return err
	}
	spill := &tool.DirSpill{Dir: folder}
	for _, d := range i.named {
		data, _, err := spill.Get(ctx, d.What, 0, math.MaxInt)
		if errors.Is(err, tool.ErrNotStored) {
			continue
		}
		if err != nil {
			return &ConfigError{err}
		}
		if sum := sha256.Sum256(data); d.What == hex.EncodeToString(sum[:]) {
			if err := i.keep(ctx, &export.Blob{ID: d.What, Data: data}); err != nil {
				return err
			}
		}
	}
	i.missing("beside the transcript under its whole SHA-256")
	return nil
}

// begin makes the session that a line begins. Those that are nested keep the end
// of their ids, after that of the first one.
func (i *importer) begin(ctx context.Context, info session.Info) (string, error) {
	old := info.ID
	if len(i.made) > 0 {
		id := i.renamedID(old)
		i.ids[old] = id
		i.made = append(i.made, id)
		return id, i.store.Create(ctx, session.Info{ID: id, Parent: cmp.Or(i.ids[info.Parent], i.made[0]), Nested: true})
	}
	if i.name = cmp.Or(i.name, info.Name); i.name != "" {
		if err := CheckName(i.name); err != nil {
			return "", invalid("%w; give another name", err)
		}
	}
	id := NewSessionID(cmp.Or(i.name, "imported"))
	i.ids[old] = id
	i.made = append(i.made, id)
	i.title = info.Title
	// What the file says of the path and the owner counts for nothing.
	return id, unlabelled(i.store.Create(ctx, session.Info{ID: id, Path: i.path, Tags: info.Tags}))
}

// call gives the session its name, when it is whole: what an import that was
// killed leaves behind is nothing that a run would go on with.
func (i *importer) call(ctx context.Context) error {
	if i.title != "" {
		info, err := i.store.Info(ctx, i.made[0])
		if err == nil && info.Title != i.title { // a person gave it
			err = unlabelled(i.store.Label(ctx, i.made[0], session.Labels{Title: &i.title}))
		}
		if err != nil {
			return err
		}
	}
	if i.name == "" {
		return nil
	}
	err := i.store.Rename(ctx, i.made[0], i.name)
	if errors.Is(err, session.ErrExists) {
		whose := "of the same file"
		if i.path == "" {
			whose = "that belongs to no agent"
		}
		return invalid("a session %q %s is there already; give another name", i.name, whose)
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
func (i *importer) transcript(ctx context.Context, path string, f io.Reader, options agentfile.Options) error {
	text, err := io.ReadAll(f)
	if err != nil {
		return err
	}
	file, err := agentfile.Parse(ctx, path, text, options)
	if err != nil {
		return LoadError(err)
	}
	defer file.Close()
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
		return invalid("%s: nothing is said in it", path)
	}
	i.entries = len(bodies)
	var d agent.Disarm
	for n, body := range bodies {
		d.Learn(session.Entry{Seq: int64(n + 1), Body: body})
	}
	for n, body := range bodies {
		bodies[n] = i.disarmed(&d, id, session.Entry{Seq: int64(n + 1), Body: body}).Body
	}
	for n, body := range bodies {
		i.note(id, session.Entry{Seq: int64(n + 1), Body: body})
	}
	if _, err = s.Append(ctx, bodies...); err != nil {
		return err
	}
	return i.beside(ctx, path)
}
