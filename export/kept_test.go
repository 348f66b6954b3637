// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package export

import (
	"encoding/base64"
	"strings"
	"testing"

	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
)

// J13: the page has what outputs name as kept, once each and without secrets, and
// says what was not there.
func TestPageHasWhatIsKept(t *testing.T) {
	named := func(seq int64, call, id string) session.Entry {
		out, err := item.Output(call, item.Text("a\n[9 of 10 bytes left out here. To read them, call read_output with id "+id+" and offset 2]\n[smaller; the original is kept with the id pic]"))
		if err != nil {
			t.Fatal(err)
		}
		return session.Entry{Seq: seq, Body: session.CallOutput{CallID: call, Item: out}}
	}
	all := map[string]string{"text": "the whole <b>text</b> with sk-secret", "pic": "\x89PNG\r\n\x1a\nrest"}
	log := Log{
		Info: session.Info{ID: "x"},
		Entries: []session.Entry{
			{Seq: 1, Body: session.InputItem{Item: item.User("go")}}, {Seq: 2, Body: session.RunStarted{}}, {Seq: 3, Body: session.TurnStarted{Turn: 1}},
			{Seq: 4, Body: session.OutputItem{Turn: 1, Item: item.Call("c", "big", "{}")}}, {Seq: 5, Body: session.OutputItem{Turn: 1, Item: item.Call("d", "big", "{}")}},
			{Seq: 6, Body: session.TurnEnded{Turn: 1, Status: item.StatusCompleted}}, named(7, "c", "text"), named(8, "d", "gone"),
		},
		Blob: func(id string) ([]byte, error) {
			if text, ok := all[id]; ok {
				return []byte(text), nil
			}
			return nil, nil
		},
		Hide: func(s string) string { return strings.ReplaceAll(s, "sk-secret", "[redacted]") },
	}
	var b strings.Builder
	if err := HTML(&b, log); err != nil {
		t.Fatal(err)
	}
	page := b.String()
	for _, want := range []string{
		`download="text.txt" href="data:application/octet-stream;base64,` + base64.StdEncoding.EncodeToString([]byte("the whole <b>text</b> with [redacted]")) + `"`,
		`download="pic.png" href="data:application/octet-stream;base64,` + base64.StdEncoding.EncodeToString([]byte(all["pic"])) + `"`,
		"The stored output gone was missing when this page was made.",
	} {
		if strings.Count(page, want) != 1 {
			t.Errorf("%d times: %s", strings.Count(page, want), want)
		}
	}
	if ids, err := log.Kept(); err != nil || strings.Join(ids, " ") != "text pic gone" {
		t.Errorf("%q %v", ids, err)
	}
}
