// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package item

// FileSearchTool lets the model search the caller's files. Schema:
// FileSearchTool.
type FileSearchTool struct {
	// VectorStoreIDs is written as [] when nil.
	VectorStoreIDs []string
	MaxNumResults  *int64
	RankingOptions *RankingOptions
	// Filters is a [Filter]; it stays JSON because filters nest without end.
	Filters JSON
	Extra   Extra
}

// RankingOptions says how results are put in order. Schema: RankingOptions.
type RankingOptions struct {
	Ranker string
	// ScoreThreshold, from 0 to 1, leaves out results that fit less.
	ScoreThreshold *float64
	HybridSearch   *HybridSearch
	Extra          Extra
}

// HybridSearch weighs search by meaning against search by words. Schema:
// HybridSearchOptions.
type HybridSearch struct {
	EmbeddingWeight float64
	TextWeight      float64
	Extra           Extra
}

// Filter keeps a search to files with certain attributes. With the type "and"
// or "or" it joins Filters; with eq, ne, gt, gte, lt, lte, in or nin it compares
// the attribute Key with Value, a text, a number, a truth value or a list.
// Schemas: ComparisonFilter, CompoundFilter.
type Filter struct {
	Type    string
	Key     string
	Value   JSON
	Filters []Filter
	Extra   Extra
}

// ParseFilter reads [FileSearchTool.Filters].
func ParseFilter(j JSON) (*Filter, error) { return parseBody[Filter]([]byte(j)) }

// JSON returns the filter as [FileSearchTool.Filters] takes it.
func (v *Filter) JSON() (JSON, error) {
	b, err := appendRecord(nil, v)
	return JSON(b), err
}

// ToolType returns [ToolFileSearch].
func (*FileSearchTool) ToolType() string { return ToolFileSearch }

func (t *FileSearchTool) fields(c *codec) {
	c.typ(ToolFileSearch)
	c.raw("filters", &t.Filters)
	c.optInt("max_num_results", &t.MaxNumResults)
	optRecord(c, "ranking_options", &t.RankingOptions)
	c.orEmpty("vector_store_ids", "[]", t.VectorStoreIDs == nil, &t.Extra)
	c.optStrings("vector_store_ids", &t.VectorStoreIDs)
	c.end(&t.Extra)
}

func (v *RankingOptions) fields(c *codec) {
	optRecord(c, "hybrid_search", &v.HybridSearch)
	c.optString("ranker", &v.Ranker)
	c.optFloat("score_threshold", &v.ScoreThreshold)
	c.rest(&v.Extra)
}

func (v *HybridSearch) fields(c *codec) {
	c.decimal("embedding_weight", &v.EmbeddingWeight, &v.Extra)
	c.decimal("text_weight", &v.TextWeight, &v.Extra)
	c.end(&v.Extra)
}

func (v *Filter) fields(c *codec) {
	c.optString("type", &v.Type)
	c.optString("key", &v.Key)
	c.raw("value", &v.Value)
	recordList(c, "filters", &v.Filters)
	c.rest(&v.Extra)
}
