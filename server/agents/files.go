// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agents

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"iter"
	"mime"
	"net/http"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/server"
	"github.com/antiphon-go/antiphon/session"
)

// A file is a session with one note, whose blob is the content. Where a request names the
// file, its content takes the place of the name: what was asked does not change when the file
// is deleted. A client cannot name files of the account that the agent's model is paid by.

const (
	// tagFiles marks these sessions, and tagExpires those that expire.
	tagFiles   = "responses-file"
	tagExpires = "responses-file-expires"
	// maxInline bounds the content of the files that a request names.
	maxInline = 64 << 20
	// maxUpload is how long writing a file may take.
	maxUpload = time.Hour
)

// fileSession returns the session of a file.
func fileSession(id string) (in string, ok bool) {
	name, ok := strings.CutPrefix(id, "file-")
	return prefix + "file-" + name, ok && random(name)
}

// keptFile is a file in the note of its session.
type keptFile struct {
	server.File
	Hash string `json:"sha256"`
}

// AddFile implements [server.Filer].
func (b *Backend) AddFile(ctx context.Context, f server.File, content []byte) (server.File, error) {
	f.ID, f.Bytes = "file-"+strings.ToLower(rand.Text()), int64(len(content))
	f.Created = cmp.Or(f.Created, time.Now().Unix())
	in, _ := fileSession(f.ID)
	tags := []string{tagFiles}
	if f.Expires != 0 {
		tags = append(tags, tagExpires)
	}
	if err := b.store().Create(ctx, session.Info{ID: in, Owner: b.owner(), Tags: tags}); err != nil {
		return f, err
	}
	err := b.fill(ctx, in, f, content)
	if err != nil {
		err = errors.Join(err, b.store().Delete(context.WithoutCancel(ctx), in))
	}
	return f, err
}

// fill writes a file into its session.
func (b *Backend) fill(ctx context.Context, in string, f server.File, content []byte) error {
	if err := b.store().Archive(ctx, in, true); err != nil { // lists leave it out
		return err
	}
	hash, err := b.store().PutBlob(ctx, in, content)
	if err != nil {
		return err
	}
	text, err := json.Marshal(keptFile{f, hex.EncodeToString(hash[:])})
	if err != nil {
		return err
	}
	s, err := session.Open(ctx, b.store(), in)
	if err == nil {
		_, err = s.Append(ctx, note{Kind: kindFile, File: text}.body())
	}
	return err
}

// keptFile returns the file of a session.
func (b *Backend) keptFile(ctx context.Context, in string) (f keptFile, hash session.Hash, err error) {
	s, err := b.read(ctx, b.store(), in)
	if err != nil {
		return f, hash, err
	}
	for _, e := range s.Log() {
		n, ok := noteOf(e)
		if !ok || n.Kind != kindFile {
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
			err = fmt.Errorf("agents: the hash of %s is %q", f.ID, f.Hash)
		}
		copy(hash[:], sum)
		return f, hash, err
	}
	return keptFile{}, hash, server.ErrNotFound
}

// File implements [server.Filer].
func (b *Backend) File(ctx context.Context, id string) (server.File, error) {
	in, ok := fileSession(id)
	if !ok {
		f, _, err := b.outputFile(ctx, id)
		return f, err
	}
	f, _, err := b.keptFile(ctx, in)
	return f.File, err
}

// OpenFile implements [server.Filer].
func (b *Backend) OpenFile(ctx context.Context, id string) (io.ReadCloser, error) {
	in, ok := fileSession(id)
	if !ok {
		_, content, err := b.outputFile(ctx, id)
		return io.NopCloser(bytes.NewReader(content)), err
	}
	_, hash, err := b.keptFile(ctx, in)
	if err != nil {
		return nil, err
	}
	content, _, err := b.store().OpenBlob(ctx, hash)
	return content, err
}

// Files implements [server.Filer].
func (b *Backend) Files(ctx context.Context) iter.Seq2[server.File, error] {
	return func(yield func(server.File, error) bool) {
		list, err := b.fileSessions(ctx)
		if err != nil {
			yield(server.File{}, err)
			return
		}
		for _, in := range list {
			f, _, err := b.keptFile(ctx, in.ID)
			if errors.Is(err, server.ErrNotFound) {
				continue
			}
			if !yield(f.File, err) || err != nil {
				return
			}
		}
	}
}

// fileSessions returns the sessions of files.
func (b *Backend) fileSessions(ctx context.Context) (list []session.Info, err error) {
	for info, err := range b.store().List(ctx, session.Query{Tags: []string{tagFiles}, Owner: b.owner(), Archived: true}) {
		if err != nil {
			return nil, err
		}
		list = append(list, info)
	}
	return list, nil
}

// DeleteFile implements [server.Filer].
func (b *Backend) DeleteFile(ctx context.Context, id string) error {
	if _, err := b.File(ctx, id); err != nil {
		return err
	}
	in, ok := fileSession(id)
	if !ok {
		return server.Invalid("unsupported_value", "", "The file '%s' is in the output of a tool, and is deleted with its response.", id)
	}
	err := b.store().Delete(ctx, in)
	if errors.Is(err, session.ErrNotFound) {
		err = server.ErrNotFound
	}
	return err
}

// sweepFiles removes files that have expired, and those that a server which ended had begun.
func (b *Backend) sweepFiles(ctx context.Context, now time.Time) error {
	list, err := b.fileSessions(ctx)
	if err != nil {
		return err
	}
	for _, in := range list {
		switch {
		case in.Entries == 0 && now.Sub(in.Updated) < maxUpload:
			continue // another server may be writing it
		case in.Entries > 0 && !slices.Contains(in.Tags, tagExpires):
			continue
		case in.Entries > 0:
			if _, _, err := b.keptFile(ctx, in.ID); err == nil {
				continue
			} else if !errors.Is(err, server.ErrNotFound) {
				return err
			}
		}
		if err := b.store().Delete(ctx, in.ID); err != nil && !errors.Is(err, session.ErrNotFound) {
			return err
		}
	}
	return nil
}

// withFiles returns a request whose items have the content of the files that they name. It
// counts as part of the request until ctx is done.
func (b *Backend) withFiles(ctx context.Context, r *server.Request) (*server.Request, error) {
	items, err := b.inline(ctx, r.Items, "input")
	if err != nil {
		return nil, err
	}
	with := *r
	with.Items = items
	return &with, nil
}

// inline returns items with the content of the files that they name. where is the name of
// their list in the request.
func (b *Backend) inline(ctx context.Context, items []item.Item, where string) ([]item.Item, error) {
	items = slices.Clone(items)
	in := &inliner{b: b, ctx: ctx}
	for i, it := range items {
		in.where, in.changed = fmt.Sprintf("%s[%d]", where, i), false
		v, err := it.Decode()
		if err != nil {
			continue // it names nothing that is known
		}
		switch v := v.(type) {
		case *item.Message:
			v.Content, err = in.content(v.Content, "content")
		case *item.FunctionCallOutput:
			v.Output, err = in.content(v.Output, "output")
		case *item.CustomToolCallOutput:
			v.Output, err = in.content(v.Output, "output")
		}
		if err == nil && in.changed {
			items[i], err = item.New(v)
		}
		if err != nil {
			return nil, err
		}
	}
	return items, nil
}

// inliner puts the content of files into the items of a request.
type inliner struct {
	b       *Backend
	ctx     context.Context
	where   string // the item
	changed bool   // it names a file
	size    int64  // of the files so far
}

// content returns content with that of the files that it names.
func (in *inliner) content(c item.Content, member string) (item.Content, error) {
	parts := slices.Clone(c.Parts)
	for i, p := range parts {
		param := fmt.Sprintf("%s.%s[%d].file_id", in.where, member, i)
		switch p := p.(type) {
		case *item.InputImage:
			if p.FileID == "" {
				continue
			}
			_, data, err := in.data(p.FileID, param)
			if err != nil {
				return c, err
			}
			with := *p
			with.FileID, with.ImageURL, with.Extra = "", data, slices.Clone(p.Extra)
			with.Extra.Delete("image_url") // a null
			parts[i] = &with
		case *item.InputFile:
			if p.FileID == "" {
				continue
			}
			f, data, err := in.data(p.FileID, param)
			if err != nil {
				return c, err
			}
			with := *p
			with.FileID, with.FileData, with.Filename, with.Extra = "", data, cmp.Or(p.Filename, f.Name), slices.Clone(p.Extra)
			with.Extra.Delete("file_data") // a null
			with.Extra.Delete("filename")
			parts[i] = &with
		}
	}
	if in.changed {
		c.Parts = parts
	}
	return c, nil
}

// data returns a file, and its content as a data URL. param is where it is named.
func (in *inliner) data(id, param string) (f server.File, data string, err error) {
	b, ctx := in.b, in.ctx
	f, err = b.File(ctx, id)
	if errors.Is(err, server.ErrNotFound) {
		return f, "", server.Invalid("invalid_value", param, "File with id '%s' not found.", id)
	}
	if err != nil {
		return f, "", err
	}
	if in.size += f.Bytes; in.size > maxInline {
		return f, "", server.Invalid("invalid_value", param, "The files that the request names have more than %d bytes together.", maxInline)
	}
	in.changed = true
	if err := server.Hold(ctx, int64(base64.StdEncoding.EncodedLen(int(f.Bytes)))); err != nil {
		return f, "", err
	}
	content, err := b.OpenFile(ctx, id)
	if err != nil {
		return f, "", err
	}
	whole, err := io.ReadAll(content)
	if err = errors.Join(err, content.Close()); err != nil {
		return f, "", err
	}
	kind := http.DetectContentType(whole)
	if strings.HasPrefix(kind, "text/") || kind == "application/octet-stream" {
		kind = cmp.Or(mime.TypeByExtension(path.Ext(f.Name)), kind)
	}
	kind, _, _ = strings.Cut(kind, ";")
	return f, "data:" + kind + ";base64," + base64.StdEncoding.EncodeToString(whole), nil
}

var _ server.Filer = (*Backend)(nil)
