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

	"github.com/antiphon-go/antiphon/internal/record"
	"github.com/antiphon-go/antiphon/item"
)

// Setup describes how the turns of a run are made: the model, the request settings
// and the program. It contains no secrets and no text of the conversation. An empty
// field means unknown. See [RunStarted.Setup] and [Setup.Apply].
type Setup struct {
	// Model is the name in requests. [TurnEnded.Model] is the name that the endpoint
	// reports for the model that answered.
	Model string
	// Endpoint is the base URL: scheme, host and path only.
	Endpoint string
	// API is the wire API, "responses" or "chat".
	API string
	// Transport is "http", "continue" or "websocket".
	Transport string
	// Profile names the kind of endpoint that requests are adapted to.
	Profile string
	// Rehearsal means that a script or a simple rule answers instead of a model.
	Rehearsal bool
	// Settings is a JSON object with the members of requests other than the model, the
	// instructions, the input and the tools, such as temperature and reasoning.
	Settings item.JSON
	// Instructions is the [Fingerprint] of the request's instructions.
	Instructions string
	// Tools are the tools that the model may call, in the order of requests.
	Tools []Hashed
	// Program names the program and its version, such as "antiphon v0.1.0".
	Program string
	// Files are the agent's file, which comes first, and the files that it imports.
	Files []Hashed
}

// Hashed identifies something by its content: a tool by its definition as sent, a
// file by its bytes. Hash is the [Fingerprint] of the content.
type Hashed struct {
	Name, Hash string
}

// Fingerprint returns the first 16 bytes of the text's SHA-256 in hexadecimal.
func Fingerprint(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:16])
}

// Equal reports whether s and o have the same content. Nil equals only nil.
func (s *Setup) Equal(o *Setup) bool {
	if s == nil || o == nil {
		return s == o
	}
	return s.Model == o.Model && s.Endpoint == o.Endpoint && s.API == o.API && s.Transport == o.Transport &&
		s.Profile == o.Profile && s.Rehearsal == o.Rehearsal && s.Settings == o.Settings &&
		s.Instructions == o.Instructions && s.Program == o.Program &&
		slices.Equal(s.Tools, o.Tools) && slices.Equal(s.Files, o.Files)
}

// IsZero reports whether all fields are empty.
func (s *Setup) IsZero() bool { return s.Equal(new(Setup)) }

// Apply updates s with the log's next entry. After all entries up to a [TurnEnded],
// s is the setup that made that turn. Apply reports whether the entry changed s.
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

// String returns the model and its address for people, or says that no model
// answers.
func (s *Setup) String() string {
	if s.Rehearsal {
		return "the rehearsal, not a model"
	}
	text := cmp.Or(s.Model, "an unnamed model")
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

// MarshalJSON encodes s in the form that entries use.
func (s *Setup) MarshalJSON() ([]byte, error) {
	return record.Append(nil, func(c *record.Codec) { s.fields(codec{Codec: c}) })
}

func (s *Setup) fields(c codec) {
	c.text("model", &s.Model)
	c.text("endpoint", &s.Endpoint)
	c.text("api", &s.API)
	c.text("transport", &s.Transport)
	c.text("profile", &s.Profile)
	c.bool("rehearsal", &s.Rehearsal)
	c.json("settings", &s.Settings)
	c.text("instructions", &s.Instructions)
	parts(c, "tools", &s.Tools, (*Hashed).fields)
	c.text("program", &s.Program)
	parts(c, "files", &s.Files, (*Hashed).fields)
}

func (h *Hashed) fields(c codec) {
	c.text("name", &h.Name)
	c.text("hash", &h.Hash)
}

// Details yields the names and values that [Setup.String] leaves out, for people:
// for example "tool read_file" and its hash.
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
