// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"context"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/tool"
	"github.com/antiphon-go/antiphon/tool/output"
)

var markID = regexp.MustCompile(`of 20971520 bytes left out here .*call read_output with id ([0-9a-f]+) and offset ([0-9]+)`)

func toolNames(req *api.Request) (all []string) {
	for _, t := range req.Tools {
		all = append(all, t.(*item.FunctionTool).Name)
	}
	return all
}

// T6 T7: 20 MB of an output do not end a session: the model gets 64 KiB of it and
// a tool for the rest, and the session has all of it, for later runs too.
func TestHugeOutput(t *testing.T) {
	huge := strings.Repeat("0123456789abcde\n", 20<<20/16)
	big := textTool("big", func(context.Context, string) (string, error) { return huge, nil }, tool.ReadOnly())
	m := &memory{replies: []any{
		[]item.Item{call("c1", "big", "")},
		[]item.Item{item.Assistant("done")},
	}}
	s := session.New()
	a := &agent.Agent{Model: m, Tools: []tool.Tool{big}}
	if _, err := a.Run(t.Context(), s, item.User("go")); err != nil {
		t.Fatal(err)
	}
	out := outputs(history(s))["c1"]
	mark := markID.FindStringSubmatch(out)
	if len(out) > output.DefaultBytes || mark == nil {
		t.Fatalf("%d bytes, mark %q", len(out), mark)
	}
	if got := toolNames(m.asked[0]); slices.Contains(got, tool.ReadOutputName) {
		t.Errorf("the tool for the rest is offered where nothing was left out: %q", got)
	}
	if got := toolNames(m.asked[1]); !slices.Equal(got, []string{"big", tool.ReadOutputName}) {
		t.Errorf("the tools behind an output that was shortened: %q", got)
	}

	m = &memory{replies: []any{
		[]item.Item{item.Call("c2", tool.ReadOutputName, `{"id":"`+mark[1]+`","offset":10485760,"limit":32}`)},
		[]item.Item{item.Assistant("done")},
	}}
	again := &agent.Agent{Model: m, Tools: []tool.Tool{big}}
	if _, err := again.Run(t.Context(), s, item.User("and the middle?")); err != nil {
		t.Fatal(err)
	}
	if out := outputs(history(s))["c2"]; !strings.HasPrefix(out, huge[:32]) {
		t.Errorf("the rest reads %q", out)
	}
}

// T7: what asks for no limit has none, and other tools that have the name stay.
func TestNoLimit(t *testing.T) {
	long := strings.Repeat("x", 300_000)
	big := textTool("big", func(context.Context, string) (string, error) { return long, nil }, tool.ReadOnly())
	mine := textTool(tool.ReadOutputName, func(context.Context, string) (string, error) { return long, nil }, tool.ReadOnly())
	for name, shape := range map[string]output.Policy{"none": {Limit: &output.Limit{}}, "default": {}} {
		m := &memory{replies: []any{
			[]item.Item{call("c1", "big", ""), call("c2", tool.ReadOutputName, "")},
			[]item.Item{item.Assistant("done")},
		}}
		s := session.New()
		a := &agent.Agent{Model: m, Tools: []tool.Tool{big, mine}, Output: shape}
		if _, err := a.Run(t.Context(), s, item.User("go")); err != nil {
			t.Fatal(err)
		}
		for id, out := range outputs(history(s)) {
			switch whole := out == long; {
			case whole != (name == "none"):
				t.Errorf("%s: %s has %d bytes", name, id, len(out))
			case !whole && !strings.Contains(out, "They were not kept"):
				t.Errorf("%s: %s says that its rest can be read, and no tool reads it", name, id)
			}
		}
		if got := toolNames(m.asked[1]); !slices.Equal(got, []string{"big", tool.ReadOutputName}) {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// noBlob is a store of one's own whose blobs are nil.
type noBlob struct{ session.Memory }

func (*noBlob) OpenBlob(context.Context, session.Hash) (b session.Blob, size int64, err error) {
	return nil, 5, nil
}

// A store that finds a blob and returns none is named in an error. G8
func TestOutputOfNoBlob(t *testing.T) {
	outputs := agent.BlobOutputs(new(noBlob), "s")
	if _, _, err := outputs.Get(t.Context(), strings.Repeat("0a", 32), 0, 1); err == nil || !strings.Contains(err.Error(), "*agent_test.noBlob returned no blob") {
		t.Error(err)
	}
}
