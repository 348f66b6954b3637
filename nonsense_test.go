// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package antiphon_test

import (
	"bytes"
	"flag"
	"os"
	"testing"

	"github.com/antiphon-go/antiphon/internal/nonsense"
)

var update = flag.Bool("update", false, "write internal/nonsense/table_test.go again")

// TestNonsenseTable proves that the fuzz test of everything exported misses no function and
// no type. G8
func TestNonsenseTable(t *testing.T) {
	const file = "internal/nonsense/table_test.go"
	want, err := nonsense.Table(".", module)
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(file, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s does not list what the packages export: go test -run TestNonsenseTable . -update", file)
	}
}
