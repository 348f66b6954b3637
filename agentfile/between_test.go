// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agentfile_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/agentfile"
	"github.com/antiphon-go/antiphon/agenttest"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
)

// K6: an answer about a command is for what its script was. If the script is another one in a later
// run, which reads the file anew, neither a yes to a call that waited nor a rule that was remembered
// covers it.
func TestScriptChangesBetweenRuns(t *testing.T) {
	for name, c := range map[string]struct {
		remember, change bool
		marks            string // what ran
		waits            bool   // a call at the end
	}{
		"a yes":              {false, false, "old\n", false},
		"a yes, changed":     {false, true, "", false},
		"always":             {true, false, "old\nold\n", false},
		"always and changed": {true, true, "", true},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			script := write(t, "echo old >>marks\n", dir, "mark.sh")
			path := write(t, `<tool name="mark" command="sh mark.sh" description="Marks."/><user>x</user>`, dir, "agent.md")
			replies := []agenttest.Reply{agenttest.Completed(item.Call("c1", "mark", "{}"))}
			if c.remember {
				replies = append(replies, agenttest.Completed(item.Call("c2", "mark", "{}")))
			}
			srv := agenttest.NewServer(t, append(replies, agenttest.Completed(item.Assistant("done")))...)
			s := session.New()
			run := func(input ...item.Item) *agent.Result {
				t.Helper()
				f := load(t, path, agentfile.Options{Workspace: dir})
				a := f.Agent(srv.Client())
				a.Request.Model, a.Policy.Pause = "m", true
				res, err := a.Run(t.Context(), s, input...)
				if err != nil {
					t.Fatal(err)
				}
				return res
			}
			res := run(item.User("go"))
			if len(res.Pending) != 1 {
				t.Fatalf("%+v", res)
			}
			yes := agent.Decision{CallID: "c1", Allow: true}
			if rules := res.Pending[0].Rules; c.remember {
				yes.Remember = &rules[len(rules)-1]
			}
			if err := agent.Decide(t.Context(), s, yes); err != nil {
				t.Fatal(err)
			}
			if c.change {
				write(t, "echo new >>marks\n", dir, filepath.Base(script))
			}
			res = run()
			marks, _ := os.ReadFile(filepath.Join(dir, "marks"))
			if strings.ReplaceAll(string(marks), "\r", "") != c.marks || (len(res.Pending) > 0) != c.waits {
				t.Errorf("it has run %q, and waits: %+v", marks, res.Pending)
			}
		})
	}
}
