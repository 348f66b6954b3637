// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package endpoint

import (
	"slices"
	"strings"
)

// Model says what a model takes, as far as it is known: the zero value of a
// field refuses nothing.
type Model struct {
	// Names are the model's names. Each also stands for its dated snapshots
	// (gpt-5-2025-08-07), for fine-tunings of it (ft:gpt-4o:…) and for itself
	// after the name of a provider (openai/gpt-5).
	Names []string `json:"names,omitzero"`

	// Reasoning says whether it thinks before it answers, and so takes the
	// member "reasoning" and gives reasoning items.
	Reasoning Support `json:"reasoning,omitzero" oneof:"yes no"`
	// Efforts are the reasoning efforts it takes, from low to high; nil means
	// not known, empty that none may be given. DefaultEffort is what it does
	// when none is given.
	Efforts       []string `json:"efforts,omitzero"`
	DefaultEffort string   `json:"default_effort,omitzero"`
	// Summaries says whether it takes reasoning.summary.
	Summaries Support `json:"summaries,omitzero" oneof:"yes no"`
	// Sampling says whether it takes temperature and top_p. For some it is
	// [WithoutReasoning].
	Sampling Support `json:"sampling,omitzero" oneof:"yes no without_reasoning"`
	// Verbosity says whether it takes text.verbosity.
	Verbosity Support `json:"verbosity,omitzero" oneof:"yes no"`
	// Images and Files say whether it reads them.
	Images Support `json:"images,omitzero" oneof:"yes no"`
	Files  Support `json:"files,omitzero" oneof:"yes no"`
	// ContextWindow and MaxOutput are in tokens; 0 is not known.
	ContextWindow int `json:"context_window,omitzero"`
	MaxOutput     int `json:"max_output,omitzero"`
}

// LookupModel returns what the built-in [Table] knows of a model, and false for
// a model it does not know, of which nothing is refused.
func LookupModel(name string) (Model, bool) { return (*Table)(nil).Model(name) }

// TakesEffort reports whether a reasoning effort is taken, "" for none given.
func (m Model) TakesEffort(effort string) bool {
	switch {
	case effort == "":
		return true
	case m.Reasoning == No:
		return false
	}
	return m.Efforts == nil || slices.Contains(m.Efforts, effort)
}

// TakesSampling reports whether temperature and top_p are taken beside a
// reasoning effort, "" for none given.
func (m Model) TakesSampling(effort string) bool {
	switch m.Sampling {
	case No:
		return false
	case WithoutReasoning:
		if effort == "" {
			effort = m.DefaultEffort
		}
		return effort == "none" || effort == ""
	}
	return true
}

// efforts are the reasoning efforts in use, from low to high.
var efforts = []string{"none", "minimal", "low", "medium", "high", "xhigh", "max"}

// NearestEffort returns the effort of taken that is nearest to the one asked
// for, the higher of two as near; but "none" only for "none" itself, where
// thinking was not asked for. A taken of nil takes everything. An effort that is
// not known, or for which nothing fits, is "".
func NearestEffort(effort string, taken []string) string {
	if taken == nil || slices.Contains(taken, effort) {
		return effort
	}
	at := slices.Index(efforts, effort)
	if at < 0 {
		return ""
	}
	best, far := "", len(efforts)
	for i, e := range slices.Backward(efforts) {
		if away := max(i-at, at-i); e != "none" && slices.Contains(taken, e) && away < far {
			best, far = e, away
		}
	}
	return best
}

// matchModel reports whether a model's name as it is sent means the one of the
// table.
func matchModel(known, name string) bool {
	rest, ok := strings.CutPrefix(name, known)
	return ok && (rest == "" || isSnapshot(rest))
}

// isSnapshot reports a dated suffix: -2025-08-07, or -20250807 as some
// providers write it.
func isSnapshot(s string) bool {
	digits, ok := strings.CutPrefix(s, "-")
	if !ok {
		return false
	}
	if len(digits) == len("2025-08-07") && digits[4] == '-' && digits[7] == '-' {
		digits = digits[:4] + digits[5:7] + digits[8:]
	}
	if len(digits) != len("20250807") {
		return false
	}
	return !strings.ContainsFunc(digits, func(r rune) bool { return r < '0' || r > '9' })
}

// bareModel is a model's name without what stands around it: the provider
// before the last slash or, as Bedrock writes it, before a dot, a variant after
// a colon ("openai/gpt-5:nitro"), and the frame of a fine-tuning
// ("ft:gpt-4o:team::id").
func bareModel(name string) string {
	if base, ok := strings.CutPrefix(name, "ft:"); ok {
		base, _, _ = strings.Cut(base, ":")
		return base
	}
	if at := strings.LastIndexByte(name, '/'); at >= 0 {
		name, _, _ = strings.Cut(name[at+1:], ":")
	}
	return strings.TrimPrefix(name, "openai.")
}
