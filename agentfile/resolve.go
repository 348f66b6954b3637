// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agentfile

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/antiphon-go/antiphon/chatmd"
	"github.com/antiphon-go/antiphon/session"
)

// resolve turns the file's messages into items.
func (f *File) resolve(ctx context.Context, from *sources) chatmd.ErrorList {
	located, err := f.Doc.Items(ctx, from)
	f.fetched, f.Partial = from.said, f.Partial || from.deferred
	f.Warnings = append(f.Warnings, from.warnings...)
	var problems chatmd.ErrorList
	switch {
	case errors.As(err, &problems):
		return problems
	case err != nil:
		return chatmd.ErrorList{{File: f.Doc.Name, Line: 1, Column: 1, Message: err.Error()}}
	}
	for _, l := range located {
		f.Items = append(f.Items, l.Item)
	}
	f.broken, f.waiting = brokenOff(f.Doc, located), waitingIn(f.Doc)
	for _, r := range f.repairs() {
		if at := located[r.Seq]; r.Item.IsOutput() {
			f.Warnings = append(f.Warnings, fmt.Errorf("%s:%d:%d: not sent: %s [warning]", f.Doc.Name, at.Line, at.Column, r.Reason))
		}
	}
	return nil
}

// repairs returns what a request would leave out. Seq is the item's number.
func (f *File) repairs() []session.Repair {
	var view session.View
	seq := int64(-1)
	for _, body := range f.Log() {
		if _, ok := body.(session.Given); ok {
			seq++
		}
		view.Apply(session.Entry{Seq: seq, Body: body})
	}
	return view.Repairs()
}

// isSource reports whether the attribute names a local file.
func isSource(e chatmd.Element, a chatmd.Attr) bool {
	return a.Name == "src" && (e.Flag("local") || e.Tag == "import") && !strings.HasPrefix(a.Value, "data:")
}
