// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"

	"github.com/antiphon-go/antiphon/agent/plan"
	"github.com/antiphon-go/antiphon/session"
)

// count makes the usage of a turn one that counts.
func (r *Run) count(ctx context.Context, end *session.TurnEnded) error {
	u, wrong := plan.Counted(end.Usage)
	if end.Usage = u; wrong == "" {
		return nil
	}
	return r.notice(ctx, Noticed{Turn: end.Turn, Kind: session.NoticeUsageWrong, Text: wrong})
}
