// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agentfile_test

import (
	"bytes"
	"context"
	"errors"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/agentfile"
	"github.com/antiphon-go/antiphon/agenttest"
	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/chatmd"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/tool"
	"github.com/antiphon-go/antiphon/tool/output"
	"github.com/antiphon-go/antiphon/trust"
)

// png is an image of one pixel.
const png = "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01\b\x06\x00\x00\x00\x1f\x15\xc4\x89" +
	"\x00\x00\x00\rIDATx\x9cc\xf8\xcf\xc0\xf0\x1f\x00\x05\x00\x01\xff\x89\x99=\x1d\x00\x00\x00\x00IEND\xaeB`\x82"

// write makes a file and its folders, and returns its path.
func write(t *testing.T, text string, elem ...string) string {
	t.Helper()
	path := filepath.Join(elem...)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// load loads a file that is in order.
func load(t *testing.T, path string, o agentfile.Options) *agentfile.File {
	t.Helper()
	if o.Consent == nil {
		o.Consent = trust.Everything
	}
	f, err := agentfile.Load(t.Context(), path, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// memory is a ledger of transcripts in memory. The zero value is ready for use.
type memory struct{ records sync.Map }

func (m *memory) leave(l trust.Left) error {
	m.records.Store(l.Path, l)
	return nil
}

func (m *memory) left(src trust.Source) trust.Left {
	l, _ := m.records.Load(src.Path)
	left, _ := l.(trust.Left)
	return left
}

// yours is the Known of somebody who has begun all transcripts, and whose last run left all that
// is there.
func yours(src trust.Source) (left trust.Left, known bool) {
	text, err := os.ReadFile(src.Path)
	if err != nil {
		return left, true
	}
	sizes := []int{chatmd.Recover(text), bytes.LastIndexByte(text, '\n') + 1, len(text)}
	slices.Sort(sizes)
	for _, n := range sizes {
		left.States = append(left.States, trust.State{Size: int64(n), Hash: trust.Hash(text[:n])})
	}
	return left, true
}

// opened are the files that tests have open, by their transcripts.
var opened sync.Map

// open opens a transcript and the session in it. What had it open before is gone,
// as a process that died is.
func open(t *testing.T, path, out string) (*agentfile.File, *session.Session) {
	t.Helper()
	if before, ok := opened.Load(out); ok {
		before.(*agentfile.File).Close()
	}
	f, store, err := agentfile.OpenTranscript(t.Context(), path, out, agentfile.Options{Consent: trust.Everything, Known: yours})
	if err != nil {
		t.Fatal(err)
	}
	opened.Store(out, f)
	t.Cleanup(func() { f.Close() })
	s, err := session.Open(t.Context(), store, out)
	if err != nil {
		t.Fatal(err)
	}
	return f, s
}

func appendTo(t *testing.T, s *session.Session, bodies ...session.Body) {
	t.Helper()
	if _, err := s.Append(t.Context(), bodies...); err != nil {
		t.Fatal(err)
	}
}

// invoke runs one of a file's tools.
func invoke(t *testing.T, f *agentfile.File, name, arguments string) tool.Outcome {
	t.Helper()
	set, err := tool.NewSet(f.Tools...)
	if err != nil {
		t.Fatal(err)
	}
	return set.Invoke(t.Context(), tool.Call{ID: "c", Name: name, Arguments: arguments}, output.Policy{})
}

var errAsked = errors.New("asked")

// witness is a model that says nothing and remembers what it was asked.
type witness struct{ input []item.Item }

func (w *witness) Stream(_ context.Context, req *api.Request) iter.Seq2[api.Event, error] {
	w.input = nil
	for _, it := range req.Input.All() {
		w.input = append(w.input, it)
	}
	return func(yield func(api.Event, error) bool) { yield(api.Event{}, errAsked) }
}

// nextRequest runs an agent on the session and returns the input that its model
// gets, which must pair. It returns nil when there is nothing to ask. P1
func nextRequest(t *testing.T, f *agentfile.File, s *session.Session) []item.Item {
	t.Helper()
	w := new(witness)
	_, err := f.Agent(w).Run(t.Context(), s)
	if errors.Is(err, agent.ErrNothingToSend) {
		return nil
	}
	if !errors.Is(err, errAsked) {
		t.Fatal(err)
	}
	if err := agenttest.CheckPairing(w.input...); err != nil {
		t.Errorf("%v\n%v", err, w.input)
	}
	return w.input
}
