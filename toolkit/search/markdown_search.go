// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

// Package search holds the tools that index Markdown files and search in them. It
// cuts the text into snippets (snippet.go), finds their words (snippet_words.go),
// builds an index (index.go), stores it in a file (index_file.go), and ranks the
// snippets that match a query (rank.go). The files and the index are in the roots
// that toolkit.Open opens.
package search

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/antiphon-go/antiphon/tool"
	"github.com/antiphon-go/antiphon/toolkit/internal/files"
	"github.com/antiphon-go/antiphon/toolkit/internal/wording"
)

// Limits of one call of markdown_search.
const (
	usualResults     = 5
	MaxSearchResults = 50
	maxQuery         = 4000     // in bytes
	maxResultsBytes  = 48 << 10 // results after these are listed without their text
	maxIndexes       = 64       // searched at once
	maxGone          = 200      // results whose text is not in their files any more
)

//go:embed markdown_search.md
var markdownSearchText string

type markdownSearchInput struct {
	Query        string `json:"query" jsonschema:"the words to look for"`
	K            int    `json:"k,omitzero" jsonschema:"how many results, at most 50; default 5"`
	IndexName    string `json:"index_name,omitzero" jsonschema:"the index to search; default: all"`
	VectorDBRoot string `json:"vector_db_root,omitzero" jsonschema:"the folder that the indexes are kept in; default .chatmd/index in the first root"`
}

// Tool returns the tool that searches the indexes which [IndexTool] has made, in
// the roots of f. It is read-only.
func Tool(name string, f *files.Files) (tool.Tool, error) {
	if err := files.Check(f); err != nil {
		return nil, err
	}
	l := library{f, new(readIndexes), new(judgedCalls)}
	t, err := tool.New(name, f.Describe(markdownSearchText), l.markdownSearch, tool.ReadOnly(), tool.Idempotent())
	if err != nil {
		return nil, err
	}
	return f.Guard(t, files.None, l.readsOf), nil
}

// readsOf returns the folder of the indexes that a call names, and the private folders that the indexes are
// of: an index says what is read, and somebody else may have written it. What the call then shows of private
// folders is of these alone.
func (l library) readsOf(call tool.Call) []string {
	reads := indexFolderOf(call)
	if !l.AboveHome() {
		return reads
	}
	folders, names := reads, files.Texts(call.Arguments, "index_name")
	if len(folders) == 0 {
		folders = []string{""}
	}
	if len(names) == 0 {
		names = []string{""}
	}
	about := map[aboutFolder]bool{}
	for _, asked := range folders {
		places, _ := l.indexPlaces(context.Background(), asked) // the call reports the error
		if !slices.ContainsFunc(names, isAll) {
			places = slices.DeleteFunc(places, func(at files.Place) bool { return !slices.Contains(names, indexName(at)) })
		}
		for _, at := range places[:min(len(places), maxIndexes)] {
			if ix, err := l.headOf(asked, at); err == nil && l.isPrivate(ix) {
				about[aboutOf(ix)] = true
				reads = append(reads, cmp.Or(ix.root, l.Roots()[0].Name)+":"+ix.folder)
			}
		}
	}
	l.judged.put(call, about)
	return reads
}

// isAll reports whether a call that gives this index_name searches all indexes of the folder.
func isAll(name string) bool { return name == "" || name == allIndexes }

// isPrivate reports whether a person is asked about the folder of an index. They are not if a link leads there,
// because nothing is read through it.
func (l library) isPrivate(ix *docIndex) bool {
	folder, ok := l.In(ix.root, ix.folder)
	return ok && l.Private(folder) != "" && !folder.Led()
}

func (l library) markdownSearch(ctx context.Context, in markdownSearchInput) (string, error) {
	call, _ := tool.FromContext(ctx)
	defer l.judged.forget(call) // its id may come again in another conversation
	switch {
	case in.K < 0:
		return "", errors.New("k cannot be negative; it is how many results are wanted")
	case len(in.Query) > maxQuery:
		return "", fmt.Errorf("the query has %d bytes; the limit is %d. Give the words that matter", len(in.Query), maxQuery)
	case len(queryWords(in.Query)) == 0:
		return "", errors.New("the query has no words; give the words to look for")
	}
	indexes, remarks, err := l.indexesFor(ctx, in)
	if err != nil {
		return "", err
	}
	hits, err := rank(indexes, in.Query)
	if err != nil {
		return "", fmt.Errorf("an index cannot be used: %w. Make %s again with index_markdown_docs", err, namesOf(indexes))
	}
	r := results{ctx: ctx, files: l, about: l.judged.get(call), want: min(cmp.Or(in.K, usualResults), MaxSearchResults), many: len(indexes) > 1}
	if err := r.add(hits); err != nil {
		return "", err
	}
	return r.text(indexes, remarks), nil
}

// indexesFor loads the indexes that a call refers to. If there are several, those
// that cannot be used are left out with a remark.
func (l library) indexesFor(ctx context.Context, in markdownSearchInput) (indexes []*docIndex, remarks []string, err error) {
	places, err := l.indexPlaces(ctx, in.VectorDBRoot)
	if err != nil {
		return nil, nil, err
	}
	if !isAll(in.IndexName) {
		at, err := l.indexPlace(in.VectorDBRoot, in.IndexName)
		if err != nil {
			return nil, nil, err
		}
		if !slices.ContainsFunc(places, func(p files.Place) bool { return p.Rel == at.Rel }) {
			return nil, nil, l.noIndex(ctx, in, places)
		}
		places = []files.Place{at}
	}
	if len(places) == 0 {
		return nil, nil, l.noIndex(ctx, in, nil)
	}
	return l.loadIndexes(ctx, in.VectorDBRoot, places)
}

// loadIndexes reads the indexes, up to the number that can be searched at once.
func (l library) loadIndexes(ctx context.Context, asked string, places []files.Place) (indexes []*docIndex, remarks []string, err error) {
	var wrong error
	size := 0
	for i, p := range places {
		if i == maxIndexes || size > maxIndexBytes {
			remarks = append(remarks, fmt.Sprintf("Only the first %d of %d indexes were searched; choose one with index_name.", i, len(places)))
			break
		}
		ix, err := l.loadIndex(ctx, asked, p)
		if ctx.Err() != nil {
			return nil, nil, ctx.Err()
		}
		if err != nil {
			wrong = cmp.Or(wrong, err)
			remarks = append(remarks, "Not searched: "+err.Error()+".")
			continue
		}
		size += len(ix.dictionary) + len(ix.postings)
		indexes = append(indexes, ix)
	}
	if len(indexes) == 0 {
		return nil, nil, wrong
	}
	return indexes, remarks, nil
}

// noIndex returns an error that lists the existing indexes or says how to make one.
func (l library) noIndex(ctx context.Context, in markdownSearchInput, places []files.Place) error {
	what := "there is no index"
	if !isAll(in.IndexName) {
		what = fmt.Sprintf("there is no index %q", in.IndexName)
	}
	if in.VectorDBRoot != "" {
		what += " in " + wording.Quoted(in.VectorDBRoot)
	}
	if len(places) == 0 {
		return errors.New(what + "; make one with index_markdown_docs, whose root is the folder with the Markdown files")
	}
	var names []string
	for _, p := range places[:min(len(places), maxIndexes)] {
		name := indexName(p)
		if ix, err := l.loadIndex(ctx, in.VectorDBRoot, p); err == nil && ix.description != "" {
			name += " (" + wording.Quoted(ix.description) + ")"
		}
		names = append(names, name)
	}
	return fmt.Errorf("%s; there are: %s", what, strings.Join(names, ", "))
}

func namesOf(indexes []*docIndex) string {
	var names []string
	for _, ix := range indexes {
		names = append(names, ix.name)
	}
	return strings.Join(names, ", ")
}

// results collects hits with their current texts.
type results struct {
	ctx     context.Context
	files   library
	want    int
	many    bool                 // several indexes are searched
	about   map[aboutFolder]bool // the private folders that a person was asked about
	out     []result
	gone    int // hits whose text no longer exists
	hidden  int // hits in private files that nobody was asked about
	refused int // hits in files that this call may not read

	doc  files.Place // the file that was read last
	body string
	now  []snippet // snippets of its current text, once needed
	err  error
}

type result struct {
	hit
	place files.Place
	snippet
	body string
}

// add adds the best hits whose text still exists, each text only once.
func (r *results) add(hits []hit) error {
	for _, h := range hits {
		if len(r.out) == r.want || r.gone == maxGone {
			break
		}
		p, ok := r.place(h)
		if ok && r.unasked(h, p) {
			r.hidden++
			continue
		}
		var res result
		if ok {
			res, ok = r.read(h, p)
		}
		if err := r.ctx.Err(); err != nil {
			return err
		}
		switch {
		case !ok && errors.Is(r.err, files.ErrMayNot):
			r.refused++
		case !ok:
			r.gone++
		case !slices.ContainsFunc(r.out, func(o result) bool { return o.place == res.place && o.start == res.start }):
			r.out = append(r.out, res)
		}
	}
	return nil
}

// place is the file of a hit. It reports false if its root is not there.
func (r *results) place(h hit) (files.Place, bool) {
	folder, ok := r.files.In(h.index.root, h.index.folder)
	if !ok {
		return files.Place{}, false
	}
	return folder.Entry(h.index.files[h.index.snippets[h.snippet].file].path), true
}

// unasked reports whether nobody was asked about a private file: index_markdown_docs would have left it out, or
// the index is not the one that was there when the call was judged.
func (r *results) unasked(h hit, p files.Place) bool {
	return r.files.AboveHome() && r.files.Private(p) != "" && !r.about[aboutOf(h.index)]
}

// read finds the text of a hit in its file p: in the same place, or wherever the
// same snippet is now.
func (r *results) read(h hit, p files.Place) (res result, ok bool) {
	s := h.index.snippets[h.snippet]
	if p != r.doc {
		var text []byte
		text, r.err = r.files.readDoc(r.ctx, "", p)
		r.doc, r.body, r.now = p, string(text), nil
	}
	if r.err != nil {
		return res, false
	}
	res = result{hit: h, place: p, snippet: s.snippet}
	if s.end <= len(r.body) && sumOf(r.body[s.start:s.end]) == s.sum && strings.Count(r.body[:s.start], "\n") == s.first-1 {
		res.body = r.body[s.start:s.end]
		return res, true
	}
	if r.now == nil {
		r.now = splitMarkdown(r.body)
	}
	for _, now := range r.now {
		if text := r.body[now.start:now.end]; sumOf(text) == s.sum {
			res.snippet, res.body = now, text
			return res, true
		}
	}
	return res, false
}

func (r *results) text(indexes []*docIndex, remarks []string) string {
	var b strings.Builder
	if len(r.out) == 0 {
		snippets := 0
		for _, ix := range indexes {
			snippets += len(ix.snippets)
		}
		fmt.Fprintf(&b, "Nothing found in %d snippets (indexes: %s). Try other words.", snippets, namesOf(indexes))
	}
	for i, res := range r.out {
		if i > 0 {
			b.WriteString("\n\n")
		}
		res.write(&b, i+1, r.many)
	}
	if r.gone > 0 {
		remarks = append(remarks, fmt.Sprintf("Hits that are left out, because their files have changed or are gone since they were indexed: %d. Index again with index_markdown_docs.", r.gone))
	}
	if r.hidden > 0 {
		remarks = append(remarks, fmt.Sprintf("Hits that are left out, because nobody was asked about their hidden files: %d.", r.hidden))
	}
	if r.refused > 0 {
		remarks = append(remarks, fmt.Sprintf("Hits that are left out, because this call may not read their files: %d.", r.refused))
	}
	for _, remark := range remarks {
		b.WriteString("\n\n" + remark)
	}
	return b.String()
}

// write writes one result: a line with its place, a line with its headings, and
// its text in a fence that the text cannot close.
func (res *result) write(b *strings.Builder, number int, many bool) {
	fmt.Fprintf(b, "[%d] %s, lines %d to %d, score %.2f", number, res.place, res.first, res.last, res.score)
	if many {
		fmt.Fprintf(b, ", index %s", res.index.name)
	}
	if len(res.headings) > 0 {
		b.WriteString("\n" + wording.Quoted(strings.Join(res.headings, " > ")))
	}
	if b.Len()+len(res.body) > maxResultsBytes {
		b.WriteString("\n(the text is left out: the results before it are long; read it with read_file)")
		return
	}
	fence := fenceFor(res.body)
	b.WriteString("\n" + fence + "markdown\n" + strings.ToValidUTF8(res.body, "\uFFFD") + "\n" + fence)
}

// fenceFor returns a fence that is longer than any run of backticks in the text.
func fenceFor(text string) string {
	longest, run := 2, 0
	for _, c := range []byte(text) {
		if c != '`' {
			run = 0
			continue
		}
		run++
		longest = max(longest, run)
	}
	return strings.Repeat("`", longest+1)
}
