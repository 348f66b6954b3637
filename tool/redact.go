// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package tool

import (
	"slices"
	"strings"

	"github.com/antiphon-go/antiphon/item"
)

// Redacted stands where one of [Shape.Secrets] stood.
const Redacted = "[redacted]"

// minSecret is the size of the shortest secret that is looked for, in bytes: a
// shorter one would be found where it is not meant.
const minSecret = 8

// redacted returns a text without the secrets.
func redacted(text string, secrets []string) string {
	for _, s := range secrets {
		if len(s) >= minSecret {
			text = strings.ReplaceAll(text, s, Redacted)
		}
	}
	return text
}

// redact takes the secrets out of a result that is settled. Images and files are
// left as they are.
func (r *Result) redact(secrets []string) {
	if len(secrets) == 0 {
		return
	}
	r.Text = redacted(r.Text, secrets)
	for _, p := range r.Parts {
		if t, ok := p.(*item.InputText); ok {
			t.Text = redacted(t.Text, secrets)
		}
	}
	for i := range r.Commands {
		c := &r.Commands[i]
		c.Stdout, c.Stderr = redacted(c.Stdout, secrets), redacted(c.Stderr, secrets)
	}
}

// settleCommands makes texts of commands valid ones, in a copy.
func (r *Result) settleCommands() {
	r.Commands = slices.Clone(r.Commands)
	for i := range r.Commands {
		c := &r.Commands[i]
		c.Stdout, _ = Sanitize(c.Stdout) // repairs are counted in Text, which says the same
		c.Stderr, _ = Sanitize(c.Stderr)
	}
}
