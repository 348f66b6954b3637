// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"strings"

	"github.com/antiphon-go/antiphon/session"
)

// maxCycle is the largest number of calls in turn that count as a repetition.
const maxCycle = 3

// repeats finds calls that are repeated: one call in a row, or a few in turn.
type repeats struct {
	last []made // the last calls, as many as a repetition can have
}

// made is a call: its tool and a hash of its arguments, which may be long.
type made struct{ name, arguments string }

// add records a call. Most is the number of repetitions that stops the run.
func (r *repeats) add(name, arguments string, most int) {
	if len(r.last)/maxCycle >= most { // without a product, which may be too large
		keep := most*maxCycle - 1
		r.last = append(r.last[:0], r.last[len(r.last)-keep:]...)
	}
	r.last = append(r.last, made{name, session.Fingerprint(arguments)})
}

// found describes a repetition that has happened at least most times, or returns "".
func (r *repeats) found(most int) string {
	for cycle := 1; cycle <= maxCycle; cycle++ {
		if r.cycles(cycle) < most {
			continue
		}
		if cycle == 1 {
			return fmt.Sprintf("%s was called %d times in a row with the same arguments", r.last[len(r.last)-1].name, r.cycles(1))
		}
		names := make([]string, cycle)
		for i, c := range r.last[len(r.last)-cycle:] {
			names[i] = c.name
		}
		return fmt.Sprintf("%s were called in turn %d times, each with the same arguments", strings.Join(names, ", "), r.cycles(cycle))
	}
	return ""
}

// cycles returns how often the last calls, in groups of the given size, are the same.
func (r *repeats) cycles(size int) int {
	n := len(r.last)
	if n < size {
		return 0
	}
	same := size
	for i := n - 1 - size; i >= 0 && r.last[i] == r.last[i+size]; i-- {
		same++
	}
	return same / size
}
