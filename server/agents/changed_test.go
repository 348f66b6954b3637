// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agents_test

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/antiphon-go/antiphon/server/agents"
	"github.com/antiphon-go/antiphon/trust"
)

// A request runs the file as it is. One that has changed and has powers is refused, and the
// client is told that this may pass, until somebody agrees: the server need not start again. K6
func TestChangedFile(t *testing.T) {
	var agreed atomic.Value
	agreed.Store("")
	w := serving(t, `<tool name="append_to_file" approval="allow"/>`+"\n<system>one</system>\n", "again\nturn\n  say Hello.\n", func(b *agents.Backend) {
		b.Agents[0].Config.Trust = func(ctx context.Context, c trust.Claim) (trust.Agreement, error) {
			if agreed.CompareAndSwap("", c.Hash()) || agreed.Load() == c.Hash() {
				return trust.Everything(ctx, c)
			}
			return trust.Agreement{}, &trust.UntrustedError{Claim: c}
		}
	})
	const ask = `{"model":"it","input":"x"}`
	w.create(ask)
	write(t, w.dir, "it.md", strings.ReplaceAll(fileText(t, w.dir, "it.md"), ">one<", ">two<"))
	for _, path := range []string{"responses", "responses/input_tokens"} {
		status, text := w.send(http.MethodPost, path, ask)
		if status != http.StatusServiceUnavailable || !strings.Contains(text, `"agent_not_trusted"`) || strings.Contains(text, "append_to_file") || strings.Contains(text, w.dir) {
			t.Errorf("%s: %d %s", path, status, text)
		}
	}
	agreed.Store("")
	w.create(ask)
}

// A misspelt attribute does not make the rehearsal model answer in place of the model that the file named.
func TestMisspeltModel(t *testing.T) {
	w := serving(t, "", "again\nturn\n  say Hello.\n", func(b *agents.Backend) { b.Agents[0].Config.Endpoint.Several = true })
	const ask = `{"model":"it","input":"x"}`
	w.create(ask)
	write(t, w.dir, "it.md", "<config modle=\"rehearsal\"/>\n")
	for _, path := range []string{"responses", "responses/input_tokens"} {
		if status, text := w.send(http.MethodPost, path, ask); status != http.StatusServiceUnavailable || !strings.Contains(text, `"agent_invalid"`) {
			t.Errorf("%s: %d %s", path, status, text)
		}
	}
	write(t, w.dir, "it.md", "<config/>\n") // names no model by intent
	w.create(ask)
}

// A deleted file is a mistake of the operator, too.
func TestDeletedFile(t *testing.T) {
	w := serving(t, "", "again\nturn\n  say Hello.\n", nil)
	const ask = `{"model":"it","input":"x"}`
	w.create(ask)
	if err := os.Remove(filepath.Join(w.dir, "it.md")); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"responses", "responses/input_tokens"} {
		if status, text := w.send(http.MethodPost, path, ask); status != http.StatusServiceUnavailable || !strings.Contains(text, `"agent_invalid"`) || strings.Contains(text, w.dir) {
			t.Errorf("%s: %d %s", path, status, text)
		}
	}
}

// The model of a deleted file is not listed. Its name is still that of an agent, so that a server beside this one, such as
// a gateway, does not get what is meant for the agent.
func TestDeletedFileListed(t *testing.T) {
	w := serving(t, "", "again\nturn\n  say Hello.\n", nil)
	for _, want := range []int{1, 0} {
		all, err := w.b.Models(t.Context(), "")
		named, failed := w.b.Models(t.Context(), "it")
		if err != nil || failed != nil || len(all) != want || len(named) != 1 {
			t.Errorf("%+v, %+v, %v, %v", all, named, err, failed)
		}
		if err := os.RemoveAll(filepath.Join(w.dir, "it.md")); err != nil {
			t.Fatal(err)
		}
	}
}

// A client is told that a file with a mistake may be mended, and what is in it or where it is
// goes to the operator alone.
func TestMistakenFile(t *testing.T) {
	w := serving(t, "", "again\nturn\n  say Hello.\n", nil)
	const ask = `{"model":"it","input":"x"}`
	good := fileText(t, w.dir, "it.md")
	w.create(ask)
	write(t, w.dir, "it.md", good+"<tool name=\"secret-tool\n")
	for _, path := range []string{"responses", "responses/input_tokens"} {
		status, text := w.send(http.MethodPost, path, ask)
		if status != http.StatusServiceUnavailable || !strings.Contains(text, `"agent_invalid"`) || strings.Contains(text, "secret-tool") || strings.Contains(text, w.dir) {
			t.Errorf("%s: %d %s", path, status, text)
		}
	}
	write(t, w.dir, "it.md", good)
	w.create(ask)
}
