// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package jsonx

// Members are the members of an object, which a codec takes one by one, by their
// names. The zero Members is empty.
type Members struct {
	List  []Member // in the order of the text
	marks uint64   // those of the names
	next  int      // where the next one that is asked for should be
}

// Member is a member of an object, its name decoded.
type Member struct {
	Name, Value string
	Taken       bool // a field has its value
}

// Reset empties m and keeps its memory.
func (m *Members) Reset() {
	clear(m.List)
	*m = Members{List: m.List[:0]}
}

// Add appends a member, whose name is a literal: see [EachMember].
func (m *Members) Add(name, value string) {
	plain := Unquote(name)
	m.marks |= markOf(plain)
	m.List = append(m.List, Member{Name: plain, Value: value})
}

// markOf is one bit of 64, the same for the same name: most members that an
// object has not got are known by theirs to be missing.
func markOf(name string) uint64 {
	n := len(name)
	if n == 0 {
		return 1
	}
	return 1 << ((uint(n)*5 + uint(name[0]) + uint(name[n-1])*3) % 64)
}

// manyMembers is the size from which equal names are found by a map.
const manyMembers = 32

// DropEarlier makes the last of equal names the one that counts: the others are
// taken.
func (m *Members) DropEarlier() {
	if len(m.List) > manyMembers {
		last := make(map[string]int, len(m.List))
		for i := range m.List {
			if k, dup := last[m.List[i].Name]; dup {
				m.List[k].Taken = true
			}
			last[m.List[i].Name] = i
		}
		return
	}
	for i := range m.List {
		for k := range i {
			if m.List[k].Name == m.List[i].Name {
				m.List[k].Taken = true
			}
		}
	}
}

// Find returns the named member that is not taken, or nil. Members mostly come in
// the order of the fields, so the search starts after the last one found.
func (m *Members) Find(name string) *Member {
	if m.marks&markOf(name) == 0 {
		return nil
	}
	n := len(m.List)
	for k := range n {
		i := m.next + k
		if i >= n {
			i -= n
		}
		if one := &m.List[i]; one.Name == name && !one.Taken {
			m.next = (i + 1) % n
			return one
		}
	}
	return nil
}
