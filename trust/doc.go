// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

// Package trust describes what an agent's file may do beyond asking the person's own
// endpoint and reading beside itself, and remembers to what a person agreed.
//
// People share agent files like scripts. A file may start programs, allow its own
// calls, read other folders and name other hosts: these are its powers. [Claim] lists
// them, together with the hashes of all files that they come from. An [Agreement] is a
// person's answer, and a [Store] keeps answers by the hash of the claim: a file that
// has changed has another hash, and is asked about again.
package trust
