// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package compliance_test

import (
	"flag"
	"testing"

	"github.com/antiphon-go/antiphon/internal/compliance"
)

var (
	base  = flag.String("base", "", "the base URL of a server to check, such as http://127.0.0.1:8787/v1")
	model = flag.String("model", "", "the model of that server")
)

// The server that -base names complies.
func TestServer(t *testing.T) {
	if *base == "" {
		t.Skip("-base names no server")
	}
	compliance.Run(t, *base, *model)
}
