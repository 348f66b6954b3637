// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package sqlstore_test

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"testing"
	"time"

	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
)

// step is what a run appends when there are n entries: one or two, sometimes
// with an image.
func step(n int) []session.Body {
	bodies := []session.Body{session.InputItem{Item: item.User(fmt.Sprintf("step %d", n))}}
	if n%7 == 3 {
		bodies = append(bodies, session.InputItem{Item: image(5000+n%3, byte(n%3))})
	}
	return bodies
}

// image is an item with a payload of n bytes.
func image(n int, seed byte) item.Item {
	data := bytes.Repeat([]byte{seed, 'p', 'i', 'x', 'e', 'l', 's'}, n/7+1)[:n]
	return item.Must(&item.Message{Role: item.RoleUser, Content: item.Parts(
		&item.InputImage{ImageURL: "data:image/png;base64," + base64.StdEncoding.EncodeToString(data)})})
}

func mustAppend(t testing.TB, s session.Store, id string, after int64, bodies ...session.Body) {
	t.Helper()
	if err := s.Append(t.Context(), id, after, numbered(after, bodies...)); err != nil {
		t.Fatal(err)
	}
}

func numbered(after int64, bodies ...session.Body) []session.Entry {
	var list []session.Entry
	for i, b := range bodies {
		list = append(list, session.Entry{Seq: after + int64(i) + 1, Body: b})
	}
	return list
}

func loadAll(t testing.TB, s session.Store, id string) []session.Entry {
	t.Helper()
	var list []session.Entry
	for e, err := range s.Load(t.Context(), id, 0) {
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, e)
	}
	return list
}

// line is an entry as text, without its time and with its payloads.
func line(t testing.TB, e session.Entry) string {
	t.Helper()
	e.Time = time.Time{}
	b, err := session.AppendEntry(nil, e)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// checkSteps proves that a log is what a run of steps has written, whole steps
// only, and returns its length.
func checkSteps(t testing.TB, s session.Store, id string) int {
	t.Helper()
	got := loadAll(t, s, id)
	var want []session.Entry
	for len(want) < len(got) {
		n := int64(len(want))
		want = append(want, numbered(n, step(len(want))...)...)
	}
	if len(want) != len(got) {
		t.Fatalf("%d entries: a step was written in part", len(got))
	}
	for i := range got {
		if g, w := line(t, got[i]), line(t, want[i]); g != w {
			t.Fatalf("entry %d: %.200s, want %.200s", i+1, g, w)
		}
	}
	return len(got)
}
