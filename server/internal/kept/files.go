// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package kept

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/antiphon-go/antiphon/internal/nils"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/server"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/session/store"
)

const (
	// fileSessions is the beginning of the ids of their sessions.
	fileSessions = "api-file-"
	// tagFiles marks these sessions, and tagExpires those that expire.
	tagFiles   = "responses-file"
	tagExpires = "responses-file-expires"
	// kindFile is the type of the note.
	kindFile = "antiphon:file"
	// maxUpload is how long writing a file may take.
	maxUpload = time.Hour
)

// Files implements [server.Filer]. A file is a session with one note, whose blob is the content.
// Agents and upstreams over one store have the same files.
type Files struct {
	In store.Store
	// Owner owns the files that are added, and Files yields those of this owner.
	Owner string
	// Apart means that files of other owners are not found. V3
	Apart bool
}

// FileSession returns the session of a file that was added. ok is false for other ids.
func FileSession(id string) (in string, ok bool) {
	name, ok := strings.CutPrefix(id, "file-")
	return fileSessions + name, ok && len(name) == 26 && strings.Trim(name, "abcdefghijklmnopqrstuvwxyz234567") == ""
}

// note is the entry of a file's session.
type note struct {
	Kind string         `json:"type"`
	File jsontext.Value `json:"file,omitempty"`
}

// described is a file in the note of its session.
type described struct {
	server.File
	Hash string `json:"sha256"`
}

// AddFile implements [server.Filer].
func (k Files) AddFile(ctx context.Context, f server.File, content []byte) (server.File, error) {
	f.ID, f.Bytes = "file-"+strings.ToLower(rand.Text()), int64(len(content))
	f.Created = cmp.Or(f.Created, time.Now().Unix())
	in, _ := FileSession(f.ID)
	tags := []string{tagFiles}
	if f.Expires != 0 {
		tags = append(tags, tagExpires)
	}
	if err := k.In.Create(ctx, session.Info{ID: in, Owner: k.Owner, Tags: tags}); err != nil {
		return f, err
	}
	err := k.fill(ctx, in, f, content)
	if err != nil {
		err = errors.Join(err, k.In.Delete(context.WithoutCancel(ctx), in))
	}
	return f, err
}

// fill writes a file into its session.
func (k Files) fill(ctx context.Context, in string, f server.File, content []byte) error {
	if err := k.In.Archive(ctx, in, true); err != nil { // lists leave it out
		return err
	}
	hash, err := k.In.PutBlob(ctx, in, content)
	if err != nil {
		return err
	}
	n := note{Kind: kindFile}
	if n.File, err = json.Marshal(described{f, hex.EncodeToString(hash[:])}); err != nil {
		return err
	}
	text, err := json.Marshal(n)
	if err != nil {
		return err
	}
	it, err := item.Parse(text)
	if err != nil {
		return err
	}
	s, err := session.Open(ctx, k.In, in)
	if err == nil {
		_, err = s.Append(ctx, session.Note{Item: it})
	}
	return err
}

// read returns the file of a session.
func (k Files) read(ctx context.Context, in string) (f described, hash session.Hash, err error) {
	info, err := k.In.Info(ctx, in)
	if errors.Is(err, session.ErrNotFound) || err == nil && k.Apart && info.Owner != k.Owner {
		return f, hash, server.ErrNotFound
	}
	if err != nil {
		return f, hash, err
	}
	for e, err := range nils.Each(k.In, "Load", k.In.Load(ctx, in, 0)) {
		if err != nil {
			return f, hash, err
		}
		var n note
		if b, ok := e.Body.(session.Note); !ok || json.Unmarshal([]byte(b.Item.JSON()), &n) != nil || n.Kind != kindFile {
			continue
		}
		if err := json.Unmarshal(n.File, &f); err != nil {
			return f, hash, err
		}
		if f.Expires != 0 && f.Expires <= time.Now().Unix() {
			break
		}
		sum, err := hex.DecodeString(f.Hash)
		if err == nil && len(sum) != len(hash) {
			err = fmt.Errorf("the hash of %s is %q", f.ID, f.Hash)
		}
		copy(hash[:], sum)
		return f, hash, err
	}
	return described{}, hash, server.ErrNotFound
}

// File implements [server.Filer].
func (k Files) File(ctx context.Context, id string) (server.File, error) {
	in, ok := FileSession(id)
	if !ok {
		return server.File{}, server.ErrNotFound
	}
	f, _, err := k.read(ctx, in)
	return f.File, err
}

// OpenFile implements [server.Filer].
func (k Files) OpenFile(ctx context.Context, id string) (io.ReadCloser, error) {
	in, ok := FileSession(id)
	if !ok {
		return nil, server.ErrNotFound
	}
	_, hash, err := k.read(ctx, in)
	if err != nil {
		return nil, err
	}
	content, _, err := k.In.OpenBlob(ctx, hash)
	return content, err
}

// Files implements [server.Filer].
func (k Files) Files(ctx context.Context) iter.Seq2[server.File, error] {
	return func(yield func(server.File, error) bool) {
		list, err := k.sessions(ctx)
		if err != nil {
			yield(server.File{}, err)
			return
		}
		for _, in := range list {
			f, _, err := k.read(ctx, in.ID)
			if errors.Is(err, server.ErrNotFound) {
				continue
			}
			if !yield(f.File, err) || err != nil {
				return
			}
		}
	}
}

// sessions returns the sessions of files.
func (k Files) sessions(ctx context.Context) (list []session.Info, err error) {
	for info, err := range nils.Each(k.In, "List", k.In.List(ctx, session.Query{Tags: []string{tagFiles}, Owner: k.Owner, Archived: true})) {
		if err != nil { // of a row that cannot be read, behind all others
			return list, err
		}
		list = append(list, info)
	}
	return list, nil
}

// DeleteFile implements [server.Filer].
func (k Files) DeleteFile(ctx context.Context, id string) error {
	if _, err := k.File(ctx, id); err != nil {
		return err
	}
	in, _ := FileSession(id)
	err := k.In.Delete(ctx, in)
	if errors.Is(err, session.ErrNotFound) {
		err = server.ErrNotFound
	}
	return err
}

// Sweep removes files that have expired, and those that a server which ended had begun.
func (k Files) Sweep(ctx context.Context, now time.Time) error {
	list, problem := k.sessions(ctx)
	for _, in := range list {
		switch {
		case in.Entries == 0 && (in.Updated.IsZero() || now.Sub(in.Updated) < maxUpload):
			continue // somebody may be writing it; not every store says since when
		case in.Entries > 0 && !slices.Contains(in.Tags, tagExpires):
			continue
		case in.Entries > 0:
			if _, _, err := k.read(ctx, in.ID); err == nil {
				continue
			} else if !errors.Is(err, server.ErrNotFound) {
				problem = errors.Join(problem, err)
				continue
			}
		}
		if err := k.In.Delete(ctx, in.ID); err != nil && !errors.Is(err, session.ErrNotFound) {
			problem = errors.Join(problem, err)
		}
	}
	return problem
}

var _ server.Filer = Files{}
