// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package completions

import (
	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/item"
)

// readUsage reads the counts of tokens. Unknown members stay in Extra.
func readUsage(v item.JSON) *api.Usage {
	if v == "" || v[0] != '{' {
		return nil
	}
	o := place{}.open(v)
	input, output := o.number("prompt_tokens"), o.number("completion_tokens")
	if input == nil && output == nil {
		return nil // not known yet
	}
	u := &api.Usage{InputTokens: count(input), OutputTokens: count(output)}
	if total := o.number("total_tokens"); total != nil {
		u.TotalTokens = *total
	} else {
		u.TotalTokens = u.InputTokens + u.OutputTokens
	}
	u.InputDetails = readInputDetails(o)
	if d := o.take("completion_tokens_details"); d != "" && d[0] == '{' {
		inner := place{}.open(d)
		u.OutputDetails = &api.OutputTokensDetails{ReasoningTokens: count(inner.number("reasoning_tokens")), Extra: inner.keep()}
	}
	// xAI does not include reasoning tokens in the output tokens.
	if thought := u.Reasoning(); u.TotalTokens == u.InputTokens+u.OutputTokens+thought {
		u.OutputTokens += thought
	}
	u.Extra = o.keep()
	return u
}

// readInputDetails reads the counts of cached input tokens. Some servers put them outside of the
// details.
func readInputDetails(o *object) *api.InputTokensDetails {
	var d *api.InputTokensDetails
	if v := o.take("prompt_tokens_details"); v != "" && v[0] == '{' {
		inner := place{}.open(v)
		d = &api.InputTokensDetails{
			CachedTokens: count(inner.number("cached_tokens")), CacheWriteTokens: inner.number("cache_write_tokens"),
			Extra: inner.keep(),
		}
	}
	for _, name := range []string{"prompt_cache_hit_tokens", "cache_read_input_tokens"} { // DeepSeek's, Anthropic's
		n := o.peek(name)
		if n == nil || d != nil && d.CachedTokens != 0 {
			continue
		}
		if d == nil {
			d = new(api.InputTokensDetails)
		}
		d.CachedTokens = *n
	}
	if n := o.peek("cache_creation_input_tokens"); n != nil && (d == nil || d.CacheWriteTokens == nil) {
		if d == nil {
			d = new(api.InputTokensDetails)
		}
		d.CacheWriteTokens = n
	}
	return d
}

func count(n *int64) int64 {
	if n == nil {
		return 0
	}
	return *n
}

func writeUsage(w *writer, u *api.Usage) {
	w.name("usage")
	w.open('{')
	w.number("prompt_tokens", u.InputTokens)
	w.number("completion_tokens", u.OutputTokens)
	w.number("total_tokens", u.TotalTokens)
	if d := u.InputDetails; d != nil {
		w.name("prompt_tokens_details")
		w.open('{')
		w.number("cached_tokens", d.CachedTokens)
		w.optNumber("cache_write_tokens", d.CacheWriteTokens)
		w.extra(d.Extra)
		w.close('}')
	}
	if d := u.OutputDetails; d != nil {
		w.name("completion_tokens_details")
		w.open('{')
		w.number("reasoning_tokens", d.ReasoningTokens)
		w.extra(d.Extra)
		w.close('}')
	}
	w.extra(u.Extra)
	w.close('}')
}
