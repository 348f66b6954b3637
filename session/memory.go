// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/antiphon-go/antiphon/internal/words"
)

// Memory is a [Store] that lasts as long as the process and implements all optional
// interfaces. It has no clock: its times are zero. The zero value is ready for use.
type Memory struct {
	mu       sync.Mutex
	sessions map[string]*memorySession
	nested   int // how many of the sessions are nested
	blobs    map[Hash][]byte
	touched  int64
	locked   map[string]bool
	changed  chan struct{} // closed when a session has changed; nil if nobody waits
	notify   map[string][]*func()
}

type memorySession struct {
	info    Info
	log     []Entry
	branch  *branch
	inbox   []memoryDelivery
	owner   *branch        // of the session that it is nested in
	blobs   map[Hash]int64 // where the log ended when they were put
	touched int64          // orders the sessions by their last append
}

// branch is the part that a session shares with its forks: a node in the tree of
// sessions with its own entries, after entry number at of the base.
type branch struct {
	base *branch
	at   int64
}

// Append implements [Store].
func (m *Memory) Append(_ context.Context, id string, after int64, entries []Entry) error {
	if len(entries) == 0 {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.sessions[id]
	if s == nil && after == 0 {
		var err error
		if s, err = m.begin(id); err != nil {
			return err
		}
	}
	if s == nil || int64(len(s.log)) != after {
		return Conflict(m.end(id), after)
	}
	if err := CheckSeqs(after, entries); err != nil {
		return err
	}
	// The log must not share memory with the caller's entries.
	s.log = appendCloned(s.log, entries)
	s.take(entries)
	m.touch(s)
	return nil
}

// Immediate implements [Immediate].
func (m *Memory) Immediate() {}

func (m *Memory) end(id string) int64 {
	if s := m.sessions[id]; s != nil {
		return int64(len(s.log))
	}
	return 0
}

// begin creates a session at its first append. A session whose id says that it is
// nested gets its parent, if the parent exists.
func (m *Memory) begin(id string) (*memorySession, error) {
	s := &memorySession{info: Info{ID: id}, branch: new(branch)}
	if parent, ok := ParentOf(id); ok && m.sessions[parent] != nil {
		s.info.Parent, s.info.Nested = parent, true
	}
	return s, m.add(s)
}

// add adds a session, unless forks of a deleted session with its id still show
// sessions that were nested in the deleted one.
func (m *Memory) add(s *memorySession) error {
	for _, n := range m.inside() {
		if n.info.Parent == s.info.ID {
			if n.owner != nil {
				return fmt.Errorf("%w: %q was deleted, and forks of it still show sessions that were nested in it; take another id", ErrExists, s.info.ID)
			}
			n.owner, n.info.Owner = s.branch, s.info.Owner // it was created before its parent
		}
	}
	if parent := m.sessions[s.info.Parent]; parent != nil && s.info.Nested {
		s.owner, s.info.Owner = parent.branch, parent.info.Owner
	}
	if m.sessions == nil {
		m.sessions = map[string]*memorySession{}
	}
	m.sessions[s.info.ID] = s
	if s.info.Nested {
		m.nested++
	}
	m.touch(s)
	return nil
}

// remove removes a session.
func (m *Memory) remove(id string) {
	if m.sessions[id].info.Nested {
		m.nested--
	}
	delete(m.sessions, id)
}

// inside returns the sessions that are nested, of which there are often none.
func (m *Memory) inside() (list []*memorySession) {
	if m.nested == 0 {
		return nil
	}
	for _, s := range m.sessions {
		if s.info.Nested {
			list = append(list, s)
		}
	}
	return list
}

func (m *Memory) touch(s *memorySession) {
	m.touched++
	s.touched = m.touched
	m.tell()
}

// tell wakes all watchers.
func (m *Memory) tell() {
	if m.changed != nil {
		close(m.changed)
		m.changed = nil
	}
}

// Load implements [Store].
func (m *Memory) Load(_ context.Context, id string, after int64) iter.Seq2[Entry, error] {
	_, log := m.read(id, after)
	return func(yield func(Entry, error) bool) {
		for _, e := range log {
			if e.Body = cloned(e.Body); !yield(e, nil) {
				return
			}
		}
	}
}

// read returns a session and its entries after number after, or nil if the session
// does not exist.
func (m *Memory) read(id string, after int64) (*memorySession, []Entry) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.sessions[id]
	if s == nil {
		return nil, nil
	}
	return s, slices.Clip(s.log[min(max(after, 0), int64(len(s.log))):])
}

// Nest implements [SubsessionStore].
func (m *Memory) Nest(parent string, number int, callID string) string {
	return SubsessionID(parent, number, callID)
}

// Lock implements [Locker], for the runs of this process.
func (m *Memory) Lock(_ context.Context, id string) (unlock func() error, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.locked[id] {
		return nil, fmt.Errorf("%w: another run of this process", ErrBusy)
	}
	if m.locked == nil {
		m.locked = map[string]bool{}
	}
	m.locked[id] = true
	return sync.OnceValue(func() error {
		m.mu.Lock()
		defer m.mu.Unlock()
		delete(m.locked, id)
		return nil
	}), nil
}

// Fork implements [Forker].
func (m *Memory) Fork(_ context.Context, from string, at int64, to string, further ...Entry) error {
	if err := cmp.Or(Info{ID: to}.CheckID(), CheckSeqs(at, further)); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.sessions[from]
	if s == nil {
		return fmt.Errorf("%w: %q", ErrNotFound, from)
	}
	if at < 0 || at > int64(len(s.log)) {
		return NoEntry(at, int64(len(s.log)))
	}
	if m.sessions[to] != nil {
		return fmt.Errorf("%w: %q", ErrExists, to)
	}
	// The fork shares the entries. Clip makes its first append copy them.
	f := &memorySession{log: slices.Clip(s.log[:at]), blobs: maps.Clone(s.blobs), branch: s.branch.fork(at)}
	// A blob put after the fork point belongs only to the original.
	maps.DeleteFunc(f.blobs, func(_ Hash, put int64) bool { return put > at })
	f.info = Info{ID: to, Path: s.info.Path, Parent: from, At: at, Owner: s.info.Owner}
	if at > 0 {
		f.info.Title = s.info.Title
	}
	if err := m.add(f); err != nil {
		return err
	}
	f.log = appendCloned(f.log, further)
	return nil
}

// fork returns a branch that begins with the entries of b up to number at.
func (b *branch) fork(at int64) *branch {
	for b != nil && at <= b.at {
		b = b.base
	}
	return &branch{base: b, at: at}
}

// Watch implements [Watcher].
func (m *Memory) Watch(ctx context.Context, id string, after int64) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		var watched *memorySession
		for after := max(after, 0); ; {
			// Get the channel before reading, so that no append between the two is
			// missed.
			changed := m.wait()
			s, log := m.read(id, after)
			if watched != nil && s != watched || ctx.Err() != nil {
				return
			}
			// A session that is deleted and created again is another session.
			watched = s
			for _, e := range log {
				if e.Body = cloned(e.Body); !yield(e, nil) {
					return
				}
				after++
			}
			select {
			case <-changed:
			case <-ctx.Done():
				return
			}
		}
	}
}

// wait returns a channel that is closed at the next change.
func (m *Memory) wait() <-chan struct{} {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.changed == nil {
		m.changed = make(chan struct{})
	}
	return m.changed
}

// List implements [Catalog].
func (m *Memory) List(_ context.Context, q Query) iter.Seq2[Info, error] {
	return func(yield func(Info, error) bool) {
		list, err := m.list(q)
		for _, info := range list {
			if !yield(info, nil) {
				return
			}
		}
		if err != nil {
			yield(Info{}, err)
		}
	}
}

func (m *Memory) list(q Query) (list []Info, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	behind, err := q.behind()
	if err != nil {
		return nil, err
	}
	var found []*memorySession
	for _, s := range m.sessions {
		if q.Takes(s.info) && behind(s) {
			found = append(found, s)
		}
	}
	slices.SortFunc(found, func(a, b *memorySession) int {
		if q.Prefix != "" {
			return cmp.Compare(a.info.ID, b.info.ID)
		}
		return cmp.Compare(b.touched, a.touched)
	})
	for _, s := range found {
		info := s.told()
		info.Cursor = strconv.FormatInt(s.touched, 10)
		if q.Prefix != "" {
			info.Cursor = "=" + info.ID
		}
		if list = append(list, info); len(list) == q.Limit {
			break
		}
	}
	return list, nil
}

// behind returns a function that reports whether a session comes after the cursor. A
// cursor is a position in the order of the list: an id if the query has a Prefix,
// otherwise the value of touched.
func (q Query) behind() (func(s *memorySession) bool, error) {
	if q.After == "" {
		return func(*memorySession) bool { return true }, nil
	}
	if id, ok := strings.CutPrefix(q.After, "="); ok == (q.Prefix != "") {
		if ok {
			return func(s *memorySession) bool { return s.info.ID > id }, nil
		}
		if touched, err := strconv.ParseInt(q.After, 10, 64); err == nil {
			return func(s *memorySession) bool { return s.touched < touched }, nil
		}
	}
	return nil, BadCursor(q.After)
}

// Takes reports whether the query selects a session, for stores.
func (q Query) Takes(i Info) bool {
	for _, tag := range q.Tags {
		if !slices.Contains(i.Tags, tag) {
			return false
		}
	}
	return (q.Name == "" || q.Name == i.Name) && (q.Path == "" || q.Path == i.Path) &&
		(q.Owner == "" || q.Owner == i.Owner) && strings.HasPrefix(i.ID, q.Prefix) &&
		(q.Archived || !i.Archived) && (q.Nested || !i.Nested)
}

func (s *memorySession) told() Info {
	info := s.info
	info.Entries, info.Tags = int64(len(s.log)), slices.Clone(info.Tags)
	if info.Title == "" {
		info.Title = TitleOf(s.log)
	}
	return info
}

// Info implements [Catalog].
func (m *Memory) Info(_ context.Context, id string) (Info, error) {
	var info Info
	err := m.change(id, func(s *memorySession) error {
		info = s.told()
		return nil
	})
	return info, err
}

// change calls f with an existing session.
func (m *Memory) change(id string, f func(s *memorySession) error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.sessions[id]
	if s == nil {
		return fmt.Errorf("%w: %q", ErrNotFound, id)
	}
	return f(s)
}

// Create implements [Catalog].
func (m *Memory) Create(_ context.Context, info Info, first ...Entry) error {
	if info.ID == "" {
		return errors.New("session: Create without an id: name the session")
	}
	if err := cmp.Or(info.CheckID(), CheckSeqs(0, first)); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.sessions[info.ID] != nil {
		return fmt.Errorf("%w: %q", ErrExists, info.ID)
	}
	s := &memorySession{branch: new(branch)}
	s.info = Info{ID: info.ID, Name: info.Name, Path: info.Path, Parent: info.Parent, At: info.At, Nested: info.Nested,
		Owner: info.Owner, Tags: cleanTags(info.Tags), Title: info.Title}
	if err := CheckLabels(s.info); err != nil {
		return err
	}
	if err := m.nameFree(s.info); err != nil {
		return err
	}
	if err := m.add(s); err != nil {
		return err
	}
	s.log = appendCloned(s.log, first)
	s.take(first)
	return nil
}

// nameFree returns an error if another session has the name.
func (m *Memory) nameFree(i Info) error {
	if i.Name == "" || i.Archived {
		return nil
	}
	for _, s := range m.sessions {
		if o := s.info; !o.Archived && o.ID != i.ID && o.Name == i.Name && o.Path == i.Path && o.Owner == i.Owner {
			return fmt.Errorf("%w: %q is the name of session %q", ErrExists, i.Name, o.ID)
		}
	}
	return nil
}

// Rename implements [Catalog].
func (m *Memory) Rename(_ context.Context, id, name string) error {
	return m.change(id, func(s *memorySession) error {
		info := s.info
		info.Name = name
		return m.put(s, info)
	})
}

// Label implements [Catalog].
func (m *Memory) Label(_ context.Context, id string, change Labels) error {
	return m.change(id, func(s *memorySession) error {
		info, err := change.Apply(s.info)
		if err != nil {
			return err
		}
		if err := m.put(s, info); err != nil {
			return err
		}
		m.inherit(s)
		return nil
	})
}

// inherit gives the sessions nested in s its owner.
func (m *Memory) inherit(s *memorySession) {
	for _, n := range m.inside() {
		if n.owner != nil && n.owner == s.branch && n.info.Owner != s.info.Owner {
			n.info.Owner = s.info.Owner
			m.inherit(n)
		}
	}
}

// Archive implements [Catalog].
func (m *Memory) Archive(_ context.Context, id string, archived bool) error {
	return m.change(id, func(s *memorySession) error {
		info := s.info
		info.Archived = archived
		return m.put(s, info)
	})
}

func (m *Memory) put(s *memorySession, info Info) error {
	if err := m.nameFree(info); err != nil {
		return err
	}
	s.info = info
	return nil
}

// Delete implements [Catalog].
func (m *Memory) Delete(_ context.Context, id string) error {
	return m.change(id, func(*memorySession) error {
		m.remove(id)
		m.dropNested()
		m.tell()
		return nil
	})
}

// DeleteIfTaken implements [TakenDeleter].
func (m *Memory) DeleteIfTaken(_ context.Context, id string) error {
	return m.change(id, func(*memorySession) error {
		before, nested := maps.Clone(m.sessions), m.nested
		m.remove(id)
		m.dropNested()
		for id, s := range before {
			if m.sessions[id] != nil {
				continue
			}
			if err := AllTaken(id, s.waiting()...); err != nil {
				m.sessions, m.nested = before, nested
				return err
			}
		}
		m.tell()
		return nil
	})
}

// dropNested deletes the sessions nested in branches that no session needs any more. To delete
// one may free the branch that sessions nested in it belong to.
func (m *Memory) dropNested() {
	var nested []string
	for _, s := range m.inside() {
		if s.owner != nil {
			nested = append(nested, s.info.ID)
		}
	}
	for left := -1; len(nested) != 0 && len(nested) != left; {
		left = len(nested)
		used := m.branches()
		nested = slices.DeleteFunc(nested, func(id string) bool {
			free := !used[m.sessions[id].owner]
			if free {
				m.remove(id)
			}
			return free
		})
	}
}

// branches returns the branches that sessions need.
func (m *Memory) branches() map[*branch]bool {
	used := map[*branch]bool{}
	for _, s := range m.sessions {
		for b := s.branch; b != nil; b = b.base {
			used[b] = true
		}
	}
	return used
}

// Sweep implements [Catalog]. Entries are freed with the last session that has them;
// only blobs remain.
func (m *Memory) Sweep(_ context.Context, dry bool) (GCStats, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var swept GCStats
	for hash, data := range m.blobs {
		used := false
		for _, s := range m.sessions {
			_, has := s.blobs[hash]
			used = used || has
		}
		if used {
			continue
		}
		swept.Blobs++
		swept.Bytes += int64(len(data))
		if !dry {
			delete(m.blobs, hash)
		}
	}
	return swept, nil
}

// PutBlob implements [Blobs].
func (m *Memory) PutBlob(_ context.Context, id string, data []byte) (Hash, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.sessions[id]
	if s == nil {
		var err error
		if s, err = m.begin(id); err != nil {
			return Hash{}, err
		}
	}
	hash := Hash(sha256.Sum256(data))
	if _, there := m.blobs[hash]; !there {
		if m.blobs == nil {
			m.blobs = map[Hash][]byte{}
		}
		m.blobs[hash] = bytes.Clone(data)
	}
	if _, has := s.blobs[hash]; !has {
		if s.blobs == nil {
			s.blobs = map[Hash]int64{}
		}
		s.blobs[hash] = int64(len(s.log))
	}
	return hash, nil
}

// OpenBlob implements [Blobs].
func (m *Memory) OpenBlob(_ context.Context, hash Hash) (Blob, int64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	data, ok := m.blobs[hash]
	if !ok {
		return nil, 0, fmt.Errorf("%w: %x", ErrNoBlob, hash[:8])
	}
	return memoryBlob{bytes.NewReader(data)}, int64(len(data)), nil
}

type memoryBlob struct{ *bytes.Reader }

func (memoryBlob) Close() error { return nil }

// Search implements [Searcher]. It reads all text.
func (m *Memory) Search(_ context.Context, s Search) iter.Seq2[SearchResult, error] {
	return func(yield func(SearchResult, error) bool) {
		found, err := m.search(s)
		for _, f := range found {
			if !yield(f, nil) {
				return
			}
		}
		if err != nil {
			yield(SearchResult{}, err)
		}
	}
}

func (m *Memory) search(s Search) (list []SearchResult, err error) {
	query, err := searched(s.Words)
	if err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if s.In != "" {
		one := m.sessions[s.In]
		if one == nil || s.Owner != "" && s.Owner != one.info.Owner {
			return nil, fmt.Errorf("%w: %q", ErrNotFound, s.In)
		}
		// Within one session every place counts, also the ones that forks share.
		list = one.find(query, func(*branch, int64) bool { return true })
	} else {
		list = m.findAll(s.Query, query)
	}
	if s.After != "" {
		at := slices.IndexFunc(list, func(f SearchResult) bool { return f.Cursor == s.After })
		if at < 0 {
			return nil, BadCursor(s.After)
		}
		list = list[at+1:]
	}
	if s.Limit > 0 {
		list = list[:min(s.Limit, len(list))]
	}
	return list, nil
}

// findAll searches the sessions that a query selects, each at its newest place. A
// place that sessions share belongs to the session that it was written to, or to one
// of its forks.
func (m *Memory) findAll(q Query, query words.Query) (list []SearchResult) {
	// A search ignores them: see [Search].
	q.Name, q.Prefix = "", ""
	type place struct {
		in  *branch
		seq int64
	}
	taken := map[place]bool{}
	var sessions, own []*memorySession
	for _, s := range m.sessions {
		if q.Takes(s.info) {
			sessions = append(sessions, s)
		}
	}
	slices.SortFunc(sessions, func(a, b *memorySession) int { return cmp.Compare(b.touched, a.touched) })
	// The first pass finds places in a session's own entries, and the second pass
	// places in entries that it shares.
	for _, shared := range []bool{false, true} {
		for _, s := range sessions {
			if shared && slices.Contains(own, s) {
				continue
			}
			newest := s.find(query, func(in *branch, seq int64) bool {
				p := place{in, seq}
				if shared == (in == s.branch) || shared && taken[p] {
					return false
				}
				taken[p] = true
				return true
			})
			if len(newest) > 0 {
				list, own = append(list, newest[0]), append(own, s)
			}
		}
	}
	slices.SortStableFunc(list, func(a, b SearchResult) int {
		return cmp.Compare(m.sessions[b.Session.ID].touched, m.sessions[a.Session.ID].touched)
	})
	return list
}

// find searches a session from its end, in the places that takes accepts.
func (s *memorySession) find(query words.Query, takes func(in *branch, seq int64) bool) (list []SearchResult) {
	unsaid := map[int64]bool{}
	for i := len(s.log); i >= 0; i-- {
		f := SearchResult{By: "title"}
		text := s.info.Title
		if i > 0 {
			e := s.log[i-1]
			for _, seq := range Unsaid(e.Body) {
				unsaid[seq] = true
			}
			f.Entry, f.Time = e.Seq, e.Time
			f.By, text = SearchText(e.Body)
		}
		from, to, found := query.Find(text)
		if !found || unsaid[f.Entry] || !takes(s.branch.holding(f.Entry), f.Entry) {
			continue
		}
		f.Session, f.Snippet = s.told(), words.Snippet(text, from, to)
		f.Cursor = fmt.Sprintf("%d=%s", f.Entry, s.info.ID)
		list = append(list, f)
	}
	return list
}

// holding returns the branch that holds an entry, or a title.
func (b *branch) holding(seq int64) *branch {
	if seq == 0 {
		return b
	}
	for b.base != nil && seq <= b.at {
		b = b.base
	}
	return b
}
