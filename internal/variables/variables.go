// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

// Package variables knows variables of the environment: those that programs need to work,
// and the names of those that hold secrets.
package variables

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/antiphon-go/antiphon/endpoint"
)

// Usual returns the variables that every program gets. None of them is known to hold a
// secret.
func Usual() []string {
	return []string{
		"PATH", "HOME", "USER", "LOGNAME", "SHELL", "TMPDIR", "TZ", "LANG", "LANGUAGE", "LC_ALL", "LC_CTYPE", "LC_MESSAGES",
		"SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS",
		// Where the Go tool has what it downloaded and built: without them it begins anew.
		"GOROOT", "GOPATH", "GOMODCACHE", "GOCACHE", "GOFLAGS", "GOTOOLCHAIN",
		// Some Windows programs do not start without these.
		"SYSTEMROOT", "SYSTEMDRIVE", "WINDIR", "COMSPEC", "PATHEXT", "TEMP", "TMP", "USERPROFILE", "APPDATA", "LOCALAPPDATA",
		"PROGRAMFILES", "PROGRAMDATA",
	}
}

// Take returns the usual variables that are set, and those of more names.
func Take(lookup func(name string) (string, bool), more ...string) []string {
	env := make([]string, 0, 16)
	for _, name := range slices.Concat(Usual(), more) {
		if value, ok := lookup(name); ok {
			env = append(env, name+"="+value)
		}
	}
	return env
}

// Words of names of variables.
var (
	// harmless words contain the parts of names that speak of secrets.
	harmless = []string{"SESSION", "SESSIONS", "AUTHOR", "AUTHORS", "AUTHORITY", "XAUTHORITY", "TOKENIZER", "TOKENIZERS"}
	// about are last words of names whose values only belong to a secret.
	about = []string{"SOCK", "SOCKET", "FILE", "PATH", "DIR", "HOME", "ID", "NAME", "USER", "EMAIL", "TYPE", "HOST", "PORT", "URL", "ADDRESS", "METHOD", "PARALLELISM"}
	// secret words are not known to [endpoint.SecretName].
	secret = []string{"PASS", "PASSWD", "PASSPHRASE", "PWD", "PAT"}
)

// Secret reports whether the name of a variable speaks of a secret. The value tells the place
// of one from the secret itself, and may be empty.
func Secret(name, value string) bool {
	words := strings.FieldsFunc(strings.ToUpper(name), func(r rune) bool { return r == '_' || r == '-' || r == '.' })
	if len(words) == 0 {
		return false
	}
	last := words[len(words)-1]
	if slices.Contains(about, last) || strings.HasPrefix(last, "CREDENTIAL") && filepath.IsAbs(value) || name == "PWD" {
		return false
	}
	return slices.ContainsFunc(words, func(word string) bool {
		switch {
		case slices.Contains(harmless, word):
			return false
		case slices.Contains(secret, word):
			return true
		case strings.HasSuffix(word, "KEY"):
			return word == last
		}
		return endpoint.SecretName(word)
	})
}
