// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package completions

import (
	"fmt"
	"maps"
	"slices"

	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/item"
)

// Options describe how to write messages for servers that differ from Chat Completions as
// specified. The zero value follows the specification: messages are not joined, and reasoning, for
// which it has no member, is left out.
type Options struct {
	// Plain writes content that is only text as one string. Many servers accept parts only together
	// with images.
	Plain bool
	// Reasoning is the member that carries earlier reasoning back: [ReasoningContent],
	// [ReasoningPlain] or [ReasoningDetails]. Empty means that reasoning is not sent.
	Reasoning string
	// Roles maps the role of a message to the role that is sent, such as developer to system.
	Roles map[string]string
	// MaxTokens is the member that limits the output. Empty means
	// max_completion_tokens.
	MaxTokens string
	// NoUsage is set if the usage of a stream cannot be requested.
	NoUsage bool
}

// OptionsFor returns the options for an endpoint's profile, with Plain set. A nil profile means an
// unknown endpoint.
func OptionsFor(p *endpoint.Profile) Options {
	o := Options{Plain: true}
	if p == nil {
		return o
	}
	o.Roles, o.MaxTokens, o.NoUsage = p.Roles, p.Chat.MaxTokens, p.Chat.Usage == endpoint.No
	if p.Reasoning != endpoint.ReasoningNone {
		o.Reasoning = p.Chat.Reasoning
	}
	return o
}

// key returns the options in comparable form, for [item.List.Derive].
func (o Options) key() derivedKey {
	roles := ""
	for _, from := range slices.Sorted(maps.Keys(o.Roles)) {
		roles += fmt.Sprintf("%q:%q,", from, o.Roles[from])
	}
	return derivedKey{o.Plain, o.Reasoning, roles}
}

type derivedKey struct {
	plain            bool
	reasoning, roles string
}

func (o Options) role(r item.Role) string {
	if to, ok := o.Roles[string(r)]; ok {
		return to
	}
	return string(r)
}
