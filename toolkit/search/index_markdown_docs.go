// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package search

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/antiphon-go/antiphon/tool"
	"github.com/antiphon-go/antiphon/toolkit/internal/files"
	"github.com/antiphon-go/antiphon/toolkit/internal/wording"
)

// Limits of one index. A larger file is left out and reported. A folder with more
// is rejected, and nothing is written.
const (
	MaxDocBytes   = 4 << 20
	MaxDocFiles   = 20_000
	MaxDocsBytes  = 64 << 20
	maxDocEntries = 500_000 // files and folders visited
	maxSnippets   = 500_000
	maxDescribed  = 500 // bytes of a description
)

//go:embed index_markdown_docs.md
var indexMarkdownDocsText string

type indexMarkdownDocsInput struct {
	Root         string `json:"root" jsonschema:"the folder with the Markdown files, relative to a root, or name:path for a named root"`
	IndexName    string `json:"index_name" jsonschema:"a name for the index: letters, digits, '.', '_' and '-'"`
	Description  string `json:"description,omitzero" jsonschema:"one line about what is in the files"`
	VectorDBRoot string `json:"vector_db_root,omitzero" jsonschema:"the folder to keep the index in; default .chatmd/index in the first root"`
}

// IndexTool returns the tool that indexes the Markdown files of a folder in the
// roots of f. It writes the index into a root and is exclusive.
func IndexTool(name string, f *files.Files) (tool.Tool, error) {
	if err := files.Check(f); err != nil {
		return nil, err
	}
	t, err := tool.New(name, f.Describe(indexMarkdownDocsText), library{Files: f}.indexMarkdownDocs, tool.Exclusive(), tool.Idempotent())
	if err != nil {
		return nil, err
	}
	return f.Guard(t, indexFolderOf, func(call tool.Call) []string { return files.Texts(call.Arguments, "root") }), nil
}

// indexFolderOf returns the folder of the indexes that a call names.
func indexFolderOf(call tool.Call) []string { return files.Texts(call.Arguments, "vector_db_root") }

func (l library) indexMarkdownDocs(ctx context.Context, in indexMarkdownDocsInput) (string, error) {
	at, err := l.indexPlace(in.VectorDBRoot, in.IndexName)
	if err != nil {
		return "", err
	}
	folder, err := l.Resolve(in.Root)
	if err != nil {
		return "", err
	}
	g := gatherer{ctx: ctx, files: l, root: in.Root, folder: folder, asked: l.Private(folder) != ""}
	if err := g.walk(folder, ignoreAbove(folder)); err != nil {
		return "", err
	}
	old := l.oldIndex(ctx, in.VectorDBRoot, at)
	ix, err := g.build(old, inOneLine(in.Description))
	if err != nil {
		return "", err
	}
	data := ix.encode()
	if err := ctx.Err(); err != nil {
		return "", err
	}
	if err := l.keepIndex(ctx, in.VectorDBRoot, at, data); err != nil {
		return "", err
	}
	return g.report(ix, at, len(data)), nil
}

// inOneLine returns a description that fits on one line of a listing.
func inOneLine(s string) string {
	return wording.Shorten(strings.Join(strings.Fields(strings.ToValidUTF8(s, "\uFFFD")), " "), maxDescribed)
}

// A gatherer finds and reads the Markdown files of a folder.
type gatherer struct {
	ctx    context.Context
	files  library
	root   string // the argument that names the folder
	folder files.Place
	asked  bool // the folder is private, so a person was asked about all that is in it
	docs   []files.Place

	seen, bytes                   int
	fresh, changed, same, removed int
	left                          []string // files that were left out, and why
}

// walk finds the files below a folder. A subfolder that cannot be listed is left
// out.
func (g *gatherer) walk(dir files.Place, rules []ignoreRule) error {
	entries, err := g.entries(dir)
	if err != nil {
		if dir.Rel == g.folder.Rel {
			return err
		}
		g.left = append(g.left, err.Error())
		return nil
	}
	rules = ignoreRules(rules, dir)
	for _, e := range entries {
		if err := g.ctx.Err(); err != nil {
			return err
		}
		if g.seen++; g.seen > maxDocEntries {
			return fmt.Errorf("%s holds more than %d files and folders; index the folders in it one by one", g.folder, maxDocEntries)
		}
		if err := g.entry(dir.Entry(e.Name()), e, rules); err != nil {
			return err
		}
	}
	return nil
}

// entries lists a folder where it really is.
func (g *gatherer) entries(dir files.Place) ([]fs.DirEntry, error) {
	held, release, err := g.files.PinPlace(g.ctx, g.root, dir, "list", false)
	if err != nil {
		return nil, err
	}
	defer func() { _ = release() }()
	return held.Entries()
}

func (g *gatherer) entry(p files.Place, e fs.DirEntry, rules []ignoreRule) error {
	name := e.Name()
	switch {
	case strings.HasPrefix(name, "."), name == "node_modules":
		return nil
	case e.IsDir():
		if ignored(rules, p, true) || g.private(p) {
			return nil
		}
		return g.walk(p, rules)
	case !e.Type().IsRegular() || !isMarkdown(name) || ignored(rules, p, false):
		return nil
	case !utf8.ValidString(name):
		g.left = append(g.left, p.String()+": its name is not text")
		return nil
	case g.private(p):
		return nil
	}
	if len(g.docs) == MaxDocFiles {
		return fmt.Errorf("%s holds more than %d Markdown files; index the folders in it one by one", g.folder, MaxDocFiles)
	}
	g.docs = append(g.docs, p)
	return nil
}

// private leaves out what nobody was asked about.
func (g *gatherer) private(p files.Place) bool {
	if g.asked {
		return false
	}
	why := g.files.Private(p)
	if why != "" {
		g.left = append(g.left, p.String()+": "+why)
	}
	return why != ""
}

func isMarkdown(name string) bool {
	switch strings.ToLower(path.Ext(name)) {
	case ".md", ".markdown", ".mdown", ".mkd", ".mdx":
		return true
	}
	return false
}

// build builds the index. The argument old may be nil.
func (g *gatherer) build(old *contents, description string) (*docIndex, error) {
	ix := &docIndex{description: description, root: g.folder.RootName(), folder: g.folder.Rel}
	if old != nil && (old.index.root != ix.root || old.index.folder != ix.folder) {
		old = nil
	}
	slices.SortFunc(g.docs, func(a, b files.Place) int { return cmp.Compare(a.Rel, b.Rel) })
	x := newIndexer(ix)
	kept := 0
	for _, p := range g.docs {
		was, err := g.index(x, p, old)
		if err != nil {
			return nil, err
		}
		if was {
			kept++
		}
	}
	if old != nil {
		g.removed = len(old.index.files) - kept
	}
	return x.finish(), nil
}

// index adds one file, and reports whether the old index contains it.
func (g *gatherer) index(x *indexer, p files.Place, old *contents) (was bool, err error) {
	text, err := g.files.readDoc(g.ctx, g.root, p)
	if g.ctx.Err() != nil {
		return false, g.ctx.Err()
	}
	if err != nil {
		g.left = append(g.left, err.Error())
		return false, nil
	}
	if g.bytes += len(text); g.bytes > MaxDocsBytes {
		return false, fmt.Errorf("the Markdown files of %s have more than %d bytes; index the folders in it one by one", g.folder, MaxDocsBytes)
	}
	name := p.Rel
	if g.folder.Rel != "." {
		name = strings.TrimPrefix(name, g.folder.Rel+"/")
	}
	hash := hashOf(text)
	if old != nil {
		if i, ok := old.index.byPath(name); ok {
			if was = true; old.index.files[i].hash == hash {
				g.same++
				x.reuse(old, i)
				return was, nil
			}
		}
	}
	if was {
		g.changed++
	} else {
		g.fresh++
	}
	x.read(name, hash, string(text))
	if len(x.found) > maxSnippets {
		return false, fmt.Errorf("the Markdown files of %s have more than %d sections; index the folders in it one by one", g.folder, maxSnippets)
	}
	return was, nil
}

// readDoc reads a Markdown file in a folder that an argument of the call names, or "".
func (l library) readDoc(ctx context.Context, asked string, p files.Place) ([]byte, error) {
	held, release, err := l.PinPlace(ctx, asked, p, "read", false)
	if err != nil {
		return nil, err
	}
	defer func() { _ = release() }()
	text, err := held.ReadAll(ctx, MaxDocBytes)
	if err != nil {
		return nil, err
	}
	return text, p.RefuseBinary(text, int64(len(text)))
}

// maxLeft limits the files listed as left out.
const maxLeft = 10

func (g *gatherer) report(ix *docIndex, at files.Place, size int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Indexed %s: %d files (%d new, %d changed, %d unchanged, %d removed), %d snippets, %d different words. The index is %s (%d bytes).",
		g.folder, len(ix.files), g.fresh, g.changed, g.same, g.removed, len(ix.snippets), ix.terms, at, size)
	if len(ix.files) == 0 {
		b.WriteString(" There are no Markdown files in the folder.")
	}
	if len(g.left) > 0 {
		fmt.Fprintf(&b, "\nLeft out (%d):", len(g.left))
		for _, l := range g.left[:min(len(g.left), maxLeft)] {
			b.WriteString("\n- " + l)
		}
		if len(g.left) > maxLeft {
			b.WriteString("\n- …")
		}
	}
	return b.String()
}

var errNoIndexName = errors.New(`index_name is missing; it is a short name such as "docs"`)
