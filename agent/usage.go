// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"slices"
	"strings"

	"github.com/antiphon-go/antiphon/agent/plan"
	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/item"
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

// apart copies the texts that a turn keeps of its reply. Otherwise the turn would hold the
// whole text of the reply's last event, which repeats the instructions, the tools and all
// items, for as long as the session is in memory.
func apart(end *session.TurnEnded) {
	for _, text := range []*string{&end.ResponseID, &end.Status, &end.Reason, &end.Model, &end.ServiceTier, &end.InConversation} {
		*text = strings.Clone(*text)
	}
	end.Usage = usageApart(end.Usage)
}

func usageApart(u *api.Usage) *api.Usage {
	if u == nil {
		return nil
	}
	in, out := u.InputDetails, u.OutputDetails
	if len(u.Extra)+len(u.Spelled) == 0 && (in == nil || len(in.Extra) == 0) && (out == nil || len(out.Extra) == 0) {
		return u // it holds numbers alone
	}
	own := *u
	own.Extra, own.Spelled = extraApart(u.Extra), extraApart(u.Spelled)
	if in != nil {
		details := *in
		details.Extra = extraApart(in.Extra)
		own.InputDetails = &details
	}
	if out != nil {
		details := *out
		details.Extra = extraApart(out.Extra)
		own.OutputDetails = &details
	}
	return &own
}

func extraApart(list item.Extra) item.Extra {
	own := slices.Clone(list)
	for i, m := range own {
		own[i] = item.Member{Name: strings.Clone(m.Name), Value: item.JSON(strings.Clone(string(m.Value)))}
	}
	return own
}
