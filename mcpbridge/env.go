// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package mcpbridge

import (
	"maps"
	"net/url"
	"slices"

	"github.com/antiphon-go/antiphon/endpoint"
)

// PassedEnv returns the variables that every program inherits from this process.
// None of them is known to contain a secret.
func PassedEnv() []string {
	return []string{
		"PATH", "HOME", "USER", "LOGNAME", "SHELL", "TMPDIR", "TZ", "LANG", "LANGUAGE", "LC_ALL", "LC_CTYPE", "LC_MESSAGES",
		"SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS",
		// Some Windows programs do not start without these.
		"SYSTEMROOT", "SYSTEMDRIVE", "WINDIR", "COMSPEC", "PATHEXT", "TEMP", "TMP", "USERPROFILE", "APPDATA", "LOCALAPPDATA",
		"PROGRAMFILES", "PROGRAMDATA",
	}
}

// environment returns the environment of the server's program. It is never nil,
// because for os/exec nil means the whole environment.
func (s *Server) environment(lookup func(string) (string, bool)) []string {
	env := make([]string, 0, 16)
	for _, name := range slices.Concat(PassedEnv(), s.PassEnv) {
		if value, ok := lookup(name); ok {
			env = append(env, name+"="+value)
		}
	}
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
