// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/host"
	"github.com/antiphon-go/antiphon/internal/filelock"
	"github.com/antiphon-go/antiphon/internal/lazyregexp"
	"github.com/antiphon-go/antiphon/internal/nils"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/session/store"
)

// checkout is a checkout for a session. Whoever holds the session's lock uses it.
type checkout struct {
	w   *Worker
	id  string // of the session
	dir string // what is below it belongs to this checkout
	git git
	// build makes the files of a commit with a patch, and diff returns what was changed
	// since. Tests of kills have them without git.
	build func(ctx context.Context, address, ref string, patch []byte) error
	diff  func(ctx context.Context) ([]byte, error)

	lock  *filelock.Lock
	state state
	noted placeNote // the last one in the log
	calls bool      // calls had an output since the last patch
	safe  bool      // the last patch has all changes
	kept  time.Time // when the last patch was made
}

// state is what a worker knows of a checkout on its disk.
type state struct {
	// Run is the last run that worked in it, and Next one that perhaps did.
	Run  string `json:"run"`
	Next string `json:"next,omitempty"`
	// Base is what the patch is a change of: the commit, or its tree without submodules.
	Base string `json:"base"`
	// Kept means that no run works in it, and that its changes are in the store.
	Kept bool `json:"kept,omitempty"`
	// Repository is what it was fetched from.
	Repository string `json:"repository,omitempty"`
}

// placeNote is what the log of a session says about its checkout. It is a [session.Note],
// which is never sent.
type placeNote struct {
	Kind       string `json:"type"` // placeKind
	Repository string `json:"repository"`
	Reference  string `json:"reference"`
	Commit     string `json:"commit"`          // that the reference named first
	Patch      string `json:"patch,omitempty"` // the hash of a blob: what was changed since; "" is nothing
	Run        string `json:"run"`             // which run worked there
}

const placeKind = "antiphon:checkout"

func (n placeNote) body() (session.Body, error) {
	text, err := json.Marshal(n)
	if err != nil {
		return nil, err
	}
	it, err := item.Parse(text)
	return session.Note{Item: it}, err
}

// placeNoteOf returns the note in an entry, if there is one.
func placeNoteOf(e session.Entry) (n placeNote, is bool) {
	b, is := e.Body.(session.Note)
	if !is || string(b.Item.Type()) != placeKind {
		return n, false
	}
	it, err := b.Item.Whole()
	return n, err == nil && json.Unmarshal([]byte(it.JSON()), &n) == nil
}

// Changes are what a session has changed in the repository that is its place.
type Changes struct {
	Repository, Reference string
	Commit                string // that the reference named when the session began
	Patch                 []byte // for git apply; empty if nothing was changed
}

// noRepositoryError means that a session's files are in no repository.
type noRepositoryError struct{ session string }

// Is reports whether target is [session.ErrNotFound].
func (*noRepositoryError) Is(target error) bool { return target == session.ErrNotFound }

func (e *noRepositoryError) Error() string {
	return fmt.Sprintf("session %q has no files in a repository", e.session)
}

// ChangesOf returns what a session has changed in its repository, as far as it is kept: a
// worker keeps it when a run ends, and now and then before. The error wraps
// [session.ErrNotFound] if the session never had a repository.
func ChangesOf(ctx context.Context, in store.Store, id string) (c Changes, err error) {
	if nils.Is(in) {
		return c, errors.New("worker: no Store is set")
	}
	var last placeNote
	for e, err := range nils.Each(in, "Load", in.Load(ctx, id, 0)) {
		if err != nil {
			return c, err
		}
		if n, is := placeNoteOf(e); is {
			last = n
		}
	}
	if last.Commit == "" {
		return c, &noRepositoryError{id}
	}
	c = Changes{Repository: last.Repository, Reference: last.Reference, Commit: last.Commit}
	c.Patch, err = patchOf(ctx, in, last.Patch)
	return c, err
}

// patchOf reads a patch.
func patchOf(ctx context.Context, in session.Blobs, hash string) ([]byte, error) {
	if hash == "" {
		return nil, nil
	}
	raw, err := hex.DecodeString(hash)
	if err != nil || len(raw) != len(session.Hash{}) {
		return nil, fmt.Errorf("%q is not the hash of a patch", hash)
	}
	blob, _, err := in.OpenBlob(ctx, session.Hash(raw))
	if err != nil {
		return nil, fmt.Errorf("the patch with the session's changes: %w", err)
	}
	defer blob.Close()
	text, err := io.ReadAll(io.LimitReader(blob, mostPatch+1))
	if sum := sha256.Sum256(text); err == nil && !bytes.Equal(sum[:], raw) {
		err = fmt.Errorf("the patch with the session's changes: %w", session.ErrDamaged)
	}
	return text, err
}

// placeFailure means that a checkout cannot be made, or that its changes cannot be kept,
// until somebody does something.
type placeFailure struct {
	text string
	err  error
}

func (e *placeFailure) Error() string { return e.text + ": " + e.err.Error() }
func (e *placeFailure) Unwrap() error { return e.err }

var plainName = lazyregexp.New(`^[a-z0-9][a-z0-9_-]{0,100}$`)

// checkoutOf returns the checkout for a session, which may not be there yet. Its path is the
// same at all workers with the same Checkouts.
func (w *Worker) checkoutOf(id string) *checkout {
	name := id
	if !plainName.MatchString(name) {
		name = short(hexSum(id)) + ".id"
	}
	root := w.Checkouts
	if real, err := filepath.EvalSymlinks(root); err == nil {
		root = real
	}
	c := &checkout{w: w, id: id, dir: filepath.Join(root, "sessions", name)}
	c.build, c.diff = c.buildFiles, c.changes
	return c
}

func hexSum(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:])
}

// files is the workspace.
func (c *checkout) files() string { return filepath.Join(c.dir, "files") }

func (c *checkout) statePath() string { return filepath.Join(c.dir, "state.json") }

// take locks the checkout. A worker of this machine that lost the session, because it is
// frozen or cut off, may have it still. Then another machine goes on.
func (c *checkout) take() (err error) {
	c.lock, err = filelock.Take(filepath.Join(c.dir, "lock"))
	if errors.As(err, new(*filelock.BusyError)) {
		err = fmt.Errorf("%w: the checkout %s: %w", session.ErrBusy, c.dir, err)
	}
	return err
}

// begin makes the files what they were when the last run of the session ended. The session
// is locked, and so is the checkout.
func (c *checkout) begin(ctx context.Context, place string) (err error) {
	in := c.w.Config.Store
	address, ref, _ := strings.Cut(place, "#")
	root := filepath.Dir(filepath.Dir(c.dir))
	c.git = git{
		repository: filepath.Join(root, "repositories", short(hexSum(address))+".git"), objects: filepath.Join(c.dir, "objects"), index: filepath.Join(c.dir, "index"), files: c.files(),
		home: filepath.Join(c.dir, "home"), lookup: c.w.Config.Environment.Lookup,
	}
	for _, dir := range []string{c.git.home, c.git.objects, c.git.files, filepath.Dir(c.git.repository)} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
	}
	for _, left := range []string{c.git.index + ".lock", filepath.Join(c.git.repository, "refs", "antiphon", filepath.Base(c.dir)+".lock")} {
		if err := os.Remove(left); err != nil && !errors.Is(err, fs.ErrNotExist) { // of a worker that was killed
			return err
		}
	}
	after, here := false, false // calls follow the last note, and it is of this place
	for e, err := range nils.Each(in, "Load", in.Load(ctx, c.id, 0)) {
		if err != nil {
			return err
		}
		switch n, is := placeNoteOf(e); {
		case is:
			if after, here = false, n.Repository == address && n.Reference == ref; here {
				c.noted = n
			}
		case isCall(e.Body):
			after = here
		}
	}
	if text, err := os.ReadFile(c.statePath()); err == nil {
		_ = json.Unmarshal(text, &c.state) // a state that cannot be read is none
	}
	if c.noted.Run != "" && c.state.Base != "" && (c.state.Run == c.noted.Run || c.state.Next == c.noted.Run) {
		c.calls, c.state.Run = after, c.noted.Run // these are the files of the last run
	} else if err = c.make(ctx, address, ref); err != nil {
		return err
	} else if after {
		if err := c.tellLost(ctx); err != nil {
			return err
		}
	}
	c.noted.Kind, c.noted.Repository, c.noted.Reference = placeKind, address, ref
	c.state.Next, c.state.Kept, c.state.Repository = rand.Text(), false, address
	return c.write()
}

func isCall(b session.Body) bool {
	switch b.(type) {
	case session.CallStarted, session.CallOutput:
		return true
	}
	return false
}

// write writes the state.
func (c *checkout) write() error {
	text, err := json.Marshal(c.state)
	if err != nil {
		return err
	}
	if err := os.WriteFile(c.statePath()+".new", text, 0o600); err != nil {
		return err
	}
	return os.Rename(c.statePath()+".new", c.statePath())
}

// make makes the files anew.
func (c *checkout) make(ctx context.Context, address, ref string) error {
	c.state = state{}
	if err := c.write(); err != nil {
		return err
	}
	for _, path := range []string{c.git.files, c.git.objects, c.git.index} {
		if err := removeAll(path); err != nil {
			return err
		}
	}
	if err := errors.Join(os.MkdirAll(c.git.files, 0o700), os.MkdirAll(c.git.objects, 0o700)); err != nil {
		return err
	}
	patch, err := patchOf(ctx, c.w.Config.Store, c.noted.Patch)
	if errors.Is(err, session.ErrNoBlob) {
		return &placeFailure{"its files cannot be made", err}
	}
	if err != nil {
		return err
	}
	return c.build(ctx, address, ref, patch)
}

// buildFiles is build.
func (c *checkout) buildFiles(ctx context.Context, address, ref string, patch []byte) (err error) {
	if c.noted.Commit, err = c.fetch(ctx, address, ref, c.noted.Commit); err != nil {
		return err
	}
	if err := c.read(ctx, patch); err != nil {
		return err
	}
	if _, err := c.git.local(ctx, nil, "checkout-index", "--all", "--force", "--quiet", "--index"); err != nil {
		return err
	}
	return c.repository(ctx, address)
}

// fetch fetches the commit with which the session began, or else what the reference names.
func (c *checkout) fetch(ctx context.Context, address, ref, commit string) (string, error) {
	lock, err := filelock.TakeWithin(ctx, c.git.repository+".lock", time.Hour) // another session may be at it
	if err != nil {
		return "", err
	}
	defer func() { _ = lock.Release() }() // it ends with the process, too
	to := "refs/antiphon/" + filepath.Base(c.dir)
	got := ""
	if commit != "" && isCommit(commit) {
		got, err = c.git.fetch(ctx, address, commit, to)
	}
	if got == "" { // also if the server gives nobody a commit by its name
		if got, err = c.git.fetch(ctx, address, ref, to); err == nil && commit != "" && got != commit && !c.git.has(ctx, commit) {
			err = &placeFailure{"its files cannot be made", fmt.Errorf("the repository %s has no commit %s any more, with which the session began", address, commit)}
		}
	}
	var failed *gitError
	if errors.As(err, &failed) && failed.hopeless() {
		err = &placeFailure{fmt.Sprintf("the repository %s at %s cannot be fetched", address, ref), err}
	}
	if commit != "" {
		got = commit
	}
	return got, err
}

// read reads the commit into the index, without its submodules, and applies the patch.
func (c *checkout) read(ctx context.Context, patch []byte) error {
	if _, err := c.git.local(ctx, nil, "read-tree", c.noted.Commit); err != nil {
		return err
	}
	c.state.Base = c.noted.Commit
	switch _, links, err := c.tracked(ctx); {
	case err != nil:
		return err
	case links:
		base, err := c.git.local(ctx, nil, "write-tree")
		if err != nil {
			return err
		}
		c.state.Base = strings.TrimSpace(string(base))
	}
	if len(patch) == 0 {
		return nil
	}
	if _, err := c.git.local(ctx, bytes.NewReader(patch), "apply", "--cached", "--binary", "--whitespace=nowarn", "-"); err != nil {
		c.state.Base = ""
		return &placeFailure{fmt.Sprintf("its changes do not fit the commit %s of %s", c.noted.Commit, c.noted.Repository), err}
	}
	return nil
}

// tracked returns the paths in the index. It removes submodules from it before, and reports
// whether there were some: git would look into them, and obey their settings.
func (c *checkout) tracked(ctx context.Context) (paths []string, linked bool, err error) {
	out, err := c.git.local(ctx, nil, "ls-files", "--stage", "-z")
	if err != nil {
		return nil, false, err
	}
	var links bytes.Buffer
	for line := range strings.SplitSeq(string(out), "\x00") {
		switch about, path, ok := strings.Cut(line, "\t"); {
		case ok && strings.HasPrefix(about, "160000 "):
			links.WriteString(path + "\x00")
		case ok:
			paths = append(paths, path)
		}
	}
	linked = links.Len() > 0
	return paths, linked, c.update(ctx, &links, "--force-remove")
}

// update changes the index.
func (c *checkout) update(ctx context.Context, paths *bytes.Buffer, how ...string) error {
	if paths.Len() == 0 {
		return nil
	}
	_, err := c.git.local(ctx, paths, append(append([]string{"update-index", "-z"}, how...), "--stdin")...)
	return err
}

// repository gives the checkout a repository of its own, for the calls of the session. The
// worker never uses it again: the calls can change it.
func (c *checkout) repository(ctx context.Context, address string) error {
	own := filepath.Join(c.git.files, ".git")
	do := func(args ...string) error {
		_, err := c.git.at(ctx, c.git.files, own, args...)
		return err
	}
	if err := do("init", "--quiet", "--template=", c.git.files); err != nil {
		return err
	}
	f, err := os.OpenFile(filepath.Join(own, "config"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(f, "[remote \"origin\"]\n\turl = \"%s\"\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n", strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(address))
	if err = errors.Join(err, f.Close(), os.WriteFile(filepath.Join(own, "HEAD"), []byte(c.noted.Commit+"\n"), 0o600)); err != nil {
		return err
	}
	ref := "refs/antiphon/" + filepath.Base(c.dir)
	if err := do("fetch", "--quiet", "--no-tags", "--no-recurse-submodules", "--no-write-fetch-head", "--no-auto-maintenance", "--", c.git.repository, "+"+ref+":refs/remotes/origin/HEAD"); err != nil {
		return err
	}
	return do("read-tree", c.noted.Commit)
}

// began writes to the log that a run begins to work in the files.
func (c *checkout) began(ctx context.Context, s *session.Session) error {
	c.noted.Run = c.state.Next
	write := c.note
	if c.calls { // nobody kept what they changed, and behind the note nobody would know that
		write = c.keep
	}
	if err := write(ctx, s); err != nil {
		return err
	}
	c.state.Run, c.state.Next = c.state.Next, ""
	c.kept = time.Now()
	return c.write()
}

func (c *checkout) note(ctx context.Context, s *session.Session) error {
	b, err := c.noted.body()
	if err == nil {
		_, err = s.Append(ctx, b)
	}
	return err
}

// tellLost tells the model that the files are older than the log.
func (c *checkout) tellLost(ctx context.Context) error {
	_, box, err := parts(c.w.Config.Store)
	if err != nil {
		return err
	}
	const text = "The last calls ran on a machine that was lost, or elsewhere. What they changed may not be in the files of the workspace, which are as they were before. Look before you rely on it."
	// All workers say the same, so that one that comes after another that did not begin delivers nothing new.
	_, err = box.Deliver(ctx, c.id, session.Delivery{
		Delivered: session.Delivered{Key: session.OwnKey("files lost after %s", c.noted.Run), By: "a worker", From: "work"},
		Bodies:    []session.Body{session.InputItem{Item: item.Developer(text)}},
	})
	if errors.Is(err, session.ErrKeyUsed) { // a worker of another version has told it, in other words
		return nil
	}
	return err
}

// called records that a call may have changed the files.
func (c *checkout) called() { c.calls, c.safe = true, false }

// keep writes what was changed to the log, unless it did so before.
func (c *checkout) keep(ctx context.Context, s *session.Session) error {
	ctx, stop := context.WithTimeout(ctx, keepTime)
	defer stop()
	c.safe = false
	patch, err := c.diff(ctx)
	if err != nil {
		return c.unkept(err)
	}
	text := patch
	if bytes.Contains(patch, []byte("\nGIT binary patch\n")) { // it is packed
		if text, err = c.git.local(ctx, nil, diffIndex("--text", c.state.Base)...); err != nil {
			return c.unkept(err)
		}
	}
	for _, secret := range c.w.Config.Environment.Secrets() {
		if bytes.Contains(text, []byte(secret)) {
			return c.unkept(errors.New("they contain a secret of the worker's environment"))
		}
	}
	hash := ""
	if len(patch) > 0 {
		sum, err := s.Blobs().PutBlob(ctx, c.id, patch)
		if err != nil {
			return c.unkept(err)
		}
		hash = hex.EncodeToString(sum[:])
	}
	if hash != c.noted.Patch || c.calls {
		c.noted.Patch = hash
		if err := c.note(ctx, s); err != nil {
			return c.unkept(err)
		}
	}
	c.calls, c.safe, c.kept = false, true, time.Now()
	return nil
}

func (c *checkout) unkept(err error) error {
	if errors.Is(err, session.ErrLost) {
		return err
	}
	return &placeFailure{fmt.Sprintf("the changes of its files could not be kept in the store; they are at %s in %s", orUnknown(c.w.Name), c.files()), err}
}

// changes returns the patch from the commit to the files: also files that git does not
// know, but not those that it ignores.
func (c *checkout) changes(ctx context.Context) ([]byte, error) {
	paths, _, err := c.tracked(ctx)
	if err != nil {
		return nil, err
	}
	var gone, there bytes.Buffer
	real := map[string]bool{}
	for _, path := range paths {
		list := &gone
		if c.isFile(path, real) {
			list = &there
		}
		list.WriteString(path + "\x00")
	}
	if err := c.update(ctx, &gone, "--force-remove"); err != nil { // first, because a folder may be in the place of a file
		return nil, err
	}
	out, err := c.git.local(ctx, nil, "ls-files", "--others", "--exclude-standard", "-z")
	if err != nil {
		return nil, err
	}
	for path := range strings.SplitSeq(string(out), "\x00") {
		switch {
		case path == "":
		case strings.HasSuffix(path, "/"): // a repository, which git leaves alone
			if err := c.inside(path, &there); err != nil {
				return nil, err
			}
		default:
			there.WriteString(path + "\x00")
		}
	}
	if err := c.update(ctx, &there, "--add", "--remove"); err != nil {
		return nil, err
	}
	return c.git.local(ctx, nil, diffIndex("--binary", c.state.Base)...)
}

// diffIndex returns the command for the changes from a tree to the index. form says how they
// have files that are not text.
func diffIndex(form, base string) []string {
	return []string{"diff-index", "--cached", "--patch", form, "--full-index", "--no-renames", "--no-ext-diff", "--no-textconv", "--no-color", "--ignore-submodules=all", base}
}

// isFile reports whether there is a file or a link at a path of the index, in folders that
// are no links. Real are folders that are known.
func (c *checkout) isFile(path string, real map[string]bool) bool {
	for i := 0; i < len(path); i++ {
		if path[i] != '/' {
			continue
		}
		folder := path[:i]
		is, known := real[folder]
		if !known {
			info, err := os.Lstat(filepath.Join(c.git.files, filepath.FromSlash(folder)))
			is = err == nil && info.IsDir()
			real[folder] = is
		}
		if !is {
			return false
		}
	}
	info, err := os.Lstat(filepath.Join(c.git.files, filepath.FromSlash(path)))
	return err == nil && (info.Mode().IsRegular() || info.Mode()&fs.ModeSymlink != 0)
}

// inside adds the files of a repository in the checkout to a list, without what git has
// there.
func (c *checkout) inside(folder string, list *bytes.Buffer) error {
	root := filepath.Join(c.git.files, filepath.FromSlash(folder))
	return filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case strings.EqualFold(d.Name(), ".git"):
			if d.IsDir() {
				return fs.SkipDir
			}
		case d.Type().IsRegular() || d.Type()&fs.ModeSymlink != 0:
			rel, err := filepath.Rel(c.git.files, path)
			if err != nil {
				return err
			}
			list.WriteString(filepath.ToSlash(rel) + "\x00")
		}
		return nil
	})
}

// end gives the checkout up.
func (c *checkout) end() error {
	if c.lock == nil {
		return nil
	}
	lock := c.lock
	c.lock = nil
	var err error
	if c.safe && c.state.Next == "" {
		c.state.Kept = true
		err = c.write()
	}
	return errors.Join(err, lock.Release())
}

// removeAll removes a folder, also one with folders that may not be written to. It follows
// no links.
func removeAll(path string) error {
	if os.RemoveAll(path) == nil {
		return nil
	}
	_ = filepath.WalkDir(path, func(path string, d fs.DirEntry, err error) error { // what it cannot do, RemoveAll reports
		if d != nil && d.IsDir() {
			_ = os.Chmod(path, 0o700)
		}
		return nil
	})
	return os.RemoveAll(path)
}

// keepEvery is how often the changes of a run that goes on are kept, and keepTime how long that
// may take: a call can have made a file without end.
var keepEvery, keepTime = time.Minute, 10 * time.Minute

// placed is a session that works in a checkout.
type placed struct {
	opened
	tree *checkout
}

// open makes the checkout when the session is locked, and opens the session in it.
func (c *checkout) open(ctx context.Context, cfg host.Config, place string) (*placed, error) {
	locked := cfg.Locked
	cfg.Locked = func(ctx context.Context, info session.Info) error {
		if err := c.take(); err != nil { // before anything counts as an attempt
			return err
		}
		if err := locked(ctx, info); err != nil {
			return err
		}
		return c.begin(ctx, place)
	}
	h, err := host.Open(ctx, cfg)
	if err != nil {
		return nil, errors.Join(err, c.end())
	}
	if err := c.began(ctx, h.Session); err != nil {
		return nil, errors.Join(err, h.Close(), c.end())
	}
	return &placed{opened{Host: h}, c}, nil
}

// Stream runs the session, and keeps what it changed now and then: before a request, when no
// call runs.
func (p *placed) Stream(ctx context.Context, text string) iter.Seq2[agent.Event, error] {
	return func(yield func(agent.Event, error) bool) {
		for ev, err := range p.Host.Stream(ctx, text) {
			if e, ok := ev.(agent.Recorded); ok {
				if isCall(e.Body) {
					p.tree.called()
				}
				if _, turn := e.Body.(session.TurnStarted); turn && p.tree.calls && time.Since(p.tree.kept) >= keepEvery {
					if failed := p.keep(ctx); failed != nil { // it is tried again, and at the end it counts
						p.tree.kept = time.Now()
						if w := p.tree.w; w.Log != nil {
							w.Log.Warn("changes not kept", "session", p.tree.id, "error", w.sayable(failed))
						}
					}
				}
			}
			if !yield(ev, err) {
				return
			}
		}
	}
}

// keep keeps what the session changed.
func (p *placed) keep(ctx context.Context) error {
	return p.tree.keep(context.WithoutCancel(ctx), p.Session)
}

// Close ends the session, and then gives the checkout up.
func (p *placed) Close() error { return errors.Join(p.Host.Close(), p.tree.end()) }
