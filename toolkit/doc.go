// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

// Package toolkit holds the built-in tools. Each is two files: the code, and a
// .md of the same name that the model reads as the tool's description.
//
// Those that work on files do so inside declared directories, the roots of a
// [Files]; no path a model can write leads out of them. A command starts there
// and can do what it can do. Errors name what the model could do instead.
package toolkit
