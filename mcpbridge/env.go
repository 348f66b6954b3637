// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package mcpbridge

import (
	"maps"
	"net/url"
	"slices"

	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/internal/variables"
)

// PassedEnv returns the variables that every program inherits from this process.
// None of them is known to contain a secret.
func PassedEnv() []string { return variables.Usual() }

// environment returns the environment of the server's program. It is never nil,
// because for os/exec nil means the whole environment.
func (s *Server) environment(lookup func(string) (string, bool)) []string {
	env := variables.Take(lookup, s.PassEnv...)
	for _, name := range slices.Sorted(maps.Keys(s.Env)) {
		env = append(env, name+"="+s.Env[name])
	}
	for _, name := range slices.Sorted(maps.Keys(s.SecretEnv)) {
		env = append(env, name+"="+s.SecretEnv[name].Reveal())
	}
	return env
}

// hide replaces the server's secrets in a text that it sent.
func (s *Server) hide(text string) string {
	for _, key := range s.SecretEnv {
		text = key.Hide(text)
	}
	return s.Token.Hide(text)
}

// minHidden is the minimum length of a declared value that is treated as a secret in
// a server's standard error.
const minHidden = 8

// hideAll also hides declared variables and headers and the URL's query. They may
// contain keys that were not declared as secrets, and the text of standard error is
// as useful without them.
func (s *Server) hideAll(text string) string {
	text = s.hide(text)
	if u, err := url.Parse(s.URL); err == nil && len(u.RawQuery) >= minHidden {
		text = endpoint.NewKey(u.RawQuery).Hide(text)
	}
	for _, v := range s.Env {
		if len(v) >= minHidden {
			text = endpoint.NewKey(v).Hide(text)
		}
	}
	for _, list := range s.Header {
		for _, v := range list {
			if len(v) >= minHidden {
				text = endpoint.NewKey(v).Hide(text)
			}
		}
	}
	return text
}
