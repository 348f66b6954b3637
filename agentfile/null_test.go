// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agentfile_test

import (
	"strings"
	"testing"

	"github.com/antiphon-go/antiphon/agenttest"
	"github.com/antiphon-go/antiphon/item"
)

// models write null for an argument that they leave out, also to a tool that a file declares.
func TestNullArguments(t *testing.T) {
	dir := t.TempDir()
	write(t, `<tool name="read_file" approval="allow"/><user>hi</user>`, dir, "agent.md")
	write(t, "Buy milk.", dir, "notes.txt")
	srv := agenttest.NewServer(t, agenttest.Completed(item.Call("c1", "read_file", `{"path":"notes.txt","offset":null,"limit":null}`)), agenttest.Completed(item.Assistant("Done.")))
	f, s := open(t, dir+"/agent.md", dir+"/talk.md")
	a := f.Agent(srv.Client())
	a.Request.Model = "m"
	if _, err := a.Run(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	if last := string(srv.Requests()[1].Body); !strings.Contains(last, "Buy milk.") {
		t.Errorf("the model read %s", last)
	}
}
