// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/agentfile"
	"github.com/antiphon-go/antiphon/chatmd"
	"github.com/antiphon-go/antiphon/export"
	"github.com/antiphon-go/antiphon/host"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/tool"
)

// importCommand is antiphon sessions import.
type importCommand struct {
	File string `arg:"" help:"JSON lines or a transcript; - is standard input."`
	Name string `placeholder:"NAME" help:"What to call the session. Default: the name that it had, or the file's."`
	For  string `placeholder:"AGENT" help:"The agent's file that it belongs to, so that a run can go on with it. Default: none."`
}

// Help is shown by antiphon sessions import --help.
func (importCommand) Help() string {
	return `FILE is one of two. JSON lines, of sessions export --to jsonl, hold everything, and
come back entry by entry. A transcript, of run --out or sessions export --to chatmd,
holds what was said. Anything else, such as an HTML page, and a file that was cut
short, is refused with what it seems to be, and nothing of it stays.

What is imported is a new session; nothing that is there is changed. It brings no
authority: approvals of calls that have not run, remembered rules and the like
are dropped, and each is listed. Without --for it belongs to no agent: it can be
shown, exported and forked, and no run takes it.

Examples:
  antiphon sessions import work.jsonl --for agent.md
  antiphon sessions import talk.md --name talk --for agent.md
  ssh host antiphon sessions export work --to jsonl | antiphon sessions import -`
}

// Run imports.
func (c *importCommand) Run(ctx context.Context, std stdio, env environment, all *sessionsCommand) error {
	path := ""
	if c.For != "" {
		var err error
		if path, err = host.ResolvePath(c.For); err != nil {
			return usage(fmt.Errorf("--for: %w", err))
		}
	}
	if c.Name != "" {
		if err := host.CheckName(c.Name); err != nil {
			return usage(err)
		}
	}
	f, name, done, err := c.input(ctx, std)
	if err != nil {
		return usage(err)
	}
	defer done()
	head, err := io.ReadAll(io.LimitReader(f, sniffed))
	if err == nil {
		err = notImportable(name, head, len(head) < sniffed)
	}
	if err != nil {
		return usage(err)
	}
	return all.opened(ctx, env, true, func(store keeper) error {
		i := &importer{store: store, name: c.Name, path: path, asked: c.For, ids: map[string]string{}, parents: map[string]string{}, kept: map[string]bool{}}
		if head[0] == '{' { // an exported session
			err = damaged(name, i.lines(ctx, f))
		} else {
			err = severalProblems(std, i.transcript(ctx, name, f))
		}
		if err == nil {
			err = i.call(ctx)
		}
		if err != nil {
			return errors.Join(err, i.takeBack(ctx))
		}
		return i.tell(ctx, std, all)
	})
}

// input opens the file. Standard input and a pipe are first written to a temporary
// file, since an export is read twice and need not fit into memory; done removes
// that.
func (c *importCommand) input(ctx context.Context, std stdio) (f *os.File, name string, done func(), err error) {
	if c.File == "-" {
		f, done, err = spooled(ctx, std, std.in)
		return f, standardInput, done, err
	}
	if f, err = os.Open(c.File); err != nil {
		return nil, "", nil, err
	}
	if info, err := f.Stat(); err != nil || info.Mode()&os.ModeNamedPipe == 0 {
		return f, c.File, func() { f.Close() }, err
	}
	defer f.Close()
	whole, done, err := spooled(ctx, std, f)
	return whole, c.File, done, err
}

// spooled is what a pipe brings, as a temporary file that can be read twice.
func spooled(ctx context.Context, std stdio, in io.Reader) (f *os.File, done func(), err error) {
	if f, err = os.CreateTemp("", "antiphon-import-*"); err != nil {
		return nil, nil, err
	}
	done = func() { f.Close(); os.Remove(f.Name()) }
	err = await(ctx, std, readingInput, func() error {
		_, err := io.Copy(f, in)
		return err
	})
	if err == nil {
		_, err = f.Seek(0, io.SeekStart)
	}
	if err != nil {
		done()
	}
	return f, done, err
}

// damaged names the file in the error about exported lines.
func damaged(name string, err error) error {
	switch {
	case errors.Is(err, export.ErrCut):
		return fmt.Errorf("%s: %w\n  hint: nothing was imported; export the session again, or copy the whole file", name, err)
	case err != nil:
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// severalProblems prints what is wrong with a transcript, each problem on a line of
// its own, since it is no run that was not begun.
func severalProblems(std stdio, err error) error {
	var problems chatmd.ErrorList
	if !errors.As(err, &problems) || len(problems) < 2 {
		return err
	}
	fmt.Fprintln(std.err, printable(problems.Error()))
	return usage(fmt.Errorf("%s in the file; nothing was imported", plural(len(problems), "problem")))
}

// importer makes sessions of a file.
type importer struct {
	store      keeper
	name, path string
	asked      string            // --for, as it was given
	ids        map[string]string // of the sessions in the file, as they are here
	made       []string
	entries    int
	dropped    []dropped
	title      string            // that the file says
	kept       map[string]bool   // ids that outputs name, and whether they were there
	named      []dropped         // the same in order, each with its id as What
	armed      []*agent.Disarm   // one for each session of the file, in order
	parents    map[string]string // of the sessions in the file, by the ids that they have there
}

// dropped is one thing that an import did not take over.
type dropped struct {
	Session string `json:"session"`
	Entry   int64  `json:"entry"`
	What    string `json:"what"`
}

// importedSession is what sessions import --json prints.
type importedSession struct {
	session.Info
	Dropped []dropped `json:"dropped"`
}

// tell says what was made and what was dropped.
func (i *importer) tell(ctx context.Context, std stdio, all *sessionsCommand) error {
	info, err := i.store.Info(ctx, i.made[0])
	if err != nil {
		return err
	}
	if all.JSON {
		return all.printJSON(std, importedSession{info, append([]dropped{}, i.dropped...)})
	}
	for _, d := range i.dropped {
		where := fmt.Sprintf("entry %d", d.Entry)
		if d.Session != info.ID {
			where += " of " + d.Session
		}
		fmt.Fprintln(std.err, "!! "+unbroken(all.hide(fmt.Sprintf("dropped, %s: %s", where, d.What))))
	}
	owner := "it belongs to no agent, and no run takes it; import it with --for AGENT for that"
	if info.Path != "" {
		owner = fmt.Sprintf("antiphon run %s --session %s%s goes on with it", quoted(i.asked), quoted(cmp.Or(info.Name, info.ID)), all.again())
	}
	return all.told(std, nil, "%s is made, of %s; %s", info.ID, plural(i.entries, "entry"), owner)
}

// disarmed is an entry without what would let something run.
func (i *importer) disarmed(d *agent.Disarm, id string, e session.Entry) session.Entry {
	kept, what := d.Entry(e)
	for _, text := range what {
		i.dropped = append(i.dropped, dropped{id, e.Seq, text})
	}
	return kept
}

// takeBack deletes what was made of a file that was not whole: the first
// session, and those that are nested in it with it.
func (i *importer) takeBack(ctx context.Context) error {
	if len(i.made) == 0 {
		return nil
	}
	return takeBack(ctx, i.store, i.made[0])
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
func (i *importer) learn(f *os.File) error {
	if _, err := f.Seek(0, 0); err != nil {
		return err
	}
	for line, err := range export.ReadJSONLines(f) {
		switch {
		case err != nil:
			return usage(err)
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
	_, err := f.Seek(0, 0)
	return err
}

// lines makes sessions of JSON lines.
func (i *importer) lines(ctx context.Context, f *os.File) error {
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
			return usage(err)
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
		return usage(errors.New("no session is in it"))
	}
	i.missing("in the file")
	return flush()
}

// note remembers what an entry names as kept beside the log.
func (i *importer) note(id string, e session.Entry) {
	for _, named := range export.KeptIn(e) {
		if _, known := i.kept[named]; !known {
			i.kept[named] = false
			i.named = append(i.named, dropped{id, e.Seq, named})
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
		return usage(fmt.Errorf("the blob %s is not what was exported: its SHA-256 differs", printable(b.ID)))
	}
	_, err := i.store.PutBlob(ctx, i.made[len(i.made)-1], b.Data)
	i.kept[b.ID] = err == nil
	return err
}

// beside takes over what the outputs of a transcript name and the folder beside it
// has, as far as it is named by its whole hash, which older versions did not do.
func (i *importer) beside(ctx context.Context, transcript string) error {
	folder, err := host.OutputsFolder(transcript)
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
			return usage(err)
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
		if err := host.CheckName(i.name); err != nil {
			return "", usage(fmt.Errorf("%w; give another --name", err))
		}
	}
	id := host.NewSessionID(cmp.Or(i.name, "imported"))
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
		return usage(fmt.Errorf("a session %q %s is there already; give another --name", i.name, whose))
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
func (i *importer) transcript(ctx context.Context, path string, f *os.File) error {
	options, err := fileOptions()
	if err != nil {
		return err
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return err
	}
	text, err := io.ReadAll(f)
	if err != nil {
		return err
	}
	file, err := agentfile.Parse(ctx, path, text, options)
	if err != nil {
		return host.LoadError(err)
	}
	defer file.Close()
	name := cmp.Or(i.name, strings.TrimSuffix(filepath.Base(path), filepath.Ext(path)))
	if path == standardInput {
		name = cmp.Or(i.name, "imported")
	}
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
