// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package tool_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/tool"
	"github.com/antiphon-go/antiphon/tool/output"
)

// B5 J6: a secret of the run is in no output, however it comes: in a text, a
// part, an error, a command's streams, or what is kept of a long output.
func TestSecrets(t *testing.T) {
	const key = "sk-secret-0123456789"
	spill := new(output.MemoryStore)
	var result tool.Result
	var failure error
	set, err := tool.NewSet(tool.ReadOutput(spill), tool.Must("leak", "Leaks.", func(context.Context, struct{}) (tool.Result, error) { return result, failure }))
	if err != nil {
		t.Fatal(err)
	}
	shape := output.Policy{Secrets: []string{key, "", "short"}}
	run := func() tool.Outcome {
		return set.Invoke(t.Context(), tool.Call{Name: "leak", Arguments: "{}"}, shape)
	}
	shown := func(o tool.Outcome) string {
		for _, c := range o.Commands {
			o.Error += c.Stdout + c.Stderr
		}
		return o.Content.Display() + o.Error
	}
	for name, r := range map[string]tool.Result{
		"text":     {Text: "KEY=" + key + "\nshort stays"},
		"escaped":  {Text: "KEY=sk-secret\x1b[0m-0123456789\nshort stays"},
		"part":     {Parts: []item.Part{&item.InputText{Text: "a"}, &item.InputText{Text: key + " short stays"}}},
		"error":    {Error: "no " + key + " and short stays"},
		"commands": {Text: "short stays", Commands: []item.ShellOutput{{Stdout: key, Stderr: "x" + key, Outcome: item.ShellExit(0)}}},
	} {
		result = r
		o := run()
		if got := shown(o); strings.Contains(got, "0123456789") || !strings.Contains(got, output.Redacted) || !strings.Contains(got, "short stays") {
			t.Errorf("%s: %q", name, got)
		}
		if strings.Contains(r.Text+r.Error, key) && !strings.Contains(result.Text+result.Error, key) {
			t.Errorf("%s: the tool's own result was changed", name)
		}
	}
	result, failure = tool.Result{Text: "so far " + key}, errors.New("failed with "+key)
	if got := shown(run()); strings.Contains(got, key) {
		t.Errorf("%q", got)
	}
	result, failure = tool.Result{Text: strings.Repeat("line with "+key+"\n", 1000)}, nil
	shape.Limit = &output.Limit{Bytes: 2000}
	o := run()
	if len(o.Stored) != 1 {
		t.Fatalf("%+v", o)
	}
	data, _, err := spill.Get(t.Context(), o.Stored[0], 0, 1<<20)
	if err != nil || strings.Contains(string(data), key) || strings.Contains(shown(o), key) {
		t.Error("the secret was kept", err)
	}
}

// T7: a tool's usual limit counts where nobody sets another.
func TestUsualOutput(t *testing.T) {
	long := strings.Repeat("0123456789\n", 1000)
	run := func(shape output.Policy, opts ...tool.Option) int {
		set, err := tool.NewSet(tool.Must("long", "Is long.", func(context.Context, struct{}) (string, error) { return long, nil }, opts...))
		if err != nil {
			t.Fatal(err)
		}
		return len(set.Invoke(t.Context(), tool.Call{Name: "long", Arguments: "{}"}, shape).Content.Text)
	}
	usual := tool.UsualOutput(output.Limit{Bytes: 2000})
	for name, c := range map[string]struct{ got, atLeast, atMost int }{
		"alone":             {run(output.Policy{}, usual), 1500, 2000},
		"of all":            {run(output.Policy{Limit: &output.Limit{Bytes: 4000}}, usual), 3000, 4000},
		"its own":           {run(output.Policy{}, usual, tool.MaxOutput(output.Limit{Bytes: 6000})), 5000, 6000},
		"none":              {run(output.Policy{}), len(long), len(long)},
		"with one of turns": {run(output.Policy{PerTurn: &output.Limit{Bytes: 9000}}, usual), 1500, 2000},
	} {
		if c.got < c.atLeast || c.got > c.atMost {
			t.Errorf("%s: %d bytes, want %d to %d", name, c.got, c.atLeast, c.atMost)
		}
	}
	if _, err := tool.New("x", "y", func(context.Context, struct{}) (string, error) { return "", nil }, tool.UsualOutput(output.Limit{Bytes: 1})); err == nil {
		t.Error("a limit that is too small was taken")
	}
	if _, err := tool.New("x", "y", func(context.Context, struct{}) (string, error) { return "", nil }, tool.Approval("perhaps")); err == nil {
		t.Error("an approval that is none was taken")
	}
}
