// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package endpoint

import (
	"slices"
	"strings"
)

// Model describes the features of a model. A field's zero value means not known, and nothing is
// refused because of it.
type Model struct {
	// Names are the model's names. Each name also matches its dated snapshots (gpt-5-2025-08-07),
	// fine-tuned versions (ft:gpt-4o:…), and the name with a provider in front (openai/gpt-5).
	Names []string `json:"names,omitzero"`

	// Reasoning says whether the model reasons before it answers. Such a model accepts the member
	// "reasoning" and returns reasoning items.
	Reasoning Support `json:"reasoning,omitzero" oneof:"yes no"`
	// Efforts are the reasoning efforts that the model accepts, from low to high. Nil means not
	// known; an empty list means that a request must not set one. DefaultEffort is the effort when
	// a request sets none.
	Efforts       []string `json:"efforts,omitzero"`
	DefaultEffort string   `json:"default_effort,omitzero"`
	// Summaries says whether the model accepts reasoning.summary.
	Summaries Support `json:"summaries,omitzero" oneof:"yes no"`
	// Sampling says whether the model accepts temperature and top_p. Some models accept them only
	// [WithoutReasoning].
	Sampling Support `json:"sampling,omitzero" oneof:"yes no without_reasoning"`
	// Verbosity says whether the model accepts text.verbosity.
	Verbosity Support `json:"verbosity,omitzero" oneof:"yes no"`
	// Images and Files say whether the model can read images and files.
	Images Support `json:"images,omitzero" oneof:"yes no"`
	Files  Support `json:"files,omitzero" oneof:"yes no"`
	// ContextWindow and MaxOutput are in tokens; 0 means not known.
	ContextWindow int `json:"context_window,omitzero"`
	MaxOutput     int `json:"max_output,omitzero"`
}

// LookupModel returns the description of a model in the built-in [Table]. It returns false for an
// unknown model, and nothing is refused for such a model.
func LookupModel(name string) (Model, bool) { return (*Table)(nil).Model(name) }

// TakesEffort reports whether the model accepts a reasoning effort; "" means that the request sets
// none.
func (m Model) TakesEffort(effort string) bool {
	switch {
	case effort == "":
		return true
	case m.Reasoning == No:
		return false
	}
	return m.Efforts == nil || slices.Contains(m.Efforts, effort)
}

// TakesSampling reports whether the model accepts temperature and top_p together with a reasoning
// effort; "" means that the request sets none.
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

// efforts are all known reasoning efforts, from low to high.
var efforts = []string{"none", "minimal", "low", "medium", "high", "xhigh", "max"}

// NearestEffort returns the effort in taken that is nearest to the requested one, and the higher of
// two that are equally near. It returns "none" only for the request "none", since otherwise the
// caller asked for reasoning. A nil taken accepts every effort. NearestEffort returns "" if the
// effort is unknown or nothing fits.
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

// matchModel reports whether a model's name in a request means the known model.
func matchModel(known, name string) bool {
	rest, ok := strings.CutPrefix(name, known)
	return ok && (rest == "" || isSnapshot(rest))
}

// isSnapshot reports whether s is a dated suffix: -2025-08-07, or -20250807 as some providers write
// it.
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

// bareModel returns a model's name without the parts around it: the provider before the last slash,
// or before a dot as on Bedrock; a variant after a colon ("openai/gpt-5:nitro"); and the prefix and
// suffix of a fine-tuned model ("ft:gpt-4o:team::id").
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
