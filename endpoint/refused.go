// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package endpoint

import "fmt"

// RefusedError reports a request that was not sent, since the endpoint or the
// model is known not to take it.
type RefusedError struct {
	// By is the profile or the model that does not take it.
	By string
	// Param is the member at fault, such as "temperature" or "input[2]".
	Param   string
	Problem string
	Hint    string
}

func (e *RefusedError) Error() string {
	msg := "not sent: "
	if e.Param != "" {
		msg += e.Param + ": "
	}
	msg += e.Problem
	if e.By != "" {
		msg += fmt.Sprintf(" (%s)", e.By)
	}
	if e.Hint != "" {
		msg += "; " + e.Hint
	}
	return msg
}
