// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/antiphon-go/antiphon/agentfile"
	"github.com/antiphon-go/antiphon/host"
	"github.com/antiphon-go/antiphon/internal/show"
	"github.com/antiphon-go/antiphon/session"
)

// exportCommand is antiphon sessions export.
type exportCommand struct {
	Session string `arg:"" help:"The session."`
	To      string `enum:"auto,html,jsonl,chatmd" default:"auto" help:"The format: html, jsonl or chatmd. Default: from the extension of --out."`
	Out     string `short:"o" placeholder:"FILE" help:"Write to FILE instead of standard output."`
	Force   bool   `help:"Overwrite FILE."`

	FullPaths bool `help:"Write the full path of the agent's file, not only its name."`
}

// Help is shown by antiphon sessions export --help.
func (exportCommand) Help() string {
	return `The forms:
  html    one page for people, with all images in it, that needs no network
  jsonl   the whole log with all payloads, which sessions import reads back
  chatmd  the conversation, as a transcript of antiphon run --out

Examples:
  antiphon sessions export work -o work.html
  antiphon sessions export work --to chatmd > work.md`
}

// exported is what sessions export --json prints.
type exported struct {
	Session string `json:"session"`
	Form    string `json:"form"`
	File    string `json:"file"`
	Bytes   int64  `json:"bytes"`
}

// Run exports.
func (c *exportCommand) Run(ctx context.Context, std stdio, env environment, all *sessionsCommand) error {
	if c.Out == "-" {
		c.Out = ""
	}
	form, err := c.form()
	if err != nil {
		return err
	}
	if all.JSON && c.Out == "" {
		return usage(errors.New("--json says what was written to a file: give -o FILE"))
	}
	if err := checkTarget(&all.storeFlag, env, c.Out); err != nil {
		return err
	}
	return all.with(ctx, env, c.Session, func(store keeper, info session.Info) error {
		options, err := fileOptions()
		if err != nil {
			return err
		}
		e := host.Export{FrontEnd: front(std, env, false), Store: store, Session: info, FullPaths: c.FullPaths, Options: options}
		var n int64
		to := func(write func(io.Writer) error) (err error) {
			switch {
			case c.Out != "":
				n, err = writeFile(c.Out, c.Force, write)
			case form == "jsonl":
				err = write(toJSON(std.out))
			case show.IsTerminal(std.out):
				var text strings.Builder
				if err = write(&text); err == nil {
					err = writeForeign(std.out, text.String())
				}
			default:
				err = write(std.out)
			}
			return err
		}
		switch form {
		case "html":
			err = to(func(w io.Writer) error { return e.HTML(ctx, w) })
		case "jsonl":
			err = to(func(w io.Writer) error { return e.JSONLines(ctx, w) })
		default:
			var write func(io.Writer) error
			if write, err = e.Transcript(ctx, c.Out); err == nil {
				err = to(write)
			}
		}
		if err != nil || c.Out == "" {
			return err
		}
		return all.told(std, exported{info.ID, form, c.Out, n}, "%s is in %s: %s", cmp.Or(info.Name, info.ID), c.Out, bytesOf(n))
	})
}

func (c *exportCommand) form() (string, error) {
	if c.To != "auto" {
		return c.To, nil
	}
	switch strings.ToLower(filepath.Ext(c.Out)) {
	case ".html", ".htm":
		return "html", nil
	case ".jsonl", ".ndjson":
		return "jsonl", nil
	case ".md", ".chatmd":
		return "chatmd", nil
	}
	return "", usage(errors.New("give --to html, jsonl or chatmd, or a FILE whose name ends in .html, .jsonl or .md"))
}

// checkTarget returns an error for a file that cannot or must not be written to,
// whatever the flags; "" is standard output.
func checkTarget(store *storeFlag, env environment, path string) error {
	info, err := os.Stat(path)
	switch {
	case path == "":
		return nil
	case errors.Is(err, fs.ErrNotExist):
		return errors.Join(checkFolder(path), notDangling(path))
	case err != nil:
		return usage(err)
	case info.IsDir():
		return usage(fmt.Errorf("--out %s is a folder; give the name of a file", path))
	case store.isStore(env, path):
		return usage(fmt.Errorf("--out %s is the store of the sessions itself", path))
	case info.Mode().IsRegular():
		return notOutside(path)
	}
	return nil
}

// notDangling refuses a link to a missing file. Creating the target could put it in
// an unexpected place, and replacing the link would undo somebody's setup.
func notDangling(path string) error {
	to, err := os.Readlink(path)
	if err != nil {
		return nil // it is not a link
	}
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return usage(fmt.Errorf("%s is a symbolic link to %s, which does not exist; remove the link, or name the file itself", path, to))
	}
	return nil
}

// notOutside refuses a link to a file outside of its folder. The folder may come from a
// stranger, who would choose the file that is replaced.
func notOutside(path string) error {
	folder, err := filepath.EvalSymlinks(filepath.Dir(path))
	if err != nil {
		return err
	}
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return err
	}
	if rel, err := filepath.Rel(folder, real); err != nil || !filepath.IsLocal(rel) {
		return usage(fmt.Errorf("%s is a link to %s, outside of its folder\n  hint: name that file itself", path, real))
	}
	return nil
}

// writeFile writes a file completely or not at all, and returns its size. A replaced
// file keeps its mode. Pipes and devices are written directly.
func writeFile(path string, force bool, write func(io.Writer) error) (n int64, err error) {
	before, err := os.Stat(path)
	if folder := filepath.Dir(path); err == nil && before.IsDir() || strings.HasSuffix(path, "/") {
		return 0, usage(fmt.Errorf("%s is a folder; name a file, such as %s", show.Visible(path), show.Visible(filepath.Join(path, "new.md"))))
	} else if _, err := os.Stat(folder); errors.Is(err, fs.ErrNotExist) {
		return 0, usage(fmt.Errorf("there is no folder %s; make it first: mkdir -p %s", show.Visible(folder), quoted(folder)))
	}
	if err == nil && !before.Mode().IsRegular() {
		return writeThrough(path, write)
	}
	if err := notDangling(path); err != nil {
		return 0, err
	}
	if _, err := os.Lstat(path); err == nil && !force {
		return 0, usage(fmt.Errorf("%s exists already; --force overwrites it", path))
	}
	if before != nil {
		if err := notOutside(path); err != nil {
			return 0, err
		}
		if path, err = filepath.EvalSymlinks(path); err != nil {
			return 0, err
		}
	}
	draft, err := createDraft(path)
	if err != nil {
		return 0, err
	}
	defer os.Remove(draft.Name())
	if before != nil {
		_ = draft.Chmod(before.Mode().Perm()) // otherwise only the owner can read it
	}
	if err = write(draft); err == nil {
		err = draft.Sync()
	}
	if info, statErr := draft.Stat(); statErr == nil {
		n = info.Size()
	}
	if err = errors.Join(err, draft.Close()); err != nil {
		return 0, aboutFile(err, draft.Name(), path)
	}
	if force {
		return n, os.Rename(draft.Name(), path)
	}
	if err = os.Link(draft.Name(), path); errors.Is(err, fs.ErrExist) {
		return 0, usage(fmt.Errorf("%s exists already; --force overwrites it", path))
	} else if err != nil { // a file system without links
		return n, os.Rename(draft.Name(), path)
	}
	return n, nil
}

// createDraft creates the temporary file that is to replace the file at path.
func createDraft(path string) (*os.File, error) {
	draft, err := os.CreateTemp(filepath.Dir(path), ".antiphon-*")
	if at := (*fs.PathError)(nil); errors.As(err, &at) {
		at.Path = path // its own name says nothing to the user
	}
	return draft, err
}

// aboutFile returns an error of writing the draft of a file. It names the file,
// because the draft is gone when the error is read.
func aboutFile(err error, draft, path string) error {
	if at := (*fs.PathError)(nil); errors.As(err, &at) && at.Path == draft {
		at.Path = path
	}
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return fmt.Errorf("%w; free some space, then run it again", err)
	}
	return err
}

// writeThrough writes to a pipe or a device, and returns the number of bytes.
func writeThrough(path string, write func(io.Writer) error) (n int64, err error) {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return 0, err
	}
	count := &counter{w: f}
	err = errors.Join(write(count), f.Close())
	return count.n, err
}

// counter counts what is written.
type counter struct {
	w io.Writer
	n int64
}

func (c *counter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += int64(n)
	return n, err
}

// remark is the first line of a transcript that is an export. A later export may
// replace such a file.
func remark(id string) string { return "<!-- an export of the session " + id + " -->\n" }

// checkOut returns an error if --out names a file that is not an export of the
// session. A session that does not exist yet has no id and no export.
func (c *runCommand) checkOut(env environment, id string) error {
	if c.Out == "" {
		return nil
	}
	if err := checkTarget(&c.storeFlag, env, c.Out); err != nil || c.Force {
		return err
	}
	if info, err := os.Stat(c.Out); err != nil || !info.Mode().IsRegular() {
		return nil // nothing to overwrite
	}
	f, err := os.Open(c.Out)
	if err != nil {
		return usage(err)
	}
	defer f.Close()
	want := []byte(remark(id))
	begin := make([]byte, len(want))
	if _, err := io.ReadFull(f, begin); err != nil || id == "" || !bytes.Equal(begin, want) {
		return usage(fmt.Errorf("%s exists and is not an export of the session %s; with --session, --out writes one; --force overwrites the file", c.Out, cmp.Or(id, c.Session)))
	}
	return nil
}

// checkFolder returns an error if the folder of a file does not exist.
func checkFolder(path string) error {
	info, err := os.Stat(filepath.Dir(path))
	if err == nil && !info.IsDir() {
		err = errors.New("it is not a folder")
	}
	if err != nil {
		return usage(fmt.Errorf("--out %s: the folder %s: %w", path, filepath.Dir(path), err))
	}
	return nil
}

// writeOut writes the transcript of --out for a session. The file may have been
// created or changed since the run began: see checkOut.
func (c *runCommand) writeOut(ctx context.Context, std stdio, env environment, h *host.Host) error {
	ctx = context.WithoutCancel(ctx)
	if err := c.checkOut(env, h.Info.ID); err != nil {
		return err
	}
	release, err := agentfile.Hold(c.Out)
	if err != nil && !errors.Is(err, errors.ErrUnsupported) { // without locks no run can continue a transcript
		return fmt.Errorf("the export was not written: %w", err)
	}
	if err == nil {
		defer release()
	}
	options, err := fileOptions()
	if err != nil {
		return err
	}
	e := host.Export{FrontEnd: front(std, env, false), Store: h.Store, Session: h.Info, Options: options}
	write, err := e.Transcript(ctx, c.Out)
	if err != nil {
		return err
	}
	_, err = writeFile(c.Out, true, func(w io.Writer) error {
		before := c.before()
		_, err := io.WriteString(io.MultiWriter(w, before), remark(h.Info.ID))
		if err == nil {
			err = write(io.MultiWriter(w, before))
		}
		return errors.Join(err, before.end(c.Out))
	})
	return err
}

// before compares the export with the file that it will replace. If the export does
// not begin with the file's text, somebody has changed the file, or continued it as
// a transcript. With --force nothing is compared.
func (c *runCommand) before() *beginning {
	if info, err := os.Stat(c.Out); c.Force || err != nil || !info.Mode().IsRegular() {
		return &beginning{}
	}
	f, err := os.Open(c.Out)
	if err != nil {
		return &beginning{differs: true}
	}
	return &beginning{file: f, text: bufio.NewReader(f)}
}

// beginning is a text that the text written to it should begin with.
type beginning struct {
	file    *os.File // nil if there is none
	text    *bufio.Reader
	differs bool
}

func (b *beginning) Write(p []byte) (int, error) {
	if b.file == nil || b.differs {
		return len(p), nil
	}
	for want := p; len(want) > 0; {
		have, err := b.text.Peek(min(len(want), b.text.Size()))
		b.differs = !bytes.HasPrefix(want, have) || err != nil && err != io.EOF
		if b.differs || len(have) == 0 {
			break
		}
		_, _ = b.text.Discard(len(have)) // the bytes are buffered
		want = want[len(have):]
	}
	return len(p), nil
}

// end closes the file, and returns an error if the written text does not begin with
// it.
func (b *beginning) end(path string) error {
	if b.file != nil {
		_, err := b.text.ReadByte()
		b.differs = b.differs || err != io.EOF
		_ = b.file.Close() // it was only read
	}
	if b.differs {
		return fmt.Errorf("%s was changed since it was exported, and is not overwritten; the session has the conversation; --force overwrites the file", path)
	}
	return nil
}
