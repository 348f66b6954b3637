// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/internal/lazyregexp"
	"github.com/antiphon-go/antiphon/internal/private"
	"github.com/antiphon-go/antiphon/internal/show"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/tool"
	"github.com/antiphon-go/antiphon/toolkit"
)

// This file takes back what calls of a chat did to files. Before a call that writes, the
// content of its files is kept in the store of sessions. A notice in the log says what each
// file was and became. A file is changed back only if it still is what the call made of it.

// fileState is the state of a file: the hash of its content, and its mode. The zero value
// means that there is no file.
type fileState struct {
	hash string
	mode fs.FileMode
}

func (s fileState) String() string {
	if s.hash == "" {
		return "none"
	}
	return fmt.Sprintf("%s %o", s.hash, s.mode)
}

// fileChange is a change of a file, by its absolute path with links resolved.
type fileChange struct {
	path          string
	before, after fileState
}

func noticeOf(callID, by string, list []fileChange) session.Noticed {
	var parts []string
	for _, c := range list {
		parts = append(parts, fmt.Sprintf("%q %s -> %s", c.path, c.before, c.after))
	}
	return session.Noticed{Kind: show.NoticeFiles, CallID: callID, Text: "changed by " + by + ": " + strings.Join(parts, "; ")}
}

var changedFile = lazyregexp.New(`("(?:[^"\\]|\\.)*") (none|[0-9a-f]{64} [0-7]+) -> (none|[0-9a-f]{64} [0-7]+)`)

// changesOf reads a notice.
func changesOf(n session.Noticed) (list []fileChange) {
	state := func(text string) (s fileState) {
		hash, mode, _ := strings.Cut(text, " ")
		if bits, err := strconv.ParseUint(mode, 8, 12); err == nil {
			s = fileState{hash, fs.FileMode(bits)}
		}
		return s
	}
	for _, found := range changedFile.FindAllStringSubmatch(n.Text, -1) {
		if path, err := strconv.Unquote(found[1]); err == nil {
			list = append(list, fileChange{path, state(found[2]), state(found[3])})
		}
	}
	return list
}

// mostKept is the size of the largest file whose content is kept, in bytes.
const mostKept = toolkit.MaxEditBytes

// folderOf opens the folder of a path whose links are resolved, so that all that follows is done in
// this folder, even if a link takes its place. If a link has taken its place already, the error is errSince.
func folderOf(path string) (*toolkit.Files, error) {
	folder := filepath.Dir(path)
	f, err := toolkit.Open(toolkit.Root{Path: folder})
	if err == nil && f.Held()[folder] != folder {
		err = errors.Join(errSince, f.Close())
	}
	return f, err
}

// stateOf reads a file, which need not exist.
func stateOf(path string) (s fileState, content []byte, err error) {
	f, err := folderOf(path)
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil, nil
	}
	if err != nil {
		return s, nil, err
	}
	defer f.Close()
	p, _ := f.In("", filepath.Base(path))
	return stateIn(p.Dir(), p.OSPath())
}

// stateIn reads a file in a folder that is open.
func stateIn(dir *os.Root, name string) (s fileState, content []byte, err error) {
	f, info, err := private.OpenIn(dir, name)
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil, nil
	}
	notKept := fmt.Errorf("%s is not a regular file of at most %d bytes", name, mostKept)
	if errors.Is(err, private.ErrNotRegular) {
		err = notKept
	}
	if err != nil {
		return s, nil, err
	}
	defer f.Close()
	content, err = io.ReadAll(io.LimitReader(f, mostKept+1))
	if err == nil && len(content) > mostKept {
		err = notKept
	}
	return fileState{hashOf(content), info.Mode().Perm()}, content, err
}

// watchFiles notes what the calls of a run do to files. Its fields do not change during a run.
type watchFiles struct {
	blobs session.Blobs
	id    string // of the session

	mu     sync.Mutex
	before map[string][]fileChange // of the calls that run
	done   []session.Body
}

// watch adds the hooks that note changes of files.
func (t *dialogue) watch(a *agent.Agent) *watchFiles {
	w := &watchFiles{blobs: t.host.Session.Blobs(), id: t.host.Session.ID(), before: map[string][]fileChange{}}
	if w.blobs == nil {
		return w
	}
	a.Hooks = slices.DeleteFunc(slices.Clone(a.Hooks), func(h agent.Hooks) bool { return h.Name == show.NoticeFiles })
	a.Hooks = append(a.Hooks, agent.Hooks{
		Name: show.NoticeFiles,
		BeforeTool: func(ctx context.Context, c *agent.ToolCall) (context.Context, error) {
			set, err := a.ToolSet(ctx)
			if err == nil {
				w.begin(ctx, set, c.Call)
			}
			return ctx, nil
		},
		AfterTool: func(_ context.Context, c *agent.ToolCall) error {
			if !c.Paused {
				w.end(c.Call)
			}
			return nil
		},
	})
	return w
}

// writtenBy returns the absolute paths of the files that a call writes to, as far as its tool knows
// them.
func writtenBy(one tool.Tool, call tool.Call) []string {
	for one != nil {
		if w, ok := one.(interface{ Writes(call tool.Call) []string }); ok {
			return w.Writes(call)
		}
		wrapper, ok := one.(interface{ Unwrap() tool.Tool })
		if !ok {
			return nil
		}
		one = wrapper.Unwrap()
	}
	return nil
}

// begin keeps what a call is about to change. A file that cannot be kept cannot be taken back.
func (w *watchFiles) begin(ctx context.Context, set *tool.Set, call tool.Call) {
	one, _ := set.Lookup(call.Name)
	var list []fileChange
	for _, path := range writtenBy(one, call) {
		folder, err := filepath.EvalSymlinks(filepath.Dir(path))
		if err != nil {
			folder = filepath.Dir(path) // it may be made
		}
		path = filepath.Join(folder, filepath.Base(path))
		if slices.ContainsFunc(list, func(c fileChange) bool { return c.path == path }) {
			continue
		}
		state, content, err := stateOf(path)
		if err == nil && state.hash != "" {
			_, err = w.blobs.PutBlob(ctx, w.id, content)
		}
		if err == nil {
			list = append(list, fileChange{path: path, before: state})
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.before[call.ID] = list
}

// end notes what a call has changed.
func (w *watchFiles) end(call tool.Call) {
	w.mu.Lock()
	list := w.before[call.ID]
	delete(w.before, call.ID)
	w.mu.Unlock()
	var changed []fileChange
	for _, c := range list {
		after, _, err := stateOf(c.path)
		if c.after = after; err == nil && after != c.before {
			changed = append(changed, c)
		}
	}
	if changed == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.done = append(w.done, noticeOf(call.ID, call.Name, changed))
}

// record writes what was noted into the log. The run must be over.
func (w *watchFiles) record(ctx context.Context, s *session.Session) error {
	w.mu.Lock()
	done := w.done
	w.done = nil
	w.mu.Unlock()
	if len(done) == 0 {
		return nil
	}
	_, err := s.Append(context.WithoutCancel(ctx), done...)
	return err
}

// errSince means that a file is not what it was expected to be.
var errSince = errors.New("it was changed since, so it stays as it is")

// restoreFile changes a file back in the folder that is at its path now. What is there now is kept
// for the session, so that it can be done again.
func restoreFile(ctx context.Context, blobs session.Blobs, id string, c fileChange) error {
	f, err := folderOf(c.path)
	if err != nil {
		return err
	}
	defer f.Close()
	p, _ := f.In("", filepath.Base(c.path))
	now, content, err := stateIn(p.Dir(), p.OSPath())
	if err != nil {
		return err
	}
	if now.hash != c.after.hash {
		return errSince
	}
	if now.hash != "" { // for /redo
		if _, err := blobs.PutBlob(ctx, id, content); err != nil {
			return err
		}
	}
	if c.before.hash == "" {
		return removeIf(p.Dir(), p.OSPath(), c.after.hash)
	}
	old, err := keptContent(ctx, blobs, c.before.hash)
	if err != nil {
		return err
	}
	err = f.Edit(p, c.after.hash == "", func(now []byte, exists bool) ([]byte, error) {
		if exists != (c.after.hash != "") || exists && hashOf(now) != c.after.hash {
			return nil, errSince
		}
		return old, nil
	})
	if err != nil || now.mode == c.before.mode {
		return err
	}
	done, _, err := private.OpenIn(p.Dir(), p.OSPath())
	if err != nil {
		return err
	}
	return errors.Join(done.Chmod(c.before.mode), done.Close())
}

func hashOf(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

// keptContent reads a content that was kept.
func keptContent(ctx context.Context, blobs session.Blobs, hash string) ([]byte, error) {
	var h session.Hash
	if _, err := hex.Decode(h[:], []byte(hash)); err != nil {
		return nil, err
	}
	blob, _, err := blobs.OpenBlob(ctx, h)
	if err != nil {
		return nil, fmt.Errorf("its earlier content is not kept any more: %w", err)
	}
	defer blob.Close()
	content, err := io.ReadAll(io.LimitReader(blob, mostKept+1))
	if err == nil && hashOf(content) != hash {
		err = session.ErrDamaged
	}
	return content, err
}

// removeIf deletes a file that still has a content. It gets another name first, so that
// what somebody writes at the same time is not deleted.
func removeIf(dir *os.Root, name, hash string) error {
	temp := ".antiphon-" + rand.Text() + ".tmp"
	if err := dir.Rename(name, temp); err != nil {
		return err
	}
	found, _, err := stateIn(dir, temp)
	if err == nil && found.hash == hash {
		return dir.Remove(temp)
	}
	if back := dir.Link(temp, name); back != nil {
		return errors.Join(errSince, fmt.Errorf("it is called %s now: %w", temp, back))
	}
	return errors.Join(errSince, dir.Remove(temp))
}
