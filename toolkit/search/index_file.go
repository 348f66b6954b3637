// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package search

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"github.com/antiphon-go/antiphon/tool"
	"github.com/antiphon-go/antiphon/toolkit/internal/files"
)

const (
	// defaultIndexes is the folder of the indexes in the first root.
	defaultIndexes = ".chatmd/index"
	indexExtension = ".idx"
	allIndexes     = "all"
	// maxIndexBytes is the largest index that is read or written.
	maxIndexBytes = 256 << 20
)

// library is where documents and their indexes are: the roots of a Files.
type library struct {
	*files.Files
	read   *readIndexes // nil: every index is read anew
	judged *judgedCalls // nil in tools that do not search
}

// maxReadBytes is the size of the index files whose contents stay in memory
// between queries.
const maxReadBytes = 64 << 20

// readIndexes keeps decoded indexes as long as their files are unchanged, so that a
// query does not read and decode them again. It is safe for concurrent use.
type readIndexes struct {
	mu    sync.Mutex
	all   map[string]readIndex // by path
	bytes int64                // of their files
}

type readIndex struct {
	index *docIndex
	info  fs.FileInfo // of the file that it was read from
}

// get returns the index that was read from the file that info describes, or nil.
// An index is replaced by another file, so a new one differs by its identity, and
// one that another program writes in place by its size or its time.
func (r *readIndexes) get(path string, info fs.FileInfo) *docIndex {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	is := r.all[path]
	if is.index == nil || !os.SameFile(is.info, info) || is.info.Size() != info.Size() || !is.info.ModTime().Equal(info.ModTime()) {
		return nil
	}
	return is.index
}

// put keeps an index; all others go if there is no room for it beside them.
func (r *readIndexes) put(path string, ix *docIndex, info fs.FileInfo) {
	if r == nil || info.Size() > maxReadBytes {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if old, ok := r.all[path]; ok {
		r.bytes -= old.info.Size()
		delete(r.all, path)
	}
	if r.all == nil || r.bytes+info.Size() > maxReadBytes {
		r.all, r.bytes = make(map[string]readIndex), 0
	}
	r.all[path] = readIndex{ix, info}
	r.bytes += info.Size()
}

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

// loadIndex reads an index, unless it is in memory as the file has it now. Errors
// say how to fix it.
func (l library) loadIndex(ctx context.Context, asked string, at files.Place) (*docIndex, error) {
	held, release, err := l.PinPlace(ctx, asked, at, "read", false)
	if err != nil {
		return nil, err
	}
	defer func() { _ = release() }()
	file, info, err := held.Open("read")
	if err != nil {
		return nil, err
	}
	_ = file.Close() // it was opened for what it is: nothing was written
	if ix := l.read.get(at.Path(), info); ix != nil {
		return ix, nil
	}
	data, err := held.ReadAll(ctx, maxIndexBytes)
	if err != nil {
		return nil, err
	}
	ix, err := decodeIndex(string(data))
	if err != nil {
		return nil, unusableIndex(at, err)
	}
	ix.name = indexName(at)
	if int64(len(data)) == info.Size() {
		l.read.put(at.Path(), ix, info)
	}
	return ix, nil
}

// maxHead is how much of an index is read to know what it is of.
const maxHead = 64 << 10

// headOf reads what an index is of, and nothing else of it: its root and its folder.
func (l library) headOf(asked string, at files.Place) (*docIndex, error) {
	held, release, err := l.PinPlace(context.Background(), asked, at, "read", false)
	if err != nil {
		return nil, err
	}
	defer func() { _ = release() }()
	file, _, err := held.Open("read")
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	data, err := io.ReadAll(io.LimitReader(file, maxHead))
	if err != nil {
		return nil, err
	}
	_, rest, ok := strings.Cut(string(data), "\n")
	d := indexDecoder{data: rest}
	ix := &docIndex{name: indexName(at), description: d.text(), root: d.text(), folder: d.text()}
	if !ok || d.bad || !filepath.IsLocal(filepath.FromSlash(ix.folder)) {
		return nil, unusableIndex(at, errDamagedIndex)
	}
	return ix, nil
}

// aboutFolder is a folder, and the name of the index that is of it.
type aboutFolder struct{ index, root, folder string }

func aboutOf(ix *docIndex) aboutFolder { return aboutFolder{ix.name, ix.root, ix.folder} }

// judgedCalls remembers of each call the private folders that its indexes were of whenever it was judged: another
// program may exchange an index before it runs. It is safe for concurrent use.
type judgedCalls struct {
	mu    sync.Mutex
	about map[judgedCall]map[aboutFolder]bool
}

type judgedCall struct{ id, arguments string }

// mostJudged is how many calls are remembered. If there are more, all are forgotten, and show nothing private.
const mostJudged = 1000

func (j *judgedCalls) put(call tool.Call, about map[aboutFolder]bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	key := judgedCall{call.ID, call.Arguments}
	if before, judged := j.about[key]; judged { // again, such as when it begins: what nobody was asked about stays out
		maps.DeleteFunc(before, func(at aboutFolder, _ bool) bool { return !about[at] })
		return
	}
	if j.about == nil || len(j.about) == mostJudged {
		j.about = map[judgedCall]map[aboutFolder]bool{}
	}
	j.about[key] = about
}

func (j *judgedCalls) get(call tool.Call) map[aboutFolder]bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return maps.Clone(j.about[judgedCall{call.ID, call.Arguments}])
}

func (j *judgedCalls) forget(call tool.Call) {
	j.mu.Lock()
	defer j.mu.Unlock()
	delete(j.about, judgedCall{call.ID, call.Arguments})
}

func indexName(at files.Place) string { return strings.TrimSuffix(at.Base(), indexExtension) }

func unusableIndex(at files.Place, err error) error {
	return fmt.Errorf("the index %s cannot be used: %w. Make it again with index_markdown_docs and index_name %q", at, err, indexName(at))
}

// oldIndex returns the content of the previous index, or nil if there is none to
// build on.
func (l library) oldIndex(ctx context.Context, asked string, at files.Place) *contents {
	ix, err := l.loadIndex(ctx, asked, at)
	if err != nil {
		return nil
	}
	c, err := ix.contents()
	if err != nil {
		return nil
	}
	return c
}

// keepIndex writes an index atomically, unless the file already has that content.
func (l library) keepIndex(ctx context.Context, asked string, at files.Place, data []byte) error {
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
	held, release, err := l.Hold(ctx, asked, at)
	if err != nil {
		return at.Problem("write", err)
	}
	defer func() { _ = release() }()
	info, err := held.Dir().Lstat(held.OSPath())
	switch {
	case errors.Is(err, fs.ErrNotExist):
		info = nil
	case err != nil:
		return at.Problem("write", err)
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s is not a regular file; choose another index_name", at)
	case info.Size() == int64(len(data)):
		if old, err := held.ReadAll(ctx, maxIndexBytes); err == nil && bytes.Equal(old, data) {
			return nil
		}
	}
	if err := held.Replace(data, info); err != nil {
		if errors.Is(err, files.ErrChanged) {
			return fmt.Errorf("%s: %w", at, err)
		}
		return at.Problem("write", err)
	}
	return nil
}

// indexPlaces returns the indexes in a folder, by name. It returns none if the
// folder does not exist.
func (l library) indexPlaces(ctx context.Context, asked string) (places []files.Place, err error) {
	folder, err := l.indexFolder(asked)
	if err != nil {
		return nil, err
	}
	if _, err := folder.Dir().Stat(folder.OSPath()); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	held, release, err := l.PinPlace(ctx, asked, folder, "list", false)
	if err != nil {
		return nil, err
	}
	defer func() { _ = release() }()
	entries, err := held.Entries()
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

// The file of an index is a line that names format and version, then numbers
// (varints) and texts (a number, then so many bytes), then the CRC-32C of all that:
//
//	description, root, folder
//	files:      how many; each: path, 16 bytes of hash, how many snippets
//	snippets:   how many; each: gap to the end of the one before, bytes, lines between,
//	            lines, 8 bytes of sum, length, norm, headings kept from the one
//	            before, headings more, those
//	dictionary: how many words, bytes; each: bytes kept from the one before, the rest,
//	            how many postings, their bytes
//	postings:   bytes; each: 2 × the gap to the snippet before, + 1 if the word is in
//	            it more than once, and then how often
const (
	indexMagic   = "antiphon markdown index "
	indexVersion = 1
)

var (
	errDamagedIndex = errors.New("it is damaged")
	errNewerIndex   = errors.New("it was made by another version of this program")
	castagnoli      = crc32.MakeTable(crc32.Castagnoli)
)

func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// encode returns the file of an index. Equal indexes give equal bytes.
func (ix *docIndex) encode() []byte {
	b := fmt.Appendf(nil, "%s%d\n", indexMagic, indexVersion)
	for _, s := range []string{ix.description, ix.root, ix.folder} {
		b = appendText(b, s)
	}
	b = binary.AppendUvarint(b, uint64(len(ix.files)))
	for _, f := range ix.files {
		b = append(appendText(b, f.path), f.hash[:]...)
		b = binary.AppendUvarint(b, uint64(f.to-f.from))
	}
	b = binary.AppendUvarint(b, uint64(len(ix.snippets)))
	for _, f := range ix.files {
		var before snippet
		for _, s := range ix.snippets[f.from:f.to] {
			b = s.append(b, before)
			before = s.snippet
		}
	}
	b = binary.AppendUvarint(b, uint64(ix.terms))
	b = appendText(b, ix.dictionary)
	b = appendText(b, ix.postings)
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

func (s *indexedSnippet) append(b []byte, before snippet) []byte {
	for _, n := range []int{s.start - before.end, s.end - s.start, s.first - before.last, s.last - s.first} {
		b = binary.AppendUvarint(b, uint64(n))
	}
	b = binary.LittleEndian.AppendUint64(b, s.sum)
	b = binary.AppendUvarint(b, s.length)
	b = binary.AppendUvarint(b, s.norm)
	kept := 0
	for kept < len(s.headings) && kept < len(before.headings) && s.headings[kept] == before.headings[kept] {
		kept++
	}
	b = binary.AppendUvarint(b, uint64(kept))
	b = binary.AppendUvarint(b, uint64(len(s.headings)-kept))
	for _, h := range s.headings[kept:] {
		b = appendText(b, h)
	}
	return b
}

// decodeIndex parses an index. Of the words it checks only what costs no time;
// eachTerm and eachPosting check the rest when they read it.
func decodeIndex(data string) (*docIndex, error) {
	head, _, _ := strings.Cut(data[:min(len(data), 64)], "\n")
	number, ok := strings.CutPrefix(head, indexMagic)
	version, err := strconv.Atoi(number)
	if !ok || err != nil {
		return nil, errDamagedIndex
	}
	if version != indexVersion {
		return nil, errNewerIndex
	}
	end := len(data) - 4
	if end < len(head)+1 || crc32.Checksum([]byte(data[:end]), castagnoli) != binary.LittleEndian.Uint32([]byte(data[end:])) {
		return nil, errDamagedIndex
	}
	d := indexDecoder{data: data[len(head)+1 : end]}
	ix := &docIndex{description: d.text(), root: d.text(), folder: d.text()}
	d.files(ix)
	d.snippets(ix)
	ix.terms = d.count()
	ix.dictionary, ix.postings = d.text(), d.text()
	if d.bad || d.data != "" || !filepath.IsLocal(filepath.FromSlash(ix.folder)) {
		return nil, errDamagedIndex
	}
	return ix, nil
}

// indexDecoder reads what encode wrote. After a mistake it is bad, and all that
// it gives is empty.
type indexDecoder struct {
	data string
	bad  bool
}

func (d *indexDecoder) number() uint64 {
	var n uint64
	for i := 0; i < len(d.data) && i < binary.MaxVarintLen64; i++ {
		c := d.data[i]
		if c < 0x80 {
			if i == binary.MaxVarintLen64-1 && c > 1 {
				break
			}
			d.data = d.data[i+1:]
			return n | uint64(c)<<(7*i)
		}
		n |= uint64(c&0x7f) << (7 * i)
	}
	d.bad, d.data = true, ""
	return 0
}

// small is a number of bytes or lines of one file.
func (d *indexDecoder) small() int {
	n := d.number()
	if n > 1<<28 {
		d.bad, d.data = true, ""
		return 0
	}
	return int(n)
}

// count is a number of things that take a byte or more each.
func (d *indexDecoder) count() int {
	n := d.number()
	if n > uint64(len(d.data)) {
		d.bad, d.data = true, ""
		return 0
	}
	return int(n)
}

func (d *indexDecoder) take(n int) string {
	if n > len(d.data) {
		d.bad, d.data = true, ""
		return strings.Repeat("\x00", min(n, 16))
	}
	s := d.data[:n]
	d.data = d.data[n:]
	return s
}

func (d *indexDecoder) text() string { return d.take(d.count()) }

func (d *indexDecoder) files(ix *docIndex) {
	n, at := d.count(), 0
	for range n {
		f := indexedFile{path: d.text(), from: at}
		copy(f.hash[:], d.take(len(f.hash)))
		at += d.small()
		f.to = at
		sorted := len(ix.files) == 0 || ix.files[len(ix.files)-1].path < f.path
		if d.bad || !sorted || at > len(d.data) || !filepath.IsLocal(filepath.FromSlash(f.path)) {
			d.bad, d.data = true, ""
			return
		}
		ix.files = append(ix.files, f)
	}
}

func (d *indexDecoder) snippets(ix *docIndex) {
	n := d.count()
	if !d.bad && (len(ix.files) == 0 && n > 0 || len(ix.files) > 0 && n != ix.files[len(ix.files)-1].to) {
		d.bad, d.data = true, ""
		return
	}
	for i, f := range ix.files {
		var before snippet
		for range f.to - f.from {
			s := d.snippet(before)
			if s.file = i; d.bad {
				return
			}
			ix.words += s.length
			ix.snippets = append(ix.snippets, s)
			before = s.snippet
		}
	}
}

func (d *indexDecoder) snippet(before snippet) (s indexedSnippet) {
	s.start = before.end + d.small()
	s.end = s.start + d.small()
	s.first = before.last + d.small()
	s.last = s.first + d.small()
	s.sum = binary.LittleEndian.Uint64([]byte(d.take(8)))
	s.length, s.norm = d.number(), d.number()
	kept, more := d.small(), d.count()
	if kept > len(before.headings) || kept+more > 64 || s.last > 1<<28 || s.end > 1<<28 || s.length > 1<<30 || s.norm > 1<<40 {
		d.bad, d.data = true, ""
		return s
	}
	s.headings = before.headings[:kept:kept]
	for range more {
		s.headings = append(s.headings, d.text())
	}
	return s
}

// term is a word of the dictionary; its bytes are good until the next.
type term struct {
	word     []byte
	count    int // of postings
	from, to int // its postings
}

type dictionaryWriter struct {
	n               int
	before          string
	words, postings []byte
}

func (w *dictionaryWriter) add(word string, list []posting) {
	kept := 0
	for kept < len(word) && kept < len(w.before) && word[kept] == w.before[kept] {
		kept++
	}
	from, last := len(w.postings), int32(-1)
	for _, p := range list {
		code := uint64(p.id-last) << 1
		if p.count > 1 {
			w.postings = binary.AppendUvarint(w.postings, code|1)
			code = uint64(p.count)
		}
		w.postings = binary.AppendUvarint(w.postings, code)
		last = p.id
	}
	w.words = binary.AppendUvarint(w.words, uint64(kept))
	w.words = appendText(w.words, word[kept:])
	w.words = binary.AppendUvarint(w.words, uint64(len(list)))
	w.words = binary.AppendUvarint(w.words, uint64(len(w.postings)-from))
	w.n++
	w.before = word
}

// eachTerm calls visit for every word, in order.
func (ix *docIndex) eachTerm(visit func(t term) error) error {
	d := indexDecoder{data: ix.dictionary}
	var word []byte
	at := 0
	for range ix.terms {
		kept, rest := d.small(), d.text()
		t := term{count: d.small(), from: at}
		at += d.small()
		if t.to = at; d.bad || kept > len(word) || kept+len(rest) > 1<<10 || at > len(ix.postings) {
			return errDamagedIndex
		}
		word = append(word[:kept], rest...)
		t.word = word
		if err := visit(t); err != nil {
			return err
		}
	}
	if d.data != "" || at != len(ix.postings) {
		return errDamagedIndex
	}
	return nil
}

// eachPosting calls visit for every snippet with a word, in order.
func (ix *docIndex) eachPosting(t term, visit func(p posting)) error {
	d := indexDecoder{data: ix.postings[t.from:t.to]}
	last := -1
	for range t.count {
		code, count := d.number(), 1
		if code&1 == 1 {
			count = d.small()
		}
		gap := code >> 1
		if d.bad || count == 0 || gap == 0 || gap >= uint64(len(ix.snippets)-last) {
			return errDamagedIndex
		}
		last += int(gap)
		visit(posting{int32(last), int32(count)})
	}
	if d.data != "" {
		return errDamagedIndex
	}
	return nil
}
