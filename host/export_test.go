// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package host_test

import (
	"context"
	"errors"
	"io"
	"iter"
	"strings"
	"testing"

	"github.com/antiphon-go/antiphon/host"
	"github.com/antiphon-go/antiphon/internal/memstore"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
)

// brokenInbox has a session with an inbox that cannot be read to its end.
type brokenInbox struct {
	*memstore.Store
	of string
}

func (s brokenInbox) Deliveries(ctx context.Context, id string) iter.Seq2[session.Delivery, error] {
	return func(yield func(session.Delivery, error) bool) {
		for d, err := range s.Store.Deliveries(ctx, id) {
			if !yield(d, err) {
				return
			}
		}
		if id == s.of {
			yield(session.Delivery{}, &session.Damage{Session: id, Place: "its inbox", Problem: "it is torn"})
		}
	}
}

// J13: a page and a transcript do not hold what waits. They say so, also of a nested session, and they are made
// whole if it cannot be read.
func TestExportBesideABrokenInbox(t *testing.T) {
	for name, of := range map[string]string{"whole": "", "the session's": "s", "a nested one's": "s/1-c"} {
		t.Run(name, func(t *testing.T) {
			in := brokenInbox{new(memstore.DB).Open(memstore.Options{}), of}
			for _, info := range []session.Info{{ID: "s"}, {ID: "s/1-c", Parent: "s", Nested: true}} {
				if err := in.Create(t.Context(), info, session.Entry{Seq: 1, Body: session.InputItem{Item: item.User("what was said")}}); err != nil {
					t.Fatal(err)
				}
				waits := session.Delivery{Delivered: session.Delivered{Key: "k"}, Bodies: []session.Body{session.InputItem{Item: item.User("later")}}}
				if _, err := in.Deliver(t.Context(), info.ID, waits); err != nil {
					t.Fatal(err)
				}
			}
			var told []string
			e := host.Export{Store: in, Session: session.Info{ID: "s"}, FrontEnd: host.FrontEnd{Notify: func(n host.Notice) { told = append(told, n.Text) }}}
			for form, write := range map[string]func(io.Writer) error{
				"html": func(w io.Writer) error { return e.HTML(t.Context(), w) },
				"chatmd": func(w io.Writer) error {
					to, err := e.Transcript(t.Context(), "")
					if err != nil {
						return err
					}
					return to(w)
				},
			} {
				told = nil
				var text strings.Builder
				if err := write(&text); err != nil || !strings.Contains(text.String(), "what was said") {
					t.Errorf("%s: %v, %d bytes", form, err, text.Len())
				}
				says := strings.Join(told, "\n")
				if !strings.Contains(says, "2 deliveries that wait") || strings.Contains(says, "it is torn") != (of != "") {
					t.Errorf("%s says %q", form, says)
				}
			}
			if err := e.JSONLines(t.Context(), io.Discard); of == "s" && !errors.Is(err, session.ErrDamaged) {
				t.Errorf("lines without what waits: %v", err)
			}
		})
	}
}
