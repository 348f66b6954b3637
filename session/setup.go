// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"iter"
	"slices"
	"strings"

	"github.com/antiphon-go/antiphon/item"
)

// Setup says what makes a run's turns: who is asked, with what, by which
// program. It holds no secrets and no texts of the conversation. An empty
// member is not known. See [RunStarted.Setup] and [Setup.Apply].
type Setup struct {
	// Model is the name that requests carry. What the endpoint calls the model
	// that answered is [TurnEnded.Model].
	Model string
	// Endpoint is the base URL: scheme, host and path, nothing else.
	Endpoint string
	// API is the one that is spoken, "responses" or "chat".
	API string
	// Transport is how requests travel: "http", "continue" or "websocket".
	Transport string
	// Profile names the kind of endpoint that requests are fitted to.
	Profile string
	// Rehearsal says that no model answers, but a script or a rule of thumb.
	Rehearsal bool
	// Settings is a JSON object: the members of requests besides the model,
	// the instructions, the input and the tools, such as temperature and
	// reasoning.
	Settings item.JSON
	// Instructions is the [Fingerprint] of the request's instructions.
	Instructions string
	// Tools are what the model may call, in the order of requests.
	Tools []Hashed
	// Program names the program and its version, such as "antiphon v0.1.0".
	Program string
	// Files are the agent's file and those that it imports, the agent's first.
	Files []Hashed
}

// Hashed is something that is known by its content: a tool by its definition
// as it is sent, a file by its bytes. Hash is its [Fingerprint].
type Hashed struct {
	Name, Hash string
}

// Fingerprint returns the first 16 bytes of the text's SHA-256, in hexadecimal.
func Fingerprint(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:16])
}

// Equal reports whether the two say the same. Nil equals nil only.
func (s *Setup) Equal(o *Setup) bool {
	if s == nil || o == nil {
		return s == o
	}
	return s.Model == o.Model && s.Endpoint == o.Endpoint && s.API == o.API && s.Transport == o.Transport &&
		s.Profile == o.Profile && s.Rehearsal == o.Rehearsal && s.Settings == o.Settings &&
		s.Instructions == o.Instructions && s.Program == o.Program &&
		slices.Equal(s.Tools, o.Tools) && slices.Equal(s.Files, o.Files)
}

// IsZero reports whether nothing is known.
func (s *Setup) IsZero() bool { return s.Equal(new(Setup)) }

// Apply makes s the setup that holds after the log's next entry. Applied to all
// entries up to a [TurnEnded], it says what made that turn. It reports whether
// the entry changed it.
func (s *Setup) Apply(b Body) (changed bool) {
	switch b := b.(type) {
	case RunStarted:
		return s.take(b.Setup)
	case TurnStarted:
		return s.take(b.Setup)
	case TurnEnded:
		changed = b.Profile != "" && b.Profile != s.Profile
		if changed {
			s.Profile = b.Profile
		}
	}
	return changed
}

func (s *Setup) take(next *Setup) bool {
	if next == nil || s.Equal(next) {
		return false
	}
	*s = *next
	return true
}

// String says for people who answers: the model and where it is asked, or that
// there is none.
func (s *Setup) String() string {
	if s.Rehearsal {
		return "the rehearsal, not a model"
	}
	text := cmp.Or(s.Model, "a model without a name")
	if s.Endpoint != "" {
		text += " at " + s.Endpoint
	}
	var how []string
	for _, word := range []string{s.Profile, s.API, s.Transport} {
		if word != "" && word != "http" {
			how = append(how, word)
		}
	}
	if len(how) > 0 {
		text += " (" + strings.Join(how, ", ") + ")"
	}
	return text
}

// MarshalJSON writes s as entries have it.
func (s *Setup) MarshalJSON() ([]byte, error) {
	var c codec
	c.object("setup", "", s)
	return c.out, c.err
}

func (s *Setup) fields(c *codec) {
	c.text("model", &s.Model)
	c.text("endpoint", &s.Endpoint)
	c.text("api", &s.API)
	c.text("transport", &s.Transport)
	c.text("profile", &s.Profile)
	c.bool("rehearsal", &s.Rehearsal)
	c.json("settings", &s.Settings)
	c.text("instructions", &s.Instructions)
	list(c, "tools", &s.Tools)
	c.text("program", &s.Program)
	list(c, "files", &s.Files)
}

func (h *Hashed) fields(c *codec) {
	c.text("name", &h.Name)
	c.text("hash", &h.Hash)
}

// json is a JSON text on one line, left out when empty.
func (c *codec) json(name string, v *item.JSON) {
	if !c.decoding {
		if *v == "" {
			return
		}
		if err := v.Valid(); err != nil {
			c.failf("%s: %w", name, err)
			return
		}
		c.name(name)
		// Line ends stand only between tokens of JSON.
		c.out = append(c.out, strings.NewReplacer("\n", " ", "\r", " ").Replace(string(*v))...)
		return
	}
	if value := c.take(name); value != "" {
		if *v = item.JSON(value); v.Valid() != nil {
			c.failf("%s: not JSON", name)
		}
	}
}

// Details are for people: the names and values of what else is known, such as
// "tool read_file" and its hash. Together with [Setup.String] they say everything.
func (s *Setup) Details() iter.Seq2[string, string] {
	return func(yield func(name, value string) bool) {
		list := []Hashed{{"settings", string(s.Settings)}, {"instructions", s.Instructions}}
		for _, t := range s.Tools {
			list = append(list, Hashed{"tool " + t.Name, t.Hash})
		}
		for _, f := range s.Files {
			list = append(list, Hashed{"agent " + f.Name, f.Hash})
		}
		for _, d := range append(list, Hashed{"program", s.Program}) {
			if d.Hash != "" && !yield(d.Name, d.Hash) {
				return
			}
		}
	}
}
