// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"iter"
	"mime"
	"mime/multipart"
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/internal/nils"
	"github.com/antiphon-go/antiphon/item"
)

// Filer keeps files. It is the [Backend] of a server, or its [Store]. Where a request or an item of a
// conversation names one (file_id in an input_image, input_file or computer_screenshot), the server
// replaces the name by the content, so that a stored request does not change when the file is deleted.
type Filer interface {
	// AddFile keeps a file until it is deleted or expires. It returns it with an id, its size and its time.
	AddFile(ctx context.Context, f File, content []byte) (File, error)
	// File returns a file, and OpenFile its content, which the caller closes. They return
	// [ErrNotFound] if there is none with the id.
	File(ctx context.Context, id string) (File, error)
	OpenFile(ctx context.Context, id string) (io.ReadCloser, error)
	// Files yields all files, the newest first.
	Files(ctx context.Context) iter.Seq2[File, error]
	// DeleteFile removes a file, or returns [ErrNotFound].
	DeleteFile(ctx context.Context, id string) error
}

// File is a file of a [Filer].
type File struct {
	ID      string `json:"id"`
	Name    string `json:"filename"`
	Purpose string `json:"purpose"`
	Bytes   int64  `json:"bytes"`
	Created int64  `json:"created_at"`          // seconds since 1970
	Expires int64  `json:"expires_at,omitzero"` // likewise; 0 means never
}

func (f *File) object() string {
	expires := ""
	if f.Expires != 0 {
		expires = fmt.Sprintf(`,"expires_at":%d`, f.Expires)
	}
	return fmt.Sprintf(`{"id":%s,"object":"file","bytes":%d,"created_at":%d%s,"filename":%s,"purpose":%s,"status":"processed"}`,
		item.Quote(f.ID), f.Bytes, f.Created, expires, item.Quote(f.Name), item.Quote(f.Purpose))
}

const (
	// maxField bounds the fields of a form besides the file, and maxName the name of a file.
	maxField = 1 << 10
	maxName  = 255
	// maxFiles is the largest page of files.
	maxFiles = 10_000
	// The times after which a file may expire, in seconds.
	minExpiry = 60 * 60
	maxExpiry = 30 * 24 * 60 * 60
)

// filer returns what keeps the files, or nil. Of two servers beside each other, both have those of the
// first one.
func (s *Server) filer() Filer {
	if o := s.other; o != nil && o.Beside == s {
		return o.filer()
	}
	if f, ok := s.Backend.(Filer); ok && !nils.Is(f) {
		return f
	}
	f, _ := s.store().(Filer)
	return f
}

// purposes are those that a file here can have.
var purposes = []string{"user_data", "assistants", "vision"}

// addFile serves POST /files.
func (s *Server) addFile(c *call) *Error {
	u, wrong := s.readUpload(c)
	if wrong == nil {
		wrong = u.check(int64(s.now()))
	}
	if wrong != nil {
		return wrong
	}
	f, err := s.filer().AddFile(c.r.Context(), u.File, u.content)
	if err != nil {
		return s.failure(err)
	}
	return c.send(encoded(f.object()))
}

// upload is the form of a request that adds a file.
type upload struct {
	File
	content  []byte
	sent     bool   // the form has a file
	expires  string // how many seconds it is kept, as it was sent
	anchored bool   // the form says since when these count
	fields   []string
}

// readUpload reads the form of a request.
func (s *Server) readUpload(c *call) (u upload, _ *Error) {
	kind, params, err := mime.ParseMediaType(c.r.Header.Get("Content-Type"))
	if err != nil || kind != "multipart/form-data" || params["boundary"] == "" {
		return u, &Error{Status: http.StatusUnsupportedMediaType, Type: invalidRequest, Code: "unsupported_content_type", Message: "Unsupported content type: send a file as 'multipart/form-data'."}
	}
	form := multipart.NewReader(http.MaxBytesReader(c.w, c.r.Body, s.limit()), params["boundary"])
	for {
		part, err := form.NextPart()
		if errors.Is(err, io.EOF) {
			return u, nil
		}
		if err != nil {
			return u, s.unread(err)
		}
		value := func() string {
			var b []byte
			b, err = io.ReadAll(io.LimitReader(part, maxField))
			return string(b)
		}
		name := part.FormName()
		if slices.Contains(u.fields, name) { // one of the two would be lost
			return u, Invalid("invalid_value", name, "Invalid '%s': the form has it twice.", name)
		}
		u.fields = append(u.fields, name)
		switch name {
		case "file":
			u.Name, u.sent = part.FileName(), true
			u.content, err = io.ReadAll(part)
		case "purpose":
			u.Purpose = value()
		case "expires_after[seconds]":
			u.expires = value()
		case "expires_after[anchor]":
			u.anchored = true
			if at := value(); err == nil && at != "created_at" {
				return u, Invalid("invalid_value", "expires_after.anchor", "Invalid value: '%s'. The only supported value is: 'created_at'.", at)
			}
		default:
			return u, Invalid("unknown_parameter", name, "Unknown parameter: '%s'.", name)
		}
		if err != nil {
			return u, s.unread(err)
		}
	}
}

// check refuses a form that is not complete, and fills in the size and the times of the file.
func (u *upload) check(now int64) *Error {
	switch {
	case !u.sent:
		return Invalid("missing_required_parameter", "file", "Missing required parameter: 'file'.")
	case u.Purpose == "":
		return Invalid("missing_required_parameter", "purpose", "Missing required parameter: 'purpose'.")
	case !slices.Contains(purposes, u.Purpose):
		return Invalid("invalid_value", "purpose", "Invalid value: '%s'. Supported values here are: '%s'.", u.Purpose, strings.Join(purposes, "', '"))
	case u.Name == "" || len(u.Name) > maxName || !utf8.ValidString(u.Name):
		return Invalid("invalid_value", "file", "Invalid 'file': its name is missing, has more than %d bytes, or is not UTF-8.", maxName)
	case u.anchored && u.expires == "": // it would never expire
		return Invalid("missing_required_parameter", "expires_after.seconds", "Missing required parameter: 'expires_after.seconds'.")
	case len(u.content) == 0:
		return Invalid("invalid_value", "file", "Invalid 'file': it is empty.")
	}
	if u.expires != "" {
		n, err := strconv.ParseInt(u.expires, 10, 64)
		if err != nil || n < minExpiry || n > maxExpiry {
			return Invalid("invalid_value", "expires_after.seconds", "Invalid 'expires_after.seconds': expected an integer from %d to %d.", minExpiry, maxExpiry)
		}
		u.Expires = now + n
	}
	u.Bytes, u.Created = int64(len(u.content)), now
	return nil
}

// fileFailure returns the error of a [Filer] for the client.
func (s *Server) fileFailure(id string, err error) *Error {
	if errors.Is(err, ErrNotFound) {
		return notFound("File", id)
	}
	return s.failure(err)
}

// files serves GET /files.
func (s *Server) files(c *call) *Error {
	query := c.r.URL.Query()
	limit := maxFiles
	if v := query.Get("limit"); v != "" {
		n, err := strconv.Atoi(v)
		if err != nil || n < 1 || n > maxFiles {
			return Invalid("invalid_value", "limit", "Invalid 'limit': expected an integer from 1 to %d.", maxFiles)
		}
		limit = n
	}
	var list []File
	for f, err := range s.filer().Files(c.r.Context()) {
		if err != nil {
			return s.failure(err)
		}
		if purpose := query.Get("purpose"); purpose == "" || f.Purpose == purpose {
			list = append(list, f)
		}
	}
	switch order := query.Get("order"); order {
	case "", "desc":
	case "asc":
		slices.Reverse(list)
	default:
		return Invalid("invalid_value", "order", "Invalid value: '%s'. Supported values are: 'asc' and 'desc'.", order)
	}
	if after := query.Get("after"); after != "" {
		i := slices.IndexFunc(list, func(f File) bool { return f.ID == after })
		if i < 0 {
			return Invalid("", "after", "Invalid 'after': there is no file with id '%s'.", after)
		}
		list = list[i+1:]
	}
	page := list[:min(limit, len(list))]
	objects := make([]string, len(page))
	ends := "null"
	first, last := ends, ends
	for i := range page {
		objects[i] = page[i].object()
		if last = string(item.Quote(page[i].ID)); i == 0 {
			first = last
		}
	}
	return c.send(encoded(fmt.Sprintf(`{"object":"list","data":[%s],"first_id":%s,"last_id":%s,"has_more":%v}`,
		strings.Join(objects, ","), first, last, len(list) > limit)))
}

// file serves GET /files/{id}.
func (s *Server) file(c *call) *Error {
	f, err := s.filer().File(c.r.Context(), c.ids[0])
	if err != nil {
		return s.fileFailure(c.ids[0], err)
	}
	return c.send(encoded(f.object()))
}

// fileContent serves GET /files/{id}/content. A browser must not take it for a page.
func (s *Server) fileContent(c *call) *Error {
	f, err := s.filer().File(c.r.Context(), c.ids[0])
	if err != nil {
		return s.fileFailure(c.ids[0], err)
	}
	content, err := s.filer().OpenFile(c.r.Context(), f.ID)
	if err != nil {
		return s.fileFailure(f.ID, err)
	}
	defer content.Close()
	c.w.Header().Set("Content-Type", "application/octet-stream")
	c.w.Header().Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": f.Name}))
	c.w.Header().Set("X-Content-Type-Options", "nosniff")
	c.w.Header().Set("Content-Length", strconv.FormatInt(f.Bytes, 10))
	if _, err := io.Copy(c.w, content); err != nil && c.r.Context().Err() == nil {
		s.logf("antiphon server: the file %s: %v", f.ID, err) // the client sees that it is not complete
	}
	return nil
}

// deleteFile serves DELETE /files/{id}.
func (s *Server) deleteFile(c *call) *Error {
	if err := s.filer().DeleteFile(c.r.Context(), c.ids[0]); err != nil {
		return s.fileFailure(c.ids[0], err)
	}
	return c.send(&api.Deleted{ID: c.ids[0], Object: "file", Deleted: true})
}

// maxInline bounds the content of the files that a request names, and maxNamed their number.
const (
	maxInline = 64 << 20
	maxNamed  = 500
)

// mayNameFile reports whether an item may hold the id of a file.
func mayNameFile(it item.Item) bool {
	return strings.Contains(it.JSON(), "file_id") || strings.Contains(it.JSON(), `\u`)
}

// withFiles returns items with the content of the files that they name, and the size of that content.
// where is the name of the list. The memory is held until ctx is done. A name that is not found is
// an error if the backend keeps the files; others may know it.
func (s *Server) withFiles(ctx context.Context, items []item.Item, where string) (with []item.Item, held int64, _ *Error) {
	in := &inliner{ctx: ctx, from: s.filer(), named: map[string]named{}}
	if in.from == nil || !s.has(Files) {
		return items, 0, nil
	}
	_, in.all = s.Backend.(Filer)
	with = slices.Clone(items)
	for i, it := range items {
		if !mayNameFile(it) {
			continue
		}
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
		case *item.ComputerCallOutput:
			v.Output, err = in.screenshot(v.Output, in.where+".output.file_id")
		}
		if err == nil && in.changed {
			if hasHalf(it.JSON()) { // it cannot be written again as it came
				return nil, 0, half(in.where)
			}
			with[i], err = item.New(v)
		}
		if err != nil {
			return nil, 0, s.failure(err)
		}
	}
	return with, in.held, nil
}

// inliner puts the content of files into items.
type inliner struct {
	ctx     context.Context
	from    Filer
	all     bool   // a file that is not found is an error
	where   string // the item
	changed bool   // it names a file
	size    int64  // of the files so far
	held    int64  // of their content in items
	named   map[string]named
}

// named is a file that was looked for.
type named struct {
	File
	data string // its content as a data URL, once it was read
	err  error
}

// content returns content with that of the files that it names.
func (in *inliner) content(c item.Content, member string) (item.Content, error) {
	parts := slices.Clone(c.Parts)
	for i, p := range parts {
		param := fmt.Sprintf("%s.%s[%d].file_id", in.where, member, i)
		switch p := p.(type) {
		case *item.InputImage:
			data, extra, err := in.image(p.FileID, param, p.Extra)
			if err != nil {
				return c, err
			}
			if data == "" {
				continue
			}
			with := *p
			with.FileID, with.ImageURL, with.Extra = "", data, extra
			parts[i] = &with
		case *item.ComputerScreenshot:
			with, err := in.screenshot(p, param)
			if err != nil {
				return c, err
			}
			parts[i] = with
		case *item.InputFile:
			f, data, err := in.data(p.FileID, param)
			if err != nil {
				return c, err
			}
			if data == "" {
				continue
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

// screenshot returns a picture of a screen with the content of the file that it names. It may be nil.
func (in *inliner) screenshot(p *item.ComputerScreenshot, param string) (*item.ComputerScreenshot, error) {
	if p == nil {
		return p, nil
	}
	data, extra, err := in.image(p.FileID, param, p.Extra)
	if err != nil || data == "" {
		return p, err
	}
	with := *p
	with.FileID, with.ImageURL, with.Extra = "", data, extra
	return &with, nil
}

// image returns an image as a data URL, "" if there is none, and what else belongs to its part.
func (in *inliner) image(id, param string, extra item.Extra) (string, item.Extra, error) {
	_, data, err := in.data(id, param)
	if err != nil || data == "" {
		return "", extra, err
	}
	if wrong := checkImage(param, data); wrong != nil {
		return "", extra, wrong
	}
	extra = slices.Clone(extra)
	extra.Delete("image_url") // a null
	return data, extra, nil
}

// data returns a file, and its content as a data URL: "" if there is none. param is where it is named.
func (in *inliner) data(id, param string) (f File, data string, err error) {
	if id == "" {
		return f, "", nil
	}
	n, known := in.named[id]
	switch {
	case known:
	case len(in.named) >= maxNamed:
		return f, "", Invalid("invalid_value", param, "The request names more than %d files.", maxNamed)
	default:
		n.File, n.err = in.from.File(in.ctx, id)
	}
	f = n.File
	in.named[id] = n
	switch {
	case errors.Is(n.err, ErrNotFound) && in.all:
		return f, "", Invalid("invalid_value", param, "File with id '%s' not found.", id)
	case errors.Is(n.err, ErrNotFound):
		return f, "", nil
	case n.err != nil:
		return f, "", n.err
	}
	if in.size += f.Bytes; in.size > maxInline {
		return f, "", Invalid("invalid_value", param, "The files that the request names have more than %d bytes together.", maxInline)
	}
	in.changed = true
	length := int64(base64.StdEncoding.EncodedLen(int(f.Bytes)))
	if err := Hold(in.ctx, length); err != nil {
		return f, "", err
	}
	in.held += length
	if n.data == "" {
		if n.data, err = in.read(id, f.Name); err != nil {
			return f, "", err
		}
		in.named[id] = n
	}
	return f, n.data, nil
}

// read returns the content of a file as a data URL.
func (in *inliner) read(id, name string) (string, error) {
	content, err := in.from.OpenFile(in.ctx, id)
	if err != nil {
		return "", err
	}
	whole, err := io.ReadAll(content)
	if err = errors.Join(err, content.Close()); err != nil {
		return "", err
	}
	kind := http.DetectContentType(whole)
	if strings.HasPrefix(kind, "text/") || kind == "application/octet-stream" {
		kind = cmp.Or(mime.TypeByExtension(path.Ext(name)), kind)
	}
	kind, _, _ = strings.Cut(kind, ";")
	return "data:" + kind + ";base64," + base64.StdEncoding.EncodeToString(whole), nil
}
