// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package endpoint

import (
	"slices"
	"strconv"

	"github.com/antiphon-go/antiphon/internal/jsonx"
)

// windowNames are the members for a context window: the window in effect comes before the model's
// own maximum.
var windowNames = []string{"n_ctx", "max_model_len", "context_length", "context_window"}

// WindowIn returns the context window of a model in tokens, read from the answer of one of
// [Profile.Windows]. The answer is a list of models, or an object about the server's only model.
// WindowIn returns 0 if the answer does not hold a context window.
func WindowIn(text []byte, model string) int64 {
	lists, err := object(received(text))
	if err != nil {
		return 0
	}
	for _, name := range []string{"data", "models"} {
		all, err := elements(lists[name])
		if err != nil {
			continue
		}
		var found []map[string]string
		for _, v := range all {
			one, err := object(v)
			if err == nil && (len(all) == 1 || isAbout(one, model)) { // a server with one model accepts any model name
				found = append(found, one)
			}
		}
		for _, one := range found {
			if n := windowOf(one); n > 0 {
				return n
			}
		}
	}
	return windowOf(lists)
}

// isAbout reports whether an object describes the model. Ollama adds a tag to names without one.
func isAbout(one map[string]string, model string) bool {
	return slices.ContainsFunc([]string{"id", "name", "model"}, func(member string) bool {
		v := one[member]
		return v != "" && v[0] == '"' && (jsonx.Means(v, model) || jsonx.Means(v, model+":latest"))
	})
}

// windowOf reads the context window from an object, or from its members that describe the model.
func windowOf(one map[string]string) int64 {
	inside := []map[string]string{one}
	for _, name := range []string{"meta", "default_generation_settings"} {
		if facts, err := object(one[name]); err == nil {
			inside = append(inside, facts)
		}
	}
	for _, name := range windowNames {
		for _, facts := range inside {
			if n, err := strconv.ParseInt(facts[name], 10, 64); err == nil && n > 0 {
				return n
			}
		}
	}
	return 0
}

// object returns the members of a JSON object.
func object(v string) (map[string]string, error) {
	all := map[string]string{}
	err := members(v, func(name, value string) { all[name] = value })
	return all, err
}
