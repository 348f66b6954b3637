// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agentfile_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/antiphon-go/antiphon/agentfile"
	"github.com/antiphon-go/antiphon/trust"
)

// TestDoubts: a check says which programs are not there and which command the
// model knows nothing about, also of an agent that is a tool; a run is not told.
// U8
func TestDoubts(t *testing.T) {
	dir := t.TempDir()
	write(t, `<tool name="deep" command="./gone.sh" description="Runs."/>`, dir, "inner.md")
	path := write(t, `<tool name="build" command="no-such-program --all"/>
<tool name="go" command="go version" description="Says which Go there is."/>
<tool mcp_server="stdio:no-such-server x"/>
<tool server="net" mcp_server="http://localhost:1/mcp"/>
<tool name="inner" agent="inner.md" local description="Helps."/>
<user>hi</user>
`, dir, "agent.md")
	f := load(t, path, agentfile.Options{Check: true})
	var got []string
	for _, d := range f.Lint() {
		got = append(got, strings.ReplaceAll(d.Error(), dir+string(filepath.Separator), ""))
	}
	want := []string{
		"agent.md:1:1: <tool command>: program no-such-program not found",
		"agent.md:1:1: <tool command>: build has no description",
		"agent.md:3:1: <tool mcp_server>: program no-such-server not found",
		"inner.md:1:1: <tool command>: program ./gone.sh not found",
	}
	if len(got) != len(want) {
		t.Fatalf("%q", got)
	}
	for i := range want {
		if !strings.HasPrefix(got[i], want[i]) || !strings.HasSuffix(got[i], "[warning]") {
			t.Errorf("%q, want %q", got[i], want[i])
		}
	}
	if len(f.Warnings) > 0 {
		t.Errorf("%v", f.Warnings)
	}
	broken := write(t, `<tool name="build" command="no-such-program"/><tool name="build" command="x"/><user>hi</user>`, dir, "broken.md")
	if f, err := agentfile.Load(t.Context(), broken, agentfile.Options{Check: true}); err == nil || len(f.Lint()) > 0 {
		t.Errorf("%v, %v", f.Lint(), err)
	}
	for _, nothing := range []string{"", " \n\t\n", "<!-- later -->\n"} {
		f := load(t, write(t, nothing, dir, "nothing.md"), agentfile.Options{Check: true})
		if d := f.Lint(); len(d) != 1 || !strings.Contains(d[0].Error(), "nothing.md:1:1: the file is empty: it has no message") {
			t.Errorf("%q: %v", nothing, d)
		}
	}
	none := load(t, write(t, "<user>hi</user>", dir, "none.md"), agentfile.Options{Consent: trust.Everything})
	if d := none.Lint(); len(d) > 0 {
		t.Errorf("%v", d)
	}
}
