// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"

	"github.com/antiphon-go/antiphon/agent/plan"
	"github.com/antiphon-go/antiphon/session"
)

// count corrects the usage of a turn if it is impossible, and notices the correction.
func (r *Run) count(ctx context.Context, end *session.TurnEnded) error {
	u, wrong := plan.Counted(end.Usage)
	if end.Usage = u; wrong == "" {
		return nil
	}
	return r.notice(ctx, session.Noticed{Turn: end.Turn, Kind: session.NoticeUsageWrong, Text: wrong})
}
