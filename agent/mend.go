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
	"github.com/antiphon-go/antiphon/tool/output"
)

// ItemRefused is implemented by errors of a [Model] that rewrites a request's input
// before sending it, so that positions in the endpoint's error do not refer to that
// input. It returns the index of the refused item in the original input, or -1 if it
// is unknown. For other errors, the index is read from the error's Param, such as
// input[3].output.
type ItemRefused interface {
	error
	RefusedItem() int
}

// mend decides whether the model can be asked again after it refused a request, and
// draws one retry from the budget that it shares with the client. The caller must
// make sure that nothing of a reply has arrived. It returns the decision, which must
// be recorded, or nil.
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

// blamed returns the entry of the refused item, or 0 if the error does not name it.
func (r *Run) blamed(failure error) int64 {
	if f := r.failureOf(failure); f != nil {
		return r.state.Blamed(f)
	}
	return 0
}

// failureOf converts an endpoint's error; nil for other errors.
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

// maxReason is the largest part of an endpoint's message that the model reads, in
// bytes.
const maxReason = 300

// reasonOf returns the endpoint's message, shortened.
func reasonOf(e *endpoint.Error) string {
	reason, _ := output.Sanitize(cmp.Or(e.Message, e.Code, string(e.Class)))
	if len(reason) > maxReason {
		reason = strings.ToValidUTF8(reason[:maxReason], "") + "…"
	}
	return reason
}
