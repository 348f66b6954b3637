// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package mcpbridge

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
)

// origin identifies a tool by its server and its name there.
type origin struct{ server, tool string }

// names assigns the names by which a model calls the tools. An assigned name stays
// with its tool, so that a recorded history keeps its meaning. No two tools have
// the same name.
//
// A tool keeps its own name if possible. If another server has a tool of that name,
// or the name is reserved, the tool is called server__tool; if both appear
// together, both are renamed. Characters that the API does not accept become
// underscores. A name that was changed in this way or is too long ends in a hash
// of the whole name, so that it does not depend on the other tools.
type names struct {
	always bool // always use server__tool, even for a name that is free
	given  map[origin]string
	taken  map[string]bool
}

func newNames(always bool, reserved []string) *names {
	n := &names{always: always, given: map[origin]string{}, taken: map[string]bool{}}
	for _, name := range reserved {
		n.taken[name] = true
	}
	return n
}

// assign names the tools that have no name yet.
func (n *names) assign(tools []origin) {
	tools = slices.DeleteFunc(slices.Clone(tools), func(o origin) bool { return n.given[o] != "" })
	own := map[string]int{}
	for _, o := range tools {
		own[fit(o.tool)]++
	}
	for _, o := range tools {
		name := fit(o.tool)
		if n.always || n.taken[name] || own[name] > 1 {
			name = fit(label(o.server) + separator + o.tool)
		}
		for salt := o.server + "\x00" + o.tool; n.taken[name]; salt += "\x00" {
			name = hashed(o.server+separator+o.tool, salt)
		}
		n.given[o] = name
		n.taken[name] = true
	}
}

const (
	separator = "__"
	maxName   = 64
	hashLen   = 8
)

// fit returns a name that the API accepts. It does not change one that is already
// acceptable.
func fit(name string) string {
	if name != "" && len(name) <= maxName && strings.IndexFunc(name, unfit) < 0 {
		return name
	}
	return hashed(name, name)
}

// hashed returns the readable part of a name and a hash.
func hashed(name, of string) string {
	name = label(name)
	sum := sha256.Sum256([]byte(of))
	return name[:min(len(name), maxName-hashLen-1)] + "_" + hex.EncodeToString(sum[:])[:hashLen]
}

// label replaces the characters that the API does not accept by underscores.
func label(name string) string {
	return strings.Map(func(r rune) rune {
		if unfit(r) {
			return '_'
		}
		return r
	}, name)
}

func unfit(r rune) bool {
	switch {
	case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '_', r == '-':
		return false
	}
	return true
}
