// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"testing"

	"github.com/antiphon-go/antiphon/endpoint"
)

// The classes of errors are those that clients give, whose package is not imported.
func TestClasses(t *testing.T) {
	for own, theirs := range map[string]endpoint.Class{
		classRateLimit: endpoint.RateLimit, classOverloaded: endpoint.Overloaded, classServer: endpoint.Server, classAuth: endpoint.Auth,
		classForbidden: endpoint.Forbidden, classNotFound: endpoint.NotFound, classBadRequest: endpoint.BadRequest, classQuota: endpoint.Quota,
		classTooLarge: endpoint.TooLarge, classContextOverflow: endpoint.ContextOverflow, classPreviousResponse: endpoint.PreviousResponse,
		classEncryptedContent: endpoint.EncryptedContent,
	} {
		if own != string(theirs) {
			t.Errorf("%s is %s at the endpoint", own, theirs)
		}
	}
}
