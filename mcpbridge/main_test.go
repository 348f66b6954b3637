// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package mcpbridge_test

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/antiphon-go/antiphon/mcpbridge"
	"github.com/antiphon-go/antiphon/tool"
	"github.com/antiphon-go/antiphon/tool/output"
)

// modeVariable makes this test binary one of the servers of server_test.go.
const modeVariable = "ANTIPHON_TEST_MCP_SERVER"

func TestMain(m *testing.M) {
	if mode := os.Getenv(modeVariable); mode != "" {
		serve(mode)
		return
	}
	goleak.VerifyTestMain(m)
}

// patience is what a server has to start and to answer on a busy machine.
const patience = 5 * time.Minute

// program is this binary as a server.
func program(mode string, env ...string) mcpbridge.Server {
	s := mcpbridge.Server{Name: "probe", Command: []string{os.Args[0]}, Env: map[string]string{modeVariable: mode}, StartTimeout: patience, Timeout: patience}
	for _, v := range env {
		name, value, _ := strings.Cut(v, "=")
		s.Env[name] = value
	}
	return s
}

// rig is a bridge and the set of its tools.
type rig struct {
	t      *testing.T
	bridge *mcpbridge.Bridge
}

func connect(t *testing.T, opts mcpbridge.Options, servers ...mcpbridge.Server) *rig {
	t.Helper()
	return connectAs(t, mcpbridge.Hurried(opts), servers...)
}

func connectAs(t *testing.T, opts mcpbridge.Options, servers ...mcpbridge.Server) *rig {
	t.Helper()
	b, err := mcpbridge.Connect(t.Context(), opts, servers...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	return &rig{t, b}
}

func (r *rig) set() *tool.Set {
	r.t.Helper()
	set, err := tool.NewSet(r.bridge.Tools()...)
	if err != nil {
		r.t.Fatal(err)
	}
	return set
}

// call calls a tool as the loop does.
func (r *rig) call(name, arguments string) tool.Outcome {
	r.t.Helper()
	return r.set().Invoke(context.Background(), tool.Call{ID: "call_1", Name: name, Arguments: arguments}, output.Policy{})
}

// want calls a tool that must succeed with a text.
func (r *rig) want(name, arguments, text string) {
	r.t.Helper()
	if o := r.call(name, arguments); o.Failed || o.Content.Display() != text {
		r.t.Errorf("%s(%s): failed %v %q, want %q", name, arguments, o.Failed, o.Content.Display(), text)
	}
}

// wantSoon is like want for a server whose calls have little time: on a busy machine it may be over before
// the answer comes, and then the tool is called again.
func (r *rig) wantSoon(name, arguments, text string) {
	r.t.Helper()
	eventually(r.t, name+" is answered in time", func() bool {
		o := r.call(name, arguments)
		if o.Failure != tool.TimedOut && (o.Failed || o.Content.Display() != text) {
			r.t.Fatalf("%s(%s): failed %v %q, want %q", name, arguments, o.Failed, o.Content.Display(), text)
		}
		return !o.Failed
	})
}

// wantError calls a tool that must fail with an error that names the server and
// holds the parts.
func (r *rig) wantError(name, arguments string, parts ...string) tool.Outcome {
	r.t.Helper()
	o := r.call(name, arguments)
	if !o.Failed {
		r.t.Errorf("%s(%s) succeeded with %q", name, arguments, o.Content.Display())
	}
	for _, p := range append(parts, "MCP server probe") {
		if !strings.Contains(o.Error, p) {
			r.t.Errorf("%s: the error %q does not hold %q", name, o.Error, p)
		}
	}
	return o
}
