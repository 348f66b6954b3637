// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/item"
)

// The API's limits for metadata: pairs, and characters.
const (
	maxPairs     = 16
	maxPairName  = 64
	maxPairValue = 512
)

// maxTopLogprobs is the API's limit for top_logprobs.
const maxTopLogprobs = 20

// maxModel is the most characters that the name of a model has. It is kept where usage is counted,
// and the API has no longer ones.
const maxModel = 512

// checkLimits checks the name of the model, the numbers and the metadata of a request. They are
// repeated in the response, whose schema has limits for them.
func checkLimits(req *api.Request) *Error {
	if n := utf8.RuneCountInString(req.Model); n > maxModel {
		return Invalid("string_above_max_length", "model",
			"Invalid 'model': string too long. Expected a string with maximum length %d, but got a string with length %d instead.", maxModel, n)
	}
	if wrong := within(req.Temperature, "temperature", "decimal", 2); wrong != nil {
		return wrong
	}
	if wrong := within(req.TopP, "top_p", "decimal", 1); wrong != nil {
		return wrong
	}
	if wrong := within(req.TopLogprobs, "top_logprobs", "integer", maxTopLogprobs); wrong != nil {
		return wrong
	}
	_, wrong := checkMetadata(req.Metadata)
	return wrong
}

// within checks that a number is from 0 to most.
func within[N int64 | float64](v *N, name, kind string, most N) *Error {
	const message = "Invalid '%s': %s %s value. Expected a value %s %v, but got %v instead."
	switch {
	case v == nil:
	case *v < 0:
		return Invalid(kind+"_below_min_value", name, message, name, kind, "below minimum", ">=", 0, *v)
	case *v > most:
		return Invalid(kind+"_above_max_value", name, message, name, kind, "above maximum", "<=", most, *v)
	}
	return nil
}

// checkMetadata checks metadata, and returns {} if there are none.
func checkMetadata(v item.JSON) (item.JSON, *Error) {
	switch {
	case v == "" || v == "null":
		return "{}", nil
	case v[0] != '{':
		return "", Invalid("invalid_type", "metadata", "Invalid type for 'metadata': expected an object.")
	}
	var pairs map[string]jsontext.Value
	if err := json.Unmarshal([]byte(v), &pairs); err != nil {
		return "", Invalid("invalid_type", "metadata", "Invalid 'metadata': a name is there twice.")
	}
	if len(pairs) > maxPairs {
		return "", Invalid("object_above_max_properties", "metadata",
			"Invalid 'metadata': too many properties. Expected an object with at most %d properties, but got an object with %d properties instead.", maxPairs, len(pairs))
	}
	for name, value := range pairs {
		if n := utf8.RuneCountInString(name); n > maxPairName {
			return "", Invalid("string_above_max_length", "metadata",
				"Invalid 'metadata': the name of a property is too long. Expected a string with maximum length %d, but got a string with length %d instead.", maxPairName, n)
		}
		at := "metadata." + name
		text, ok := item.JSON(value).Unquote()
		if !ok {
			return "", Invalid("invalid_type", at, "Invalid type for '%s': expected a string.", at)
		}
		if n := utf8.RuneCountInString(text); n > maxPairValue {
			return "", Invalid("string_above_max_length", at,
				"Invalid '%s': string too long. Expected a string with maximum length %d, but got a string with length %d instead.", at, maxPairValue, n)
		}
	}
	return v, nil
}
