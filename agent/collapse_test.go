// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"context"
	"errors"
	"path"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/tool"
	"github.com/antiphon-go/antiphon/tool/output"
)

// reader is a tool that reads what is in files, and says what it reads.
func reader(files map[string]string) tool.Tool {
	return textTool("read", func(_ context.Context, name string) (string, error) {
		text, ok := files[path.Clean(name)]
		if !ok {
			return "", errors.New("there is no such file: " + strings.Repeat("sorry ", 40))
		}
		return text, nil
	}, tool.ReadKey(func(arguments string) (string, bool) {
		it, err := item.ParseString(`{"type":"x",` + arguments[1:])
		if err != nil {
			panic("it is only called for what was read: " + arguments)
		}
		text, _ := it.Member("text")
		name, ok := text.Unquote()
		return path.Clean(name), ok
	}))
}

const collapsedMark = "The output of this call is left out: a later call read the same again. See its output."

// readTwice makes the model read a file, something else, and the file again.
func readTwice(files map[string]string) (*small, *agent.Agent) {
	m := &small{reply: func(turn int) []item.Item {
		switch turn {
		case 1:
			return []item.Item{call("c1", "read", "a"), call("c2", "read", "b"), call("c3", "read", "none")}
		case 2:
			return []item.Item{call("c4", "read", "./a"), call("c5", "read", "none")}
		case 3:
			return []item.Item{call("c6", "read", "x/../a")}
		}
		return []item.Item{item.Assistant("done")}
	}}
	a := &agent.Agent{Model: m, Policy: agent.Policy{Allow: []string{"*"}}, Tools: []tool.Tool{reader(files)}, CollapseReads: true}
	a.Request.Model = "test-model"
	return m, a
}

func files() map[string]string {
	return map[string]string{"a": strings.Repeat("the file a ", 30), "b": strings.Repeat("the file b ", 30)}
}

// C1: the older outputs become markers once a later read of the same has come;
// other regions and failed reads stay; the log keeps all.
func TestCollapseReads(t *testing.T) {
	m, a := readTwice(files())
	s := session.New()
	events, err := drain(a.Stream(t.Context(), s, item.User("q")))
	if err != nil {
		t.Fatal(err)
	}
	m.paired(t)
	whole, other := files()["a"], files()["b"]
	for i, want := range []map[string]string{
		{},
		{"c1": whole, "c2": other},
		{"c1": collapsedMark, "c2": other, "c4": whole},
		{"c1": collapsedMark, "c2": other, "c4": collapsedMark, "c6": whole},
	} {
		got := outputs(itemsOf(m.turns[i].Input))
		for _, failed := range []string{"c3", "c5"} {
			if text, sent := got[failed]; sent && !strings.HasPrefix(text, "error: there is no such file") {
				t.Errorf("request %d: %s: %s", i, failed, text)
			}
			delete(got, failed)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("request %d (-want +got):\n%s", i, diff)
		}
	}
	for _, b := range bodies[session.CallOutput](s) {
		if strings.Contains(b.Item.JSON(), collapsedMark) {
			t.Errorf("the log holds %s", b.Item.JSON())
		}
	}
	collapsed := told[session.Collapsed](events)
	if decided := bodies[session.Collapsed](s); len(decided) != 2 || len(collapsed) != 2 || collapsed[0].By != decided[0].By {
		t.Errorf("%+v, told %+v", decided, collapsed)
	}
	if ended := progressOf(events, agent.ProgressCache); ended[1].Turn != 3 || ended[1].Cache.Broken == nil || ended[1].Cache.Broken.Why != session.ByCollapsing {
		t.Errorf("%+v", ended[1].Cache)
	}

	// T8: what was decided stays when the setting changes, and nothing that was
	// sent changes because it is set later.
	before := history(s)
	a.CollapseReads = false
	if _, err := a.Run(t.Context(), s, item.User("and?")); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(outline(before), outline(history(s)[:len(before)])); diff != "" {
		t.Errorf("(-on +off):\n%s", diff)
	}
	m, a = readTwice(files())
	a.CollapseReads = false
	s = session.New()
	if _, err := a.Run(t.Context(), s, item.User("q")); err != nil {
		t.Fatal(err)
	}
	before = history(s)
	a.CollapseReads = true
	if _, err := a.Run(t.Context(), s, item.User("and?")); err != nil {
		t.Fatal(err)
	}
	if got := history(s)[:len(before)]; len(bodies[session.Collapsed](s)) > 0 || cmp.Diff(outline(before), outline(got)) != "" {
		t.Errorf("%q became %q", outline(before), outline(got))
	}
	m.paired(t)
}

// C1: it is off by default, and nothing becomes longer by it.
func TestCollapseIsOffByDefault(t *testing.T) {
	m, a := readTwice(map[string]string{"a": "short", "b": "b"})
	s := session.New()
	if _, err := a.Run(t.Context(), s, item.User("q")); err != nil || len(bodies[session.Collapsed](s)) > 0 {
		t.Errorf("%v %v", err, outline(history(s)))
	}
	m.paired(t)
	m, a = readTwice(files())
	a.CollapseReads = false
	s = session.New()
	if _, err := a.Run(t.Context(), s, item.User("q")); err != nil || len(bodies[session.Collapsed](s)) > 0 {
		t.Errorf("%v %v", err, outline(history(s)))
	}
	m.paired(t)
}

// C1: of a history from elsewhere it is not always known which reads failed;
// there only what says the same, or says that it did not fail, becomes a marker.
func TestCollapseImported(t *testing.T) {
	whole := files()["a"]
	out := func(id, text string) item.Item {
		return item.Must(&item.FunctionCallOutput{CallID: id, Output: item.Text(text)})
	}
	for _, c := range []struct {
		name          string
		first, second string
		want          bool
	}{
		{"equal", whole, whole, true},
		{"not equal", whole, whole + "!", false},
		{"failed", whole, output.Envelope(true, "read", "gone", ""), false},
		{"known", output.Envelope(false, "read", "", whole), output.Envelope(false, "read", "", whole+"!"), true},
	} {
		m, a := readTwice(files())
		m.reply = func(int) []item.Item { return []item.Item{item.Assistant("done")} }
		s := session.New()
		_, err := a.Run(t.Context(), s, call("c1", "read", "a"), out("c1", c.first), call("c2", "read", "a"), out("c2", c.second), item.User("q"))
		if err != nil {
			t.Fatal(err)
		}
		got := outputs(itemsOf(m.turns[0].Input))
		if (got["c1"] == collapsedMark) != c.want || got["c2"] == collapsedMark {
			t.Errorf("%s: %q", c.name, got)
		}
	}
}

// C1 C2: a compaction of what was collapsed, and the way back.
func TestCollapsedAndCompacted(t *testing.T) {
	m, a := readTwice(files())
	s := session.New()
	if _, err := a.Run(t.Context(), s, item.User("q")); err != nil {
		t.Fatal(err)
	}
	before := history(s)
	if _, err := a.Compact(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	for _, req := range m.sums {
		if n := strings.Count(req.Input.At(0).JSON(), "the file a the file a"); n > 20 {
			t.Errorf("what was collapsed is summed up: %d", n)
		}
	}
	if _, err := agent.Restore(t.Context(), s, 0); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(outline(before), outline(history(s))); diff != "" {
		t.Error(diff)
	}
}

// A tool whose ReadKey panics is noticed, once a run; what it reads is sent each time.
func TestReadKeyPanics(t *testing.T) {
	_, a := readTwice(nil)
	a.Tools = []tool.Tool{textTool("read", func(context.Context, string) (string, error) { return strings.Repeat("text ", 60), nil },
		tool.ReadKey(func(string) (string, bool) { panic("no idea") }))}
	s, err := session.Open(t.Context(), new(session.Memory), "s")
	if err != nil {
		t.Fatal(err)
	}
	events, err := drain(a.Stream(t.Context(), s, item.User("go")))
	if err != nil {
		t.Fatal(err)
	}
	noticed := told[session.Noticed](events)
	if len(noticed) != 1 || noticed[0].Kind != session.NoticeReadKeyFailed || !strings.Contains(noticed[0].Text, "tool read panicked: no idea") {
		t.Errorf("%+v", noticed)
	}
	if len(told[session.Collapsed](events)) > 0 {
		t.Error("something was collapsed")
	}
}
