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
	"slices"
	"strings"
	"time"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/agentfile"
	"github.com/antiphon-go/antiphon/export"
	"github.com/antiphon-go/antiphon/internal/nils"
	"github.com/antiphon-go/antiphon/internal/reach"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/session/store"
	"github.com/antiphon-go/antiphon/tool/output"
	"github.com/antiphon-go/antiphon/trust"
)

// Import makes a session from an export or a transcript. Imported data carries no
// authority: approvals of calls that have not run, remembered rules and the like are
// dropped (rule K5 in docs/rules.md).
type Import struct {
	// Store receives the session. Existing sessions are not changed.
	Store store.Store
	// Name is the name of the session. If it is "", the previous name, or the file's,
	// is used.
	Name string
	// Path is the session's agent file in the form of [ResolvePath], so that a run can
	// continue it, or "".
	Path string
	// Options are the options for loading a transcript.
	Options agentfile.Options
	// Consent is asked once, before anything is in the store, about the sites from which the conversation makes an
	// endpoint fetch data. It is not called if there are none. If it is nil, or does not agree to every
	// site, nothing is imported and the error is a [*trust.UntrustedError] (rule K1 in docs/rules.md).
	Consent func(ctx context.Context, c trust.Claim) (trust.Agreement, error)
}

// Imported is the result of an [Import].
type Imported struct {
	session.Info
	// Dropped lists what was not imported, in order.
	Dropped []Dropped `json:"dropped"`
	// Sites are those from which the conversation makes an endpoint fetch images and files, once
	// a run continues it. [Import].Consent was asked about them.
	Sites []string `json:"sites,omitzero"`
	// Read is the number of entries that an import made, including those of nested
	// sessions.
	Read int `json:"-"`
}

// Dropped is one thing that an import or a fork left out.
type Dropped struct {
	Session string `json:"session"`
	Entry   int64  `json:"entry"`
	What    string `json:"what"`
}

var errNoReader = errors.New("host: the reader of the file to import is nil")

// Lines imports the output of [export.JSONLines], entry by entry. It reads f twice, or three times if there is a
// question; name is used in errors. If the file is incomplete, nothing is imported.
func (i Import) Lines(ctx context.Context, name string, f io.ReadSeeker) (*Imported, error) {
	if nils.Is(f) {
		return nil, errNoReader
	}
	return i.do(ctx, name, func(m *importer) error {
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

// Transcript imports a ChatMarkdown file, which contains the conversation. name is
// its path, for messages and to find the outputs that are stored beside it.
func (i Import) Transcript(ctx context.Context, name string, f io.Reader) (*Imported, error) {
	if nils.Is(f) {
		return nil, errNoReader
	}
	return i.do(ctx, name, func(m *importer) error { return m.transcript(ctx, name, f, i.Options) })
}

// do runs an import with read. If it fails, the session is deleted again, so that an
// import is either complete or leaves nothing behind.
func (i Import) do(ctx context.Context, file string, read func(*importer) error) (*Imported, error) {
	if nils.Is(i.Store) {
		return nil, errNoStore
	}
	m := &importer{consent: func(sites []string) error { return i.agreed(ctx, file, sites) }, store: i.Store, name: i.Name, path: i.Path, ids: map[string]string{}, parents: map[string]string{}, kept: map[string]bool{}, dropped: []Dropped{},
		from: fmt.Sprintf("an import of %q", filepath.Base(file))}
	err := read(m)
	if err == nil {
		err = m.call(ctx)
	}
	if err == nil {
		var info session.Info
		if info, err = i.Store.Info(ctx, m.made[0]); err == nil {
			return &Imported{info, m.dropped, m.sites, m.entries}, nil
		}
	}
	if len(m.made) > 0 { // deleting the first session deletes its nested sessions too
		err = errors.Join(err, takeBack(ctx, i.Store, m.made[0]))
	}
	return nil, err
}

// mostSites is how many sites a conversation may name: nobody reads a list that is longer.
const mostSites = 1000

// agreed returns an error unless the person agrees to the sites from which an endpoint is made to fetch.
func (i Import) agreed(ctx context.Context, file string, sites []string) error {
	claim := trust.Claim{Path: file}
	for _, site := range sites {
		claim.Powers.Add(trust.Power{Kind: trust.Loads, What: site})
	}
	switch {
	case len(sites) == 0:
		return nil
	case len(sites) > mostSites:
		return invalid("%s: the conversation lets the endpoint fetch from more than %d sites, which nobody can read", file, mostSites)
	case i.Consent == nil:
		return &trust.UntrustedError{Claim: claim}
	}
	a, err := i.Consent(ctx, claim)
	if err == nil && len(claim.Powers.Without(a.Powers)) > 0 {
		err = &trust.UntrustedError{Claim: claim}
	}
	return err
}

// importer makes sessions of a file.
type importer struct {
	consent    func(sites []string) error
	asked      bool // sites is what the person agreed to
	store      store.Store
	name, path string
	ids        map[string]string // new ids of the sessions in the file
	made       []string
	entries    int
	dropped    []Dropped
	sites      []string
	title      string            // from the file
	lastTag    []string          // likewise: it is added when the mark of an unfinished import is removed
	kept       map[string]bool   // ids that outputs refer to, and whether they were found
	named      []Dropped         // the same in order, with the id in What
	armed      []*agent.Disarm   // one for each session of the file, in order
	parents    map[string]string // parents of the sessions in the file, by their ids in the file
	from       string            // by which means what waits arrives
}

// disarmed returns an entry without the parts that could let something run.
func (i *importer) disarmed(d *agent.Disarm, id string, e session.Entry) (session.Entry, error) {
	kept, what := d.Entry(e)
	for _, text := range what {
		i.dropped = append(i.dropped, Dropped{id, e.Seq, text})
	}
	return kept, i.reaches(kept.Body)
}

var errChanged = errors.New("the file was changed while it was imported")

// reaches notes the sites from which an entry makes an endpoint fetch. After the question there can be no others.
func (i *importer) reaches(b session.Body) error {
	for _, it := range itemsIn(b) {
		for _, site := range reach.Sites(it, nil) {
			switch {
			case slices.Contains(i.sites, site):
			case i.asked:
				return &ConfigError{errChanged}
			case len(i.sites) <= mostSites:
				i.sites = append(i.sites, site)
			}
		}
	}
	return nil
}

// ask asks about the sites that were found, if there are any.
func (i *importer) ask() error {
	i.asked = true
	return i.consent(i.sites)
}

// itemsIn returns the items that an entry adds to what is sent.
func itemsIn(b session.Body) []item.Item {
	switch b := b.(type) {
	case session.InputItem:
		return []item.Item{b.Item}
	case session.OutputItem:
		return []item.Item{b.Item}
	case session.CallOutput:
		return []item.Item{b.Item}
	case session.Compacted:
		return b.Items
	}
	return nil
}

// takeBack deletes a session whose import failed.
func takeBack(ctx context.Context, store session.Catalog, id string) error {
	err := store.Delete(context.WithoutCancel(ctx), id)
	if errors.Is(err, session.ErrNotFound) {
		return nil
	}
	return err
}

// Limits of a batch of entries that are appended together: their number, and their
// bytes in the file. A batch is held in memory.
const (
	importBatch = 256
	importBytes = 1 << 20
)

// learn reads the file once to find the calls that were carried out, and asks about what the file lets an
// endpoint fetch.
func (i *importer) learn(f io.ReadSeeker) error {
	reaches := false
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
				return child == session.SubsessionID(id, number, callID) && i.parents[child] == id
			}
			if i.armed = append(i.armed, d); line.Session.Nested {
				i.parents[id] = line.Session.Parent
			}
		case line.Blob != nil:
		case line.Waiting != nil:
			for _, b := range line.Waiting.Bodies {
				reaches = reaches || fetches(b)
			}
		default:
			i.armed[len(i.armed)-1].Learn(line.Entry)
			reaches = reaches || fetches(line.Entry.Body)
		}
	}
	_, err := f.Seek(0, io.SeekStart)
	if err == nil && reaches {
		err = i.survey(f)
	}
	return cmp.Or(err, i.ask())
}

// fetches reports whether an entry, as it is in the file, makes an endpoint fetch something.
func fetches(b session.Body) bool {
	return slices.ContainsFunc(itemsIn(b), func(it item.Item) bool { return len(reach.Sites(it, nil)) > 0 })
}

// survey reads the file once more to find the sites of what will be imported.
func (i *importer) survey(f io.ReadSeeker) error {
	n := -1
	for line, err := range export.ReadJSONLines(f) {
		switch {
		case err != nil:
			return &ConfigError{err}
		case line.Session != nil:
			n++
		case line.Blob != nil:
		case line.Waiting != nil:
			for _, b := range line.Waiting.Bodies {
				kept, _ := new(agent.Disarm).Entry(session.Entry{Body: b})
				err = errors.Join(err, i.reaches(kept.Body))
			}
		default:
			if n >= len(i.armed) {
				return &ConfigError{errChanged}
			}
			kept, _ := i.armed[n].Entry(line.Entry)
			err = i.reaches(kept.Body)
		}
		if err != nil {
			return err
		}
	}
	_, err := f.Seek(0, io.SeekStart)
	return err
}

// importedLog is the log of a session that is imported now.
type importedLog struct {
	id    string
	end   int64           // the number of its last stored entry
	batch []session.Entry // that follow
	size  int             // of the batch, in bytes of the file
}

// lines makes sessions of JSON lines.
func (i *importer) lines(ctx context.Context, f io.ReadSeeker) error {
	if err := i.learn(f); err != nil {
		return err
	}
	var log importedLog
	for line, err := range export.ReadJSONLines(f) {
		if err == nil {
			err = i.line(ctx, &log, line)
		} else {
			err = &ConfigError{err}
		}
		if err != nil {
			return err
		}
	}
	if log.id == "" {
		return invalid("the file contains no session")
	}
	i.missing("in the file")
	return i.flush(ctx, &log, true)
}

// line takes the next line, which belongs to log or begins another one.
func (i *importer) line(ctx context.Context, log *importedLog, line export.Line) error {
	switch {
	case line.Blob != nil:
		return i.keep(ctx, line.Blob)
	case line.Waiting != nil:
		return i.deliver(ctx, log.id, *line.Waiting)
	case line.Session != nil:
		if log.id != "" {
			if err := i.flush(ctx, log, true); err != nil {
				return err
			}
		}
		id, err := i.begin(ctx, *line.Session)
		log.id, log.end = id, 0
		return err
	}
	if len(i.made) > len(i.armed) {
		return &ConfigError{errChanged}
	}
	i.note(log.id, line.Entry)
	kept, err := i.disarmed(i.armed[len(i.made)-1], log.id, line.Entry)
	if err != nil {
		return err
	}
	log.batch = append(log.batch, i.renamed(kept))
	if log.size += line.Size; len(log.batch) == importBatch || log.size >= importBytes {
		return i.flush(ctx, log, false)
	}
	return nil
}

// flush stores the batch of a log. ends says that it is the last one.
func (i *importer) flush(ctx context.Context, log *importedLog, ends bool) error {
	i.entries += len(log.batch)
	if ends {
		log.batch = endImported(log.batch, log.end)
	}
	err := i.store.Append(ctx, log.id, log.end, log.batch)
	log.end += int64(len(log.batch))
	log.batch, log.size = log.batch[:0:0], 0
	return err
}

// imported ends the entries of an import.
var imported = session.Noticed{Kind: session.NoticeImported, Text: "the entries before were imported: hooks and guards have not seen them"}

// endImported adds the notice that a session's entries were imported to a batch.
func endImported(batch []session.Entry, after int64) []session.Entry {
	return append(batch, session.Entry{Seq: after + int64(len(batch)) + 1, Time: time.Now().UTC(), Body: imported})
}

// note records the stored outputs that an entry refers to.
func (i *importer) note(id string, e session.Entry) {
	for _, named := range export.KeptIn(e) {
		if _, known := i.kept[named]; !known {
			i.kept[named] = false
			i.named = append(i.named, Dropped{id, e.Seq, named})
		}
	}
}

// missing reports the stored outputs that were not found.
func (i *importer) missing(where string) {
	for _, d := range i.named {
		if !i.kept[d.What] {
			d.What = fmt.Sprintf("the stored output %s: an output refers to it, but it is not %s", d.What, where)
			i.dropped = append(i.dropped, d)
		}
	}
}

// keep stores a blob under the same id, which is its hash, so that the rest of an
// output can be read as before.
func (i *importer) keep(ctx context.Context, b *export.Blob) error {
	if sum := sha256.Sum256(b.Data); b.ID != hex.EncodeToString(sum[:]) {
		return invalid("the blob %s was changed since the export: its SHA-256 differs", b.ID)
	}
	_, err := i.store.PutBlob(ctx, i.made[len(i.made)-1], b.Data)
	i.kept[b.ID] = err == nil
	return err
}

// deliver leaves the messages of a delivery in the inbox of a session. Answers about calls, requests to stop and all that is
// not a message are dropped: they act when they are taken, which is after the import. So are the sender and the means, which the
// log would state as facts. The key is made of the file's, which could be that of a delivery that this program makes later.
func (i *importer) deliver(ctx context.Context, id string, d session.Delivery) error {
	var bodies []session.Body
	for _, b := range d.Bodies {
		given, ok := b.(session.InputItem)
		if !ok || given.Item.Type() != item.TypeMessage || given.Item.Role() == item.RoleAssistant {
			i.dropped = append(i.dropped, Dropped{Session: id, What: fmt.Sprintf("a part of the delivery %q that waits, because it is not a message: %s", d.Key, session.Kind(b))})
			continue
		}
		kept, err := i.disarmed(new(agent.Disarm), id, session.Entry{Body: given})
		if err != nil {
			return err
		}
		if given, ok := kept.Body.(session.InputItem); ok {
			bodies = append(bodies, given)
		}
	}
	if len(bodies) == 0 {
		return nil
	}
	box, ok := i.store.(session.Inbox)
	if !ok {
		return invalid("messages wait for the session %s, and the store keeps no deliveries", id)
	}
	if d.By != "" || d.From != "" {
		i.dropped = append(i.dropped, Dropped{Session: id, What: fmt.Sprintf("that %q sent the delivery %q that waits, by %q; what it says stays", d.By, d.Key, d.From)})
	}
	head := session.Delivered{Key: session.OwnKey("import of %x", sha256.Sum256([]byte(d.Key))), From: i.from, Queued: d.Queued}
	_, err := box.Deliver(ctx, id, session.Delivery{Delivered: head, Bodies: bodies})
	return err
}

// beside imports the outputs in the folder beside a transcript that the transcript
// refers to by their full hash. Older versions used a shortened one.
func (i *importer) beside(ctx context.Context, transcript string) error {
	folder, err := OutputsFolder(transcript)
	if err != nil {
		return err
	}
	spill := &output.DirStore{Dir: folder}
	for _, d := range i.named {
		data, _, err := spill.Get(ctx, d.What, 0, math.MaxInt)
		if errors.Is(err, output.ErrNotStored) {
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

// begin makes the session that a line begins. Nested sessions keep the end of their
// ids, after the id of the first session.
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
	// The path and the owner in the file are ignored. The mark may need the place of a tag.
	tags := slices.DeleteFunc(slices.Clone(info.Tags), func(tag string) bool { return tag == UnfinishedImport })
	if n := len(tags); n > 0 {
		tags, i.lastTag = slices.Clip(tags[:n-1]), tags[n-1:]
	}
	return id, unlabelled(i.store.Create(ctx, session.Info{ID: id, Path: i.path, Tags: append(tags, UnfinishedImport)}))
}

// UnfinishedImport is the tag of a session while it is imported. If the import is killed, what is left of it keeps the tag, and has no
// name.
const UnfinishedImport = "unfinished-import"

// call names the session when it is complete, so that a run cannot continue the
// remains of an import that was killed.
func (i *importer) call(ctx context.Context) error {
	if i.title != "" {
		info, err := i.store.Info(ctx, i.made[0])
		if err == nil && info.Title != i.title { // a person set it
			err = unlabelled(i.store.Label(ctx, i.made[0], session.Labels{Title: &i.title}))
		}
		if err != nil {
			return err
		}
	}
	if i.name != "" {
		err := i.store.Rename(ctx, i.made[0], i.name)
		if errors.Is(err, session.ErrExists) {
			whose := "of the same file"
			if i.path == "" {
				whose = "that belongs to no agent"
			}
			return invalid("session %q %s exists already; give another name", i.name, whose)
		}
		if err != nil {
			return err
		}
	}
	return i.store.Label(ctx, i.made[0], session.Labels{Untag: []string{UnfinishedImport}, Tags: i.lastTag})
}

// renamedID returns the new id of a nested session of the file. Ids of nested
// sessions begin with the id of their parent.
// A guard, and an agent in a message, has none: "".
func (i *importer) renamedID(old string) string {
	if old == "" {
		return ""
	}
	for from, to := range i.ids {
		if rest, ok := strings.CutPrefix(old, from+"/"); ok {
			return to + "/" + rest
		}
	}
	return i.made[0] + "/" + filepath.Base(old)
}

// renamed returns an entry with the new ids of nested sessions.
func (i *importer) renamed(e session.Entry) session.Entry {
	switch b := e.Body.(type) {
	case session.CallStarted:
		b.Session = i.renamedID(b.Session)
		e.Body = b
	case session.SubagentUsage:
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
	bodies := file.Log()
	if len(bodies) == 0 {
		return invalid("%s: the transcript has no messages", path)
	}
	i.entries = len(bodies)
	var d agent.Disarm
	for n, body := range bodies {
		d.Learn(session.Entry{Seq: int64(n + 1), Body: body})
	}
	for n, body := range bodies {
		kept, _ := d.Entry(session.Entry{Seq: int64(n + 1), Body: body})
		if err := i.reaches(kept.Body); err != nil {
			return err
		}
	}
	if err := i.ask(); err != nil {
		return err
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
	for n, body := range bodies {
		kept, err := i.disarmed(&d, id, session.Entry{Seq: int64(n + 1), Body: body})
		if err != nil {
			return err
		}
		bodies[n] = kept.Body
	}
	for n, body := range bodies {
		i.note(id, session.Entry{Seq: int64(n + 1), Body: body})
	}
	if _, err = s.Append(ctx, append(bodies, imported)...); err != nil {
		return err
	}
	return i.beside(ctx, path)
}
