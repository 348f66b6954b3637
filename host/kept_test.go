// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"strings"
	"testing"

	"github.com/antiphon-go/antiphon/endpoint"
)

// B5: a key that is kept for a place goes there and to what is below it, and to no other host,
// scheme or path; the key of the environment goes where it went before.
func TestKeptKeys(t *testing.T) {
	env := Environment{}.WithKey("https://router.example/api", endpoint.NewKey("kept-key-0123456789")).
		WithKey("https://router.example/api/team", endpoint.NewKey("team-key-0123456789")).
		WithKey("https://api.openai.com", endpoint.NewKey("openai-key-0123456789"))
	both := Environment{"OPENAI_API_KEY": "variable-key-0123456789"}
	for name, value := range env {
		both[name] = value
	}
	named, none := both.WithKey("https://named.example", endpoint.Key{}), Environment{}.WithKey("https://named.example", endpoint.Key{})
	for _, c := range []struct {
		env        Environment
		flag, file string
		want       string
		held       bool
	}{
		{env, "https://router.example/api/v1", "", "kept-key-0123456789", false},
		{env, "https://ROUTER.example/api", "", "kept-key-0123456789", false},
		{env, "https://router.example/api/team/v1", "", "team-key-0123456789", false},
		{env, "", "https://router.example/api/v1", "kept-key-0123456789", false},
		{env, "", "", "openai-key-0123456789", false},
		{env, "http://router.example/api/v1", "", "", false},
		{env, "https://router.example/apis", "", "", false},
		{env, "https://router.example:8443/api", "", "", false},
		{env, "https://router.example.evil.example/api", "", "", false},
		{env, "", "https://router.example/api/../other", "", false},
		{both, "", "", "variable-key-0123456789", false},
		{both, "https://router.example/api/v1", "", "kept-key-0123456789", false},
		{both, "", "https://router.example/api/v1", "kept-key-0123456789", false},
		{both, "", "https://other.example/v1", "", true},
		{both, "https://other.example/v1", "", "variable-key-0123456789", false},
		{named, "https://named.example/v1", "", "", true},
		{named, "", "https://named.example/v1", "", true},
		{named, "https://router.example/api/v1", "", "kept-key-0123456789", false},
		{none, "https://named.example/v1", "", "", false},
	} {
		e := Endpoint{BaseURL: c.flag}
		_, key, held := e.address(said{baseURL: c.file}, c.env)
		if key.Reveal() != c.want || held != c.held {
			t.Errorf("flag %q, file %q: %q, held %v", c.flag, c.file, key.Reveal(), held)
		}
	}
	if text := env.Hide("it is kept-key-0123456789"); strings.Contains(text, "kept-key") {
		t.Error(text)
	}
	for name := range env {
		if value, found := env.Lookup(name); found {
			t.Errorf("a kept key is a variable: %q is %q", name, value)
		}
	}
}
