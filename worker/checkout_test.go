// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package worker_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/antiphon-go/antiphon/audit"
	"github.com/antiphon-go/antiphon/host"
	"github.com/antiphon-go/antiphon/internal/filelock"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/session/queue"
	"github.com/antiphon-go/antiphon/worker"
)

// repo is a git repository with a commit in the branch main.
type repo struct {
	*testing.T
	dir string
}

func newRepo(t *testing.T, files map[string]string) *repo {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip(err)
	}
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	r := &repo{t, dir}
	r.git("init", "--quiet", "--initial-branch=main", "--template=")
	for name, text := range files {
		r.write(name, text)
	}
	r.commit()
	return r
}

func (r *repo) git(args ...string) string {
	r.Helper()
	cmd := exec.Command("git", append([]string{"-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "core.autocrlf=false", "-c", "protocol.file.allow=always"}, args...)...)
	cmd.Dir = r.dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		r.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

func (r *repo) write(name, text string) {
	r.Helper()
	path := filepath.Join(r.dir, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
		r.Fatal(err)
	}
}

func (r *repo) commit() string {
	r.Helper()
	r.git("add", "--all", "--force")
	r.git("commit", "--quiet", "--allow-empty", "--message", "m")
	return r.git("rev-parse", "HEAD")
}

// fetcher returns another worker that may make checkouts of a repository.
func (r *rig) fetcher(name string, from ...string) *worker.Worker {
	r.Helper()
	w := r.another(name)
	w.Checkouts, w.Repositories = r.TempDir(), from
	w.Config.Rules = []session.Rule{{Tool: "append_to_file", Verdict: session.Allow}}
	r.agree(w)
	return w
}

// files returns the folder in which a worker has the files of a session.
func files(t *testing.T, w *worker.Worker, id string) string {
	t.Helper()
	root, err := filepath.EvalSymlinks(w.Checkouts)
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(root, "sessions", id, "files")
}

func contents(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Error(err)
	}
	return string(text)
}

// at leaves work with a place.
func (r *rig) at(key, text string, place worker.Place) string {
	r.Helper()
	j := r.job(key, text)
	j.Place = &place
	return r.submit(j).Session.ID
}

// A checkout that nobody used for long is removed with what was fetched for it, if its changes are
// in the store, and the next run makes it again.
func TestOldCheckouts(t *testing.T) {
	t.Parallel()
	from := newRepo(t, map[string]string{"notes.txt": "first\n"})
	r := newRig(t, writes, "again\n"+note)
	a := r.fetcher("a", from.dir)
	id := r.at("1", "note it", worker.Place{Repository: from.dir, Reference: "main"})
	r.once(a)
	r.is(id, queue.Done, "answered")
	sweep := func(before time.Time, want int) {
		t.Helper()
		if n, err := a.Sweep(t.Context(), before); err != nil || n != want {
			t.Errorf("%d were removed, want %d: %v", n, want, err)
		}
	}
	long, later := time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	sweep(long, 0)
	mine := filepath.Join(files(t, a, id), "mine.txt")
	write := func(text string, at time.Time) {
		if err := errors.Join(os.WriteFile(mine, []byte(text), 0o600), os.Chtimes(mine, at, at)); err != nil {
			t.Fatal(err)
		}
	}
	write("somebody works here", later)
	sweep(later, 0)
	r.at("2", "note it again", worker.Place{Repository: from.dir, Reference: "main"})
	write("somebody works here", long)
	r.once(a)
	r.is(id, queue.Done, "answered")
	sweep(later, 1)
	sweep(later, 0)
	killed := filepath.Join(filepath.Dir(files(t, a, id)), "files", "left") // a worker was, while it removed them
	if err := os.MkdirAll(killed, 0o700); err != nil {
		t.Fatal(err)
	}
	sweep(later, 1)
	if err := filepath.WalkDir(a.Checkouts, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			t.Errorf("%s is left", path)
		}
		return err
	}); err != nil {
		t.Error(err)
	}
	r.submit(r.job("3", "note it"))
	r.once(a)
	r.is(id, queue.Done, "answered")
	if got := contents(t, filepath.Join(files(t, a, id), "notes.txt")) + contents(t, mine); got != "first\nseen\nseen\nseen\nsomebody works here" {
		t.Errorf("%q", got)
	}
}

// A session whose place is a repository goes on with its files at another worker: what was
// changed, what is new, what is gone, bytes that are no text, and links. A worker without the
// repository says what it lacks. D2
func TestRepository(t *testing.T) {
	t.Parallel()
	from := newRepo(t, map[string]string{"notes.txt": "first\n", "crlf": "first\r\n", "gone.txt": "x", "folder/a": "a", ".gitattributes": "notes.txt text eol=crlf\n", ".gitignore": "*.tmp\n", "file": "f"})
	first := from.git("rev-parse", "HEAD")
	r := newRig(t, writes, "again\n"+note)
	a, b, without := r.fetcher("a", from.dir), r.fetcher("b", filepath.Dir(from.dir)+"/"), r.fetcher("c")
	place := worker.Place{Repository: from.dir, Reference: "main"}
	id := r.at("1", "note it", place)
	r.once(without)
	r.is(id, queue.Parked, "needs a worker with the repository "+from.dir+"#main: this worker's operator gave it no such repository")
	r.once(a)
	r.is(id, queue.Done, "answered")
	inA := files(t, a, id)
	if got := contents(t, filepath.Join(inA, "notes.txt")); got != "first\nseen\n" {
		t.Errorf("%q", got)
	}
	// The session changes more than its tool can.
	in := &repo{t, inA}
	if got := in.git("rev-parse", "HEAD"); got != first {
		t.Errorf("the checkout is of %s, want %s", got, first)
	}
	in.write("new/b.bin", "\x00\xff\x01")
	in.write("crlf", "first\r\nsecond\r\nthird\rno end")
	in.write("naïve \"name\"", "x")
	if err := os.Chmod(filepath.Join(inA, "crlf"), 0o700); err != nil {
		t.Fatal(err)
	}
	in.write("x.tmp", "not kept")
	in.write("nested/file", "in a repository")
	in.write(".gitattributes", "* text=auto eol=lf filter=x\n")
	for _, path := range []string{"gone.txt", "folder", "file"} {
		if err := os.RemoveAll(filepath.Join(inA, path)); err != nil {
			t.Fatal(err)
		}
	}
	in.write("file/deeper", "a folder in the place of a file")
	in.write("folder", "a file in the place of a folder")
	(&repo{t, filepath.Join(inA, "nested")}).git("init", "--quiet")
	if err := os.Symlink("/etc/hostname", filepath.Join(inA, "link")); err != nil {
		t.Skip(err)
	}
	from.write("notes.txt", "the branch goes on")
	from.commit()
	r.at("2", "note it", place)
	r.once(a)
	r.is(id, queue.Done, "answered")
	if contents(t, filepath.Join(inA, "x.tmp")) != "not kept" {
		t.Error("the files are not those of the last run")
	}
	r.submit(r.job("3", "note it")) // it stays there
	r.once(without)
	r.is(id, queue.Parked, "needs a worker with the repository")
	r.once(b)
	r.is(id, queue.Done, "answered")
	inB := files(t, b, id)
	for path, want := range map[string]string{
		"notes.txt": "first\nseen\nseen\nseen\n", "crlf": "first\r\nsecond\r\nthird\rno end", "naïve \"name\"": "x", "new/b.bin": "\x00\xff\x01", "nested/file": "in a repository", "file/deeper": "a folder in the place of a file",
		"folder": "a file in the place of a folder", ".gitattributes": "* text=auto eol=lf filter=x\n",
	} {
		if got := contents(t, filepath.Join(inB, path)); got != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
	for _, path := range []string{"gone.txt", "x.tmp"} {
		if _, err := os.Lstat(filepath.Join(inB, path)); err == nil {
			t.Errorf("%s is there", path)
		}
	}
	if info, err := os.Stat(filepath.Join(inB, "crlf")); err != nil || info.Mode()&0o100 == 0 {
		t.Errorf("what may run may run no more: %v", err)
	}
	if to, err := os.Readlink(filepath.Join(inB, "link")); to != "/etc/hostname" {
		t.Errorf("the link leads to %q, %v", to, err)
	}
	if got := (&repo{t, inB}).git("rev-parse", "HEAD"); got != first {
		t.Errorf("the checkout is of %s, want %s", got, first)
	}
	// The patch is for people, too.
	c, err := worker.ChangesOf(t.Context(), r.store, id)
	if err != nil || c.Commit != first || c.Repository != from.dir || c.Reference != "main" {
		t.Fatalf("%+v, %v", c, err)
	}
	r.write(filepath.Join(from.dir, "..", "patch"), string(c.Patch))
	from.git("reset", "--quiet", "--hard", first)
	from.git("apply", filepath.Join(from.dir, "..", "patch"))
	if got := contents(t, filepath.Join(from.dir, "file", "deeper")); got != "a folder in the place of a file" {
		t.Errorf("the patch was not applied: %q", got)
	}
	// The first worker sees that its files are old.
	r.submit(r.job("4", "note it"))
	r.once(a)
	if got := contents(t, filepath.Join(inA, "notes.txt")); got != "first\nseen\nseen\nseen\nseen\n" {
		t.Errorf("%q", got)
	}
	if text := strings.Join(r.said(id), "\n"); strings.Contains(text, "was lost") {
		t.Errorf("the model was told of lost files:\n%s", text)
	}
}

// told returns what instructions say that came from elsewhere than the file.
func (r *rig) told(id string) (list []string) {
	r.Helper()
	s, err := session.Open(r.Context(), r.store, id)
	if err != nil {
		r.Fatal(err)
	}
	for e := range s.Entries() {
		if b, ok := e.Body.(session.InputItem); ok && strings.Contains(textOf(b.Item), "machine that was lost") {
			list = append(list, textOf(b.Item))
		}
	}
	return list
}

// A worker that dies leaves files that nobody else has. The same machine goes on with them.
// Another goes on with what was kept, and the model is told. D2
func TestRepositoryOfLostWorker(t *testing.T) {
	const two = "turn\n  call append_to_file {\"path\":\"notes.txt\",\"content\":\"one\\n\"}\nturn\n  call append_to_file {\"path\":\"notes.txt\",\"content\":\"two\\n\"}\nturn\n  say Noted.\n"
	for name, c := range map[string]struct {
		here, often bool
		files       string
		told        int
	}{
		"the same machine":                   {true, false, "one\ntwo\n", 0},
		"another":                            {false, false, "two\n", 1},
		"another, and it was kept meanwhile": {false, true, "one\ntwo\n", 0},
	} {
		t.Run(name, func(t *testing.T) {
			if c.often {
				if testing.Short() {
					t.Skip("-short: starts git often")
				}
				defer worker.KeepAlways()()
			}
			from := newRepo(t, map[string]string{"notes.txt": ""})
			r := newRig(t, writes, two)
			a, b := r.fetcher("a", from.dir), r.fetcher("b", from.dir)
			id := r.at("1", "note it", worker.Place{Repository: from.dir, Reference: "main"})
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			started := 0
			a.Config.Audit = func(ctx context.Context, records ...audit.Record) error {
				for _, rec := range records {
					if rec.Kind == audit.KindStarted {
						started++
					}
				}
				if started == 2 {
					started++
					r.store.Lose(id)
					<-ctx.Done()
					stop() // or else the worker goes on with it at once
					return ctx.Err()
				}
				return nil
			}
			a.Log, r.work = nil, a
			left := r.logged("work left")
			ended := make(chan error)
			go func() { ended <- a.Run(ctx) }()
			<-left
			if err := <-ended; err != nil {
				t.Fatal(err)
			}
			r.is(id, queue.Running, "")
			other := b
			if c.here {
				other = a
			}
			r.once(other)
			r.is(id, queue.Done, "answered")
			if got := contents(t, filepath.Join(files(t, other, id), "notes.txt")); got != c.files {
				t.Errorf("the files have %q, want %q", got, c.files)
			}
			if got := r.told(id); len(got) != c.told {
				t.Errorf("the model was told %q", got)
			}
		})
	}
}

// An approval that is given while nobody runs the session counts in its checkout.
func TestApprovalInRepository(t *testing.T) {
	t.Parallel()
	from := newRepo(t, nil)
	r := newRig(t, writes, note)
	a := r.fetcher("a", from.dir)
	a.Config.Rules = nil
	id := r.at("1", "note it", worker.Place{Repository: from.dir, Reference: "main"})
	r.once(a)
	r.is(id, queue.Waiting, "append_to_file")
	r.allow(id)
	// A frozen worker of this machine has the checkout still.
	lock, err := filelock.Take(filepath.Join(filepath.Dir(files(t, a, id)), "lock"))
	if err != nil {
		t.Fatal(err)
	}
	before := r.row(id)
	r.once(a)
	if now := r.is(id, queue.Ready, ""); now.Attempts != before.Attempts {
		t.Errorf("an attempt was counted: %+v", now)
	}
	if err := lock.Release(); err != nil {
		t.Fatal(err)
	}
	r.once(a)
	r.is(id, queue.Done, "answered")
	if got := contents(t, filepath.Join(files(t, a, id), "notes.txt")); got != "seen\n" {
		t.Errorf("%q", got)
	}
}

// What a repository, its address, a checkout and a patch say starts no program, and writes
// nothing outside of the checkout. K2
func TestHostileRepository(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	mark, outside := filepath.Join(home, "started"), filepath.Join(home, "outside")
	if err := os.Mkdir(outside, 0o700); err != nil {
		t.Fatal(err)
	}
	evil := filepath.Join(home, "evil")
	if err := os.WriteFile(evil, []byte("#!/bin/sh\necho \"$0 $*\" >> "+mark+"\ncat\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	settings := "[core]\n\tfsmonitor = " + evil + "\n\thooksPath = " + filepath.Join(home, "hooks") + "\n\tpager = " + evil + "\n[filter \"x\"]\n\tsmudge = " + evil + "\n\tclean = " + evil + "\n\trequired = true\n" +
		"[diff \"x\"]\n\ttextconv = " + evil + "\n\tcommand = " + evil + "\n[uploadpack]\n\tpackObjectsHook = " + evil + "\n[submodule]\n\trecurse = true\n[fetch]\n\trecurseSubmodules = true\n[diff]\n\texternal = " + evil + "\n"
	module := newRepo(t, map[string]string{"m": "m"})
	from := newRepo(t, map[string]string{"notes.txt": "first\n", ".gitattributes": "* filter=x diff=x\n"})
	from.git("submodule", "--quiet", "add", "file://"+module.dir, "module")
	if err := os.Symlink(outside, filepath.Join(from.dir, "out")); err != nil {
		t.Skip(err)
	}
	from.commit()
	hooks := func(dir string) {
		t.Helper()
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"post-checkout", "post-index-change", "reference-transaction", "pre-auto-gc", "post-update"} {
			if err := os.Symlink(evil, filepath.Join(dir, name)); err != nil {
				t.Fatal(err)
			}
		}
	}
	append := func(path, text string) {
		t.Helper()
		f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY|os.O_CREATE, 0o600)
		if err == nil {
			_, err = f.WriteString(text)
			err = errors.Join(err, f.Close())
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	hooks(filepath.Join(home, "hooks"))
	hooks(filepath.Join(from.dir, ".git", "hooks"))
	append(filepath.Join(from.dir, ".git", "config"), settings)

	r := newRig(t, writes, "again\n"+note)
	a, b := r.fetcher("a", from.dir), r.fetcher("b", from.dir)
	operators := strings.ReplaceAll(settings, "packObjectsHook", "other") // git takes that from the operator
	append(filepath.Join(home, ".gitconfig"), operators)
	a.Config.Environment = host.Environment{"HOME": home, "PATH": os.Getenv("PATH")}
	b.Config.Environment = a.Config.Environment
	id := r.at("1", "note it", worker.Place{Repository: from.dir, Reference: "main"})
	r.once(a)
	r.is(id, queue.Done, "answered")
	inA := files(t, a, id)
	if got := contents(t, filepath.Join(inA, "notes.txt")); got != "first\nseen\n" {
		t.Errorf("%q", got)
	}
	if list, err := os.ReadDir(filepath.Join(inA, "module")); len(list) > 0 {
		t.Errorf("the submodule was fetched: %v, %v", list, err)
	}
	// Calls change what they can reach: the repository of the checkout, and that of a submodule.
	append(filepath.Join(inA, ".git", "config"), settings)
	hooks(filepath.Join(inA, ".git", "hooks"))
	if err := os.MkdirAll(filepath.Join(inA, "module"), 0o700); err != nil {
		t.Fatal(err)
	}
	fake := &repo{t, filepath.Join(inA, "module")}
	fake.git("init", "--quiet", "--template=")
	fake.write("m", "changed")
	fake.commit()
	append(filepath.Join(inA, "module", ".git", "config"), settings)
	r.submit(r.job("2", "note it"))
	r.once(a)
	r.submit(r.job("3", "note it"))
	a.Repositories = nil
	r.once(b)
	r.is(id, queue.Done, "answered")
	inB := files(t, b, id)
	if got := contents(t, filepath.Join(inB, "notes.txt")) + contents(t, filepath.Join(inB, "module", "m")); got != "first\nseen\nseen\nseen\nchanged" {
		t.Errorf("%q", got)
	}
	// A patch in the store writes to the checkout, and nowhere else.
	for i, path := range []string{"out/evil", ".git/hooks/evil"} {
		patch := "diff --git a/" + path + " b/" + path + "\nnew file mode 100755\n--- /dev/null\n+++ b/" + path + "\n@@ -0,0 +1 @@\n+x\n"
		hash, err := r.store.PutBlob(t.Context(), id, []byte(patch))
		if err != nil {
			t.Fatal(err)
		}
		s, err := session.Open(t.Context(), r.store, id)
		if err != nil {
			t.Fatal(err)
		}
		forged, err := item.ParseString(fmt.Sprintf(`{"type":"antiphon:checkout","repository":%q,"reference":"main","commit":%q,"patch":"%x","run":"x%d"}`, from.dir, from.git("rev-parse", "HEAD"), hash[:], i))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Append(t.Context(), session.Note{Item: forged}); err != nil {
			t.Fatal(err)
		}
		r.submit(r.job("p"+path, "note it"))
		if w := r.row(id); w.State == queue.Parked {
			if err := r.store.Move(t.Context(), w, queue.Ready, "again"); err != nil {
				t.Fatal(err)
			}
		}
		r.once(b)
		r.is(id, queue.Parked, "its changes do not fit the commit")
	}
	if list, err := os.ReadDir(outside); len(list) > 0 || err != nil {
		t.Errorf("something was written outside: %v, %v", list, err)
	}
	if text, err := os.ReadFile(mark); err == nil {
		t.Errorf("programs were started:\n%s", text)
	}
}

// A repository that is gone, or that lost the commit of a session, parks the session and
// says so.
func TestRepositoryIsGone(t *testing.T) {
	t.Parallel()
	from := newRepo(t, map[string]string{"notes.txt": ""})
	r := newRig(t, writes, "again\n"+note)
	a, b := r.fetcher("a", from.dir), r.fetcher("b", from.dir)
	r.is(r.at("1", "note it", worker.Place{Repository: from.dir, Reference: "main"}), queue.Ready, "")
	r.once(a)
	j := r.job("1", "note it")
	j.Config.Session, j.Place = "ben", &worker.Place{Repository: from.dir, Reference: "none"}
	ben := r.submit(j).Session.ID
	r.once(a)
	r.is(ben, queue.Parked, "at none cannot be fetched")
	first := from.git("rev-parse", "HEAD")
	if err := os.RemoveAll(filepath.Join(from.dir, ".git")); err != nil {
		t.Fatal(err)
	}
	id := r.submit(r.job("2", "note it")).Session.ID
	r.once(b)
	r.is(id, queue.Parked, "cannot be fetched")
	from.git("init", "--quiet", "--initial-branch=main", "--template=")
	from.write("other.txt", "") // or else a commit of the same second has the same name
	from.commit()
	if err := r.store.Move(t.Context(), r.row(id), queue.Ready, "again"); err != nil {
		t.Fatal(err)
	}
	r.once(b)
	r.is(id, queue.Parked, "has no commit "+first+" any more")
	if err := r.store.Move(t.Context(), r.row(id), queue.Ready, "again"); err != nil {
		t.Fatal(err)
	}
	r.once(a) // it has what it fetched
	r.is(id, queue.Done, "answered")
	j = r.job("1", "note it")
	j.Config.Session, j.Place = "col", &worker.Place{Repository: from.dir, Reference: first}
	col := r.submit(j).Session.ID
	r.once(a)
	r.is(col, queue.Done, "answered")
}

// A secret of the worker's environment is not kept in the store, also if it is in a file that is
// no text: the session waits for an operator.
func TestSecretInRepository(t *testing.T) {
	t.Parallel()
	from := newRepo(t, map[string]string{"notes.txt": ""})
	r := newRig(t, writes, "again\n"+note)
	a := r.fetcher("a", from.dir)
	a.Config.Environment = host.Environment{"PATH": os.Getenv("PATH"), "DEPLOY_TOKEN": "hunter2-hunter2-hunter2"}
	id := r.at("1", "note it", worker.Place{Repository: from.dir, Reference: "main"})
	r.once(a)
	r.is(id, queue.Done, "answered")
	(&repo{t, files(t, a, id)}).write("core", "\x00\x01 DEPLOY_TOKEN=hunter2-hunter2-hunter2\x00")
	r.submit(r.job("2", "note it"))
	r.once(a)
	r.is(id, queue.Parked, "they contain a secret of the worker's environment")
}

// A repository that the operator allowed does not lead to another one.
func TestRepositoryLeadsElsewhere(t *testing.T) {
	t.Parallel()
	from := newRepo(t, map[string]string{"notes.txt": ""})
	from.git("update-server-info")
	other := httptest.NewServer(http.FileServer(http.Dir(filepath.Join(from.dir, ".git"))))
	defer other.Close()
	here := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/moved/") {
			http.Redirect(w, r, other.URL+strings.TrimPrefix(r.URL.RequestURI(), "/moved"), http.StatusMovedPermanently)
			return
		}
		http.StripPrefix("/there", http.FileServer(http.Dir(filepath.Join(from.dir, ".git")))).ServeHTTP(w, r)
	}))
	defer here.Close()
	r := newRig(t, writes, "again\n"+note)
	a := r.fetcher("a", here.URL+"/")
	id := r.at("1", "note it", worker.Place{Repository: here.URL + "/moved", Reference: "main"})
	r.once(a)
	r.is(id, queue.Parked, "cannot be fetched")
	j := r.job("1", "note it")
	j.Config.Session, j.Place = "there", &worker.Place{Repository: here.URL + "/there", Reference: "main"}
	id = r.submit(j).Session.ID
	r.once(a)
	r.is(id, queue.Done, "answered")
}

// Addresses and references that are options or programs, or that contain a secret, are
// refused before anything is stored.
func TestWrongRepositories(t *testing.T) {
	t.Parallel()
	r := newRig(t, head, talk)
	for _, place := range []worker.Place{
		{Repository: "-x", Reference: "main"}, {Repository: "ext::sh -c evil", Reference: "main"}, {Repository: "ext::evil", Reference: "main"}, {Repository: "repo", Reference: "main"},
		{Repository: "/srv/../repo", Reference: "main"}, {Repository: "https://user:pass@example.org/x", Reference: "main"}, {Repository: "https://token@example.org/x", Reference: "main"},
		{Repository: "https://example.org/x?token=1", Reference: "main"}, {Repository: "ftp://example.org/x", Reference: "main"}, {Repository: "ssh://-oProxyCommand=evil/x", Reference: "main"},
		{Repository: "-oProxyCommand=evil:x", Reference: "main"}, {Repository: "https:///x", Reference: "main"}, {Repository: "https://example.org/x\n", Reference: "main"}, {Reference: "main"},
		{Repository: "https://example.org/x"}, {Repository: "https://example.org/x", Reference: "--upload-pack=evil"}, {Repository: "https://example.org/x", Reference: "a:b"},
		{Repository: "https://example.org/x", Reference: "a..b"}, {Repository: "https://example.org/x", Reference: "+main"}, {Repository: "https://example.org/x", Reference: "main", Host: "h"},
	} {
		j := r.job("1", "hello")
		j.Place = &place
		if _, err := worker.Submit(t.Context(), j); err == nil {
			t.Errorf("%+v was taken", place)
		}
	}
	for _, address := range []string{"https://example.org/x.git", "ssh://git@example.org:22/x", "git@example.org:team/x.git", "http://[::1]:80/x", "file:///srv/x"} {
		j := r.job(address, "hello")
		j.Place = &worker.Place{Repository: address, Reference: "feature/a#1"}
		if _, err := worker.Submit(t.Context(), j); err != nil {
			t.Error(err)
		}
	}
	// What stands below an address that the operator allowed.
	r.work.Checkouts, r.work.Repositories = r.TempDir(), []string{"https://example.org/team/", "https://example.org/one"}
	r.agree(r.work)
	for address, allowed := range map[string]bool{
		"https://example.org/team/../x": false, "https://example.org/one/x": false, "https://example.org/team/": false, "https://example.org/one": true, "https://example.org/team/x.git": true, "https://example.org/team": false,
	} {
		if got := r.work.Allows(worker.Place{Repository: address, Reference: "main"}); got != allowed {
			t.Errorf("%s: allowed is %v", address, got)
		}
	}
}
