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
