// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"context"
	"net/url"
	"slices"
	"strings"

	"github.com/antiphon-go/antiphon/session/store"
)

// unsafeParameter is the parameter of a connection string that lists the unsafe
// server settings the user accepts: those with which a server may lose committed
// data.
const unsafeParameter = "antiphon_unsafe"

// cutParameter removes our own parameter from a connection string and returns its
// values; the driver would send it on to the server, which does not know it. The
// rest of the string is unchanged, byte for byte.
func cutParameter(dsn, name string) (rest string, values []string) {
	list := parameters(dsn)
	// From the end, so that the offsets of the parameters before stay valid.
	for i, p := range slices.Backward(list) {
		if p.name != name {
			continue
		}
		values = append(values, strings.Split(p.value, ",")...)
		from, to := p.from, p.to
		switch rest := strings.TrimLeft(dsn[to:], spaces); {
		case !isURL(dsn) && rest != "":
			to = len(dsn) - len(rest) // and the space after it
		case !isURL(dsn) && i > 0:
			from, to = list[i-1].to, len(dsn) // and the space before it
		case strings.HasPrefix(rest, "&"):
			to++
		case isURL(dsn):
			from-- // and the & or ? before it
		}
		dsn = dsn[:from] + dsn[to:]
	}
	return dsn, values
}

// spaces are the characters that may separate parameters.
const spaces = " \t\n\r\v\f"

// parameter is a setting in a connection string. It occupies the bytes from from to
// to.
type parameter struct {
	name, value string
	from, to    int
}

// isURL reports whether drivers read a connection string as a URL.
func isURL(dsn string) bool {
	return strings.HasPrefix(dsn, "postgres://") || strings.HasPrefix(dsn, "postgresql://")
}

// parameters returns the settings in a connection string: the query parameters of a
// URL, or keywords and values as libpq reads them. It stops at a syntax error, which
// the driver reports.
func parameters(dsn string) []parameter {
	if isURL(dsn) {
		return queryParameters(dsn)
	}
	var list []parameter
	for at := 0; ; {
		at += len(dsn[at:]) - len(strings.TrimLeft(dsn[at:], spaces))
		name, behind, ok := strings.Cut(dsn[at:], "=")
		if !ok {
			return list
		}
		p := parameter{name: strings.TrimRight(name, spaces), from: at}
		behind = strings.TrimLeft(behind, spaces)
		if p.value, behind, ok = parameterValue(behind); !ok {
			return list
		}
		at = len(dsn) - len(behind)
		p.to = at
		list = append(list, p)
	}
}

// parameterValue reads a value, which may be quoted. A backslash escapes the
// character after it.
func parameterValue(s string) (value, behind string, ok bool) {
	s, quoted := strings.CutPrefix(s, "'")
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case quoted && c == '\'':
			return b.String(), s[i+1:], true
		case !quoted && strings.IndexByte(spaces, c) >= 0:
			return b.String(), s[i:], true
		case c == '\\' && i+1 < len(s):
			i++
		}
		b.WriteByte(s[i])
	}
	return b.String(), "", !quoted
}

// queryParameters returns the query parameters of a URL, with their offsets in it,
// which package net/url does not report.
func queryParameters(dsn string) []parameter {
	// Everything after # is a fragment and not a parameter.
	text, _, _ := strings.Cut(dsn, "#")
	before, query, ok := strings.Cut(text, "?")
	if !ok {
		return nil
	}
	var list []parameter
	at := len(before) + 1
	for field := range strings.SplitSeq(query, "&") {
		name, value, _ := strings.Cut(field, "=")
		name, err := url.QueryUnescape(name)
		if value, bad := url.QueryUnescape(value); err == nil && bad == nil {
			list = append(list, parameter{name, value, at, at + len(field)})
		}
		at += len(field) + 1
	}
	return list
}

// Durability returns the format of the database and the settings that decide whether
// committed data survives a crash.
func (s *Store) Durability(ctx context.Context) (d store.Durability, err error) {
	if err := s.opened(); err != nil {
		return d, err
	}
	if err = s.reads.row(ctx, `SELECT max(version) FROM antiphon_format`).Scan(&d.Format); err == nil {
		if s.postgres {
			d.Settings, err = s.durablePostgres(ctx)
		} else {
			d.Settings, err = s.durableSQLite(ctx)
		}
	}
	return d, s.fail("looking at its settings", err)
}

// durablePostgres returns the settings of the server that decide what a crash can
// lose.
func (s *Store) durablePostgres(ctx context.Context) ([]store.Setting, error) {
	var version, fsync, pages, commit, standbys, checksums string
	var unlogged int
	var replica bool
	err := s.reads.row(ctx, `SELECT current_setting('server_version'), current_setting('fsync'), current_setting('full_page_writes'),
		current_setting('synchronous_commit'), current_setting('synchronous_standby_names'), current_setting('data_checksums'), pg_is_in_recovery(),
		(SELECT count(*) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
			WHERE n.nspname = current_schema() AND c.relname LIKE 'antiphon\_%' AND c.relpersistence <> 'p')`).
		Scan(&version, &fsync, &pages, &commit, &standbys, &checksums, &replica, &unlogged)
	if err != nil {
		return nil, err
	}
	list := []store.Setting{
		{Name: "server", Value: version},
		{Name: "fsync", Value: fsync},
		{Name: "full_page_writes", Value: pages},
		{Name: "unlogged", Value: "none"},
		{Name: "synchronous_commit", Value: commit},
		{Name: "synchronous_standby_names", Value: standbys, Note: "no standby has to have a commit: a failover may lose the newest"},
		{Name: "data_checksums", Value: checksums, Note: "entries and payloads have checksums of their own"},
	}
	if fsync != "on" {
		list[1].Weak = "the server does not wait for its disk: a power cut loses what was committed"
	}
	if pages != "on" {
		list[2].Weak = "a power cut may tear pages, unless the file system never does"
	}
	if unlogged > 0 {
		list[3].Value = "some tables"
		list[3].Weak = "a crash of the server empties tables that are not logged; ALTER TABLE … SET LOGGED mends that"
	}
	if commit != "on" && commit != "remote_apply" {
		list[4].Note = "overridden: each commit of ours waits for the disk"
	}
	if standbys != "" {
		list[5].Note = ""
	}
	return list, nil
}

// refuseUnsafe returns an error if the server's settings may lose committed data,
// except for settings that the user accepted by name.
func (s *Store) refuseUnsafe(ctx context.Context, accepted []string) error {
	list, err := s.durablePostgres(ctx)
	if err != nil {
		return err
	}
	for _, setting := range list {
		if setting.Weak != "" && !slices.Contains(accepted, setting.Name) {
			return &Error{Store: s.place, Op: "opening", Problem: setting.Name + " = " + setting.Value + ": " + setting.Weak,
				Hint: "change that, or accept it with the parameter " + unsafeParameter + "=" + setting.Name + " of the connection string"}
		}
	}
	return nil
}

// durableSQLite returns the settings of the connection for writes, and what is known
// of the file system, on which they depend.
func (s *Store) durableSQLite(ctx context.Context) ([]store.Setting, error) {
	var list []store.Setting
	for _, name := range []string{"journal_mode", "synchronous", "secure_delete", "page_size"} {
		var value string
		if err := s.commit.conn.QueryRowContext(ctx, "PRAGMA "+name).Scan(&value); err != nil {
			return nil, err
		}
		setting := store.Setting{Name: name, Value: value}
		switch {
		case name == "journal_mode" && value != "wal":
			setting.Weak = "the store needs wal"
		case name == "synchronous" && value == "2":
			setting.Value = "FULL"
		case name == "synchronous" && value != "3":
			setting.Weak = "it does not wait for the disk: a power cut loses what was committed"
		case name == "secure_delete" && value != "1":
			setting.Note = "what is deleted stays in the file until sessions gc"
		}
		list = append(list, setting)
	}
	kind, weak := fileSystem(s.path)
	return append(list, store.Setting{Name: "file system", Value: kind, Weak: weak}), nil
}
