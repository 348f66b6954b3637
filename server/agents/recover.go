// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agents

import (
	"context"

	"github.com/antiphon-go/antiphon/internal/nils"
	"github.com/antiphon-go/antiphon/session"
)

// maxRecovered bounds how many sessions Recover looks at. A response of an older session
// is ended when somebody asks for it.
const maxRecovered = 1000

// Recover ends the responses that an earlier server left unfinished, in the sessions that
// were written to last: they become incomplete. Responses that another server makes over
// the same store are left alone. Errors are reported; the responses are ended when they
// are read.
func (b *Backend) Recover(ctx context.Context) {
	var list []session.Info
	for info, err := range nils.Each(b.store(), "List", b.store().List(ctx, session.Query{Tags: []string{tag}, Owner: b.owner(), Limit: maxRecovered})) {
		if err != nil {
			b.report(err) // of a row that cannot be read, behind all others
			break
		}
		list = append(list, info)
	}
	for _, info := range list {
		last := false
		for e, err := range nils.Each(b.store(), "Load", b.store().Load(ctx, info.ID, info.Entries-1)) {
			b.report(err)
			n, ok := noteOf(e)
			last = ok && (n.Kind == kindEnd || n.Kind == kindDeleted)
		}
		if last || info.Entries == 0 {
			continue
		}
		s, err := session.Open(ctx, b.store(), info.ID)
		if err != nil {
			b.report(err)
			continue
		}
		if id := lastID(s.Log()); id != "" && unfinished(s.Log()) == "" {
			if _, err := b.Get(ctx, id); err != nil {
				b.report(err)
			}
		}
	}
}
