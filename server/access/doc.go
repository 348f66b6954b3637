// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

// Package access decides who may use a [server.Server], and how much: keys with scopes,
// limits and projects, bounds for all clients together, usage, and what an operator looks
// at. [Guard] is the handler, and [Keys] a file of keys.
//
// # Keys and projects
//
// A client sends a key as "Authorization: Bearer KEY". What is made with a key belongs to
// the key's project. Each project has a server of its own, so nothing in memory is shared,
// and what another project has made is not found, exactly as what does not exist (rule V3 in docs/rules.md).
//
// Keys are in a file and not in a store of sessions: a server must know them before it
// opens a store, every kind of store can be used, several servers can be given the same
// file, and neither a backup nor an export of sessions has them. The file has hashes.
//
// # Limits
//
// Limits of a key are counted by each process for itself. Several servers with the same
// keys therefore allow several times as much. What a key has cost today survives a restart
// if the program tells it to [Guard.Spent].
package access
