// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package item

import (
	"strings"

	"github.com/antiphon-go/antiphon/internal/jsonx"
)

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
func ParseFilter(j JSON) (*Filter, error) {
	s, err := trimValue(strings.Clone(string(j)))
	if err != nil {
		return nil, err
	}
	if s[0] != '{' {
		return nil, &ShapeError{Problem: "found " + jsonx.KindOf(s) + ", want an object"}
	}
	f := new(Filter)
	f.read(s)
	return f, nil
}

// read reads the validated object at the start of s and returns its length. It
// takes the filters within as it comes to them, so that each is walked once.
func (v *Filter) read(s string) int {
	c := newCodec(true)
	defer c.free()
	i := jsonx.SkipSpace(s, 1)
	for s[i] == '"' {
		end := jsonx.SkipString(s, i)
		name := s[i:end]
		i = jsonx.SkipSpace(s, jsonx.SkipSpace(s, end)+1)
		if jsonx.Unquote(name) == "filters" {
			end = i + v.readFilters(s[i:])
		} else {
			end = jsonx.SkipValue(s, i)
		}
		c.members.Add(name, s[i:end])
		if i = jsonx.SkipSpace(s, end); s[i] == ',' {
			i = jsonx.SkipSpace(s, i+1)
		}
	}
	c.members.DropEarlier()
	v.fields(c)
	return i + 1
}

// readFilters reads a list of filters and returns its length. A value of
// another shape leaves none.
func (v *Filter) readFilters(s string) int {
	v.Filters = nil
	if s[0] != '[' {
		return jsonx.SkipValue(s, 0)
	}
	list, whole := []Filter{}, true
	i := jsonx.SkipSpace(s, 1)
	for s[i] != ']' {
		if whole = whole && s[i] == '{'; whole {
			list = append(list, Filter{})
			i += list[len(list)-1].read(s[i:])
		} else {
			i = jsonx.SkipValue(s, i)
		}
		if i = jsonx.SkipSpace(s, i); s[i] == ',' {
			i = jsonx.SkipSpace(s, i+1)
		}
	}
	if whole {
		v.Filters = list
	}
	return i + 1
}

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
	if !c.decoding {
		recordList(c, "filters", &v.Filters)
	} else if m := c.find("filters"); m != nil {
		m.Taken = v.Filters != nil
	}
	c.rest(&v.Extra)
}
