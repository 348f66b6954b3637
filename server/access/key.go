// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package access

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/antiphon-go/antiphon/internal/lazyregexp"
)

// Scope is something that a key may do.
type Scope string

// The scopes. A key without a scope gets 403 with the scope's name.
const (
	// ScopeModels is for making, continuing, cancelling and deleting responses and
	// conversations, and for the list of models.
	ScopeModels Scope = "models"
	// ScopeRead is for reading stored responses, conversations and their items, and for the
	// list of models.
	ScopeRead Scope = "read"
	// ScopeURLs is for URLs in requests that others fetch for the client, such as those of
	// images: see [server.CheckURLs].
	ScopeURLs Scope = "urls"
	// ScopeSessions is for the routes of front ends: for reading the sessions of the project
	// whole, also the instructions of agents and the outputs of their tools, for saying
	// something to them, and for stopping their runs.
	ScopeSessions Scope = "sessions"
	// ScopeApprove is for answering requests for approval. All keys see them.
	ScopeApprove Scope = "approve"
	// ScopeAdmin is for the measures at /metrics.
	ScopeAdmin Scope = "admin"
)

// Scopes are all scopes.
var Scopes = []Scope{ScopeModels, ScopeRead, ScopeURLs, ScopeSessions, ScopeApprove, ScopeAdmin}

// Limits are what a key may use. 0 means no limit.
type Limits struct {
	// Requests and Tokens are for each minute. Unused parts of a minute are kept for at
	// most a minute. Requests that are refused do not count.
	Requests int64 `json:"requests_per_minute,omitzero"`
	Tokens   int64 `json:"tokens_per_minute,omitzero"`
	// Running is the number of responses that are made at once.
	Running int64 `json:"running,omitzero"`
	// Cost is for each day in UTC, in the unit of the agents' prices. Responses of agents
	// without prices cost nothing.
	Cost float64 `json:"cost_per_day,omitzero"`
	// Trial means that the limits refuse nothing: what they would refuse is logged and
	// counted.
	Trial bool `json:"trial,omitzero"`
}

// Key describes a key. The key itself is a secret, which nothing keeps: only its hash.
type Key struct {
	// ID is the part of the key that is not secret. It never changes.
	ID string `json:"id"`
	// Name is unique among the keys that are not revoked.
	Name string `json:"name"`
	// Project owns what is made with the key.
	Project string  `json:"project"`
	Scopes  []Scope `json:"scopes"`
	Limits  Limits  `json:"limits,omitzero"`
	// Hash is the SHA-256 hash of the secret in hexadecimal. The secret has 130 random bits,
	// so a slow hash would add nothing.
	Hash    string    `json:"sha256,omitzero"`
	Created time.Time `json:"created"`
	// Expires and Revoked are zero if the key does not expire, or is not revoked.
	Expires time.Time `json:"expires,omitzero"`
	Revoked time.Time `json:"revoked,omitzero"`
}

// Valid reports whether the key can be used at a time.
func (k *Key) Valid(at time.Time) bool {
	return k.Revoked.IsZero() && (k.Expires.IsZero() || at.Before(k.Expires))
}

// May reports whether the key has a scope.
func (k *Key) May(s Scope) bool { return slices.Contains(k.Scopes, s) }

var (
	named   = lazyregexp.New(`^[A-Za-z0-9][A-Za-z0-9._@-]{0,63}$`)
	keyForm = lazyregexp.New(`^antiphon_([a-z2-7]{12})_([a-z2-7]{26})$`)
)

// IsName reports whether a text can be the name of a key or of a project.
func IsName(text string) bool { return named.MatchString(text) }

// check returns an error for a key that cannot be created.
func (k *Key) check(now time.Time) error {
	for what, text := range map[string]string{"the name of a key": k.Name, "the name of a project": k.Project} {
		if !IsName(text) {
			return fmt.Errorf("%s has up to 64 letters, digits and . _ @ -, and begins with a letter or a digit, and is not %.80q", what, text)
		}
	}
	if len(k.Scopes) == 0 {
		return fmt.Errorf("a key needs a scope: %s", join(Scopes))
	}
	for _, s := range k.Scopes {
		if !slices.Contains(Scopes, s) {
			return fmt.Errorf("%.40q is not a scope: there are %s", s, join(Scopes))
		}
	}
	l := k.Limits
	switch {
	case l.Requests < 0 || l.Tokens < 0 || l.Running < 0 || !(l.Cost >= 0):
		return errors.New("a limit cannot be negative")
	case !k.Expires.IsZero() && !now.Before(k.Expires):
		return errors.New("the key would have already expired")
	}
	return nil
}

func join(scopes []Scope) string {
	var list []string
	for _, s := range scopes {
		list = append(list, string(s))
	}
	return strings.Join(list, ", ")
}

// newSecret gives a key an id and a hash, and returns the key as its user sends it.
func (k *Key) newSecret() string {
	k.ID = strings.ToLower(rand.Text())[:12]
	secret := strings.ToLower(rand.Text())
	k.Hash = hashOf(secret)
	return "antiphon_" + k.ID + "_" + secret
}

func hashOf(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}

// nobody has the hash of no secret: comparing with it takes as long as with another.
var nobody = Key{Hash: strings.Repeat("0", 2*sha256.Size)}

// matches compares a secret in a time that does not depend on it.
func (k *Key) matches(secret string) bool {
	return subtle.ConstantTimeCompare([]byte(hashOf(secret)), []byte(k.Hash)) == 1
}
