// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package endpoint

import "fmt"

// RefusedError reports a request that was not sent because the endpoint or the model is known to
// reject it.
type RefusedError struct {
	// By is the name of the profile or the model that rejects the request.
	By string
	// Param is the member that is not accepted, such as "temperature" or "input[2]".
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
