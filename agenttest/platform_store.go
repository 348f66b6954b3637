// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agenttest

import (
	"cmp"
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json"

	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/platform"
)

// The vector stores of a [Platform].

func (p *Platform) listStores(w http.ResponseWriter, r *http.Request) {
	list := make([]*platform.Store, len(p.stores))
	for i, s := range p.stores {
		list[i] = s.now()
	}
	page(w, r, list, func(s *platform.Store) string { return s.ID })
}

// metadataFits refuses metadata that is not an object whose values are strings.
func metadataFits(w http.ResponseWriter, metadata item.JSON) bool {
	var values map[string]string
	if metadata == "" || json.Unmarshal([]byte(metadata), &values) == nil {
		return true
	}
	refuse(w, http.StatusBadRequest, "invalid_type", "metadata", "metadata must be an object whose values are strings")
	return false
}

// now returns the store as it is.
func (s *platformStore) now() *platform.Store {
	s.FileCounts, s.UsageBytes = countFiles(s.files), 0
	for _, m := range s.files {
		s.UsageBytes += m.UsageBytes
	}
	s.Status = platform.StatusCompleted
	if s.FileCounts.InProgress > 0 {
		s.Status = platform.StatusInProgress
	}
	return &s.Store
}

func countFiles(list []*platformMember) (n platform.FileCounts) {
	for _, m := range list {
		n.Total++
		switch m.Status {
		case platform.StatusInProgress:
			n.InProgress++
		case platform.StatusCompleted:
			n.Completed++
		case platform.StatusFailed:
			n.Failed++
		case platform.StatusCancelled:
			n.Cancelled++
		}
	}
	return n
}

func (p *Platform) createStore(w http.ResponseWriter, r *http.Request) {
	var req platform.StoreRequest
	if !receive(w, r, &req) || !metadataFits(w, req.Metadata) {
		return
	}
	s := &platformStore{Store: platform.Store{
		ID: p.id("vs"), CreatedAt: platformTime, LastActiveAt: platformTime, Name: req.Name,
		Metadata: cmp.Or(req.Metadata, "{}"), ExpiresAfter: req.ExpiresAfter,
	}}
	for _, id := range req.FileIDs {
		if !p.add(w, s, &platform.AttachRequest{FileID: id, Chunking: req.Chunking}, "") {
			return
		}
	}
	p.stores = append(p.stores, s)
	answer(w, s.now())
}

func updateStore(w http.ResponseWriter, r *http.Request, s *platformStore) {
	var req platform.StoreRequest
	if !receive(w, r, &req) || !metadataFits(w, req.Metadata) {
		return
	}
	s.Name = cmp.Or(req.Name, s.Name)
	s.Metadata = cmp.Or(req.Metadata, s.Metadata)
	s.ExpiresAfter = cmp.Or(req.ExpiresAfter, s.ExpiresAfter)
	answer(w, s.now())
}

func (p *Platform) deleteStore(w http.ResponseWriter, _ *http.Request, s *platformStore) {
	p.stores = slices.DeleteFunc(p.stores, func(other *platformStore) bool { return other == s })
	deleted(w, s.ID, "vector_store.deleted")
}

func (p *Platform) withStore(do func(http.ResponseWriter, *http.Request, *platformStore)) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, r *http.Request) {
		id := r.PathValue("id")
		if i := slices.IndexFunc(p.stores, func(s *platformStore) bool { return s.ID == id }); i >= 0 {
			do(w, r, p.stores[i])
			return
		}
		notFound(w, "vector store", id)
	}
}

// add adds a file to a store.
func (p *Platform) add(w http.ResponseWriter, s *platformStore, req *platform.AttachRequest, batch string) bool {
	f := p.file(req.FileID)
	if f == nil {
		notFound(w, "File object", req.FileID)
		return false
	}
	m := &platformMember{batch: batch, polls: p.Polls, file: f, StoreFile: platform.StoreFile{
		ID: f.ID, StoreID: s.ID, CreatedAt: platformTime, Status: platform.StatusInProgress,
		Attributes: cmp.Or(req.Attributes, "{}"), Chunking: req.Chunking,
	}}
	if m.Chunking == "" || m.Chunking == `{"type":"auto"}` {
		m.Chunking = platform.StaticChunks(800, 400)
	}
	unreadable := !utf8.Valid(f.content)
	if p.Unreadable != nil {
		unreadable = p.Unreadable(f.Filename, f.content)
	}
	if unreadable {
		m.LastError = &platform.StoreFileError{Code: "invalid_file", Message: "The file could not be parsed."}
	}
	m.settle()
	s.files = append(slices.DeleteFunc(s.files, func(other *platformMember) bool { return other.file == f }), m)
	return true
}

// settle ends the processing when nothing waits for it.
func (m *platformMember) settle() {
	switch {
	case m.polls > 0 || m.Status != platform.StatusInProgress:
	case m.LastError != nil:
		m.Status = platform.StatusFailed
	default:
		m.Status, m.UsageBytes = platform.StatusCompleted, m.file.Bytes
	}
}

// poll returns the file as a request sees it, and brings its processing forward.
func (m *platformMember) poll() *platform.StoreFile {
	seen := m.StoreFile
	if seen.Status == platform.StatusInProgress {
		seen.LastError = nil
	}
	m.polls--
	m.settle()
	return &seen
}

func (p *Platform) withMember(do func(http.ResponseWriter, *http.Request, *platformStore, *platformMember)) func(http.ResponseWriter, *http.Request) {
	return p.withStore(func(w http.ResponseWriter, r *http.Request, s *platformStore) {
		id := r.PathValue("file")
		if i := slices.IndexFunc(s.files, func(m *platformMember) bool { return m.ID == id }); i >= 0 {
			do(w, r, s, s.files[i])
			return
		}
		notFound(w, "file", id)
	})
}

func (p *Platform) attach(w http.ResponseWriter, r *http.Request, s *platformStore) {
	var req platform.AttachRequest
	if receive(w, r, &req) && p.add(w, s, &req, "") {
		seen := s.files[len(s.files)-1].StoreFile
		if seen.Status == platform.StatusFailed { // known only later
			seen.Status, seen.LastError = platform.StatusInProgress, nil
		}
		answer(w, &seen)
	}
}

// listMembers lists the files of a store, or of a batch.
func listMembers(w http.ResponseWriter, r *http.Request, s *platformStore) {
	batch, status := r.PathValue("batch"), r.URL.Query().Get("filter")
	var list []*platform.StoreFile
	for _, m := range s.files {
		if (batch == "" || m.batch == batch) && (status == "" || m.Status == status) {
			list = append(list, &m.StoreFile)
		}
	}
	page(w, r, list, func(m *platform.StoreFile) string { return m.ID })
}

func updateMember(w http.ResponseWriter, r *http.Request, _ *platformStore, m *platformMember) {
	var req platform.AttachRequest
	if receive(w, r, &req) {
		m.Attributes = cmp.Or(req.Attributes, "{}")
		answer(w, &m.StoreFile)
	}
}

func detach(w http.ResponseWriter, _ *http.Request, s *platformStore, m *platformMember) {
	s.files = slices.DeleteFunc(s.files, func(other *platformMember) bool { return other == m })
	deleted(w, m.ID, "vector_store.file.deleted")
}

func memberContent(w http.ResponseWriter, _ *http.Request, _ *platformStore, m *platformMember) {
	answer(w, item.JSON(object("object", "vector_store.file_content.page", "data", item.JSON("["+object("type", "text", "text", string(m.file.content))+"]"),
		"has_more", false, "next_page", nil)))
}

func (p *Platform) createBatch(w http.ResponseWriter, r *http.Request, s *platformStore) {
	var req platform.FileBatchRequest
	if !receive(w, r, &req) {
		return
	}
	b := &platform.FileBatch{ID: p.id("vsfb"), StoreID: s.ID, CreatedAt: platformTime}
	files := req.Files
	for _, id := range req.FileIDs {
		files = append(files, platform.AttachRequest{FileID: id, Attributes: req.Attributes, Chunking: req.Chunking})
	}
	for i := range files {
		if !p.add(w, s, &files[i], b.ID) {
			return
		}
	}
	s.batches = append(s.batches, b)
	answer(w, s.batch(b))
}

// batch returns a batch as it is.
func (s *platformStore) batch(b *platform.FileBatch) *platform.FileBatch {
	var own []*platformMember
	for _, m := range s.files {
		if m.batch == b.ID {
			own = append(own, m)
		}
	}
	b.FileCounts, b.Status = countFiles(own), platform.StatusCompleted
	switch n := b.FileCounts; {
	case n.InProgress > 0:
		b.Status = platform.StatusInProgress
	case n.Cancelled > 0:
		b.Status = platform.StatusCancelled
	}
	return b
}

func getBatch(w http.ResponseWriter, r *http.Request, s *platformStore) {
	id := r.PathValue("batch")
	i := slices.IndexFunc(s.batches, func(b *platform.FileBatch) bool { return b.ID == id })
	if i < 0 {
		notFound(w, "file batch", id)
		return
	}
	cancel := r.Method == http.MethodPost
	for _, m := range s.files {
		if cancel && m.batch == id && m.Status == platform.StatusInProgress {
			m.Status = platform.StatusCancelled
		}
	}
	answer(w, s.batch(s.batches[i]))
	for _, m := range s.files {
		if m.batch == id && !cancel {
			m.poll()
		}
	}
}

// search compares the words of the query with those of each paragraph.
func (p *Platform) search(w http.ResponseWriter, r *http.Request, s *platformStore) {
	var req platform.SearchRequest
	if !receive(w, r, &req) {
		return
	}
	query := strings.Join(req.Query, " ")
	if query == "" {
		refuse(w, http.StatusBadRequest, "missing_required_parameter", "query", "there is no query")
		return
	}
	wanted := wordVector(query, defaultDimensions)
	out := platform.SearchResults{Query: item.JSON("[" + string(item.Quote(query)) + "]")}
	for _, m := range s.files {
		if m.Status != platform.StatusCompleted || !attributesFit(m.Attributes, req.Filter) {
			continue
		}
		for paragraph := range strings.SplitSeq(string(m.file.content), "\n\n") {
			score := 0.0
			for i, f := range wordVector(paragraph, defaultDimensions) {
				score += float64(f) * float64(wanted[i])
			}
			if score = min(score, 1); score > 0 {
				out.Results = append(out.Results, platform.SearchResult{
					FileID: m.ID, Filename: m.file.Filename, Score: score, Attributes: m.Attributes,
					Content: []platform.Chunk{{Type: "text", Text: paragraph}},
				})
			}
		}
	}
	slices.SortStableFunc(out.Results, func(a, b platform.SearchResult) int { return cmp.Compare(b.Score, a.Score) })
	if limit := int(cmp.Or(req.MaxResults, 10)); len(out.Results) > limit {
		out.Results = out.Results[:limit]
	}
	out.Extra.Set("has_more", "false")
	out.Extra.Set("next_page", "null")
	answer(w, &out)
}

// attributesFit evaluates a filter with eq, ne, and, or; others fit nothing.
func attributesFit(attributes, filter item.JSON) bool {
	if filter == "" {
		return true
	}
	f, err := item.ParseFilter(filter)
	if err != nil {
		return false
	}
	return filterFits(attributes, f)
}

func filterFits(attributes item.JSON, f *item.Filter) bool {
	fitting := 0
	for i := range f.Filters {
		if filterFits(attributes, &f.Filters[i]) {
			fitting++
		}
	}
	var values map[string]item.JSON
	_ = json.Unmarshal([]byte(attributes), &values) // other attributes fit nothing
	value := values[f.Key]
	switch f.Type {
	case "and":
		return fitting == len(f.Filters)
	case "or":
		return fitting > 0
	case "eq":
		return value == f.Value
	case "ne":
		return value != f.Value
	}
	return false
}
