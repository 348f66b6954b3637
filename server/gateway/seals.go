// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"crypto/sha256"
	"strings"
	"sync"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/item"
)

// seals remember which upstream made an encrypted text: only that one can read it, and no
// other may have it. They last as long as the process; the oldest are forgotten first.
type seals struct {
	mu    sync.Mutex
	by    map[seal]int
	order []seal
}

type seal [16]byte

const (
	maxSeals = 100_000
	unknown  = -1
)

// sealOf returns the encrypted text of an item, if it has one.
func sealOf(it item.Item) (seal, bool) {
	if it.Type() != item.TypeReasoning && it.Type() != item.TypeCompaction {
		return seal{}, false
	}
	v, _ := it.Member("encrypted_content")
	text, ok := v.Unquote()
	if !ok || text == "" {
		return seal{}, false
	}
	sum := sha256.Sum256([]byte(text))
	return seal(sum[:16]), true
}

// maker returns the upstream that made an encrypted text, or unknown.
func (s *seals) maker(of seal) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n, ok := s.by[of]; ok {
		return n
	}
	return unknown
}

func (s *seals) add(it item.Item, upstream int) {
	of, sealed := sealOf(it)
	if !sealed {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.by == nil {
		s.by = map[seal]int{}
	}
	if _, known := s.by[of]; known {
		return
	}
	s.by[of] = upstream
	if s.order = append(s.order, of); len(s.order) > maxSeals {
		delete(s.by, s.order[0])
		s.order = s.order[1:]
	}
}

// made notes the item of an event.
func (s *seals) made(ev *api.Event, upstream int) {
	if it, err := ev.Item(); err == nil {
		s.add(it, upstream)
	}
}

// ended notes the items of the last event.
func (s *seals) ended(ev *api.Event, upstream int) {
	if !strings.Contains(ev.JSON(), `"encrypted_content"`) {
		return
	}
	if r, err := ev.Response(); err == nil {
		for _, it := range r.Output {
			s.add(it, upstream)
		}
	}
}

// withoutSealed returns a request without encrypted reasoning, and how many items that are.
func withoutSealed(req *api.Request) (*api.Request, int) {
	own, n := *req, 0
	own.Input = new(item.List)
	for _, it := range req.Input.All() {
		if _, sealed := sealOf(it); sealed && it.Type() == item.TypeReasoning {
			n++
			continue
		}
		own.Input.Append(it)
	}
	return &own, n
}
