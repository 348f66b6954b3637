// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package platform_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"mime"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/antiphon-go/antiphon/agenttest"
	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/internal/apispec"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/platform"
	"github.com/antiphon-go/antiphon/responses"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// exchange is a request and its answer.
type exchange struct {
	method, path  string
	header        http.Header
	body          []byte
	status        int
	answer        []byte
	answeredStyle string
}

// tape is a handler that keeps what goes through it.
type tape struct {
	next http.Handler
	mu   sync.Mutex
	list []exchange
}

func (tp *tape) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	r.Body = io.NopCloser(bytes.NewReader(body))
	rec := httptest.NewRecorder()
	tp.next.ServeHTTP(rec, r)
	tp.mu.Lock()
	tp.list = append(tp.list, exchange{r.Method, r.URL.Path, r.Header, body, rec.Code, rec.Body.Bytes(), rec.Header().Get("Content-Type")})
	tp.mu.Unlock()
	for name, values := range rec.Header() {
		w.Header()[name] = values
	}
	w.WriteHeader(rec.Code)
	_, _ = w.Write(rec.Body.Bytes())
}

// start serves a handler and returns a client of it, without delays.
func start(t *testing.T, h http.Handler) *platform.Client {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	return &platform.Client{
		BaseURL: srv.URL + "/v1", HTTP: srv.Client(),
		Retry: endpoint.Retry{Sleep: func(ctx context.Context, _ time.Duration) error { return ctx.Err() }},
	}
}

// of makes a client of a scripted server.
func of(srv *agenttest.Server) *platform.Client { return (*platform.Client)(srv.Client()) }

func must[T any](t *testing.T) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func all[T any](t *testing.T, seq iter.Seq2[T, error]) (list []T) {
	t.Helper()
	for v, err := range seq {
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, v)
	}
	return list
}

// wantClass fails the test unless err is an endpoint.Error of the class, fit to be shown.
func wantClass(t *testing.T, err error, class endpoint.Class) *endpoint.Error {
	t.Helper()
	var e *endpoint.Error
	if !errors.As(err, &e) || e.Class != class {
		t.Fatalf("got error %v, want class %s", err, class)
	}
	if s := err.Error(); strings.ContainsFunc(s, unicode.IsControl) || strings.Contains(s, "<nil>") || strings.HasSuffix(s, ": ") {
		t.Errorf("unfit to be shown: %q", s)
	}
	return e
}

func text(name, content string) platform.Source {
	return platform.Source{Name: name, Type: "text/plain", Content: strings.NewReader(content)}
}

// schemaOf has the schemas of requests and answers, by method and path.
var schemaOf = []struct{ pattern, request, answer string }{
	{`GET /models`, "", "ListModelsResponse"},
	{`GET /models/[^/]+`, "", "Model"},
	{`DELETE /models/[^/]+`, "", "DeleteModelResponse"},
	{`POST /embeddings`, "CreateEmbeddingRequest", "CreateEmbeddingResponse"},
	{`POST /moderations`, "CreateModerationRequest", "CreateModerationResponse"},
	{`POST /images/generations`, "CreateImageRequest", "ImagesResponse"},
	{`POST /images/edits`, "", "ImagesResponse"},
	{`POST /files`, "", "OpenAIFile"},
	{`GET /files`, "", "ListFilesResponse"},
	{`GET /files/[^/]+`, "", "OpenAIFile"},
	{`DELETE /files/[^/]+`, "", "DeleteFileResponse"},
	{`GET /vector_stores`, "", "ListVectorStoresResponse"},
	{`POST /vector_stores`, "CreateVectorStoreRequest", "VectorStoreObject"},
	{`GET /vector_stores/[^/]+`, "", "VectorStoreObject"},
	{`POST /vector_stores/[^/]+`, "UpdateVectorStoreRequest", "VectorStoreObject"},
	{`DELETE /vector_stores/[^/]+`, "", "DeleteVectorStoreResponse"},
	{`POST /vector_stores/[^/]+/search`, "VectorStoreSearchRequest", "VectorStoreSearchResultsPage"},
	{`GET /vector_stores/[^/]+/files`, "", "ListVectorStoreFilesResponse"},
	{`POST /vector_stores/[^/]+/files`, "CreateVectorStoreFileRequest", "VectorStoreFileObject"},
	{`GET /vector_stores/[^/]+/files/[^/]+`, "", "VectorStoreFileObject"},
	{`POST /vector_stores/[^/]+/files/[^/]+`, "UpdateVectorStoreFileAttributesRequest", "VectorStoreFileObject"},
	{`DELETE /vector_stores/[^/]+/files/[^/]+`, "", "DeleteVectorStoreFileResponse"},
	{`GET /vector_stores/[^/]+/files/[^/]+/content`, "", "VectorStoreFileContentResponse"},
	{`POST /vector_stores/[^/]+/file_batches`, "CreateVectorStoreFileBatchRequest", "VectorStoreFileBatchObject"},
	{`GET /vector_stores/[^/]+/file_batches/[^/]+`, "", "VectorStoreFileBatchObject"},
	{`POST /vector_stores/[^/]+/file_batches/[^/]+/cancel`, "", "VectorStoreFileBatchObject"},
	{`GET /vector_stores/[^/]+/file_batches/[^/]+/files`, "", "ListVectorStoreFilesResponse"},
}

func spec(t *testing.T) *apispec.Spec {
	t.Helper()
	doc, err := os.ReadFile("testdata/schemas.json")
	if err != nil {
		t.Fatal(err)
	}
	s, err := apispec.New(doc, apispec.Lenient)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// check holds every request and answer against the schema.
func (tp *tape) check(t *testing.T) {
	t.Helper()
	s := spec(t)
	used := map[string]bool{}
	for _, x := range tp.list {
		call := x.method + " " + strings.TrimPrefix(x.path, "/v1")
		i := slices.IndexFunc(schemaOf, func(r struct{ pattern, request, answer string }) bool {
			return regexp.MustCompile("^" + r.pattern + "$").MatchString(call)
		})
		if strings.HasSuffix(call, "/content") && !strings.Contains(call, "vector") || x.answeredStyle == "text/event-stream" {
			continue
		}
		if i < 0 {
			t.Errorf("%s is not in the table", call)
			continue
		}
		used[schemaOf[i].pattern] = true
		if x.status != http.StatusOK {
			t.Errorf("%s: %d %s", call, x.status, x.answer)
			continue
		}
		if schemaOf[i].request != "" {
			s.Check(t, schemaOf[i].request, x.body)
		}
		s.Check(t, schemaOf[i].answer, x.answer)
	}
	for _, r := range schemaOf {
		if !used[r.pattern] {
			t.Errorf("%s was not called", r.pattern)
		}
	}
}

// B6: every request that the client makes, and every answer of the stub, fits the
// schema; and what is stored comes back.
func TestEveryCall(t *testing.T) {
	tp := &tape{next: &agenttest.Platform{Models: []string{"m", "old"}, Polls: 2, Harmful: func(s string) bool { return strings.Contains(s, "bomb") }}}
	c, ctx := start(t, tp), t.Context()

	if list := all(t, c.Models(ctx)); len(list) != 2 || list[1].ID != "old" || list[0].OwnedBy != "test" {
		t.Errorf("models: %+v", list)
	}
	if m := must[*platform.Model](t)(c.RetrieveModel(ctx, "m")); m.ID != "m" || m.Created == 0 {
		t.Errorf("model: %+v", m)
	}
	if err := c.DeleteModel(ctx, "old"); err != nil {
		t.Error(err)
	}

	for _, req := range []*platform.EmbedRequest{
		{Model: "m", Input: []string{"a b", "c"}, Dimensions: 8, User: "u"},
		{Model: "m", Input: []string{"a b", "c"}, Dimensions: 8, Floats: true},
		{Model: "m", Tokens: [][]int64{{1, 2}, {3}}, Dimensions: 8},
	} {
		v := must[*platform.Embeddings](t)(c.Embed(ctx, req))
		if len(v.Vectors()) != 2 || len(v.Vectors()[0]) != 8 || v.Model != "m" || v.Usage.TotalTokens == 0 {
			t.Errorf("embeddings: %+v", v)
		}
	}

	for _, req := range []*platform.ModerationRequest{
		{Texts: []string{"how to make a bomb", "hello"}, Model: "omni"},
		{Texts: []string{"a bomb?"}, Images: []string{"https://example.com/a.png"}},
	} {
		v := must[*platform.Moderations](t)(c.Moderate(ctx, req))
		if !v.Results[0].Flagged || !slices.Equal(v.Results[0].Flags(), []string{"violence"}) || v.Results[0].Score("violence") != 0.99 || v.Results[0].Score("none") != 0 {
			t.Errorf("moderation: %+v", v)
		}
	}

	images := must[*platform.Images](t)(c.GenerateImages(ctx, &platform.ImageRequest{
		Prompt: "a cat", Model: "m", N: 2, Size: "auto", Quality: "low", Background: "auto", Format: "png", Compression: 50, As: "b64_json", Moderation: "low", Style: "vivid", User: "u",
	}))
	if r, err := images.Data[1].Reader(); err != nil || len(images.Data) != 2 || images.Usage.TotalTokens != 30 {
		t.Errorf("images: %+v %v", images, err)
	} else if png, err := io.ReadAll(r); err != nil || !bytes.HasPrefix(png, []byte("\x89PNG")) {
		t.Errorf("image: %v %q", err, png)
	}
	mask := text("mask.png", "mask")
	edited := must[*platform.Images](t)(c.EditImages(ctx, &platform.ImageEdit{
		ImageRequest: platform.ImageRequest{Prompt: "a dog", N: 1}, Images: []platform.Source{text("a.png", "one"), text("b.png", "two")}, Mask: &mask, Fidelity: "high",
	}))
	if len(edited.Data) != 1 {
		t.Errorf("edited: %+v", edited)
	}

	storeID, fileID := everyFileCall(t, c)
	tp.check(t)
	_, err := c.RetrieveFile(ctx, fileID)
	wantClass(t, err, endpoint.NotFound)
	wantClass(t, c.DeleteStore(ctx, storeID), endpoint.NotFound)
}

func everyFileCall(t *testing.T, c *platform.Client) (storeID, fileID string) {
	t.Helper()
	ctx := t.Context()
	var ids []string
	for i, words := range []string{"Tea is green.\n\nCoffee is black.", "Wine is red.", "Tea with milk is brown."} {
		f := must[*platform.File](t)(c.Upload(ctx, &platform.Upload{Source: text(fmt.Sprintf("%d.txt", i), words), ExpiresAfter: time.Hour}))
		if f.Bytes != int64(len(words)) || f.Purpose != platform.PurposeUserData || f.ExpiresAt != f.CreatedAt+3600 {
			t.Errorf("file: %+v", f)
		}
		ids = append(ids, f.ID)
	}
	if f := must[*platform.File](t)(c.RetrieveFile(ctx, ids[1])); f.Filename != "1.txt" {
		t.Errorf("file: %+v", f)
	}
	var names []string
	for _, f := range all(t, c.Files(ctx, &platform.ListOptions{Limit: 2, Order: "asc", Purpose: platform.PurposeUserData})) {
		names = append(names, f.Filename)
	}
	if !slices.Equal(names, []string{"0.txt", "1.txt", "2.txt"}) {
		t.Errorf("files: %q", names)
	}
	content := must[*platform.Content](t)(c.FileContent(ctx, ids[1], 0))
	if b, err := io.ReadAll(content); err != nil || string(b) != "Wine is red." || content.Size != 12 {
		t.Errorf("content: %q %v", b, err)
	}
	_ = content.Close()

	s := must[*platform.Store](t)(c.CreateStore(ctx, &platform.StoreRequest{
		Name: "drinks", Description: "what to drink", FileIDs: ids[:1], Chunking: platform.StaticChunks(200, 50), Metadata: `{"a":"b"}`, ExpiresAfter: &platform.Expiry{Days: 3},
	}))
	if s.Status != platform.StatusInProgress || s.FileCounts.InProgress != 1 || s.ExpiresAfter.Days != 3 {
		t.Errorf("store: %+v", s)
	}
	s = must[*platform.Store](t)(c.UpdateStore(ctx, s.ID, &platform.StoreRequest{Name: "all drinks"}))
	if s.Name != "all drinks" || s.Metadata != `{"a":"b"}` {
		t.Errorf("store: %+v", s)
	}
	if got := must[*platform.Store](t)(c.RetrieveStore(ctx, s.ID)); got.Name != "all drinks" {
		t.Errorf("store: %+v", got)
	}
	if list := all(t, c.Stores(ctx, nil)); len(list) != 1 {
		t.Errorf("stores: %+v", list)
	}
	must[*platform.StoreFile](t)(c.AttachFile(ctx, s.ID, &platform.AttachRequest{FileID: ids[1], Attributes: `{"kind":"cold","n":1,"good":true}`}))
	for _, id := range ids[:2] {
		if f := must[*platform.StoreFile](t)(c.WaitStoreFile(ctx, s.ID, id)); f.Status != platform.StatusCompleted || f.StoreID != s.ID {
			t.Errorf("file: %+v", f)
		}
	}
	kind, _ := api.Metadata(map[string]string{"kind": "hot"})
	b := must[*platform.FileBatch](t)(c.CreateFileBatch(ctx, s.ID, &platform.FileBatchRequest{FileIDs: ids[2:], Attributes: kind}))
	if b = must[*platform.FileBatch](t)(c.WaitFileBatch(ctx, s.ID, b.ID)); b.FileCounts.Completed != 1 {
		t.Errorf("batch: %+v", b)
	}
	if list := all(t, c.FileBatchFiles(ctx, s.ID, b.ID, &platform.ListOptions{Status: platform.StatusCompleted})); len(list) != 1 || list[0].ID != ids[2] {
		t.Errorf("files of the batch: %+v", list)
	}
	other := must[*platform.FileBatch](t)(c.CreateFileBatch(ctx, s.ID, &platform.FileBatchRequest{Files: []platform.AttachRequest{{FileID: ids[2], Attributes: kind}}}))
	if other = must[*platform.FileBatch](t)(c.CancelFileBatch(ctx, s.ID, other.ID)); other.Status != platform.StatusCancelled {
		t.Errorf("batch: %+v", other)
	}
	must[*platform.StoreFile](t)(c.AttachFile(ctx, s.ID, &platform.AttachRequest{FileID: ids[2], Attributes: kind}))
	must[*platform.StoreFile](t)(c.WaitStoreFile(ctx, s.ID, ids[2]))
	if list := all(t, c.StoreFiles(ctx, s.ID, &platform.ListOptions{Limit: 1})); len(list) != 3 {
		t.Errorf("files of the store: %+v", list)
	}
	for filter, want := range map[item.JSON]string{"": "0.txt", `{"type":"eq","key":"kind","value":"hot"}`: "2.txt"} {
		found := must[*platform.SearchResults](t)(c.SearchStore(ctx, s.ID, &platform.SearchRequest{Query: []string{"green tea"}, MaxResults: 5, Filter: filter, Ranking: `{"score_threshold":0.1}`, Rewrite: true}))
		if len(found.Results) == 0 || found.Results[0].Filename != want || !strings.Contains(found.Results[0].Content[0].Text, "Tea") {
			t.Errorf("search with %q: %+v", filter, found)
		}
	}
	if f := must[*platform.StoreFile](t)(c.UpdateStoreFile(ctx, s.ID, ids[0], `{"kind":"hot"}`)); f.Attributes != `{"kind":"hot"}` {
		t.Errorf("file: %+v", f)
	}
	if list, err := c.StoreFileContent(ctx, s.ID, ids[1]); err != nil || len(list) != 1 || list[0].Text != "Wine is red." {
		t.Errorf("content: %+v %v", list, err)
	}
	if err := errors.Join(c.DetachFile(ctx, s.ID, ids[0]), c.DeleteStore(ctx, s.ID), c.DeleteFile(ctx, ids[0])); err != nil {
		t.Error(err)
	}
	return s.ID, ids[0]
}

// A client of responses and one of the platform are one configuration.
func TestOneConfiguration(t *testing.T) {
	srv := agenttest.NewServer(t, agenttest.Raw(200, "application/json", `{"object":"list","data":[{"id":"m","object":"model"}]}`))
	r := srv.Client()
	r.Key = endpoint.NewKey("sk-0123456789abcdef")
	r.BaseURL += "/responses"
	c := (*platform.Client)(r)
	if list := all(t, c.Models(t.Context())); len(list) != 1 {
		t.Errorf("%+v", list)
	}
	got := srv.Requests()[0]
	if got.Path != "/v1/models" || got.Header.Get("Authorization") != "Bearer sk-0123456789abcdef" {
		t.Errorf("%s %v", got.Path, got.Header)
	}
	_ = (*responses.Client)(c)
}

// W7: members that a struct has no field for, and values that a field cannot hold,
// come back.
func TestLossless(t *testing.T) {
	for name, tt := range map[string]struct {
		v interface {
			MarshalJSON() ([]byte, error)
			UnmarshalJSON([]byte) error
		}
		texts []string
	}{
		"model":      {new(platform.Model), []string{`{"id":"m","object":"model","created":1,"owned_by":"o","x":[1,{"y":2.50}]}`, `{}`, `{"id":null,"created":"x","object":"other"}`}},
		"embed":      {new(platform.EmbedRequest), []string{`{"model":"m","input":["a"],"encoding_format":"base64","dimensions":2}`, `{"model":"m","input":["a"],"encoding_format":"float","dimensions":0}`, `{"input":[[1,2],[3]],"x":1}`, `{"input":[{"image":"u"}]}`}},
		"embeddings": {new(platform.Embeddings), []string{`{"object":"list","data":[{"object":"embedding","index":0,"embedding":[0.5,-1],"x":1},{"object":"embedding","index":1,"embedding":"AAAAPwAAgL8="}],"model":"m","usage":{"prompt_tokens":1,"total_tokens":1,"z":0}}`, `{"data":[],"usage":null}`}},
		"file":       {new(platform.File), []string{`{"id":"f","object":"file","bytes":1,"created_at":2,"expires_at":0,"filename":"n","purpose":"p","status":"","status_details":null}`, `{"id":"f","expires_at":null}`}},
		"store":      {new(platform.Store), []string{`{"id":"v","object":"vector_store","created_at":1,"name":"n","usage_bytes":0,"file_counts":{"in_progress":0,"completed":1,"failed":0,"cancelled":0,"total":1,"new":1},"status":"completed","expires_after":{"anchor":"now","days":1},"expires_at":5,"last_active_at":null,"metadata":{"a":"b"}}`, `{"id":"v","file_counts":null}`, `{}`}},
		"store file": {new(platform.StoreFile), []string{`{"id":"f","object":"vector_store.file","usage_bytes":1,"created_at":1,"vector_store_id":"v","status":"failed","last_error":{"code":"c","message":"m","x":1},"chunking_strategy":{"type":"other"},"attributes":{"n":1.0}}`, `{"last_error":null}`}},
		"batch":      {new(platform.FileBatch), []string{`{"id":"b","object":"vector_store.files_batch","created_at":1,"vector_store_id":"v","status":"new","file_counts":{"total":3}}`}},
		"search":     {new(platform.SearchRequest), []string{`{"query":"a","rewrite_query":false,"max_num_results":0}`, `{"query":["a","b"],"rewrite_query":true}`}},
		"results":    {new(platform.SearchResults), []string{`{"object":"vector_store.search_results.page","search_query":["a"],"data":[{"file_id":"f","filename":"n","score":0.50,"attributes":null,"content":[{"type":"text","text":"t","x":1}]}],"has_more":false,"next_page":null}`}},
		"moderation": {new(platform.Moderations), []string{`{"id":"i","model":"m","results":[{"flagged":true,"categories":{"new":true},"category_scores":{"new":1e-05},"x":1}]}`}},
		"judged":     {new(platform.ModerationRequest), []string{`{"input":["a"],"model":"m"}`, `{"input":[{"type":"image_url","image_url":{"url":"u"}},{"type":"text","text":"a"}]}`}},
		"image":      {new(platform.ImageRequest), []string{`{"prompt":"p","n":1,"stream":true,"frame_count":3,"partial_images":0}`}},
		"images":     {new(platform.Images), []string{`{"created":1,"data":[{"b64_json":"AA==","x":1},{"url":"u","revised_prompt":""}],"size":"s","usage":{"input_tokens":1,"output_tokens":2,"total_tokens":3,"input_tokens_details":{"text_tokens":1}},"svg_usage":{}}`, `{"created":1}`}},
		"event":      {new(platform.ImageEvent), []string{`{"type":"image_generation.partial_image","b64_json":"AA==","partial_image_index":0,"created_at":1,"size":"s","quality":"q","background":"b","output_format":"png"}`, `{"type":"new","x":1}`}},
	} {
		for _, want := range tt.texts {
			if err := tt.v.UnmarshalJSON([]byte(want)); err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			got, err := tt.v.MarshalJSON()
			if err != nil || !sameJSON(got, []byte(want)) {
				t.Errorf("%s: %v\n got %s\nwant %s", name, err, got, want)
			}
		}
		if err := tt.v.UnmarshalJSON([]byte(`{"a":`)); err == nil {
			t.Errorf("%s: half an object was read", name)
		}
		if err := tt.v.UnmarshalJSON([]byte(`[1]`)); err == nil {
			t.Errorf("%s: a list was read", name)
		}
	}
}

// G8: hand-made nonsense gets errors, and nothing is sent.
func TestNonsense(t *testing.T) {
	c := of(agenttest.NewServer(t)) // fails the test if asked
	ctx := t.Context()
	one := func(err error) []error { return []error{err} }
	for name, errs := range map[string][]error{
		"nil requests": {
			second(c.Embed(ctx, nil)), second(c.Upload(ctx, nil)), second(c.CreateStore(ctx, nil)), second(c.UpdateStore(ctx, "s", nil)), second(c.SearchStore(ctx, "s", nil)),
			second(c.AttachFile(ctx, "s", nil)), second(c.CreateFileBatch(ctx, "s", nil)), second(c.Moderate(ctx, nil)), second(c.GenerateImages(ctx, nil)), second(c.EditImages(ctx, nil)),
			last(c.StreamImages(ctx, nil)), last(c.StreamEdit(ctx, nil)),
		},
		"nil client": nilClient(ctx),
		"empty ids": {
			second(c.RetrieveModel(ctx, "")), c.DeleteModel(ctx, " "), second(c.RetrieveFile(ctx, "..")), c.DeleteFile(ctx, ""), second(c.FileContent(ctx, "", 0)),
			second(c.RetrieveStore(ctx, "")), c.DeleteStore(ctx, ""), second(c.SearchStore(ctx, "", &platform.SearchRequest{Query: []string{"a"}})), last(c.StoreFiles(ctx, "", nil)),
			second(c.WaitStoreFile(ctx, "s", "")), second(c.WaitFileBatch(ctx, "", "b")), c.DetachFile(ctx, "s", ""), second(c.CancelFileBatch(ctx, "s", "")),
		},
		"nothing in them": {
			second(c.Embed(ctx, &platform.EmbedRequest{})), second(c.SearchStore(ctx, "s", &platform.SearchRequest{})), second(c.Moderate(ctx, &platform.ModerationRequest{})),
			second(c.GenerateImages(ctx, &platform.ImageRequest{})), second(c.EditImages(ctx, &platform.ImageEdit{})),
		},
		"sources": {
			second(c.Upload(ctx, &platform.Upload{})),
			second(c.Upload(ctx, &platform.Upload{Source: platform.Source{Name: "a", Content: (*bytes.Reader)(nil)}})),
			second(c.Upload(ctx, &platform.Upload{Source: platform.Source{Content: strings.NewReader("a")}})),
			second(c.Upload(ctx, &platform.Upload{Source: platform.Source{Name: "a", Content: strings.NewReader("a"), Size: 2}})),
			second(c.Upload(ctx, &platform.Upload{Source: platform.Source{Name: "a", Content: strings.NewReader("a"), Size: -1}})),
			second(c.Upload(ctx, &platform.Upload{Source: text("a", "a"), ExpiresAfter: -time.Hour})),
			second(c.EditImages(ctx, &platform.ImageEdit{ImageRequest: platform.ImageRequest{Prompt: "p"}, Images: make([]platform.Source, 1)})),
		},
		"values": {
			second((*platform.File)(nil).MarshalJSON()), (*platform.File)(nil).UnmarshalJSON([]byte(`{}`)), second((*platform.Image)(nil).Reader()), second((&platform.Image{URL: "u"}).Reader()),
			second((&platform.StoreRequest{Metadata: "{"}).MarshalJSON()), second((&platform.Embedding{Vector: []float32{nan()}}).MarshalJSON()),
			second((*platform.Content)(nil).Read(nil)),
		},
		"values of a request": one(second(c.CreateStore(ctx, &platform.StoreRequest{Metadata: "{"}))),
	} {
		for i, err := range errs {
			if err == nil || strings.Contains(err.Error(), "%!") {
				t.Errorf("%s %d: %v", name, i, err)
			}
		}
	}
	var m *platform.Moderation
	if m.Flags() != nil || m.Score("a") != 0 || (&platform.Moderation{Categories: "x", Scores: "["}).Flags() != nil {
		t.Error("a moderation without members has flags")
	}
	if (*platform.ImageEvent)(nil).Final() || (*platform.ImageEvent)(nil).Image() != nil || (*platform.Embeddings)(nil).Vectors() != nil || (*platform.Content)(nil).Close() != nil {
		t.Error("a nil value holds something")
	}
}

func nilClient(ctx context.Context) []error {
	var c *platform.Client
	return []error{
		last(c.Models(ctx)), second(c.RetrieveModel(ctx, "m")), c.DeleteModel(ctx, "m"), second(c.Embed(ctx, &platform.EmbedRequest{})), second(c.Upload(ctx, &platform.Upload{Source: text("a", "a")})),
		last(c.Files(ctx, nil)), second(c.FileContent(ctx, "f", 0)), second(c.CreateStore(ctx, &platform.StoreRequest{})), second(c.WaitFileBatch(ctx, "s", "b")), second(c.WaitStoreFile(ctx, "s", "f")),
		second(c.Moderate(ctx, &platform.ModerationRequest{Texts: []string{"a"}})), last(c.StreamImages(ctx, &platform.ImageRequest{Prompt: "p"})),
	}
}

func second[T any](_ T, err error) error { return err }

func last[T any](seq iter.Seq2[T, error]) (err error) {
	for _, err = range seq {
		_ = err
	}
	return err
}

func nan() float32 { var zero float32; return zero / zero }

// What the endpoint does not have is said, with what to do instead.
func TestUnsupported(t *testing.T) {
	c := of(agenttest.NewServer(t, agenttest.Raw(404, "text/plain", "404 page not found"), agenttest.Raw(405, "text/plain", "")))
	_, err := c.Embed(t.Context(), &platform.EmbedRequest{Model: "m", Input: []string{"a"}})
	if e := wantClass(t, err, endpoint.NotFound); !errors.Is(err, errors.ErrUnsupported) || e.Hint == "" || !strings.Contains(err.Error(), "has no /embeddings") {
		t.Error(err)
	}
	if err := last(c.Stores(t.Context(), nil)); !errors.Is(err, errors.ErrUnsupported) {
		t.Error(err)
	}
}

// B5: a key that the server repeats is in no error.
func TestKeyStaysSecret(t *testing.T) {
	const key = "sk-0123456789abcdefghij"
	srv := agenttest.NewServer(t)
	srv.Otherwise(func(int, agenttest.Request) agenttest.Reply {
		return agenttest.Failure(400, "invalid_value", "your key is "+key).WithHeader("X-Request-Id", key)
	})
	c := of(srv)
	c.Key = endpoint.NewKey(key)
	for _, err := range []error{
		last(c.Models(t.Context())), second(c.Upload(t.Context(), &platform.Upload{Source: text("a", "a")})), second(c.FileContent(t.Context(), "f", 0)),
		last(c.StreamImages(t.Context(), &platform.ImageRequest{Prompt: "p"})), second(c.Embed(t.Context(), &platform.EmbedRequest{Input: []string{"a"}})),
	} {
		if err == nil || strings.Contains(err.Error(), key[:12]) {
			t.Error(err)
		}
	}
}

// A list follows the cursor, ends, and does not go round in circles.
func TestLists(t *testing.T) {
	page := func(more bool, last string, ids ...string) agenttest.Reply {
		data := make([]string, len(ids))
		for i, id := range ids {
			data[i] = fmt.Sprintf(`{"id":%q,"object":"file"}`, id)
		}
		return agenttest.Raw(200, "application/json", fmt.Sprintf(`{"object":"list","data":[%s],"has_more":%v,"last_id":%q}`, strings.Join(data, ","), more, last))
	}
	for name, tt := range map[string]struct {
		replies []agenttest.Reply
		want    string
		class   endpoint.Class
	}{
		"pages":          {[]agenttest.Reply{page(true, "b", "a", "b"), page(true, "", "c"), page(false, "", "d")}, "a b c d", ""},
		"repeated":       {[]agenttest.Reply{page(true, "b", "a", "b"), page(false, "c", "b", "c")}, "a b c", ""},
		"circle":         {[]agenttest.Reply{page(true, "b", "a", "b"), page(true, "b", "a", "b")}, "a b", endpoint.Protocol},
		"no cursor":      {[]agenttest.Reply{page(true, "")}, "", endpoint.Protocol},
		"null":           {[]agenttest.Reply{agenttest.Raw(200, "application/json", `{"object":"list","data":null}`)}, "", ""},
		"no list":        {[]agenttest.Reply{agenttest.Raw(200, "application/json", `{"object":"list","data":[1]}`)}, "", endpoint.Protocol},
		"another object": {[]agenttest.Reply{agenttest.Raw(200, "application/json", `{"id":"x"}`)}, "", endpoint.Protocol},
		"failing page":   {[]agenttest.Reply{page(true, "b", "a", "b"), agenttest.Failure(400, "invalid_value", "no"), page(false, "", "c")}, "a b", endpoint.BadRequest},
		"retried page":   {[]agenttest.Reply{page(true, "b", "a", "b"), agenttest.Reset(), page(false, "", "c").CutAfter(9), page(false, "", "c")}, "a b c", ""},
	} {
		t.Run(name, func(t *testing.T) {
			srv := agenttest.NewServer(t, tt.replies...)
			var got []string
			var err error
			for f, failed := range of(srv).Files(t.Context(), &platform.ListOptions{Limit: 2}) {
				if err = failed; err == nil {
					got = append(got, f.ID)
				}
			}
			if strings.Join(got, " ") != tt.want {
				t.Errorf("got %q", got)
			}
			if tt.class != "" {
				wantClass(t, err, tt.class)
			} else if err != nil {
				t.Error(err)
			}
			if reqs := srv.Requests(); len(reqs) > 1 && !strings.Contains(reqs[1].Query, "after=b") && reqs[1].Query != reqs[0].Query {
				t.Errorf("second page: %s", reqs[1].Query)
			}
		})
	}
	// Breaking off asks for no further page.
	srv := agenttest.NewServer(t, page(true, "b", "a", "b"))
	for range of(srv).Files(t.Context(), nil) {
		break
	}
}

// Multipart forms are read back as they were given.
func TestForm(t *testing.T) {
	srv := agenttest.NewServer(t, agenttest.Raw(200, "application/json", `{"id":"f"}`))
	name := "a \"quoted\"\r\nname é.txt"
	must[*platform.File](t)(of(srv).Upload(t.Context(), &platform.Upload{Source: text(name, "x\r\n--boundary\x00\xff"), Purpose: "batch", Fields: map[string]string{"b": "2", "a": "1"}}))
	r := srv.Requests()[0]
	_, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || r.Header.Get("Content-Length") == "" {
		t.Fatal(r.Header, err)
	}
	fields, file := form(t, r.Body, params["boundary"])
	if !cmp.Equal(fields, []string{"purpose=batch", "a=1", "b=2"}) || file != "x\r\n--boundary\x00\xff" {
		t.Errorf("%q %q", fields, file)
	}
}
