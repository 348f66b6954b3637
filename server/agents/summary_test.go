// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agents_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"net/http"
	"slices"
	"testing"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/host"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/server"
	"github.com/antiphon-go/antiphon/server/agents"
)

// The text of each part of a summary is streamed as the text of that part.
func TestSummaryParts(t *testing.T) {
	model := &server.Server{Backend: server.BackendFunc(func(_ context.Context, _ *server.Request, w *server.Writer) error {
		parts := []item.Part{&item.SummaryText{Text: "First."}, &item.SummaryText{Text: "Second."}}
		if err := w.Item(item.Must(&item.Reasoning{Summary: parts})); err != nil {
			return err
		}
		return w.Text("Done.")
	})}
	base, stop, err := model.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	w := serving(t, "", "turn\n  say Never.\n", func(b *agents.Backend) {
		b.Agents[0].Config.Endpoint = host.Endpoint{BaseURL: base}
	})
	write(t, w.dir, "it.md", "<config model=\"m\"/>\n<system>Be brief.</system>\n")
	resp := w.open(t.Context(), http.MethodPost, "responses", `{"model":"it","input":"x","stream":true}`)
	defer resp.Body.Close()
	got := map[string]string{}
	var kinds []string
	for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
		data, ok := bytes.CutPrefix(lines.Bytes(), []byte("data: "))
		if !ok || string(data) == "[DONE]" {
			continue
		}
		ev, err := api.ParseEvent(bytes.Clone(data))
		if err != nil {
			t.Fatal(err)
		}
		kinds = append(kinds, string(ev.Type))
		if ev.Type == api.EventSummaryTextDelta {
			got[fmt.Sprint(ev.SummaryIndex)] += ev.Delta
		}
	}
	if len(got) != 2 || got["0"] != "First." || got["1"] != "Second." || !slices.Contains(kinds, string(api.EventCompleted)) {
		t.Errorf("%q in %q", got, kinds)
	}
}
