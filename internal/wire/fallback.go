// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"errors"
	"net/http"
	"strings"

	"github.com/antiphon-go/antiphon/endpoint"
)

// Fallback returns the profile to try when err says that the endpoint could not
// make sense of the request, or nil. Only where nobody said which profile it
// is.
func (l *Link) Fallback(p *endpoint.Profile, err error) *endpoint.Profile {
	if err == nil || l.Profile != nil || p.Fallback == "" || !malformed(err) {
		return nil
	}
	other, unknown := l.Table.ByName(p.Fallback)
	if unknown != nil {
		return nil
	}
	return &other
}

// Adopt takes the fallback for good if the endpoint made sense of it.
func (l *Link) Adopt(p, fallback *endpoint.Profile, err error) bool {
	if malformed(err) {
		return false
	}
	l.Learned.profile.CompareAndSwap(p, fallback)
	return true
}

// malformed reports an answer that says the request's input is at fault, or does
// not say what is, before anything came of it.
func malformed(err error) bool {
	var e *endpoint.Error
	return errors.As(err, &e) && e.Class == endpoint.BadRequest &&
		(e.Status == http.StatusBadRequest || e.Status == http.StatusUnprocessableEntity) &&
		(e.Param == "" || strings.HasPrefix(e.Param, "input") || strings.HasPrefix(e.Param, "messages"))
}

// Instead prepares the call for a request in another shape, out of the same
// budget: false if it is the same, or the budget is spent.
func (k *Call) Instead(other *Call) bool {
	if k.body.Equal(other.body) || !k.budget.Take() {
		return false
	}
	other.budget, other.attempt = k.budget, k.attempt
	return true
}
