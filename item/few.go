// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package item

import "iter"

// few is a map that is a list while it is short: most replies have few items
// and few texts, and a list of them costs less to make than a map. One that is
// in use must not be copied.
type few[K comparable, V any] struct {
	list  []entry[K, V] // as long as there is no map
	many  map[K]*V
	first [2]entry[K, V] // where the list stands at first
}

type entry[K comparable, V any] struct {
	key   K
	value V
}

const maxFew = 16

func (f *few[K, V]) get(key K) (v V) {
	if p := f.find(key); p != nil {
		return *p
	}
	return v
}

// find returns where the value of a key is, nil if it has none.
func (f *few[K, V]) find(key K) *V {
	if f.many != nil {
		return f.many[key]
	}
	for i := range f.list {
		if f.list[i].key == key {
			return &f.list[i].value
		}
	}
	return nil
}

// at returns the place for the value of a key. It holds until the next call.
func (f *few[K, V]) at(key K) *V {
	if p := f.find(key); p != nil {
		return p
	}
	if f.list == nil && f.many == nil {
		f.list = f.first[:0]
	}
	if len(f.list) == maxFew {
		f.many = make(map[K]*V, 2*maxFew)
		for i := range f.list {
			f.many[f.list[i].key] = &f.list[i].value
		}
		f.list = nil
	}
	if f.many != nil {
		v := new(V)
		f.many[key] = v
		return v
	}
	f.list = append(f.list, entry[K, V]{key: key})
	return &f.list[len(f.list)-1].value
}

func (f *few[K, V]) len() int { return len(f.list) + len(f.many) }

func (f *few[K, V]) keys() iter.Seq[K] {
	return func(yield func(K) bool) {
		for i := range f.list {
			if !yield(f.list[i].key) {
				return
			}
		}
		for key := range f.many {
			if !yield(key) {
				return
			}
		}
	}
}
