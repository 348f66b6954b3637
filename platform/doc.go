// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

// Package platform is a client of the parts of the API beside responses: models,
// embeddings, files, vector stores, moderations and images. A [Client] has the same
// configuration as a responses.Client, and one converts to the other:
//
//	c := (*platform.Client)(model) // model is a *responses.Client
//
// Keys, retries, limits, profiles and errors are those of package dialect.
//
// The package opens no file. It sends what the caller passes as a reader
// ([Source]), while it is sent and without keeping it in memory, and returns the
// content of stored files as it arrives ([Client.FileContent]).
//
// Structs keep members that they have no field for: they are in Extra, and encoding
// writes them back. The comment of a struct names its schema in the API document.
package platform
