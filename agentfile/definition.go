// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agentfile

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/antiphon-go/antiphon/trust"
)

// Definition is an agent's file with all files that it includes, as one value: its
// imports, agents, documents, pictures, scripts and the scripts of its commands. A
// worker on another machine opens exactly this, also after the file has changed.
//
// What a definition names and does not include stays with the machine: the workspace,
// programs, servers, and folders that its tools may read.
type Definition struct {
	// Program is the version of the program, because the tools that are compiled into it
	// belong to the agent, too.
	Program string `json:"program"`
	// Main is the path of the agent's file in Files.
	Main string `json:"main"`
	// Files are in the order of their paths.
	Files []IncludedFile `json:"files"`
}

// IncludedFile is a file of a [Definition].
type IncludedFile struct {
	// Path is relative to the folder of the agent's file, with slashes.
	Path string `json:"path"`
	// Executable is set for a script that may be run by its name.
	Executable bool   `json:"executable,omitzero"`
	Text       []byte `json:"text"`
}

// maxDefinition limits the files of a definition, all together.
const maxDefinition = 64 << 20

// Pack returns the definition of the agent's file at path, without its Program. It
// runs and fetches nothing, and asks nobody. A file that lies outside of the agent's
// folder, that is hidden, or that holds a private key is an error that names it.
func Pack(ctx context.Context, path string, o Options) (Definition, error) {
	real, err := filepath.EvalSymlinks(path)
	if err == nil {
		real, err = filepath.Abs(real)
	}
	if err != nil {
		return Definition{}, err
	}
	d, hash, err := pack(ctx, real, o)
	if err != nil {
		return Definition{}, err
	}
	// The copy must be the same agent. It is not if the file names something in its own
	// folder by an absolute path, or in the workspace.
	dir, err := os.MkdirTemp("", "antiphon-")
	if err != nil {
		return Definition{}, err
	}
	defer os.RemoveAll(dir)
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return Definition{}, err
	}
	if err := d.write(dir); err != nil {
		return Definition{}, err
	}
	if _, again, err := pack(ctx, filepath.Join(dir, filepath.FromSlash(d.Main)), o); err != nil || again != hash {
		return Definition{}, fmt.Errorf("%s: a copy of it would be another agent\n  hint: name files of its folder by relative paths, without ${workspace}", path)
	}
	return d, nil
}

// pack reads a file and all that it includes, and returns the hash of its claim, too.
func pack(ctx context.Context, path string, o Options) (d Definition, hash string, err error) {
	var texts map[string][]byte
	var outside []string
	o.Check, o.Salvage, o.Runner, o.Consent = true, false, nil, nil
	o.packed = func(g *gate) { texts, outside = g.texts, g.unread }
	f, err := Load(ctx, path, o)
	if len(outside) > 0 {
		if f != nil {
			_ = f.Close()
		}
		return d, "", outsideError(path, outside[0])
	}
	if err != nil {
		return d, "", err
	}
	defer f.Close()
	claim := f.Claim()
	for _, p := range claim.Powers {
		if p.Kind == trust.Varies {
			return d, "", fmt.Errorf("%s: a command uses %s, which cannot be kept with the agent\n  hint: name the files that decide what it does, beside the agent's file", path, trust.Visible(p.What))
		}
	}
	dir := filepath.Dir(path)
	d.Main = filepath.Base(path)
	texts[path] = []byte(f.Doc.Source())
	scripts := map[string]bool{}
	for _, s := range claim.Sources {
		if s.Word == "" {
			continue
		}
		if texts[s.Path], err = readRegular(resolved(s.Path), maxDefinition); err != nil {
			return d, "", fmt.Errorf("%s: %w", s.Path, err)
		}
		if trust.Hash(texts[s.Path]) != s.Hash {
			return d, "", fmt.Errorf("%s has changed while it was read\n  hint: try again", s.Path)
		}
		if info, err := os.Stat(s.Path); err == nil && info.Mode()&0o111 != 0 {
			scripts[s.Path] = true
		}
	}
	size := 0
	for name, text := range texts {
		rel, err := filepath.Rel(dir, name)
		if err != nil || !filepath.IsLocal(rel) || !within(dir, resolved(name)) {
			return d, "", outsideError(path, name)
		}
		if problem := secretFile(rel, text); problem != "" {
			return d, "", fmt.Errorf("%s: %s %s, so it is not stored with the agent\n  hint: keep secrets in variables of the worker's environment", path, name, problem)
		}
		if size += len(text); size > maxDefinition {
			return d, "", fmt.Errorf("%s: with all that it includes it is larger than %d MiB\n  hint: let its tools read large files", path, maxDefinition>>20)
		}
		d.Files = append(d.Files, IncludedFile{filepath.ToSlash(rel), scripts[name], text})
	}
	slices.SortFunc(d.Files, func(a, b IncludedFile) int { return strings.Compare(a.Path, b.Path) })
	return d, claim.Hash(), nil
}

// outsideError is the error for a file that a definition cannot include.
func outsideError(path, name string) error {
	return fmt.Errorf("%s: %s is outside of the agent's folder, so it cannot be stored with the agent\n  hint: copy it into that folder", path, name)
}

// secretFile says why a file may hold a secret, or returns "".
func secretFile(rel string, text []byte) string {
	for part := range strings.SplitSeq(filepath.ToSlash(rel), "/") {
		if strings.HasPrefix(part, ".") && part != ".chatmd" {
			return "is hidden"
		}
	}
	if bytes.Contains(text, []byte("PRIVATE KEY-----")) {
		return "holds a private key"
	}
	return ""
}

// Encode returns the stored form of the definition: JSON in one form, so that equal
// definitions have equal bytes.
func (d Definition) Encode() ([]byte, error) { return json.Marshal(d, json.Deterministic(true)) }

// Hash returns the SHA-256 of the stored form, in hexadecimal.
func (d Definition) Hash() (string, error) {
	text, err := d.Encode()
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:]), err
}

// ParseDefinition reads what [Definition.Encode] returned. Anybody may have written
// it: another form of it, or a path that leads out of its folder, is an error.
func ParseDefinition(text []byte) (d Definition, err error) {
	if err := json.Unmarshal(text, &d, json.RejectUnknownMembers(true)); err != nil {
		return Definition{}, fmt.Errorf("not the definition of an agent: %w", err)
	}
	again, err := d.Encode()
	if err != nil || !bytes.Equal(again, text) {
		return Definition{}, errors.New("not the definition of an agent: it has another form")
	}
	found := false
	for i, f := range d.Files {
		rel := filepath.FromSlash(f.Path)
		if f.Path == "" || !filepath.IsLocal(rel) || filepath.ToSlash(filepath.Clean(rel)) != f.Path || f.Path == "." || i > 0 && d.Files[i-1].Path >= f.Path {
			return Definition{}, fmt.Errorf("not the definition of an agent: it has a file at %q", f.Path)
		}
		found = found || f.Path == d.Main
	}
	if !found {
		return Definition{}, errors.New("not the definition of an agent: its file is missing")
	}
	return d, nil
}

// Unpack writes the files into a folder of their own in dir, named by the hash, unless
// it is there, and returns the path of the agent's file. Only the user may read them.
// A folder that holds anything else by now is an error.
func (d Definition) Unpack(dir string) (path string, err error) {
	hash, err := d.Hash()
	if err != nil {
		return "", err
	}
	if err := makeFolders(dir); err != nil {
		return "", fmt.Errorf("%s: %w", dir, plain(err))
	}
	// Powers name paths with their links resolved.
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return "", err
	}
	place := filepath.Join(dir, hash)
	if _, err := os.Lstat(place); errors.Is(err, fs.ErrNotExist) {
		draft, err := os.MkdirTemp(dir, "new-")
		if err != nil {
			return "", err
		}
		defer os.RemoveAll(draft)
		if err := d.write(draft); err != nil {
			return "", err
		}
		// If another process was faster, its folder is checked.
		if err := os.Rename(draft, place); err != nil && !errors.Is(err, fs.ErrExist) {
			if _, exists := os.Lstat(place); exists != nil {
				return "", err
			}
		}
	}
	if err := d.same(place); err != nil {
		return "", fmt.Errorf("%s: %w\n  hint: find out who changed it; without the folder, it is written again", place, err)
	}
	return filepath.Join(place, filepath.FromSlash(d.Main)), nil
}

// write writes the files, which nobody may change.
func (d Definition) write(dir string) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	for _, f := range d.Files {
		mode := fs.FileMode(0o400)
		if f.Executable {
			mode = 0o500
		}
		path := filepath.FromSlash(f.Path)
		if err := root.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return err
		}
		w, err := root.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
		if err != nil {
			return err
		}
		_, err = w.Write(f.Text)
		if err := errors.Join(err, w.Close()); err != nil {
			return err
		}
	}
	return nil
}

// same returns an error unless the folder holds exactly the files.
func (d Definition) same(dir string) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	left := map[string]*IncludedFile{}
	for i := range d.Files {
		left[d.Files[i].Path] = &d.Files[i]
	}
	err = fs.WalkDir(root.FS(), ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		want := left[path]
		if want == nil || !entry.Type().IsRegular() {
			return fmt.Errorf("it holds %s, which does not belong to the agent", path)
		}
		delete(left, path)
		r, err := root.Open(filepath.FromSlash(path))
		if err != nil {
			return err
		}
		defer r.Close()
		text, err := io.ReadAll(io.LimitReader(r, int64(len(want.Text))+1))
		if err == nil && !bytes.Equal(text, want.Text) {
			err = fmt.Errorf("%s differs from the agent's definition", path)
		}
		return err
	})
	for path := range left {
		if err == nil {
			err = fmt.Errorf("%s is gone", path)
		}
	}
	return err
}
