// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "-worker" {
		main()
		return
	}
	os.Exit(m.Run())
}

// J1: whatever is killed, the conversation comes to its end, nothing is ordered twice,
// and the model knows of each order that was made that it was, or may have been.
func TestHandover(t *testing.T) {
	for seed := range uint64(4) {
		came, err := direct(12, rand.New(rand.NewPCG(seed, 1)), io.Discard)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		for _, what := range []string{"tea", "rice", "salt"} {
			ordered := 0
			for _, o := range came.orders {
				if o == what {
					ordered++
				}
			}
			if told := strings.Contains(came.answer, "a crate of "+what); ordered > 1 || told && ordered == 0 {
				t.Errorf("seed %d: %s was ordered %d times, and the answer is %q", seed, what, ordered, came.answer)
			}
		}
		if !strings.HasPrefix(came.answer, "Tea: ") || slices.Contains([]int{came.runs, came.entries}, 0) {
			t.Errorf("seed %d: %+v", seed, came)
		}
	}
}
