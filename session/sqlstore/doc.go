// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

// Package sqlstore stores sessions in a database, SQLite or Postgres, through
// database/sql. It does not import a driver: the program does.
//
// # How a session is stored
//
// Each session has a numbered log. The log of a fork begins with another log, up to
// a given entry. Logs therefore form a tree, and forking copies nothing. Each append
// writes a row with its entries, one line of JSON per entry. When a writer releases
// a session, rows are merged, so that a long log is read in few rows. Payloads of 4
// KiB or more are taken out of their items and stored once, in chunks, under their
// SHA-256; a log refers to the payloads that it needs. A nested session belongs to
// the log of the session that started it, and exists as long as that log.
//
// # Encryption
//
// A new database opened with [Options.Key] is encrypted: each entry, each chunk of a
// blob and each title is encrypted separately and bound to its place. Ids, names,
// paths, tags, owners, times and sizes stay readable. An encrypted database has no
// index of words.
//
// # Guarantees
//
// An append is atomic: either all of it is in the database, with its payloads, or
// none of it. When it returns without an error, it is durable. It names the entry
// that it follows, and is refused if the log has moved on, or if another process has
// taken the session's lease. No clock orders or decides anything, except that of a
// Postgres server, which decides when the lease of a lost holder has ended.
package sqlstore
