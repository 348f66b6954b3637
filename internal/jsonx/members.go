// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package jsonx

// Members holds the members of an object. A codec takes them one by one, by name.
// The zero Members is empty.
type Members struct {
	List  []Member // in the order of the text
	marks uint64   // the union of the names' marks, see markOf
	next  int      // index at which the next search starts
}

// Member is a member of an object, with its name decoded.
type Member struct {
	Name, Value string
	Taken       bool // a field has taken the value
}

// Reset removes all members and keeps the memory.
func (m *Members) Reset() {
	clear(m.List)
	*m = Members{List: m.List[:0]}
}

// Add appends a member. name is a JSON string literal, as [EachMember] passes it.
func (m *Members) Add(name, value string) {
	plain := Unquote(name)
	m.marks |= markOf(plain)
	m.List = append(m.List, Member{Name: plain, Value: value})
}

// markOf maps a name to one of 64 bits. If the bit is not in Members.marks, no
// member has the name, so most absent members are found without a search.
func markOf(name string) uint64 {
	n := len(name)
	if n == 0 {
		return 1
	}
	return 1 << ((uint(n)*5 + uint(name[0]) + uint(name[n-1])*3) % 64)
}

// manyMembers is the number of members above which duplicates are found with a map.
const manyMembers = 32

// DropEarlier marks all but the last of members with equal names as taken, so that
// the last one is used.
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

// Find returns the named member if it is not taken, or nil. Members usually have the
// same order as the fields, so the search starts after the member found last.
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
