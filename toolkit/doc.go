// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

// Package toolkit holds the built-in tools. Each is two files: the code, and a
// .md of the same name that the model reads as the tool's description.
//
// All of them work inside declared directories, the roots of a [Files]; no path
// a model can write leads out of them. What goes wrong is told in words that
// name what the model could do instead.
package toolkit
