// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

// Package sqlstore keeps sessions in a database, SQLite or Postgres, by way of
// database/sql. It opens no driver: the program does.
//
// # How a session is kept
//
// A log belongs to a session, has a number and, if it is a fork, another log
// that it begins with, up to an entry: logs are a tree, and forking copies
// nothing. A row holds the entries of one append, one line of JSON each; when a
// writer lets go of a session, rows are put together, so that a long log is read
// in few. Payloads of 4 KiB and more are taken out of items and kept once, by their
// SHA-256, in chunks; a log refers to those that it needs. A nested session
// belongs to the log that names it, and is there as long as that is.
//
// # Encryption
//
// A database that is new and opened with [Options.Key] is encrypted: each entry,
// each part of a blob and each title by itself, bound to its place. Ids, names,
// paths, tags, owners, times and sizes stay readable. There is no index of words.
//
// # What is promised
//
// An append is in the database, with its payloads, or it is not; when it returns
// without an error, it is durable. It names the entry that it follows, and is
// refused if there is another. The store orders and decides
// nothing by a clock.
package sqlstore
