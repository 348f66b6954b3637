// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package search

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/antiphon-go/antiphon/toolkit/internal/files"
)

const (
	// defaultIndexes is the folder of indexes in the first root.
	defaultIndexes = ".chatmd/index"
	indexExtension = ".idx"
	allIndexes     = "all"
	// maxIndexBytes is the largest index that is read or written.
	maxIndexBytes = 256 << 20
)

// library is where documents and their indexes are: the roots of a Files.
type library struct{ *files.Files }

// indexFolder is where indexes are kept.
func (l library) indexFolder(asked string) (files.Place, error) {
	return l.Resolve(cmp.Or(asked, l.Roots()[0].Name+":"+defaultIndexes))
}

// indexPlace is the file of an index.
func (l library) indexPlace(asked, name string) (files.Place, error) {
	if name == "" {
		return files.Place{}, errNoIndexName
	}
	if name == allIndexes {
		return files.Place{}, errors.New(`"all" means all indexes; give this one another name`)
	}
	if !files.ValidName(name) {
		return files.Place{}, fmt.Errorf("index_name is %q; a name is 1 to 64 letters, digits, '.', '_' and '-', and does not begin with '.' or '-'", name)
	}
	folder, err := l.indexFolder(asked)
	if err != nil {
		return files.Place{}, err
	}
	return folder.Entry(name + indexExtension), nil
}

// loadIndex reads an index. Errors say how to fix it.
func (l library) loadIndex(ctx context.Context, at files.Place) (*docIndex, error) {
	data, err := at.ReadAll(ctx, maxIndexBytes)
	if err != nil {
		return nil, err
	}
	ix, err := decodeIndex(string(data))
	if err != nil {
		return nil, unusableIndex(at, err)
	}
	ix.name = indexName(at)
	return ix, nil
}

func indexName(at files.Place) string { return strings.TrimSuffix(at.Base(), indexExtension) }

func unusableIndex(at files.Place, err error) error {
	return fmt.Errorf("the index %s cannot be used: %w. Make it again with index_markdown_docs and index_name %q", at, err, indexName(at))
}

// oldIndex is what an index held before; nil where there is none to build on.
func (l library) oldIndex(ctx context.Context, at files.Place) *contents {
	ix, err := l.loadIndex(ctx, at)
	if err != nil {
		return nil
	}
	c, err := ix.contents()
	if err != nil {
		return nil
	}
	return c
}

// keepIndex writes an index, whole or not at all, unless it is there already.
func (l library) keepIndex(at files.Place, data []byte) error {
	if len(data) > maxIndexBytes {
		return fmt.Errorf("the index would have %d bytes; the limit is %d. Index the folders one by one", len(data), maxIndexBytes)
	}
	l.Lock()
	defer l.Unlock()
	folder := at.Parent()
	if err := folder.Dir().MkdirAll(folder.OSPath(), 0o777); err != nil {
		return folder.Problem("make the folder", err)
	}
	if err := at.RefuseLink(); err != nil {
		return err
	}
	info, err := at.Dir().Lstat(at.OSPath())
	switch {
	case errors.Is(err, fs.ErrNotExist):
		info = nil
	case err != nil:
		return at.Problem("write", err)
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s is not a regular file; choose another index_name", at)
	case info.Size() == int64(len(data)):
		if old, err := at.ReadAll(context.Background(), maxIndexBytes); err == nil && bytes.Equal(old, data) {
			return nil
		}
	}
	if err := at.Replace(data, info); err != nil {
		if errors.Is(err, files.ErrChanged) {
			return fmt.Errorf("%s: %w", at, err)
		}
		return at.Problem("write", err)
	}
	return nil
}

// indexPlaces are the indexes of a folder, by name; none if it does not exist.
func (l library) indexPlaces(asked string) (places []files.Place, err error) {
	folder, err := l.indexFolder(asked)
	if err != nil {
		return nil, err
	}
	if _, err := folder.Dir().Stat(folder.OSPath()); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	entries, err := folder.Entries()
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if name, ok := strings.CutSuffix(e.Name(), indexExtension); ok && e.Type().IsRegular() && files.ValidName(name) {
			places = append(places, folder.Entry(e.Name()))
		}
	}
	return places, nil
}
