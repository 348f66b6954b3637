// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"database/sql"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// J10: what is accepted of a server is read from the connection string as the
// driver reads it, and the rest of the string stays as it was written.
func TestUnsafeParameterIsCutOut(t *testing.T) {
	for _, test := range []struct {
		dsn, rest string
		accepted  []string
	}{
		{`host=h password='a  b' antiphon_unsafe=fsync`, `host=h password='a  b'`, []string{"fsync"}},
		{`host=h antiphon_unsafe = 'fsync,unlogged'  password=x`, `host=h password=x`, []string{"fsync", "unlogged"}},
		{`host=h password='x antiphon_unsafe=fsync y'`, `host=h password='x antiphon_unsafe=fsync y'`, nil},
		{`host=h password='it\'s antiphon_unsafe=fsync' user=u`, `host=h password='it\'s antiphon_unsafe=fsync' user=u`, nil},
		{`host=h password=x\ antiphon_unsafe=fsync`, `host=h password=x\ antiphon_unsafe=fsync`, nil},
		{`host=h password=x\   antiphon_unsafe=fsync`, `host=h password=x\ `, []string{"fsync"}},
		{"antiphon_unsafe=fsync\n\thost=h", "host=h", []string{"fsync"}},
		{`antiphon_unsafe=fsync`, ``, []string{"fsync"}},
		{`host=h antiphon_unsafe=a user=u antiphon_unsafe=b`, `host=h user=u`, []string{"b", "a"}},
		{`postgres://u:p%20a@h/db?antiphon_unsafe=fsync`, `postgres://u:p%20a@h/db`, []string{"fsync"}},
		{`postgres://u:p@h/db?x=a%20b&antiphon_unsafe=fsync%2Cunlogged`, `postgres://u:p@h/db?x=a%20b`, []string{"fsync", "unlogged"}},
		{`postgresql://h/db?antiphon_unsafe=fsync&sslmode=disable`, `postgresql://h/db?sslmode=disable`, []string{"fsync"}},
		{`postgres:///db?host=/tmp&antiphon_unsafe=a&user=u&antiphon_unsafe=b`, `postgres:///db?host=/tmp&user=u`, []string{"b", "a"}},
		{`host=h password='never ends antiphon_unsafe=fsync`, `host=h password='never ends antiphon_unsafe=fsync`, nil},
		{``, ``, nil},
	} {
		rest, accepted := cutParameter(test.dsn, unsafeParameter)
		if rest != test.rest || !slices.Equal(accepted, test.accepted) {
			t.Errorf("%s\ngave %q, %q,\nwant %q, %q", test.dsn, rest, accepted, test.rest, test.accepted)
		}
		all, err := pgx.ParseConfig(test.dsn)
		if err != nil {
			continue
		}
		cut, err := pgx.ParseConfig(rest)
		if err != nil {
			t.Errorf("%s: the driver cannot read the rest: %v", test.dsn, err)
			continue
		}
		if cut.Password != all.Password || cut.Host != all.Host || cut.User != all.User || cut.Database != all.Database {
			t.Errorf("%s: the driver reads something else of %q", test.dsn, rest)
		}
		if _, still := cut.RuntimeParams[unsafeParameter]; still {
			t.Errorf("%s: the driver would send it to the server", test.dsn)
		}
	}
}

// A server that refuses the connection for its address or for a lack of encryption has not
// looked at the password.
func TestRefusedConnections(t *testing.T) {
	for code, want := range map[string]string{"28000": "sslmode=require", "28P01": "the password of the connection string"} {
		err := &pgconn.PgError{Severity: "FATAL", Code: code, Message: "no pg_hba.conf entry for host"}
		problem, hint := diagnosePostgres(code, err)
		if !strings.Contains(hint, want) || strings.Contains(problem, "no pg_hba.conf entry") != (code == "28000") {
			t.Errorf("%s: %s, %s", code, problem, hint)
		}
	}
}

// J6: what names the place for people has no part of a password in it.
func TestPlaceHasNoPassword(t *testing.T) {
	for _, dsn := range []string{`host=h password='x host=SECRET'`, `host=h password = SECRET`, `postgres://u:SECRET@h/db`, `password='SECRET dbname=SECRET`,
		`postgres://u:12/SECRET@h/db`, `postgres://u:12/SE@h:5/db?CRET`, `postgres://u:x/SECRET@h/db`, `postgres://u:12?SECRET@h/db`, `postgres://u:12#SECRET@h/db`,
		`postgres://u:1/2:SECRET@h/db`, `postgres://SECRET/@h/db`, `postgres://u:1/SECRET?@h/db`, `postgres:u:SECRET@h/db`, `postgres://u:@1/SECRET@h/db`, `postgres://u:1@2/SECRET@h:5432/db`,
	} {
		if place := postgresPlace(dsn); strings.Contains(place, "SECRET") {
			t.Errorf("%s is called %q", dsn, place)
		}
	}
}

// J6: a URL whose password is not escaped names another server than the person means. That
// server is not asked for anything, because the question would have the rest of the password.
func TestUnescapedPasswordGoesNowhere(t *testing.T) {
	opened := func(string) (*sql.DB, error) {
		t.Error("a server was asked")
		return nil, errors.New("no server")
	}
	for _, dsn := range []string{`postgres://u:12/SECRET@h/db`, `postgres://u:12/SE@h:5/db?CRET`, `postgres://u:12?SECRET@h/db`, `postgres://u:12#SECRET@h/db`, `postgres://u:@1/SECRET@h/db`} {
		_, err := OpenPostgres(t.Context(), dsn, opened, Options{})
		if err == nil || strings.Contains(err.Error(), "CRET") || !strings.Contains(err.Error(), "% escapes in the password") {
			t.Errorf("%s: %v", dsn, err)
		}
	}
	for _, dsn := range []string{`postgres://u:p%2F%40@h/db`, `postgres:///db?host=/tmp&user=a@b`, `postgres://u@h`, `host=/tmp password=a/@b`, `postgres://h/d%40b`} {
		if spills(dsn) {
			t.Errorf("%s is refused", dsn)
		}
	}
}
