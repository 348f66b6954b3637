// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package platform

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/internal/record"
	"github.com/antiphon-go/antiphon/internal/transport"
	"github.com/antiphon-go/antiphon/item"
)

// Purposes of files.
const (
	PurposeUserData   = "user_data"  // input of models, and files of vector stores
	PurposeAssistants = "assistants" // files of vector stores
	PurposeVision     = "vision"
	PurposeBatch      = "batch"
	PurposeFineTune   = "fine-tune"
	PurposeEvals      = "evals"
)

// File is a file that the endpoint stores. Schema: OpenAIFile.
type File struct {
	ID        string
	Bytes     int64
	CreatedAt int64 // Unix time in seconds
	ExpiresAt int64 // 0 means never
	Filename  string
	Purpose   string
	Status    string // "uploaded", "processed" or "error"
	Extra     item.Extra
}

func (v *File) fields(c *codec) {
	record.Keep(c, &v.Extra)
	c.Text("id", &v.ID)
	c.Member("object", "file")
	c.Number("bytes", &v.Bytes)
	c.Number("created_at", &v.CreatedAt)
	optInt(c, "expires_at", &v.ExpiresAt)
	c.Text("filename", &v.Filename)
	c.Text("purpose", &v.Purpose)
	c.OptString("status", &v.Status)
}

// MarshalJSON returns the file as JSON.
func (v *File) MarshalJSON() ([]byte, error) { return encode(v) }

// UnmarshalJSON reads the file from a copy of data.
func (v *File) UnmarshalJSON(data []byte) error { return decode(data, v) }

// Upload is a file to store at the endpoint. Schema: CreateFileRequest.
type Upload struct {
	Source
	// Purpose is what the file is for, such as [PurposeUserData], which is used if it is empty.
	Purpose string
	// ExpiresAfter is how long the endpoint keeps the file, in whole seconds. 0 means its default.
	ExpiresAfter time.Duration
	// Fields are further fields of the form.
	Fields map[string]string
}

const noFiles = "send the content with the request, as file_data"

// Upload stores a file at the endpoint: whoever has the same key can read it until it is deleted.
// It is sent while it is read.
func (c *Client) Upload(ctx context.Context, u *Upload) (*File, error) {
	if c == nil || u == nil {
		return nil, errNil
	}
	f := newForm()
	f.field("purpose", cmp.Or(u.Purpose, PurposeUserData))
	if u.ExpiresAfter != 0 {
		if u.ExpiresAfter < time.Second {
			return nil, refused("expires_after", fmt.Sprintf("%v is less than a second", u.ExpiresAfter), "give how long to keep the file")
		}
		f.field("expires_after[anchor]", "created_at")
		f.field("expires_after[seconds]", strconv.FormatInt(int64(u.ExpiresAfter/time.Second), 10))
	}
	for _, name := range slices.Sorted(maps.Keys(u.Fields)) {
		f.field(name, u.Fields[name])
	}
	f.file("file", &u.Source)
	a := place{"upload file", pathFiles, noFiles}.ask(http.MethodPost)
	a.Repeat = transport.IfKeyed
	var err error
	if a.Source, err = f.source(); err != nil {
		return nil, err
	}
	return object[File](ctx, c, a, "file", "id")
}

// Files yields the files that the endpoint stores. Options may be nil.
func (c *Client) Files(ctx context.Context, options *ListOptions) iter.Seq2[*File, error] {
	return list(ctx, c, place{"list files", pathFiles, noFiles}.ask(http.MethodGet), options, func(v *File) string { return v.ID })
}

const (
	pathFiles = "/files"
	pathFile  = "/files/{file_id}"
)

// RetrieveFile returns what the endpoint says about a file.
func (c *Client) RetrieveFile(ctx context.Context, id string) (*File, error) {
	return object[File](ctx, c, place{"retrieve file", pathFile, noFiles}.ask(http.MethodGet, id), "file", "id")
}

// DeleteFile deletes a file, also in the vector stores that hold it. A file that does not exist is
// handled as in [Client.DeleteModel].
func (c *Client) DeleteFile(ctx context.Context, id string) error {
	return c.delete(ctx, place{"delete file", pathFile, noFiles}.ask(http.MethodDelete, id))
}

// Content is the content of a stored file while it arrives. It is used by one goroutine, and must
// be closed.
type Content struct {
	// Type is the media type, as the endpoint reports it.
	Type string
	// Size is the number of bytes, or -1 if the endpoint does not report it.
	Size int64

	x           *transport.Exchange
	read, limit int64
	err         error
}

// FileContent returns the content of a file as it arrives. Limit is the number of bytes above which
// reading fails with an error of the class [endpoint.TooLarge]; 0 means no limit. The request is
// repeated until the content begins to arrive. An answer that is not the whole content as it is
// stored, such as a part of it or an encoded form, is an error.
//
// A Read that returns io.EOF has read all: a content that breaks off gives an error of the class
// [endpoint.Truncated].
func (c *Client) FileContent(ctx context.Context, id string, limit int64) (*Content, error) {
	if c == nil {
		return nil, errNil
	}
	a := place{"download file", pathFile + "/content", noFiles}.ask(http.MethodGet, id)
	a.Accept, a.Raw = "*/*", true
	x, err := c.link().Fetch(ctx, a)
	if err != nil {
		return nil, err
	}
	if problem := notWhole(x.Response); problem != "" {
		x.Close()
		return nil, x.Fail(&endpoint.Error{Class: endpoint.Protocol, Message: problem})
	}
	v := &Content{Type: x.Response.Header.Get("Content-Type"), Size: x.Response.ContentLength, x: x, limit: limit}
	if limit > 0 && v.Size > limit {
		x.Close()
		return nil, v.tooLarge()
	}
	return v, nil
}

// notWhole says why an answer is not the whole content, or returns "". An encoding that was undone
// is not in the header any more.
func notWhole(r *http.Response) string {
	encoding, part := r.Header.Get("Content-Encoding"), r.Header.Get("Content-Range")
	switch {
	case part != "":
		return fmt.Sprintf("the answer is only a part of the content: %q", part)
	case r.StatusCode != http.StatusOK:
		return fmt.Sprintf("the answer is not the content: its status is %s", r.Status)
	case encoding != "" && !strings.EqualFold(encoding, "identity"):
		return fmt.Sprintf("the content is encoded as %q, which was not asked for", encoding)
	}
	return ""
}

func (v *Content) tooLarge() error {
	return v.x.Fail(&endpoint.Error{Class: endpoint.TooLarge, Message: fmt.Sprintf("the content is larger than %d bytes", v.limit), Hint: "raise the limit"})
}

// Read implements [io.Reader].
func (v *Content) Read(p []byte) (int, error) {
	if v == nil || v.x == nil {
		return 0, errors.New("platform: there is no content; Client.FileContent returns one")
	}
	if v.err != nil || len(p) == 0 {
		return 0, v.err
	}
	n, err := v.x.Body.Read(p)
	v.read += int64(n)
	switch {
	case v.limit > 0 && v.read > v.limit:
		n -= int(v.read - v.limit)
		v.err = v.tooLarge()
	case err == io.EOF:
		v.err = io.EOF
	case err != nil:
		v.err = v.x.Broken(err)
	}
	return n, v.err
}

// Close ends the download. It may be called more than once.
func (v *Content) Close() error {
	if v == nil || v.x == nil {
		return nil
	}
	v.x.Close()
	if v.err == nil {
		v.err = errors.New("platform: the content is closed")
	}
	return nil
}
