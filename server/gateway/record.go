// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/item"
)

// Record says how a response was made. It has no contents and no secrets (rule J12 in docs/rules.md).
type Record struct {
	Time time.Time `json:"time"`
	// Response is the id of the response, and Model the model that the request named.
	Response string `json:"response,omitempty"`
	Model    string `json:"model"`
	// Attempts are the upstreams in the order in which they were asked. If the response was
	// made, it is by the last one.
	Attempts []*Attempt `json:"attempts"`
	// Notes say what the upstreams did not receive of the history.
	Notes []string `json:"notes,omitempty"`
}

// Attempt is one upstream that was asked for a response.
type Attempt struct {
	URL     string `json:"url"` // without secrets
	API     string `json:"api"`
	Profile string `json:"profile,omitempty"`
	// Model is the model that the upstream says has answered.
	Model string `json:"model,omitempty"`
	// Outcome is "answered", "failed", or why the upstream was not asked. It is "" while the
	// answer is not complete.
	Outcome string `json:"outcome,omitempty"`
	Error   string `json:"error,omitempty"`
}

func (r *Record) begin(u *upstream) *Attempt {
	at := u.about()
	a := &Attempt{URL: at.URL, API: at.API, Profile: at.Profile}
	r.Attempts = append(r.Attempts, a)
	return a
}

// answeredBy notes the model that a response of the upstream names. The response may be nil.
func (a *Attempt) answeredBy(r *api.Response) {
	if r != nil && r.Model != "" {
		a.Model = r.Model
	}
}

func (a *Attempt) fail(outcome string, err error) { a.Outcome, a.Error = outcome, err.Error() }

// String returns the record as one line.
func (r Record) String() string {
	var b strings.Builder
	b.WriteString(r.Response + " model " + r.Model)
	for _, a := range r.Attempts {
		if a == nil {
			continue
		}
		b.WriteString(": " + a.URL)
		if a.Model != "" && a.Model != r.Model {
			b.WriteString(" (" + a.Model + ")")
		}
		b.WriteString(" " + a.Outcome)
		if a.Error != "" {
			b.WriteString(": " + a.Error)
		}
	}
	for _, n := range r.Notes {
		b.WriteString("; " + n)
	}
	return b.String()
}

func (r *Record) json() item.JSON {
	text, err := json.Marshal(r)
	if err != nil { // a text that is not UTF-8
		return `{"error":"the record cannot be encoded"}`
	}
	return item.JSON(text)
}
