// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package rehearsal

import "fmt"

// A SyntaxError is one problem in the text of a script. [Parse] joins all problems;
// use [errors.As] to get the first.
type SyntaxError struct {
	File string
	// Line and Column count from 1; columns are bytes.
	Line, Column int
	Problem      string
	// Hint suggests a correction, or is "".
	Hint string
}

func (e *SyntaxError) Error() string {
	s := fmt.Sprintf("%s:%d:%d: %s", e.File, e.Line, e.Column, e.Problem)
	if e.Hint != "" {
		s += " (" + e.Hint + ")"
	}
	return s
}
