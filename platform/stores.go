// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package platform

import (
	"context"
	"fmt"
	"iter"
	"net/http"

	"github.com/antiphon-go/antiphon/internal/record"
	"github.com/antiphon-go/antiphon/internal/transport"
	"github.com/antiphon-go/antiphon/item"
)

// Store is a vector store: files that are split into chunks and indexed, for [Client.SearchStore] and
// for item.FileSearchTool. Schema: VectorStoreObject.
type Store struct {
	ID           string
	CreatedAt    int64 // Unix times in seconds
	LastActiveAt int64
	ExpiresAt    int64 // 0 means never
	ExpiresAfter *Expiry
	Name         string
	// Status is "in_progress" while files are processed, then "completed"; or "expired".
	Status     string
	UsageBytes int64
	FileCounts FileCounts
	// Metadata is an object whose values are strings; api.Metadata makes one.
	Metadata item.JSON
	Extra    item.Extra
}

// FileCounts are the numbers of files by their status. Schema: VectorStoreObject.file_counts.
type FileCounts struct {
	InProgress, Completed, Failed, Cancelled, Total int64
	Extra                                           item.Extra
}

// Expiry says when a vector store expires. Schema: VectorStoreExpirationAfter.
type Expiry struct {
	// Anchor is the time from which the days count. Empty means last_active_at, the only one so far.
	Anchor string
	Days   int64
	Extra  item.Extra
}

func (v *Store) fields(c *codec) {
	record.Keep(c, &v.Extra)
	c.Text("id", &v.ID)
	c.Member("object", "vector_store")
	c.Number("created_at", &v.CreatedAt)
	c.Text("name", &v.Name)
	c.Number("usage_bytes", &v.UsageBytes)
	v.FileCounts.member(c)
	c.Text("status", &v.Status)
	record.Opt(c, "expires_after", &v.ExpiresAfter, (*Expiry).fields)
	optInt(c, "expires_at", &v.ExpiresAt)
	c.Number("last_active_at", &v.LastActiveAt)
	c.OrEmpty("metadata", "null", v.Metadata == "")
	record.Raw(c, "metadata", &v.Metadata)
}

func (v *FileCounts) fields(c *codec) {
	record.Keep(c, &v.Extra)
	c.Number("in_progress", &v.InProgress)
	c.Number("completed", &v.Completed)
	c.Number("failed", &v.Failed)
	c.Number("cancelled", &v.Cancelled)
	c.Number("total", &v.Total)
}

// member is the member file_counts, which is written unless it was absent.
func (v *FileCounts) member(c *codec) {
	const name = "file_counts"
	if !c.Decoding {
		if !c.Kept(name) {
			record.Opt(c, name, &v, (*FileCounts).fields)
		}
		return
	}
	var got *FileCounts
	if record.Opt(c, name, &got, (*FileCounts).fields); got != nil {
		*v = *got
	} else if c.Find(name) == nil {
		c.Missing(name)
	}
}

func (v *Expiry) fields(c *codec) {
	record.Keep(c, &v.Extra)
	if !c.Decoding && v.Anchor == "" && !c.Kept("anchor") {
		c.WriteString("anchor", "last_active_at")
	} else {
		c.Text("anchor", &v.Anchor)
	}
	c.Number("days", &v.Days)
}

// MarshalJSON returns the store as JSON.
func (v *Store) MarshalJSON() ([]byte, error) { return encode(v) }

// UnmarshalJSON reads the store from a copy of data.
func (v *Store) UnmarshalJSON(data []byte) error { return decode(data, v) }

// StoreRequest creates a vector store, or changes one: members that are not set stay as they are.
// Schemas: CreateVectorStoreRequest, UpdateVectorStoreRequest.
type StoreRequest struct {
	Name         string
	ExpiresAfter *Expiry
	Metadata     item.JSON
	// The following are for creating only. Chunking is how the files are split, such as
	// [StaticChunks].
	Description string
	FileIDs     []string
	Chunking    item.JSON
	Extra       item.Extra
}

func (v *StoreRequest) fields(c *codec) {
	record.Keep(c, &v.Extra)
	c.OptString("name", &v.Name)
	c.OptString("description", &v.Description)
	c.OptStrings("file_ids", &v.FileIDs)
	record.Raw(c, "chunking_strategy", &v.Chunking)
	record.Opt(c, "expires_after", &v.ExpiresAfter, (*Expiry).fields)
	record.Raw(c, "metadata", &v.Metadata)
}

// MarshalJSON returns the request as JSON.
func (v *StoreRequest) MarshalJSON() ([]byte, error) { return encode(v) }

// UnmarshalJSON reads the request from a copy of data.
func (v *StoreRequest) UnmarshalJSON(data []byte) error { return decode(data, v) }

// StaticChunks returns the value of a member Chunking that splits files into chunks of at most size
// tokens, which overlap by the given number of tokens. Schema: StaticChunkingStrategyRequestParam.
func StaticChunks(size, overlap int64) item.JSON {
	return item.JSON(fmt.Sprintf(`{"type":"static","static":{"max_chunk_size_tokens":%d,"chunk_overlap_tokens":%d}}`, size, overlap))
}

const (
	pathStores = "/vector_stores"
	pathStore  = "/vector_stores/{vector_store_id}"
	noStores   = "keep an index of your own, with embeddings"
)

// stores returns a place below the vector stores.
func stores(op, path string) place { return place{op, path, noStores} }

// CreateStore creates a vector store. It is ready when its Status is "completed".
func (c *Client) CreateStore(ctx context.Context, req *StoreRequest) (*Store, error) {
	return send[Store](ctx, c, stores("create vector store", pathStores), req, transport.IfKeyed, "vector store", "id")
}

// Stores yields the vector stores. Options may be nil.
func (c *Client) Stores(ctx context.Context, options *ListOptions) iter.Seq2[*Store, error] {
	return list(ctx, c, stores("list vector stores", pathStores).ask(http.MethodGet), options, func(v *Store) string { return v.ID })
}

// RetrieveStore returns one vector store.
func (c *Client) RetrieveStore(ctx context.Context, id string) (*Store, error) {
	return object[Store](ctx, c, stores("retrieve vector store", pathStore).ask(http.MethodGet, id), "vector store", "id")
}

// UpdateStore changes a vector store's name, expiry or metadata, and returns the store.
func (c *Client) UpdateStore(ctx context.Context, id string, req *StoreRequest) (*Store, error) {
	return send[Store](ctx, c, stores("update vector store", pathStore), req, transport.UntilAnswer, "vector store", "id", id)
}

// DeleteStore deletes a vector store. Its files stay. A store that does not exist is handled as in
// [Client.DeleteModel].
func (c *Client) DeleteStore(ctx context.Context, id string) error {
	return c.delete(ctx, stores("delete vector store", pathStore).ask(http.MethodDelete, id))
}

// SearchRequest searches a vector store. Schema: VectorStoreSearchRequest.
type SearchRequest struct {
	// Query are the texts to search for, usually one.
	Query []string
	// MaxResults is the maximum number of results; 0 means the endpoint's default.
	MaxResults int64
	// Filter selects files by their attributes; item.Filter describes it.
	Filter item.JSON
	// Ranking are the ranking options.
	Ranking item.JSON
	// Rewrite has the endpoint rewrite the query for the search.
	Rewrite bool
	Extra   item.Extra
}

func (v *SearchRequest) fields(c *codec) {
	record.Keep(c, &v.Extra)
	if !c.Decoding && len(v.Query) == 1 {
		c.WriteString("query", v.Query[0])
	} else if c.OptStrings("query", &v.Query); c.Decoding && v.Query == nil {
		var one string
		if c.OptString("query", &one); one != "" {
			v.Query = []string{one}
		}
	}
	optInt(c, "max_num_results", &v.MaxResults)
	record.Raw(c, "filters", &v.Filter)
	record.Raw(c, "ranking_options", &v.Ranking)
	optTrue(c, "rewrite_query", &v.Rewrite)
}

// MarshalJSON returns the request as JSON.
func (v *SearchRequest) MarshalJSON() ([]byte, error) { return encode(v) }

// UnmarshalJSON reads the request from a copy of data.
func (v *SearchRequest) UnmarshalJSON(data []byte) error { return decode(data, v) }

// SearchResults is the answer to a [SearchRequest], the best result first. Schema:
// VectorStoreSearchResultsPage.
type SearchResults struct {
	// Query is what was searched for, which the endpoint may have rewritten.
	Query   item.JSON
	Results []SearchResult
	Extra   item.Extra
}

// SearchResult is a part of a file. Schema: VectorStoreSearchResultItem.
type SearchResult struct {
	FileID     string
	Filename   string
	Score      float64   // from 0 to 1
	Attributes item.JSON // of the file
	Content    []Chunk
	Extra      item.Extra

	spelled item.Extra
}

// Chunk is a part of a file's text. Schema: VectorStoreSearchResultContentObject.
type Chunk struct {
	Type  string // "text"
	Text  string
	Extra item.Extra
}

func (v *SearchResults) fields(c *codec) {
	record.Keep(c, &v.Extra)
	c.Member("object", "vector_store.search_results.page")
	record.Raw(c, "search_query", &v.Query)
	c.OrEmpty("data", "[]", v.Results == nil)
	record.List(c, "data", &v.Results, (*SearchResult).fields)
}

func (v *SearchResult) fields(c *codec) {
	record.Keep(c, &v.Extra)
	record.Spell(c, &v.spelled)
	c.Text("file_id", &v.FileID)
	c.Text("filename", &v.Filename)
	c.Decimal("score", &v.Score)
	c.OrEmpty("attributes", "null", v.Attributes == "")
	record.Raw(c, "attributes", &v.Attributes)
	c.OrEmpty("content", "[]", v.Content == nil)
	record.List(c, "content", &v.Content, (*Chunk).fields)
}

func (v *Chunk) fields(c *codec) {
	record.Keep(c, &v.Extra)
	c.Text("type", &v.Type)
	c.Text("text", &v.Text)
}

// MarshalJSON returns the results as JSON.
func (v *SearchResults) MarshalJSON() ([]byte, error) { return encode(v) }

// UnmarshalJSON reads the results from a copy of data.
func (v *SearchResults) UnmarshalJSON(data []byte) error { return decode(data, v) }

// SearchStore searches a vector store.
func (c *Client) SearchStore(ctx context.Context, storeID string, req *SearchRequest) (*SearchResults, error) {
	if req == nil {
		return nil, errNil
	}
	if len(req.Query) == 0 {
		return nil, refused("query", "there is nothing to search for", "give a text")
	}
	return send[SearchResults](ctx, c, stores("search vector store", pathStore+"/search"), req, transport.Always, "list of search results", "data", storeID)
}
