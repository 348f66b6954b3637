// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/alecthomas/kong"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/agent/plan"
	"github.com/antiphon-go/antiphon/agentfile"
	"github.com/antiphon-go/antiphon/export"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/session/store"
)

// kept is a session of a store, locked for a run.
type kept struct {
	store  keeper
	info   session.Info
	unlock func() error    // nil as long as it is not locked
	log    []session.Entry // what earlier runs left
	fresh  bool            // it was made for this run, which has not begun yet
}

// close gives the session and the store back. A session of a run that could not
// begin, for want of a model or a file, goes with it.
func (k *kept) close() (err error) {
	if k == nil {
		return nil
	}
	if k.unlock != nil {
		if k.fresh && len(k.log) == 0 {
			err = k.store.Delete(context.Background(), k.info.ID)
		}
		err = errors.Join(err, k.unlock())
	}
	return errors.Join(err, k.store.Close())
}

// stays says that the run begins.
func (k *kept) stays() {
	if k != nil {
		k.fresh = false
	}
}

// keep opens the session that --session names, of this file, or begins it with
// what the file says. What agents in the file's messages said is in the log of a
// session that has begun: they are not asked again.
func (c *runCommand) keep(ctx context.Context, std stdio, env environment, options agentfile.Options) (*agentfile.File, *session.Session, error) {
	path, err := resolved(c.File)
	if err != nil {
		return nil, nil, usage(err)
	}
	if place, err := c.place(env); c.Last && err == nil && store.IsPath(place) {
		if _, err := os.Stat(place); errors.Is(err, fs.ErrNotExist) { // no store is made to look into
			return nil, nil, c.noLast()
		}
	}
	c.screen.wait("store", "the store of the sessions")
	defer c.screen.done("store")
	opening, stop := c.bounded(ctx)
	k, err := c.storeFlag.open(opening, env, true)
	if err != nil && ctx.Err() == nil && opening.Err() != nil {
		err = fmt.Errorf("opening the store of the sessions: %w", err)
	}
	stop()
	if err != nil {
		return nil, nil, err
	}
	c.kept = &kept{store: k}
	if c.kept.info, err = c.named(ctx, k, path); err != nil {
		return nil, nil, err
	}
	if c.Last {
		c.Session = c.kept.info.ID
	}
	if err := c.checkOut(env, c.kept.info.ID); err != nil {
		return nil, nil, err
	}
	var file *agentfile.File
	if c.kept.info.ID == "" { // of a file with mistakes no session is made
		if file, err = agentfile.Load(ctx, c.File, options); err != nil {
			return nil, nil, unread(err)
		}
		if c.kept.info, err = c.begin(ctx, k, path); err != nil {
			return nil, nil, err
		}
		c.kept.fresh = true
	}
	s, err := c.kept.lock(ctx)
	if err != nil {
		return nil, nil, err
	}
	c.screen.done("store")
	if len(c.Tag) > 0 && !c.kept.fresh {
		if err := k.Label(ctx, s.ID(), session.Labels{Tags: c.Tag}); err != nil {
			return nil, nil, unlabelled(err)
		}
	}
	if c.Spill == "" {
		c.spill = agent.BlobSpill(k, s.ID())
	}
	c.kept.log = s.Log()
	begun := len(c.kept.log) > 0
	if begun {
		options.Check, options.Runner = true, nil
	}
	if file == nil {
		if file, err = agentfile.Load(ctx, c.File, options); err != nil {
			return nil, nil, unread(err)
		}
	}
	warn(std, file)
	c.sayOther(std, path)
	if begun {
		if !file.Partial && !beginsWith(s, file) {
			fmt.Fprintf(std.err, "antiphon: the messages of %s are not those that the session %s began with; it goes on with its own (a session of another name begins anew)\n", printable(c.File), printable(c.Session))
		}
		c.sayContinues(std)
		return file, s, nil
	}
	if err := c.sayNew(ctx, std, path); err != nil {
		return nil, nil, err
	}
	_, err = s.Append(ctx, file.Log()...)
	return file, s, err
}

// sayOther tells of a session that was named by its id and is not where one
// would look for it.
func (c *runCommand) sayOther(std stdio, path string) {
	info := c.kept.info
	if info.Path != "" && info.Path != path {
		fmt.Fprintf(std.err, "antiphon: the session %s belongs to %s; it goes on with %s\n", printable(info.ID), printable(info.Path), printable(c.File))
	}
	if info.Archived {
		fmt.Fprintf(std.err, "antiphon: the session %s is archived; antiphon sessions archive --undo takes it back\n", printable(info.ID))
	}
}

// called is what a person calls a session.
func called(info session.Info) string { return printable(cmp.Or(info.Name, info.ID)) }

// sayContinues says which conversation the run goes on with. U7
func (c *runCommand) sayContinues(std stdio) {
	if c.Quiet {
		return
	}
	info := c.kept.info
	fmt.Fprintf(std.err, "antiphon: continues %s, %s, last %s\n", called(info), plural(len(c.kept.log), "entry"), when(info.Updated))
}

// maxNearby is how many sessions are named that may have been meant.
const maxNearby = 3

// maxLooked is among how many sessions of the file, those written to last, a name
// that is nearly the same is looked for.
const maxLooked = 1000

// sayNew says that a session begins, and which others may have been meant: of
// another file under the same name, such as one that was moved, and of the same
// file under a name that is nearly the same. U7
func (c *runCommand) sayNew(ctx context.Context, std stdio, path string) error {
	if !c.Quiet {
		fmt.Fprintf(std.err, "antiphon: new session %s\n", called(c.kept.info))
	}
	left := maxNearby
	say := func(q session.Query, meant func(session.Info) bool, format string, args func(session.Info) []any) error {
		for info, err := range c.kept.store.List(ctx, q) {
			if err != nil {
				return err
			}
			if info.ID == c.kept.info.ID || !meant(info) {
				continue
			}
			if left--; left < 0 {
				return nil
			}
			fmt.Fprintf(std.err, "antiphon: "+format+"\n", args(info)...)
		}
		return nil
	}
	err := say(session.Query{Name: c.Session, Owner: c.Owner}, func(i session.Info) bool { return i.Path != path },
		"there is also %s of %s, with %s; antiphon sessions rename %s OTHER-NAME --for %s makes it this file's",
		func(i session.Info) []any {
			return []any{called(i), printable(cmp.Or(i.Path, "no file")), plural(int(i.Entries), "entry"), i.ID, printable(quoted(c.File))}
		})
	if err != nil {
		return err
	}
	return say(session.Query{Path: path, Owner: c.Owner, Limit: maxLooked}, func(i session.Info) bool { return nearly(i.Name, c.Session) },
		"there is also %s of this file, with %s; --session %s goes on with it",
		func(i session.Info) []any {
			return []any{called(i), plural(int(i.Entries), "entry"), printable(quoted(i.Name))}
		})
}

// nearly reports whether one name may be a slip of the other: the same letters
// but for case or order, or one edit for each four letters.
func nearly(a, b string) bool {
	if a == "" || b == "" {
		return false
	}
	x, y := []rune(strings.ToLower(a)), []rune(strings.ToLower(b))
	if a, b := slices.Sorted(slices.Values(x)), slices.Sorted(slices.Values(y)); slices.Equal(a, b) {
		return true
	}
	row := make([]int, len(y)+1)
	for j := range row {
		row[j] = j
	}
	for i := range x {
		diagonal := row[0]
		row[0] = i + 1
		for j := range y {
			edits := diagonal
			if x[i] != y[j] {
				edits = 1 + min(diagonal, row[j], row[j+1])
			}
			diagonal, row[j+1] = row[j+1], edits
		}
	}
	return row[len(y)] <= max(1, min(len(x), len(y))/4)
}

// lock opens the session to write to it.
func (k *kept) lock(ctx context.Context) (*session.Session, error) {
	s, err := session.Open(ctx, k.store, k.info.ID)
	if err == nil {
		k.unlock, err = s.Lock(ctx)
	}
	return s, err
}

// shortened reports whether an earlier run may have shortened an output, and told
// the model how to read the rest.
func (k *kept) shortened() bool {
	return k != nil && agent.Shortened(k.log)
}

// named returns the session of that name, or by that id, for the file at path.
// If there is none, it has no ID.
func (c *runCommand) named(ctx context.Context, store keeper, path string) (session.Info, error) {
	if c.Last {
		for info, err := range store.List(ctx, session.Query{Path: path, Owner: c.Owner, Limit: 1}) {
			return info, err
		}
		return session.Info{}, c.noLast()
	}
	for info, err := range store.List(ctx, session.Query{Name: c.Session, Path: path, Owner: c.Owner}) {
		if err != nil || info.Owner == c.Owner { // without --owner, those that are nobody's
			return info, err
		}
	}
	info, err := store.Info(ctx, c.Session)
	if err == nil && c.Owner != "" && info.Owner != c.Owner {
		return session.Info{}, usage(fmt.Errorf("--owner %s: the session %s is not theirs", c.Owner, info.ID))
	}
	if errors.Is(err, session.ErrNotFound) {
		if err := checkName(c.Session); err != nil {
			return session.Info{}, usage(err)
		}
		return session.Info{}, nil
	}
	if err == nil && info.Nested {
		return session.Info{}, usage(fmt.Errorf("the session %s is part of %s, and goes on with that; to try something else with it, fork it", info.ID, info.Parent))
	}
	if err == nil && info.Path == "" { // K5: what was imported is somebody's who may not have meant this agent
		return session.Info{}, usage(fmt.Errorf("the session %s belongs to no agent; antiphon sessions import FILE --for %s makes one that does (sessions export %s --to jsonl writes such a FILE)", info.ID, c.File, info.ID))
	}
	return info, err
}

// noLast is the error of --last where the file has no session.
func (c *runCommand) noLast() error {
	return usage(fmt.Errorf("--last: there is no session of %s yet; --session NAME begins one", c.File))
}

// begin makes the session of that name for the file at path.
func (c *runCommand) begin(ctx context.Context, store keeper, path string) (session.Info, error) {
	info := session.Info{ID: newSessionID(c.Session), Name: c.Session, Path: path, Owner: c.Owner, Tags: c.Tag}
	err := unlabelled(store.Create(ctx, info))
	if errors.Is(err, session.ErrExists) {
		return c.named(ctx, store, path) // another process was quicker
	}
	return info, err
}

// beginsWith reports whether a session began with what the file says now.
func beginsWith(s *session.Session, file *agentfile.File) bool {
	log := s.Log()
	for _, body := range file.Log() {
		given, ok := body.(session.Given)
		if !ok {
			continue
		}
		for len(log) > 0 {
			first, ok := log[0].Body.(session.Given)
			if ok && sameItem(first.Item, given.Item) {
				break
			}
			if ok {
				return false
			}
			log = log[1:]
		}
		if len(log) == 0 {
			return false
		}
		log = log[1:]
	}
	return true
}

// sameItem reports whether two items are the same bytes, of which a store may
// hold payloads. None is read for that.
func sameItem(a, b item.Item) bool {
	if a == b || !a.Held() && !b.Held() {
		return a == b
	}
	restA, payloadsA, _ := a.Split(item.LeastPayload)
	restB, payloadsB, _ := b.Split(item.LeastPayload)
	return restA == restB && slices.Equal(payloadsA, payloadsB)
}

// lastSaid returns the last message of a log that is not the model's.
func lastSaid(s *session.Session) item.Item {
	log := s.Log()
	for i := len(log) - 1; i >= 0; i-- {
		given, ok := log[i].Body.(session.Given)
		if ok && given.Item.Type() == item.TypeMessage && given.Item.Role() != item.RoleAssistant {
			return given.Item
		}
	}
	return item.Item{}
}

// unanswered reports whether a run that says nothing new would go on.
func unanswered(s *session.Session) bool {
	var state plan.State
	for e := range s.Entries() {
		state.Apply(e)
	}
	state.Apply(session.Entry{Body: session.RunStarted{}})
	stop, ok := state.Next().(plan.Stop)
	return !ok || stop.Why != agent.NothingToSend
}

// resolved returns the path that tells a file from all others: absolute, with
// its links followed.
func resolved(path string) (string, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(abs)
}

// resolvedOnce is the path that a file has, or had before it was moved or deleted.
func resolvedOnce(path string) (string, error) {
	now, err := resolved(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return now, err
	}
	folder, err := resolved(filepath.Dir(path))
	if errors.Is(err, fs.ErrNotExist) {
		return filepath.Abs(path)
	}
	return filepath.Join(folder, filepath.Base(path)), err
}

// Validate refuses an empty --session, such as that of a variable that is not
// set: the run would be kept nowhere.
func (c *runCommand) Validate(k *kong.Context) error {
	for _, p := range k.Path {
		if p.Flag != nil && p.Flag.Name == "session" && c.Session == "" {
			return errors.New("--session wants a name, and this one is empty")
		}
	}
	return nil
}

const maxName = 64

// checkName refuses what cannot be told apart, typed, or seen.
func checkName(name string) error {
	switch {
	case name == "" || strings.TrimSpace(name) != name:
		return fmt.Errorf("a session's name %q: give one without white space around it", name)
	case utf8.RuneCountInString(name) > maxName:
		return fmt.Errorf("a session's name %s: it has up to %d characters", shorten(fmt.Sprintf("%q", name), 40), maxName)
	case strings.HasPrefix(name, "-"):
		return fmt.Errorf("a session's name %q: it cannot begin with -, or it would be read as a flag", name)
	case strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) || reorders(r) || r == '/' || r == '\\' }):
		return fmt.Errorf("a session's name %q: it can have letters, digits, blanks and signs, but no slashes or control characters", name)
	}
	return nil
}

// newSessionID returns an id that begins with what can stand in one of the name.
func newSessionID(name string) string {
	slug := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '-', r == '_':
			return r
		case r >= 'A' && r <= 'Z':
			return r - 'A' + 'a'
		case r == ' ' || r == '.':
			return '-'
		}
		return -1
	}, name)
	slug = strings.Trim(slug[:min(len(slug), 24)], "-")
	if slug == "" {
		slug = "session"
	}
	var random [5]byte
	rand.Read(random[:])
	return slug + "-" + hex.EncodeToString(random[:])
}

// rescued saves what was said in a session whose file was deleted or replaced
// under the run, as far as it is in memory, and says where. It goes to the folder
// for temporary files: the store's own may be gone.
func (c *runCommand) rescued(std stdio, env environment, s *session.Session, err error) error {
	if c.kept == nil || !errors.Is(err, session.ErrLost) {
		return err
	}
	local, ok := c.kept.store.(store.Local)
	if !ok || local.File() == "" {
		return err // a server has what was said
	}
	if store.Encrypted(c.kept.store) {
		id := c.kept.info.ID
		file, failed := saveEncrypted(context.Background(), local, id, s.Log())
		if failed != nil {
			return errors.Join(err, fmt.Errorf("what was said could not be saved: %w", failed))
		}
		fmt.Fprintf(std.err, "!! what was said is saved in %s, encrypted with the same key; antiphon sessions export %s --store %s writes it out\n", printable(file), id, printable(quoted(file)))
		return err
	}
	file := filepath.Join(os.TempDir(), c.kept.info.ID+".jsonl")
	ctx := context.Background() // the run's has ended
	log := storedLog(ctx, std, c.kept.store, c.kept.info, env)
	log.Load, log.Entries = nil, s.Log()
	log.Nested = func(id string) ([]session.Entry, error) {
		nested, err := session.Open(ctx, c.kept.store, id)
		if err != nil || len(nested.Log()) == 0 {
			fmt.Fprintf(std.err, "!! the nested session %s could not be read any more, and so is not saved\n", printable(id))
			return nil, nil
		}
		return nested.Log(), nil
	}
	if _, failed := writeFile(file, true, func(w io.Writer) error { return export.JSONLines(w, log) }); failed != nil {
		return errors.Join(err, fmt.Errorf("what was said could not be saved: %w", failed))
	}
	fmt.Fprintf(std.err, "!! what was said is saved in %s; antiphon sessions import reads it back\n", printable(file))
	return err
}

// saveEncrypted keeps a session in a new store with the same key, in the folder
// for temporary files.
func saveEncrypted(ctx context.Context, local store.Local, id string, log []session.Entry) (file string, err error) {
	draft, err := os.CreateTemp("", filepath.Base(id)+"-*.db")
	if err != nil {
		return "", err
	}
	if err := draft.Close(); err != nil {
		return "", err
	}
	another, err := local.Another(ctx, draft.Name())
	if err != nil {
		return "", err
	}
	return draft.Name(), errors.Join(another.Append(ctx, id, 0, log), another.Close())
}
