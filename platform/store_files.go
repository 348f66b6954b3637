// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package platform

import (
	"context"
	"fmt"
	"iter"
	"net/http"
	"slices"
	"strings"

	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/internal/record"
	"github.com/antiphon-go/antiphon/internal/transport"
	"github.com/antiphon-go/antiphon/item"
)

// States of a [StoreFile] and of a [FileBatch].
const (
	StatusInProgress = "in_progress"
	StatusCompleted  = "completed"
	StatusFailed     = "failed"
	StatusCancelled  = "cancelled"
)

// StoreFile is a file in a vector store. Schema: VectorStoreFileObject.
type StoreFile struct {
	ID         string // of the file
	StoreID    string
	CreatedAt  int64  // Unix time in seconds
	Status     string // such as [StatusCompleted]
	UsageBytes int64
	// LastError says why the file failed; nil if it did not.
	LastError *StoreFileError
	// Attributes is an object whose values are texts, numbers and booleans. Searches can filter by
	// them.
	Attributes item.JSON
	Chunking   item.JSON
	Extra      item.Extra
}

// StoreFileError says why a file could not be processed. Schema: VectorStoreFileObject.last_error.
type StoreFileError struct {
	Code    string // "server_error", "unsupported_file" or "invalid_file"
	Message string
	Extra   item.Extra
}

func (v *StoreFile) fields(c *codec) {
	record.Keep(c, &v.Extra)
	c.Text("id", &v.ID)
	c.Member("object", "vector_store.file")
	c.Number("usage_bytes", &v.UsageBytes)
	c.Number("created_at", &v.CreatedAt)
	c.Text("vector_store_id", &v.StoreID)
	c.Text("status", &v.Status)
	c.OrEmpty("last_error", "null", v.LastError == nil)
	record.Opt(c, "last_error", &v.LastError, (*StoreFileError).fields)
	record.Raw(c, "chunking_strategy", &v.Chunking)
	record.Raw(c, "attributes", &v.Attributes)
}

func (v *StoreFileError) fields(c *codec) {
	record.Keep(c, &v.Extra)
	c.Text("code", &v.Code)
	c.Text("message", &v.Message)
}

// MarshalJSON returns the file as JSON.
func (v *StoreFile) MarshalJSON() ([]byte, error) { return encode(v) }

// UnmarshalJSON reads the file from a copy of data.
func (v *StoreFile) UnmarshalJSON(data []byte) error { return decode(data, v) }

// AttachRequest adds a file to a vector store. Schema: CreateVectorStoreFileRequest.
type AttachRequest struct {
	FileID string
	// Attributes and Chunking are as in [StoreFile] and [StoreRequest].
	Attributes item.JSON
	Chunking   item.JSON
	Extra      item.Extra
}

func (v *AttachRequest) fields(c *codec) {
	record.Keep(c, &v.Extra)
	c.OptString("file_id", &v.FileID)
	record.Raw(c, "chunking_strategy", &v.Chunking)
	record.Raw(c, "attributes", &v.Attributes)
}

// MarshalJSON returns the request as JSON.
func (v *AttachRequest) MarshalJSON() ([]byte, error) { return encode(v) }

// UnmarshalJSON reads the request from a copy of data.
func (v *AttachRequest) UnmarshalJSON(data []byte) error { return decode(data, v) }

const (
	pathStoreFiles = pathStore + "/files"
	pathStoreFile  = pathStore + "/files/{file_id}"
)

// AttachFile adds a stored file to a vector store, which begins to process it;
// [Client.WaitStoreFile] waits until it has.
func (c *Client) AttachFile(ctx context.Context, storeID string, req *AttachRequest) (*StoreFile, error) {
	if req != nil && strings.TrimSpace(req.FileID) == "" {
		return nil, refused("file_id", "it is empty", "give the id of a stored file")
	}
	return send[StoreFile](ctx, c, stores("attach file", pathStoreFiles), req, transport.IfKeyed, "file of a vector store", "id", storeID)
}

// StoreFiles yields the files of a vector store. Options may be nil.
func (c *Client) StoreFiles(ctx context.Context, storeID string, options *ListOptions) iter.Seq2[*StoreFile, error] {
	return list(ctx, c, stores("list files of vector store", pathStoreFiles).ask(http.MethodGet, storeID), options, (*StoreFile).id)
}

func (v *StoreFile) id() string { return v.ID }

// RetrieveStoreFile returns one file of a vector store.
func (c *Client) RetrieveStoreFile(ctx context.Context, storeID, fileID string) (*StoreFile, error) {
	return object[StoreFile](ctx, c, stores("retrieve file of vector store", pathStoreFile).ask(http.MethodGet, storeID, fileID), "file of a vector store", "id")
}

// attributes is the body that changes a file's attributes.
type attributes struct{ value item.JSON }

func (v *attributes) fields(c *codec) {
	c.OrEmpty("attributes", "{}", v.value == "")
	record.Raw(c, "attributes", &v.value)
}

// UpdateStoreFile replaces the attributes of a file; see [StoreFile.Attributes].
func (c *Client) UpdateStoreFile(ctx context.Context, storeID, fileID string, values item.JSON) (*StoreFile, error) {
	return send[StoreFile](ctx, c, stores("update file of vector store", pathStoreFile), &attributes{values}, transport.UntilAnswer, "file of a vector store", "id", storeID, fileID)
}

// StoreFileContent returns the text of a file as the vector store has read it.
func (c *Client) StoreFileContent(ctx context.Context, storeID, fileID string) ([]Chunk, error) {
	a := stores("retrieve content of file in vector store", pathStoreFile+"/content").ask(http.MethodGet, storeID, fileID)
	v, err := object[fileContent](ctx, c, a, "content of a file", "data")
	if err != nil {
		return nil, err
	}
	return v.data, nil
}

// fileContent is the text of a file. Schema: VectorStoreFileContentResponse.
type fileContent struct{ data []Chunk }

func (v *fileContent) fields(c *codec) { record.List(c, "data", &v.data, (*Chunk).fields) }

// DetachFile removes a file from a vector store. The file itself stays. A file that is not in the
// store is handled as in [Client.DeleteModel].
func (c *Client) DetachFile(ctx context.Context, storeID, fileID string) error {
	return c.delete(ctx, stores("detach file", pathStoreFile).ask(http.MethodDelete, storeID, fileID))
}

// WaitStoreFile returns a file of a vector store when it is processed. A file that failed or was
// cancelled is returned together with its error. The endpoint is asked at the growing intervals of
// [dialect.Config.Retry], until ctx is done.
func (c *Client) WaitStoreFile(ctx context.Context, storeID, fileID string) (*StoreFile, error) {
	v, err := wait(ctx, c, "wait for file of vector store", func() (*StoreFile, string, error) {
		v, err := c.RetrieveStoreFile(ctx, storeID, fileID)
		if err != nil {
			return nil, "", err
		}
		return v, v.Status, nil
	})
	if err != nil {
		return v, err
	}
	e := &endpoint.Error{Op: "process file " + v.ID, Class: endpoint.BadRequest}
	switch v.Status {
	case StatusFailed:
		e.Message, e.Hint = "the file could not be processed", "look at the file's content and the ending of its name"
		if v.LastError != nil {
			e.Code, e.Message = v.LastError.Code, v.LastError.Message
			if e.Code == "server_error" {
				e.Class, e.Hint = endpoint.Server, "attach it again"
			}
		}
	case StatusCancelled:
		e.Message = "processing the file was cancelled"
	case StatusCompleted:
		return v, nil
	default:
		unknownStatus(e, v.Status)
	}
	return v, e
}

// wait polls until the status is not [StatusInProgress].
func wait[T any](ctx context.Context, c *Client, op string, look func() (T, string, error)) (none T, err error) {
	if c == nil {
		return none, errNil
	}
	for n := 0; ; n++ {
		v, status, err := look()
		if err != nil || status != StatusInProgress {
			return v, err
		}
		if err := c.link().Pause(ctx, op, n); err != nil {
			return v, err
		}
	}
}

// FileBatch is a number of files that are added to a vector store together. Schema:
// VectorStoreFileBatchObject.
type FileBatch struct {
	ID         string
	StoreID    string
	CreatedAt  int64  // Unix time in seconds
	Status     string // such as [StatusCompleted]
	FileCounts FileCounts
	Extra      item.Extra
}

func (v *FileBatch) fields(c *codec) {
	record.Keep(c, &v.Extra)
	c.Text("id", &v.ID)
	c.Member("object", "vector_store.files_batch")
	c.Number("created_at", &v.CreatedAt)
	c.Text("vector_store_id", &v.StoreID)
	c.Text("status", &v.Status)
	v.FileCounts.member(c)
}

// MarshalJSON returns the batch as JSON.
func (v *FileBatch) MarshalJSON() ([]byte, error) { return encode(v) }

// UnmarshalJSON reads the batch from a copy of data.
func (v *FileBatch) UnmarshalJSON(data []byte) error { return decode(data, v) }

// FileBatchRequest adds files to a vector store: FileIDs, all with the same Attributes and Chunking, or
// Files, each with its own. Schema: CreateVectorStoreFileBatchRequest.
type FileBatchRequest struct {
	FileIDs    []string
	Attributes item.JSON
	Chunking   item.JSON
	Files      []AttachRequest
	Extra      item.Extra
}

func (v *FileBatchRequest) fields(c *codec) {
	record.Keep(c, &v.Extra)
	c.OptStrings("file_ids", &v.FileIDs)
	record.List(c, "files", &v.Files, (*AttachRequest).fields)
	record.Raw(c, "chunking_strategy", &v.Chunking)
	record.Raw(c, "attributes", &v.Attributes)
}

// MarshalJSON returns the request as JSON.
func (v *FileBatchRequest) MarshalJSON() ([]byte, error) { return encode(v) }

// UnmarshalJSON reads the request from a copy of data.
func (v *FileBatchRequest) UnmarshalJSON(data []byte) error { return decode(data, v) }

// check refuses a request without files, or with a file that has no id. Nil is refused later.
func (v *FileBatchRequest) check() error {
	const empty, hint = "an id is empty", "give the ids of stored files"
	if v == nil {
		return nil
	}
	_, others := v.Extra.Get("file_ids")
	switch {
	case len(v.FileIDs) == 0 && len(v.Files) == 0 && !others:
		return refused("file_ids", "there are no files", hint)
	case slices.ContainsFunc(v.FileIDs, func(id string) bool { return strings.TrimSpace(id) == "" }):
		return refused("file_ids", empty, hint)
	case slices.ContainsFunc(v.Files, func(f AttachRequest) bool { return strings.TrimSpace(f.FileID) == "" }):
		return refused("files", empty, hint)
	}
	return nil
}

const (
	pathBatches = pathStore + "/file_batches"
	pathBatch   = pathStore + "/file_batches/{batch_id}"
)

// CreateFileBatch adds files to a vector store; [Client.WaitFileBatch] waits until they are processed.
func (c *Client) CreateFileBatch(ctx context.Context, storeID string, req *FileBatchRequest) (*FileBatch, error) {
	if err := req.check(); err != nil {
		return nil, err
	}
	return send[FileBatch](ctx, c, stores("create file batch", pathBatches), req, transport.IfKeyed, "file batch", "id", storeID)
}

// RetrieveFileBatch returns a file batch.
func (c *Client) RetrieveFileBatch(ctx context.Context, storeID, batchID string) (*FileBatch, error) {
	return object[FileBatch](ctx, c, stores("retrieve file batch", pathBatch).ask(http.MethodGet, storeID, batchID), "file batch", "id")
}

// CancelFileBatch stops processing a file batch, and returns it. Files that were processed stay.
func (c *Client) CancelFileBatch(ctx context.Context, storeID, batchID string) (*FileBatch, error) {
	return object[FileBatch](ctx, c, stores("cancel file batch", pathBatch+"/cancel").ask(http.MethodPost, storeID, batchID), "file batch", "id")
}

// FileBatchFiles yields the files of a file batch. Options may be nil.
func (c *Client) FileBatchFiles(ctx context.Context, storeID, batchID string, options *ListOptions) iter.Seq2[*StoreFile, error] {
	return list(ctx, c, stores("list files of batch", pathBatch+"/files").ask(http.MethodGet, storeID, batchID), options, (*StoreFile).id)
}

// WaitFileBatch returns a file batch when it is processed. A batch with files that failed, or that was
// cancelled, is returned together with an error; [Client.FileBatchFiles] says which files failed.
// Polling is as in [Client.WaitStoreFile].
func (c *Client) WaitFileBatch(ctx context.Context, storeID, batchID string) (*FileBatch, error) {
	v, err := wait(ctx, c, "wait for file batch", func() (*FileBatch, string, error) {
		v, err := c.RetrieveFileBatch(ctx, storeID, batchID)
		if err != nil {
			return nil, "", err
		}
		return v, v.Status, nil
	})
	if err != nil {
		return v, err
	}
	e := &endpoint.Error{Op: "process file batch " + v.ID, Class: endpoint.BadRequest}
	switch {
	case v.Status == StatusCancelled:
		e.Message = "processing the batch was cancelled"
	case v.Status == StatusFailed || v.FileCounts.Failed > 0:
		e.Message = fmt.Sprintf("%d of %d files could not be processed", v.FileCounts.Failed, v.FileCounts.Total)
		e.Hint = "list the files of the batch with the status failed"
	case v.Status == StatusCompleted:
		return v, nil
	default:
		unknownStatus(e, v.Status)
	}
	return v, e
}

// unknownStatus makes e an error about a status that may or may not mean that all is done.
func unknownStatus(e *endpoint.Error, status string) {
	e.Class, e.Message = endpoint.Protocol, fmt.Sprintf("the status %q is not known", status)
	if status == "" {
		e.Message = "the server reports no status"
	}
	e.Hint = "retrieve it and decide by its other members"
}
