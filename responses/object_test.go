// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package responses_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/internal/apispec"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/responses"
)

// asked is a request as a store got it.
type asked struct {
	line  string // method and path, escaped
	query url.Values
	body  string
	keyed bool
}

// store is a server with a client, and what it was asked.
type store struct {
	*responses.Client
	mu    sync.Mutex
	asked []asked
}

func (s *store) all() []asked {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked
}

// newStore serves what answer gives for request n: a body, which is JSON, and a
// status, where below 100 means that the connection is broken instead.
func newStore(t testing.TB, answer func(n int, r asked) (status int, body string)) *store {
	s := &store{}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got := asked{r.Method + " " + r.URL.EscapedPath(), r.URL.Query(), string(body), r.Header.Get("Authorization") != ""}
		s.mu.Lock()
		n := len(s.asked)
		s.asked = append(s.asked, got)
		s.mu.Unlock()
		status, text := answer(n, got)
		if status < 100 {
			panic(http.ErrAbortHandler)
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, text)
	}))
	srv.Config.ErrorLog = nil
	t.Cleanup(func() { srv.Client().CloseIdleConnections(); srv.Close() })
	s.Client = &responses.Client{
		BaseURL: srv.URL + "/v1", Key: endpoint.NewKey("sk-secret"), HTTP: srv.Client(),
		Retry: endpoint.Retry{Sleep: func(ctx context.Context, _ time.Duration) error { return ctx.Err() }},
	}
	return s
}

// answers is a store that gives one body, with status 200.
func answers(t testing.TB, body string) *store {
	return newStore(t, func(int, asked) (int, string) { return 200, body })
}

const (
	wholeResponse = `{"id":"resp_1","object":"response","status":"completed","output":[{"type":"message","id":"msg_1","role":"assistant","status":"completed","content":[{"type":"output_text","text":"hi","annotations":[]}]}]}`
	notFound      = `{"error":{"message":"Response with id 'resp_1' not found.","type":"invalid_request_error","param":"id","code":null}}`
)

// calls are all methods that ask for something by its id, with the path that
// each is for.
var calls = []struct {
	line string
	body string
	call func(ctx context.Context, c *responses.Client, id string) error
}{
	{"GET /v1/responses/ID", wholeResponse, func(ctx context.Context, c *responses.Client, id string) error {
		_, err := c.Retrieve(ctx, id, nil)
		return err
	}},
	{"GET /v1/responses/ID", wholeResponse, func(ctx context.Context, c *responses.Client, id string) error {
		_, err := c.Wait(ctx, id)
		return err
	}},
	{"GET /v1/responses/ID", wholeResponse, func(ctx context.Context, c *responses.Client, id string) error {
		return last(c.Follow(ctx, id, -1))
	}},
	{"POST /v1/responses/ID/cancel", wholeResponse, func(ctx context.Context, c *responses.Client, id string) error {
		_, err := c.Cancel(ctx, id)
		return err
	}},
	{"DELETE /v1/responses/ID", `{"id":"resp_1","object":"response.deleted","deleted":true}`, func(ctx context.Context, c *responses.Client, id string) error {
		return c.Delete(ctx, id)
	}},
	{"GET /v1/responses/ID/input_items", `{"object":"list","data":[],"has_more":false}`, func(ctx context.Context, c *responses.Client, id string) error {
		return last(c.InputItems(ctx, id, nil))
	}},
	{"GET /v1/conversations/ID", wholeConversation, func(ctx context.Context, c *responses.Client, id string) error {
		_, err := c.RetrieveConversation(ctx, id)
		return err
	}},
	{"POST /v1/conversations/ID", wholeConversation, func(ctx context.Context, c *responses.Client, id string) error {
		_, err := c.UpdateConversation(ctx, id, &api.UpdateConversation{Metadata: `{"a":"b"}`})
		return err
	}},
	{"DELETE /v1/conversations/ID", `{"id":"conv_1","object":"conversation.deleted","deleted":true}`, func(ctx context.Context, c *responses.Client, id string) error {
		return c.DeleteConversation(ctx, id)
	}},
	{"GET /v1/conversations/ID/items", `{"object":"list","data":[],"has_more":false}`, func(ctx context.Context, c *responses.Client, id string) error {
		return last(c.ConversationItems(ctx, id, nil))
	}},
	{"POST /v1/conversations/ID/items", `{"object":"list","data":[],"has_more":false}`, func(ctx context.Context, c *responses.Client, id string) error {
		_, err := c.AddConversationItems(ctx, id, item.NewList(item.User("hi")))
		return err
	}},
	{"GET /v1/conversations/ID/items/ID", `{"type":"message","id":"msg_1","role":"user","content":[]}`, func(ctx context.Context, c *responses.Client, id string) error {
		_, err := c.RetrieveConversationItem(ctx, id, id)
		return err
	}},
	{"DELETE /v1/conversations/ID/items/ID", wholeConversation, func(ctx context.Context, c *responses.Client, id string) error {
		return c.DeleteConversationItem(ctx, id, id)
	}},
}

// last is the error of a sequence.
func last[T any](seq func(func(T, error) bool)) (err error) {
	for _, err = range seq {
	}
	return err
}

// An id stays in its place, whatever it is made of.
func TestIDsInPaths(t *testing.T) {
	for _, tt := range calls {
		s := answers(t, tt.body)
		for id, want := range map[string]string{
			"resp_1":       "resp_1",
			"../models":    "..%2Fmodels",
			"a?stream=1#b": "a%3Fstream=1%23b",
			"a/../../b":    "a%2F..%2F..%2Fb",
			"100%\n":       "100%25%0A",
			"ä ":           "%C3%A4%20",
			"...":          "...",
		} {
			if err := tt.call(t.Context(), s.Client, id); err != nil {
				t.Errorf("%s, id %q: %v", tt.line, id, err)
			}
			got := s.all()[len(s.all())-1]
			if want := strings.ReplaceAll(tt.line, "ID", want); got.line != want || !got.keyed {
				t.Errorf("id %q: asked %q, want %q", id, got.line, want)
			}
		}
		n := len(s.all())
		for _, id := range []string{"", " \t", ".", ".."} {
			e := wantClass(t, tt.call(t.Context(), s.Client, id), endpoint.BadRequest)
			presentable(t, e)
			if e.Op == "" || !strings.HasSuffix(e.Param, "_id") {
				t.Errorf("%s, id %q: %+v", tt.line, id, e)
			}
		}
		if len(s.all()) != n {
			t.Errorf("%s: a bad id was sent", tt.line)
		}
	}
}

// A base URL that is the address of responses has the other paths beside it.
func TestPathsBesideBase(t *testing.T) {
	for _, base := range []string{"/v1", "/v1/", "/v1/responses", "", "/x/responses/", "/responses", "/v1?api-version=2"} {
		s := answers(t, wholeConversation)
		s.BaseURL = strings.TrimSuffix(s.BaseURL, "/v1") + base
		for _, call := range []func() error{
			func() error { _, err := s.RetrieveConversation(t.Context(), "conv_1"); return err },
			func() error { return s.Delete(t.Context(), "resp_1") },
		} {
			if err := call(); err != nil {
				t.Errorf("base %q: %v", base, err)
			}
		}
		root, query, _ := strings.Cut(base, "?")
		root = strings.TrimSuffix(strings.TrimRight(root, "/"), "/responses")
		if base == "" {
			root = "/v1"
		}
		got := s.all()
		if len(got) != 2 || got[0].line != "GET "+root+"/conversations/conv_1" || got[1].line != "DELETE "+root+"/responses/resp_1" || got[0].query.Encode() != query {
			t.Errorf("base %q: asked %v", base, got)
		}
	}
}

// E2: a path that is not there is told as such, once; an object that is not
// there otherwise.
func TestMissingPath(t *testing.T) {
	answers := map[string]struct {
		status  int
		body    string
		missing bool
	}{
		"404 text":             {404, "404 page not found", true},
		"404 empty":            {404, "", true},
		"404 of a web page":    {404, "<html><title>Not here</title></html>", true},
		"404 of a framework":   {404, `{"detail":"Not Found"}`, true},
		"405":                  {405, `{"error":{"message":"Method not allowed","type":"invalid_request_error"}}`, true},
		"501":                  {501, ``, true},
		"404 of the API":       {404, notFound, false},
		"404 with another one": {404, `{"error":{"message":"gone","code":"response_not_found"}}`, false},
	}
	for name, tt := range answers {
		for _, one := range calls {
			s := newStore(t, func(int, asked) (int, string) { return tt.status, tt.body })
			err := one.call(t.Context(), s.Client, "resp_1")
			e := wantClass(t, err, endpoint.NotFound)
			presentable(t, e)
			if errors.Is(err, errors.ErrUnsupported) != tt.missing || len(s.all()) != 1 || e.Status != tt.status || e.URL == "" {
				t.Errorf("%s, %s: %d requests, %v", name, one.line, len(s.all()), err)
			}
			if tt.missing && !strings.Contains(e.Message, "this endpoint (careful) has no /") {
				t.Errorf("%s, %s: %v", name, one.line, e)
			}
		}
	}
}

// What the profile says is not there is not asked for, and told alike.
func TestMissingByProfile(t *testing.T) {
	poor := endpoint.Careful.Clone()
	poor.Name = "poor"
	poor.Stored, poor.Conversations, poor.Compact, poor.InputTokens = endpoint.No, endpoint.No, endpoint.No, endpoint.No
	s := answers(t, "")
	s.Profile = &poor
	var errs []error
	for _, one := range calls {
		errs = append(errs, one.call(t.Context(), s.Client, "resp_1"))
	}
	_, err := s.Compact(t.Context(), &api.CompactRequest{Model: "m", Input: hello().Input})
	errs = append(errs, err)
	_, err = s.CountTokens(t.Context(), hello())
	errs = append(errs, err)
	_, err = s.CreateConversation(t.Context(), nil)
	errs = append(errs, err)
	for _, err := range errs {
		e := wantClass(t, err, endpoint.NotFound)
		presentable(t, e)
		if !errors.Is(err, errors.ErrUnsupported) || e.Op == "" || e.Hint == "" || !strings.Contains(e.Error(), "(poor) has no /") {
			t.Errorf("%v", err)
		}
	}
	if len(s.all()) != 0 {
		t.Errorf("asked %v", s.all())
	}
}

// E1: what may pass is tried again, within the budget; a POST only while
// nothing of an answer came, and never what would be there twice.
func TestRetriesOfObjects(t *testing.T) {
	busy := `{"error":{"message":"busy","type":"server_error"}}`
	for _, one := range calls {
		post, adds := strings.HasPrefix(one.line, "POST"), strings.HasPrefix(one.line, "POST /v1/conversations/ID/items")
		for name, tt := range map[string]struct {
			status int
			body   string
			tries  int
		}{
			"429":   {429, `{}`, 2},
			"503":   {503, `{}`, 2},
			"500":   {500, busy, pick(adds, 1, 2)},
			"reset": {0, "", pick(adds, 1, 2)},
			"cut":   {200, one.body[:len(one.body)-1], pick(post, 1, 2)},
		} {
			s := newStore(t, func(n int, _ asked) (int, string) {
				if n == 0 {
					return tt.status, tt.body
				}
				return 200, one.body
			})
			err := one.call(t.Context(), s.Client, "resp_1")
			if n := len(s.all()); n != tt.tries || (err == nil) != (tt.tries == 2) {
				t.Errorf("%s, %s: %d requests, want %d: %v", one.line, name, n, tt.tries, err)
			}
		}
		s := newStore(t, func(int, asked) (int, string) { return 429, `{}` })
		wantClass(t, one.call(t.Context(), s.Client, "resp_1"), endpoint.RateLimit)
		if n := len(s.all()); n != 1+endpoint.DefaultRetries {
			t.Errorf("%s: %d requests", one.line, n)
		}
	}
}

func pick[T any](first bool, a, b T) T {
	if first {
		return a
	}
	return b
}

// E3: an expired key is renewed once.
func TestRefreshOfObjects(t *testing.T) {
	for _, one := range calls {
		s := newStore(t, func(n int, _ asked) (int, string) {
			if n == 0 {
				return 401, `{"error":{"message":"expired","code":"token_expired"}}`
			}
			return 200, one.body
		})
		s.Refresh = func(context.Context) (endpoint.Key, error) { return endpoint.NewKey("sk-new"), nil }
		if err := one.call(t.Context(), s.Client, "resp_1"); err != nil || len(s.all()) != 2 {
			t.Errorf("%s: %d requests, %v", one.line, len(s.all()), err)
		}
	}
}

// An answer that is not what was asked for is an error, never a value.
func TestAnswersThatAreNone(t *testing.T) {
	for _, body := range []string{`{}`, `[]`, `7`, `{"object":"list"}`, `{"error":{"message":"not today","type":"server_error"}}`, `data: {}`, "hello"} {
		for _, one := range calls {
			if strings.HasPrefix(one.line, "DELETE") && (body == `{}` || body == `{"object":"list"}`) {
				continue // the status says it
			}
			if strings.HasPrefix(one.line, "GET /v1/responses/ID") && body == "data: {}" {
				continue // events, to Follow
			}
			s := answers(t, body)
			s.Retry.Max = -1
			err := one.call(t.Context(), s.Client, "resp_1")
			var e *endpoint.Error
			if !errors.As(err, &e) {
				t.Errorf("%s, %s: %v", one.line, body, err)
				continue
			}
			presentable(t, e)
		}
	}
}

// Paths and query parameters are those of the API's document, and all of them
// are there.
func TestPathsOfDocument(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join(apispec.Shared(t, "spec"), filepath.Base(apispec.Document)))
	if err != nil {
		t.Fatal(err)
	}
	var document struct {
		Paths map[string]map[string]struct {
			Parameters []struct{ Name, In string }
		}
	}
	if err := json.Unmarshal(raw, &document, json.MatchCaseInsensitiveNames(true)); err != nil {
		t.Fatal(err)
	}
	want, id := map[string][]string{}, regexp.MustCompile(`\{[a-z_]+\}`)
	for path, methods := range document.Paths {
		for method, operation := range methods {
			names := []string{}
			for _, p := range operation.Parameters {
				if p.In == "query" {
					names = append(names, p.Name)
				}
			}
			slices.Sort(names)
			want[strings.ToUpper(method)+" /v1"+id.ReplaceAllString(path, "ID")] = names
		}
	}
	for _, line := range []string{"GET /v1/chat/completions", "POST /v1/chat/completions", "POST /v1/responses"} {
		if want[line] == nil {
			t.Errorf("the document has no %s", line)
		}
		delete(want, line)
	}
	got := map[string][]string{}
	for _, r := range everything(t) {
		names := got[r.line]
		for name := range r.query {
			names = append(names, strings.TrimSuffix(name, "[]"))
		}
		slices.Sort(names)
		got[r.line] = append([]string{}, slices.Compact(names)...)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("requests (-document +sent):\n%s", diff)
	}
}

// everything asks for all there is, with all there is to say.
func everything(t *testing.T) []asked {
	s := newStore(t, func(_ int, r asked) (int, string) {
		for _, one := range calls {
			if one.line == r.line {
				return 200, one.body
			}
		}
		return 200, "{}"
	})
	ctx, yes := t.Context(), true
	for _, one := range calls {
		_ = one.call(ctx, s.Client, "ID")
	}
	list := &responses.ListOptions{After: "a", Limit: 1, Order: responses.Descending, Include: []string{"i"}}
	_, _ = s.Retrieve(ctx, "ID", &responses.RetrieveOptions{Include: []string{"i"}, IncludeObfuscation: &yes})
	_ = last(s.Follow(ctx, "ID", 1, "i"))
	_ = last(s.InputItems(ctx, "ID", list))
	_ = last(s.ConversationItems(ctx, "ID", list))
	_, _ = s.AddConversationItems(ctx, "ID", hello().Input, "i")
	_, _ = s.RetrieveConversationItem(ctx, "ID", "ID", "i")
	_, _ = s.CreateConversation(ctx, nil)
	_, _ = s.Compact(ctx, &api.CompactRequest{Model: "m"})
	_, _ = s.CountTokens(ctx, hello())
	return s.all()
}

func TestRetrieve(t *testing.T) {
	yes := true
	for name, tt := range map[string]struct {
		options *responses.RetrieveOptions
		query   url.Values
	}{
		"none":  {nil, url.Values{}},
		"empty": {&responses.RetrieveOptions{}, url.Values{}},
		"all": {
			&responses.RetrieveOptions{Include: []string{"a", "b"}, IncludeObfuscation: &yes},
			url.Values{"include[]": {"a", "b"}, "include_obfuscation": {"true"}},
		},
	} {
		s := answers(t, wholeResponse)
		r, err := s.Retrieve(t.Context(), "resp_1", tt.options)
		if err != nil || r.ID != "resp_1" || r.Text() != "hi" {
			t.Errorf("%s: %v, %v", name, r, err)
		}
		if diff := cmp.Diff(tt.query, s.all()[0].query); diff != "" || s.all()[0].body != "" {
			t.Errorf("%s: query (-want +got):\n%s", name, diff)
		}
	}
	// A response that failed was retrieved all the same.
	s := answers(t, `{"id":"resp_1","object":"response","status":"failed","error":{"code":"server_error","message":"oh"},"output":[]}`)
	if r, err := s.Retrieve(t.Context(), "resp_1", nil); err != nil || r.Error.Code != "server_error" {
		t.Errorf("%v, %v", r, err)
	}
}

func TestDelete(t *testing.T) {
	for name, tt := range map[string]struct {
		answers []string // a status and a body
		class   endpoint.Class
	}{
		"done":               {[]string{`200{"id":"resp_1","object":"response.deleted","deleted":true}`}, ""},
		"says no more":       {[]string{`200{"id":"resp_1"}`}, ""},
		"empty":              {[]string{`200`}, ""},
		"204":                {[]string{`204`}, ""},
		"was gone":           {[]string{`404` + notFound}, endpoint.NotFound},
		"refused":            {[]string{`200{"id":"resp_1","object":"response.deleted","deleted":false}`}, endpoint.Protocol},
		"lost, then gone":    {[]string{`000`, `404` + notFound}, ""},
		"500, then gone":     {[]string{`500{}`, `404` + notFound}, ""},
		"refused, then gone": {[]string{`429{}`, `404` + notFound}, endpoint.NotFound},
	} {
		s := newStore(t, func(n int, _ asked) (int, string) {
			a := tt.answers[n]
			return int(a[0]-'0')*100 + int(a[1]-'0')*10 + int(a[2]-'0'), a[3:]
		})
		err := s.Delete(t.Context(), "resp_1")
		switch {
		case tt.class == "" && err != nil:
			t.Errorf("%s: %v", name, err)
		case tt.class != "":
			wantClass(t, err, tt.class)
		}
		if len(s.all()) != len(tt.answers) {
			t.Errorf("%s: %d requests", name, len(s.all()))
		}
	}
}

func TestCancelOfContext(t *testing.T) {
	s := answers(t, "{}")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, one := range calls {
		e := wantClass(t, one.call(ctx, s.Client, "resp_1"), endpoint.Canceled)
		if !errors.Is(e, context.Canceled) {
			t.Errorf("%s: %v", one.line, e)
		}
	}
}
