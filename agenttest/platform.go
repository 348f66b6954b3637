// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agenttest

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"hash/fnv"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unicode"

	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/platform"
)

// Platform is a server of the parts of the API that package platform has a client
// for: models, embeddings, files, vector stores, moderations and images. Files and
// stores are kept in memory. Embeddings and searches compare words, so that texts
// with common words are near each other; all images are the same small PNG. A
// request with an Idempotency-Key that was seen before gets the same answer and
// changes nothing.
//
// The zero value is ready to use. Set the fields before the first request. For
// faults, wrap it with [Wrap].
type Platform struct {
	// Models are the ids of the models; nil means one, "test-model".
	Models []string
	// Harmful reports whether a moderated text is harmful; nil means that none is.
	Harmful func(text string) bool
	// Polls is how often a file of a vector store is reported to be in progress.
	Polls int
	// Unreadable reports whether a file cannot be processed by a vector store; nil
	// means that all text in UTF-8 can.
	Unreadable func(name string, content []byte) bool
	// NoBase64 refuses embeddings as base64, as some servers do.
	NoBase64 bool

	mu       sync.Mutex
	mux      http.Handler
	n        atomic.Int64 // of the last id
	files    []*platformFile
	stores   []*platformStore
	answered map[string]*keyed
}

type platformFile struct {
	platform.File
	content []byte
}

type platformStore struct {
	platform.Store
	files   []*platformMember
	batches []*platform.FileBatch
}

// platformMember is a file in a store.
type platformMember struct {
	platform.StoreFile
	batch string
	polls int // left
	file  *platformFile
}

// StartPlatform starts a server for p, which is closed at the end of the test, and
// returns a client of it that retries and polls without delays. Nil is the zero
// value.
func StartPlatform(tb testing.TB, p *Platform) *platform.Client {
	if p == nil {
		p = new(Platform)
	}
	srv := httptest.NewServer(p)
	tb.Cleanup(srv.Close)
	return &platform.Client{
		BaseURL: srv.URL + "/v1", HTTP: srv.Client(),
		Retry: endpoint.Retry{Sleep: func(ctx context.Context, _ time.Duration) error { return ctx.Err() }},
	}
}

// ServeHTTP implements [http.Handler]. Paths begin with /v1. A slow client delays no
// other.
func (p *Platform) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		refuse(w, http.StatusBadRequest, "invalid_value", "", err.Error())
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	handler, before := p.prepared(r.Header.Get("Idempotency-Key"))
	if before == nil {
		handler.ServeHTTP(w, r)
		return
	}
	pass(w, before.answer(handler, r))
}

// prepared returns the handler of all requests, and what is known of a request with a
// key, or nil without a key.
func (p *Platform) prepared(key string) (http.Handler, *keyed) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mux == nil {
		p.mux, p.answered = p.routes(), map[string]*keyed{}
	}
	if key == "" {
		return p.mux, nil
	}
	if p.answered[key] == nil {
		p.answered[key] = new(keyed)
	}
	return p.mux, p.answered[key]
}

// keyed is a request with an Idempotency-Key.
type keyed struct {
	mu   sync.Mutex // held while the request is handled, and not while the answer is sent
	done *httptest.ResponseRecorder
}

// answer returns the answer to a request: the one that it got before, unless that was an
// error.
func (k *keyed) answer(handler http.Handler, r *http.Request) *httptest.ResponseRecorder {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.done != nil {
		return k.done
	}
	answer := httptest.NewRecorder()
	if handler.ServeHTTP(answer, r); answer.Code < 300 {
		k.done = answer
	}
	return answer
}

// pass sends an answer. It only reads it.
func pass(w http.ResponseWriter, answer *httptest.ResponseRecorder) {
	for name, values := range answer.Header() {
		w.Header()[name] = values
	}
	w.WriteHeader(answer.Code)
	_, _ = w.Write(answer.Body.Bytes()) // a disconnected client is not an error here
}

// alone returns a handler that holds the lock while it handles a request, and not while
// the answer is sent.
func (p *Platform) alone(handle func(http.ResponseWriter, *http.Request)) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, r *http.Request) {
		answer := httptest.NewRecorder()
		func() {
			p.mu.Lock()
			defer p.mu.Unlock()
			handle(answer, r)
		}()
		pass(w, answer)
	}
}

func (p *Platform) routes() http.Handler {
	mux := http.NewServeMux()
	for pattern, handle := range map[string]func(http.ResponseWriter, *http.Request){
		"GET /models":             p.listModels,
		"GET /models/{id...}":     p.model,
		"DELETE /models/{id...}":  p.model,
		"GET /files":              p.listFiles,
		"POST /files":             p.upload,
		"GET /files/{id}":         p.withFile(func(w http.ResponseWriter, f *platformFile) { answer(w, &f.File) }),
		"GET /files/{id}/content": p.withFile(func(w http.ResponseWriter, f *platformFile) { _, _ = w.Write(f.content) }),
		"DELETE /files/{id}":      p.withFile(p.deleteFile),

		"GET /vector_stores":              p.listStores,
		"POST /vector_stores":             p.createStore,
		"GET /vector_stores/{id}":         p.withStore(func(w http.ResponseWriter, _ *http.Request, s *platformStore) { answer(w, s.now()) }),
		"POST /vector_stores/{id}":        p.withStore(updateStore),
		"DELETE /vector_stores/{id}":      p.withStore(p.deleteStore),
		"POST /vector_stores/{id}/search": p.withStore(p.search),
		"GET /vector_stores/{id}/files":   p.withStore(listMembers),
		"POST /vector_stores/{id}/files":  p.withStore(p.attach),

		"GET /vector_stores/{id}/files/{file}":         p.withMember(func(w http.ResponseWriter, _ *http.Request, _ *platformStore, m *platformMember) { answer(w, m.poll()) }),
		"POST /vector_stores/{id}/files/{file}":        p.withMember(updateMember),
		"DELETE /vector_stores/{id}/files/{file}":      p.withMember(detach),
		"GET /vector_stores/{id}/files/{file}/content": p.withMember(memberContent),

		"POST /vector_stores/{id}/file_batches":                p.withStore(p.createBatch),
		"GET /vector_stores/{id}/file_batches/{batch}":         p.withStore(getBatch),
		"POST /vector_stores/{id}/file_batches/{batch}/cancel": p.withStore(getBatch),
		"GET /vector_stores/{id}/file_batches/{batch}/files":   p.withStore(listMembers),
	} {
		method, path, _ := strings.Cut(pattern, " ")
		mux.HandleFunc(method+" /v1"+path, p.alone(handle))
	}
	// These change nothing. Images are streamed, and Harmful may ask this server.
	mux.HandleFunc("POST /v1/embeddings", p.embed)
	mux.HandleFunc("POST /v1/moderations", p.moderate)
	mux.HandleFunc("POST /v1/images/{what}", p.image)
	return mux
}

// answer writes a value as JSON.
func answer(w http.ResponseWriter, v interface{ MarshalJSON() ([]byte, error) }) {
	b, err := v.MarshalJSON()
	if err != nil {
		refuse(w, http.StatusInternalServerError, "server_error", "", err.Error())
		return
	}
	w.Header().Set("Content-Type", typeJSON)
	_, _ = w.Write(b)
}

// refuse writes an error of the API.
func refuse(w http.ResponseWriter, status int, code, param, message string) {
	kind := "invalid_request_error"
	if status >= http.StatusInternalServerError {
		kind = "server_error"
	}
	w.Header().Set("Content-Type", typeJSON)
	w.WriteHeader(status)
	fmt.Fprint(w, object("error", item.JSON(object("message", message, "type", kind, "param", param, "code", code))))
}

func notFound(w http.ResponseWriter, what, id string) {
	refuse(w, http.StatusNotFound, "not_found", "", fmt.Sprintf("No such %s: '%s'", what, id))
}

// receive reads a request's body.
func receive(w http.ResponseWriter, r *http.Request, v interface{ UnmarshalJSON([]byte) error }) bool {
	text, err := io.ReadAll(r.Body)
	if err == nil {
		err = v.UnmarshalJSON(text)
	}
	if err != nil {
		refuse(w, http.StatusBadRequest, "invalid_json", "", err.Error())
	}
	return err == nil
}

func deleted(w http.ResponseWriter, id, kind string) {
	answer(w, item.JSON(object("id", id, "object", kind, "deleted", true)))
}

// page writes a page of a list, as the query asks.
func page[T interface{ MarshalJSON() ([]byte, error) }](w http.ResponseWriter, r *http.Request, all []T, id func(T) string) {
	all = slices.Clone(all)
	q := r.URL.Query()
	if q.Get("order") != "asc" {
		slices.Reverse(all) // the newest first
	}
	if after := q.Get("after"); after != "" {
		i := slices.IndexFunc(all, func(v T) bool { return id(v) == after })
		if i < 0 {
			refuse(w, http.StatusBadRequest, "invalid_value", "after", "No such object: '"+after+"'")
			return
		}
		all = all[i+1:]
	}
	limit := 20
	if text := q.Get("limit"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			refuse(w, http.StatusBadRequest, "invalid_value", "limit", "limit must be at least 1")
			return
		}
		limit = n
	}
	more := len(all) > limit
	all = all[:min(len(all), limit)]
	texts := make([]string, len(all))
	for i, v := range all {
		b, err := v.MarshalJSON()
		if err != nil {
			refuse(w, http.StatusInternalServerError, "server_error", "", err.Error())
			return
		}
		texts[i] = string(b)
	}
	var first, last any
	if len(all) > 0 {
		first, last = id(all[0]), id(all[len(all)-1])
	}
	answer(w, item.JSON(object("object", "list", "data", item.JSON("["+strings.Join(texts, ",")+"]"), "first_id", first, "last_id", last, "has_more", more)))
}

// id returns a new id.
func (p *Platform) id(prefix string) string {
	return prefix + "-" + strconv.FormatInt(p.n.Add(1), 10)
}

// platformTime is the time of everything.
const platformTime = 1_700_000_000

func (p *Platform) models() (list []*platform.Model) {
	ids := p.Models
	if ids == nil {
		ids = []string{"test-model"}
	}
	for _, id := range ids {
		list = append(list, &platform.Model{ID: id, Created: platformTime, OwnedBy: "test"})
	}
	return list
}

func (p *Platform) listModels(w http.ResponseWriter, _ *http.Request) {
	texts := []string{}
	for _, m := range p.models() {
		texts = append(texts, object("id", m.ID, "object", "model", "created", m.Created, "owned_by", m.OwnedBy))
	}
	answer(w, item.JSON(object("object", "list", "data", item.JSON("["+strings.Join(texts, ",")+"]"))))
}

func (p *Platform) model(w http.ResponseWriter, r *http.Request) {
	for i, m := range p.models() {
		switch {
		case m.ID != r.PathValue("id"):
		case r.Method == http.MethodDelete:
			p.Models = slices.Delete(p.modelIDs(), i, i+1)
			deleted(w, m.ID, "model")
			return
		default:
			answer(w, m)
			return
		}
	}
	refuse(w, http.StatusNotFound, "model_not_found", "model", "The model '"+r.PathValue("id")+"' does not exist")
}

func (p *Platform) modelIDs() []string {
	ids := []string{}
	for _, m := range p.models() {
		ids = append(ids, m.ID)
	}
	return ids
}

// defaultDimensions is the length of vectors.
const defaultDimensions = 256

// wordVector returns a vector of length 1 that has a direction for each word.
func wordVector(text string, dimensions int) []float32 {
	v := make([]float32, dimensions)
	var sum float64
	for _, word := range strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
		h := fnv.New32a()
		_, _ = h.Write([]byte(word))
		v[h.Sum32()%uint32(dimensions)]++
	}
	for _, f := range v {
		sum += float64(f) * float64(f)
	}
	if sum > 0 {
		for i := range v {
			v[i] /= float32(math.Sqrt(sum))
		}
	}
	return v
}

func (p *Platform) embed(w http.ResponseWriter, r *http.Request) {
	var req platform.EmbedRequest
	if !receive(w, r, &req) {
		return
	}
	texts := req.Input
	for _, tokens := range req.Tokens {
		texts = append(texts, fmt.Sprint(tokens))
	}
	switch {
	case req.Model == "":
		refuse(w, http.StatusBadRequest, "missing_required_parameter", "model", "you must provide a model parameter")
		return
	case len(texts) == 0:
		refuse(w, http.StatusBadRequest, "missing_required_parameter", "input", "there is no input")
		return
	case p.NoBase64 && !req.Floats:
		refuse(w, http.StatusBadRequest, "unsupported_value", "encoding_format", "only float is supported")
		return
	}
	data, count := []string{}, 0
	for i, text := range texts {
		one := platform.Embedding{Index: int64(i), Vector: wordVector(text, int(cmp.Or(req.Dimensions, defaultDimensions))), Base64: !req.Floats}
		b, err := one.MarshalJSON()
		if err != nil {
			refuse(w, http.StatusInternalServerError, "server_error", "", err.Error())
			return
		}
		data = append(data, string(b))
		count += len(words(text))
	}
	answer(w, item.JSON(object("object", "list", "data", item.JSON("["+strings.Join(data, ",")+"]"), "model", req.Model,
		"usage", item.JSON(object("prompt_tokens", count, "total_tokens", count)))))
}

// moderationCategories are those of the API.
var moderationCategories = []string{
	"harassment", "harassment/threatening", "hate", "hate/threatening", "illicit", "illicit/violent", "self-harm",
	"self-harm/instructions", "self-harm/intent", "sexual", "sexual/minors", "violence", "violence/graphic",
}

func (p *Platform) moderate(w http.ResponseWriter, r *http.Request) {
	var req platform.ModerationRequest
	if !receive(w, r, &req) {
		return
	}
	texts := req.Texts
	if input, ok := req.Extra.Get("input"); ok {
		texts = []string{string(input)}
	}
	results := []string{}
	for _, text := range texts {
		harmful := p.Harmful != nil && p.Harmful(text)
		var flags, scores, kinds []any
		for _, name := range moderationCategories {
			is := harmful && name == "violence"
			score := 0.01
			if is {
				score = 0.99
			}
			flags, scores, kinds = append(flags, name, is), append(scores, name, score), append(kinds, name, item.JSON(`["text"]`))
		}
		results = append(results, object("flagged", harmful, "categories", item.JSON(object(flags...)),
			"category_scores", item.JSON(object(scores...)), "category_applied_input_types", item.JSON(object(kinds...))))
	}
	answer(w, item.JSON(object("id", p.id("modr"), "model", cmp.Or(req.Model, "test-moderation"), "results", item.JSON("["+strings.Join(results, ",")+"]"))))
}

// smallPNG is an image of one pixel.
const smallPNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="

func (p *Platform) image(w http.ResponseWriter, r *http.Request) {
	var n, partial int
	var prompt, stream string
	event := "image_generation"
	switch r.PathValue("what") {
	case "generations":
		var req platform.ImageRequest
		if !receive(w, r, &req) {
			return
		}
		s, _ := req.Extra.Get("stream")
		n, partial, prompt, stream = int(req.N), int(req.PartialImages), req.Prompt, string(s)
	case "edits":
		event = "image_edit"
		if err := r.ParseMultipartForm(32 << 20); err != nil {
			refuse(w, http.StatusBadRequest, "invalid_value", "image", err.Error())
			return
		}
		if len(r.MultipartForm.File["image"])+len(r.MultipartForm.File["image[]"]) == 0 {
			refuse(w, http.StatusBadRequest, "missing_required_parameter", "image", "there is no image")
			return
		}
		n, _ = strconv.Atoi(r.FormValue("n"))
		partial, _ = strconv.Atoi(r.FormValue("partial_images"))
		prompt, stream = r.FormValue("prompt"), r.FormValue("stream")
	default:
		notFound(w, "path", r.URL.Path)
		return
	}
	if prompt == "" {
		refuse(w, http.StatusBadRequest, "missing_required_parameter", "prompt", "there is no prompt")
		return
	}
	usage := item.JSON(object("total_tokens", 30, "input_tokens", 10, "output_tokens", 20, "input_tokens_details", item.JSON(`{"text_tokens":10,"image_tokens":0}`)))
	about := []any{"created_at", platformTime, "size", "1024x1024", "quality", "low", "background", "opaque", "output_format", "png"}
	if stream == "true" {
		events := newEvents(w)
		for range max(n, 1) {
			for i := range partial {
				events.data(object(append([]any{"type", event + ".partial_image", "b64_json", smallPNG, "partial_image_index", i}, about...)...))
			}
			events.data(object(append([]any{"type", event + ".completed", "b64_json", smallPNG, "usage", usage}, about...)...))
		}
		return
	}
	data := make([]string, max(n, 1))
	for i := range data {
		data[i] = object("b64_json", smallPNG)
	}
	answer(w, item.JSON(object("created", platformTime, "data", item.JSON("["+strings.Join(data, ",")+"]"), "usage", usage)))
}

// purposes are those of files that can be uploaded.
var purposes = []string{
	platform.PurposeUserData, platform.PurposeAssistants, platform.PurposeVision, platform.PurposeBatch, platform.PurposeFineTune, platform.PurposeEvals,
}

func (p *Platform) upload(w http.ResponseWriter, r *http.Request) {
	parts, err := r.MultipartReader()
	if err != nil {
		refuse(w, http.StatusBadRequest, "invalid_value", "file", err.Error())
		return
	}
	f := &platformFile{File: platform.File{CreatedAt: platformTime, Status: "processed"}}
	found := false
	for {
		part, err := parts.NextPart()
		if err == io.EOF {
			break
		}
		var content []byte
		if err == nil {
			content, err = io.ReadAll(part)
		}
		if err != nil {
			refuse(w, http.StatusBadRequest, "invalid_value", "file", err.Error())
			return
		}
		switch part.FormName() {
		case "file":
			f.content, f.Bytes, f.Filename, found = content, int64(len(content)), part.FileName(), true
		case "purpose":
			f.Purpose = string(content)
		case "expires_after[seconds]":
			seconds, _ := strconv.ParseInt(string(content), 10, 64)
			f.ExpiresAt = platformTime + seconds
		}
	}
	switch {
	case !found || f.Purpose == "":
		refuse(w, http.StatusBadRequest, "missing_required_parameter", "file", "a file and a purpose are required")
		return
	case !slices.Contains(purposes, f.Purpose):
		refuse(w, http.StatusBadRequest, "invalid_value", "purpose", "the purpose must be one of "+strings.Join(purposes, ", "))
		return
	}
	f.ID = p.id("file")
	p.files = append(p.files, f)
	answer(w, &f.File)
}

func (p *Platform) listFiles(w http.ResponseWriter, r *http.Request) {
	purpose := r.URL.Query().Get("purpose")
	var list []*platform.File
	for _, f := range p.files {
		if purpose == "" || f.Purpose == purpose {
			list = append(list, &f.File)
		}
	}
	page(w, r, list, func(f *platform.File) string { return f.ID })
}

func (p *Platform) file(id string) *platformFile {
	if i := slices.IndexFunc(p.files, func(f *platformFile) bool { return f.ID == id }); i >= 0 {
		return p.files[i]
	}
	return nil
}

func (p *Platform) withFile(do func(http.ResponseWriter, *platformFile)) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, r *http.Request) {
		if f := p.file(r.PathValue("id")); f != nil {
			do(w, f)
			return
		}
		notFound(w, "File object", r.PathValue("id"))
	}
}

func (p *Platform) deleteFile(w http.ResponseWriter, f *platformFile) {
	p.files = slices.DeleteFunc(p.files, func(g *platformFile) bool { return g == f })
	for _, s := range p.stores {
		s.files = slices.DeleteFunc(s.files, func(m *platformMember) bool { return m.file == f })
	}
	deleted(w, f.ID, "file")
}
