// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package item

// How much a model thinks. Not every model knows every word. Schema:
// ReasoningEffort.
const (
	EffortNone    = "none"
	EffortMinimal = "minimal"
	EffortLow     = "low"
	EffortMedium  = "medium"
	EffortHigh    = "high"
	EffortXHigh   = "xhigh"
	EffortMax     = "max"
)

// What a model shows of its thinking. Schema: Reasoning.summary.
const (
	SummaryAuto     = "auto"
	SummaryConcise  = "concise"
	SummaryDetailed = "detailed"
)

// ReasoningConfig says how much a model thinks and what it shows of that.
// Schema: Reasoning.
type ReasoningConfig struct {
	// Effort is such as [EffortHigh].
	Effort string
	// Summary is such as [SummaryAuto].
	Summary string
	// Context says which earlier reasoning the model sees: auto, current_turn or
	// all_turns.
	Context string
	// Mode is such as standard or pro.
	Mode string
	// GenerateSummary is what Summary was called before.
	GenerateSummary string
	Extra           Extra
}

func (r *ReasoningConfig) fields(c *codec) {
	c.optString("effort", &r.Effort)
	c.optString("summary", &r.Summary)
	c.optString("context", &r.Context)
	c.optString("mode", &r.Mode)
	c.optString("generate_summary", &r.GenerateSummary)
	c.rest(&r.Extra)
}
