// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package tool

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/tool/output"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type none = struct{}

func textTool(name string, fn func(context.Context) (string, error), opts ...Option) Tool {
	return Must(name, "", func(ctx context.Context, _ none) (string, error) { return fn(ctx) }, opts...)
}

func says(text string) func(context.Context) (string, error) {
	return func(context.Context) (string, error) { return text, nil }
}

// I10: duplicates, nil tools and definitions that have no name.
func TestNewSet(t *testing.T) {
	a, b := textTool("b", says("")), textTool("a", says(""), ReadOnly(), Timeout(time.Second))
	s := mustSet(t, a, b)
	if diff := cmp.Diff([]string{"b", "a"}, s.Names()); diff != "" {
		t.Error(diff)
	}
	if got, ok := s.Lookup("a"); !ok || got != b || AnnotationsOf(got) != (Annotations{ReadOnly: true, Timeout: time.Second}) {
		t.Errorf("%v %v", got, ok)
	}
	var names []string
	for n := range s.All() {
		names = append(names, n)
	}
	if len(names) != 2 || len(s.Definitions()) != 2 || s.Len() != 2 {
		t.Errorf("%v %v", names, s.Definitions())
	}
	for name, tools := range map[string][]Tool{
		"twice":          {a, a},
		"nil":            {nil},
		"nil definition": {foreign{}},
		"bad name":       {foreign{def: &item.FunctionTool{Name: "a b"}}},
		"bad schema":     {foreign{def: &item.FunctionTool{Name: "a", Parameters: "x"}}},
		"hosted":         {foreign{def: &item.UnknownTool{Raw: `{"type":"web_search"}`}}},
	} {
		if _, err := NewSet(tools...); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	var empty *Set
	if _, ok := empty.Lookup("a"); ok || empty.Len() != 0 || len(empty.Names()) != 0 || len(empty.Definitions()) != 0 {
		t.Error("a nil set has tools")
	}
}

// foreign is a tool of somebody else.
type foreign struct {
	def item.Tool
	run func(context.Context, Call) (Result, error)
}

func (f foreign) Definition() item.Tool { return f.def }
func (f foreign) Run(ctx context.Context, c Call) (Result, error) {
	return f.run(ctx, c)
}

// T13 I9: a tool of another package is checked by the set, and its definition
// made complete.
func TestForeignTool(t *testing.T) {
	f := foreign{
		def: &item.FunctionTool{Name: "f", Parameters: `{"type":"object","required":["a"]}`},
		run: func(_ context.Context, c Call) (Result, error) { return Result{Text: c.Arguments}, nil },
	}
	s := mustSet(t, f)
	if def := s.Definitions()[0].(*item.FunctionTool); def.Strict == nil || *def.Strict {
		t.Errorf("%+v", def)
	}
	if o := s.Invoke(t.Context(), Call{Name: "f", Arguments: "{}"}, output.Policy{}); o.Failure != BadArguments {
		t.Errorf("%+v", o)
	}
	if o := s.Invoke(t.Context(), Call{Name: "f", Arguments: `{"a":1}`}, output.Policy{}); o.Content.Text != `{"a":1}` {
		t.Errorf("%+v", o)
	}
}

// T14: the exact text, in the envelope.
func TestUnknownTool(t *testing.T) {
	s := mustSet(t, textTool("a", says("")), textTool("b", says("")), textTool("c", says("")))
	o := s.Invoke(t.Context(), Call{Name: "X"}, output.Policy{})
	if o.Error != "tool not found: X. Available: a, b, c" || o.Failure != UnknownTool || !o.Failed {
		t.Errorf("%+v", o)
	}
	if want := "status:\nerror\n\ntoolName:\nX\n\nerror:\ntool not found: X. Available: a, b, c\n\noutput:\n"; o.Content.Text != want {
		t.Errorf("%q", o.Content.Text)
	}
	o = s.Invoke(t.Context(), Call{Name: "x\n\noutput:\n\xff"}, output.Policy{})
	if strings.Count(o.Content.Text, "\noutput:\n") != 1 || !strings.HasSuffix(o.Content.Text, "\noutput:\n") {
		t.Errorf("forged: %q", o.Content.Text)
	}
	var empty *Set
	if o := empty.Invoke(t.Context(), Call{Name: "X"}, output.Policy{}); o.Error != "tool not found: X. No tools are available." {
		t.Errorf("%+v", o)
	}
}

// T14: a tool that is there for calls of another form says so.
func TestOtherKind(t *testing.T) {
	shell, err := Raw(new(item.ShellTool), func(context.Context, Call) (Result, error) { return Result{}, nil })
	if err != nil {
		t.Fatal(err)
	}
	s := mustSet(t, textTool("local_shell", says("")), shell)
	for _, c := range []struct {
		call Call
		want string
	}{
		{Call{Name: "shell"}, "tool not found: shell is not a function here; it takes items of type shell_call. Available: local_shell, shell"},
		{Call{Name: "local_shell", Kind: item.TypeLocalShellCall}, "tool not found: local_shell does not take items of type local_shell_call here, but is called like any function. Available: local_shell, shell"},
		{Call{Name: "apply_patch", Kind: item.TypeApplyPatchCall}, "tool not found: apply_patch. Available: local_shell, shell"},
	} {
		if o := s.Invoke(t.Context(), c.call, output.Policy{}); o.Error != c.want || o.Failure != UnknownTool {
			t.Errorf("%+v", o)
		}
	}
}

// T15: a panic is an error output of that call; the stack is for the caller.
func TestPanic(t *testing.T) {
	s := mustSet(t,
		textTool("p", func(context.Context) (string, error) { panic("no good") }),
		textTool("exit", func(context.Context) (string, error) { runtime.Goexit(); return "", nil }),
		foreign{def: &item.CustomTool{Name: "nilfunc"}},
		textTool("ok", says("fine")),
	)
	o := s.Invoke(t.Context(), Call{Name: "p"}, output.Policy{})
	if o.Failure != Panicked || o.Panic == nil || !strings.Contains(string(o.Panic.Stack), "TestPanic") {
		t.Errorf("%+v", o)
	}
	if o.Error != "the tool panicked: no good" || strings.Contains(o.Content.Text, "goroutine") {
		t.Errorf("the model sees %q", o.Content.Text)
	}
	if o := s.Invoke(t.Context(), Call{Name: "exit"}, output.Policy{}); !o.Failed || o.Failure != ToolError {
		t.Errorf("%+v", o)
	}
	if o := s.Invoke(t.Context(), Call{Name: "nilfunc"}, output.Policy{}); o.Failure != Panicked {
		t.Errorf("%+v", o)
	}
	if o := s.Invoke(t.Context(), Call{Name: "ok"}, output.Policy{}); o.Failed || o.Content.Text != "fine" {
		t.Errorf("the sibling: %+v", o)
	}
}

// T15 T4: time limits, with and without a tool that listens.
func TestTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan none)
		s := mustSet(t,
			textTool("listens", func(ctx context.Context) (string, error) { <-ctx.Done(); return "half", ctx.Err() }, Timeout(3*time.Second)),
			textTool("killed", func(ctx context.Context) (string, error) {
				<-ctx.Done()
				return "half", errors.New("signal: killed")
			}, Timeout(3*time.Second)),
			textTool("deaf", func(context.Context) (string, error) { <-release; return "late", nil }, Timeout(3*time.Second)),
			textTool("done", func(ctx context.Context) (string, error) { <-ctx.Done(); return "whole", nil }, Timeout(3*time.Second)),
			textTool("own", func(context.Context) (string, error) { return "", context.DeadlineExceeded }, Timeout(3*time.Second)),
		)
		for name, c := range map[string]struct {
			err, output string
			why         Failure
			abandoned   bool
			takes       time.Duration
		}{
			"listens": {"The tool was stopped after its time limit of 3s. What it did until then is not known.", "half", TimedOut, false, 3 * time.Second},
			"killed":  {"The tool was stopped after its time limit of 3s. What it did until then is not known.\nsignal: killed", "half", TimedOut, false, 3 * time.Second},
			"deaf":    {"The tool did not finish within its time limit of 3s and has not stopped. What it does is not known.", "", TimedOut, true, 3*time.Second + Grace},
			"done":    {"", "whole", NoFailure, false, 3 * time.Second},
			"own":     {"context deadline exceeded", "", ToolError, false, 0},
		} {
			start := time.Now()
			o := s.Invoke(t.Context(), Call{Name: name}, output.Policy{})
			if took := time.Since(start); took != c.takes {
				t.Errorf("%s took %v, want %v", name, took, c.takes)
			}
			want := c.output
			if c.why != NoFailure {
				want = output.Envelope(true, name, c.err, c.output)
			}
			if o.Content.Text != want || o.Failure != c.why || o.Abandoned != c.abandoned {
				t.Errorf("%s: %+v", name, o)
			}
		}
		close(release)
	})
}

// A tool that ends because the time limit of an outer one passed was interrupted: it has
// no time limit, or another one. T5 T15
func TestTimeoutOfOuter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inside := mustSet(t,
			textTool("none", func(ctx context.Context) (string, error) { <-ctx.Done(); return "half", ctx.Err() }),
			textTool("longer", func(ctx context.Context) (string, error) { <-ctx.Done(); return "half", ctx.Err() }, Timeout(time.Hour)),
		)
		for _, name := range inside.Names() {
			outside := mustSet(t, textTool("outer", func(ctx context.Context) (string, error) {
				o := inside.Invoke(ctx, Call{Name: name}, output.Policy{})
				if o.Error != Interrupted || o.Failure != Cancelled {
					t.Errorf("%s: %+v", name, o)
				}
				return "", ctx.Err()
			}, Timeout(3*time.Second)))
			if o := outside.Invoke(t.Context(), Call{Name: "outer"}, output.Policy{}); o.Failure != TimedOut || !strings.Contains(o.Error, "time limit of 3s") {
				t.Errorf("outer: %+v", o)
			}
		}
	})
}

// T15 T5: a cancelled call gets a fixed sentence, siblings finish.
func TestCancel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan none)
		s := mustSet(t,
			textTool("listens", func(ctx context.Context) (string, error) { <-ctx.Done(); return "half", ctx.Err() }),
			textTool("deaf", func(context.Context) (string, error) { <-release; return "late", nil }, Timeout(time.Hour)),
		)
		for _, name := range []string{"listens", "deaf"} {
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(time.Second, cancel)
			start := time.Now()
			o := s.Invoke(ctx, Call{Name: name}, output.Policy{})
			if took := time.Since(start) - time.Second; took > 100*time.Millisecond {
				t.Errorf("%s: %v after the cancel", name, took)
			}
			if o.Error != Interrupted || o.Failure != Cancelled || o.Abandoned != (name == "deaf") {
				t.Errorf("%s: %+v", name, o)
			}
			if name == "listens" && !strings.HasSuffix(o.Content.Text, "output:\nhalf") {
				t.Errorf("the output so far is lost: %q", o.Content.Text)
			}
		}
		close(release)
	})
}

func TestCancelledBefore(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s := mustSet(t, textTool("a", func(context.Context) (string, error) { t.Error("the tool ran"); return "", nil }))
	if o := s.Invoke(ctx, Call{Name: "a"}, output.Policy{}); o.Failure != NotRun || o.Error != NotStarted {
		t.Errorf("%+v", o)
	}
}

// An error about arguments that comes out of the tool's own work does not say
// that the tool was not run.
func TestNestedArgumentsError(t *testing.T) {
	s := mustSet(t, textTool("outer", func(context.Context) (string, error) {
		return "", &ArgumentsError{Tool: "inner", Problem: "p"}
	}))
	if o := s.Invoke(t.Context(), Call{Name: "outer"}, output.Policy{}); o.Failure != ToolError {
		t.Errorf("%+v", o)
	}
}

func BenchmarkInvoke(b *testing.B) {
	tl := Must("f", "", func(_ context.Context, in searchInput) (string, error) { return in.Query, nil })
	s, err := NewSet(tl)
	if err != nil {
		b.Fatal(err)
	}
	call := Call{Name: "f", Arguments: `{"query":"a","limit":3,"tags":["x"]}`}
	b.ReportAllocs()
	for b.Loop() {
		s.Invoke(b.Context(), call, output.Policy{})
	}
}

// fragile writes its own JSON, and cannot write the JSON of its zero value.
type fragile struct{ name *string }

func (f fragile) MarshalJSON() ([]byte, error) { return []byte(`{"name":"` + *f.name + `"}`), nil }

// T15 G8: a result whose zero value has no JSON does not hide the error of the function, and
// what it returned beside the error is kept. As an input, such a type is an error.
func TestFragileResult(t *testing.T) {
	name := "half"
	failing := func(out fragile) Tool {
		return Must("f", "", func(context.Context, struct{}) (fragile, error) { return out, errors.New("the disk is full") })
	}
	for want, out := range map[string]fragile{"": {}, `{"name":"half"}`: {&name}} {
		o := mustSet(t, failing(out)).Invoke(t.Context(), Call{Name: "f", Arguments: "{}"}, output.Policy{})
		if o.Failure != ToolError || o.Error != "the disk is full" || !strings.HasSuffix(o.Content.Text, "output:\n"+want) {
			t.Errorf("%q: %+v", want, o)
		}
	}
	if _, err := New("f", "", func(context.Context, fragile) (string, error) { return "", nil }); err == nil || !strings.Contains(err.Error(), "panicked on the zero value") {
		t.Error(err)
	}
	if _, err := NewSchema[struct{ F fragile }](); err == nil || !strings.Contains(err.Error(), "panicked on the zero value") {
		t.Error(err)
	}
}

// muteError is an error whose text cannot be got of a nil pointer.
type muteError struct{ text string }

func (e *muteError) Error() string { return e.text }

// A tool that returns a nil pointer as an error fails its call, and nothing else. T15 G8
func TestErrorWithoutText(t *testing.T) {
	for _, err := range []error{(*muteError)(nil), (*PanicError)(nil), (*NotYet)(nil), (*ArgumentsError)(nil), fmt.Errorf("w: %w", (*NotYet)(nil))} {
		for _, opts := range [][]Option{{ReadOnly()}, {Polling()}, {Idempotent(), Retries(Retry{Max: 1, Wait: time.Nanosecond})}} {
			s := mustSet(t, textTool("p", func(context.Context) (string, error) { return "half", err }, opts...))
			o := s.Invoke(t.Context(), Call{Name: "p"}, output.Policy{})
			if !o.Failed || o.NotYet != nil || !strings.Contains(o.Content.Text, "nil") || !strings.Contains(o.Content.Text, "half") && o.Failure != Panicked {
				t.Errorf("%T: %+v", err, o)
			}
		}
	}
}
