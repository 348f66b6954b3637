// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"math"
	"net/url"
	"strconv"
	"strings"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/internal/lazyregexp"
)

// This file has what tokens cost: as the person says, or as OpenAI's list of prices said.

// pricesAtOpenAI are prices in dollars for a million tokens of the standard tier, as of 2025-11. They hold at api.openai.com alone: elsewhere a
// model of the same name has other prices. A model without a reliable source is left out.
var pricesAtOpenAI = map[string]agent.Price{
	"gpt-4o":        {Input: 2.5, Cached: 1.25, Output: 10},
	"gpt-4o-mini":   {Input: 0.15, Cached: 0.075, Output: 0.6},
	"gpt-4.1":       {Input: 2, Cached: 0.5, Output: 8},
	"gpt-4.1-mini":  {Input: 0.4, Cached: 0.1, Output: 1.6},
	"gpt-4.1-nano":  {Input: 0.1, Cached: 0.025, Output: 0.4},
	"o3":            {Input: 2, Cached: 0.5, Output: 8},
	"o4-mini":       {Input: 1.1, Cached: 0.275, Output: 4.4},
	"gpt-5":         {Input: 1.25, Cached: 0.125, Output: 10},
	"gpt-5-mini":    {Input: 0.25, Cached: 0.025, Output: 2},
	"gpt-5-nano":    {Input: 0.05, Cached: 0.005, Output: 0.4},
	"gpt-5-codex":   {Input: 1.25, Cached: 0.125, Output: 10},
	"gpt-5.1":       {Input: 1.25, Cached: 0.125, Output: 10},
	"gpt-5.1-codex": {Input: 1.25, Cached: 0.125, Output: 10},
}

// snapshot is the date in the name of a model. Snapshots of gpt-4o had different prices.
var snapshot = lazyregexp.New(`-20\d\d-\d\d-\d\d$`)

// pricesFor returns what looks up prices: first those of the person, which are MODEL=IN,CACHED,OUT with blanks
// between them.
func pricesFor(said string) (func(model, baseURL string) (agent.Price, bool), error) {
	own := map[string]agent.Price{}
	for word := range strings.FieldsSeq(said) {
		model, text, _ := strings.Cut(word, "=")
		price, err := parsePrice(text)
		if err != nil || model == "" {
			return nil, fmt.Errorf("%q is not MODEL=IN,CACHED,OUT, such as qwen3=0.1,0.05,0.4", word)
		}
		own[model] = price
	}
	return func(model, baseURL string) (agent.Price, bool) {
		if price, known := own[model]; known {
			return price, true
		}
		if at, err := url.Parse(baseURL); err != nil || at.Scheme != "https" || at.Host != "api.openai.com" {
			return agent.Price{}, false
		}
		if price, known := pricesAtOpenAI[model]; known {
			return price, true
		}
		bare := snapshot.ReplaceAllString(model, "")
		price, known := pricesAtOpenAI[bare]
		return price, known && bare != "gpt-4o"
	}, nil
}

// parsePrice reads three numbers.
func parsePrice(text string) (price agent.Price, err error) {
	parts := strings.Split(text, ",")
	each := []*float64{&price.Input, &price.Cached, &price.Output}
	if len(parts) != len(each) {
		return price, errors.New("not three numbers")
	}
	for i, part := range parts {
		n, err := strconv.ParseFloat(strings.TrimSpace(part), 64)
		if err != nil || !(n >= 0) || math.IsInf(n, 0) {
			return price, errors.New("not a number that is not negative")
		}
		*each[i] = n
	}
	return price, nil
}
