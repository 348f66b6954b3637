// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package sandbox_test

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

// roles are what this executable does when it is started with a first argument of that
// name: it is also the program in the sandbox, and the program that starts sandboxes.
var roles = map[string]func(args []string){}

func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		if run, ok := roles[os.Args[1]]; ok {
			run(os.Args[2:])
			os.Exit(0)
		}
	}
	goleak.VerifyTestMain(m)
}
