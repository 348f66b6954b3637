// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/agentfile"
	"github.com/antiphon-go/antiphon/export"
	"github.com/antiphon-go/antiphon/internal/nils"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/session/store"
)

// keep opens the configured session of the file, or creates it with the file's
// content. If the session has begun, its log contains the answers of agents in the
// file's messages, and they are not asked again.
func (h *Host) keep(ctx context.Context, options agentfile.Options) error {
	path, err := ResolvePath(h.cfg.File)
	if err != nil {
		return &ConfigError{err}
	}
	if err := h.openStore(ctx); err != nil {
		return err
	}
	if h.Info, err = h.find(ctx, path); err != nil {
		return err
	}
	if h.cfg.Permit != nil {
		if err := h.cfg.Permit(h.Info); err != nil {
			return err
		}
	}
	if h.Info.ID == "" { // do not create a session for a file with mistakes
		if h.File, err = agentfile.Load(ctx, h.cfg.File, options); err != nil {
			return LoadError(err)
		}
		if h.Info, err = h.begin(ctx, path); err != nil {
			return err
		}
		h.fresh = true
	}
	h.Session, h.unlock, err = session.OpenLocked(ctx, h.Store, h.Info.ID, func() error {
		if h.cfg.Opening != nil && !h.fresh {
			h.cfg.Opening(ctx, h.Store, h.Info)
		}
		return nil
	})
	if err == nil && len(h.Session.Log()) == 0 && h.Info.Entries > 0 {
		err = fmt.Errorf("session %q: %w: it was deleted since it was found", h.Info.ID, session.ErrNotFound)
	}
	if err == nil && h.cfg.Locked != nil {
		err = h.cfg.Locked(ctx, h.Info)
	}
	if err != nil {
		return err
	}
	if len(h.cfg.Tags) > 0 && !h.fresh {
		if err := h.Store.Label(ctx, h.Info.ID, session.Labels{Tags: h.cfg.Tags}); err != nil {
			return unlabelled(err)
		}
	}
	if h.cfg.Outputs == "" {
		h.spill = agent.BlobOutputs(h.Store, h.Info.ID)
	}
	h.earlier = h.Session.Log()
	return h.beginWith(ctx, options, path)
}

// openStore opens the store, unless the configuration has an open one.
func (h *Host) openStore(ctx context.Context) error {
	if h.Store = h.cfg.Store; h.Store != nil {
		return nil
	}
	if h.cfg.Last && store.IsPath(h.cfg.Place) {
		if _, err := os.Stat(h.cfg.Place); errors.Is(err, fs.ErrNotExist) { // do not create a store just to look into it
			return h.noLast()
		}
	}
	s, err := h.storeAt(ctx)
	if err != nil {
		return err
	}
	h.Store, h.closeStore = s, s.Close
	if h.cfg.Opened != nil { // which may ask a person: nobody waits for the store then
		return h.cfg.Opened(ctx, s)
	}
	return nil
}

// storeAt opens the store at its place, and says that it is waited for.
func (h *Host) storeAt(ctx context.Context) (store.Store, error) {
	const what = "the store of the sessions"
	h.cfg.notify(NoticeWaiting, what)
	defer h.cfg.notify(NoticeReady, what)
	opening, stop := h.bounded(ctx)
	defer stop()
	o := h.cfg.StoreOptions
	o.Create = true
	s, err := store.Open(opening, h.cfg.Place, o)
	if err != nil && ctx.Err() == nil && opening.Err() != nil {
		err = fmt.Errorf("opening %s: %w", what, err)
	}
	return s, err
}

// beginWith loads the file of a locked session, and writes the file's content to a
// new session.
func (h *Host) beginWith(ctx context.Context, options agentfile.Options, path string) (err error) {
	begun := len(h.earlier) > 0
	if begun {
		options.Check, options.Runner = true, nil
	}
	if h.File == nil {
		if h.File, err = agentfile.Load(ctx, h.cfg.File, options); err != nil {
			return LoadError(err)
		}
	}
	h.warn()
	info := h.Info
	if info.Path != "" && info.Path != path {
		h.tellOf(NoticeOtherFile, info, "the session %s belongs to %s; it continues with %s", info.ID, info.Path, h.cfg.File)
	}
	if info.Archived {
		h.tellOf(NoticeArchived, info, "the session %s is archived", info.ID)
	}
	if begun {
		if !h.File.Partial && !beginsWith(h.earlier, h.File, info.Parent != "") {
			h.tellOf(NoticeDiffers, info, "the messages of %s have changed since the session %s began; it continues with its own (use another name to begin a new session)",
				h.cfg.File, cmp.Or(h.cfg.Session, info.ID))
		}
		h.tellOf(NoticeContinues, info, "continues %s, %s", called(info), many(len(h.earlier), "entry", "entries"))
		return nil
	}
	h.tellNew(ctx, path)
	_, err = h.Session.Append(ctx, h.File.Log()...)
	return err
}

// tellOf sends a notice about a session.
func (h *Host) tellOf(kind NoticeKind, info session.Info, format string, args ...any) {
	h.cfg.tell(Notice{Kind: kind, Session: info, Text: fmt.Sprintf(format, args...)})
}

// called returns the name that people use for a session.
func called(info session.Info) string { return cmp.Or(info.Name, info.ID) }

const (
	// maxNearby is the maximum number of similar sessions in notices.
	maxNearby = 3
	// maxLooked is the number of recently written sessions of the file that are
	// searched for a similar name.
	maxLooked = 1000
)

// tellNew reports that a session begins, and names others that may have been meant:
// sessions of another file with the same name, for example of a file that was moved,
// and sessions of the same file with a similar name. U7
func (h *Host) tellNew(ctx context.Context, path string) {
	if h.cfg.Notify == nil {
		return
	}
	h.tellOf(NoticeNew, h.Info, "new session %s", called(h.Info))
	if h.Info.Name == "" { // nobody has named it, so no other was meant
		return
	}
	left := maxNearby
	look := func(kind NoticeKind, q session.Query, meant func(session.Info) bool, of func(session.Info) string) {
		for info, err := range nils.Each(h.Store, "List", h.Store.List(ctx, q)) {
			if err != nil { // a hint is not worth more
				return
			}
			if info.ID == h.Info.ID || !meant(info) {
				continue
			}
			if left--; left < 0 {
				return
			}
			h.tellOf(kind, info, "there is also %s of %s, with %s", called(info), of(info), many(int(info.Entries), "entry", "entries"))
		}
	}
	name, owner := h.cfg.Session, h.cfg.Owner
	look(NoticeSameName, session.Query{Name: name, Owner: owner},
		func(i session.Info) bool { return i.Path != path }, func(i session.Info) string { return cmp.Or(i.Path, "no file") })
	look(NoticeNearName, session.Query{Path: path, Owner: owner, Limit: maxLooked},
		func(i session.Info) bool { return Nearly(i.Name, name) }, func(session.Info) string { return "this file" })
}

// maxNearly bounds the work for one comparison, which grows with the square of the length.
const maxNearly = 1000

// Nearly reports whether one name may be a misspelling of the other: the same letters
// except for case or order, or one edit per four letters. Nearly returns false for a
// name of more than 1000 characters.
func Nearly(a, b string) bool {
	if a == "" || b == "" {
		return false
	}
	x, y := []rune(strings.ToLower(a)), []rune(strings.ToLower(b))
	if max(len(x), len(y)) > maxNearly {
		return false
	}
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

// find returns the session with the configured name or id, for the file at path. If
// it does not exist, the ID is empty.
func (h *Host) find(ctx context.Context, path string) (session.Info, error) {
	name, owner := h.cfg.Session, h.cfg.Owner
	if h.cfg.Last {
		for info, err := range nils.Each(h.Store, "List", h.Store.List(ctx, session.Query{Path: path, Owner: owner, Tags: h.cfg.Among, Limit: 1})) {
			return info, err
		}
		return session.Info{}, h.noLast()
	}
	for info, err := range nils.Each(h.Store, "List", h.Store.List(ctx, session.Query{Name: name, Path: path, Owner: owner})) {
		if err != nil || info.Owner == owner { // without an owner: sessions without an owner
			return info, err
		}
	}
	info, err := h.Store.Info(ctx, name)
	switch {
	case errors.Is(err, session.ErrNotFound):
		if err := CheckName(name); err != nil {
			return session.Info{}, &ConfigError{err}
		}
		return session.Info{}, nil
	case err != nil:
		return info, err
	case owner != "" && info.Owner != owner:
		return session.Info{}, invalid("%s %s: the session %s has another owner", h.cfg.Terms.name("Owner"), owner, info.ID)
	case info.Nested:
		return session.Info{}, invalid("the session %s is part of %s and continues with it; fork it to try something else", info.ID, info.Parent)
	case info.Path == "": // K5: the author of an imported session may not have meant it for this agent
		return session.Info{}, &ConfigError{&UnboundError{info.ID}}
	}
	return info, nil
}

// UnboundError means that a session belongs to no agent's file, for example because
// it was imported, and therefore cannot be continued.
type UnboundError struct{ Session string }

// Error names the session.
func (e *UnboundError) Error() string { return "the session " + e.Session + " belongs to no agent" }

// noLast is the error of Last if the file has no session.
func (h *Host) noLast() error {
	if len(h.cfg.Among) > 0 {
		return &ConfigError{&NoLastError{h.cfg.Among}}
	}
	return invalid("%s: %s has no session yet; %s begins one", h.cfg.Terms.name("Last"), h.cfg.File, h.cfg.Terms.full("Session"))
}

// NoLastError means that no session of the file has the tags in [Config].Among.
type NoLastError struct{ Among []string }

// Error names the tags.
func (e *NoLastError) Error() string {
	return "no session of this file has the tag " + strings.Join(e.Among, " and the tag ")
}

// begin creates the configured session for the file at path.
func (h *Host) begin(ctx context.Context, path string) (session.Info, error) {
	name := h.cfg.Session
	info := session.Info{ID: NewSessionID(name), Name: name, Path: path, Owner: h.cfg.Owner, Tags: h.cfg.Tags}
	err := unlabelled(h.Store.Create(ctx, info))
	if errors.Is(err, session.ErrExists) {
		return h.find(ctx, path) // another process created it first
	}
	return info, err
}

// unlabelled turns the error for invalid labels into a ConfigError.
func unlabelled(err error) error {
	if errors.Is(err, session.ErrBadLabel) {
		return &ConfigError{err}
	}
	return err
}

// beginsWith reports whether a log begins with the current content of the file. A fork may end before
// a user message of the file, because somebody took it back.
func beginsWith(log []session.Entry, file *agentfile.File, fork bool) bool {
	for _, body := range file.Log() {
		given, ok := body.(session.InputItem)
		if !ok {
			continue
		}
		left := fork && given.Item.Type() == item.TypeMessage && given.Item.Role() == item.RoleUser
		for len(log) > 0 {
			first, ok := log[0].Body.(session.InputItem)
			if ok && sameItem(first.Item, given.Item) {
				break
			}
			if ok {
				return left
			}
			log = log[1:]
		}
		if len(log) == 0 {
			return left
		}
		log = log[1:]
	}
	return true
}

// sameItem reports whether two items have the same bytes. It does not read payloads
// from the store.
func sameItem(a, b item.Item) bool {
	if a == b || !a.Externalized() && !b.Externalized() {
		return a == b
	}
	restA, payloadsA, _ := a.Split(item.LeastPayload)
	restB, payloadsB, _ := b.Split(item.LeastPayload)
	return restA == restB && slices.Equal(payloadsA, payloadsB)
}

// ResolvePath returns the path that identifies a file: absolute, with links
// resolved. [session.Info] has it as the Path of a session.
func ResolvePath(path string) (string, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	resolved, err := filepath.EvalSymlinks(abs)
	if at := (*fs.PathError)(nil); errors.As(err, &at) { // about a part of the path, in words of the system
		return "", fmt.Errorf("%s: %w", path, at.Err)
	}
	return resolved, err
}

const maxName = 64

// CheckName returns an error for names of sessions that cannot be distinguished,
// typed or seen.
func CheckName(name string) error {
	switch {
	case name == "" || strings.TrimSpace(name) != name:
		return fmt.Errorf("session name %q: remove the white space around it", name)
	case utf8.RuneCountInString(name) > maxName:
		return fmt.Errorf("session name %s…: a name has up to %d characters", string([]rune(fmt.Sprintf("%q", name))[:39]), maxName)
	case strings.HasPrefix(name, "-"):
		return fmt.Errorf("session name %q: it must not begin with -, because it would be read as a flag", name)
	case strings.ContainsFunc(name, func(r rune) bool {
		return !unicode.IsPrint(r) || unicode.Is(unicode.Bidi_Control, r) || strings.ContainsRune("\u2028\u2029/\\", r)
	}):
		return fmt.Errorf("session name %q: slashes and control characters are not allowed", name)
	}
	return nil
}

// NewSessionID returns an id that begins with the allowed characters of the name.
func NewSessionID(name string) string {
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

// rescued saves a session whose file was deleted or replaced during the run, as far
// as it is in memory, and reports where. It uses the folder for temporary files,
// because the store's folder may be gone.
func (h *Host) rescued(err error) error {
	local, ok := h.Store.(store.Local)
	if !errors.Is(err, session.ErrLost) || !ok || local.File() == "" {
		return err // a server still has the session
	}
	save, how := h.saveLines, ""
	if store.Encrypted(h.Store) {
		save, how = func() (string, error) { return saveEncrypted(local, h.Session) }, ", encrypted with the same key"
	}
	file, failed := save()
	if failed != nil {
		return errors.Join(err, fmt.Errorf("the conversation could not be saved: %w", failed))
	}
	h.cfg.tell(Notice{Kind: NoticeSaved, Session: h.Info, File: file, Text: "the conversation is saved in " + file + how})
	return err
}

// saveLines writes the session as JSON lines.
func (h *Host) saveLines() (file string, err error) {
	ctx := context.Background() // the run's context has ended
	log := storedLog(ctx, h.Store, h.Info, &h.cfg.FrontEnd)
	log.Load, log.Entries, log.Waiting = nil, h.Session.Log(), nil // what waits is in the store, which is lost
	log.Nested = func(id string) ([]session.Entry, error) {
		nested, err := session.Open(ctx, h.Store, id)
		if err != nil || len(nested.Log()) == 0 {
			h.cfg.notify(NoticeMissing, "the nested session %s could not be read any more, so it is not saved", id)
			return nil, nil
		}
		return nested.Log(), nil
	}
	draft, err := os.CreateTemp("", ".antiphon-*")
	if err != nil {
		return "", err
	}
	defer os.Remove(draft.Name())
	if err := errors.Join(export.JSONLines(draft, log), draft.Sync(), draft.Close()); err != nil {
		return "", err
	}
	file = filepath.Join(os.TempDir(), h.Info.ID+".jsonl")
	return file, os.Rename(draft.Name(), file)
}

// saveEncrypted writes a session to a new store with the same key.
func saveEncrypted(local store.Local, s *session.Session) (file string, err error) {
	ctx := context.Background()
	draft, err := os.CreateTemp("", filepath.Base(s.ID())+"-*.db")
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
	return draft.Name(), errors.Join(another.Append(ctx, s.ID(), 0, s.Log()), another.Close())
}
