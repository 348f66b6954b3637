// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/antiphon-go/antiphon/agenttest"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/server"
	"github.com/antiphon-go/antiphon/server/gateway"
	"github.com/antiphon-go/antiphon/session"
)

// stepped is a store of sessions that tells its writes.
type stepped struct {
	wholeStore
	mu     sync.Mutex
	writes []string
}

type wholeStore interface {
	session.Catalog
	session.SubsessionStore
	session.Locker
	session.Forker
	session.Watcher
	session.Inbox
	session.Blobs
}

func (*stepped) Place() string { return "memory" }
func (*stepped) Close() error  { return nil }

func steps() *stepped {
	s := new(stepped)
	s.wholeStore = agenttest.StepStore(nil, func(st agenttest.Step) error {
		s.mu.Lock()
		defer s.mu.Unlock()
		if verb, _, _ := strings.Cut(st.Name, "/"); st.Done && slices.Contains([]string{"append", "create", "fork", "archive", "delete"}, verb) {
			s.writes = append(s.writes, verb)
		}
		return nil
	}).(wholeStore)
	return s
}

func (s *stepped) take() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := s.writes
	s.writes = nil
	return list
}

// The beginning of a response is one write, also if it continues another one. An item that is
// complete when the response ends is stored with the end.
func TestWrites(t *testing.T) {
	up := agenttest.NewServer(t)
	up.Otherwise(func(int, agenttest.Request) agenttest.Reply {
		return agenttest.Completed(item.Assistant("one")).InPieces(1 << 20)
	})
	in := steps()
	w := &world{t: t, b: &gateway.Backend{Upstreams: []gateway.Upstream{open(t, up.URL, false)}}}
	keep := &gateway.Store{In: in}
	w.serve(&server.Server{Backend: w.b, Store: keep})
	defer func() {
		w.end()
		if err := keep.Close(); err != nil {
			t.Error(err)
		}
	}()
	first := w.create(`{"model":"m","input":"a"}`)
	if got := strings.Join(in.take(), " "); got != "append append archive" {
		t.Errorf("writes: %s", got)
	}
	w.create(`{"model":"m","input":"b","previous_response_id":"` + first.ID + `"}`)
	if got := strings.Join(in.take(), " "); got != "fork append archive" {
		t.Errorf("writes of one that continues: %s", got)
	}
}
