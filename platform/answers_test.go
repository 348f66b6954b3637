// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package platform_test

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/antiphon-go/antiphon/agenttest"
	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/platform"
)

// answering returns a client of a server with one answer.
func answering(t *testing.T, body string) *platform.Client {
	t.Helper()
	return of(agenttest.NewServer(t, agenttest.Raw(200, "application/json", body)))
}

// wantRefused fails the test unless the request was refused because of a parameter.
func wantRefused(t *testing.T, err error, param, problem string) {
	t.Helper()
	e, ok := errors.AsType[*endpoint.RefusedError](err)
	if !ok || e.Param != param || !strings.Contains(e.Problem, problem) {
		t.Errorf("got %v, want a refusal of %s: %s", err, param, problem)
	}
}

// A media type, which is often another person's word, adds no header and no content.
func TestMediaTypes(t *testing.T) {
	for _, kind := range []string{"text/plain\r\nX-Evil: 1\r\n\r\nfirst", "text/plain\n", "a\x00/b", "text", "text/", "a b/c", "text/plain; a=\"\r\n\"", "text/plain;;=", "\x7f/x"} {
		s := text("a.txt", "hello")
		s.Type = kind
		_, err := of(agenttest.NewServer(t)).Upload(t.Context(), &platform.Upload{Source: s})
		wantRefused(t, err, "file", "media type")
		_, err = of(agenttest.NewServer(t)).EditImages(t.Context(), &platform.ImageEdit{ImageRequest: platform.ImageRequest{Prompt: "p"}, Images: []platform.Source{s}})
		wantRefused(t, err, "image", "media type")
	}
	for _, kind := range []string{"", "text/plain", "Text/Plain; charset=utf-8", "application/vnd.openxmlformats-officedocument.wordprocessingml.document", `text/csv; header="present"`} {
		s := text("a.txt", "hello")
		s.Type = kind
		must[*platform.File](t)(answering(t, `{"id":"f"}`).Upload(t.Context(), &platform.Upload{Source: s}))
	}
}

// Only a file that is reported to be completed is processed: a state that is not known
// is an error, and so is none.
func TestUnknownStates(t *testing.T) {
	for _, state := range []string{``, `,"status":"queued"`, `,"status":null`, `,"status":""`, `,"status":"Completed"`} {
		f, err := answering(t, `{"id":"f"`+state+`}`).WaitStoreFile(t.Context(), "s", "f")
		if wantClass(t, err, endpoint.Protocol); f == nil || f.ID != "f" {
			t.Errorf("%s: no file", state)
		}
		b, err := answering(t, `{"id":"b","file_counts":{"completed":1,"total":1}`+state+`}`).WaitFileBatch(t.Context(), "s", "b")
		if wantClass(t, err, endpoint.Protocol); b == nil || b.ID != "b" {
			t.Errorf("%s: no batch", state)
		}
	}
}

// A result that does not say whether the content is harmful is no judgement.
func TestModerationWithoutVerdict(t *testing.T) {
	for _, results := range []string{`{}`, `{"categories":{"violence":true}}`, `{"flagged":null}`, `{"flagged":"no"}`, `{"flagged":false},{}`} {
		v, err := answering(t, `{"results":[`+results+`]}`).Moderate(t.Context(), &platform.ModerationRequest{Texts: []string{"a"}})
		if wantClass(t, err, endpoint.Protocol); v != nil {
			t.Errorf("%s: %+v", results, v)
		}
	}
	must[*platform.Moderations](t)(answering(t, `{"results":[{"flagged":false}]}`).Moderate(t.Context(), &platform.ModerationRequest{Texts: []string{"a"}}))
}

// What is not the whole content, as it is stored, is not handed over.
func TestPartialContent(t *testing.T) {
	for name, tt := range map[string]struct {
		reply agenttest.Reply
		says  string
	}{
		"a part":    {agenttest.Raw(206, "text/plain", "hello").WithHeader("Content-Range", "bytes 0-4/100"), "bytes 0-4/100"},
		"not yet":   {agenttest.Raw(202, "text/plain", "later"), "202"},
		"none":      {agenttest.Raw(204, "", ""), "204"},
		"encoded":   {agenttest.Raw(200, "text/plain", "\x0b\x02\x80").WithHeader("Content-Encoding", "br"), "br"},
		"zstd":      {agenttest.Raw(200, "text/plain", "x").WithHeader("Content-Encoding", "zstd"), "zstd"},
		"one range": {agenttest.Raw(200, "text/plain", "hello").WithHeader("Content-Range", "bytes 5-9/100"), "bytes 5-9/100"},
	} {
		t.Run(name, func(t *testing.T) {
			v, err := of(agenttest.NewServer(t, tt.reply)).FileContent(t.Context(), "f", 0)
			if wantClass(t, err, endpoint.Protocol); v != nil || !strings.Contains(err.Error(), tt.says) {
				t.Error(err)
			}
		})
	}
	v := must[*platform.Content](t)(of(agenttest.NewServer(t, agenttest.Raw(200, "text/plain", "hello").WithHeader("Content-Encoding", "identity"))).FileContent(t.Context(), "f", 0))
	if b, err := io.ReadAll(v); err != nil || string(b) != "hello" {
		t.Errorf("%q %v", b, err)
	}
	_ = v.Close()
}

// The hint for an object that does not exist is about its id, not about a model.
func TestHintsForWhatIsMissing(t *testing.T) {
	c, ctx := agenttest.StartPlatform(t, nil), t.Context()
	for name, err := range map[string]error{
		"file": second(c.RetrieveFile(ctx, "file-1")), "deletion": c.DeleteFile(ctx, "file-1"), "content": second(c.FileContent(ctx, "file-1", 0)),
		"store": second(c.RetrieveStore(ctx, "vs-1")), "batch": second(c.RetrieveFileBatch(ctx, "vs-1", "b")), "list": last(c.StoreFiles(ctx, "vs-1", nil)),
		"attached": second(c.AttachFile(ctx, "vs-1", &platform.AttachRequest{FileID: "file-1"})), "in a request": second(c.CreateStore(ctx, &platform.StoreRequest{FileIDs: []string{"file-1"}})),
	} {
		if e := wantClass(t, err, endpoint.NotFound); strings.Contains(e.Hint, "model") || !strings.Contains(e.Hint, "id") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := c.RetrieveModel(ctx, "other"); !strings.Contains(err.Error(), "check the model's name") {
		t.Error(err)
	}
	_, err := of(agenttest.NewServer(t, agenttest.Failure(404, "not_found", "no"))).Embed(ctx, &platform.EmbedRequest{Model: "m", Input: []string{"a"}})
	if e := wantClass(t, err, endpoint.NotFound); !strings.Contains(e.Hint, "check the model's name") || strings.Contains(e.Hint, "Responses") {
		t.Error(err)
	}
}

// G8: options and members that would be ignored are refused, and say why.
func TestIgnoredMembers(t *testing.T) {
	c, ctx := of(agenttest.NewServer(t)), t.Context() // fails the test if asked
	status, purpose := &platform.ListOptions{Status: "failed"}, &platform.ListOptions{Purpose: "batch"}
	for name, tt := range map[string]struct {
		err   error
		param string
	}{
		"status of files":         {last(c.Files(ctx, status)), "filter"},
		"status of stores":        {last(c.Stores(ctx, status)), "filter"},
		"purpose of stores":       {last(c.Stores(ctx, purpose)), "purpose"},
		"purpose in a store":      {last(c.StoreFiles(ctx, "s", purpose)), "purpose"},
		"purpose in a batch":      {last(c.FileBatchFiles(ctx, "s", "b", purpose)), "purpose"},
		"negative limit":          {last(c.Files(ctx, &platform.ListOptions{Limit: -1})), "limit"},
		"partial images":          {second(c.GenerateImages(ctx, &platform.ImageRequest{Prompt: "p", PartialImages: 1})), "partial_images"},
		"partial images of edits": {second(c.EditImages(ctx, &platform.ImageEdit{ImageRequest: platform.ImageRequest{Prompt: "p", PartialImages: 1}, Images: []platform.Source{text("a.png", "a")}})), "partial_images"},
		"minus one image":         {second(c.GenerateImages(ctx, &platform.ImageRequest{Prompt: "p", N: -1})), "n"},
		"minus one edit":          {second(c.EditImages(ctx, &platform.ImageEdit{ImageRequest: platform.ImageRequest{Prompt: "p", N: -1}, Images: []platform.Source{text("a.png", "a")}})), "n"},
		"minus one, streamed":     {last(c.StreamImages(ctx, &platform.ImageRequest{Prompt: "p", N: -1})), "n"},
		"no file":                 {second(c.AttachFile(ctx, "s", &platform.AttachRequest{})), "file_id"},
		"no files":                {second(c.CreateFileBatch(ctx, "s", &platform.FileBatchRequest{})), "file_ids"},
		"an empty id":             {second(c.CreateFileBatch(ctx, "s", &platform.FileBatchRequest{FileIDs: []string{"a", " "}})), "file_ids"},
		"an empty file":           {second(c.CreateFileBatch(ctx, "s", &platform.FileBatchRequest{Files: []platform.AttachRequest{{}}})), "files"},
	} {
		if wantRefused(t, tt.err, tt.param, ""); t.Failed() {
			t.Fatal(name)
		}
	}
}

// A value that holds nothing says what it is.
func TestEmptyValues(t *testing.T) {
	if _, err := (*platform.Content)(nil).Read(make([]byte, 1)); err == nil || strings.Contains(err.Error(), "*Client or the request") {
		t.Error(err)
	}
	for _, data := range []string{"%%", "AAA", "AAAA%", "AAAA===="} {
		r := must[io.Reader](t)((&platform.Image{Base64: data}).Reader())
		if _, err := io.ReadAll(r); err == nil || !strings.Contains(err.Error(), "not whole base64") {
			t.Errorf("%s: %v", data, err)
		}
	}
}
