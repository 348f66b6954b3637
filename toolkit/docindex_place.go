// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package toolkit

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
)

const (
	// defaultIndexes is the folder of indexes in the first root.
	defaultIndexes = ".chatmd/index"
	indexExtension = ".idx"
	allIndexes     = "all"
	// maxIndexBytes is the largest index that is read or written.
	maxIndexBytes = 256 << 20
)

// indexFolder is where indexes are kept.
func (f *Files) indexFolder(asked string) (place, error) {
	return f.resolve(cmp.Or(asked, f.roots[0].Name+":"+defaultIndexes))
}

// indexPlace is the file of an index.
func (f *Files) indexPlace(asked, name string) (place, error) {
	if name == "" {
		return place{}, errNoIndexName
	}
	if name == allIndexes {
		return place{}, errors.New(`"all" means all indexes; give this one another name`)
	}
	if !rootName.MatchString(name) {
		return place{}, fmt.Errorf("index_name is %q; a name is 1 to 64 letters, digits, '.', '_' and '-', and does not begin with '.' or '-'", name)
	}
	folder, err := f.indexFolder(asked)
	return folder.entryOf(name + indexExtension), err
}

// entryOf is entry, of a place that may be none.
func (p place) entryOf(name string) place {
	if p.root == nil {
		return p
	}
	return p.entry(name)
}

// readAll reads a file that has no more than so many bytes.
func (f *Files) readAll(ctx context.Context, p place, most int64) ([]byte, error) {
	file, info, err := f.openFile("read", p)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if info.Size() > most {
		return nil, fmt.Errorf("%s has %d bytes; the limit is %d", quoted(p.shown), info.Size(), most)
	}
	b := bytes.NewBuffer(make([]byte, 0, info.Size()+bytes.MinRead))
	_, err = b.ReadFrom(io.LimitReader(&contextReader{ctx, file}, most))
	if err != nil {
		return nil, f.problem("read", p, err)
	}
	return b.Bytes(), nil
}

// loadIndex reads an index. Errors say how to fix it.
func (f *Files) loadIndex(ctx context.Context, at place) (*docIndex, error) {
	data, err := f.readAll(ctx, at, maxIndexBytes)
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

func indexName(at place) string { return strings.TrimSuffix(at.base(), indexExtension) }

func unusableIndex(at place, err error) error {
	return fmt.Errorf("the index %s cannot be used: %w. Make it again with index_markdown_docs and index_name %q", quoted(at.shown), err, indexName(at))
}

// oldIndex is what an index held before; nil where there is none to build on.
func (f *Files) oldIndex(ctx context.Context, at place) *contents {
	ix, err := f.loadIndex(ctx, at)
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
func (f *Files) keepIndex(at place, data []byte) error {
	if len(data) > maxIndexBytes {
		return fmt.Errorf("the index would have %d bytes; the limit is %d. Index the folders one by one", len(data), maxIndexBytes)
	}
	f.writing.Lock()
	defer f.writing.Unlock()
	folder := at.parent()
	if err := folder.root.dir.MkdirAll(folder.osPath(), 0o777); err != nil {
		return f.problem("make the folder", folder, err)
	}
	if err := f.refuseLink(at); err != nil {
		return err
	}
	info, err := at.root.dir.Lstat(at.osPath())
	switch {
	case errors.Is(err, fs.ErrNotExist):
		info = nil
	case err != nil:
		return f.problem("write", at, err)
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s is not a regular file; choose another index_name", quoted(at.shown))
	case info.Size() == int64(len(data)):
		if old, err := f.readAll(context.Background(), at, maxIndexBytes); err == nil && bytes.Equal(old, data) {
			return nil
		}
	}
	if err := at.replace(data, info); err != nil {
		if errors.Is(err, errChanged) {
			return fmt.Errorf("%s: %w", quoted(at.shown), err)
		}
		return f.problem("write", at, err)
	}
	return nil
}

// indexPlaces are the indexes of a folder, by name; none if it does not exist.
func (f *Files) indexPlaces(asked string) (places []place, err error) {
	folder, err := f.indexFolder(asked)
	if err != nil {
		return nil, err
	}
	if _, err := folder.root.dir.Stat(folder.osPath()); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	entries, err := f.entries(folder)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if name, ok := strings.CutSuffix(e.Name(), indexExtension); ok && e.Type().IsRegular() && rootName.MatchString(name) {
			places = append(places, folder.entry(e.Name()))
		}
	}
	return places, nil
}
