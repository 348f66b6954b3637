// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package mcpbridge_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/agenttest"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/mcpbridge"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/tool"
)

// X3 T14: a server that gets and loses a tool while a run is under way. Each
// request has the tools of its moment; a call of one that is gone is answered
// with the names of those that are there, and what it did before is sent on.
func TestToolsChangeWithinRun(t *testing.T) {
	bridge, err := mcpbridge.Connect(t.Context(), mcpbridge.Options{Reserved: []string{"wait"}}, program("sdk"))
	if err != nil {
		t.Fatal(err)
	}
	defer bridge.Close()
	changed := bridge.Changed()
	wait := tool.Must("wait", "Waits until the server has said so.", func(context.Context, struct{}) (string, error) {
		<-changed
		changed = bridge.Changed()
		return "it has", nil
	})
	call := func(id, name, text string) agenttest.Reply {
		return agenttest.Completed(item.Call(id, name, `{"text":`+string(item.Quote(text))+`}`))
	}
	srv := agenttest.NewServer(t,
		call("c1", "grow", "new_tool"), agenttest.Completed(item.Call("c2", "wait", "{}")), call("c3", "new_tool", ""),
		call("c4", "shrink", "new_tool"), agenttest.Completed(item.Call("c5", "wait", "{}")), call("c6", "new_tool", ""),
		agenttest.Completed(item.Assistant("done")))
	a := &agent.Agent{Model: srv.Client(), Tools: []tool.Tool{wait}, Policy: agent.Policy{Allow: []string{"*"}}}
	a.ToolSource = func(ctx context.Context) ([]tool.Tool, error) {
		err := bridge.Refresh(ctx)
		return bridge.Tools(), err
	}
	a.Request.Model = "m"
	res, err := a.Run(t.Context(), session.New(), item.User("go"))
	if err != nil || res.Text != "done" {
		t.Fatal(res, err)
	}
	var has []bool
	for _, req := range srv.Requests() {
		has = append(has, slices.ContainsFunc(req.Parse(t).Tools, func(d item.Tool) bool {
			f, ok := d.(*item.FunctionTool)
			return ok && f.Name == "new_tool"
		}))
	}
	// The server tells of a change after it has answered, so that the turn right
	// behind it may have the new tools or not.
	if has[0] || !has[2] || !has[3] || has[5] || has[6] {
		t.Errorf("requests with the tool: %v", has)
	}
	last := srv.Requests()[len(srv.Requests())-1].Body
	for _, want := range []string{"I am new_tool", "tool not found: new_tool. Available: wait, "} {
		if !strings.Contains(string(last), want) {
			t.Errorf("the last request does not hold %q\n%s", want, last)
		}
	}
}
