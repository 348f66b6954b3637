// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/antiphon-go/antiphon/internal/show"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/session/store"
)

// filter chooses sessions, and a page of them.
type filter struct {
	Archived bool     `help:"Include archived sessions."`
	Nested   bool     `help:"Include sessions of subagents."`
	Owner    string   `placeholder:"OWNER" help:"Only sessions of this owner."`
	Tag      []string `sep:"none" placeholder:"TAG" help:"Only sessions with this tag; if repeated, with all of the tags."`
	After    string   `placeholder:"CURSOR" help:"Continue after the page that ended with this cursor."`
}

// query returns the query for an agent's file, or for all files if it is "".
func (f *filter) query(file string, limit int) (q session.Query, err error) {
	q = session.Query{Archived: f.Archived, Nested: f.Nested, Owner: f.Owner, Tags: f.Tag, After: f.After}
	if limit < 0 {
		return q, usage(fmt.Errorf("--limit %d: give 0 for all, or how many", limit))
	}
	if limit > 0 {
		q.Limit = limit + 1 // one more, to see whether there are more
	}
	if file != "" {
		if q.Path, err = resolvedOnce(file); err != nil {
			return q, usage(err)
		}
	}
	return q, nil
}

// upTo yields one page. more prints how to continue if there are more values.
func upTo[T any](std stdio, limit int, all iter.Seq2[T, error], cursor func(T) string) (page iter.Seq2[T, error], more func()) {
	next := ""
	more = func() {
		if next != "" {
			fmt.Fprintf(std.err, "antiphon: there are more: --after %s continues, --limit 0 shows all\n", next)
		}
	}
	return func(yield func(T, error) bool) {
		n, last := 0, ""
		for one, err := range all {
			if err == nil && limit > 0 && n == limit {
				next = last
				return
			}
			if n++; err == nil {
				last = cursor(one)
			}
			if !yield(one, err) {
				return
			}
		}
	}, more
}

// printEach prints values as one JSON array, each as it arrives.
func printEach[T any](c *sessionsCommand, std stdio, values iter.Seq2[T, error]) error {
	out := &hidingWriter{out: bufio.NewWriterSize(toJSON(std.out), 64<<10), hide: c.hide}
	enc := jsontext.NewEncoder(out, jsontext.WithIndent("  "))
	err := enc.WriteToken(jsontext.BeginArray)
	for value, failed := range values {
		if err = errors.Join(err, failed); err != nil {
			return err
		}
		err = json.MarshalEncode(enc, value, lineOptions)
	}
	if err == nil {
		err = enc.WriteToken(jsontext.EndArray)
	}
	return errors.Join(err, out.end())
}

// listCommand is antiphon sessions list.
type listCommand struct {
	File  string `arg:"" optional:"" help:"Only sessions of this agent's file."`
	Limit int    `default:"50" help:"The maximum number; 0 means all."`
	filter
}

// Run lists.
func (c *listCommand) Run(ctx context.Context, std stdio, env environment, all *sessionsCommand) error {
	q, err := c.query(c.File, c.Limit)
	if err != nil {
		return err
	}
	return all.opened(ctx, env, false, func(store keeper) error {
		infos, more := upTo(std, c.Limit, store.List(ctx, q), func(i session.Info) string { return i.Cursor })
		defer more()
		if all.JSON {
			return badAfter(printEach(all, std, infos))
		}
		nothing := "no sessions (--archived lists archived ones); antiphon run FILE --session NAME makes one"
		if c.File != "" || c.Owner != "" || len(c.Tag) > 0 || c.After != "" {
			nothing = "no session matches (--archived and --nested include those sessions)"
		}
		return badAfter(all.table(std, infos, nothing, all.unread(env, store)))
	})
}

// badAfter is the error for an invalid cursor.
func badAfter(err error) error {
	if errors.Is(err, session.ErrBadCursor) {
		return usage(fmt.Errorf("--after: %w", err))
	}
	return err
}

// unread reports whether titles of a store cannot be read because its key is not
// given.
func (f *storeFlag) unread(env environment, k keeper) bool {
	source, err := f.source(env)
	return store.Encrypted(k) && (source == nil || err != nil)
}

// tableBlock is the number of lines of a table with the same column widths.
const tableBlock = 500

// sessionRow is a row of a list of sessions.
type sessionRow [6]string

// The columns of a list of sessions.
const (
	columnName = iota
	columnID
	columnEntries
	columnUpdated
	columnFile
	columnTitle
)

// table prints sessions for people, or the text nothing. unread means that titles
// are encrypted.
func (c *sessionsCommand) table(std stdio, infos iter.Seq2[session.Info, error], nothing string, unread bool) error {
	rows := []sessionRow{{"NAME", "ID", "ENTRIES", "UPDATED", "FILE", "TITLE"}}
	n := 0
	for info, err := range infos {
		if err != nil {
			return errors.Join(printSessions(std.out, rows), err)
		}
		title := show.Shorten(c.hide(info.Title), 40)
		if unread {
			title = "(encrypted)"
		}
		rows = append(rows, sessionRow{cmp.Or(show.Printable(info.Name), "-"), info.ID, strconv.FormatInt(info.Entries, 10),
			when(info.Updated), cmp.Or(info.Path, "-"), title + show.Printable(specials(info))})
		if n++; n%tableBlock == 0 {
			if err := printSessions(std.out, rows); err != nil {
				return err
			}
			rows = nil
		}
	}
	if n == 0 {
		fmt.Fprintln(std.err, "antiphon: "+nothing)
		return nil
	}
	err := printSessions(std.out, rows)
	if unread {
		fmt.Fprintln(std.err, "antiphon: the store is encrypted; to see titles and texts, give its key: --store-key WHERE, or $ANTIPHON_STORE_KEY")
	}
	return err
}

// printSessions prints a part of a list of sessions. On a terminal it fits the width.
func printSessions(out io.Writer, rows []sessionRow) error {
	if show.IsTerminal(out) {
		_, err := io.WriteString(out, fitSessions(rows, show.WidthOf(out)))
		return err
	}
	w := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	for _, r := range rows {
		r[columnFile] = show.Shorten(r[columnFile], 60)
		fmt.Fprintln(w, strings.Join(r[:], "\t"))
	}
	return w.Flush()
}

// leastTitle is how many columns a title takes before another column is left out.
const leastTitle = 24

// fitSessions returns sessions with a line for each: what a command takes as its name, whole, and as much
// of the rest as so many columns hold.
func fitSessions(rows []sessionRow, columns int) string {
	rows = slices.Clone(rows)
	named := map[string]int{"-": 2}
	for _, r := range rows {
		named[r[columnName]]++
	}
	for i := range rows {
		r := &rows[i]
		if named[r[columnName]] > 1 {
			r[columnName] = r[columnID]
		}
		r[columnFile] = show.Printable(filepath.Base(r[columnFile]))
	}
	width := func(column int) (w int) {
		for _, r := range rows {
			w = max(w, show.ColumnsOf(r[column]))
		}
		return w
	}
	room := columns - 1 - width(columnName)
	shown := map[int]bool{columnName: true}
	for _, column := range []int{columnTitle, columnUpdated, columnFile, columnEntries, columnID} {
		needs := 2 + width(column)
		if column == columnTitle {
			needs = min(needs, 2+leastTitle)
		}
		if shown[column] = needs <= room; shown[column] {
			room -= needs
		}
	}
	title := room + min(width(columnTitle), leastTitle)
	var b strings.Builder
	for _, r := range rows {
		gap := 0
		for column, text := range r {
			if !shown[column] {
				continue
			}
			if column == columnTitle {
				text = fitted(text, title)
			}
			b.WriteString(strings.Repeat(" ", gap) + text)
			gap = width(column) - show.ColumnsOf(text) + 2
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// searchCommand is antiphon sessions search.
type searchCommand struct {
	Words []string `arg:"" help:"Words that one entry must contain, in any order; words in double quotes must follow one another."`
	In    string   `placeholder:"SESSION" help:"Search only this session, and print every place."`
	File  string   `placeholder:"AGENT" help:"Only in sessions of this agent's file."`
	Limit int      `default:"20" help:"The maximum number; 0 means all."`
	filter
}

// Help is shown by antiphon sessions search --help.
func (searchCommand) Help() string {
	return `Looks in what users and models said, in outputs of tools, and in titles that
people gave. A word is a whole word. Case, accents and punctuation do not matter, and there is no other
syntax than double quotes. Each session is printed once, with its newest place;
--in prints each place of one. It does not find what was withdrawn, and what is kept
apart from its entry: files, and the rest of an output that was too long.

Examples:
  antiphon sessions search 'parser "off by one"'
  antiphon sessions search --in work -- --verbose`
}

// Run searches.
func (c *searchCommand) Run(ctx context.Context, std stdio, env environment, all *sessionsCommand) error {
	q, err := c.query(c.File, c.Limit)
	if err != nil {
		return err
	}
	what := session.Search{Words: strings.Join(c.Words, " "), Query: q}
	return all.opened(ctx, env, false, func(k keeper) error {
		searcher, err := as[session.Searcher](k, "search")
		if err != nil {
			return err
		}
		if c.In != "" {
			info, err := find(ctx, k, c.In, false)
			if err != nil {
				return err
			}
			what.In = info.ID
		}
		places, more := upTo(std, c.Limit, searcher.Search(ctx, what), func(f session.SearchResult) string { return f.Cursor })
		defer more()
		if all.JSON {
			return badSearch(printEach(all, std, places), store.Encrypted(k))
		}
		nothing := "nothing found: one entry must contain all words, each as a whole word (--archived and --nested include those sessions)"
		if c.In != "" {
			nothing = "nothing found in " + show.Printable(c.In) + ": one entry must contain all words, each as a whole word"
		}
		return badSearch(all.places(std, places, nothing), store.Encrypted(k))
	})
}

// badSearch gives errors about the words or the cursor the exit code of a bad
// argument.
func badSearch(err error, encrypted bool) error {
	switch {
	case errors.Is(err, session.ErrNoWords):
		return usage(err)
	case errors.Is(err, session.ErrNoIndex) && encrypted:
		return usage(fmt.Errorf("%w\n  hint: --in SESSION searches in one session", err))
	case errors.Is(err, session.ErrNoIndex):
		return usage(fmt.Errorf("%w\n  hint: antiphon sessions index builds it; --in SESSION searches in one session without it", err))
	}
	return badAfter(err)
}

// places prints search results for people.
func (c *sessionsCommand) places(std stdio, places iter.Seq2[session.SearchResult, error], nothing string) error {
	n := 0
	for f, err := range places {
		if err != nil {
			return err
		}
		n++
		at := "title"
		if f.Entry > 0 {
			at = fmt.Sprintf("entry %d, %s, %s", f.Entry, when(f.Time), f.By)
		}
		text := fmt.Sprintf("%s  %s%s", cmp.Or(f.Session.Name, "-"), f.Session.ID, specials(f.Session))
		if _, err := fmt.Fprintf(std.out, "%s\n  %s: %s\n", show.Printable(text), at, show.Printable(c.hide(f.Snippet))); err != nil {
			return err
		}
	}
	if n == 0 {
		_, err := fmt.Fprintln(std.err, "antiphon: "+nothing)
		return err
	}
	return nil
}

// tagCommand is antiphon sessions tag.
type tagCommand struct {
	Session string   `arg:"" help:"The session."`
	Tags    []string `arg:"" help:"+TAG adds a tag, -TAG removes it."`
}

// tagsLast moves the tags to remove after a --, so that -TAG is not read as a flag.
// Only -h and arguments that begin with -- are flags.
func tagsLast(args []string) []string {
	command := 0 // the number of words of sessions tag seen so far
	var kept, tags []string
	for i := 0; i < len(args); i++ {
		arg := args[i]
		switch {
		case arg == "--":
			return slices.Concat(kept, args[i:], tags)
		case slices.Contains([]string{"--store", "--store-key", "--store-retry"}, arg) && i+1 < len(args):
			kept = append(kept, arg, args[i+1])
			i++
		case command == 2 && arg != "-h" && (strings.HasPrefix(arg, "+") || strings.HasPrefix(arg, "-") && !strings.HasPrefix(arg, "--")):
			tags = append(tags, arg)
		default:
			if command < 2 && !strings.HasPrefix(arg, "-") {
				if arg != [...]string{"sessions", "tag"}[command] {
					return args
				}
				command++
			}
			kept = append(kept, arg)
		}
	}
	if len(tags) == 0 {
		return args
	}
	return append(append(kept, "--"), tags...)
}

// Help is shown by antiphon sessions tag --help.
func (tagCommand) Help() string {
	return `A tag is one word, such as bug or customer=4711.

Examples:
  antiphon sessions tag work +bug -open
  antiphon sessions tag work -open --json`
}

// Run tags.
func (c *tagCommand) Run(ctx context.Context, std stdio, env environment, all *sessionsCommand) error {
	var change session.Labels
	for _, word := range c.Tags {
		tag := word[min(1, len(word)):]
		switch {
		case word == "+" || word == "-":
			return usage(fmt.Errorf("%q: write the tag after it: a tag is one word", word))
		case strings.HasPrefix(word, "+"):
			change.Tags = append(change.Tags, tag)
		case strings.HasPrefix(word, "-"):
			change.Untag = append(change.Untag, tag)
		default:
			return usage(fmt.Errorf("%q: write +%[1]s to add the tag, -%[1]s to remove it", word))
		}
	}
	return all.withWhole(ctx, env, c.Session, func(store keeper, info session.Info) error {
		if err := store.Label(ctx, info.ID, change); err != nil {
			return unlabelled(err)
		}
		for _, tag := range change.Untag {
			if !slices.Contains(info.Tags, tag) {
				fmt.Fprintln(std.err, show.Printable(fmt.Sprintf("antiphon: %s had no tag %s to remove", info.ID, all.hide(tag))))
			}
		}
		now, err := store.Info(ctx, info.ID)
		if err != nil {
			return err
		}
		return all.changed(ctx, std, store, info.ID, "%s has the tags: %s", info.ID, cmp.Or(strings.Join(now.Tags, " "), "none"))
	})
}

// indexCommand is antiphon sessions index.
type indexCommand struct {
	Off bool `help:"Remove the index: sessions search does not work until it is built again."`
}

// Help is shown by antiphon sessions index --help.
func (indexCommand) Help() string {
	return `A search uses an index of the words that were said. It is kept up to date by
itself; building it anew repairs one that is damaged. With --off the store keeps
none, for all programs that use it.`
}

// Run indexes.
func (c *indexCommand) Run(ctx context.Context, std stdio, env environment, all *sessionsCommand) error {
	return all.opened(ctx, env, false, func(k keeper) error {
		indexer, err := as[store.Indexer](k, "keep an index")
		if err != nil {
			return err
		}
		if err := indexer.Index(ctx, !c.Off); err != nil {
			return err
		}
		outcome := struct {
			Index bool `json:"index"`
		}{!c.Off}
		if c.Off {
			return all.told(std, outcome, "the index is removed; antiphon sessions gc erases its bytes")
		}
		return all.told(std, outcome, "the search index is complete")
	})
}
