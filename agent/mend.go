// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"cmp"
	"errors"
	"strings"

	"github.com/antiphon-go/antiphon/agent/plan"
	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/tool"
)

// ItemRefused is implemented by errors of a [Model] that does not send a
// request's input as it is, so that what an endpoint says of an item's place is
// not about that input. It returns the index of the item that was refused in
// the request's own input, or -1 if it cannot tell. Without it, the place is
// read from the error's Param, such as input[3].output.
type ItemRefused interface {
	error
	RefusedItem() int
}

// mend decides whether the model can be asked again for what it refused, and takes
// that out of the budget that the client draws on too. Nothing of a reply may have
// come. It returns the decision, to be recorded, or nil.
func (r *Run) mend(failure error) session.Body {
	f := r.failureOf(failure)
	if f == nil {
		return nil
	}
	decision := r.state.Mend(f)
	if decision == nil || !r.retries.Take() {
		return nil
	}
	return decision
}

// blamed returns the entry of the item that a request was refused for, 0 if
// none is named.
func (r *Run) blamed(failure error) int64 {
	if f := r.failureOf(failure); f != nil {
		return r.state.Blamed(f)
	}
	return 0
}

// failureOf is what an endpoint said, nil for another error.
func (r *Run) failureOf(failure error) *plan.Failure {
	var e *endpoint.Error
	if !errors.As(failure, &e) {
		return nil
	}
	f := &plan.Failure{Class: string(e.Class), Code: e.Code, Param: e.Param, Reason: reasonOf(e), Status: e.Status, Sent: e.Sent, Skip: r.skip}
	var mapped ItemRefused
	if f.Mapped = errors.As(failure, &mapped); f.Mapped {
		f.Item = mapped.RefusedItem()
	}
	return f
}

// maxReason is how many bytes of an endpoint's words the model reads.
const maxReason = 300

// reasonOf is what the endpoint said, in short.
func reasonOf(e *endpoint.Error) string {
	reason, _ := tool.Sanitize(cmp.Or(e.Message, e.Code, string(e.Class)))
	if len(reason) > maxReason {
		reason = strings.ToValidUTF8(reason[:maxReason], "") + "…"
	}
	return reason
}
